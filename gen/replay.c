/* Feeds a stream to {{ name }}: for the check, which binds it; not part of a project. */
#include "{{ name }}.h"

void {{ name }}_replay({{ name }}_t *s, int64_t count, const {{ real }} *x, const {{ label_type }} *y, {{ main.type }} *answers, int32_t *statuses);
{% for q in questions -%}
void {{ name }}_replay_{{ q.name }}({{ name }}_t *s, int64_t count, const {{ real }} *x, {{ q.type }} *answers, int32_t *statuses);
{% endfor %}
void {{ name }}_replay({{ name }}_t *s, int64_t count, const {{ real }} *x, const {{ label_type }} *y, {{ main.type }} *answers, int32_t *statuses)
{
{%- if not learns or label_kind == "none" %}
    (void)y;
{%- endif %}
    for (int64_t t = 0; t < count; t++) {
        const {{ real }} *row = &x[t * {{ macro }}_{{ sample }}];
{%- if learns %}
{%- if not reads %}
        if (answers != (void *)0) {
            (void){{ name }}_{{ main.name }}(s, row, &answers[t * {{ main.count }}]);
        }
{%- endif %}
        if (statuses != (void *)0) {
            statuses[t] = {{ name }}_{{ learner }}(s, row{{ {"none": "", "reals": ", &y[t * " ~ macro ~ "_OUTPUTS]"}.get(label_kind, ", y[t]") }});
        }
{%- if reads %}
        if (answers != (void *)0) {
            (void){{ name }}_{{ main.name }}(s, &answers[t * {{ main.count }}]);
        }
{%- endif %}
{%- else %}
        statuses[t] = {{ name }}_{{ main.name }}(s, row, &answers[t * {{ main.count }}]);
{%- endif %}
    }
}
{% for q in questions %}
void {{ name }}_replay_{{ q.name }}({{ name }}_t *s, int64_t count, const {{ real }} *x, {{ q.type }} *answers, int32_t *statuses)
{
    for (int64_t t = 0; t < count; t++) {
        statuses[t] = {{ name }}_{{ q.name }}(s, &x[t * {{ macro }}_DIM], &answers[t * {{ q.count }}]);
    }
}
{% endfor -%}
