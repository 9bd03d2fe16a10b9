"""What the self-tests feed to a model, so that arithmetic which is not IEEE's shows."""

from pykernel.dialect import Constant, Real, absolute, kernel, real

SMALLEST = Constant(float32=2.0**-126, float64=2.0**-1022)
LARGEST = Constant(float32=2.0**126, float64=2.0**1022)
# -2 + CANCELLING needs the last bit that GCC 12's double addition for Thumb-2 without a double FPU gets wrong
CANCELLING = Constant(float32=float.fromhex("0x1.410adep-9"), float64=float.fromhex("0x1.410ade018a5a9p-32"))
CANCELLED = Constant(float32=2.0**7, float64=2.0**30)


@kernel
def strained(part: Real) -> Real:
    """A number from -1/2 to 1/2, computed from |part| <= 1/2 so that broken arithmetic gives another number.

    One product is subnormal: an FPU that flushes small numbers to zero loses it.  One sum cancels a bit: at least one
    floating-point library rounds such sums wrongly.
    """
    subnormal = part * SMALLEST
    # 1, but the compiler cannot know this
    unit = (absolute(part) + real(1)) / (absolute(part) + real(1))
    rest = (unit * CANCELLING - unit * real(2)) + real(2)
    return real(0.5) * part + real(0.25) * (subnormal * LARGEST) + real(0.25) * (rest * CANCELLED)
