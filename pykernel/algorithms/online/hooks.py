"""What a rule brings to learning under a budget; where it brings nothing, what stands here holds."""

from pykernel.algorithms.online.state import OnlineModel, OnlineStatus
from pykernel.dialect import Bool, Index, Real, kernel, placeholder, real


@placeholder
def propose(m: OnlineModel) -> None:
    """Propose multipliers of the stored vectors and, as number n, of the sample, all in m.beta."""


@placeholder
def adapt(m: OnlineModel, close: Bool) -> Bool:
    """Propose multipliers of the stored vectors, for a sample that is not stored.  False: one is out of range."""


@placeholder
def assimilate(m: OnlineModel, stored: Bool) -> None:
    """Change what the rule keeps of its own, once the multipliers are certain, and before vectors come and go."""


@placeholder
def enter(m: OnlineModel, n: Index) -> None:
    """The sample becomes vector n of matrices."""


@placeholder
def leave(m: OnlineModel, r: Index, count: Index) -> None:
    """Vector r of count goes."""


@kernel
def absorbed(m: OnlineModel) -> Index:
    """How a sample was learned without being stored: as a repetition of the nearest vector, or not."""
    if m.nearest_distance[0] > real(0):
        return OnlineStatus.ABSORBED
    return OnlineStatus.MERGED


@placeholder
def outcome(m: OnlineModel, close: Bool) -> Index:
    """What has happened to a sample that was not stored."""
    return absorbed(m)


@placeholder
def fills(m: OnlineModel) -> Bool:
    """Whether nothing is removed from a full model."""
    return False


@placeholder
def combines(m: OnlineModel) -> Bool:
    """Whether propose() computes u itself, beside a product of its own."""
    return False


@placeholder
def solves(m: OnlineModel) -> Bool:
    """Whether the rule solves for the multipliers: then samples of a clear class are skipped."""
    return False


@placeholder
def spreads(m: OnlineModel) -> Bool:
    """Whether a new sample changes the multipliers of all vectors, which are checked."""
    return False


@placeholder
def vacant(m: OnlineModel, at: Index) -> Bool:
    """Whether the rule's own matrices are zero at a place that is not in use."""
    return True


@placeholder
def sound(m: OnlineModel) -> Bool:
    """Whether what the rule keeps of its own is still within its limits after a sample."""
    return True


@placeholder
def renewed(m: OnlineModel) -> Bool:
    """Compute what follows from matrices that were computed again.  False: it is out of range."""
    return True


@placeholder
def forget_own(m: OnlineModel) -> None:
    """Forget what the rule keeps of its own."""


@placeholder
def share_of_nearest(m: OnlineModel) -> Real:
    """What the nearest vector gets of the multiplier of a sample that is not stored."""
    return real(1)


@kernel
def always(m: OnlineModel) -> Bool:
    """Of a rule for which a question above is always true."""
    return True


@kernel
def never(m: OnlineModel) -> Bool:
    """Of a rule for which a question above is never true."""
    return False
