/* Counts what an AVR executes, with libsimavr.  Usage: simavr_count FILE.elf MCU FUNCTION ... -- PLACE ...
 *
 * Addresses are hexadecimal.  For each call of one of the functions that is not within another: a line with the function,
 * the instructions and the cycles from its first instruction to its return, and how often each place was executed. */
#include <simavr/avr_uart.h>
#include <simavr/sim_avr.h>
#include <simavr/sim_elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned executed[1u << 17];

int main(int argc, char **argv)
{
    elf_firmware_t firmware;
    memset(&firmware, 0, sizeof firmware);
    if (argc < 4 || elf_read_firmware(argv[1], &firmware) != 0) {
        return 2;
    }
    avr_t *avr = avr_make_mcu_by_name(argv[2]);
    if (avr == NULL) {
        return 2;
    }
    avr_init(avr);
    firmware.frequency = 16000000;
    avr_load_firmware(avr, &firmware);
    uint32_t flags = 0;
    avr_ioctl(avr, AVR_IOCTL_UART_GET_FLAGS('0'), &flags);
    flags &= ~(uint32_t)AVR_UART_FLAG_STDIO;
    avr_ioctl(avr, AVR_IOCTL_UART_SET_FLAGS('0'), &flags);
    int end = 3;
    while (end < argc && strcmp(argv[end], "--") != 0) {
        end++;
    }
    unsigned long entry[64];
    for (int i = 3; i < end; i++) {
        entry[i] = strtoul(argv[i], NULL, 16);
    }
    int inside = 0;
    unsigned stack = 0;
    avr_flashaddr_t back = 0;
    unsigned long instructions = 0;
    avr_cycle_count_t begun = 0;
    for (;;) {
        for (int i = 3; !inside && i < end; i++) {
            if (avr->pc == entry[i]) {
                inside = i;
                stack = avr->data[R_SPL] | (unsigned)avr->data[R_SPH] << 8;
                back = 2u * ((unsigned)avr->data[stack + 1] << 8 | avr->data[stack + 2]);
                instructions = 0;
                begun = avr->cycle;
                memset(executed, 0, sizeof executed);
            }
        }
        instructions++;
        executed[avr->pc]++;
        avr->run_cycle_limit = avr->run_cycle_count = 1; /* one instruction */
        avr->sreg[S_I] = 0;                              /* and no interrupt */
        const int state = avr_run(avr);
        if (inside && avr->pc == back && (avr->data[R_SPL] | (unsigned)avr->data[R_SPH] << 8) > stack) {
            printf("call %lx %lu %lu", entry[inside], instructions, (unsigned long)(avr->cycle - begun));
            for (int i = end + 1; i < argc; i++) {
                printf(" %u", executed[strtoul(argv[i], NULL, 16)]);
            }
            putchar('\n');
            inside = 0;
        }
        if (state == cpu_Done || state == cpu_Crashed || state == cpu_Sleeping) {
            return state == cpu_Crashed;
        }
    }
}
