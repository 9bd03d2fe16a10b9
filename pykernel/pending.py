"""Until pykernel.numerics and pykernel.kernels have them."""

from pykernel.dialect import DIM, Constant, Index, Real, absolute, kernel, real, unroll
from pykernel.numerics import exp_negative

LN2C=Constant(0.6931471805599453)
@kernel
def exp2_negative(t: Real) -> Real:
    if t > real(0):
        return real(1)
    return exp_negative(t*LN2C)
@kernel
def logistic(x: Real) -> Real:
    if x >= real(0):
        return real(1)/(real(1)+exp_negative(-x))
    e = exp_negative(x)
    return e/(real(1)+e)
@kernel
def hyperbolic_tangent(x: Real) -> Real:
    return real(2)*logistic(real(2)*x)-real(1)
@kernel
def absolute_distance(a: Real[DIM], b: Real[DIM]) -> Real:
    total = real(0)
    for j in unroll(len(a)):
        total += absolute(a[j]-b[j])
    return total
@kernel
def inner_product(a: Real[DIM], b: Real[DIM]) -> Real:
    total = real(0)
    for j in unroll(len(a)):
        total += a[j]*b[j]
    return total
@kernel
def polynomial(gamma: Real, coef0: Real, degree: Index, product: Real) -> Real:
    base = gamma*product+coef0
    value = real(1)
    for i in range(degree):
        value = value*base
    return value
@kernel
def sigmoid(gamma: Real, coef0: Real, product: Real) -> Real:
    return hyperbolic_tangent(gamma*product+coef0)
