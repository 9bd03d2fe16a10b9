/* A first program that uses monitor.
 *
 * SPDX-License-Identifier: 0BSD
 */
#include "monitor.h"

#include <stdio.h>

static monitor_t model;

/* Makes up some inputs.  Replace this function by one that reads your sensors. */
static void sample(int32_t t, float x[MONITOR_DIM])
{
    const float phase = (float)(t % 20) / 20.0f;
    for (int32_t j = 0; j < MONITOR_DIM; j++) {
        x[j] = phase * 1.0f;
    }
}

int main(void)
{
    float x[MONITOR_DIM];
    if (monitor_selftest(&model) != MONITOR_DONE) {
        puts("this build does not compute the promised bits: look at the compiler's floating-point flags");
        return 1;
    }
    monitor_init(&model);
    for (int32_t t = 0; t < 200; t++) {
        sample(t, x);
        float novelty = 0.0f;
        const int32_t asked = monitor_novelty(&model, x, &novelty); /* below 0: an input is out of range */
        const int32_t status = monitor_update(&model, x);
        if (status == MONITOR_NOVEL || status == MONITOR_HELD || status == MONITOR_ABSENT) {
            printf("%4d  alarm\n", (int)t); /* act here */
        }
        if ((asked >= 0) && (t % 19 == 0)) {
            printf("%4d  novelty %9.4f  status %d\n", (int)t, (double)novelty, (int)status);
        }
    }
    printf("%d bytes of RAM, model hash %08lx\n", (int)sizeof model, (unsigned long)monitor_hash(&model));
    return 0;
}
