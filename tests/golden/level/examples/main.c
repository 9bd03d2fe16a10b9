/* A first program that uses level.
 *
 * SPDX-License-Identifier: 0BSD
 */
#include "level.h"

#include <stdio.h>

static level_t model;

/* Makes up some inputs and returns their label.  Replace this function by one that reads your sensors. */
static int32_t sample(int32_t t, int16_t x[LEVEL_DIM])
{
    const int32_t phase = t % 20;
    for (int32_t j = 0; j < LEVEL_DIM; j++) {
        x[j] = (int16_t)((phase - 10) * 1000);
    }
    return (phase < 10) ? 1000 : -1000;
}

int main(void)
{
    int16_t x[LEVEL_DIM];
    if (level_selftest(&model) != LEVEL_DONE) {
        puts("this build does not compute the promised bits: look at the compiler's floating-point flags");
        return 1;
    }
    level_init(&model);
    for (int32_t t = 0; t < 200; t++) {
        const int32_t y = sample(t, x);
        int32_t forecast = 0;
        const int32_t asked = level_predict(&model, x, &forecast); /* below 0: an input is out of range */
        const int32_t status = level_update(&model, x, y);
        if ((asked >= 0) && (t % 19 == 0)) {
            printf("%4d  forecast %9ld  label %9ld  status %d\n", (int)t, (long)forecast, (long)y, (long)status);
        }
    }
    printf("%d bytes of RAM, model hash %08lx\n", (int)sizeof model, (unsigned long)level_hash(&model));
    return 0;
}
