/* Predicts, then learns, ten times a second.
 *
 * SPDX-License-Identifier: 0BSD
 */
#include <machine.h>

#include <zephyr/kernel.h>
#include <zephyr/sys/printk.h>

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
        printk("this build does not compute the promised bits\n");
        return 0;
    }
    machine_init(&model);
    for (int32_t t = 0;; t = (t + 1) % 20) {
        const int32_t y = sample(t, x);
        int32_t forecast = 0;
        const int32_t asked = machine_classify(&model, x, &forecast); /* below 0: an input is out of range */
        const int32_t status = machine_update(&model, x, y);
        if (asked >= 0) {
            printk("forecast %d, label %d, status %d, hash %08x\n", (int)forecast, (int)y, (int)status,
                   (unsigned int)machine_hash(&model));
        }
        k_msleep(100);
    }
}
