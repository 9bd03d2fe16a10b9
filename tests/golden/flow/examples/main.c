/* A first program that uses flow.
 *
 * SPDX-License-Identifier: 0BSD
 */
#include "flow.h"

#include <stdio.h>

static flow_t model;

/* Makes up some inputs and returns their label.  Replace this function by one that reads your sensors. */
static float sample(int32_t t, float x[FLOW_DIM])
{
    const float phase = (float)(t % 20) / 20.0f;
    for (int32_t j = 0; j < FLOW_DIM; j++) {
        x[j] = phase * 1.0f;
    }
    return (phase < 0.5f) ? 1.0f : -1.0f;
}

int main(void)
{
    float x[FLOW_DIM];
    if (flow_selftest(&model) != FLOW_DONE) {
        puts("this build does not compute the promised bits: look at the compiler's floating-point flags");
        return 1;
    }
    flow_init(&model);
    for (int32_t t = 0; t < 200; t++) {
        const float y = sample(t, x);
        float forecast = 0.0f;
        const int32_t asked = flow_predict(&model, x, &forecast); /* below 0: an input is out of range */
        const int32_t status = flow_update(&model, x, y);
        if ((asked >= 0) && (t % 19 == 0)) {
            printf("%4d  forecast %9.4f  label %9.4f  status %d\n", (int)t, (double)forecast, (double)y, (int)status);
        }
    }
    printf("%d bytes of RAM, model hash %08lx\n", (int)sizeof model, (unsigned long)flow_hash(&model));
    return 0;
}
