/* The check of {{ name }} on a board without an operating system: fill in the two functions.
 *
 * With this file, compile ../{{ name }}_check/ check.c, check_link.c and check_time.c, and src/{{ name }}.c, with your own
 * start-up code.  Options: -DCHECK_BOARD='"my board"', -DCHECK_HZ=48000000 (the CPU's clock, for microseconds),
 * -DCHECK_STACK_LOW=symbol (the linker's, of the lowest byte that the stack may take).
 *
 * SPDX-License-Identifier: 0BSD
 */
#include "../{{ name }}_check/check.h"

#include <stddef.h>

#if defined(CHECK_BOARD)
const char check_board[] = CHECK_BOARD;
#else
const char check_board[] = "a board";
#endif

void check_put(uint8_t byte)
{
#error "send the byte over your UART; wait while there is no room"
}

uint8_t check_get(void)
{
#error "wait for a byte from your UART, and return it"
}

#if defined(CHECK_STACK_LOW)
extern unsigned char CHECK_STACK_LOW;
#define STACK (&CHECK_STACK_LOW)
#else
#define STACK NULL
#endif

int main(void)
{
    /* here: the clock, the UART's pins and its speed (115200) */
    check_serve(STACK);
    return 0;
}
