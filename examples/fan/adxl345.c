#include "adxl345.h"

#include "board.h"

enum { DEVID = 0x00, BW_RATE = 0x2C, POWER_CTL = 0x2D, DATA_FORMAT = 0x31, DATAX0 = 0x32 };
enum { READ = 0x80, SEVERAL = 0x40 };
enum { ADXL345 = 0xE5, HZ_200 = 0x0B, FULL_16_G = 0x0B, MEASURE = 0x08 };

static void write_register(uint8_t address, uint8_t value)
{
    board_select(1);
    (void)board_transfer(address);
    (void)board_transfer(value);
    board_select(0);
}

int32_t adxl345_begin(void)
{
    uint8_t found;
    board_select(1);
    (void)board_transfer(READ | DEVID);
    found = board_transfer(0);
    board_select(0);
    write_register(BW_RATE, HZ_200);
    write_register(DATA_FORMAT, FULL_16_G);
    write_register(POWER_CTL, MEASURE);
    return found == ADXL345;
}

void adxl345_read(int16_t xyz[3])
{
    board_select(1);
    (void)board_transfer(READ | SEVERAL | DATAX0);
    for (int32_t i = 0; i < 3; i++) {
        const uint8_t low = board_transfer(0);
        xyz[i] = (int16_t)(low | ((uint16_t)board_transfer(0) << 8));
    }
    board_select(0);
}
