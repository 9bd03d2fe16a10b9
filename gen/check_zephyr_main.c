/* The check of {{ name }} on a board with Zephyr, over the console's UART.
 *
 * SPDX-License-Identifier: 0BSD
 */
#include "../../{{ name }}_check/check.h"

#include <stddef.h>
#include <zephyr/device.h>
#include <zephyr/drivers/uart.h>
#include <zephyr/kernel.h>

const char check_board[] = CONFIG_BOARD;

static const struct device *const uart = DEVICE_DT_GET(DT_CHOSEN(zephyr_console));

void check_put(uint8_t byte)
{
    uart_poll_out(uart, byte);
}

uint8_t check_get(void)
{
    unsigned char byte;
    while (uart_poll_in(uart, &byte) != 0) {
        /* nothing yet */
    }
    return byte;
}

int main(void)
{
    check_serve(NULL);
    return 0;
}
