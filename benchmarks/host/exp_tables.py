"""Print the polynomials of pykernel.algorithms.elementary: exp_negative, exp2_negative, hyperbolic_tangent, cosine, log2_one_plus.

Chebyshev interpolation in 60 digits (the minimax polynomial to within a few percent); where the truncation error is
most of what may be lost, the minimax polynomial among those with float32 coefficients (nearly: each is rounded in turn,
and those that follow are fitted anew).
Run: python -m benchmarks.host.exp_tables   (needs mpmath, which comes with the test extra)
"""

from collections.abc import Callable

from mpmath import atanh, chebyfit, cos, exp, expm1, frexp, ln, lu_solve, matrix, mp, nint, pi, sin, sqrt, tanh

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


def exp2_rest(f):
    """(2^f - 1) / f"""
    return ln(2) + ln(2) ** 2 * f / 2 if abs(f) < tiny else expm1(f * ln(2)) / f


def tanh_rest(z):
    """(tanh x / x - 1) / z, z = x^2"""
    x = sqrt(abs(z))
    return -mp.mpf(1) / 3 + 2 * z / 15 if x < tiny else (tanh(x) / x - 1) / z


def log2_rest(z):
    """log2((1 + s) / (1 - s)) / s, z = s^2"""
    s = sqrt(abs(z))
    return 2 / ln(2) if s < tiny else 2 * atanh(s) / s / ln(2)


def polynomial(coefficients, x):
    """Lowest power first."""
    total = mp.mpf(0)
    for c in reversed(coefficients):
        total = total * x + c
    return total


def exchange(values, weights, points, first, terms):
    """Coefficients of x^first ... x^(first + terms - 1) that minimise the largest weighted error at the points (Remez)."""
    order = len(points) - 1
    chosen = [round(float((1 - cos(pi * (i + mp.mpf(1) / 2) / (terms + 1))) / 2 * order)) for i in range(terms + 1)]
    for _ in range(30):
        system, right = matrix(terms + 1, terms + 1), matrix(terms + 1, 1)
        for row, i in enumerate(chosen):
            for column in range(terms):
                system[row, column] = points[i] ** (first + column)
            system[row, terms] = (-1) ** row / weights[i]
            right[row] = values[i]
        solution = lu_solve(system, right)
        found = [solution[i] for i in range(terms)]
        errors = [w * (x**first * polynomial(found, x) - v) for x, v, w in zip(points, values, weights, strict=True)]
        # the largest of each run of one sign; of too many, the smaller end goes
        peaks: list[int] = []
        for i, error in enumerate(errors):
            if not peaks or (errors[peaks[-1]] > 0) != (error > 0):
                peaks.append(i)
            elif abs(error) > abs(errors[peaks[-1]]):
                peaks[-1] = i
        while len(peaks) > terms + 1:
            peaks.pop(0 if abs(errors[peaks[0]]) < abs(errors[peaks[-1]]) else -1)
        if peaks == chosen or len(peaks) < terms + 1:
            break
        chosen = peaks
    return found


def show_rounded(name, function: Callable, interval, terms, weight: Callable, bits: int, count: int = 400):
    """As show(), with coefficients of so many bits; weight: what an error of ``function`` at x is in the result."""
    middle, half = (interval[1] + interval[0]) / 2, (interval[1] - interval[0]) / 2
    points = [middle - half * cos(pi * (2 * i + 1) / (2 * count)) for i in range(count)]
    values, weights = [function(x) for x in points], [weight(x) for x in points]
    rounded: list = []
    for k in range(terms):
        rest = [v - polynomial(rounded, x) for x, v in zip(points, values, strict=True)]
        mantissa, exponent = frexp(exchange(rest, weights, points, k, terms - k)[0])
        rounded.append(nint(mantissa * 2**bits) * mp.mpf(2) ** (exponent - bits))
    errors = (abs(w * (polynomial(rounded, x) - v)) for x, v, w in zip(points, values, weights, strict=True))
    print(name, "truncation error:", mp.nstr(max(errors), 3), "of the unit of the weight")
    for value in reversed(rounded):
        print("   ", mp.nstr(value, 20))


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


def ulp_of_exp2(f):
    """An error of exp2_rest in float32 ulp of 2^f; above 1, where operations round less, a quarter more may be lost."""
    return abs(f) * 2**24 if f < 0 else abs(f) * 2**23 / mp.mpf(1.25)


middle = mp.mpf(1) / 2
show_rounded("EXP2_POLYNOMIAL float32", exp2_rest, [-middle, middle], 5, ulp_of_exp2, 24)
show("EXP2_POLYNOMIAL float64", exp2_rest, [-middle, middle], 11, middle)

edge = mp.mpf(5) / 8
for precision, terms in (("float32", 5), ("float64", 11)):
    show(f"TANH_POLYNOMIAL {precision}", tanh_rest, [0, edge**2], terms, edge**2)

# from u = 1 / sqrt(2) to sqrt(2), s = (u - 1) / (u + 1)
edge = (sqrt(2) - 1) ** 2 + mp.mpf(2) ** -20
for precision, terms in (("float32", 4), ("float64", 8)):
    show(f"LOG2_POLYNOMIAL {precision}", log2_rest, [0, edge**2], terms, ln(2) / 2)
