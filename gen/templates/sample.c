{# Included by the examples: made-up samples. -#}
{% if not example.takes_label -%}
/* Makes up some inputs.  Replace this function by one that reads your sensors. */
static void sample(int32_t t, {{ real }} x[{{ macro }}_DIM])
{%- elif label_kind == "reals" -%}
/* Makes up some inputs and labels.  Replace this function by one that reads your sensors. */
static void sample(int32_t t, {{ real }} x[{{ macro }}_DIM], {{ real }} y[{{ macro }}_OUTPUTS])
{%- elif label_kind == "class" -%}
/* Makes up some inputs and returns their class.  Replace this function by one that reads your sensors. */
static int32_t sample(int32_t t, {{ real }} x[{{ macro }}_DIM])
{%- else -%}
/* Makes up some inputs and returns their label.  Replace this function by one that reads your sensors. */
static {{ real }} sample(int32_t t, {{ real }} x[{{ macro }}_DIM])
{%- endif %}
{
    const {{ real }} phase = ({{ real }})(t % 20) / {{ twenty }};
    for (int32_t j = 0; j < {{ macro }}_DIM; j++) {
        x[j] = phase * {{ input_scale }};
    }
{%- if not example.takes_label %}
{%- elif label_kind == "reals" %}
    for (int32_t o = 0; o < {{ macro }}_OUTPUTS; o++) {
        y[o] = (phase < {{ half }}) ? {{ label_scale }} : -{{ label_scale }};
    }
{%- elif label_kind == "class" %}
    return ((t % 20) * {{ macro }}_CLASSES) / 20;
{%- else %}
    return (phase < {{ half }}) ? {{ label_scale }} : -{{ label_scale }};
{%- endif %}
}
