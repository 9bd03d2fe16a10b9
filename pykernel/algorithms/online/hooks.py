"""The hooks of a rule that learns under a budget.  The bodies below are the defaults."""

from pykernel.algorithms.online.state import OnlineModel, OnlineStatus
from pykernel.dialect import Bool, Index, Real, kernel, placeholder, real


@placeholder
def propose(m: OnlineModel) -> None:
    """[drafts] Write proposed multipliers to m.beta: those of the stored vectors and, at index n, those of the sample.
    [not drafts] Write the sample's proposed multipliers to m.step."""


@placeholder
def adapt(m: OnlineModel, close: Bool) -> Bool:
    """Propose multipliers of the stored vectors for a sample that is not stored.  Returns False if a multiplier is out of range."""


@placeholder
def assimilate(m: OnlineModel, stored: Bool) -> None:
    """Update the rule's own memory, once it is certain that the sample is learned, and before vectors are added or
    removed."""


@placeholder
def enter(m: OnlineModel, n: Index) -> None:
    """Add the sample to the rule's own matrices, as vector n."""


@placeholder
def leave(m: OnlineModel, r: Index, count: Index) -> None:
    """Remove vector r of ``count`` vectors from the rule's own matrices."""


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
    """Whether propose() computes u itself."""
    return False


@placeholder
def solves(m: OnlineModel) -> Bool:
    """Whether the rule solves equations for the multipliers.  Such a rule skips samples that are already classified clearly."""
    return False


@placeholder
def spreads(m: OnlineModel) -> Bool:
    """Whether a new sample changes the multipliers of all vectors, so that all multipliers must be checked."""
    return False


@placeholder
def vacant(m: OnlineModel, at: Index) -> Bool:
    """Whether the unused element ``at`` of the rule's own matrices is zero."""
    return True


@placeholder
def sound(m: OnlineModel) -> Bool:
    """Whether the rule's own memory is still within its limits after a sample."""
    return True


@placeholder
def renewed(m: OnlineModel) -> Bool:
    """After matrices have been recomputed, recompute the values that depend on them.  Returns False if a value is out of range."""
    return True


@placeholder
def share_of_nearest(m: OnlineModel) -> Real:
    """The share of a sample's multiplier that the nearest vector gets if the sample is not stored."""
    return real(1)


@kernel
def always(m: OnlineModel) -> Bool:
    """Replaces a condition that always holds for a rule, a technique or a projection."""
    return True


@kernel
def never(m: OnlineModel) -> Bool:
    """Replaces a condition that never holds for a rule, a technique or a projection."""
    return False
