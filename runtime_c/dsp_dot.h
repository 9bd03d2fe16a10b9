/* a'b, two products in each instruction.  Sums of whole numbers are the same in any order. */
static int32_t pk_dot(const int16_t a[PK_DIM], const int16_t b[PK_DIM])
{
    int32_t total = 0;
    PK_LOOP(9006)
    PK_UNROLL
    for (int32_t j = 0; (j + 1) < PK_DIM; j += 2) {
        PK_TURN(9006)
        int16x2_t first;
        int16x2_t second;
        __builtin_memcpy(&first, &a[j], sizeof first);
        __builtin_memcpy(&second, &b[j], sizeof second);
        total = __smlad(first, second, total);
    }
    if ((PK_DIM % 2) != 0) {
        total += (int32_t)a[PK_DIM - 1] * (int32_t)b[PK_DIM - 1];
    }
    return total;
}
