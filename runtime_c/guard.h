/* The results are promised bit for bit: IEEE-754 arithmetic, each operation rounded once, in the order written. */
#if defined(__FAST_MATH__) || defined(__RECIPROCAL_MATH__) || defined(__ASSOCIATIVE_MATH__) || defined(_M_FP_FAST) \
    || (defined(__FINITE_MATH_ONLY__) && (__FINITE_MATH_ONLY__ > 0))
#error "compile this file without -ffast-math, -Ofast or /fp:fast: they change the results"
#endif
#if PK_EXCESS_PRECISION
#error "this target computes with excess precision (x87?); compile with -msse2 -mfpmath=sse, or for another FPU"
#endif
#if (FLT_RADIX != 2) || (PK_MANT_DIG != PK_DIGITS)
#error "this target's floating point is not IEEE-754 in the size that the model needs"
#endif
#if defined(__BYTE_ORDER__) && defined(__ORDER_LITTLE_ENDIAN__) && (__BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__)
#error "the state's bytes are defined for little-endian targets"
#endif
/* No fused multiply-add.  GCC contracts by default in its GNU dialects and ignores the standard pragma. */
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#elif defined(__GNUC__)
#pragma GCC optimize ("fp-contract=off")
#elif defined(_MSC_VER)
#pragma fp_contract (off)
#else
#pragma STDC FP_CONTRACT OFF
#endif
