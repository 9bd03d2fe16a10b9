/* Whether this build's arithmetic follows IEEE-754 in cases that the self-test's samples may not reach.  NaN,
 * infinities and negative zeros must be respected.  Each product must be rounded before it is added, also in vectorised
 * loops. */
static bool pk_arithmetic(void)
{
    volatile PK_REAL one = PK_ONE; /* volatile: the compiler must not know the value */
    volatile PK_REAL more = PK_ONE + PK_EPSILON;
    const PK_REAL square = PK_ONE + PK_EPSILON + PK_EPSILON; /* more * more, rounded */
    volatile PK_REAL most = PK_MAX;
    const PK_REAL zero = one - one;
    const PK_REAL infinite = most * (one + one);
    const PK_REAL nan = infinite - infinite;
    const PK_REAL factor = more;
    volatile PK_REAL negative; /* -0.0 */
    union { PK_REAL value; PK_BITS bits; } both;
    PK_REAL a[8];
    PK_REAL b[8];
    PK_REAL sums[16];
    bool sound = !(nan <= one) && (nan != nan) && !(infinite <= PK_MAX);
    both.bits = PK_SIGN_BIT;
    negative = both.value;
    both.value = negative + PK_ZERO;
    sound = sound && (both.bits == 0u) && (((factor * factor) - square) == zero);
    PK_LOOP(9005)
    for (int32_t i = 0; i < 8; i++) {
        PK_TURN(9005)
        a[i] = more;
        b[i] = more;
    }
    PK_LOOP(9005)
    for (int32_t i = 0; i < 8; i += 2) {
        PK_TURN(9005)
        sums[i] = (a[i] * b[i]) - square;
        sums[i + 1] = (a[i + 1] * b[i + 1]) + square;
    }
    /* sums in the form of products of complex numbers, which some processors fuse */
    PK_LOOP(9005)
    for (int32_t i = 0; i < 8; i += 2) {
        PK_TURN(9005)
        sums[8 + i] = (a[i] * b[i]) - (a[i + 1] * b[i + 1]);
        sums[9 + i] = (a[i] * b[i + 1]) + (a[i + 1] * b[i]);
    }
    PK_LOOP(9005)
    for (int32_t i = 0; i < 16; i += 2) {
        PK_TURN(9005)
        sound = sound && (sums[i] == zero) && (sums[i + 1] == (square + square));
    }
    return sound;
}
