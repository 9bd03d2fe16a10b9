/* The largest k with 2^k <= |x| for a normal x; -1023 for smaller ones, 1024 for infinity and NaN.  Reads the exponent's bits. */
static int32_t pk_floor_log2(double x)
{
    union { double value; uint64_t bits; } both;
    both.value = x;
    return (int32_t)((both.bits >> 52) & 2047u) - 1023;
}
