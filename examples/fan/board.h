/* What the firmware needs of a board. */
#ifndef BOARD_H
#define BOARD_H

#include <stdint.h>

void board_begin(void);                  /* SPI mode 3 at 1 to 5 MHz, a UART at 115,200 baud, a timer at 200 Hz */
void board_select(int32_t on);           /* the sensor's CS: 1 is low */
uint8_t board_transfer(uint8_t byte);    /* one byte over SPI, both ways */
void board_send(const uint8_t *bytes, uint32_t count);
uint32_t board_milliseconds(void);
int32_t board_power_fails(void);         /* 1: the supply breaks down; the capacitor lasts for some time */
void board_halt(void);
uint16_t board_lock(void);               /* interrupts off; returns what board_unlock restores */
void board_unlock(uint16_t before);

/* Two places for snapshots, which stay without power. */
int32_t board_write(void *context, int32_t slot, uint32_t offset, const uint8_t *bytes, uint32_t count);
int32_t board_read(void *context, int32_t slot, uint32_t offset, uint8_t *bytes, uint32_t count);

/* The firmware's own: the board's timer interrupt calls it. */
void on_timer(void);

#endif
