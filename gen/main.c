/* A first program that uses {{ name }}.
 *
 * SPDX-License-Identifier: 0BSD
 */
#include "{{ name }}.h"

#include <stdio.h>

static {{ name }}_t model;

{% include "sample.c" %}
int main(void)
{
    {{ real }} x[{{ macro }}_{{ sample }}];
    if ({{ name }}_selftest(&model) != {{ macro }}_DONE) {
        puts("this build does not compute the promised bits: look at the compiler's floating-point flags");
        return 1;
    }
    {{ name }}_init(&model);
{%- if learned and gap %}
    (void){{ name }}_gap(&model, 1); /* time has passed since the PC's last sample */
{%- endif %}
    for (int32_t t = 0; t < {{ example_rows }}; t++) {
        {{ example.take | join('\n        ') }}
        {{ example.declare }}
        const int32_t asked = {{ example.ask }}; /* below 0: {{ example.none }} */
{%- if learns %}
        const int32_t status = {{ example.learn }};
{%- if training %}
        if (t % 20 == 19) {
            (void){{ name }}_{{ training }}(&model); /* below 0: refused; the model did not change */
        }
{%- endif %}
{%- if example.alarm %}
        if ({{ example.alarm }}) {
            printf("%4d  alarm\n", (int)t); /* act here */
        }
{%- endif %}
{%- endif %}
        if ((asked >= 0) && (t % {{ example_rows // 10 - 1 }} == 0)) {
            printf("%4d{% for s in example.shown %}  {{ s.what }} {{ s.wide }}{% endfor %}\n", (int)t, {{ example.printed }});
        }
    }
    printf("%d bytes of RAM, {{ "model" if persists else "memory" }} hash %08lx\n", (int)sizeof model, (unsigned long){{ name }}_hash(&model));
    return 0;
}
