/* The check of {{ name }} on a board or an emulated CPU.
 *
 * A job.  In: the model's bytes; which function to call; how many samples; the samples, each of its inputs and then its
 * label (inputs only, where the function is a question, or where there are no labels).
 * Out: for each sample what the question (the main one, if no other) wrote, its status, the status of what took the
 * sample (update, if no visit), and the ticks of both calls; then what the function returned that takes no sample, what
 * it wrote, its ticks, the stack, and the model.
 *
 * SPDX-License-Identifier: 0BSD
 */
#include "check.h"
#include "{{ name }}.h"
{% include "stamp.h" %}
#include <stdbool.h>

static {{ name }}_t model;
static {{ real }} x[{{ macro }}_{{ sample }}];
{%- if label %}
static {{ label.type }} label[{{ label.count }}];
{%- endif %}
static {{ real }} values[{{ values }}];
static int32_t position[{{ positions }}];

uint32_t check_hash(void)
{
    return {{ macro }}_CONFIG_HASH;
}

static uint32_t call(uint32_t which)
{
    switch (which) {
{%- for number, text in calls %}
    case {{ number }}u:
        {{ text | join("\n        ") }}
{%- endfor %}
    default:
        return 0u; /* the samples only */
    }
}

static int32_t ask(uint32_t which)
{
    switch (which) {
{%- for number, text in asks %}
    case {{ number }}u:
        return {{ text }};
{%- endfor %}
    default:
        return {{ main }};
    }
}

static int32_t take(uint32_t which)
{
    switch (which) {
{%- for number, text in takes %}
    case {{ number }}u:
        return {{ text }};
{%- endfor %}
    default:
        return 0; /* a question */
    }
}

static uint32_t since(uint32_t start)
{
    return (check_ticks() - start) & check_ticks_mask;
}

#define PART(what) {&(what), (uint32_t)sizeof(what)}
#define PARTS(array) (uint32_t)(sizeof(array) / sizeof(array)[0])

void check_job(void)
{
    uint32_t order[2];
    int32_t statuses[2];
    uint32_t ticks[2];
    uint32_t end[3];
    const check_part_t begun[] = {PART(model), PART(order)};
    const check_part_t input[] = {PART(x){{ ', PART(label)' if label }}};
    const check_part_t result[] = {PART(values), PART(position), PART(statuses), PART(ticks)};
    const check_part_t ended[] = {PART(end), PART(values), PART(position), PART(model)};
    check_read(begun, PARTS(begun));
    for (uint32_t t = 0u; (check_over() == 0) && (t < order[1]); t++) {
        const bool asks = (order[0] < {{ first_visit }}u) || (order[0] == {{ run }}u);
        const bool takes = {{ takes_when }};
        check_read(input, {{ 'takes ? 2u : 1u' if label else '1u' }});
        for (uint32_t i = 0u; i < 2u; i++) {
            statuses[i] = 0;
            ticks[i] = 0u;
        }
{%- macro asking() %}
        if (asks) {
            const uint32_t start = check_ticks();
            statuses[0] = ask(order[0]);
            ticks[0] = since(start);
        }
{%- endmacro %}
{%- if not reads %}{{ asking() }}{% endif %}
        if (takes) {
            const uint32_t start = check_ticks();
            statuses[1] = take(order[0]);
            ticks[1] = since(start);
        }
{%- if reads %}{{ asking() }}{% endif %}
        check_write(result, PARTS(result));
    }
    if (check_over() != 0) {
        return;
    }
    end[1] = check_ticks();
    end[0] = call(order[0]);
    end[1] = since(end[1]);
    end[2] = check_stack_used();
    check_write(ended, PARTS(ended));
}
