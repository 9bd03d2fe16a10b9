/* Asks the compiler to unroll a short loop.  GCC at -O2 and clang at -Os do not unroll such loops by themselves. */
#if defined(__clang__)
#define PK_UNROLL _Pragma("clang loop unroll_count(16)")
#elif defined(__GNUC__) && (__GNUC__ >= 8)
#define PK_UNROLL _Pragma("GCC unroll 16")
#else
#define PK_UNROLL
#endif
