/* e^2 modulo 2^32. */
static inline uint32_t pk_exact_square(int32_t e)
{
#if defined(__AVR__)
    return (uint32_t)e * (uint32_t)e;
#else
    /* by the size of e: the same code, and no product wraps around unless e^2 does */
    const uint32_t size = (e < 0) ? (0u - (uint32_t)e) : (uint32_t)e;
    return size * size;
#endif
}
