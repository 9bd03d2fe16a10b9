/* A fan's monitor: a timer samples, a ring buffer waits, the main loop learns, alarms and the recording go out over the UART, and
 * the state is saved when the power fails.
 *
 * With -DRECORD_ONLY the model is not called: the first recording, from which the model is planned.
 */
#include "adxl345.h"
#include "board.h"
#include "fan_log.h"

#include <stddef.h>
#include <string.h>

#define RING 32u /* samples: while the model learns a window, some wait */

static volatile int16_t ring[RING];
static volatile uint8_t head; /* where the next sample goes */
static volatile uint16_t missed; /* samples that found no room */
static volatile uint8_t tail;

static fan_t model;
static fan_log_t recorder;

void on_timer(void)
{
    int16_t xyz[3];
    const uint8_t next = (uint8_t)((head + 1u) % RING);
    adxl345_read(xyz);
    if ((missed != 0u) || (next == tail)) { /* until the gap was told, so that all that waits lies before it */
        missed++;
        return;
    }
    ring[head] = xyz[2];
    head = next;
}

static void send(void *context, const uint8_t *bytes, uint32_t count)
{
    (void)context;
    board_send(bytes, count);
}

static void say(const char *text)
{
    board_send((const uint8_t *)text, (uint32_t)strlen(text));
}

/* Samples for which there was no room: features of a window that has a hole would be wrong. */
static void tell_gap(void)
{
    const uint16_t before = board_lock();
    const uint16_t count = missed;
    missed = 0u;
    board_unlock(before);
    if (count != 0u) {
        char call[] = "gap 00000";
        uint16_t rest = count;
        for (int32_t i = 8; i >= 4; i--) {
            call[i] = (char)('0' + (rest % 10u));
            rest = (uint16_t)(rest / 10u);
        }
#ifndef RECORD_ONLY
        (void)fan_gap(&model, count);
#endif
        fan_log_call(&recorder, call);
    }
}

static void one_sample(void)
{
    static uint16_t samples;
    const float x[FAN_CHANNELS] = {(float)ring[tail]};
    const uint32_t now = board_milliseconds();
    fan_row_t row = {0};
    tail = (uint8_t)((tail + 1u) % RING);
    row.time = &now;
    row.x = x;
#ifdef RECORD_ONLY
    (void)samples;
    fan_log(&recorder, &row);
#else
    static int32_t alarmed;
    const int32_t status = fan_push(&model, x);
    const uint32_t hash = ((++samples % 1024u) == 0u) ? fan_hash(&model) : 0u;
    row.status = &status;
    row.hash = (hash != 0u) ? &hash : NULL;
    fan_log(&recorder, &row);
    if ((status == FAN_NOVEL) || (status == FAN_HELD)) {
        if (!alarmed) {
            say("alarm\r\n");
        }
        alarmed = 1;
    } else if (status != FAN_GATHERING) {
        alarmed = 0;
    }
#endif
}

int main(void)
{
    board_begin();
    if (!adxl345_begin()) {
        say("no ADXL345 answers; look at the wires\r\n");
        board_halt();
    }
    fan_init(&model);
#ifndef RECORD_ONLY
    if (fan_restore(&model, board_read, NULL) == FAN_DONE) {
        (void)fan_gap(&model, 1); /* time has passed */
        say("goes on with what it had learned\r\n");
    }
#endif
    fan_log_begin(&recorder, send, NULL);
    for (;;) {
        if (tail != head) {
            one_sample();
        } else {
            tell_gap();
        }
        if (board_power_fails()) {
#ifndef RECORD_ONLY
            (void)fan_store(&model, board_write, board_read, NULL);
#endif
            say("saved\r\n");
            board_halt();
        }
    }
}
