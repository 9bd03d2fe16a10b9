/* An ADXL345 accelerometer on SPI; registers as its data sheet (rev. E) has them. */
#ifndef ADXL345_H
#define ADXL345_H

#include <stdint.h>

/* 200 samples a second, full resolution, +-16 g: a count is 3.9 mg.  Returns 0 if no ADXL345 answers. */
int32_t adxl345_begin(void);

/* The newest x, y and z, in counts. */
void adxl345_read(int16_t xyz[3]);

#endif
