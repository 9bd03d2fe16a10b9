/* Whether this build's arithmetic is IEEE-754's where the rehearsal may not show it: NaN, infinities and negative zeros
 * are what they are, and each product is rounded before it is added, even where vectors are added and subtracted. */
static bool pk_arithmetic(void)
{
    volatile PK_REAL one = PK_ONE; /* volatile: the compiler must not know what it computes */
    volatile PK_REAL more = PK_ONE + PK_EPSILON;
    const PK_REAL square = PK_ONE + PK_EPSILON + PK_EPSILON; /* more * more, rounded */
    const PK_REAL zero = one - one;
    const PK_REAL nan = zero / zero;
    const PK_REAL factor = more;
    PK_REAL a[8];
    PK_REAL b[8];
    PK_REAL sums[16];
    bool sound = !(nan <= one) && (nan != nan) && !((one / zero) <= PK_MAX) && ((one / (-zero + PK_ZERO)) > zero);
    sound = sound && (((factor * factor) - square) == zero);
    for (int32_t i = 0; i < 8; i++) {
        a[i] = more;
        b[i] = more;
    }
    for (int32_t i = 0; i < 8; i += 2) {
        sums[i] = (a[i] * b[i]) - square;
        sums[i + 1] = (a[i + 1] * b[i + 1]) + square;
    }
    /* as products of complex numbers are computed */
    for (int32_t i = 0; i < 8; i += 2) {
        sums[8 + i] = (a[i] * b[i]) - (a[i + 1] * b[i + 1]);
        sums[9 + i] = (a[i] * b[i + 1]) + (a[i + 1] * b[i]);
    }
    for (int32_t i = 0; i < 16; i += 2) {
        sound = sound && (sums[i] == zero) && (sums[i + 1] == (square + square));
    }
    return sound;
}
