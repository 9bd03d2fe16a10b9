/* The square root of x >= 0, correctly rounded.  Uses the FPU's instruction.  Without an FPU, computes bit by bit.
 * sqrtf() is not used: it sets errno, and for that compilers link a library. */
static float pk_sqrt(float x)
{
#if defined(__GNUC__) && defined(__SSE2__) && !defined(PK_NO_FPU)
    float root;
    __asm__ ("sqrtss %1, %0" : "=x" (root) : "x" (x));
    return root;
#elif defined(__GNUC__) && defined(__aarch64__) && !defined(PK_NO_FPU)
    float root;
    __asm__ ("fsqrt %s0, %s1" : "=w" (root) : "w" (x));
    return root;
#elif defined(__GNUC__) && defined(__arm__) && defined(__ARM_FP) && ((__ARM_FP & 4) != 0) && !defined(__SOFTFP__) && !defined(PK_NO_FPU)
    float root;
    __asm__ ("vsqrt.f32 %0, %1" : "=t" (root) : "t" (x));
    return root;
#elif defined(__GNUC__) && defined(__riscv_flen) && (__riscv_flen >= 32) && !defined(PK_NO_FPU)
    float root;
    __asm__ ("fsqrt.s %0, %1" : "=f" (root) : "f" (x));
    return root;
#else
    union { float value; uint32_t bits; } both;
    uint32_t fraction;
    uint32_t root = 0u;
    uint32_t rest = 0u;
    int32_t exponent;
    both.value = x;
    fraction = both.bits;
    if ((fraction == 0u) || (fraction >= 0x7F800000u)) {
        return x; /* zero; infinite and negative values do not occur */
    }
    /*@ split fraction < 0x00800000u; */
    exponent = (int32_t)(fraction >> 23) - 127;
    fraction &= 0x007FFFFFu;
    if (exponent == -127) {
        exponent = -126;
        PK_LOOP(9003)
        /*@ split fraction >= 0x00800000u; */
        /*@ loop unroll 24; */
        while ((fraction & 0x00800000u) == 0u) {
            PK_TURN(9003)
            fraction <<= 1;
            exponent--;
            /*@ split fraction >= 0x00800000u; */
        }
    } else {
        fraction |= 0x00800000u;
    }
    /*@ slevel merge; */
    if ((exponent & 1) != 0) {
        fraction <<= 1;
        exponent--;
    }
    /* 25 bits of the root of fraction 2^25: one bit more than the result has */
    /*@ slevel 0; */
    PK_LOOP(9004)
    for (int32_t i = 0; i < 25; i++) {
        PK_TURN(9004)
        const uint32_t trial = (root << 2) | 1u;
        rest = (rest << 2) | ((fraction >> 23) & 3u);
        fraction = (fraction << 2) & 0x01FFFFFFu;
        root <<= 1;
        if (rest >= trial) {
            rest -= trial;
            root |= 1u;
        }
    }
    /* round to nearest; a tie cannot occur, because the square of such a root has more bits than x */
    root = (root >> 1) + (root & 1u);
    exponent = (exponent / 2) + 126;
    both.bits = ((uint32_t)exponent << 23) + root;
    return both.value;
#endif
}
