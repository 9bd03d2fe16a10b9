"""Print the polynomial tables of pykernel.numerics.exp_negative: q(r) = (e^r - 1 - r) / r^2 on |r| <= ln(2)/2.

Chebyshev interpolation in 60 digits (the minimax polynomial to within a few percent).
Run: python benchmarks/exp_tables.py   (needs mpmath, which comes with the test extra)
"""

from mpmath import chebyfit, exp, ln, mp

mp.dps = 60
half = ln(2) / 2 + mp.mpf(2) ** -20


def q(r):
    if abs(r) < mp.mpf(10) ** -20:
        return mp.mpf(1) / 2 + r / 6
    return (exp(r) - 1 - r) / r**2


for name, terms in (("float32", 5), ("float64", 11)):
    coefficients, error = chebyfit(q, [-half, half], terms, error=True)
    print(name, "truncation error of r^2 q(r):", mp.nstr(error * half**2, 3))
    for value in coefficients:  # highest power first, as Horner's rule takes them
        print("   ", mp.nstr(value, 20))
