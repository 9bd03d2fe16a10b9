/* |x|.  Clears the sign bit. */
static double pk_absolute(double x)
{
    union { double value; uint64_t bits; } both;
    both.value = x;
    both.bits &= 0x7FFFFFFFFFFFFFFFu;
    return both.value;
}
