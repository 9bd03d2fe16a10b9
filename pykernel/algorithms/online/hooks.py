"""The hooks of a rule that learns under a budget.  The bodies below are the defaults."""

from pykernel.algorithms.online.state import OnlineModel, OnlineStatus
from pykernel.dialect import Bool, Index, Real, kernel, placeholder, real


@placeholder
def propose(m: OnlineModel) -> None:
    """Propose in m.beta the multipliers of the stored vectors and, as number n, of the sample."""


@placeholder
def adapt(m: OnlineModel, close: Bool) -> Bool:
    """Propose multipliers of the stored vectors, for a sample that is not stored.  False: a multiplier is out of range."""


@placeholder
def assimilate(m: OnlineModel, stored: Bool) -> None:
    """Update the rule's own memory, once the multipliers are final and before vectors are added or removed."""


@placeholder
def enter(m: OnlineModel, n: Index) -> None:
    """Add the sample to the rule's own matrices, as vector n."""


@placeholder
def leave(m: OnlineModel, r: Index, count: Index) -> None:
    """Remove vector r of the count vectors from the rule's own matrices."""


@kernel
def absorbed(m: OnlineModel) -> Index:
    """The status of a sample that was learned but not stored: MERGED if it repeats the nearest vector, else ABSORBED."""
    if m.nearest_distance[0] > real(0):
        return OnlineStatus.ABSORBED
    return OnlineStatus.MERGED


@placeholder
def outcome(m: OnlineModel, close: Bool) -> Index:
    """The status of a sample that was not stored."""
    return absorbed(m)


@placeholder
def fills(m: OnlineModel) -> Bool:
    """Whether a full model keeps all its vectors."""
    return False


@placeholder
def combines(m: OnlineModel) -> Bool:
    """Whether propose() computes u itself, together with another product."""
    return False


@placeholder
def solves(m: OnlineModel) -> Bool:
    """Whether the rule solves for the multipliers: such a rule skips samples whose class is already clear."""
    return False


@placeholder
def spreads(m: OnlineModel) -> Bool:
    """Whether a new sample changes the multipliers of all vectors, so that all are checked."""
    return False


@placeholder
def vacant(m: OnlineModel, at: Index) -> Bool:
    """Whether the rule's own matrices are zero in a place that is not in use."""
    return True


@placeholder
def sound(m: OnlineModel) -> Bool:
    """Whether the rule's own memory is still within its limits after a sample."""
    return True


@placeholder
def renewed(m: OnlineModel) -> Bool:
    """Recompute the numbers that depend on recomputed matrices.  False: a result is out of range."""
    return True


@placeholder
def forget_own(m: OnlineModel) -> None:
    """Clear the rule's own memory."""


@placeholder
def share_of_nearest(m: OnlineModel) -> Real:
    """The share of an unstored sample's multiplier that goes to the nearest vector."""
    return real(1)


@kernel
def always(m: OnlineModel) -> Bool:
    """For rules in which the answer to one of the questions above is always true."""
    return True


@kernel
def never(m: OnlineModel) -> Bool:
    """For rules in which the answer to one of the questions above is never true."""
    return False
