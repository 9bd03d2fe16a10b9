/* The square root of x >= 0, correctly rounded.  Uses the FPU's instruction.  Without an FPU, computes bit by bit.
 * sqrt() is not used: it sets errno, and for that compilers link a library. */
static double pk_sqrt(double x)
{
#if defined(__GNUC__) && defined(__SSE2__) && !defined(PK_NO_FPU)
    double root;
    __asm__ ("sqrtsd %1, %0" : "=x" (root) : "x" (x));
    return root;
#elif defined(__GNUC__) && defined(__aarch64__) && !defined(PK_NO_FPU)
    double root;
    __asm__ ("fsqrt %d0, %d1" : "=w" (root) : "w" (x));
    return root;
#elif defined(__GNUC__) && defined(__arm__) && defined(__ARM_FP) && ((__ARM_FP & 8) != 0) && !defined(__SOFTFP__) && !defined(PK_NO_FPU)
    double root;
    __asm__ ("vsqrt.f64 %P0, %P1" : "=w" (root) : "w" (x));
    return root;
#elif defined(__GNUC__) && defined(__riscv_flen) && (__riscv_flen >= 64) && !defined(PK_NO_FPU)
    double root;
    __asm__ ("fsqrt.d %0, %1" : "=f" (root) : "f" (x));
    return root;
#else
    union { double value; uint64_t bits; } both;
    uint64_t fraction;
    uint64_t root = 0u;
    uint64_t rest = 0u;
    int32_t exponent;
    both.value = x;
    fraction = both.bits;
    if ((fraction == 0u) || (fraction >= 0x7FF0000000000000u)) {
        return x; /* zero; infinite and negative values do not occur */
    }
    /*@ split fraction < 0x0010000000000000u; */
    exponent = (int32_t)(fraction >> 52) - 1023;
    fraction &= 0x000FFFFFFFFFFFFFu;
    if (exponent == -1023) {
        exponent = -1022;
        PK_LOOP(9003)
        /*@ split fraction >= 0x0010000000000000u; */
        /*@ loop unroll 53; */
        while ((fraction & 0x0010000000000000u) == 0u) {
            PK_TURN(9003)
            fraction <<= 1;
            exponent--;
            /*@ split fraction >= 0x0010000000000000u; */
        }
    } else {
        fraction |= 0x0010000000000000u;
    }
    /*@ slevel merge; */
    if ((exponent & 1) != 0) {
        fraction <<= 1;
        exponent--;
    }
    /* 54 bits of the root of fraction 2^54: one bit more than the result has */
    /*@ slevel 0; */
    PK_LOOP(9004)
    for (int32_t i = 0; i < 54; i++) {
        PK_TURN(9004)
        const uint64_t trial = (root << 2) | 1u;
        rest = (rest << 2) | ((fraction >> 52) & 3u);
        fraction = (fraction << 2) & 0x003FFFFFFFFFFFFFu;
        root <<= 1;
        if (rest >= trial) {
            rest -= trial;
            root |= 1u;
        }
    }
    /* round to nearest; a tie cannot occur, because the square of such a root has more bits than x */
    root = (root >> 1) + (root & 1u);
    exponent = (exponent / 2) + 1022;
    both.bits = ((uint64_t)exponent << 52) + root;
    return both.value;
#endif
}
