/* A job in flash and its result as hexadecimal digits on the serial line: AVR in simavr.  SPDX-License-Identifier: 0BSD */
#include "device.h"

#include <avr/interrupt.h>
#include <avr/io.h>
#include <avr/pgmspace.h>
#include <avr/sleep.h>

__asm__(".section .progmem.job, \"a\"\n.global device_bytes\ndevice_bytes:\n.incbin \"in.bin\"\n.text\n");

static uint32_t next;

static void put(char character)
{
    while ((UCSR0A & _BV(UDRE0)) == 0) {
    }
    UDR0 = (uint8_t)character;
}

void device_open(void)
{
    UCSR0B = _BV(TXEN0);
    next = 0u;
}

void device_read(void *to, uint32_t bytes)
{
    uint_farptr_t start;
    uint8_t *byte = to;
    __asm__("ldi %A0, lo8(device_bytes)\nldi %B0, hi8(device_bytes)\nldi %C0, hh8(device_bytes)\nclr %D0" : "=d"(start));
    for (uint32_t i = 0u; i < bytes; i++) {
        byte[i] = pgm_read_byte_far(start + next);
        next++;
    }
}

void device_write(const void *from, uint32_t bytes)
{
    const char digits[] = "0123456789abcdef";
    const uint8_t *byte = from;
    for (uint32_t i = 0u; i < bytes; i++) {
        put(digits[byte[i] >> 4]);
        put(digits[byte[i] & 15u]);
    }
}

void device_close(void)
{
    put('\n');
    /* asleep with interrupts off: simavr ends */
    cli();
    sleep_enable();
    for (;;) {
        sleep_cpu();
    }
}

int main(void)
{
    device_job();
    return 0;
}
