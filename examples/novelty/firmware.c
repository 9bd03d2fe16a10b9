/* A monitor in a firmware's loop: each row is judged and learned, and each row in alarm is reported.
 *
 *     cc -O2 -std=c99 -ffp-contract=off -Imonitor/src firmware.c monitor/src/monitor.c -o firmware
 *     ./firmware < rows.txt > alarms.csv
 *
 * On the device, scanf is the ADC and two buttons, and printf is the relay and the display.
 */
#include "monitor.h"

#include <stdio.h>

static const char *const sensors[MONITOR_DIM] = {
    "band1", "band2", "band3", "band4", "band5", "current", "torque", "oil",
};
static monitor_t model; /* MONITOR_RAM_BYTES, no more will ever be needed */

static const char *kind_of(int32_t kind)
{
    switch (kind) {
    case MONITOR_JUMP: return "jump";
    case MONITOR_DRIFT: return "drift";
    case MONITOR_STUCK: return "stuck";
    case MONITOR_NOISE: return "noise";
    case MONITOR_REGIME: return "regime"; /* several sensors agree: perhaps the machine runs in a new way */
    default: return "unknown";            /* too few rows yet, or none of the others */
    }
}

static void report(int row)
{
    float state[3];           /* level, threshold, number of rows since the alarm began */
    float parts[MONITOR_DIM]; /* each sensor's share in the alarm, together about 1 */
    const int32_t kind = monitor_blame(&model, parts);
    int most = 0, second = 0; /* the second is told if it has at least half: sensors that determine each other share */
    for (int j = 1; j < MONITOR_DIM; j++) {
        if (parts[j] > parts[most]) {
            second = most;
            most = j;
        } else if (second == most || parts[j] > parts[second]) {
            second = j;
        }
    }
    (void)monitor_alarm(&model, state);
    printf("%d,%d,%.9g,%.9g,%s,%s,%.9g,%s\n", row, (int)state[2], (double)state[0], (double)state[1], kind_of(kind),
           sensors[most], (double)parts[most], parts[second] >= parts[most] / 2 ? sensors[second] : "");
}

int main(void)
{
    float x[MONITOR_DIM];
    char button = '-';
    if (monitor_selftest(&model) != MONITOR_DONE) {
        fputs("this build does not compute what the simulation computes\n", stderr);
        return 1;
    }
    monitor_init(&model);
    for (int row = 0; scanf(" %c", &button) == 1; row++) {
        int32_t status;
        for (int j = 0; j < MONITOR_DIM; j++) {
            if (scanf("%f", &x[j]) != 1) {
                return 1;
            }
        }
        status = monitor_update(&model, x); /* below 0: an input is out of range, and nothing changed */
        if (status == MONITOR_NOVEL || status == MONITOR_HELD) {
            report(row);
        }
        if (button == 'a') { /* "this is normal from now on" */
            (void)monitor_acknowledge(&model);
        } else if (button == 'r') { /* "never take this for normal" */
            (void)monitor_reject(&model);
        }
    }
    return 0;
}
