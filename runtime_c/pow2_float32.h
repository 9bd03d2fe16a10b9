/* 2^k, exactly, for -126 <= k <= 127.  Sets the bits of the exponent. */
static float pk_pow2(int32_t k)
{
    union { float value; uint32_t bits; } both;
    const int32_t biased = k + 127;
    both.bits = (uint32_t)biased << 23;
    return both.value;
}
