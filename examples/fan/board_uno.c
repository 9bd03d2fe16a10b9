/* An Arduino Uno (ATmega328P, 16 MHz), without Arduino's libraries.
 *
 * ADXL345 at 3.3 V, through a level shifter: CS to D10, SDA (MOSI) to D11, SDO (MISO) to D12, SCL to D13.
 * D2 is low when the supply breaks down, such as from a voltage detector in front of the capacitor.
 */
#include "board.h"

#include <avr/eeprom.h>
#include <avr/interrupt.h>
#include <avr/io.h>
#include <avr/sleep.h>

#define SLOT 512u /* bytes of EEPROM for each snapshot */

static volatile uint32_t milliseconds;

ISR(TIMER1_COMPA_vect)
{
    milliseconds += 5u;
    on_timer();
}

void board_begin(void)
{
    DDRB |= (1u << PB2) | (1u << PB3) | (1u << PB5);
    PORTB |= 1u << PB2;
    SPCR = (1u << SPE) | (1u << MSTR) | (1u << CPOL) | (1u << CPHA) | (1u << SPR0); /* 1 MHz */
    UCSR0A = 1u << U2X0;
    UBRR0 = 16; /* 115,200 baud, 2 % fast */
    UCSR0B = 1u << TXEN0;
    PORTD |= 1u << PD2;
    TCCR1B = (1u << WGM12) | (1u << CS11); /* 2 MHz */
    OCR1A = 9999; /* 200 Hz */
    TIMSK1 = 1u << OCIE1A;
    sei();
}

void board_select(int32_t on)
{
    if (on) {
        PORTB &= (uint8_t)~(1u << PB2);
    } else {
        PORTB |= 1u << PB2;
    }
}

uint8_t board_transfer(uint8_t byte)
{
    SPDR = byte;
    while (!(SPSR & (1u << SPIF))) {
    }
    return SPDR;
}

void board_send(const uint8_t *bytes, uint32_t count)
{
    for (; count != 0u; count--) {
        while (!(UCSR0A & (1u << UDRE0))) {
        }
        UDR0 = *bytes;
        bytes++;
    }
}

uint16_t board_lock(void)
{
    const uint8_t before = SREG;
    cli();
    return before;
}

void board_unlock(uint16_t before)
{
    SREG = (uint8_t)before;
}

uint32_t board_milliseconds(void)
{
    const uint16_t before = board_lock();
    const uint32_t now = milliseconds;
    board_unlock(before);
    return now;
}

int32_t board_power_fails(void)
{
    return (PIND & (1u << PD2)) == 0;
}

void board_halt(void)
{
    cli();
    sleep_enable();
    sleep_cpu();
}

int32_t board_write(void *context, int32_t slot, uint32_t offset, const uint8_t *bytes, uint32_t count)
{
    (void)context;
    eeprom_update_block(bytes, (void *)(uintptr_t)(((uint16_t)slot * SLOT) + (uint16_t)offset), (size_t)count);
    return 0;
}

int32_t board_read(void *context, int32_t slot, uint32_t offset, uint8_t *bytes, uint32_t count)
{
    (void)context;
    eeprom_read_block(bytes, (const void *)(uintptr_t)(((uint16_t)slot * SLOT) + (uint16_t)offset), (size_t)count);
    return 0;
}
