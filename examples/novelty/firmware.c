/* A monitor in a firmware's loop: each sample is judged and learned; what is said of it goes to standard output, alarms only.
 *
 *     cc -O2 -std=c99 -ffp-contract=off -Imonitor/src firmware.c monitor/src/monitor.c -o firmware
 *     ./firmware < samples.txt > alarms.csv
 *
 * On the device, scanf is the ADC and the filter bank, and printf is the relay.
 */
#include "monitor.h"

#include <stdio.h>

static monitor_t model; /* MONITOR_RAM_BYTES, no more will ever be needed */

int main(void)
{
    float x[MONITOR_DIM];
    int sample = 0;
    if (monitor_selftest(&model) != 0) {
        fputs("this build does not compute what the simulation computes\n", stderr);
        return 1;
    }
    monitor_init(&model);
    for (;;) {
        float state[2]; /* level and threshold */
        int status = 0;
        for (int j = 0; j < MONITOR_DIM; j++) {
            if (scanf("%f", &x[j]) != 1) {
                fprintf(stderr, "%d samples, %u bytes of RAM\n", sample, (unsigned)MONITOR_RAM_BYTES);
                return 0;
            }
        }
        status = (int)monitor_update(&model, x); /* below 0: an input is out of range, and nothing changed */
        (void)monitor_alarm(&model, state);
        if (status == MONITOR_NOVEL || status == MONITOR_HELD) {
            const char *what = status == MONITOR_HELD ? "held" : "learned";
            printf("%d,%s,%.9g,%.9g\n", sample, what, (double)state[0], (double)state[1]);
        }
        sample++;
    }
}
