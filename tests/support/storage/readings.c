/* The most that NAME_store and NAME_restore read of bad storage: a search for the worst wrong readings.
 *
 *     readings ROUNDS SEED POOL
 *
 * POOL: a file of snapshots whose CRC-32 is right: a good one, then some that hold a number which learning cannot give.
 * Each reading of a slot gets one of these, or with a wrong bit that is another one each time, or an error at its end.  A
 * list says which for each reading; the search begins with the list that was found by hand to be worst, and keeps a changed
 * list if more is read.  The test lets m_snapshot.c count: how often a slot was read as a whole, and how often its numbers
 * were checked.  What is printed, of a restore and of a store: these counts without a fault, the most in all, and what a
 * check of good numbers reads, in hundredths of a snapshot.
 */
#include "m.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define READINGS 40

typedef struct {
    uint8_t which; /* of the pool */
    uint8_t fault; /* 0: none; 1: a wrong bit; 2: an error at the end */
} reading_t;

typedef struct {
    const reading_t *list; /* NULL: the good one, always */
    uint32_t flips; /* wrong bits */
    uint64_t bytes;
    uint8_t written[M_SNAPSHOT_BYTES];
} storage_t;

uint32_t whole_readings, checks; /* of slots, since cost() began */

static uint8_t (*pool)[M_SNAPSHOT_BYTES];
static uint32_t states;
static uint64_t random_state;

static uint32_t below(uint32_t end)
{
    random_state = random_state * 6364136223846793005uLL + 1442695040888963407uLL;
    return (uint32_t)((random_state >> 33) % end);
}

static int32_t put(void *context, int32_t slot, uint32_t offset, const uint8_t *bytes, uint32_t count)
{
    storage_t *storage = context;
    (void)slot;
    memcpy(&storage->written[offset], bytes, count);
    return 0;
}

static int32_t get(void *context, int32_t slot, uint32_t offset, uint8_t *bytes, uint32_t count)
{
    storage_t *storage = context;
    (void)slot;
    storage->bytes += count;
    if (storage->list == NULL) {
        memcpy(bytes, (storage->written[0] != 0u) ? &storage->written[offset] : &pool[0][offset], count);
        return 0;
    }
    const uint32_t begun = whole_readings + checks; /* this one, too */
    const reading_t reading = storage->list[((begun > READINGS) ? READINGS : begun) - 1u];
    memcpy(bytes, &pool[reading.which % states][offset], count);
    if ((offset + count) == M_SNAPSHOT_BYTES) {
        if (reading.fault == 1u) {
            storage->flips++;
            bytes[count - 1u] ^= (uint8_t)(1u + (storage->flips % 255u));
        }
        return (reading.fault == 2u) ? 1 : 0;
    }
    return 0;
}

/* How often slots are read or checked; *bytes: of these. */
static uint32_t cost(const reading_t *list, bool stores, uint64_t *bytes)
{
    static m_t s;
    static storage_t storage;
    memset(&storage, 0, sizeof storage);
    storage.list = list;
    m_init(&s);
    if (stores && (m_load(&s, pool[0]) != M_DONE)) {
        exit(3);
    }
    whole_readings = 0u;
    checks = 0u;
    (void)(stores ? m_store(&s, put, get, &storage) : m_restore(&s, get, &storage));
    *bytes = storage.bytes;
    return whole_readings + checks;
}

int main(int count, char **words)
{
    FILE *file = (count == 4) ? fopen(words[3], "rb") : NULL;
    if (file == NULL) {
        return 2;
    }
    const long rounds = atol(words[1]);
    random_state = (uint64_t)atol(words[2]) + 1u;
    fseek(file, 0, SEEK_END);
    states = (uint32_t)(ftell(file) / M_SNAPSHOT_BYTES);
    rewind(file);
    pool = malloc((size_t)states * M_SNAPSHOT_BYTES);
    if ((pool == NULL) || (fread(pool, M_SNAPSHOT_BYTES, states, file) != states)) {
        return 2;
    }
    fclose(file);
    for (int stores = 0; stores < 2; stores++) {
        const char *name = stores ? "store" : "restore";
        uint32_t most = 0u;
        uint64_t bytes = 0u, found_bytes;
        reading_t list[READINGS], tried[READINGS];
        for (uint32_t forged = 1u; forged < states; forged++) {
            for (uint32_t i = 0u; i < READINGS; i++) {
                /* the CRC-32 is right, but not when a model is copied; the numbers are bad until the last check */
                tried[i].which = ((i == 7u) || (i == 15u)) ? 0u : (uint8_t)forged;
                tried[i].fault = ((i > 15u) && (stores == 0)) ? 1u : 0u;
            }
            const uint32_t found = cost(tried, stores != 0, &found_bytes);
            if (found > most) {
                most = found;
                memcpy(list, tried, sizeof list);
            }
        }
        for (long round = 0; round < rounds; round++) {
            memcpy(tried, list, sizeof list);
            for (uint32_t changes = 1u + below(6u); changes > 0u; changes--) {
                const uint32_t at = below(READINGS), end = at + ((below(3u) == 0u) ? below(READINGS - at) : 0u);
                const uint8_t which = (uint8_t)below(states), fault = (uint8_t)below(3u);
                for (uint32_t i = at; i <= end; i++) {
                    tried[i].which = which;
                    tried[i].fault = fault;
                }
            }
            const uint32_t found = cost(tried, stores != 0, &found_bytes);
            if ((found > most) || ((found == most) && (found_bytes >= bytes))) {
                most = found;
                bytes = found_bytes;
                memcpy(list, tried, sizeof list);
            }
        }
        (void)cost(NULL, stores != 0, &found_bytes);
        found_bytes -= (uint64_t)whole_readings * M_SNAPSHOT_BYTES;
        printf("%s_whole %u\n%s_checks %u\n", name, (unsigned)whole_readings, name, (unsigned)checks);
        printf("%s_most %u\n%s_check %lu\n", name, (unsigned)most, name, (unsigned long)(100u * found_bytes / M_SNAPSHOT_BYTES));
    }
    free(pool);
    return 0;
}
