/* The check of {{ name }} on a board: what the parts of this program ask of each other.
 *
 * SPDX-License-Identifier: 0BSD
 */
#ifndef {{ macro }}_CHECK_H
#define {{ macro }}_CHECK_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- What the board gives: write these for yours. */

void check_put(uint8_t byte); /* send a byte; wait while there is no room */
uint8_t check_get(void); /* wait for a byte, and return it */

extern const char check_board[]; /* what the board is called */

/* ---- And these; check_time.c has them for most CPUs. */

void check_start_time(void); /* before everything else */
uint32_t check_ticks(void); /* a counter that goes up by one in each tick, and begins again at zero */
extern uint32_t check_ticks_mask; /* its largest value: 2^k - 1 */
extern uint32_t check_ticks_hz; /* ticks in a second; 0: not known, they are cycles of the CPU */
uint32_t check_micros(void); /* microseconds, of an Arduino whose CPU counts no cycles */

/* ---- What you call: serve the host for ever.  stack: the lowest byte that the stack may take; NULL: not known. */

void check_serve(unsigned char *stack);

/* ---- Between check.c and check_link.c. */

typedef struct {
    void *at;
    uint32_t bytes;
} check_part_t;

void check_job(void); /* one job, from the first byte to the last */
void check_read(const check_part_t *parts, uint32_t count); /* one part after the other */
void check_write(const check_part_t *parts, uint32_t count);
uint32_t check_stack_used(void); /* bytes; 0: not known */
int32_t check_over(void); /* 1: the host has gone; the rest of the job is of no use */
uint32_t check_hash(void); /* {{ macro }}_CONFIG_HASH: which model this is */

#ifdef __cplusplus
}
#endif
#endif
