// The check of {{ name }} on this board.  Upload it, close the serial monitor, and on the PC:
//
//   pykernel check {{ name }}.toml --board /dev/ttyACM0
//
// SPDX-License-Identifier: 0BSD
#include <{{ name }}.h>

#include "check.h"

#if defined(ARDUINO_AVR_UNO)
const char check_board[] = "Arduino Uno";
#elif defined(ARDUINO_AVR_MEGA2560)
const char check_board[] = "Arduino Mega 2560";
#elif defined(ARDUINO_AVR_NANO)
const char check_board[] = "Arduino Nano";
#elif defined(BOARD_NAME)
const char check_board[] = BOARD_NAME;
#elif defined(ARDUINO_BOARD)
const char check_board[] = ARDUINO_BOARD;
#else
const char check_board[] = "Arduino board";  // write yours
#endif

void check_put(uint8_t byte) {
  Serial.write(byte);
}

uint8_t check_get(void) {
  while (Serial.available() == 0) {
    yield();
  }
  return (uint8_t)Serial.read();
}

uint32_t check_micros(void) {
  return micros();
}

#if defined(__AVR__)
extern unsigned char __heap_start;
#endif

void setup() {
  Serial.begin(115200);
}

void loop() {
#if defined(__AVR__)
  check_serve(&__heap_start);
#else
  check_serve(NULL);  // where this board's stack ends is not known
#endif
}
