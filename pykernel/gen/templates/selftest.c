{# The self-test: the sequence of pykernel/gen/rehearsal.py in C.  r: its context. -#}
{%- set k = r.kind -%}
{%- set off = ", 0" if r.off else "" -%}
{%- macro hashed() %}
    hashed = {{ name }}_hash(s);
    t.found = {{ name }}_crc32(t.found, (const unsigned char *)&hashed, 4u);
{%- endmacro -%}
/* What the self-test works with. */
typedef struct {
    {{ name }}_t *s;
    int32_t seed; /* the latest random number */
    uint32_t found; /* CRC-32 of what calls returned and wrote */
    {{ real }} x[{{ r.columns }}]; /* a sample{{ ", and its label" if r.behind }} */
{%- if r.label != "none" and not r.behind %}
    {{ label_type }} y[{{ r.outputs or 1 }}]; /* its label */
{%- endif %}
{%- if r.answers | length > 1 %}
    union { {%- for type, member, length in r.answers %} {{ type }} {{ member }}[{{ length }}];{% endfor %} } answer;
{%- else %}
{%- for type, member, length in r.answers %}
    {{ type }} answer[{{ length }}];
{%- endfor %}
{%- endif %}
} {{ name }}_trial_t;

/* Make up a sample of one of {{ r.kinds }} kinds.  moved: whether it is one of the last ones, which lie elsewhere. */
static void {{ name }}_make_up({{ name }}_trial_t *t, int32_t kind, bool moved)
{
    /* the middle of the samples{{ ", then of the last ones" if r.rows == 2 else " around each of some places, then of the last ones" }}; then twice their largest distance from it */
    static const {{ r.number }} places[{{ (r.rows + 1) * r.columns }}] = {
        {{ r.places }}
    };
    static const int8_t halvings[{{ r.kinds }}] = { {{- r.halvings -}} }; /* of this distance, for each kind */
    const {{ r.number }} *const middle = &places[(moved ? {{ r.rows - 1 }} : {{ "(t->seed % " ~ (r.rows - 1) ~ ")" if r.rows > 2 else "0" }}) * {{ r.columns }}];
    for (int32_t j = 0; j < {{ r.columns }}; j++) {
        t->seed = ((t->seed * 75) + 74) % 65537;
        t->x[j] = {{ "(int16_t)" if int16 }}{{ r.made_up }}(middle[j], places[{{ r.rows * r.columns }} + j], halvings[kind]
{%- if r.behind and r.label_more %} + ((j < {{ r.width }}) ? 0 : {{ r.label_more }}){% endif %}, t->seed);
    }
{%- if r.outputs and not r.behind %}
    for (int32_t o = 0; o < {{ r.outputs }}; o++) {
        t->seed = ((t->seed * 75) + 74) % 65537;
        t->y[o] = {{ r.made_up }}(0, {{ r.label_size }}, halvings[kind]{% if r.label_more %} + {{ r.label_more }}{% endif %}, t->seed);
    }
{%- elif r.label == "class" %}
    t->seed = ((t->seed * 75) + 74) % 65537;
    t->y[0] = t->seed % {{ r.classes }};
{%- endif %}
{%- if r.completes %}
    if ((kind == {{ k.partly }}) || (kind == {{ k.empty }})) {
        volatile {{ real }} most = {{ r.refused }}; /* volatile: the compiler must not know the value */
        const {{ real }} infinite = most * most;
        for (int32_t j = 0; j < {{ r.width }}; j++) {
            if ((kind == {{ k.empty }}) || (j == (t->seed % {{ r.width }}))) {
                t->x[j] = infinite - infinite; /* NaN: missing */
            }
        }
    }
{%- endif %}
    if (kind == {{ k.refused }}) {
        t->x[0] = {{ r.refused }};
    }
{%- if r.label != "none" %}
    if (kind == {{ k.mislabelled }}) {
        {{ r.label_at }} = {{ r.classes if r.label == "class" else r.refused_label }};
    }
{%- endif %}
}

/* Make the calls whose bits are set, and hash what they return and write.{% if r.off %}  off: the argument of {{ r.off }}.{% endif %} */
static void {{ name }}_call({{ name }}_trial_t *t, uint32_t calls{{ ", int32_t off" if r.off }})
{
    static const {{ r.size }} sizes[{{ r.calls | length }}] = { {{- r.sizes | join(", ") -}} }; /* of the answers, in bytes */
    for (uint32_t i = 0u; i < {{ r.calls | length }}u; i++) {
        if (((calls >> i) & 1u) != 0u) {
            int32_t status;
            switch (i) {
{%- for call in r.calls[:-1] %}
            case {{ loop.index0 }}u: status = {{ call }}; break;
{%- endfor %}
            default: status = {{ r.calls[-1] }}; break;
            }
            t->found = {{ name }}_crc32(t->found, (const unsigned char *)&status, 4u);
{%- if r.answers %}
            t->found = {{ name }}_crc32(t->found, (const unsigned char *)&t->answer, sizes[i]);
{%- endif %}
        }
    }
}

{% if r.guards or r.fields -%}
/* Make such calls with two new samples. */
static void {{ name }}_call_twice({{ name }}_trial_t *t, uint32_t calls)
{
    for (uint32_t i = 0u; i < 2u; i++) {
        {{ name }}_make_up(t, 0, false);
        {{ name }}_call(t, calls{{ off }});
    }
}

{% endif -%}
int32_t {{ name }}_selftest({{ name }}_t *s)
{
    static const {{ r.mask }} asked[{{ r.kinds }}] = { {{- r.asked -}} }; /* the calls with each kind of sample */
{%- if r.events %}
    /* further calls */
    static const struct {
        {{ r.at }} step;
        {{ r.mask }} calls;
{%- if r.off %}
        int8_t off;
{%- endif %}
    } events[{{ r.events | length }}] = {
{%- for step, calls, off in r.events %}
        { {{- step }}, 0x{{ "%X" % calls }}{{ ", %d" % off if r.off }}},
{%- endfor %}
    };
{%- endif %}
    {{ name }}_trial_t t;
    int32_t last = 1;
    uint32_t hashed;
    /* by hand: an initialiser may become a call of memset */
    for (uint32_t i = 0u; i < (uint32_t)sizeof t; i++) {
        ((unsigned char *)&t)[i] = 0u;
    }
    t.s = s;
    t.seed = 1;
{%- if not int16 %}
    t.found = {{ name }}_arithmetic();
{%- endif %}
    {{ name }}_{{ clear if not persists or learned else "init" }}(s);
    for (int32_t i = 0; i < {{ r.samples }}; i++) {
        const int32_t n = {{ "i" if r.stride == 1 else "i / " ~ r.stride }};
        const int32_t kind = n % {{ r.kinds }};
        if ((kind == {{ k.repeated }}) || (n == 1)) {
            t.seed = last;
        }
        last = t.seed;
        {{ name }}_make_up(&t, kind, n >= {{ r.moved }});
{%- if r.events %}
        for (uint32_t e = 0u; e < {{ r.events | length }}u; e++) {
            if (((int32_t)events[e].step == n){{ " && ((i %% %d) == 0)" % r.stride if r.stride > 1 }}) {
                {{ name }}_call(&t, events[e].calls{{ ", events[e].off" if r.off }});
            }
        }
{%- endif %}
        {{ name }}_call(&t, {% if r.stride > 1 %}((i % {{ r.stride }}) == 0) ? asked[kind] : (asked[kind] & 0x{{ "%X" % r.learn }}u){% else %}asked[kind]{% endif %}{{ off }});
    }
{{- hashed() }}
{%- if r.guards %}
    {
        /* the highest bytes of counts: if one is out of range, the calls that read it refuse */
        static const struct {
            {{ r.place }} place;
            {{ r.mask }} calls;
        } counts[{{ r.guards | length }}] = {
{%- for field, byte, calls in r.guards %}
            {offsetof({{ name }}_t, {{ field }}){{ " + %uu" % byte if byte }}, 0x{{ "%X" % calls }}},
{%- endfor %}
        };
        for (uint32_t i = 0u; i < {{ r.guards | length }}u; i++) {
            unsigned char *const at = (unsigned char *)s + counts[i].place;
            const unsigned char old = *at;
            *at = {{ r.wrong }}u;
            {{ name }}_call_twice(&t, counts[i].calls);
            *at = old;
        }
    }
{%- endif %}
{%- if r.fields %}
    {
        /* for each field: how many numbers lie between the field before and this one, and how many it has */
        static const struct {
            {{ r.count }} skipped, count;
        } fields[{{ r.fields }}] = {
            {{ r.numbers }}
        };
        const uint32_t found = t.found;
        /* with a number of a field overwritten, then with all of them, the model goes on.  What it says then does not
         * count: floating-point libraries differ */
        for (uint32_t every = 0u; every < 2u; every++) {
            {{ real }} *at = ({{ real }} *)(void *)s;
            for (uint32_t i = 0u; i < {{ r.fields }}u; i++) {
                at += fields[i].skipped;
                for (uint32_t j = 0u; j < (every * fields[i].count); j++) {
                    at[j] = {{ r.damage }};
                }
                const {{ real }} old = *at;
                *at = {{ r.damage }};
                {{ name }}_call_twice(&t, 0x{{ "%X" % r.struck }}u);
                *at = old;
                at += fields[i].count;
            }
        }
        t.found = found;
    }
{%- endif %}
{%- if r.last %}
    {{ name }}_call(&t, 0x{{ "%X" % r.last }}u{{ off }});
{%- endif %}
{%- if r.restarts %}
{{- hashed() }}
{%- endif %}
    {{ name }}_{{ clear }}(s);
    return (t.found == 0x{{ "%08X" % selftest_hash }}u) ? {{ macro }}_DONE : {{ macro }}_BROKEN_BUILD;
}
