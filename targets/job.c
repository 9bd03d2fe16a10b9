/* One job for a model on an emulated device.  SPDX-License-Identifier: 0BSD
 *
 * In: the model's bytes; which function to call; how many samples; the samples, each of its inputs and then its label
 * (inputs only, where the function is a question, or where there are no labels).
 * Out: for each sample what the question (the main one, if no other) wrote and its status, and the status of what took
 * the sample (update, if no visit); what the function returned that takes no sample, and what it wrote; the model.
 */
#include "device.h"
#include "$name.h"

static ${name}_t model;
static $real x[${macro}_DIM];
$label
static $real values[$values];
static int32_t position[$positions];

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
        return $main;
    }
}

static int32_t take(uint32_t which)
{
    switch (which) {
$takes
    default:
        return 0; /* a question */
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
        if ((order[0] < ${visits}u) || (order[0] == ${run}u)) {
            statuses[0] = ask(order[0]);
        }
        if ($labelled) {
            $read_label
            statuses[1] = take(order[0]);
        }
        device_write(values, (uint32_t)sizeof values);
        device_write(position, (uint32_t)sizeof position);
        device_write(statuses, (uint32_t)sizeof statuses);
    }
    result = call(order[0]);
    device_write(&result, (uint32_t)sizeof result);
    device_write(values, (uint32_t)sizeof values);
    device_write(position, (uint32_t)sizeof position);
    device_write(&model, (uint32_t)sizeof model);
    device_close();
}
