/* The number modulo 2^32.  A function, for GCC warns of a cast from a narrow type where another Word is near. */
static inline uint32_t pk_word(int32_t a)
{
    return (uint32_t)a;
}
