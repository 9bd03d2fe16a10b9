/* Predicts, then learns, ten times a second.
 *
 * SPDX-License-Identifier: 0BSD
 */
#include "pressure.h"

#include "esp_log.h"
#include "freertos/FreeRTOS.h"
#include "freertos/task.h"

static const char *TAG = "pressure";
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

void app_main(void)
{
    double x[PRESSURE_DIM];
    if (pressure_selftest(&model) != PRESSURE_DONE) {
        ESP_LOGE(TAG, "this build does not compute the promised bits");
        return;
    }
    pressure_init(&model);
    for (int32_t t = 0;; t = (t + 1) % 20) {
        const double y = sample(t, x);
        double forecast = 0.0;
        const int32_t asked = pressure_predict(&model, x, &forecast); /* below 0: an input is out of range */
        const int32_t status = pressure_update(&model, x, y);
        if (asked >= 0) {
            ESP_LOGI(TAG, "forecast %.4f, label %.4f, status %d, hash %08x", (double)forecast, (double)y, (int)status,
                     (unsigned int)pressure_hash(&model));
        }
        vTaskDelay(pdMS_TO_TICKS(100));
    }
}
