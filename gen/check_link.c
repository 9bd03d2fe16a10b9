/* Frames over a serial line: how a board reaches the host.
 *
 * The board asks and the host answers, so that at most 62 bytes are on their way to the board.  A frame is coded so that
 * no byte in it is zero (COBS), and ends with a zero.  In it are a kind, a number, up to {{ chunk }} bytes, and their CRC-32, its
 * first byte first.  Kinds from the board: H here I am, R give me bytes, W take these.  From the host: A the answer, X stop.  An answer has its
 * question's number.  Who receives a damaged frame asks again: the board repeats its question, the host sends a zero.
 *
 * SPDX-License-Identifier: 0BSD
 */
#include "check.h"

#include <stddef.h>

#define CHUNK {{ chunk }}u /* bytes in a frame */
#define PROTOCOL 1u
#define PAINT 0xA5u
#define OWN 128u /* bytes of stack below a local variable that its function may take */

typedef enum { ANSWERED, DAMAGED, STOPPED } reply_t;

static uint8_t number; /* of the last question */
static int32_t stopped; /* 1: the host wants no more of this job */
static unsigned char *stack_end; /* the lowest byte that the stack may take */
static uint32_t painted; /* bytes that were painted, from there on */

/* A step of the CRC-32 of zlib; it begins and ends with all bits inverted. */
static uint32_t crc_of(uint32_t crc, uint8_t byte)
{
    crc ^= byte;
    for (uint8_t bit = 0u; bit < 8u; bit++) {
        crc = ((crc & 1u) != 0u) ? ((crc >> 1) ^ 0xEDB88320u) : (crc >> 1);
    }
    return crc;
}

static uint8_t *place_of(const check_part_t *parts, uint32_t offset)
{
    while (offset >= parts->bytes) {
        offset -= parts->bytes;
        parts++;
    }
    return (uint8_t *)parts->at + offset;
}

/* What a frame carries: bytes of some parts, one after the other, from an offset on. */
typedef struct {
    const check_part_t *parts;
    uint32_t offset;
    uint8_t count;
} load_t;

/* Byte i of a frame: kind, number, what it carries, CRC. */
static uint8_t byte_of(uint8_t kind, const load_t *load, uint32_t crc, uint8_t i)
{
    if (i == 0u) {
        return kind;
    }
    if (i == 1u) {
        return number;
    }
    if (i < (load->count + 2u)) {
        return *place_of(load->parts, load->offset + i - 2u);
    }
    return (uint8_t)(crc >> (8u * (i - 2u - load->count)));
}

static void send(uint8_t kind, const load_t *load)
{
    const uint8_t length = (uint8_t)(load->count + 6u);
    uint32_t crc = 0xFFFFFFFFu;
    for (uint8_t i = 0u; i < (load->count + 2u); i++) {
        crc = crc_of(crc, byte_of(kind, load, 0u, i));
    }
    crc = ~crc;
    /* runs without a zero, each after its length + 1; a zero follows each but the last */
    uint8_t i = 0u;
    for (;;) {
        uint8_t end = i;
        while ((end < length) && (byte_of(kind, load, crc, end) != 0u)) {
            end++;
        }
        check_put((uint8_t)(end - i + 1u));
        for (; i < end; i++) {
            check_put(byte_of(kind, load, crc, i));
        }
        if (end == length) {
            break;
        }
        i++; /* the zero */
    }
    check_put(0u);
}

/* Waits for the answer. */
static reply_t receive(const load_t *load)
{
    for (;;) {
        uint32_t crc = 0xFFFFFFFFu;
        uint8_t kind = 0u;
        uint8_t found = 0u; /* the frame's number */
        uint8_t length = 0u;
        uint8_t left = 0u; /* bytes of this run */
        uint8_t first = 1u;
        for (;;) {
            const uint8_t coded = check_get();
            uint8_t byte = coded;
            if (coded == 0u) {
                break;
            }
            if (left == 0u) {
                left = (uint8_t)(coded - 1u);
                if (first != 0u) {
                    first = 0u;
                    continue;
                }
                byte = 0u;
            } else {
                left--;
            }
            if (length == 0u) {
                kind = byte;
            } else if (length == 1u) {
                found = byte;
            } else if ((length < (load->count + 2u)) && (found == number)) {
                *place_of(load->parts, load->offset + length - 2u) = byte;
            } else {
                /* the CRC, or of another question */
            }
            crc = crc_of(crc, byte);
            if (length < 255u) {
                length++;
            }
        }
        if ((crc != 0xDEBB20E3u) || (left != 0u) || (length < 6u)) {
            return DAMAGED;
        }
        if (kind == (uint8_t)'X') {
            return STOPPED;
        }
        if ((kind == (uint8_t)'A') && (found == number) && (length == (load->count + 6u))) {
            return ANSWERED;
        }
        /* an answer that came twice */
    }
}

/* One question, until it is answered. */
static void exchange(uint8_t kind, const load_t *out, const load_t *in)
{
    reply_t reply = DAMAGED;
    if (stopped != 0) {
        return;
    }
    number++;
    while (reply == DAMAGED) {
        send(kind, out);
        reply = receive(in);
    }
    stopped = (reply == STOPPED) ? 1 : 0;
}

static uint32_t bytes_of(const check_part_t *parts, uint32_t count)
{
    uint32_t bytes = 0u;
    for (uint32_t i = 0u; i < count; i++) {
        bytes += parts[i].bytes;
    }
    return bytes;
}

/* The parts in frames. */
static void transfer(uint8_t kind, const check_part_t *parts, uint32_t count)
{
    const uint32_t bytes = bytes_of(parts, count);
    for (uint32_t offset = 0u; offset < bytes; offset += CHUNK) {
        uint8_t now = (uint8_t)(((bytes - offset) < CHUNK) ? (bytes - offset) : CHUNK);
        const check_part_t asked = {&now, 1u};
        const load_t load = {parts, offset, now};
        const load_t number_only = {&asked, 0u, 1u};
        const load_t nothing = {NULL, 0u, 0u};
        if (kind == (uint8_t)'R') {
            exchange(kind, &number_only, &load);
        } else {
            exchange(kind, &load, &nothing);
        }
    }
}

void check_read(const check_part_t *parts, uint32_t count)
{
    transfer((uint8_t)'R', parts, count);
}

void check_write(const check_part_t *parts, uint32_t count)
{
    transfer((uint8_t)'W', parts, count);
}

int32_t check_over(void)
{
    return stopped;
}

uint32_t check_stack_used(void)
{
    uint32_t untouched = 0u;
    while ((untouched < painted) && (stack_end[untouched] == PAINT)) {
        untouched++;
    }
    return (painted > 0u) ? (painted - untouched + OWN) : 0u;
}

/* Paints the free part of the stack: all below this function's own part, so that it must be a function of its own. */
#if defined(__GNUC__)
__attribute__((noinline))
#endif
static void paint(unsigned char *end)
{
    const volatile unsigned char here = 0u;
    const uintptr_t top = (uintptr_t)&here - OWN;
    stack_end = end;
    painted = ((end != NULL) && ((uintptr_t)end < top)) ? (uint32_t)(top - (uintptr_t)end) : 0u;
    for (uint32_t i = 0u; i < painted; i++) {
        *(volatile unsigned char *)&end[i] = PAINT;
    }
}

static void put_word(uint8_t *to, uint32_t word)
{
    for (uint8_t i = 0u; i < 4u; i++) {
        to[i] = (uint8_t)(word >> (8u * i));
    }
}

static uint32_t length_of(const char *text)
{
    uint32_t length = 0u;
    while ((text[length] != '\0') && (length < 99u)) {
        length++;
    }
    return length;
}

#if defined(__VERSION__)
#define COMPILER __VERSION__
#else
#define COMPILER "unknown"
#endif
#if defined(__clang__)
#define MAKER "clang "
#elif defined(__GNUC__)
#define MAKER "gcc "
#else
#define MAKER ""
#endif
#if defined(__OPTIMIZE_SIZE__)
#define LEVEL ", -Os"
#elif defined(__OPTIMIZE__)
#define LEVEL ", -O1 or more"
#else
#define LEVEL ", -O0"
#endif

void check_serve(unsigned char *stack)
{
    static const char about[] = MAKER COMPILER LEVEL;
    uint8_t hello[11];
    uint8_t order = 0u;
    const check_part_t told = {hello, (uint32_t)sizeof hello};
    const check_part_t ordered = {&order, 1u};
    const check_part_t texts[] = {
        {(void *)check_board, length_of(check_board)},
        {(void *)about, length_of(about)},
    };
    const load_t out = {&told, 0u, (uint8_t)sizeof hello};
    const load_t in = {&ordered, 0u, 1u};
    paint(stack);
    check_start_time();
    for (;;) {
        stopped = 0;
        hello[0] = PROTOCOL;
        put_word(&hello[1], check_hash());
        put_word(&hello[5], check_ticks_hz);
        hello[9] = (uint8_t)texts[0].bytes;
        hello[10] = (uint8_t)texts[1].bytes;
        exchange((uint8_t)'H', &out, &in);
        if (stopped != 0) {
            continue;
        }
        if (order == (uint8_t)'?') {
            check_write(texts, 2u);
        } else {
            check_job();
        }
    }
}
