/* An AVR whose UART 0 is a pseudo terminal.  board MCU HERTZ ELF */
#include <simavr/avr_uart.h>
#include <simavr/parts/uart_pty.h>
#include <simavr/sim_avr.h>
#include <simavr/sim_elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int count, char **words)
{
    static elf_firmware_t firmware;
    static uart_pty_t line;
    if (count != 4 || elf_read_firmware(words[3], &firmware) != 0) {
        return 2;
    }
    strcpy(firmware.mmcu, words[1]);
    firmware.frequency = (uint32_t)strtoul(words[2], NULL, 10);
    avr_t *avr = avr_make_mcu_by_name(firmware.mmcu);
    avr_init(avr);
    avr_load_firmware(avr, &firmware);
    uint32_t flags = 0;
    avr_ioctl(avr, AVR_IOCTL_UART_GET_FLAGS('0'), &flags);
    flags &= ~(uint32_t)AVR_UART_FLAG_STDIO;
    avr_ioctl(avr, AVR_IOCTL_UART_SET_FLAGS('0'), &flags);
    uart_pty_init(avr, &line);
    uart_pty_connect(&line, '0');
    fflush(stdout);
    int state = cpu_Running;
    while (state != cpu_Done && state != cpu_Crashed) {
        state = avr_run(avr);
    }
    return 1;
}
