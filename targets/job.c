/* One job for a model on an emulated device.  SPDX-License-Identifier: 0BSD
 *
 * In: the model's bytes; which function to call; how many samples; the samples, each of its inputs and then its label.
 * Out: for each sample the forecast and the statuses of predict and update; what the function returned; the model.
 */
#include "device.h"
#include "$name.h"

static ${name}_t model;
static $real sample[${macro}_DIM + 1];

static uint32_t call(uint32_t which)
{
    switch (which) {
$cases
    default:
        return 0u; /* the samples only */
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
        $real forecast = 0;
        int32_t statuses[2];
        device_read(sample, (uint32_t)sizeof sample);
        statuses[0] = ${name}_predict(&model, sample, &forecast);
        statuses[1] = ${name}_update(&model, sample, sample[${macro}_DIM]);
        device_write(&forecast, (uint32_t)sizeof forecast);
        device_write(statuses, (uint32_t)sizeof statuses);
    }
    result = call(order[0]);
    device_write(&result, (uint32_t)sizeof result);
    device_write(&model, (uint32_t)sizeof model);
    device_close();
}
