/* 2^(d - 127), exactly, for x = 2^23 + d with d from 1 to 254; 0 for smaller d.  An FPU converts negative numbers to 0. */
static inline float pk_pow2_rounded(float x)
{
#if defined(__GNUC__) && defined(__arm__) && defined(__ARM_ARCH) && (__ARM_ARCH >= 7) && defined(__ARM_FP) \
    && ((__ARM_FP & 4) != 0) && !defined(__SOFTFP__) && !defined(PK_NO_FPU)
    float power = x - 8388608.0f;
    __asm__ ("vcvt.u32.f32 %0, %0, #23" : "+t" (power));
    return power;
#else
    union { float value; uint32_t bits; } both;
    uint32_t d;
#if defined(__GNUC__) && defined(__riscv_flen) && (__riscv_flen >= 32) && !defined(PK_NO_FPU)
    __asm__ ("fcvt.wu.s %0, %1, rtz" : "=r" (d) : "f" (x - 8388608.0f));
    both.bits = d << 23;
#else
    both.value = x;
    d = both.bits - 0x4B000000u;
    both.bits = (d < 255u) ? (d << 23) : 0u;
#endif
    return both.value;
#endif
}
