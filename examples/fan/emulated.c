/* The Uno with its ADXL345, in simavr: a fan whose bearing fails.
 *
 * emulated ELF PORT EEPROM SECONDS FAULT: listens at a TCP port, and sends there what the UART sends.  From second FAULT on the bearing
 * knocks; at the end the supply breaks down, and the firmware has two more seconds.  EEPROM is a file.
 */
#include <arpa/inet.h>
#include <math.h>
#include <simavr/avr_eeprom.h>
#include <simavr/avr_ioport.h>
#include <simavr/avr_spi.h>
#include <simavr/avr_uart.h>
#include <simavr/sim_avr.h>
#include <simavr/sim_elf.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static avr_t *avr;
static avr_irq_t *to_firmware;
static int connection;
static double fault;
static uint8_t registers[64] = {0xE5};
static int selected, at = -1, reading, several;

static double noise(void)
{
    static uint64_t state = 20261129u;
    double sum = 0.0;
    for (int i = 0; i < 12; i++) {
        state = (state * 6364136223846793005u) + 1442695040888963407u;
        sum += (double)(state >> 40) / 16777216.0;
    }
    return sum - 6.0;
}

/* Acceleration in counts of 3.9 mg: gravity, the rotor's imbalance at 23 Hz, its blades, noise; a knock at each turn of a bad bearing. */
static void measure(void)
{
    const double t = (double)avr->cycle / (double)avr->frequency, turn = t * 23.0;
    const double knock = t < fault ? 0.0 : 160.0 * exp(-fmod(turn, 1.0) * 12.0) * (0.7 + 0.1 * noise());
    const double z = 256.0 + 22.0 * sin(6.283185 * turn) + 9.0 * sin(6.283185 * 3.0 * turn) + 4.0 * noise() + knock;
    const int16_t counts[3] = {(int16_t)(5.0 * noise()), (int16_t)(5.0 * noise()), (int16_t)lrint(z)};
    memcpy(&registers[0x32], counts, sizeof counts);
}

static void on_select(avr_irq_t *irq, uint32_t high, void *context)
{
    (void)irq;
    (void)context;
    selected = !high;
    at = -1;
}

static void on_byte(avr_irq_t *irq, uint32_t byte, void *context)
{
    uint8_t answer = 0;
    (void)irq;
    (void)context;
    if (!selected) {
        return;
    }
    if (at < 0) {
        at = (int)(byte & 0x3F);
        reading = (byte & 0x80) != 0;
        several = (byte & 0x40) != 0;
        if (reading && at == 0x32 && registers[0x2D] == 0x08) {
            measure();
        }
    } else {
        if (reading) {
            answer = registers[at];
        } else {
            registers[at] = (uint8_t)byte;
        }
        at = (at + several) & 0x3F;
    }
    avr_raise_irq(to_firmware, answer);
}

static void on_sent(avr_irq_t *irq, uint32_t byte, void *context)
{
    const uint8_t sent = (uint8_t)byte;
    (void)irq;
    (void)context;
    if (send(connection, &sent, 1, MSG_NOSIGNAL) != 1) {
        exit(3);
    }
}

int main(int count, char **words)
{
    static elf_firmware_t firmware;
    static uint8_t bytes[1024];
    if (count != 6 || elf_read_firmware(words[1], &firmware) != 0) {
        return 2;
    }
    fault = atof(words[5]);
    strcpy(firmware.mmcu, "atmega328p");
    firmware.frequency = 16000000;
    avr = avr_make_mcu_by_name(firmware.mmcu);
    avr_init(avr);
    avr_load_firmware(avr, &firmware);
    memset(bytes, 0xFF, sizeof bytes);
    FILE *file = fopen(words[3], "rb");
    if (file != NULL) {
        (void)!fread(bytes, 1, sizeof bytes, file);
        fclose(file);
    }
    avr_eeprom_desc_t memory = {bytes, 0, sizeof bytes};
    avr_ioctl(avr, AVR_IOCTL_EEPROM_SET, &memory);

    uint32_t flags = 0;
    avr_ioctl(avr, AVR_IOCTL_UART_GET_FLAGS('0'), &flags);
    flags &= ~(uint32_t)(AVR_UART_FLAG_STDIO | AVR_UART_FLAG_POLL_SLEEP);
    avr_ioctl(avr, AVR_IOCTL_UART_SET_FLAGS('0'), &flags);
    avr_irq_register_notify(avr_io_getirq(avr, AVR_IOCTL_UART_GETIRQ('0'), UART_IRQ_OUTPUT), on_sent, NULL);
    avr_irq_register_notify(avr_io_getirq(avr, AVR_IOCTL_SPI_GETIRQ(0), SPI_IRQ_OUTPUT), on_byte, NULL);
    to_firmware = avr_io_getirq(avr, AVR_IOCTL_SPI_GETIRQ(0), SPI_IRQ_INPUT);
    avr_irq_register_notify(avr_io_getirq(avr, AVR_IOCTL_IOPORT_GETIRQ('B'), 2), on_select, NULL);
    avr_irq_t *supply = avr_io_getirq(avr, AVR_IOCTL_IOPORT_GETIRQ('D'), 2);

    struct sockaddr_in where = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(words[2])), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    const int one = 1, listening = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(listening, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(listening, (struct sockaddr *)&where, sizeof where) != 0 || listen(listening, 1) != 0) {
        return 4;
    }
    puts("listening");
    fflush(stdout);
    connection = accept(listening, NULL, NULL);

    const uint64_t end = (uint64_t)(atof(words[4]) * 16e6);
    int state = cpu_Running;
    avr_raise_irq(supply, 1);
    while (state != cpu_Done && state != cpu_Crashed && avr->cycle < end + 32000000u) {
        if (avr->cycle >= end) {
            avr_raise_irq(supply, 0);
        }
        state = avr_run(avr);
    }
    avr_ioctl(avr, AVR_IOCTL_EEPROM_GET, &memory);
    file = fopen(words[3], "wb");
    if (file == NULL || fwrite(memory.ee, 1, sizeof bytes, file) != sizeof bytes || fclose(file) != 0) {
        return 5;
    }
    close(connection);
    return state == cpu_Crashed;
}
