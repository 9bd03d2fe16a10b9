/* One job for a model on an emulated device.  SPDX-License-Identifier: 0BSD
 *
 * In: the model's bytes; which function to call; how many samples; the samples, each of its inputs and then its label
 * (inputs only, where the function is a question).
 * Out: for each sample the status of the question (predict, if no other) and what it wrote, and the status of update;
 * what the function returned; the model.
 */
#include "device.h"
#include "$name.h"

static ${name}_t model;
static $real x[${macro}_DIM];
static $label_type label[$labels];
static $real values[${macro}_OUTPUTS];
static int32_t position[1];

static uint32_t call(uint32_t which)
{
    switch (which) {
$cases
    default:
        return 0u; /* the samples only */
    }
}

static int32_t ask(uint32_t which)
{
    switch (which) {
$questions
    default:
        return ${name}_predict(&model, x, values);
    }
}

void device_job(void)
{
    uint32_t order[2];
    uint32_t result;
    device_open();
    device_read(&model, (uint32_t)sizeof model);
    device_read(order, (uint32_t)sizeof order);
    for (uint32_t t = 0u; t < order[1]; t++) {
        int32_t statuses[2] = {0, 0};
        device_read(x, (uint32_t)sizeof x);
        statuses[0] = ask(order[0]);
        if (order[0] == ${nothing}u) {
            device_read(label, (uint32_t)sizeof label);
            statuses[1] = ${name}_update(&model, x, $label);
        }
        device_write(values, (uint32_t)sizeof values);
        device_write(position, (uint32_t)sizeof position);
        device_write(statuses, (uint32_t)sizeof statuses);
    }
    result = call(order[0]);
    device_write(&result, (uint32_t)sizeof result);
    device_write(&model, (uint32_t)sizeof model);
    device_close();
}
