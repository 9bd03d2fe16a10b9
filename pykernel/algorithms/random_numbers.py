"""Random numbers that are the same on host and device: B. A. Wichmann, I. D. Hill, Algorithm AS 183, 1982."""

from pykernel.dialect import Constant, Index, Real, kernel, real, truncate

PERIOD_1 = Constant(1 / 30269)
PERIOD_2 = Constant(1 / 30307)
PERIOD_3 = Constant(1 / 30323)
LARGEST_PERIOD = 30323
"""The state of every generator is below this."""


@kernel
def advance(seeds: Index[3]) -> None:
    """Advance three generators to their next states.  Together, the generators have a period of 6.95e12.  O(1)."""
    first = (171 * (seeds[0] if seeds[0] > 0 else 1)) % 30269
    second = (172 * (seeds[1] if seeds[1] > 0 else 1)) % 30307
    third = (170 * (seeds[2] if seeds[2] > 0 else 1)) % 30323
    seeds[0] = first
    seeds[1] = second
    seeds[2] = third


@kernel
def draw(seeds: Index[3]) -> Real:
    """A random number from 0 up to, but not including, 1.  O(1)."""
    advance(seeds)
    total = real(seeds[0]) * PERIOD_1 + real(seeds[1]) * PERIOD_2 + real(seeds[2]) * PERIOD_3
    return total - real(truncate(total))


@kernel
def position(seeds: Index[3], count: Index) -> Index:
    """A random position from 0 to count - 1, for count up to 2^23.  O(1)."""
    part = draw(seeds)
    at = truncate(part * real(count))
    # the product may round up to count
    return at if at < count else count - 1
