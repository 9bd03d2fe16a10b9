/* A first program that uses pressure.
 *
 * SPDX-License-Identifier: 0BSD
 */
#include "pressure.h"

#include <stdio.h>

static pressure_t model;

/* Makes up some inputs and returns their label.  Replace this function by one that reads your sensors. */
static double sample(int32_t t, double x[PRESSURE_DIM])
{
    const double phase = (double)(t % 20) / 20.0;
    for (int32_t j = 0; j < PRESSURE_DIM; j++) {
        x[j] = phase * 1.0;
    }
    return (phase < 0.5) ? 1.0 : -1.0;
}

int main(void)
{
    double x[PRESSURE_DIM];
    if (pressure_selftest(&model) != PRESSURE_DONE) {
        puts("this build does not compute the promised bits: look at the compiler's floating-point flags");
        return 1;
    }
    pressure_init(&model);
    for (int32_t t = 0; t < 200; t++) {
        const double y = sample(t, x);
        double forecast = 0.0;
        const int32_t asked = pressure_predict(&model, x, &forecast); /* below 0: an input is out of range */
        const int32_t status = pressure_update(&model, x, y);
        if ((asked >= 0) && (t % 19 == 0)) {
            printf("%4d  forecast %9.4f  label %9.4f  status %d\n", (int)t, (double)forecast, (double)y, (int)status);
        }
    }
    printf("%d bytes of RAM, model hash %08lx\n", (int)sizeof model, (unsigned long)pressure_hash(&model));
    return 0;
}
