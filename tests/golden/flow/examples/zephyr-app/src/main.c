/* Predicts, then learns, ten times a second.
 *
 * SPDX-License-Identifier: 0BSD
 */
#include <flow.h>

#include <zephyr/kernel.h>
#include <zephyr/sys/printk.h>

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
        printk("this build does not compute the promised bits\n");
        return 0;
    }
    flow_init(&model);
    for (int32_t t = 0;; t = (t + 1) % 20) {
        const float y = sample(t, x);
        float forecast = 0.0f;
        const int32_t asked = flow_predict(&model, x, &forecast); /* below 0: an input is out of range */
        const int32_t status = flow_update(&model, x, y);
        if (asked >= 0) {
            printk("forecast %.4f, label %.4f, status %d, hash %08x\n", (double)forecast, (double)y, (int)status,
                   (unsigned int)flow_hash(&model));
        }
        k_msleep(100);
    }
}
