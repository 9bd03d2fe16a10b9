/* The largest k with 2^k <= |x| for a normal x; -127 for smaller ones, 128 for infinity and NaN.  Reads the exponent's bits. */
static int32_t pk_floor_log2(float x)
{
    union { float value; uint32_t bits; } both;
    both.value = x;
    return (int32_t)((both.bits >> 23) & 255u) - 127;
}
