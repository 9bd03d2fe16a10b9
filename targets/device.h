/* How a program on an emulated device reaches the host.  SPDX-License-Identifier: 0BSD */
#ifndef DEVICE_H
#define DEVICE_H

#include <stdint.h>

/* Before and after everything else. */
void device_open(void);
void device_close(void);

/* The next bytes of the job, and of its result. */
void device_read(void *to, uint32_t bytes);
void device_write(const void *from, uint32_t bytes);

/* One job, from open to close. */
void device_job(void);

#endif
