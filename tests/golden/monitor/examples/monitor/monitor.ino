// Asks for the novelty, then learns, ten times a second.
//
// SPDX-License-Identifier: 0BSD
#include <monitor.h>

static monitor_t model;
static int32_t t = 0;

/* Makes up some inputs.  Replace this function by one that reads your sensors. */
static void sample(int32_t t, float x[MONITOR_DIM])
{
    const float phase = (float)(t % 20) / 20.0f;
    for (int32_t j = 0; j < MONITOR_DIM; j++) {
        x[j] = phase * 1.0f;
    }
}

void setup() {
  Serial.begin(115200);
  if (monitor_selftest(&model) != MONITOR_DONE) {
    Serial.println(F("this board's compiler does not give the promised bits"));
    while (true) {
      delay(1000);
    }
  }
  monitor_init(&model);
}

void loop() {
  float x[MONITOR_DIM];
  sample(t, x);
  float novelty = 0.0f;
  const int32_t asked = monitor_novelty(&model, x, &novelty);  // below 0: an input is out of range
  const int32_t status = monitor_update(&model, x);
  if (status == MONITOR_NOVEL || status == MONITOR_HELD || status == MONITOR_ABSENT) {
    Serial.println(F("alarm"));  // act here
  }
  if (asked >= 0) {
    Serial.print(F("novelty "));
    Serial.print(novelty, 4);
    Serial.print(F(", status "));
    Serial.print(status);
    Serial.print(F(", hash "));
    Serial.println(monitor_hash(&model), HEX);
  }
  t = (t + 1) % 20;
  delay(100);
}
