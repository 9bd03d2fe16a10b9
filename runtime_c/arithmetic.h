/* CRC-32 of sums that tell whether this build's arithmetic follows IEEE-754 in cases that the self-test's samples may not
 * reach.  NaN, infinities and negative zeros must be respected.  Each product must be rounded before it is added, also in
 * vectorised loops. */
static uint32_t pk_arithmetic(void)
{
    volatile PK_REAL given[3]; /* volatile: the compiler must not know the values */
    const PK_REAL square = PK_ONE + PK_EPSILON + PK_EPSILON; /* of the first one, rounded */
    PK_REAL more;
    PK_REAL infinite;
    PK_REAL nan;
    struct {
        PK_REAL a[16];
        PK_REAL sums[19];
    } v; /* one pointer goes through both */
    given[0] = PK_ONE + PK_EPSILON;
    given[1] = PK_MAX;
    given[2] = -PK_ZERO;
    more = given[0];
    infinite = given[1] * more;
    nan = infinite - infinite;
    for (int32_t i = 0; i < 16; i++) {
        v.a[i] = more;
    }
    for (int32_t i = 0; i < 8; i += 2) {
        v.sums[i] = (v.a[i] * v.a[i + 8]) - square;
        v.sums[i + 1] = (v.a[i + 1] * v.a[i + 9]) + square;
    }
    /* sums in the form of products of complex numbers, which some processors fuse */
    for (int32_t i = 0; i < 8; i += 2) {
        v.sums[8 + i] = (v.a[i] * v.a[i + 8]) - (v.a[i + 1] * v.a[i + 9]);
        v.sums[9 + i] = (v.a[i] * v.a[i + 9]) + (v.a[i + 1] * v.a[i + 8]);
    }
    v.sums[16] = (more * more) - square;
    v.sums[17] = given[2] + PK_ZERO;
    v.sums[18] = (!(nan <= more) && (nan != nan) && !(infinite <= PK_MAX)) ? more : PK_ZERO;
    return pk_crc32(0u, (const unsigned char *)v.sums, (uint32_t)sizeof(v.sums));
}
