/* Histories of a device that saves to bad storage: wrong readings, wrong writes, and power that fails at any byte.
 *
 *     histories COUNT SEED FAULT READS WRITES POOL
 *
 * FAULT: what is wrong with READS of a million readings (fault_t).  WRITES: of a million parts that are written, those that
 * arrive damaged, without an error.  POOL: a file of snapshots with the sequence number 0, of states in the order in which
 * they were learned.  So the device of these histories "learns" by loading the next one, and any model will do.
 * Where power fails, bits may stay that read otherwise each time, until their bytes are erased or written again; not
 * together with WRITES, for a part that is not written over such a bit can be read back well.
 *
 * After each step an honest reader restores, too.  What is printed, a name and a number on each line:
 *
 *     nothing   histories at whose bad step that reader found no state, though a store had returned DONE
 *     older     ... found a state from before the last store that returned DONE
 *     garbage   ... or where any restore returned DONE with a state that was never saved, or changed the model and failed
 *     fallback  restores over bad storage that returned DONE with an older state than the honest reader's, or, if there
 *               are bits that read otherwise each time, than the last that was stored
 *     refused   stores without power failure that did not return DONE, unless both slots have such bits; of "stores"
 *     empty     restores over bad storage that did not return DONE, though there was such a state; of "restores"
 */
#include "m.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum {
    FLIPPED, /* one bit */
    STALE, /* success is reported, and nothing is written to the buffer */
    SHORT, /* ... and only some bytes are */
    FAILED, /* an error is reported */
    STUCK, /* every bit is one, or every bit is zero */
    BURST, /* as STUCK, for one or two readings */
    KINDS /* any of them */
} fault_t;

typedef struct {
    uint8_t slots[2][M_SNAPSHOT_BYTES];
    uint8_t weak[2][M_SNAPSHOT_BYTES]; /* bits that read otherwise each time */
    bool erases; /* flash: offset 0 erases the slot; else bytes are replaced as they come */
    bool honest; /* no faults of reading */
    int64_t power; /* bytes that can still be erased or written; below 0: no end */
    uint32_t burst; /* readings that are still stuck */
    uint8_t stuck;
} storage_t;

static uint64_t random_state;
static uint32_t reads_wrong, writes_wrong;
static fault_t fault;
static uint8_t (*pool)[M_SNAPSHOT_BYTES];
static long states;

static uint32_t below(uint32_t end)
{
    /* SplitMix64 */
    random_state += 0x9E3779B97F4A7C15uLL;
    uint64_t bits = random_state;
    bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9uLL;
    bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EBuLL;
    return (uint32_t)((bits ^ (bits >> 31)) % end);
}

/* One byte on the medium; false if power fails, in the middle of it. */
static bool set(storage_t *storage, int32_t slot, uint32_t at, uint8_t value)
{
    uint8_t *byte = &storage->slots[slot][at];
    if (storage->power == 0) {
        const uint8_t changed = (uint8_t)(*byte ^ value);
        *byte = (uint8_t)(*byte ^ (changed & below(256u)));
        /* in the last four bytes they would make a snapshot that is good at one reading and bad at another: docs/guide/snapshots.md */
        if ((at < (M_SNAPSHOT_BYTES - 4u)) && (writes_wrong == 0u)) {
            storage->weak[slot][at] = (uint8_t)(below(2u) * below(256u));
        }
        return false;
    }
    storage->power -= (storage->power > 0) ? 1 : 0;
    *byte = value;
    storage->weak[slot][at] = 0u;
    return true;
}

static bool has_weak(const storage_t *storage, int32_t slot)
{
    for (uint32_t i = 0u; i < M_SNAPSHOT_BYTES; i++) {
        if (storage->weak[slot][i] != 0u) {
            return true;
        }
    }
    return false;
}

static int32_t put(void *context, int32_t slot, uint32_t offset, const uint8_t *bytes, uint32_t count)
{
    storage_t *storage = context;
    const bool wrong = below(1000000u) < writes_wrong;
    if ((offset == 0u) && storage->erases) {
        for (uint32_t i = 0u; i < M_SNAPSHOT_BYTES; i++) {
            if (!set(storage, slot, i, 0xFFu)) {
                const uint32_t every = 1u + below(64u);
                for (uint32_t j = below(every); (j < M_SNAPSHOT_BYTES) && (writes_wrong == 0u); j += every) {
                    storage->weak[slot][j] = (uint8_t)below(256u); /* all are erased at once */
                }
                return 1;
            }
        }
    }
    const uint32_t bad = below(count * 8u), how = below(3u);
    for (uint32_t i = 0u; i < count; i++) {
        uint8_t value = bytes[i];
        if (wrong && (how == 0u) && (i == (bad / 8u))) {
            value ^= (uint8_t)(1u << (bad % 8u));
        }
        if (wrong && (how == 1u)) {
            continue; /* nothing is written */
        }
        if (wrong && (how == 2u) && (i >= (bad / 8u))) {
            continue; /* only the first bytes are */
        }
        if (!set(storage, slot, offset + i, value)) {
            return 1;
        }
    }
    return 0;
}

static int32_t get(void *context, int32_t slot, uint32_t offset, uint8_t *bytes, uint32_t count)
{
    storage_t *storage = context;
    uint8_t at[64];
    for (uint32_t i = 0u; i < count; i++) {
        const uint8_t weak = storage->weak[slot][offset + i];
        at[i] = (uint8_t)(storage->slots[slot][offset + i] ^ (weak & ((weak == 0u) ? 0u : below(256u))));
    }
    if (storage->honest) {
        memcpy(bytes, at, count);
        return 0;
    }
    if (storage->burst > 0u) {
        storage->burst--;
        memset(bytes, storage->stuck, count);
        return 0;
    }
    if (below(1000000u) >= reads_wrong) {
        memcpy(bytes, at, count);
        return 0;
    }
    switch ((fault == KINDS) ? (fault_t)below(KINDS) : fault) {
    case FLIPPED: {
        const uint32_t bit = below(8u * count);
        memcpy(bytes, at, count);
        bytes[bit / 8u] ^= (uint8_t)(1u << (bit % 8u));
        return 0;
    }
    case STALE:
        return 0;
    case SHORT:
        memcpy(bytes, at, below(count));
        return 0;
    case FAILED:
        memset(bytes, (int)below(256u), below(count + 1u));
        return -1;
    case BURST:
        storage->burst = below(2u);
        /* fall through */
    default:
        storage->stuck = (below(2u) == 0u) ? 0x00u : 0xFFu;
        memset(bytes, storage->stuck, count);
        return 0;
    }
}

/* Which of the states this model is; -1: none of them. */
static long which(const m_t *s)
{
    for (long i = 0; i < states; i++) {
        if (memcmp(s, &pool[i][20], M_STATE_BYTES) == 0) {
            return i;
        }
    }
    return -1;
}

/* What an honest reader restores; -1: nothing. */
static long left(storage_t *storage, bool *garbage)
{
    static m_t reader;
    long found = -1;
    storage->honest = true;
    m_init(&reader);
    if (m_restore(&reader, get, storage) == M_DONE) {
        found = which(&reader);
        *garbage = *garbage || (found < 0);
    }
    storage->honest = false;
    return found;
}

int main(int count, char **words)
{
    static m_t s, before, blank;
    static storage_t storage;
    uint32_t nothing = 0u, older = 0u, fouled = 0u, fallback = 0u, refused = 0u, stores = 0u, empty = 0u, restores = 0u;
    FILE *file = (count == 7) ? fopen(words[6], "rb") : NULL;
    if (file == NULL) {
        return 2;
    }
    const long histories = atol(words[1]);
    const uint64_t seed = (uint64_t)atol(words[2]);
    fault = (fault_t)atoi(words[3]);
    reads_wrong = (uint32_t)atol(words[4]);
    writes_wrong = (uint32_t)atol(words[5]);
    fseek(file, 0, SEEK_END);
    states = ftell(file) / M_SNAPSHOT_BYTES;
    rewind(file);
    pool = malloc((size_t)states * M_SNAPSHOT_BYTES);
    if ((pool == NULL) || (fread(pool, M_SNAPSHOT_BYTES, (size_t)states, file) != (size_t)states)) {
        return 2;
    }
    fclose(file);
    m_init(&blank);
    for (long history = 0; history < histories; history++) {
        long next = 0, kept = -1; /* the next state to be learned; the last one whose store returned DONE */
        bool garbage = false, bad = false;
        random_state = ((seed + 1u) << 40) + (uint64_t)history * 1000003u;
        for (uint32_t i = 0u; i < 2u; i++) {
            const uint32_t blanks = below(3u);
            for (uint32_t j = 0u; j < M_SNAPSHOT_BYTES; j++) {
                storage.weak[i][j] = 0u;
                storage.slots[i][j] = (blanks == 0u) ? 0xFFu : (blanks == 1u) ? 0u : (uint8_t)below(256u);
            }
        }
        storage.erases = below(2u) == 0u;
        storage.burst = 0u;
        while ((next < states) && !bad && (below(24u) != 0u)) {
            const bool cut = below(3u) == 0u;
            storage.honest = true;
            if (m_load(&s, pool[next++]) != M_DONE) {
                return 3;
            }
            storage.honest = false;
            storage.power = cut ? (int64_t)below((storage.erases ? 2u : 1u) * M_SNAPSHOT_BYTES) : -1;
            before = s;
            const bool hopeless = has_weak(&storage, 0) && has_weak(&storage, 1);
            if (m_store(&s, put, get, &storage) == M_DONE) {
                kept = next - 1;
            } else if ((storage.power < 0) && !hopeless) {
                refused++;
            }
            stores += (storage.power < 0) ? 1u : 0u;
            garbage = garbage || (memcmp(&s, &before, sizeof s) != 0);
            storage.power = -1;
            const long there = left(&storage, &garbage);
            const bool steady = !has_weak(&storage, 0) && !has_weak(&storage, 1);
            const long owed = steady ? there : kept; /* what a restore must give, or something later */
            if (kept >= 0) {
                nothing += (there < 0) ? 1u : 0u;
                older += ((there >= 0) && (there < kept)) ? 1u : 0u;
                bad = there < kept;
            }
            if (cut || (below(10u) == 0u)) { /* the device starts again */
                int32_t status = M_STORAGE_FAILED;
                m_init(&s);
                for (uint32_t turn = 0u; (turn < 3u) && (status != M_DONE); turn++) {
                    before = s;
                    status = m_restore(&s, get, &storage);
                    restores++;
                    if (status == M_DONE) {
                        const long found = which(&s);
                        garbage = garbage || (found < 0);
                        fallback += (found < owed) ? 1u : 0u;
                    } else {
                        empty += (owed >= 0) ? 1u : 0u;
                        garbage = garbage || ((memcmp(&s, &before, sizeof s) != 0) && (memcmp(&s, &blank, sizeof s) != 0));
                    }
                }
            }
        }
        fouled += garbage ? 1u : 0u;
    }
    printf("nothing %u\nolder %u\ngarbage %u\nfallback %u\nrefused %u\nstores %u\nempty %u\nrestores %u\n",
        nothing, older, fouled, fallback, refused, stores, empty, restores);
    free(pool);
    return 0;
}
