/* |x|.  Clears the sign bit.  The built-in function is one instruction, and no library is linked for it. */
/*@ ensures passed: \is_NaN(x) ? \is_NaN(\result) : (\le_float(x, \result) && \le_float(\neg_float(\result), x)); */
static float pk_absolute(float x)
{
#if defined(__GNUC__)
    return __builtin_fabsf(x);
#else
    union { float value; uint32_t bits; } both;
    both.value = x;
    both.bits &= 0x7FFFFFFFu;
    return both.value;
#endif
}
