/* Predicts, then learns, ten times a second.
 *
 * SPDX-License-Identifier: 0BSD
 */
#include <level.h>

#include <zephyr/kernel.h>
#include <zephyr/sys/printk.h>

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
        printk("this build does not compute the promised bits\n");
        return 0;
    }
    level_init(&model);
    for (int32_t t = 0;; t = (t + 1) % 20) {
        const int32_t y = sample(t, x);
        int32_t forecast = 0;
        const int32_t asked = level_predict(&model, x, &forecast); /* below 0: an input is out of range */
        const int32_t status = level_update(&model, x, y);
        if (asked >= 0) {
            printk("forecast %ld, label %ld, status %ld, hash %08x\n", (long)forecast, (long)y, (long)status,
                   (unsigned int)level_hash(&model));
        }
        k_msleep(100);
    }
}
