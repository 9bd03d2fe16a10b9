/* A job in flash and its result as hexadecimal digits on the serial line: AVR in simavr, whose timer 1 counts cycles.
 * SPDX-License-Identifier: 0BSD */
#include "check.h"

#include <avr/interrupt.h>
#include <avr/io.h>
#include <avr/pgmspace.h>
#include <avr/sleep.h>

__asm__(".section .progmem.job, \"a\"\n.global device_bytes\ndevice_bytes:\n.incbin \"in.bin\"\n.text\n");

#define PAINT 0xC5u

extern unsigned char _end; /* the linker's: the end of what the program has in RAM */
static uint32_t next;

/* Paints the RAM that is free, but for this function's own frame. */
static void __attribute__((noinline)) paint(void)
{
    for (uint16_t at = (uint16_t)&_end; at < (uint16_t)(SP - 8u); at++) {
        *(volatile unsigned char *)at = PAINT;
    }
}

static void put(char character)
{
    while ((UCSR0A & _BV(UDRE0)) == 0) {
    }
    UDR0 = (uint8_t)character;
}

static void begin(void)
{
    UCSR0B = _BV(TXEN0);
    next = 0u;
    check_start_time();
}

uint32_t check_stack_used(void)
{
    uint16_t at = (uint16_t)&_end;
    while ((at <= RAMEND) && (*(volatile unsigned char *)at == PAINT)) {
        at++;
    }
    return (uint32_t)RAMEND + 1u - at;
}

int32_t check_over(void)
{
    return 0;
}

void check_read(const check_part_t *parts, uint32_t count)
{
    uint_farptr_t start;
    __asm__("ldi %A0, lo8(device_bytes)\nldi %B0, hi8(device_bytes)\nldi %C0, hh8(device_bytes)\nclr %D0" : "=d"(start));
    for (; count > 0u; count--, parts++) {
        uint8_t *byte = parts->at;
        for (uint32_t i = 0u; i < parts->bytes; i++) {
            byte[i] = pgm_read_byte_far(start + next);
            next++;
        }
    }
}

void check_write(const check_part_t *parts, uint32_t count)
{
    const char digits[] = "0123456789abcdef";
    for (; count > 0u; count--, parts++) {
        const uint8_t *byte = parts->at;
        for (uint32_t i = 0u; i < parts->bytes; i++) {
            put(digits[byte[i] >> 4]);
            put(digits[byte[i] & 15u]);
        }
    }
}

static void end(void)
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
    paint();
    begin();
    check_job();
    end();
    return 0;
}
