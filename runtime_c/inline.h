/* A short function that three or more places call.  GCC at -Os takes copies of it for smaller than calls, which they are not. */
#if defined(__GNUC__) && !defined(__clang__) && defined(__OPTIMIZE_SIZE__)
#define PK_INLINE __attribute__((noinline))
#else
#define PK_INLINE inline
#endif
