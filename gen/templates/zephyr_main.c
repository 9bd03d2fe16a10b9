/* {{ "Predicts, then learns," if learns else "Predicts" }} ten times a second.
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
    {{ real }} x[{{ macro }}_DIM];
    if ({{ name }}_selftest(&model) != {{ macro }}_DONE) {
        printk("this build does not compute the promised bits\n");
        return 0;
    }
    {{ name }}_init(&model);
    for (int32_t t = 0;; t = (t + 1) % 20) {
        {{ example.take | join('\n        ') }}
        {{ example.declare }}
        if ({{ example.ask }} >= 0) { /* below 0: an input is out of range */
{%- if learns %}
            const int32_t status = {{ name }}_update(&model, x, y);
            printk("forecast {{ example.forecast.format }}, label {{ example.label.format }}, status %d, hash %08x\n", {{ example.forecast.printed }}, {{ example.label.printed }}, (int)status,
                   (unsigned int){{ name }}_hash(&model));
{%- else %}
            printk("forecast {{ example.forecast.format }}, hash %08x\n", {{ example.forecast.printed }},
                   (unsigned int){{ name }}_hash(&model));
{%- endif %}
        }
{%- if trains %}
        if (t == 19) {
            (void){{ name }}_train(&model); /* below 0: refused, and the model as it was */
        }
{%- endif %}
        k_msleep(100);
    }
}
