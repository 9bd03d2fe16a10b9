/* |x|: the sign bit cleared. */
static double pk_absolute(double x)
{
    union { double value; uint64_t bits; } both;
    both.value = x;
    both.bits &= UINT64_C(0x7FFFFFFFFFFFFFFF);
    return both.value;
}
