typedef char pk_assert_floor_shift[((-3) >> 1) == -2 ? 1 : -1];
/* a / 2^k, rounded down, also for negative a.  C99 leaves that to the compiler; all known ones do it. */
static inline int32_t pk_floor_shift(int32_t a, int32_t k)
{
    return a >> k;
}
