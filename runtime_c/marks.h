/* Marks where a loop begins, and where each of its turns does: comments in the assembly, no code.  By them
 * `pykernel check --target` counts how many instructions a call can take at most.  PK_MARKS=0 leaves them out. */
#ifndef PK_MARKS
#if defined(__GNUC__) && !defined(__clang__) /* clang does not unroll a loop that has a mark */ \
    && ((defined(__ARM_ARCH_PROFILE) && (__ARM_ARCH_PROFILE == 77) && !defined(__ARM_FEATURE_MVE)) \
        || (defined(__riscv) && (__riscv_xlen == 32)) || defined(__AVR__))
#define PK_MARKS 1
#else
#define PK_MARKS 0
#endif
#endif
#if PK_MARKS
#define PK_LOOP(loop) __asm__ volatile ("/* loop " #loop " */" : : );
#define PK_TURN(loop) __asm__ volatile ("/* turn " #loop " */" : : );
#else
#define PK_LOOP(loop)
#define PK_TURN(loop)
#endif
