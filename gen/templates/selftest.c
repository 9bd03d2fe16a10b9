{# The self-test: the sequence of gen/rehearsal.py in C.  r: its context. -#}
{%- macro told(call) %}
{{ caller() }}status = {{ name }}_{{ call.name }}(s{{ call.given }});
{{ caller() }}found = {{ name }}_told(found, &status, 4u);
{%- if call.answer %}
{{ caller() }}found = {{ name }}_told(found, {{ call.answer }}, {{ call.size }}u);
{%- endif %}
{%- endmacro %}
{%- set k = r.kind -%}
/* The hash FNV-1a of some bytes, behind those of which found is the hash. */
static uint32_t {{ name }}_told(uint32_t found, const void *what, uint32_t count)
{
    const unsigned char *bytes = (const unsigned char *)what;
    {{ macro }}_LOOP(9101)
    for (uint32_t i = 0u; i < count; i++) {
        {{ macro }}_TURN(9101)
        found = (found ^ bytes[i]) * {{ r.prime }}u;
    }
    return found;
}

/* Where the self-test's samples are. */
static const {{ r.number }} {{ name }}_centers[{{ r.rows * r.width }}] = {
    {{ r.centers }}
};
static const {{ r.number }} {{ name }}_sizes[{{ r.width }}] = {
    {{ r.sizes }}
};

/* Make up a sample of some kind, and return where the random numbers are. */
static int32_t {{ name }}_make_up({{ real }} *x{% if r.label != "none" %}, {{ label_type }} *y{% endif %}, int32_t kind, bool moved, int32_t seed)
{
    int32_t far = {{ r.halvings }};
{%- if r.label in ("real", "reals") %}
    const int32_t far_label = (kind == {{ k.outlying }}) ? 0 : (kind == {{ k.middle }}) ? {{ r.middle }} : {{ r.label_halvings }};
{%- endif %}
    const {{ r.number }} *center = &{{ name }}_centers[(moved ? {{ r.rows - 1 }} : {{ "(seed % " ~ (r.rows - 1) ~ ")" if r.rows > 2 else "0" }}) * {{ r.width }}];
    if (kind == {{ k.outlying }}) {
        far = 0;
    } else if (kind == {{ k.middle }}) {
        far = {{ r.middle }};
    } else if ((kind >= {{ k.narrow }}) && (kind < {{ k.outlying }})) {
        far += {{ r.close }};
    }
    {{ macro }}_LOOP(9103)
    for (int32_t j = 0; j < {{ r.width }}; j++) {
        {{ macro }}_TURN(9103)
        seed = ((seed * 75) + 74) % 65537;
        x[j] = {{ "(int16_t)" if int16 }}{{ r.made_up }}(center[j], {{ name }}_sizes[j], far, seed);
    }
{%- if r.label in ("real", "reals") %}
    {{ macro }}_LOOP(9104)
    for (int32_t o = 0; o < {{ r.outputs }}; o++) {
        {{ macro }}_TURN(9104)
        seed = ((seed * 75) + 74) % 65537;
        y[o] = {{ r.made_up }}({{ r.zero }}, {{ r.label_size }}, far_label, seed);
    }
{%- elif r.label == "class" %}
    seed = ((seed * 75) + 74) % 65537;
    y[0] = seed % {{ r.classes }};
{%- endif %}
{%- if r.completes %}
    if ((kind == {{ k.partly }}) || (kind == {{ k.empty }})) {
        volatile {{ real }} most = {{ r.refused }}; /* volatile: the compiler must not know the value */
        const {{ real }} infinite = most * most;
        {{ macro }}_LOOP(9108)
        for (int32_t j = 0; j < {{ r.width }}; j++) {
            {{ macro }}_TURN(9108)
            if ((kind == {{ k.empty }}) || (j == (seed % {{ r.width }}))) {
                x[j] = infinite - infinite; /* NaN: missing */
            }
        }
    }
{%- endif %}
    if (kind == {{ k.refused }}) {
        x[0] = {{ r.refused }};
    }
{%- if r.label != "none" %}
    if (kind == {{ k.mislabelled }}) {
        y[0] = {{ r.classes if r.label == "class" else r.refused_label }};
    }
{%- endif %}
    return seed;
}
{%- set made = name ~ "_make_up(x, " ~ ("y, " if r.label != "none" else "") %}
{#- one memory for samples and answers: what calls it has none of its own on the stack #}
{%- macro taken(calls) %}, {{ real }} *x{% if r.label != "none" %}, {{ label_type }} *y{% endif %}
{%- for b in r.buffers if b.name in calls | map(attribute="answer") %}, {{ b.type }} *{{ b.name }}{% endfor %}
{%- endmacro %}
{%- macro passed(calls) %}, x{% if r.label != "none" %}, y{% endif %}
{%- for b in r.buffers if b.name in calls | map(attribute="answer") %}, {{ b.name }}{% endfor %}
{%- endmacro %}
{%- for calls, counts in r.guards %}

/* Counts that are out of range are refused{{ ", by other functions" if not loop.first }}. */
static uint32_t {{ name }}_refuse{{ loop.index if not loop.first }}({{ name }}_t *s, int32_t *count{{ taken(calls) }}, int32_t seed, uint32_t found)
{
    int32_t status;
    const int32_t old = *count;
    (void){{ made }}0, false, seed);
    *count = {{ r.wrong }};
{%- for c in calls %}
    status = {{ name }}_{{ c.name }}(s{{ c.given }});
    found = {{ name }}_told(found, &status, 4u);
{%- endfor %}
    *count = old;
    return found;
}
{%- endfor %}
{%- if r.numbers %}

/* With numbers that are overwritten, the model goes on.  What it says then does not count: floating-point libraries differ. */
static void {{ name }}_overwrite({{ name }}_t *s, {{ real }} *at, int32_t count, {{ real }} value{{ taken(r.struck) }}, int32_t seed)
{
    {{ macro }}_LOOP(9105)
    for (int32_t i = 0; i < count; i++) {
        {{ macro }}_TURN(9105)
        at[i] = value;
    }
    (void){{ made }}0, false, seed);
{%- for c in r.struck %}
    (void){{ name }}_{{ c.name }}(s{{ c.given }});
{%- endfor %}
}
{%- endif %}

int32_t {{ name }}_selftest({{ name }}_t *s)
{
    {{ real }} x[{{ r.width }}];
{%- if r.label != "none" %}
    {{ label_type }} y[{{ r.outputs if r.label != "class" else 1 }}];
{%- endif %}
{%- for b in r.buffers %}
    {{ b.type }} {{ b.name }}[{{ b.count }}];
{%- endfor %}
    int32_t seed = 1;
    int32_t last = 1;
    int32_t status;
    uint32_t found = 0x{{ "%08X" % r.offset }}u;
    uint32_t hashed;
{%- for b in r.buffers %}
    {{ macro }}_LOOP(9106)
    for (int32_t i = 0; i < {{ b.count }}; i++) {
        {{ macro }}_TURN(9106)
        {{ b.name }}[i] = {{ b.zero }};
    }
{%- endfor %}
    {{ name }}_{{ clear if not persists or learned else "init" }}(s);
    {{ macro }}_LOOP(9102)
    for (int32_t t = 0; t < {{ r.samples }}; t++) {
        {{ macro }}_TURN(9102)
        const int32_t n = {{ "t" if r.stride == 1 else "t / " ~ r.stride }};
        const int32_t kind = n % {{ r.kinds }};
        if ((kind == {{ k.repeated }}) || (n == 1)) {
            seed = last;
        }
        last = seed;
        seed = {{ made }}kind, n >= {{ r.moved }}, seed);
{%- if r.stride > 1 %}
        if ((t % {{ r.stride }}) == 0) {
{%- else %}
        {
{%- endif %}
{%- if r.actions or r.visits or r.readings %}
{%- set actions = r.actions | rejectattr("name", "equalto", "restart") | list %}
{%- if actions | length > 1 %}
            if (n == {{ r.turned }}) {
{%- for c in actions[:0:-1] %}
{%- call told(c) %}                {% endcall %}
{%- endfor %}
            }
{%- endif %}
            if ((n == 0) || (n == {{ r.steps // 2 }}) || (n == {{ r.steps - 1 }})) {
{%- for c in actions %}
{%- call told(c) %}                {% endcall %}
{%- endfor %}
{%- for c in r.visits + r.readings %}
{%- call told(c) %}                {% endcall %}
{%- endfor %}
            }
{%- endif %}
{%- for calls, kinds in r.between if calls %}
            if ((kind == {{ kinds | join(") || (kind == ") }})) {
{%- for c in calls %}
{%- call told(c) %}                {% endcall %}
{%- endfor %}
            }
{%- endfor %}
{%- if r.switches %}
            if (n == {{ r.steps // 4 }}) {
{%- for c in r.switches %}
{%- for value in (-1, 1, 0) %}
                status = {{ name }}_{{ c.name }}(s, {{ value }});
                found = {{ name }}_told(found, &status, 4u);
{%- if value == 1 %}
{%- for u in r.updates %}
{%- call told(u) %}                {% endcall %}
{%- endfor %}
{%- endif %}
{%- endfor %}
{%- endfor %}
            }
{%- endif %}
        }
{%- if r.gathers %}
        if ((kind == {{ k.gathered }}) || (kind == {{ k.gathered + 1 }})) {
{%- for c in r.gathers + r.labels %}
{%- call told(c) %}            {% endcall %}
{%- endfor %}
        } else {
{%- for c in r.updates %}
{%- call told(c) %}            {% endcall %}
{%- endfor %}
        }
{%- else %}
{%- for c in r.updates %}
{%- call told(c) %}        {% endcall %}
{%- endfor %}
{%- endif %}
    }
    hashed = {{ name }}_hash(s);
    found = {{ name }}_told(found, &hashed, 4u);
{%- for calls, counts in r.guards %}
{%- set guard = loop %}
{%- for count in counts %}
    found = {{ name }}_refuse{{ guard.index if not guard.first }}(s, &s->{{ count }}{{ passed(calls) }}, seed, found);
{%- endfor %}
{%- endfor %}
{%- if r.numbers %}
    {
        {{ real }} *const numbers[{{ r.numbers | length }}] = {
{%- for at, count in r.numbers %}
            &s->{{ at }},
{%- endfor %}
        };
        static const int32_t counts[{{ r.numbers | length }}] = { {{- r.numbers | map(attribute=1) | join(", ") -}} };
        /* one number of each field, which is written back, then all */
        {{ macro }}_LOOP(9107)
        for (int32_t i = 0; i < {{ 2 * (r.numbers | length) }}; i++) {
            {{ macro }}_TURN(9107)
            const bool first = i < {{ r.numbers | length }};
            const int32_t field = i % {{ r.numbers | length }};
            const {{ real }} old = *numbers[field];
            {{ name }}_overwrite(s, numbers[field], first ? 1 : counts[field], {{ r.damage }}{{ passed(r.struck) }}, seed + i + 1);
            if (first) {
                *numbers[field] = old;
            }
        }
    }
{%- endif %}
{%- for c in r.actions %}
{%- call told(c) %}    {% endcall %}
{%- endfor %}
{%- if r.restarts %}
    hashed = {{ name }}_hash(s);
    found = {{ name }}_told(found, &hashed, 4u);
{%- endif %}
    {{ name }}_{{ clear }}(s);
    const bool sound = {% if not int16 %}{{ name }}_arithmetic() && {% endif %}(found == 0x{{ "%08X" % selftest_hash }}u);
    return sound ? {{ macro }}_DONE : {{ macro }}_BROKEN_BUILD;
}
