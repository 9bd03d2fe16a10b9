/* Predicts, then learns, ten times a second.
 *
 * SPDX-License-Identifier: 0BSD
 */
#include "machine.h"

#include "esp_log.h"
#include "freertos/FreeRTOS.h"
#include "freertos/task.h"

static const char *TAG = "machine";
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

void app_main(void)
{
    float x[MACHINE_DIM];
    if (machine_selftest(&model) != MACHINE_DONE) {
        ESP_LOGE(TAG, "this build does not compute the promised bits");
        return;
    }
    machine_init(&model);
    for (int32_t t = 0;; t = (t + 1) % 20) {
        const int32_t y = sample(t, x);
        int32_t forecast = 0;
        const int32_t asked = machine_classify(&model, x, &forecast); /* below 0: an input is out of range */
        const int32_t status = machine_update(&model, x, y);
        if (asked >= 0) {
            ESP_LOGI(TAG, "forecast %d, label %d, status %d, hash %08x", (int)forecast, (int)y, (int)status,
                     (unsigned int)machine_hash(&model));
        }
        vTaskDelay(pdMS_TO_TICKS(100));
    }
}
