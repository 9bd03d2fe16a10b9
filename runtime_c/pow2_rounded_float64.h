/* 2^(d - 1023), exactly, for x = 2^52 + d with d from 1 to 2046; 0 for smaller d. */
static inline double pk_pow2_rounded(double x)
{
    union { double value; uint64_t bits; } both;
    uint64_t d;
    both.value = x;
    d = both.bits - 0x4330000000000000u;
    both.bits = (d < 2047u) ? (d << 52) : 0u;
    return both.value;
}
