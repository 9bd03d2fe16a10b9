/* The results are promised bit for bit: IEEE-754 arithmetic, each operation rounded once, in the order written. */
#if defined(__FAST_MATH__) || defined(__RECIPROCAL_MATH__) || defined(__ASSOCIATIVE_MATH__) || defined(_M_FP_FAST) \
    || (defined(__FINITE_MATH_ONLY__) && (__FINITE_MATH_ONLY__ > 0))
#error "compile this file without -ffast-math, -Ofast or /fp:fast: they change the results"
#endif
#if defined(__BYTE_ORDER__) && defined(__ORDER_LITTLE_ENDIAN__) && (__BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__)
#error "the state's bytes are defined for little-endian targets"
#endif
#if PK_EXCESS_PRECISION /* as an x87 does */
#error "this target computes with more digits than the type has; on x86 compile with -msse2 -mfpmath=sse"
#endif
#if (FLT_RADIX != 2) || (PK_MANT_DIG != PK_DIGITS)
#error "this target's floating point is not IEEE-754 in the size that the model needs"
#endif
/* No fused multiply-add.  GCC contracts by default in its GNU dialects and ignores the standard pragma. */
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#elif defined(__GNUC__)
#pragma GCC optimize ("fp-contract=off")
/* GCC's vectorisers fuse in spite of that, where one instruction adds and subtracts products side by side. */
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
