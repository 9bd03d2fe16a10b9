/* |x|.  Clears the sign bit.  The built-in function is one instruction, and no library is linked for it. */
/*@ ensures passed: \is_NaN(x) ? \is_NaN(\result) : (\le_double(x, \result) && \le_double(\neg_double(\result), x)); */
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
