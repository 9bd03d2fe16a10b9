/* Asks for a short loop to be written out, which GCC does not do by itself at -O2. */
#if defined(__GNUC__) && !defined(__clang__) && (__GNUC__ >= 8)
#define PK_UNROLL _Pragma("GCC unroll 16")
#else
#define PK_UNROLL
#endif
