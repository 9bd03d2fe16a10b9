// {{ example.does }} ten times a second.
//
// SPDX-License-Identifier: 0BSD
#include <{{ name }}.h>

static {{ name }}_t model;
static int32_t t = 0;

{% include "sample.c" %}
void setup() {
  Serial.begin(115200);
  if ({{ name }}_selftest(&model) != {{ macro }}_DONE) {
    Serial.println(F("this board's compiler does not give the promised bits"));
    while (true) {
      delay(1000);
    }
  }
  {{ name }}_init(&model);
{%- if learned and gap %}
  (void){{ name }}_gap(&model, 1); // time has passed since the PC's last sample
{%- endif %}
}

void loop() {
  {{ real }} x[{{ macro }}_{{ sample }}];
  {{ example.take | join('\n  ') }}
  {{ example.declare }}
  const int32_t asked = {{ example.ask }};  // below 0: {{ example.none }}
{%- if learns %}
  const int32_t status = {{ example.learn }};
{%- if example.alarm %}
  if ({{ example.alarm }}) {
    Serial.println(F("alarm"));  // act here
  }
{%- endif %}
{%- endif %}
  if (asked >= 0) {
{%- for s in example.shown %}
    Serial.print(F("{{ ", " if not loop.first }}{{ s.what }} "));
    Serial.print({{ s.value }}{{ s.digits }});
{%- endfor %}
    Serial.print(F(", hash "));
    Serial.println({{ name }}_hash(&model), HEX);
  }
{%- if training %}
  if (t == 19) {
    {{ name }}_{{ training }}(&model);  // below 0: refused; the model did not change
  }
{%- endif %}
  t = (t + 1) % 20;
  delay(100);
}
