// Predicts, then learns, ten times a second.
//
// SPDX-License-Identifier: 0BSD
#include <level.h>

static level_t model;
static int32_t t = 0;

/* Makes up some inputs and returns their label.  Replace this function by one that reads your sensors. */
static int32_t sample(int32_t t, int16_t x[LEVEL_DIM])
{
    const int32_t phase = t % 20;
    for (int32_t j = 0; j < LEVEL_DIM; j++) {
        x[j] = (int16_t)((phase - 10) * 1000);
    }
    return (phase < 10) ? 1000 : -1000;
}

void setup() {
  Serial.begin(115200);
  if (level_selftest(&model) != LEVEL_DONE) {
    Serial.println(F("this board's compiler does not give the promised bits"));
    while (true) {
      delay(1000);
    }
  }
  level_init(&model);
}

void loop() {
  int16_t x[LEVEL_DIM];
  const int32_t y = sample(t, x);
  int32_t forecast = 0;
  const int32_t asked = level_predict(&model, x, &forecast);  // below 0: an input is out of range
  const int32_t status = level_update(&model, x, y);
  if (asked >= 0) {
    Serial.print(F("forecast "));
    Serial.print(forecast);
    Serial.print(F(", label "));
    Serial.print(y);
    Serial.print(F(", status "));
    Serial.print(status);
    Serial.print(F(", hash "));
    Serial.println(level_hash(&model), HEX);
  }
  t = (t + 1) % 20;
  delay(100);
}
