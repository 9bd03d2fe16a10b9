/* What a page in a browser calls of {{ name }}, and where it finds the model's numbers.
 *
 * SPDX-License-Identifier: 0BSD
 */
#include "{{ name }}.h"

static {{ name }}_t model;
static {{ real }} x[{{ macro }}_{{ sample }}];
{%- if label %}
static {{ label.type }} label[{{ label.count }}];
{%- endif %}
static {{ real }} values[{{ values }}];
static int32_t position[{{ positions }}];

void *page_model(void);
void *page_x(void);
void *page_label(void);
void *page_values(void);
void *page_position(void);
void page_init(void);
int32_t page_ask(void);
int32_t page_learn(void);
int32_t page_alarm(void);
uint32_t page_hash(void);

void *page_model(void)
{
    return &model;
}

void *page_x(void)
{
    return x;
}

void *page_label(void)
{
    return {{ "label" if label else "0" }};
}

void *page_values(void)
{
    return values;
}

void *page_position(void)
{
    return position;
}

void page_init(void)
{
    {{ name }}_init(&model);
}

/* The forecast of the row, before it is learned.  Of a signal, when a step is ready: else what push returned. */
int32_t page_ask(void)
{
{%- if push %}
    const int32_t status = {{ push }};
    if (status != {{ macro }}_READY) {
        return status;
    }
{%- endif %}
    return {{ forecast }};
}

int32_t page_learn(void)
{
    return {{ learn }};
}

/* The alarm's level and threshold, and the rows since it began. */
int32_t page_alarm(void)
{
    return {{ alarm or "0" }};
}

uint32_t page_hash(void)
{
    return {{ name }}_hash(&model);
}
