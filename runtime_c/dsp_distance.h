/* |a - b|^2 modulo 2^32, two differences and two squares in each instruction.  Assembly, because GCC believes that the
 * functions of arm_acle.h for them write to memory. */
static uint32_t pk_narrow_distance(const int16_t a[PK_DIM], const int16_t b[PK_DIM])
{
    uint32_t total = 0u;
    PK_LOOP(9008)
    PK_UNROLL
    for (int32_t j = 0; (j + 1) < PK_DIM; j += 2) {
        PK_TURN(9008)
        uint32_t first;
        uint32_t second;
        __builtin_memcpy(&first, &a[j], sizeof first);
        __builtin_memcpy(&second, &b[j], sizeof second);
        __asm__ ("ssub16 %0, %1, %2" : "=r" (first) : "r" (first), "r" (second));
        __asm__ ("smlad %0, %1, %1, %2" : "=r" (total) : "r" (first), "r" (total));
    }
    if ((PK_DIM % 2) != 0) {
        total += pk_exact_square((int32_t)a[PK_DIM - 1] - (int32_t)b[PK_DIM - 1]);
    }
    return total;
}
