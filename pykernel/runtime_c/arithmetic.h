/* CRC-32 of sums that tell whether this build's arithmetic follows IEEE-754 in cases that the self-test's samples may not
 * reach.  NaN, infinities and negative zeros must be respected.  Each product must be rounded before it is added, also in
 * vectorised loops. */
static uint32_t pk_arithmetic(void)
{
    volatile PK_REAL given[4]; /* volatile: the compiler must not know the values */
    const PK_REAL square = PK_ONE + PK_EPSILON + PK_EPSILON; /* of the second one, rounded */
    PK_REAL one, more, infinite, nan;
    PK_REAL a[8];
    PK_REAL b[8];
    PK_REAL sums[19];
    given[0] = PK_ONE;
    given[1] = PK_ONE + PK_EPSILON;
    given[2] = PK_MAX;
    given[3] = -PK_ZERO;
    one = given[0];
    more = given[1];
    infinite = given[2] * (one + one);
    nan = infinite - infinite;
    for (int32_t i = 0; i < 8; i++) {
        a[i] = more;
        b[i] = more;
    }
    for (int32_t i = 0; i < 8; i += 2) {
        sums[i] = (a[i] * b[i]) - square;
        sums[i + 1] = (a[i + 1] * b[i + 1]) + square;
    }
    /* sums in the form of products of complex numbers, which some processors fuse */
    for (int32_t i = 0; i < 8; i += 2) {
        sums[8 + i] = (a[i] * b[i]) - (a[i + 1] * b[i + 1]);
        sums[9 + i] = (a[i] * b[i + 1]) + (a[i + 1] * b[i]);
    }
    sums[16] = (more * more) - square;
    sums[17] = given[3] + PK_ZERO;
    sums[18] = (!(nan <= one) && (nan != nan) && !(infinite <= PK_MAX)) ? one : PK_ZERO;
    return pk_crc32(0u, (const unsigned char *)sums, (uint32_t)sizeof(sums));
}
