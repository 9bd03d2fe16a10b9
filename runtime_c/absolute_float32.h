/* |x|.  Clears the sign bit. */
static float pk_absolute(float x)
{
    union { float value; uint32_t bits; } both;
    both.value = x;
    both.bits &= 0x7FFFFFFFu;
    return both.value;
}
