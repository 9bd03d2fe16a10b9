/* a / b, rounded down, for a >= 0 and b > 0. */
static inline int32_t pk_quotient(int32_t a, int32_t b)
{
    return a / b;
}
