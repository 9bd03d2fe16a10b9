/* |x|: the sign bit cleared. */
static float pk_absolute(float x)
{
    union { float value; uint32_t bits; } both;
    both.value = x;
    both.bits &= UINT32_C(0x7FFFFFFF);
    return both.value;
}
