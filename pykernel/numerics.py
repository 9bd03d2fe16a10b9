"""Elementary functions in the dialect: the same operations, hence the same bits, on every runtime."""

from pykernel.dialect import Constant, Real, kernel, pow2, real, truncate

FLOOR_EXPONENT = 60
"""Kernel values below 2**-60 are zero: beside the 1 of a vector with itself they are nothing in either precision."""

EXP_LOWEST = Constant(-41.58883083359671856503)  # -FLOOR_EXPONENT ln 2
LOG2_E = Constant(1.44269504088896340736)
# ln 2 in two parts; the first has so few bits that k LN2_HIGH is exact for |k| <= FLOOR_EXPONENT
LN2_HIGH = Constant(float32=0.693145751953125, float64=0.69314718036912381649)
LN2_LOW = Constant(float32=1.428606765330187045e-06, float64=1.9082149292705877e-10)
# (e^r - 1 - r) / r^2, highest power first; printed by benchmarks/exp_tables.py
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
    """e^x for x <= 0, within 1 ulp and monotone; zero below 2^-60 and for NaN."""
    if not (x >= EXP_LOWEST):
        return real(0)
    # x = k ln 2 + r with |r| <= ln(2)/2; subtracting in two parts keeps r's last bits
    exponent = x * LOG2_E - real(0.5)
    k = truncate(exponent)
    high = x - real(k) * LN2_HIGH
    low = real(k) * LN2_LOW
    r = high - low
    q = EXP_POLYNOMIAL[0]
    for i in range(1, len(EXP_POLYNOMIAL)):
        q = q * r + EXP_POLYNOMIAL[i]
    return (real(1) + (high + (r * r * q - low))) * pow2(k)


@kernel
def clipped(x: Real, low: Real, high: Real) -> Real:
    """x, kept between low and high."""
    if x < low:
        return low
    if x > high:
        return high
    return x
