/* The results must be equal bit for bit on every processor.  This needs IEEE-754 arithmetic: each operation is rounded
 * once, and the operations are done in the written order. */
#if defined(__FAST_MATH__) || defined(__RECIPROCAL_MATH__) || defined(__ASSOCIATIVE_MATH__) || defined(_M_FP_FAST) \
    || (defined(__FINITE_MATH_ONLY__) && (__FINITE_MATH_ONLY__ > 0))
#error "compile this file without -ffast-math, -Ofast or /fp:fast: they change the results"
#endif
#if PK_EXCESS_PRECISION /* for example, an x87 FPU */
#error "this target computes with more digits than the type has; on x86 compile with -msse2 -mfpmath=sse"
#endif
#if (FLT_RADIX != 2) || (PK_MANT_DIG != PK_DIGITS)
#error "this target's floating point is not IEEE-754 in the size that the model needs"
#endif
/* Forbid fused multiply-add.  In its GNU dialects GCC fuses by default, and it ignores the standard pragma. */
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#elif defined(__GNUC__)
#pragma GCC optimize ("fp-contract=off")
#ifdef __OPTIMIZE_SIZE__ /* GCC takes for smaller what it copies: small functions, and code behind several conditions */
#pragma GCC optimize ("no-inline-small-functions", "no-thread-jumps", "no-reorder-blocks")
#endif
/* GCC's vectorisers still fuse on processors with an instruction that adds some products and subtracts others. */
#if defined(__FMA__) || defined(__FMA4__) || defined(__AVX512F__) /* x86: vfmaddsub */ \
    || defined(__ARM_FEATURE_COMPLEX) || defined(__ARM_FEATURE_SVE) /* ARM: fcmla */ \
    || (defined(__ARM_FEATURE_MVE) && ((__ARM_FEATURE_MVE & 2) != 0)) /* Helium: vcmla */
#pragma GCC optimize ("no-tree-loop-vectorize", "no-tree-slp-vectorize")
#endif
#elif defined(_MSC_VER)
#pragma fp_contract (off)
#else
#pragma STDC FP_CONTRACT OFF
#endif
