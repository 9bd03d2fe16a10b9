/* |a - b|^2 modulo 2^32, two differences and two squares in each instruction. */
static uint32_t pk_narrow_distance(const int16_t a[PK_DIM], const int16_t b[PK_DIM])
{
    int32_t total = 0;
    uint32_t rest = 0u;
    PK_LOOP(9008)
    PK_UNROLL
    for (int32_t j = 0; (j + 1) < PK_DIM; j += 2) {
        PK_TURN(9008)
        int16x2_t first;
        int16x2_t second;
        int16x2_t difference;
        __builtin_memcpy(&first, &a[j], sizeof first);
        __builtin_memcpy(&second, &b[j], sizeof second);
        difference = __ssub16(first, second);
        total = __smlad(difference, difference, total);
    }
    if ((PK_DIM % 2) != 0) {
        rest = pk_exact_square((int32_t)a[PK_DIM - 1] - (int32_t)b[PK_DIM - 1]);
    }
    return (uint32_t)total + rest;
}
