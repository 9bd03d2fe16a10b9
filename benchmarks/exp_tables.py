"""Print the polynomials of pykernel.numerics: of exp_negative and of cosine.

Chebyshev interpolation in 60 digits (the minimax polynomial to within a few percent).
Run: python benchmarks/exp_tables.py   (needs mpmath, which comes with the test extra)
"""

from mpmath import chebyfit, cos, exp, ln, mp, pi, sin, sqrt

mp.dps = 60
tiny = mp.mpf(10) ** -20


def exp_rest(r):
    """(e^r - 1 - r) / r^2"""
    return mp.mpf(1) / 2 + r / 6 if abs(r) < tiny else (exp(r) - 1 - r) / r**2


def sine(z):
    """sin(2 pi s) / s, z = s^2"""
    s = sqrt(abs(z))
    return 2 * pi if s < tiny else sin(2 * pi * s) / s


def cosine_rest(z):
    """(cos(2 pi t) - 1) / z, z = t^2"""
    t = sqrt(abs(z))
    return -2 * pi**2 if t < tiny else (cos(2 * pi * t) - 1) / z


def show(name, function, interval, terms, weight):
    """The coefficients, highest power first, as Horner's rule takes them; error: of the result."""
    coefficients, error = chebyfit(function, interval, terms, error=True)
    print(name, "truncation error:", mp.nstr(error * weight, 3))
    for value in coefficients:
        print("   ", mp.nstr(value, 20))


half = ln(2) / 2 + mp.mpf(2) ** -20
eighth = mp.mpf(1) / 8 + mp.mpf(2) ** -20
for precision, terms in (("float32", 5), ("float64", 11)):
    show(f"EXP_POLYNOMIAL {precision}", exp_rest, [-half, half], terms, half**2)
for precision, terms in (("float32", 4), ("float64", 7)):
    show(f"SINE_POLYNOMIAL {precision}", sine, [0, eighth**2], terms, eighth)
for precision, terms in (("float32", 4), ("float64", 7)):
    show(f"COSINE_POLYNOMIAL {precision}", cosine_rest, [0, eighth**2], terms, eighth**2)
