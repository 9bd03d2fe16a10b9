/* The check of {{ name }} on an ESP32, over UART 0, which is the console's.
 *
 * SPDX-License-Identifier: 0BSD
 */
#include "../../{{ name }}_check/check.h"

#include <stddef.h>

#include "driver/uart.h"
#include "esp_log.h"
#include "freertos/FreeRTOS.h"
#include "freertos/task.h"

const char check_board[] = CONFIG_IDF_TARGET;

void check_put(uint8_t byte)
{
    uart_write_bytes(UART_NUM_0, &byte, 1);
}

uint8_t check_get(void)
{
    uint8_t byte = 0;
    while (uart_read_bytes(UART_NUM_0, &byte, 1, portMAX_DELAY) != 1) {
        /* nothing yet */
    }
    return byte;
}

void app_main(void)
{
    esp_log_level_set("*", ESP_LOG_NONE);
    uart_driver_install(UART_NUM_0, 256, 0, 0, NULL, 0);
    check_serve(NULL);
}
