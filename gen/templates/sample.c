{# Included by the examples: made-up samples. -#}
/* Some inputs and what the model should learn from them: put your sensor here. */
static {{ real }} sample(int32_t t, {{ real }} x[{{ macro }}_DIM])
{
    const {{ real }} phase = ({{ real }})(t % 20) / {{ twenty }};
    for (int32_t j = 0; j < {{ macro }}_DIM; j++) {
        x[j] = phase * {{ input_scale }};
    }
    return (phase < {{ half }}) ? {{ label_scale }} : -{{ label_scale }};
}
