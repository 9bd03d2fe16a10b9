/* A counter of the CPU's cycles, for the check of {{ name }} on a board; of microseconds where there is none.
 *
 * SPDX-License-Identifier: 0BSD
 */
#include "check.h"

#if defined(F_CPU)
#define CYCLES_HZ ((uint32_t)(F_CPU))
#elif defined(CHECK_HZ)
#define CYCLES_HZ ((uint32_t)(CHECK_HZ))
#else
#define CYCLES_HZ 0u
#endif

uint32_t check_ticks_mask;
uint32_t check_ticks_hz;

#if defined(__AVR__)
#include <avr/io.h>
#endif

#if defined(TIMSK0) && defined(TIMSK1) && defined(TIFR1)

/* Timer 1 counts the cycles; timer 0, which wakes up every 16,384 cycles for millis(), is stopped. */
#include <avr/interrupt.h>

static volatile uint16_t overflows;

ISR(TIMER1_OVF_vect)
{
    overflows++;
}

void check_start_time(void)
{
    check_ticks_mask = 0xFFFFFFFFu;
    check_ticks_hz = CYCLES_HZ;
    TIMSK0 = 0u;
    TCCR1A = 0u;
    TCCR1B = _BV(CS10);
    TCNT1 = 0u;
    TIMSK1 = _BV(TOIE1);
    sei();
}

uint32_t check_ticks(void)
{
    uint16_t high;
    uint16_t low;
    cli();
    low = TCNT1;
    high = overflows;
    if (((TIFR1 & _BV(TOV1)) != 0u) && (low < 0x8000u)) {
        high++; /* an overflow that was not counted yet */
    }
    sei();
    return ((uint32_t)high << 16) | low;
}

#elif defined(__ZEPHYR__)

#include <zephyr/kernel.h>

void check_start_time(void)
{
    check_ticks_mask = 0xFFFFFFFFu;
    check_ticks_hz = (uint32_t)sys_clock_hw_cycles_per_sec();
}

uint32_t check_ticks(void)
{
    return k_cycle_get_32();
}

#elif defined(ESP_PLATFORM)

#include "esp_cpu.h"
#include "esp_idf_version.h"

#if ESP_IDF_VERSION < ESP_IDF_VERSION_VAL(5, 0, 0)
#define esp_cpu_get_cycle_count esp_cpu_get_ccount
#endif

void check_start_time(void)
{
    check_ticks_mask = 0xFFFFFFFFu;
    check_ticks_hz = CYCLES_HZ;
}

uint32_t check_ticks(void)
{
    return (uint32_t)esp_cpu_get_cycle_count();
}

#elif defined(__ARM_ARCH_7M__) || defined(__ARM_ARCH_7EM__) || defined(__ARM_ARCH_8M_MAIN__) \
    || (!defined(ARDUINO) && (defined(__ARM_ARCH_6M__) || defined(__ARM_ARCH_8M_BASE__)))

#define REGISTER(address) (*(volatile uint32_t *)(address))
#define DEMCR REGISTER(0xE000EDFCu)
#define DWT_CTRL REGISTER(0xE0001000u)
#define DWT_LAR REGISTER(0xE0001FB0u)
#define DWT_CYCCNT REGISTER(0xE0001004u)
#define SYST_CSR REGISTER(0xE000E010u)
#define SYST_RVR REGISTER(0xE000E014u)
#define SYST_CVR REGISTER(0xE000E018u)

static uint32_t has_cyccnt;

void check_start_time(void)
{
    check_ticks_mask = 0xFFFFFFFFu;
    check_ticks_hz = CYCLES_HZ;
#if !defined(__ARM_ARCH_6M__) && !defined(__ARM_ARCH_8M_BASE__)
    DEMCR |= UINT32_C(1) << 24;
    DWT_LAR = 0xC5ACCE55u; /* the lock of some Cortex-M7 */
    DWT_CTRL |= 1u;
    has_cyccnt = DWT_CYCCNT;
    has_cyccnt = (DWT_CYCCNT != has_cyccnt) ? 1u : 0u;
#endif
    if (has_cyccnt == 0u) {
#if defined(ARDUINO)
        check_ticks_hz = 1000000u;
#else
        SYST_RVR = 0xFFFFFFu;
        SYST_CVR = 0u;
        SYST_CSR = 5u; /* the CPU's clock, no interrupt */
        check_ticks_mask = 0xFFFFFFu;
#endif
    }
}

uint32_t check_ticks(void)
{
    if (has_cyccnt == 0u) {
#if defined(ARDUINO)
        return check_micros();
#else
        return 0xFFFFFFu - SYST_CVR; /* it counts down */
#endif
    }
    return DWT_CYCCNT;
}

#elif defined(__riscv) && !defined(ARDUINO)

void check_start_time(void)
{
    check_ticks_mask = 0xFFFFFFFFu;
    check_ticks_hz = CYCLES_HZ;
}

uint32_t check_ticks(void)
{
    uint32_t cycles;
    __asm__ volatile("csrr %0, 0xB00" : "=r"(cycles)); /* mcycle */
    return cycles;
}

#elif defined(ARDUINO)

void check_start_time(void)
{
    check_ticks_mask = 0xFFFFFFFFu;
    check_ticks_hz = 1000000u;
}

uint32_t check_ticks(void)
{
    return check_micros();
}

#else

void check_start_time(void)
{
    check_ticks_mask = 0xFFFFFFFFu;
    check_ticks_hz = CYCLES_HZ;
}

/* Nothing is known of this CPU: count what yours counts. */
uint32_t check_ticks(void)
{
    return 0u;
}

#endif
