"""The rule ``nystrom``, whose functions are computed from coordinates in a constant basis.  Its questions ``features`` and
``residual`` are also those of models whose basis is in memory.

f(x) = weights' z(x) + bias for the coordinates z(x) = L^-1 k_S(x) of ``pykernel.algorithms.basis.coordinates``.  If
``prior_variance`` is given, the model is a sparse Gaussian process.  The variance of a label is then p (k(x, x) - |z|^2)
+ v, where p is the prior variance, and v is the variance of a label around the function.
"""

from pykernel.algorithms import frame
from pykernel.algorithms.basis.coordinates import (
    SMALLEST_RESIDUAL,
    GivenModel,
    NystromConfig,
    NystromWork,
    project_given,
)
from pykernel.algorithms.elementary import clipped
from pykernel.algorithms.extents import N_MAX
from pykernel.algorithms.frame import Status, refusal
from pykernel.algorithms.hooks import FrameConfig
from pykernel.algorithms.inputs import InputConfig, rescale
from pykernel.algorithms.kernel_choice import KernelConfig
from pykernel.algorithms.rule import LABELLED, questions, standing
from pykernel.algorithms.stages import Sample
from pykernel.algorithms.vectors import copy
from pykernel.dialect import DIM, OUTPUTS, Index, Real, kernel, placeholder, real
from pykernel.dialect.program import Entry, LabelKind, Program


class LocatedModel(GivenModel):
    """Any model with a basis, whether in tables or in memory."""


@kernel
def combine(m: GivenModel, y: Real[OUTPUTS]) -> None:
    """Compute the functions' values from the coordinates m.z.  O(N) for each function."""
    if m.weighs:
        for o in range(len(y)):
            total = m.bias[o]
            for i in range(len(m.z)):
                total += m.weights[i, o] * m.z[i]
            y[o] = clipped(total, m.least_value, m.largest_value) if m.bounded else total
    else:
        copy(m.z, y, len(y))


@placeholder
def locate(m: LocatedModel, x: Real[DIM]) -> None:
    """Compute the coordinates and the residual of an unscaled input."""
    if m.rescales:
        rescale(m, x, m.x)
    else:
        copy(x, m.x, len(x))
    project_given(m, m.x)


@placeholder
def size(m: LocatedModel) -> Index:
    """Number of basis vectors in use."""
    return len(m.vectors)


@kernel
def respond(m: GivenModel, x: Real[DIM], y: Real[OUTPUTS]) -> None:
    """y = f(x).  [weighs] f(x) is weights' z(x) + bias.  [not weighs] f(x) is z(x)."""
    locate(m, x)
    combine(m, y)


@kernel
def features(m: LocatedModel, x: Real[DIM], z: Real[N_MAX]) -> Index:
    """Write the coordinates z(x) = L^-1 k_S(x) to z; unused places are zero.  O(N^2 / 2 + N D).

    Returns DONE, or REFUSED_INPUT with z unchanged.
    """
    refused = refusal(m, x)
    if refused < 0:
        return refused
    locate(m, x)
    n = size(m)
    for i in range(len(z)):
        z[i] = m.z[i] if i < n else real(0)
    return Status.DONE


@kernel
def residual(m: LocatedModel, x: Real[DIM], part: Real[1]) -> Index:
    """Write to ``part`` the fraction of x that the basis cannot express: 1 - |z|^2 / k(x, x), from 0 to 1.  O(N^2 / 2 + N D).

    Returns DONE, or REFUSED_INPUT with ``part`` unchanged.
    """
    refused = refusal(m, x)
    if refused < 0:
        return refused
    locate(m, x)
    part[0] = real(0)
    if m.own[0] > SMALLEST_RESIDUAL:
        part[0] = clipped(m.kappa[0] * (real(1) / m.own[0]), real(0), real(1))
    return Status.DONE


@kernel
def variance(m: GivenModel, x: Real[DIM], y: Real[1]) -> Index:
    """Write to y the variance of the label around f(x), in the square of the label's unit.  O(N^2 / 2 + N D).

    As in a Gaussian process, the variance is p (k(x, x) - |z|^2) + v with p = prior_variance and v = label_variance.
    Returns DONE, or REFUSED_INPUT with y unchanged.
    """
    refused = refusal(m, x)
    if refused < 0:
        return refused
    locate(m, x)
    y[0] = m.prior_variance * m.kappa[0] + m.label_variance
    return Status.DONE


STAND_INS = standing(
    GivenModel,
    {
        frame.respond: respond,
        "write f(x) to y.": "write f(x) to y.  [weighs] f(x) is weights' z(x) + bias.  [not weighs] f(x) is z(x).",
        "; unused places are zero": "",
    },
    "O(N^2 / 2 + N D)",
)

NYSTROM: dict[LabelKind, Program] = {
    kind: Program(
        name="nystrom",
        structs=(Sample, NystromWork),
        persistent=(),
        configs=(NystromConfig, FrameConfig, InputConfig, KernelConfig),
        statuses=(Status,),
        entries=(
            *questions("real"),
            Entry("features", features, "question"),
            Entry("residual", residual, "question"),
            Entry("variance", variance, "question", lambda c: c.varies),
            *questions(kind)[1:],
        ),
        labels=kind,
        stand_ins=STAND_INS,
    )
    for kind in LABELLED
}
