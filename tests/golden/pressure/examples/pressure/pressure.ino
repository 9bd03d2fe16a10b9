// Predicts, then learns, ten times a second.
//
// SPDX-License-Identifier: 0BSD
#include <pressure.h>

static pressure_t model;
static int32_t t = 0;

/* Makes up some inputs and returns their label.  Replace this function by one that reads your sensors. */
static double sample(int32_t t, double x[PRESSURE_DIM])
{
    const double phase = (double)(t % 20) / 20.0;
    for (int32_t j = 0; j < PRESSURE_DIM; j++) {
        x[j] = phase * 1.0;
    }
    return (phase < 0.5) ? 1.0 : -1.0;
}

void setup() {
  Serial.begin(115200);
  if (pressure_selftest(&model) != PRESSURE_DONE) {
    Serial.println(F("this board's compiler does not give the promised bits"));
    while (true) {
      delay(1000);
    }
  }
  pressure_init(&model);
}

void loop() {
  double x[PRESSURE_DIM];
  const double y = sample(t, x);
  double forecast = 0.0;
  const int32_t asked = pressure_predict(&model, x, &forecast);  // below 0: an input is out of range
  const int32_t status = pressure_update(&model, x, y);
  if (asked >= 0) {
    Serial.print(F("forecast "));
    Serial.print(forecast, 4);
    Serial.print(F(", label "));
    Serial.print(y, 4);
    Serial.print(F(", status "));
    Serial.print(status);
    Serial.print(F(", hash "));
    Serial.println(pressure_hash(&model), HEX);
  }
  t = (t + 1) % 20;
  delay(100);
}
