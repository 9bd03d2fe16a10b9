/* 2^k, exactly, for -126 <= k <= 127: the exponent's bits. */
static float pk_pow2(int32_t k)
{
    union { float value; uint32_t bits; } both;
    both.bits = (uint32_t)(k + 127) << 23;
    return both.value;
}
