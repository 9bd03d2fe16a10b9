/* A Nucleo-G031K8 (STM32G031K8, Cortex-M0+, 16 MHz from HSI); registers as in RM0444.  It was compiled, and never ran.
 *
 * ADXL345 at 3.3 V: CS to PA4 (A3), SCL to PA5 (A4), SDO to PA6 (A5), SDA to PA7 (A6).  The UART is that of the ST-LINK (PA2).
 * PB0 (D3) is low when the supply breaks down.  Snapshots are in the last two pages of flash.
 */
#include "board.h"

#include <string.h>

#define AT(address) (*(volatile uint32_t *)(uintptr_t)(address))
#define BYTE_AT(address) (*(volatile uint8_t *)(uintptr_t)(address))

enum {
    RCC_IOPENR = 0x40021034, RCC_APBENR1 = 0x4002103C, RCC_APBENR2 = 0x40021040,
    GPIOA = 0x50000000, GPIOB = 0x50000400, MODER = 0x00, PUPDR = 0x0C, IDR = 0x10, BSRR = 0x18, AFRL = 0x20,
    SPI1_CR1 = 0x40013000, SPI1_CR2 = 0x40013004, SPI1_SR = 0x40013008, SPI1_DR = 0x4001300C,
    USART2_CR1 = 0x40004400, USART2_BRR = 0x4000440C, USART2_ISR = 0x4000441C, USART2_TDR = 0x40004428,
    FLASH_KEYR = 0x40022008, FLASH_SR = 0x40022010, FLASH_CR = 0x40022014,
};
#define SYST_CSR 0xE000E010u
#define SYST_RVR 0xE000E014u
#define SYST_CVR 0xE000E018u
#define PAGE 2048u
#define FIRST_PAGE 30u /* of 32: two for snapshots */
#define FLASH_START 0x08000000u

static volatile uint32_t milliseconds;

void SysTick_Handler(void);

void SysTick_Handler(void)
{
    milliseconds += 5u;
    on_timer();
}

void board_begin(void)
{
    AT(RCC_IOPENR) |= 3u;
    AT(RCC_APBENR1) |= 1u << 17; /* USART2 */
    AT(RCC_APBENR2) |= 1u << 12; /* SPI1 */
    /* PA2 USART2_TX (AF1); PA4 output; PA5, PA6, PA7 SPI1 (AF0); PB0 input with a pull-up */
    AT(GPIOA + MODER) = (AT(GPIOA + MODER) & ~0xFF30u) | 0xA920u;
    AT(GPIOA + AFRL) = (AT(GPIOA + AFRL) & ~0xFFF00F00u) | 0x00000100u;
    AT(GPIOB + MODER) &= ~3u;
    AT(GPIOB + PUPDR) = (AT(GPIOB + PUPDR) & ~3u) | 1u;
    AT(GPIOA + BSRR) = 1u << 4;
    AT(SPI1_CR2) = (7u << 8) | (1u << 12); /* 8 bits */
    AT(SPI1_CR1) = (1u << 9) | (1u << 8) | (2u << 3) | (1u << 2) | 3u; /* software CS, 2 MHz, master, mode 3 */
    AT(SPI1_CR1) |= 1u << 6;
    AT(USART2_BRR) = 139; /* 115,200 baud */
    AT(USART2_CR1) = 1u | (1u << 3);
    AT(SYST_RVR) = 80000u - 1u; /* 200 Hz */
    AT(SYST_CVR) = 0u;
    AT(SYST_CSR) = 7u;
}

void board_select(int32_t on)
{
    AT(GPIOA + BSRR) = on ? (1u << 20) : (1u << 4);
}

uint8_t board_transfer(uint8_t byte)
{
    BYTE_AT(SPI1_DR) = byte;
    while ((AT(SPI1_SR) & 1u) == 0u) {
    }
    return BYTE_AT(SPI1_DR);
}

void board_send(const uint8_t *bytes, uint32_t count)
{
    for (; count != 0u; count--) {
        while ((AT(USART2_ISR) & (1u << 7)) == 0u) {
        }
        AT(USART2_TDR) = *bytes;
        bytes++;
    }
}

uint16_t board_lock(void)
{
    uint32_t before;
    __asm volatile("mrs %0, primask\n cpsid i" : "=r"(before) : : "memory");
    return (uint16_t)before;
}

void board_unlock(uint16_t before)
{
    __asm volatile("msr primask, %0" : : "r"((uint32_t)before) : "memory");
}

uint32_t board_milliseconds(void)
{
    return milliseconds; /* one aligned word */
}

int32_t board_power_fails(void)
{
    return (AT(GPIOB + IDR) & 1u) == 0u;
}

void board_halt(void)
{
    (void)board_lock();
    for (;;) {
        __asm volatile("wfi");
    }
}

/* Flash is written in double words; the snapshot comes in parts, in order. */
int32_t board_write(void *context, int32_t slot, uint32_t offset, const uint8_t *bytes, uint32_t count)
{
    static uint8_t rest[8];
    const uint32_t page = FIRST_PAGE + (uint32_t)slot;
    (void)context;
    if (offset == 0u) {
        AT(FLASH_KEYR) = 0x45670123u;
        AT(FLASH_KEYR) = 0xCDEF89ABu;
        AT(FLASH_CR) = (1u << 1) | (page << 3);
        AT(FLASH_CR) |= 1u << 16;
        while ((AT(FLASH_SR) & (1u << 16)) != 0u) {
        }
        AT(FLASH_CR) = 1u;
        memset(rest, 0xFF, sizeof rest);
    }
    for (uint32_t i = 0u; i < count; i++) {
        const uint32_t at = offset + i;
        rest[at % 8u] = bytes[i];
        if (((at % 8u) == 7u) || ((i + 1u == count) && (count < 64u))) { /* the last part is shorter */
            uint32_t words[2];
            memcpy(words, rest, sizeof words);
            AT(FLASH_START + (page * PAGE) + (at & ~7u)) = words[0];
            AT(FLASH_START + (page * PAGE) + (at & ~7u) + 4u) = words[1];
            while ((AT(FLASH_SR) & (1u << 16)) != 0u) {
            }
            memset(rest, 0xFF, sizeof rest);
        }
    }
    return 0;
}

int32_t board_read(void *context, int32_t slot, uint32_t offset, uint8_t *bytes, uint32_t count)
{
    (void)context;
    memcpy(bytes, (const void *)(uintptr_t)(FLASH_START + ((FIRST_PAGE + (uint32_t)slot) * PAGE) + offset), count);
    return 0;
}
