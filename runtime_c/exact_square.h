/* e^2 modulo 2^32. */
static inline uint32_t pk_exact_square(int32_t e)
{
    return (uint32_t)e * (uint32_t)e;
}
