/* The host of a WebAssembly module, which gives and takes bytes.  SPDX-License-Identifier: 0BSD */
#include "check.h"

__attribute__((import_module("host"), import_name("read"))) void host_read(void *to, uint32_t bytes);
__attribute__((import_module("host"), import_name("write"))) void host_write(const void *from, uint32_t bytes);

void check_read(const check_part_t *parts, uint32_t count)
{
    for (; count > 0u; count--, parts++) {
        host_read(parts->at, parts->bytes);
    }
}

void check_write(const check_part_t *parts, uint32_t count)
{
    for (; count > 0u; count--, parts++) {
        host_write(parts->at, parts->bytes);
    }
}
