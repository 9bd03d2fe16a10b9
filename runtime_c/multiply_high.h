typedef char pk_assert_multiply_high[((-3) >> 1) == -2 ? 1 : -1];
/* a k / 2^16, rounded down, for k from 0 to 65535.  In halves of a: no product needs 64 bits. */
static inline int32_t pk_multiply_high(int32_t a, int32_t k)
{
    return ((a >> 16) * k) + (int32_t)((((uint32_t)a & 0xFFFFu) * (uint32_t)k) >> 16);
}
