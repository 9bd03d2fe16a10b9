"""Elementary functions in the dialect: every runtime executes the same operations and gets the same bits."""

from pykernel.algorithms.vectors import copy, multiply
from pykernel.dialect import (
    CLASSES,
    OUTPUTS,
    Bool,
    Constant,
    Index,
    Real,
    absolute,
    floor_log2,
    kernel,
    pow2,
    pow2_rounded,
    real,
    truncate,
)

FLOOR_EXPONENT = 60
"""Kernel values below 2**-60 are replaced by zero: added to k(v, v) = 1, they would be rounded away in either precision."""

EXP_LOWEST = Constant(-41.58883083359671856503)  # -FLOOR_EXPONENT ln 2
LOG2_E = Constant(1.44269504088896340736)
LN_2 = Constant(0.69314718055994530942)
# ln 2 in two parts; the first part has so few bits that the product k LN2_HIGH is exact for |k| <= FLOOR_EXPONENT
LN2_HIGH = Constant(float32=0.693145751953125, float64=0.69314718036912381649)
LN2_LOW = Constant(float32=1.428606765330187045e-06, float64=1.9082149292705877e-10)
# coefficients of (e^r - 1 - r) / r^2, highest power first; printed by benchmarks/host/exp_tables.py
EXP_POLYNOMIAL = Constant(
    float32=(0.001392617632541805287, 0.008363173239009372412, 0.041666554660816677952, 0.16666577024610285901, 0.5),
    float64=(
        2.0914679585470830588e-9,
        2.5105206666471839336e-8,
        2.7557273660846840992e-7,
        2.7557255425043746751e-6,
        0.000024801587325533759349,
        0.00019841269874801045858,
        0.0013888888888883752303,
        0.0083333333333261407256,
        0.041666666666666669752,
        0.16666666666666670986,
        0.5,
    ),
)


@kernel
def exp_negative(x: Real) -> Real:
    """e^x for x <= 0: within 1 ulp, and monotone.  Results below 2^-60 are zero; NaN gives zero."""
    if not (x >= EXP_LOWEST):
        return real(0)
    # x = k ln 2 + r with |r| <= ln(2)/2; k ln 2 is subtracted in two parts, to keep r's last bits
    exponent = x * LOG2_E - real(0.5)
    k = truncate(exponent)
    high = x - real(k) * LN2_HIGH
    low = real(k) * LN2_LOW
    r = high - low
    q = EXP_POLYNOMIAL[0]
    for i in range(1, len(EXP_POLYNOMIAL)):
        q = q * r + EXP_POLYNOMIAL[i]
    return (real(1) + (high + (r * r * q - low))) * pow2(k)


EXP2_LOWEST = Constant(-60.0)  # -FLOOR_EXPONENT
# coefficients of (2^f - 1) / f, highest power first; printed by benchmarks/host/exp_tables.py
EXP2_POLYNOMIAL = Constant(
    float32=(
        0.0013167656725272536278,
        0.0096717476844787597656,
        0.055510777980089187622,
        0.24022237956523895264,
        0.69314670562744140625,
    ),
    float64=(
        4.4549605981865183938e-10,
        7.0725859492692236999e-9,
        1.0178062445845773521e-7,
        1.3215442587921689653e-6,
        0.000015252733829836118394,
        0.00015403530441736050155,
        0.001333355814641693531,
        0.0096181291076068885273,
        0.055504108664821594339,
        0.2402265069591009822,
        0.69314718055994530942,
    ),
)


# adding ROUNDING to a number rounds the number to an integer k; pow2_rounded(ROUNDING + k) is 2^k / RAISED, or zero if
# k < -FLOOR_EXPONENT.  The polynomial is multiplied by RAISED, so that no product is subnormal
ROUNDING = Constant(float32=2.0**23 + 61, float64=2.0**52 + 61)
RAISED = Constant(float32=2.0**66, float64=2.0**962)
EXP2_RAISED = Constant(
    **{
        name: tuple(c * RAISED.by_precision[name] for c in table)
        for name, table in EXP2_POLYNOMIAL.by_precision.items()
    }
)


@kernel
def exp2_rounded(f: Real, rounded: Real) -> Real:
    """2^(f + k) for |f| <= 1/2 and rounded = ROUNDING + k, within 2 ulp; zero if k < -60."""
    q = EXP2_RAISED[0]
    for i in range(1, len(EXP2_RAISED)):
        q = q * f + EXP2_RAISED[i]
    return (RAISED + q * f) * pow2_rounded(rounded)


@kernel
def exp2_negative(t: Real) -> Real:
    """2^t for t <= 0, within 2 ulp.  Results below 2^-60 are zero; NaN gives zero.

    Rounding may make t slightly positive; any t < 1/2 is allowed.  This function is cheaper than exp_negative, because
    t is split into an integer and a fraction without rounding errors.
    """
    if not (t >= EXP2_LOWEST):
        return real(0)
    # t = k + f with |f| <= 1/2
    rounded = t + ROUNDING
    return exp2_rounded(t - (rounded - ROUNDING), rounded)


TANH_EDGE = Constant(0.625)
# coefficients of (tanh x / x - 1) / x^2, highest power of x^2 first; printed by benchmarks/host/exp_tables.py
TANH_POLYNOMIAL = Constant(
    float32=(
        -0.0060967141659081975745,
        0.020997178999074750572,
        -0.053850909578513580828,
        0.13332769736976327858,
        -0.33333328944134254565,
    ),
    float64=(
        -0.000017244874494844330172,
        0.000079599557352648080002,
        -0.000230776162695198579,
        0.00058743728600943818973,
        -0.001455309297534642025,
        0.0035920589774734553151,
        -0.0088632298309257087457,
        0.021869488260559114645,
        -0.053968253961395570821,
        0.13333333333326657736,
        -0.33333333333333322565,
    ),
)


@kernel
def hyperbolic_tangent(x: Real) -> Real:
    """tanh x, within 2 ulp.  The result is odd in x and lies between -1 and 1.  NaN gives 1."""
    size = absolute(x)
    if size <= TANH_EDGE:
        z = size * size
        p = TANH_POLYNOMIAL[0]
        for i in range(1, len(TANH_POLYNOMIAL)):
            p = p * z + TANH_POLYNOMIAL[i]
        return x + x * (z * p)
    # the fraction 2 e / (1 + e) is below 1/2 and the result is above 1/2, so one ulp of the fraction is at most half an ulp of the result
    e = exp_negative(-(size + size))
    value = real(1) - (e + e) / (real(1) + e)
    if x < real(0):
        return -value
    return value


@kernel
def logistic(x: Real) -> Real:
    """1 / (1 + e^-x), within 2 ulp.  The result lies between 0 and 1.  If e^x is below 2^-60, the result is zero; NaN
    gives 1."""
    e = exp_negative(-absolute(x))
    total = real(1) + e
    if x < real(0):
        # the rounding error of 1 + e
        rest = e - (total - real(1))
        value = e / total
        return value - value * rest
    return real(1) / total


WHOLE = Constant(float32=2.0**24, float64=2.0**53)
"""All floating-point numbers of at least this magnitude are integers."""
MANY = Constant(2.0**22)
ONE_OF_MANY = Constant(2.0**-22)
# coefficients of sin(2 pi s) / s and (cos(2 pi t) - 1) / t^2, highest power of s^2 and t^2 first; printed by benchmarks/host/exp_tables.py
SINE_POLYNOMIAL = Constant(
    float32=(-75.401592954643286304, 81.592542485485014, -41.34166256873866333, 6.2831852878117679796),
    float64=(
        3.7808683658017300703,
        -15.093804184483625682,
        42.058685019753317069,
        -76.705859704271578484,
        81.605249275948025533,
        -41.341702240399636195,
        6.2831853071795864571,
    ),
)
COSINE_POLYNOMIAL = Constant(
    float32=(59.424093541656051795, -85.448819846621629488, 64.93936905028016639, -19.739208789986767343),
    float64=(
        -1.6990341607489697962,
        7.9032069015437983558,
        -26.426253275694496622,
        60.24464135270084054,
        -85.456817206643800442,
        64.939394022668242738,
        -19.73920880217871723,
    ),
)


@kernel
def cosine_near(turns: Real) -> Real:
    """cos(2 pi turns) for 0 <= turns <= 1/8."""
    z = turns * turns
    p = COSINE_POLYNOMIAL[0]
    for i in range(1, len(COSINE_POLYNOMIAL)):
        p = p * z + COSINE_POLYNOMIAL[i]
    return real(1) + z * p


@kernel
def sine_near(turns: Real) -> Real:
    """sin(2 pi turns) for 0 <= turns <= 1/8."""
    z = turns * turns
    q = SINE_POLYNOMIAL[0]
    for i in range(1, len(SINE_POLYNOMIAL)):
        q = q * z + SINE_POLYNOMIAL[i]
    return turns * q


@kernel
def cosine_of_quarter(turns: Real) -> Real:
    """cos(2 pi turns) for 0 <= turns <= 1/4."""
    if turns <= real(0.125):
        return cosine_near(turns)
    # 1/4 - turns is exact, so the sine keeps all its digits, even near zero
    return sine_near(real(0.25) - turns)


@kernel
def sine_of_quarter(turns: Real) -> Real:
    """sin(2 pi turns) for 0 <= turns <= 1/4."""
    if turns <= real(0.125):
        return sine_near(turns)
    return cosine_near(real(0.25) - turns)


@kernel
def beyond_whole(turns: Real) -> Real:
    """The fractional part of |turns|, computed exactly, for |turns| < WHOLE."""
    # whole turns are subtracted in two steps, because in float64 their number may exceed int32
    rest = turns - real(truncate(turns * ONE_OF_MANY)) * MANY
    return absolute(rest - real(truncate(rest)))


@kernel
def cosine(turns: Real) -> Real:
    """cos(2 pi turns), within 2 ulp for every finite number.  Infinities and NaN give 1.

    The angle is in turns, so that whole turns can be subtracted without rounding.
    """
    if not (absolute(turns) < WHOLE):
        return real(1)
    rest = beyond_whole(turns)
    if rest > real(0.5):
        rest = real(1) - rest
    if rest > real(0.25):
        return -cosine_of_quarter(real(0.5) - rest)
    return cosine_of_quarter(rest)


@kernel
def sine(turns: Real) -> Real:
    """sin(2 pi turns), within 2 ulp for every finite number, and odd.  Infinities and NaN give 0."""
    if not (absolute(turns) < WHOLE):
        return real(0)
    rest = beyond_whole(turns)
    negative = turns < real(0)
    if rest > real(0.5):
        rest = real(1) - rest
        negative = not negative
    if rest > real(0.25):
        rest = real(0.5) - rest
    value = sine_of_quarter(rest)
    if negative:
        return -value
    return value


TWICE_SQRT_2 = Constant(2.82842712474619009760)
# coefficients of log2((1 + s) / (1 - s)) / s, highest power of s^2 first; printed by benchmarks/host/exp_tables.py
LOG2_POLYNOMIAL = Constant(
    float32=(0.43171792182635636597, 0.57671517777311645521, 0.96179883887479824947, 2.8853900798032474436),
    float64=(
        0.21365920908187392485,
        0.22091306012106754728,
        0.26233435340446600098,
        0.32059853489740783331,
        0.41219858584105543666,
        0.57707801634551954622,
        0.96179669392598972989,
        2.8853900817779268115,
    ),
)


@kernel
def log2_one_plus(x: Real) -> Real:
    """log2(1 + x) for x >= 0, within 4 ulp, even for small x.  If x is infinity or NaN, the result is NaN."""
    u = real(1) + x
    # the rounding error of 1 + x
    rest = x - (u - real(1))
    if u - u != real(0):
        return u - u
    exponent = floor_log2(u)
    scale = pow2(1 - exponent)
    u = u * scale
    half = real(0.5)
    # choose the exponent so that 1 + f lies between 1 / sqrt(2) and sqrt(2)
    if u > TWICE_SQRT_2:
        half = real(0.25)
        exponent = exponent + 1
    f = (u * half - real(1)) + rest * (scale * half)
    s = f / (real(2) + f)
    z = s * s
    q = LOG2_POLYNOMIAL[0]
    for i in range(1, len(LOG2_POLYNOMIAL)):
        q = q * z + LOG2_POLYNOMIAL[i]
    return real(exponent) + s * q


@kernel
def log2_of(x: Real) -> Real:
    """log2(x) for x > 0, within 4 ulp where x >= 2 or x <= 1/2.  If x or 1 / x is infinite or NaN, the result is NaN."""
    if x >= real(1):
        return log2_one_plus(x - real(1))
    return -log2_one_plus(real(1) / x - real(1))


@kernel
def clipped(x: Real, low: Real, high: Real) -> Real:
    """x, limited to the range from low to high.  NaN gives low."""
    if x > high:
        return high
    # not "if (x < low)": NaN must give low
    if x >= low:
        return x
    return low


@kernel
def bounded(x: Real, most: Real) -> Real:
    """x, limited to the range from -most to most.  NaN gives -most.  If x is within the range, only one comparison is needed."""
    if absolute(x) <= most:
        return x
    if x > real(0):
        return most
    return -most


@kernel
def winner(y: Real[OUTPUTS]) -> Index:
    """The class with the largest function value.  Two classes share one function: a positive value means the second class."""
    best = 0
    if len(y) == 1:
        if y[0] > real(0):
            best = 1
    else:
        for o in range(1, len(y)):
            if y[o] > y[best]:
                best = o
    return best


@kernel
def softmax(y: Real[OUTPUTS]) -> None:
    """Replace each y_c by the probability of class c, e^y_c / sum_k e^y_k.  A single y is replaced by the probability of the
    second class, 1 / (1 + e^-y).

    y must be finite.  O(classes).
    """
    if len(y) == 1:
        y[0] = logistic(y[0])
    else:
        top = y[winner(y)]
        total = real(0)
        for o in range(len(y)):
            # top is the largest y[o]
            y[o] = exp_negative(-absolute(top - y[o]))
            total += y[o]
        multiply(y, real(1) / total, len(y))


@kernel
def each_class(q: Real[OUTPUTS], p: Real[CLASSES]) -> None:
    """Write the probability of each class to p.  For two classes, q contains only the probability of the second class;
    for more classes, q contains all probabilities."""
    if len(q) == 1:
        p[0] = real(1) - q[0]
        p[1] = q[0]
    else:
        copy(q, p, len(p))


@kernel
def platt(f: Real[OUTPUTS], slopes: Real[OUTPUTS], offsets: Real[OUTPUTS], p: Real[CLASSES], single: Bool) -> None:
    """Write the probability of each class to p (Platt, Probabilities for SV Machines, 1999).  The probabilities sum to 1."""
    if single:
        p[1] = logistic(slopes[0] * f[0] + offsets[0])
        p[0] = real(1) - p[1]
    else:
        total = real(0)
        for o in range(len(p)):
            p[o] = logistic(slopes[o] * f[o] + offsets[o])
            total += p[o]
        for o in range(len(p)):
            p[o] = p[o] / total if total > real(0) else real(1) / real(len(p))
