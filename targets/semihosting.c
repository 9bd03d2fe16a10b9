/* Files of the host through semihosting, and a start without a C library: Cortex-M and RISC-V in QEMU.
 * SPDX-License-Identifier: 0BSD */
#include "check.h"

#define OPEN 0x01u
#define CLOSE 0x02u
#define WRITE 0x05u
#define READ 0x06u
#define EXIT 0x18u
#define EXIT_DONE 0x20026u
#define EXIT_FAILED 0x20023u

void _start(void);

static uintptr_t files[2];

/* What the host is asked for, and with what; a0 and a1, or r0 and r1, are where C has them already. */
uintptr_t device_host(uintptr_t what, const void *with);
#if defined(__arm__)
__asm__(".section .text.device_host, \"ax\"\n.globl device_host\n.type device_host, %function\n.thumb_func\n"
        "device_host:\nbkpt 0xab\nbx lr\n.text\n");
#else
/* the two shifts mark the breakpoint as a call of the host; none of the three may be compressed, or cross a page */
__asm__(".section .text.device_host, \"ax\"\n.globl device_host\n.type device_host, @function\n.option push\n"
        ".option norvc\n.option norelax\n.balign 16\ndevice_host:\nslli zero, zero, 0x1f\nebreak\nsrai zero, zero, 7\n"
        "ret\n.option pop\n.text\n");
#endif

static void leave(uintptr_t reason)
{
    for (;;) {
        (void)device_host(EXIT, (const void *)reason);
    }
}

static void transfer(uintptr_t what, uintptr_t file, const check_part_t *parts, uint32_t count)
{
    for (; count > 0u; count--, parts++) {
        const uintptr_t order[3] = {file, (uintptr_t)parts->at, parts->bytes};
        if (device_host(what, order) != 0u) { /* how many bytes were not transferred */
            leave(EXIT_FAILED);
        }
    }
}

static void begin(void)
{
    const uintptr_t in[3] = {(uintptr_t)"in.bin", 1u, 6u};
    const uintptr_t out[3] = {(uintptr_t)"out.bin", 5u, 7u};
    files[0] = device_host(OPEN, in);
    files[1] = device_host(OPEN, out);
}

void check_read(const check_part_t *parts, uint32_t count)
{
    transfer(READ, files[0], parts, count);
}

void check_write(const check_part_t *parts, uint32_t count)
{
    transfer(WRITE, files[1], parts, count);
}

static void end(void)
{
    const uintptr_t out[1] = {files[1]};
    (void)device_host(CLOSE, out);
    leave(EXIT_DONE);
}

void device_run(void);
void device_run(void)
{
    begin();
    check_job();
    end();
}

/* QEMU has loaded what is to be loaded, and RAM is zero. */
#if defined(__arm__)
extern const uint32_t device_stack;
struct vectors {
    const uint32_t *stack;
    void (*start)(void);
};
extern const struct vectors device_vectors;
__attribute__((section(".start"), used)) const struct vectors device_vectors = {&device_stack, _start};

void _start(void)
{
#if defined(__ARM_FP)
    *(volatile uint32_t *)UINT32_C(0xE000ED88) |= UINT32_C(0x00F00000); /* CPACR: the FPU is on */
    __asm__ volatile("dsb\nisb" : : : "memory");
#endif
    device_run();
}
#else
/* csrs mstatus, t0 (the FPU is on) as a number: assemblers differ in how Zicsr is asked for */
__asm__(".section .start, \"ax\"\n.globl _start\n.type _start, @function\n_start:\n"
        "la sp, device_stack\nli t0, 0x2000\n.word 0x3002A073\nj device_run\n.text\n");
#endif
