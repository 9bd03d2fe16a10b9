// Predicts, then learns, ten times a second.
//
// SPDX-License-Identifier: 0BSD
#include <machine.h>

static machine_t model;
static int32_t t = 0;

/* Makes up some inputs and returns their class.  Replace this function by one that reads your sensors. */
static int32_t sample(int32_t t, float x[MACHINE_DIM])
{
    const float phase = (float)(t % 20) / 20.0f;
    for (int32_t j = 0; j < MACHINE_DIM; j++) {
        x[j] = phase * 1.0f;
    }
    return ((t % 20) * MACHINE_CLASSES) / 20;
}

void setup() {
  Serial.begin(115200);
  if (machine_selftest(&model) != MACHINE_DONE) {
    Serial.println(F("this board's compiler does not give the promised bits"));
    while (true) {
      delay(1000);
    }
  }
  machine_init(&model);
}

void loop() {
  float x[MACHINE_DIM];
  const int32_t y = sample(t, x);
  int32_t forecast = 0;
  const int32_t asked = machine_classify(&model, x, &forecast);  // below 0: an input is out of range
  const int32_t status = machine_update(&model, x, y);
  if (asked >= 0) {
    Serial.print(F("forecast "));
    Serial.print(forecast);
    Serial.print(F(", label "));
    Serial.print(y);
    Serial.print(F(", status "));
    Serial.print(status);
    Serial.print(F(", hash "));
    Serial.println(machine_hash(&model), HEX);
  }
  t = (t + 1) % 20;
  delay(100);
}
