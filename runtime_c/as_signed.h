/* The number from -2^31 to 2^31 - 1 that is equal modulo 2^32. */
static inline int32_t pk_as_signed(uint32_t w)
{
    return (w <= 0x7FFFFFFFu) ? (int32_t)w : (-(int32_t)(0xFFFFFFFFu - w) - 1);
}
