/* {{ example.does }} ten times a second.
 *
 * SPDX-License-Identifier: 0BSD
 */
#include <{{ name }}.h>

#include <zephyr/kernel.h>
#include <zephyr/sys/printk.h>

static {{ name }}_t model;

{% include "sample.c" %}
int main(void)
{
    {{ real }} x[{{ macro }}_{{ sample }}];
    if ({{ name }}_selftest(&model) != {{ macro }}_DONE) {
        printk("this build does not compute the promised bits\n");
        return 0;
    }
    {{ name }}_init(&model);
{%- if learned and gap %}
    (void){{ name }}_gap(&model, 1); /* time has passed since the PC's last sample */
{%- endif %}
    for (int32_t t = 0;; t = (t + 1) % 20) {
        {{ example.take | join('\n        ') }}
        {{ example.declare }}
        const int32_t asked = {{ example.ask }}; /* below 0: {{ example.none }} */
{%- if learns %}
        const int32_t status = {{ example.learn }};
{%- if example.alarm %}
        if ({{ example.alarm }}) {
            printk("alarm\n"); /* act here */
        }
{%- endif %}
{%- endif %}
        if (asked >= 0) {
            printk("{% for s in example.shown %}{{ s.what }} {{ s.format }}, {% endfor %}hash %08x\n", {{ example.printed }},
                   (unsigned int){{ name }}_hash(&model));
        }
{%- if training %}
        if (t == 19) {
            (void){{ name }}_{{ training }}(&model); /* below 0: refused; the model did not change */
        }
{%- endif %}
        k_msleep(100);
    }
}
