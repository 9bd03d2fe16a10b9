/* A first program that uses machine.
 *
 * SPDX-License-Identifier: 0BSD
 */
#include "machine.h"

#include <stdio.h>

static machine_t model;

/* Makes up some inputs and returns their class.  Replace this function by one that reads your sensors. */
static int32_t sample(int32_t t, float x[MACHINE_DIM])
{
    const float phase = (float)(t % 20) / 20.0f;
    for (int32_t j = 0; j < MACHINE_DIM; j++) {
        x[j] = phase * 1.0f;
    }
    return ((t % 20) * MACHINE_CLASSES) / 20;
}

int main(void)
{
    float x[MACHINE_DIM];
    if (machine_selftest(&model) != MACHINE_DONE) {
        puts("this build does not compute the promised bits: look at the compiler's floating-point flags");
        return 1;
    }
    machine_init(&model);
    for (int32_t t = 0; t < 200; t++) {
        const int32_t y = sample(t, x);
        int32_t forecast = 0;
        const int32_t asked = machine_classify(&model, x, &forecast); /* below 0: an input is out of range */
        const int32_t status = machine_update(&model, x, y);
        if ((asked >= 0) && (t % 19 == 0)) {
            printf("%4d  forecast %4d  label %4d  status %d\n", (int)t, (int)forecast, (int)y, (int)status);
        }
    }
    printf("%d bytes of RAM, model hash %08lx\n", (int)sizeof model, (unsigned long)machine_hash(&model));
    return 0;
}
