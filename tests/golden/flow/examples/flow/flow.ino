// Predicts, then learns, ten times a second.
//
// SPDX-License-Identifier: 0BSD
#include <flow.h>

static flow_t model;
static int32_t t = 0;

/* Makes up some inputs and returns their label.  Replace this function by one that reads your sensors. */
static float sample(int32_t t, float x[FLOW_DIM])
{
    const float phase = (float)(t % 20) / 20.0f;
    for (int32_t j = 0; j < FLOW_DIM; j++) {
        x[j] = phase * 1.0f;
    }
    return (phase < 0.5f) ? 1.0f : -1.0f;
}

void setup() {
  Serial.begin(115200);
  if (flow_selftest(&model) != FLOW_DONE) {
    Serial.println(F("this board's compiler does not give the promised bits"));
    while (true) {
      delay(1000);
    }
  }
  flow_init(&model);
}

void loop() {
  float x[FLOW_DIM];
  const float y = sample(t, x);
  float forecast = 0.0f;
  const int32_t asked = flow_predict(&model, x, &forecast);  // below 0: an input is out of range
  const int32_t status = flow_update(&model, x, y);
  if (asked >= 0) {
    Serial.print(F("forecast "));
    Serial.print(forecast, 4);
    Serial.print(F(", label "));
    Serial.print(y, 4);
    Serial.print(F(", status "));
    Serial.print(status);
    Serial.print(F(", hash "));
    Serial.println(flow_hash(&model), HEX);
  }
  t = (t + 1) % 20;
  delay(100);
}
