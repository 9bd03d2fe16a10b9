{# The self-test: the sequence of pykernel/gen/rehearsal.py in C.  r: its context. -#}
{%- set k = r.kind -%}
{%- set stored = 1 if r.alike else r.columns -%}
{%- set j = "0" if r.alike else "j" -%}
{%- set before = 1 if r.real_bytes == 8 and r.answers else 0 -%}
/* What the self-test works with. */
typedef struct {
    {{ name }}_t *s;
    int32_t seed; /* the latest random number */
    uint32_t found; /* CRC-32 of what calls returned and wrote */
    {{ real }} x[{{ r.columns }}]; /* a sample{{ ", and its label" if r.behind }} */
{%- if r.label != "none" and not r.behind %}
    {{ label_type }} y[{{ r.outputs or 1 }}]; /* its label */
{%- endif %}
    struct {
        uint32_t status[{{ before + 1 }}]; /* {{ "the last one: " if before }}what the latest call returned */
{%- if r.answers | length > 1 %}
        union { {%- for type, member, length in r.answers %} {{ type }} {{ member }}[{{ length }}];{% endfor %} } answer;
{%- else %}
{%- for type, member, length in r.answers %}
        {{ type }} answer[{{ length }}];
{%- endfor %}
{%- endif %}
    } told;
} {{ name }}_trial_t;

/* Make up a sample of one of {{ r.kinds }} kinds.  moved: whether it lies elsewhere. */
static void {{ name }}_make_up({{ name }}_trial_t *t, int32_t kind, bool moved)
{
    /* the middle of the samples{{ ", then of those that lie elsewhere" if r.rows == 2 else " around each of some places, then of those that lie elsewhere" }}; then twice their largest distance from it */
    static const {{ macro }}_FLASH {{ r.number }} places[{{ (r.rows + 1) * stored }}] = {
        {{ r.places }}
    };
    static const {{ macro }}_FLASH int8_t halvings[{{ r.kinds }}] = { {{- r.halvings -}} }; /* of this distance, for each kind */
    const {{ macro }}_FLASH {{ r.number }} *const middle = &places[{{ "(" if stored > 1 }}moved ? {{ r.rows - 1 }} : {{ "(t->seed % " ~ (r.rows - 1) ~ ")" if r.rows > 2 else "0" }}{{ ") * " ~ stored if stored > 1 }}];
    for (int32_t j = 0; j < {{ r.columns }}; j++) {
        t->seed = ((t->seed * 75) + 74) % 65537;
        t->x[j] = {{ "(int16_t)" if int16 }}{{ r.made_up }}(middle[{{ j }}], places[{{ r.rows * stored }}{{ "" if r.alike else " + j" }}], halvings[kind]
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

/* Make the calls whose bits are set, and hash what they return and write. */
static void {{ name }}_call({{ name }}_trial_t *t, uint32_t calls)
{
    for (uint32_t i = 0u; i < {{ r.calls | length + 1 }}u; i++) {
        if (((calls >> i) & 1u) != 0u) {
            uint32_t status;
            switch (i) {
{%- for call in r.calls %}
            case {{ loop.index0 }}u: status = (uint32_t){{ call }}; break;
{%- endfor %}
            default: status = {{ name }}_hash(t->s); break;
            }
            t->told.status[{{ before }}] = status;
            t->found = {{ name }}_crc32(t->found, {{ "&((const unsigned char *)&t->told)[4]" if before else "(const unsigned char *)&t->told" }}, {{ r.told }}u);
        }
    }
}

{% if r.guards or r.fields -%}
/* Overwrite the highest byte of a number, make such calls with two new samples, and write the byte back. */
static void {{ name }}_strike({{ name }}_trial_t *t, unsigned char *at, uint8_t wrong, uint32_t calls)
{
    const unsigned char old = *at;
    *at = wrong;
    for (uint32_t i = 0u; i < 2u; i++) {
        {{ name }}_make_up(t, 0, false);
        {{ name }}_call(t, calls);
    }
    *at = old;
}

{% endif -%}
int32_t {{ name }}_selftest({{ name }}_t *s)
{
    static const {{ macro }}_FLASH {{ r.asked_type }} asked[{{ r.kinds }}] = { {{- r.asked -}} }; /* the calls with each kind of sample */
{%- if r.events %}
    /* further calls: when, and which.  No table of structs: avr-gcc 5 reads their members in RAM */
    static const {{ macro }}_FLASH {{ r.at }} when[{{ r.events | length }}] = { {{- r.events | map(attribute=0) | join(", ") -}} };
    static const {{ macro }}_FLASH {{ r.mask }} which[{{ r.events | length }}] = {
{%- for step, calls in r.events %}
        0x{{ "%X" % calls }},
{%- endfor %}
    };
{%- endif %}
    {{ name }}_trial_t t;
    int32_t last = 1;
    /* an answer that no call has written is hashed, too.  By hand: an initialiser may become a call of memset */
    for (uint32_t i = 0u; i < (uint32_t)sizeof t.told; i++) {
        ((unsigned char *)&t.told)[i] = 0u;
    }
    t.s = s;
    t.seed = 1;
    t.found = {{ "0u" if int16 else name ~ "_arithmetic()" }};
    {{ name }}_{{ clear if not persists or learned else "init" }}(s);
    for (int32_t i = 0; i < {{ r.samples }}; i++) {
        const int32_t n = {{ "i" if r.stride == 1 else "i / " ~ r.stride }};
        const int32_t kind = n % {{ r.kinds }};
        if ((kind == {{ k.repeated }}) || (n == 1)) {
            t.seed = last;
        }
        last = t.seed;
        {{ name }}_make_up(&t, kind, {{ r.moved }});
{%- for step, fields in r.armed | groupby(0) %}
        if (n == {{ step }}) { /* not after so many rows: the self-test is short */
{%- for _, field, value in fields %}
            s->{{ field }} = {{ value }};
{%- endfor %}
        }
{%- endfor %}
{%- if r.events %}
        for (uint32_t e = 0u; e < {{ r.events | length }}u; e++) {
            if (((int32_t)when[e] == n){{ " && ((i %% %d) == 0)" % r.stride if r.stride > 1 }}) {
                {{ name }}_call(&t, which[e]);
            }
        }
{%- endif %}
        {{ name }}_call(&t, {% if r.stride > 1 %}((i % {{ r.stride }}) == 0) ? asked[kind] : (asked[kind] & 0x{{ "%X" % r.learn }}u){% else %}asked[kind]{% endif %});
    }
    {{ name }}_call(&t, 0x{{ "%X" % r.hashed }}u); /* the state's hash */
{%- if r.guards %}
    {
        /* the highest bytes of counts: if one is out of range, the calls that read it refuse */
{%- set alike = r.guards | map(attribute=2) | unique | list | length == 1 %}
        static const {{ macro }}_FLASH {{ r.place }} counts[{{ r.guards | length }}] = {
{%- for field, byte, calls in r.guards %}
            offsetof({{ name }}_t, {{ field }}){{ " + %uu" % byte if byte }},
{%- endfor %}
        };
{%- if not alike %}
        static const {{ macro }}_FLASH {{ r.guard_mask }} readers[{{ r.guards | length }}] = {
{%- for field, byte, calls in r.guards %}
            0x{{ "%X" % calls }},
{%- endfor %}
        };
{%- endif %}
        for (uint32_t i = 0u; i < {{ r.guards | length }}u; i++) {
            {{ name }}_strike(&t, &((unsigned char *)s)[counts[i]], {{ r.wrong }}u, {{ "0x%Xu" % r.guards[0][2] if alike else "readers[i]" }});
        }
    }
{%- endif %}
{%- if r.fields %}
    {
        /* how many numbers each field has{{ "; negative: how many lie between two fields" if r.gaps }} */
        static const {{ macro }}_FLASH {{ r.count }} fields[{{ r.fields }}] = {
            {{ r.numbers }}
        };
        const uint32_t found = t.found;
        /* with a number of a field too large, then with all of them, the model goes on.  What it says then does not
         * count: floating-point libraries differ */
        for (int32_t every = 0; every < 2; every++) {
            {{ real }} *const numbers = ({{ real }} *)(void *)s;
            int32_t at = 0;
            for (uint32_t i = 0u; i < {{ r.fields }}u; i++) {
{%- if r.gaps %}
                if (fields[i] < 0) {
                    at -= fields[i];
                    continue;
                }
{%- endif %}
                for (int32_t j = 0; j < (every * fields[i]); j++) {
                    numbers[at + j] = {{ r.damage }};
                }
                {{ name }}_strike(&t, &((unsigned char *)&numbers[at])[{{ r.real_bytes - 1 }}], {{ r.damaged }}u, 0x{{ "%X" % r.struck }}u);
                at += fields[i];
            }
        }
        t.found = found;
    }
{%- endif %}
{%- if r.last %}
    {{ name }}_call(&t, 0x{{ "%X" % r.last }}u);
{%- endif %}
    {{ name }}_{{ clear }}(s);
    return (t.found == 0x{{ "%08X" % selftest_hash }}u) ? {{ macro }}_DONE : {{ macro }}_BROKEN_BUILD;
}
