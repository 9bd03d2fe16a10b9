{# Where a model's numbers lie, and the check of their ranges: part of snapshot.c, and of a proof. -#}
{%- macro where(row) -%}
{{ macro }}_PLACE({{ row.fields[0] }}), {{ row.count }}
{%- endmacro -%}
{%- macro others(row) -%}
{% if row.fields | length > 1 %} /* ... {{ row.fields[-1] }} */{% endif %}
{%- endmacro -%}
{%- set place = "uint16_t" if state_bytes < 65536 else "uint32_t" -%}
{% if snapshot.ranges -%}
/* Where numbers lie in a model, how many, and the largest that learning can give, in a table for each least one. */
{%- endif %}
{%- for kind in snapshot.ranges %}
static const struct {
    {{ place }} place;
    {{ place }} count;
{%- if not (kind.low or kind.width) %}
    {{ kind.type }} low;
{%- endif %}
    {{ kind.type }} high;
} {{ name }}_stored_{{ kind.what }}_ranges[] = {
{%- for row in kind.rows %}
    { {{- where(row) }}, {{ row.told.low ~ ", " if "low" in row.told }}{{ row.told.high }}},{{ others(row) }}
{%- endfor %}
};
{%- endfor %}
{%- if snapshot.blanks %}

/* Where numbers lie that are zero while a count is, how many, and where that count is. */
static const struct {
    {{ place }} place;
    {{ place }} count;
    {{ place }} after;
} {{ name }}_stored_blanks[] = {
{%- for row in snapshot.blanks %}
    { {{- where(row) }}, {{ macro }}_PLACE({{ row.told.after }})},{{ others(row) }}
{%- endfor %}
};
{%- endif %}
{%- macro rows(table, most) %}
{%- if annotated %}
    /*@ loop unroll {{ most }}; */
{%- endif %}
    for (uint32_t k = 0u; k < {{ most }}u; k++) {
{%- endmacro %}
{%- macro numbers(table, most) %}
{%- if annotated %}
        /*@ loop unroll {{ most }}; */
{%- endif %}
        for (int32_t i = 0; i < (int32_t){{ table }}[k].count; i++) {
{%- endmacro %}
{%- if snapshot.ranges or snapshot.blanks %}

{% endif %}/* Whether all numbers of a stored model are within their ranges. */
static bool {{ name }}_stored_within({{ name }}_stored_t *stored)
{
{%- for kind in snapshot.ranges %}
{%- set table = name ~ "_stored_" ~ kind.what ~ "_ranges" %}
{{- rows(table, kind.rows | length) }}
{%- if kind.width %}
        const uint32_t width = {{ kind.width }};
{%- else %}
        const {{ kind.type }} high = {{ table }}[k].high;
        const {{ kind.type }} low = {{ kind.low or table ~ "[k].low" }};
{%- endif %}
{{- numbers(table, kind.rows | map(attribute="count") | max) }}
{%- if kind.width %}
            if ({{ name }}_stored_natural(stored, {{ table }}[k].place + ((uint32_t)i * width), width) > {{ table }}[k].high) {
{%- else %}
            const {{ kind.type }} value = {{ kind.cast }}{{ name }}_stored_{{ kind.reader }}(stored, {{ table }}[k].place, i);
{%- if kind.reader == "real" %}
            /* not "if (.. < low)": NaN must fail */
{%- endif %}
            if (!((value >= low) && (value <= high))) {
{%- endif %}
                return false;
            }
        }
    }
{%- endfor %}
{%- if snapshot.blanks %}
{%- set table = name ~ "_stored_blanks" %}
{{- rows(table, snapshot.blanks | length) }}
        if (({{ name }}_stored_count(stored, {{ table }}[k].after, 0) == 0)
                && !{{ snapshot.all_zero }}(stored, {{ table }}[k].place, (int32_t){{ table }}[k].count)) {
            return false;
        }
    }
{%- endif %}
{%- if not (snapshot.ranges or snapshot.blanks) %}
    (void)stored;
{%- endif %}
    return true;
}
