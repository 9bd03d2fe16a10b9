/* Calls of a generated model, called m, as a fuzzer's bytes or pseudo-random numbers say; after each one the promises of
 * its header are checked.
 *
 * model_calls.h, written by tests/support/harness.py: REAL, INPUT_LIMIT and other numbers of the spec, FIELDS and STATUSES
 * of the model, and carry_out(), which knows its functions.  With libFuzzer: clang -fsanitize=fuzzer,address,undefined.
 * Elsewhere -DALONE, and main has three ways:
 *
 *     calls RUNS SEED       any function in any order; storage that fails, and snapshots that were tampered with
 *     forged STATES SEED    a state that was learned, with a few numbers changed and a right CRC, loaded and gone on with
 *     garbage STATES SEED   memory that nobody initialised
 */
#include "m.h"
#include "model_real.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A field of the persistent state: where, how many numbers, how many of them for each vector (0: not one's), the bytes of
 * a number, reals or not. */
typedef struct {
    const char *name;
    size_t offset, count, row, width;
    bool real;
} field_t;

/* The fuzzer's bytes, zeros after their end; or pseudo-random ones without end. */
typedef struct {
    const uint8_t *at, *end;
    uint64_t seed; /* 0: there are bytes */
} input_t;

static const char *call = "nothing"; /* what was called last */
static char story[400]; /* what was forged */
static bool garbage; /* the memory is no model: nothing is promised but that no other memory is touched */

#define PROMISE(condition) \
    do { \
        if (!(condition) && !garbage) { \
            fprintf(stderr, "line %d: %s does not hold after %s; %s\n", __LINE__, #condition, call, story); \
            abort(); \
        } \
    } while (0)

static uint64_t next(input_t *in)
{
    in->seed ^= in->seed << 13;
    in->seed ^= in->seed >> 7;
    in->seed ^= in->seed << 17;
    return in->seed * 0x2545F4914F6CDD1DuLL;
}

static void take(input_t *in, void *to, size_t count)
{
    if (in->seed != 0) {
        for (size_t i = 0; i < count; i++) {
            ((uint8_t *)to)[i] = (uint8_t)(next(in) >> 56);
        }
        return;
    }
    const size_t left = (size_t)(in->end - in->at);
    const size_t taken = (count < left) ? count : left;
    memset(to, 0, count);
    memcpy(to, in->at, taken);
    in->at += taken;
}

static uint8_t byte(input_t *in)
{
    uint8_t value;
    take(in, &value, 1);
    return value;
}

static uint32_t below(input_t *in, uint32_t count)
{
    uint32_t value;
    take(in, &value, sizeof value);
    return value % count;
}

/* From -1 to 1. */
static REAL part(input_t *in)
{
    int32_t value;
    take(in, &value, sizeof value);
    return (REAL)value / (REAL)2147483648.0;
}

static REAL power_of_ten(int exponent)
{
    REAL value = (REAL)1;
    for (; exponent > 0; exponent--) {
        value *= (REAL)10;
    }
    for (; exponent < 0; exponent++) {
        value /= (REAL)10;
    }
    return value;
}

static uint32_t any_number(input_t *in)
{
    uint32_t value;
    take(in, &value, sizeof value);
    return value;
}

static REAL any_bits(input_t *in)
{
    REAL value;
    take(in, &value, sizeof value);
    return value;
}

/* A number for a sample: mostly within the limit and near a few values, now and then anything at all. */
static REAL hostile(input_t *in, REAL scale, REAL limit)
{
    const uint8_t how = byte(in);
    if (how < 150) {
        return scale * (REAL)((int)(byte(in) % 33) - 16) / (REAL)8;
    }
    if (how < 200) {
        return scale * part(in);
    }
    if (how < 220) {
        return limit * part(in);
    }
    if (how < 235) {
        return (how & 1) ? limit : -limit;
    }
    if (how < 245) {
        return scale * power_of_ten(-(int)below(in, 37)) * part(in);
    }
    return any_bits(in);
}

static void fill(input_t *in, REAL *values, size_t count, REAL scale, REAL limit)
{
    for (size_t i = 0; i < count; i++) {
        values[i] = hostile(in, scale, limit);
    }
}

/* A whole number for a sample: mostly within the limit, often at it or one beyond, now and then anything at all. */
static int32_t hostile_count(input_t *in, int32_t limit)
{
    const uint8_t how = byte(in);
    const int32_t most = (limit < 1) ? 1 : limit;
    if (how < 100) {
        return (most / 16) * ((int32_t)(byte(in) % 9) - 4);
    }
    if (how < 200) {
        return (int32_t)((double)part(in) * (double)most);
    }
    if (how < 240) {
        return (int32_t)((uint32_t)((how & 1) ? most : -most) + (((how & 6) == 0) ? below(in, 3) - 1u : 0u));
    }
    return (int32_t)any_number(in);
}

static void fill_counts(input_t *in, int16_t *values, size_t count, int32_t center, int32_t limit)
{
    for (size_t i = 0; i < count; i++) {
        values[i] = (int16_t)(uint16_t)((uint32_t)hostile_count(in, limit) + (uint32_t)center);
    }
}

static void fill_labels(input_t *in, int32_t *values, size_t count, int32_t limit)
{
    for (size_t i = 0; i < count; i++) {
        values[i] = hostile_count(in, limit);
    }
}

static bool finite_real(REAL value)
{
    return (value - value) == (REAL)0;
}

/* What a question or reading wrote: numbers if it did, else what was there. */
static void check_answer(int32_t status, const REAL *values, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        PROMISE((status >= 0) ? finite_real(values[i]) : (values[i] == (REAL)7));
    }
}

/* The same of whole numbers. */
static void check_whole(int32_t status, const void *values, size_t count, size_t width)
{
    const unsigned char *bytes = values;
    for (size_t i = 0; i < count * width; i++) {
        PROMISE(status >= 0 || bytes[i] == 7);
    }
}

static void check_position(int32_t status, int32_t value, int32_t count)
{
    PROMISE((status >= 0) ? (value >= 0 && value < count) : (value == 7));
}

#include "model_calls.h"

static const field_t fields[] = {FIELDS};
static const int32_t statuses[] = {STATUSES};
#define FIELD_COUNT (sizeof fields / sizeof fields[0])

static bool known(int32_t status)
{
    for (size_t i = 0; i < sizeof statuses / sizeof statuses[0]; i++) {
        if (statuses[i] == status) {
            return true;
        }
    }
    return false;
}

static void check_state(const m_t *s)
{
    const size_t used = (size_t)VECTORS_IN_USE;
    PROMISE(used <= (size_t)VECTORS);
    for (size_t f = 0; f < FIELD_COUNT; f++) {
        const unsigned char *bytes = (const unsigned char *)s + fields[f].offset;
        for (size_t i = 0; i < fields[f].count; i++) {
            if (fields[f].real) {
                REAL value;
                memcpy(&value, bytes + i * sizeof value, sizeof value);
                if (!finite_real(value) && !garbage) {
                    fprintf(stderr, "%s[%d] is not finite after %s; %s\n", fields[f].name, (int)i, call, story);
                    abort();
                }
                PROMISE(fields[f].row == 0 || i < used * fields[f].row || value == (REAL)0);
            }
        }
    }
}

/* Two slots in memory; a write or read fails where the fuzzer says so. */
typedef struct {
    uint8_t slots[2][M_SNAPSHOT_BYTES];
    int32_t failing; /* calls until one fails; below 0: never */
} storage_t;

static int32_t store_bytes(void *context, int32_t slot, uint32_t offset, const uint8_t *bytes, uint32_t count)
{
    storage_t *storage = context;
    PROMISE((slot == 0 || slot == 1) && offset + count <= M_SNAPSHOT_BYTES && count > 0u && count <= 64u);
    if (storage->failing-- == 0) {
        return 1;
    }
    memcpy(&storage->slots[slot][offset], bytes, count);
    return 0;
}

static int32_t read_bytes(void *context, int32_t slot, uint32_t offset, uint8_t *bytes, uint32_t count)
{
    storage_t *storage = context;
    PROMISE((slot == 0 || slot == 1) && offset + count <= M_SNAPSHOT_BYTES && count > 0u && count <= 64u);
    if (storage->failing-- == 0) {
        return 1;
    }
    memcpy(bytes, &storage->slots[slot][offset], count);
    return 0;
}

static uint32_t crc32(const uint8_t *bytes, size_t count)
{
    uint32_t crc = 0xFFFFFFFFu;
    for (size_t i = 0; i < count; i++) {
        crc ^= bytes[i];
        for (int bit = 0; bit < 8; bit++) {
            crc = (crc >> 1) ^ (0xEDB88320u & (0u - (crc & 1u)));
        }
    }
    return crc ^ 0xFFFFFFFFu;
}

static void seal(uint8_t *snapshot)
{
    const uint32_t crc = crc32(snapshot, M_SNAPSHOT_BYTES - 4);
    memcpy(&snapshot[M_SNAPSHOT_BYTES - 4], &crc, 4);
}

/* Change bytes of a snapshot at some places, and mostly make its CRC right again: no fuzzer guesses one. */
static void mutate(input_t *in, uint8_t *snapshot)
{
    const uint8_t how = byte(in);
    for (int changes = how % 8; changes >= 0; changes--) {
        const uint32_t at = below(in, M_SNAPSHOT_BYTES);
        snapshot[at] = (how & 16) ? byte(in) : (uint8_t)(snapshot[at] ^ (1u << (byte(in) % 8u)));
    }
    if ((how & 32) == 0) {
        seal(snapshot);
    }
}

/* Another number for one of a field's: what a forger would try. */
static REAL forged_real(input_t *in, REAL value)
{
    const REAL sign = (byte(in) & 1) ? (REAL)1 : (REAL)-1;
    switch (byte(in) % 8) {
    case 0:
        return (REAL)0;
    case 1:
        return -value;
    case 2:
        return value * power_of_ten((int)below(in, 13) - 6);
    case 3:
        return sign * power_of_ten((int)below(in, 75) - 37);
    case 4:
        return sign * part(in) * power_of_ten((int)below(in, 21) - 10);
    case 5:
        return value * ((REAL)1 + part(in));
    case 6:
        return sign * (REAL)(1u << below(in, 24));
    default:
        return any_bits(in);
    }
}

static int32_t forged_count(input_t *in, int32_t value)
{
    switch (byte(in) % 8) {
    case 3:
        return (int32_t)(0u - (uint32_t)value);
    case 4:
        return (int32_t)((uint32_t)value << below(in, 16));
    case 5:
        return (int32_t)((1u << below(in, 32)) - below(in, 2));
    case 6:
        return (int32_t)((double)value * (1.0 + (double)part(in)) * 0.5);
    case 0:
        return (int32_t)((uint32_t)value + below(in, 5) - 2u);
    case 1:
        return (int32_t)below(in, 64);
    case 2:
        return 0;
    default: {
        int32_t any;
        take(in, &any, sizeof any);
        return any;
    }
    }
}

/* A whole number of so many bytes. */
static int32_t whole_at(const uint8_t *bytes, size_t width)
{
    int32_t wide = 0;
    int16_t narrow = 0;
    if (width == 4u) {
        memcpy(&wide, bytes, sizeof wide);
        return wide;
    }
    memcpy(&narrow, bytes, width);
    return (int32_t)narrow;
}

/* Change a few numbers of the state in a snapshot, in one or in all places of a field. */
static void forge(input_t *in, uint8_t *snapshot)
{
    size_t told = 0;
    story[0] = 0;
    for (uint32_t changes = 1u + below(in, 3); changes > 0u; changes--) {
        const field_t *f = &fields[below(in, FIELD_COUNT)];
        const bool all = f->count > 1u && (byte(in) % 8) == 0;
        uint8_t *bytes = &snapshot[20 + f->offset];
        const size_t first = all ? 0u : below(in, (uint32_t)f->count);
        const size_t end = all ? f->count : first + 1u;
        REAL last = (REAL)0;
        for (size_t i = first; i < end; i++) {
            if (f->real) {
                REAL value;
                memcpy(&value, bytes + i * sizeof value, sizeof value);
                if (all && value == (REAL)0) {
                    continue; /* what is beyond those in use must stay zero */
                }
                last = forged_real(in, value);
                memcpy(bytes + i * sizeof value, &last, sizeof last);
            } else {
                int32_t value = whole_at(bytes + i * f->width, f->width);
                if (all && value == 0) {
                    continue;
                }
                value = forged_count(in, value);
                memcpy(bytes + i * f->width, &value, f->width); /* the lowest bytes, which come first */
                last = (REAL)value;
            }
        }
        if (told < sizeof story - 100u) {
            told += (size_t)snprintf(&story[told], 99, "%s[%s%d] = %g; ", f->name, all ? "to " : "", (int)(end - 1u), (double)last);
        }
    }
    seal(snapshot);
}

/* One function of the model, with everything that it promises. */
static void one_call(m_t *s, input_t *in)
{
    const uint32_t which = (byte(in) % 4) ? 0u : below(in, CALLS);
    const m_t before = *s;
    call = call_names[which];
    const int32_t status = carry_out(s, which, in);
    PROMISE(known(status));
    /* refused, or only asked: the model is as before */
    PROMISE((status >= 0 && call_changes[which]) || memcmp(s, &before, M_STATE_BYTES) == 0);
    check_state(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void any_calls(input_t *in, uint32_t count)
{
    m_t s, before, blank;
    uint8_t snapshot[M_SNAPSHOT_BYTES];
    storage_t storage;
    bool saved_forged = false; /* the same, of the snapshot */
    bool forged = false; /* whether the state is from bytes that were tampered with, and were taken */
    memset(&s, 0xA5, sizeof s);
    memset(&storage, 0xFF, sizeof storage);
    m_init(&s);
    m_init(&blank);
    PROMISE(m_save(&s, snapshot) == M_DONE);
    for (uint32_t i = 0; in->seed != 0 ? i < count : in->at < in->end; i++) {
        const uint8_t what = byte(in);
        int32_t status = M_DONE;
        before = s;
        storage.failing = (what & 64) ? byte(in) : -1;
        switch (what % 16) {
        case 10:
            call = "save";
            status = m_save(&s, snapshot);
            saved_forged = (status == M_DONE) ? forged : saved_forged;
            PROMISE(memcmp(&s, &before, sizeof s) == 0);
            break;
        case 11: case 12: {
            uint8_t changed[M_SNAPSHOT_BYTES];
            memcpy(changed, snapshot, sizeof changed);
            if (what % 16 == 12) {
                if (what & 128) {
                    mutate(in, changed);
                } else {
                    forge(in, changed);
                }
            }
            call = "load";
            status = m_load(&s, changed);
            if (status == M_DONE) {
                forged = saved_forged || memcmp(changed, snapshot, sizeof changed) != 0;
                PROMISE(memcmp(&s, &changed[20], M_STATE_BYTES) == 0);
            }
            break;
        }
        case 13:
            call = "store";
            status = m_store(&s, store_bytes, read_bytes, &storage);
            PROMISE(memcmp(&s, &before, sizeof s) == 0);
            break;
        case 14:
            if (what & 128) {
                mutate(in, storage.slots[what & 16 ? 1 : 0]);
            }
            call = "restore";
            status = m_restore(&s, read_bytes, &storage);
            forged = forged || status == M_DONE; /* the slots may have been tampered with before */
            break;
        case 15:
            call = "wipe";
            m_wipe(&s);
            PROMISE(m_hash(&s) == m_hash(&blank) || memcmp(&s, &blank, M_STATE_BYTES) != 0);
            m_init(&s);
            forged = false;
            break;
        default:
            one_call(&s, in);
            break;
        }
        PROMISE(known(status));
        if (status < 0 && memcmp(&s, &before, M_STATE_BYTES) != 0) {
            /* refused and changed: only a restore may, and it leaves nothing of what it has read */
            m_reset(&blank);
            PROMISE(status == M_STORAGE_FAILED);
            PROMISE(memcmp(&s, &blank, sizeof s) == 0);
            forged = false;
        }
        check_state(&s);
        if (!forged) { /* what was learned can be saved */
            uint8_t copy[M_SNAPSHOT_BYTES];
            PROMISE(m_save(&s, copy) == M_DONE);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    input_t in = {data, data + size, 0};
    any_calls(&in, 0);
    return 0;
}

#ifdef ALONE
/* States that are accepted with a few numbers changed stay finite and can be saved, whatever comes. */
static void forged_states(input_t *in, uint32_t states)
{
    uint32_t taken = 0;
    m_t s;
    memset(&s, 0, sizeof s);
    m_init(&s);
    for (uint32_t i = 0; i < states; i++) {
        uint8_t genuine[M_SNAPSHOT_BYTES], changed[M_SNAPSHOT_BYTES];
        story[0] = 0;
        if (i % 64u == 0u) {
            m_init(&s);
            for (uint32_t calls = below(in, 300); calls > 0u; calls--) {
                one_call(&s, in);
            }
        }
        PROMISE(m_save(&s, genuine) == M_DONE);
        memcpy(changed, genuine, sizeof changed);
        forge(in, changed);
        m_t copy = s;
        call = "load";
        if (m_load(&copy, changed) == M_DONE) {
            taken++;
            for (uint32_t calls = 1u + below(in, 120); calls > 0u; calls--) {
                one_call(&copy, in);
            }
            call = "calls of a forged state";
            PROMISE(m_save(&copy, changed) == M_DONE);
        }
        story[0] = 0;
        one_call(&s, in);
    }
    printf("%u forged, %u taken\n", states, taken);
}

/* No function touches other memory, or does what C leaves undefined, whatever lies in its own. */
static void garbage_states(input_t *in, uint32_t states)
{
    garbage = true;
    for (uint32_t i = 0; i < states; i++) {
        m_t s;
        take(in, &s, sizeof s);
        if (i % 2u == 0u) { /* a model but for some bits */
            m_init(&s);
            for (uint32_t calls = below(in, 60); calls > 0u; calls--) {
                one_call(&s, in);
            }
            for (uint32_t flips = 1u + below(in, 4); flips > 0u; flips--) {
                ((uint8_t *)&s)[below(in, sizeof s)] ^= (uint8_t)(1u << (byte(in) % 8u));
            }
        }
        for (int calls = 0; calls < 12; calls++) {
            one_call(&s, in);
        }
    }
}

int main(int argc, char **argv)
{
    const char *how = (argc > 1) ? argv[1] : "calls";
    const uint32_t count = (argc > 2) ? (uint32_t)atoi(argv[2]) : 1000u;
    input_t in = {NULL, NULL, 0x9E3779B97F4A7C15uLL * (uint64_t)((argc > 3) ? atoi(argv[3]) + 1 : 1)};
    if (strcmp(how, "forged") == 0) {
        forged_states(&in, count);
    } else if (strcmp(how, "garbage") == 0) {
        garbage_states(&in, count);
    } else {
        for (uint32_t run = 0; run < count; run++) {
            any_calls(&in, 60u + below(&in, 120));
        }
    }
    return 0;
}
#endif
