/* |x|.  Clears the sign bit.  The built-in function is one instruction, and no library is linked for it. */
static double pk_absolute(double x)
{
#if defined(__GNUC__)
    return __builtin_fabs(x);
#else
    union { double value; uint64_t bits; } both;
    both.value = x;
    both.bits &= 0x7FFFFFFFFFFFFFFFu;
    return both.value;
#endif
}
