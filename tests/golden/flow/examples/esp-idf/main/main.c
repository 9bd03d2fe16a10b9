/* Predicts, then learns, ten times a second.
 *
 * SPDX-License-Identifier: 0BSD
 */
#include "flow.h"

#include "esp_log.h"
#include "freertos/FreeRTOS.h"
#include "freertos/task.h"

static const char *TAG = "flow";
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

void app_main(void)
{
    float x[FLOW_DIM];
    if (flow_selftest(&model) != FLOW_DONE) {
        ESP_LOGE(TAG, "this build does not compute the promised bits");
        return;
    }
    flow_init(&model);
    for (int32_t t = 0;; t = (t + 1) % 20) {
        const float y = sample(t, x);
        float forecast = 0.0f;
        const int32_t asked = flow_predict(&model, x, &forecast); /* below 0: an input is out of range */
        const int32_t status = flow_update(&model, x, y);
        if (asked >= 0) {
            ESP_LOGI(TAG, "forecast %.4f, label %.4f, status %d, hash %08x", (double)forecast, (double)y, (int)status,
                     (unsigned int)flow_hash(&model));
        }
        vTaskDelay(pdMS_TO_TICKS(100));
    }
}
