/* Asks for the novelty, then learns, ten times a second.
 *
 * SPDX-License-Identifier: 0BSD
 */
#include "monitor.h"

#include "esp_log.h"
#include "freertos/FreeRTOS.h"
#include "freertos/task.h"

static const char *TAG = "monitor";
static monitor_t model;

/* Makes up some inputs.  Replace this function by one that reads your sensors. */
static void sample(int32_t t, float x[MONITOR_DIM])
{
    const float phase = (float)(t % 20) / 20.0f;
    for (int32_t j = 0; j < MONITOR_DIM; j++) {
        x[j] = phase * 1.0f;
    }
}

void app_main(void)
{
    float x[MONITOR_DIM];
    if (monitor_selftest(&model) != MONITOR_DONE) {
        ESP_LOGE(TAG, "this build does not compute the promised bits");
        return;
    }
    monitor_init(&model);
    for (int32_t t = 0;; t = (t + 1) % 20) {
        sample(t, x);
        float novelty = 0.0f;
        const int32_t asked = monitor_novelty(&model, x, &novelty); /* below 0: an input is out of range */
        const int32_t status = monitor_update(&model, x);
        if (status == MONITOR_NOVEL || status == MONITOR_HELD || status == MONITOR_ABSENT) {
            ESP_LOGW(TAG, "alarm"); /* act here */
        }
        if (asked >= 0) {
            ESP_LOGI(TAG, "novelty %.4f, status %d, hash %08x", (double)novelty, (int)status,
                     (unsigned int)monitor_hash(&model));
        }
        vTaskDelay(pdMS_TO_TICKS(100));
    }
}
