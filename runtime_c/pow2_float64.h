/* 2^k, exactly, for -1022 <= k <= 1023.  Sets the bits of the exponent. */
static double pk_pow2(int32_t k)
{
    union { double value; uint64_t bits; } both;
    const int32_t biased = k + 1023;
    both.bits = (uint64_t)biased << 52;
    return both.value;
}
