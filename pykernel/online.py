"""Online kernel regression (Mitchinson et al. 2003): what can be asked of a model."""

from pykernel.dialect import DIM, Index, Real, absolute, entry, kernel, real
from pykernel.expansion import (
    Expansion,
    Metric,
    OnlineConfig,
    Projection,
    Status,
    Work,
    answer,
    clipped,
    decay,
    expand,
    place,
    present,
    settle,
    within,
)
from pykernel.program import Entry, Program
from pykernel.reduction import (
    absorb_by_projection,
    absorb_in_nearest,
    append_to_factor,
    express,
    introduce_neighbour,
    rebuild_factor,
    reduce_by_magnitude,
    reduce_by_mklms,
    reduce_by_neighbour,
)
from pykernel.rehearsal import strained
from pykernel.standardiser import Standardiser, observe, standardise
from pykernel.validity import valid


@entry
def predict(s: Expansion, z: Standardiser, w: Work, c: OnlineConfig, x: Real[DIM], y: Real[1]) -> Index:
    """Write f(x) to y.  O(N D).

    DONE, or REFUSED_INPUT with y unchanged.
    """
    if not within(c, x):
        return Status.REFUSED_INPUT
    if c.standardises:
        standardise(z, w, c, x)
        y[0] = answer(c, expand(s, c, w.x))
    else:
        y[0] = answer(c, expand(s, c, x))
    return Status.DONE


@kernel
def add(s: Expansion, w: Work, c: OnlineConfig, x: Real[DIM], step: Real) -> Index:
    """Make the sample one more expansion vector.  Mitchinson et al. 2003, eq. 3-6."""
    n = s.n[0]
    if c.projection == Projection.KLMS:
        append_to_factor(s, w, c)
    if c.decays:
        decay(s, c)
    place(s, x, n)
    s.alpha[n] = step
    s.n[0] = n + 1
    if c.metric == Metric.FKLMS:
        introduce_neighbour(s, w, n)
    return Status.ADDED


@kernel
def learn(s: Expansion, w: Work, c: OnlineConfig, x: Real[DIM], y: Real) -> Index:
    """Mitchinson et al. 2003, eq. 2-6, then a reduction if the budget is exceeded."""
    value = present(s, w, c, x)
    step = settle(c.eta * (y - value))
    if c.limits_step:
        step = clipped(step, -c.step_limit, c.step_limit)
    if not (absolute(step) <= c.alpha_limit):
        return Status.REFUSED_MULTIPLIER
    if s.n[0] > 0 and w.nearest_distance[0] <= c.gate_distance:
        return absorb_in_nearest(s, w, c, step)
    if c.projection == Projection.KLMS:
        express(s, w, c, s.n[0], s.n[0])
        if w.kappa[0] <= c.gate:
            return absorb_by_projection(s, w, c, step)
    if s.n[0] < len(s.alpha):
        return add(s, w, c, x, step)
    if c.metric == Metric.MAGNITUDE:
        return reduce_by_magnitude(s, c, x, step)
    if c.metric == Metric.FKLMS:
        return reduce_by_neighbour(s, w, c, x, step)
    return reduce_by_mklms(s, w, c, x, step)


@entry
def update(s: Expansion, z: Standardiser, w: Work, c: OnlineConfig, x: Real[DIM], y: Real) -> Index:
    """Learn that f(x) should be y.

    O(N D) without and O(N^2 + N D) with a Gram matrix.  Above 0: what became of the sample.  Below 0: why it was
    refused; the model is then unchanged.
    """
    if not within(c, x):
        return Status.REFUSED_INPUT
    if not (absolute(y) <= c.label_limit):
        return Status.REFUSED_LABEL
    if s.frozen[0] != 0:
        return Status.FROZEN
    if c.standardises:
        if z.seen[0] < c.warmup:
            observe(z, c, x)
            return Status.OBSERVED
        standardise(z, w, c, x)
        status = learn(s, w, c, w.x, y)
        if status > 0:
            observe(z, c, x)
        return status
    return learn(s, w, c, x, y)


@entry
def freeze(s: Expansion, frozen: Index) -> Index:
    """Switch learning off (1) or on (0); update then does nothing but check the sample."""
    s.frozen[0] = 0
    if frozen != 0:
        s.frozen[0] = 1
    return Status.DONE


@entry
def drift(s: Expansion, c: OnlineConfig, y: Real[1]) -> Index:
    """Write how far the inverse Gram matrix has drifted since the last refresh to y: REFRESH_DUE, or DONE.

    The largest element met of (K + ridge I) P - I, of which each replacement measures one.  O(1).
    """
    y[0] = s.drift[0]
    if s.drift[0] > c.drift_limit:
        return Status.REFRESH_DUE
    return Status.DONE


@entry
def refresh(s: Expansion, w: Work, c: OnlineConfig) -> Index:
    """Remove the rounding errors that the factor of the inverse Gram matrix has gathered.

    O(N^3 + N^2 D): call it when drift() says REFRESH_DUE and there is time.  The model's predictions do not change.
    """
    rebuild_factor(s, w, c)
    return Status.DONE


@entry
def rehearse(s: Expansion, z: Standardiser, w: Work, c: OnlineConfig, x: Real[DIM]) -> None:
    """Learn a fixed sequence of pseudo-random samples: enough to fill the budget and to reduce many times."""
    seed = 1
    for t in range(2 * len(s.alpha) + 32):
        for j in range(len(x)):
            seed = (seed * 75 + 74) % 65537
            x[j] = c.rehearsal_input * (real(seed) / real(65536) - real(0.5))
        seed = (seed * 75 + 74) % 65537
        y = c.rehearsal_label * strained(real(seed) / real(65536) - real(0.5))
        status = update(s, z, w, c, x, y)
        if status < 0:
            break


ONLINE = Program(
    name="online",
    structs=(Expansion, Standardiser, Work),
    persistent=(Expansion, Standardiser),
    config=OnlineConfig,
    status=Status,
    entries=(
        Entry("predict", predict),
        Entry("update", update),
        Entry("freeze", freeze),
        Entry("drift", drift, lambda c: c.projection == Projection.KLMS),
        Entry("refresh", refresh, lambda c: c.projection == Projection.KLMS),
    ),
    rehearse=rehearse,
    valid=valid,
)
