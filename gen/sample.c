{# Included by the examples: made-up samples. -#}
{% if not example.takes_label -%}
/* Makes up some inputs.  Replace this function by one that reads your sensors. */
static void sample(int32_t t, {{ real }} x[{{ macro }}_{{ sample }}])
{%- elif label_kind == "reals" -%}
/* Makes up some inputs and labels.  Replace this function by one that reads your sensors. */
static void sample(int32_t t, {{ real }} x[{{ macro }}_{{ sample }}], {{ label_type }} y[{{ macro }}_OUTPUTS])
{%- elif label_kind == "class" -%}
/* Makes up some inputs and returns their class.  Replace this function by one that reads your sensors. */
static int32_t sample(int32_t t, {{ real }} x[{{ macro }}_{{ sample }}])
{%- else -%}
/* Makes up some inputs and returns their label.  Replace this function by one that reads your sensors. */
static {{ label_type }} sample(int32_t t, {{ real }} x[{{ macro }}_{{ sample }}])
{%- endif %}
{
{%- if int16 %}
    const int32_t phase = t % 20;
    for (int32_t j = 0; j < {{ macro }}_{{ sample }}; j++) {
        x[j] = (int16_t)({{ "(phase - 10) * %d" % input_scale }});
    }
{%- else %}
    const {{ real }} phase = ({{ real }})(t % 20) / {{ twenty }};
{%- if input_ranges %}
    static const {{ real }} middle[{{ macro }}_{{ sample }}] = { {{ input_ranges.middle }} };
    static const {{ real }} width[{{ macro }}_{{ sample }}] = { {{ input_ranges.width }} };
    for (int32_t j = 0; j < {{ macro }}_{{ sample }}; j++) {
        x[j] = middle[j] + (phase - {{ half }}) * width[j];
    }
{%- else %}
    for (int32_t j = 0; j < {{ macro }}_{{ sample }}; j++) {
        x[j] = phase * {{ input_scale }};
    }
{%- endif %}
{%- endif %}
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
