/* Calls of a generated model, called m, as the fuzzer's bytes say; after each one the promises of its header are checked.
 *
 * layout.h, written by tests/test_quality.py: REAL, LABEL_KIND, HAS_REFRESH and others, FIELDS and STATUSES of the model.
 * With libFuzzer: clang -fsanitize=fuzzer,address,undefined.  Elsewhere -DALONE: main feeds random bytes, always the same.
 */
#include "m.h"
#include "layout.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PROMISE(condition) \
    do { \
        if (!(condition)) { \
            fprintf(stderr, "line %d: %s does not hold after call %d\n", __LINE__, #condition, call); \
            abort(); \
        } \
    } while (0)

/* A field of the persistent state: where, how many numbers, how many of them for each vector (0: not one's), reals or not. */
typedef struct {
    size_t offset, count, row;
    bool real;
} field_t;

static const field_t fields[] = {FIELDS};
static const int32_t statuses[] = {STATUSES};
static int call; /* what was called last */

/* The fuzzer's bytes; zeros after their end. */
typedef struct {
    const uint8_t *at, *end;
} input_t;

static void take(input_t *in, void *to, size_t count)
{
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

/* Any bits at all, or one of few values, so that samples repeat and lie near one another. */
static REAL real(input_t *in, bool wild)
{
    REAL value;
    if (wild) {
        take(in, &value, sizeof value);
        return value;
    }
    return (REAL)((int)byte(in) - 128) / (REAL)32;
}

static bool finite_real(REAL value)
{
    return (value - value) == (REAL)0;
}

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
#ifdef M_N_MAX
    const size_t used = (size_t)s->n;
    PROMISE(s->n >= 0 && s->n <= M_N_MAX);
#else
    const size_t used = 0;
#endif
    PROMISE(s->frozen == 0 || s->frozen == 1);
    for (size_t f = 0; f < sizeof fields / sizeof fields[0]; f++) {
        const unsigned char *bytes = (const unsigned char *)s + fields[f].offset;
        for (size_t i = 0; i < fields[f].count; i++) {
            if (fields[f].real) {
                REAL value;
                memcpy(&value, bytes + i * sizeof value, sizeof value);
                PROMISE(finite_real(value));
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

/* Change a snapshot at some places, and mostly make its CRC right again: no fuzzer guesses one. */
static void mutate(input_t *in, uint8_t *snapshot)
{
    const uint8_t how = byte(in);
    for (int changes = how % 8; changes >= 0; changes--) {
        uint16_t at;
        uint8_t values[8];
        const size_t width = (how & 16) ? sizeof(REAL) : 1;
        take(in, &at, sizeof at);
        take(in, values, width);
        at = (uint16_t)(at % (M_SNAPSHOT_BYTES - width));
        memcpy(&snapshot[at - ((width > 1 && at >= width) ? at % width : 0)], values, width);
    }
    if ((how & 32) == 0) {
        const uint32_t crc = crc32(snapshot, M_SNAPSHOT_BYTES - 4);
        memcpy(&snapshot[M_SNAPSHOT_BYTES - 4], &crc, 4);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    input_t in = {data, data + size};
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
    while (in.at < in.end) {
        const uint8_t what = byte(&in);
        int32_t status = M_DONE;
        REAL x[M_DIM], label[M_OUTPUTS], y = (REAL)7;
        (void)label;
        (void)y;
        before = s;
        call = what % 16;
        storage.failing = (what & 64) ? byte(&in) : -1;
        switch (call) {
        case 0: case 1: case 2: case 3: case 4: case 5: case 6: {
            const bool wild = (what & 128) != 0;
            for (int j = 0; j < M_DIM; j++) {
                x[j] = real(&in, wild && (what & 16));
            }
#if LABEL_KIND == 2
            status = m_update(&s, x, wild ? INT32_MIN + byte(&in) : (int32_t)(byte(&in) % 5) - 1);
#elif LABEL_KIND == 1
            for (int o = 0; o < M_OUTPUTS; o++) {
                label[o] = real(&in, wild && (what & 32));
            }
            status = m_update(&s, x, label);
#else
            status = m_update(&s, x, real(&in, wild && (what & 32)));
#endif
            break;
        }
        case 7:
            for (int j = 0; j < M_DIM; j++) {
                x[j] = real(&in, (what & 128) != 0);
            }
            for (int o = 0; o < M_OUTPUTS; o++) {
                label[o] = (REAL)7;
            }
            status = m_predict(&s, x, label);
            for (int o = 0; o < M_OUTPUTS; o++) {
                PROMISE((status == M_DONE) ? finite_real(label[o]) : (label[o] == (REAL)7));
            }
#if HAS_NOVELTY
            y = (REAL)7;
            PROMISE(m_novelty(&s, x, &y) == status);
            PROMISE((status == M_DONE) ? (finite_real(y) && y >= (REAL)0) : (y == (REAL)7));
#endif
#if HAS_VARIANCE
            y = (REAL)7;
            PROMISE(m_variance(&s, x, &y) == status);
            PROMISE((status == M_DONE) ? (finite_real(y) && y >= (REAL)0) : (y == (REAL)7));
#endif
            PROMISE(memcmp(&s, &before, M_STATE_BYTES) == 0);
            break;
        case 8:
            status = m_freeze(&s, (what & 128) ? 1 : 0);
            PROMISE(status == M_DONE && s.frozen == ((what & 128) ? 1 : 0));
            break;
        case 9:
#if HAS_REFRESH
            status = m_refresh(&s);
#if HAS_DRIFT
            PROMISE(m_drift(&s, &y) == M_DONE && y == (REAL)0);
#endif
#endif
            break;
        case 10:
            status = m_save(&s, snapshot);
            saved_forged = (status == M_DONE) ? forged : saved_forged;
            PROMISE(memcmp(&s, &before, sizeof s) == 0);
            break;
        case 11: case 12: {
            uint8_t changed[M_SNAPSHOT_BYTES];
            memcpy(changed, snapshot, sizeof changed);
            if (call == 12) {
                mutate(&in, changed);
            }
            status = m_load(&s, changed);
            if (status == M_DONE) {
                forged = saved_forged || memcmp(changed, snapshot, sizeof changed) != 0;
                PROMISE(memcmp(&s, &changed[20], M_STATE_BYTES) == 0);
            }
            break;
        }
        case 13:
            status = m_store(&s, store_bytes, read_bytes, &storage);
            PROMISE(memcmp(&s, &before, sizeof s) == 0);
            break;
        case 14:
            if (what & 128) {
                mutate(&in, storage.slots[what & 16 ? 1 : 0]);
            }
            status = m_restore(&s, read_bytes, &storage);
            forged = forged || status == M_DONE; /* the slots may have been tampered with before */
            break;
        default:
            m_wipe(&s);
            PROMISE(m_hash(&s) == m_hash(&blank) || memcmp(&s, &blank, M_STATE_BYTES) != 0);
            m_init(&s);
            forged = false;
            break;
        }
        PROMISE(known(status));
        if (status < 0 && memcmp(&s, &before, M_STATE_BYTES) != 0) {
            /* refused and changed: only a restore may, and it leaves nothing of what it has read */
            m_reset(&blank);
            PROMISE(call >= 11 && call <= 14);
            PROMISE(status == M_SNAPSHOT_INVALID || status == M_STORAGE_FAILED);
            PROMISE(memcmp(&s, &blank, sizeof s) == 0);
            forged = false;
        }
        check_state(&s);
        if (!forged) { /* what was learned can be saved */
            uint8_t copy[M_SNAPSHOT_BYTES];
            PROMISE(m_save(&s, copy) == M_DONE);
        }
    }
    return 0;
}

#ifdef ALONE
static uint32_t seed = 1u;

static uint8_t next(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 17;
    seed ^= seed << 5;
    return (uint8_t)(seed >> 11);
}

int main(int argc, char **argv)
{
    const int runs = (argc > 1) ? atoi(argv[1]) : 1000;
    static uint8_t data[4096];
    for (int run = 0; run < runs; run++) {
        const size_t size = 16u * (1u + next());
        for (size_t i = 0; i < size; i++) {
            data[i] = next();
        }
        (void)LLVMFuzzerTestOneInput(data, size);
    }
    return 0;
}
#endif
