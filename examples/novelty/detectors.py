"""What a monitor could do instead: five detectors in the dialect, with the alarms of [novelty].

largest      max |z|: the largest deviation from the running mean, in running standard deviations
mahalanobis  distance from the running mean by the inverse of the running covariance, kept by rank-one updates
quadratic    the same of the inputs and all their products
gaussians    a bank of them: the nearest one learns the sample, the distance to it is the score
centroids    a bank of points: the distance to the nearest one is the score (online k-means)

All forget: the n-th sample weighs 1 / (min(n + 1, window) + 1), in a bank of those that a member learned.  Like any program
they run on the host, become C, and are compared byte for byte, so that bytes and instructions are as comparable as
alarms.
"""

# ruff: noqa: SIM110 — in the dialect `for` has no substitutes
from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Any, Literal

from pykernel.algorithms.extents import N_MAX, PACKED
from pykernel.algorithms.packed import symmetric_times
from pykernel.dialect import DIM, Bool, Config, Index, Real, Struct, absolute, extent, kernel, real, sqrt
from pykernel.dialect.program import Entry, Program
from pykernel.spec.families.subspace import growth
from pykernel.spec.model import Spec
from pykernel.spec.novelty import NoveltySection
from pykernel.spec.sections import Learning, ScaledInput

TERMS = extent("TERMS", "numbers whose mean and covariance are kept: inputs, or inputs and products")
SQUARES = extent("SQUARES", "numbers of a packed symmetric matrix of as many rows as there are inputs")
MOST = 4_194_304
"""Samples that are counted: as a real it is exact."""

ALARM_STEP = 0.1
"""Largest change of a threshold's logarithm in one sample."""


class Detector(IntEnum):
    """What is normal."""

    LARGEST = 0
    MAHALANOBIS = 1
    QUADRATIC = 2
    GAUSSIANS = 3
    CENTROIDS = 4


class DetectorStatus(IntEnum):
    """What a call did: 0 done, above 0 noteworthy, below 0 refused and the model unchanged."""

    DONE = 0
    NOVEL = 4  # the alarm level is above its threshold
    HELD = 5  # the same, and nothing was learned
    REFUSED_INPUT = -1  # an input is not finite or beyond the declared limit
    REFUSED_LABEL = -2  # never: there are none


class Normal(Struct):
    """What is normal, and what alarms depend on."""

    mean: Real[TERMS]
    variance: Real[DIM]
    inverse: Real[PACKED]  # of the covariance, packed
    center_of: Real[N_MAX, DIM]  # a bank's means
    shape_of: Real[N_MAX, SQUARES]  # inverses of their covariances, packed
    count_of: Index[N_MAX]  # samples that each has learned; 0: not in use
    level: Real  # scores, smoothed
    threshold: Real  # the level above which there is an alarm
    held: Index  # samples in a row above it, up to one more than are held
    seen: Index  # samples that came by, as far as they are counted


class DetectorWork(Struct):
    """Intermediate results."""

    x: Real[DIM]  # an input, scaled
    d: Real[TERMS]  # its deviation
    u: Real[TERMS]  # inverse d
    score: Real
    square: Real  # d' inverse d
    nearest: Index  # of a bank; -1: none is in use


class DetectorConfig(Config):
    detector: Detector
    center: Real[DIM]  # subtracted from the inputs
    scale: Real[DIM]  # what they are multiplied by after that
    input_max_abs: Real
    most: Real  # no number of the state is beyond
    prior: Real  # variance of everything before the first sample
    window: Index  # samples that count
    apart: Real  # a bank's free place is taken by a sample whose squared distance is larger
    smoothing: Real
    more_alarm: Real
    less_alarm: Real
    warmup: Index
    relearn_after: Index


# ---------------------------------------------------------------------------------------------------------- scores


@kernel
def terms(w: DetectorWork, c: DetectorConfig, x: Real[DIM]) -> None:
    """Scaled inputs to w.x, and with their products to w.d."""
    for j in range(len(x)):
        w.x[j] = (x[j] - c.center[j]) * c.scale[j]
        w.d[j] = w.x[j]
    if c.detector == Detector.QUADRATIC:
        at = len(x)
        for i in range(len(x)):
            for j in range(i + 1):
                w.d[at] = w.x[i] * w.x[j]
                at += 1


@kernel
def deviate(s: Normal, w: DetectorWork) -> None:
    """The deviation from the mean to w.d."""
    for j in range(len(w.d)):
        w.d[j] = w.d[j] - s.mean[j]


@kernel
def product(w: DetectorWork) -> Real:
    """d'u, not below 0."""
    total = real(0)
    for j in range(len(w.d)):
        total += w.d[j] * w.u[j]
    return total if total > real(0) else real(0)


@kernel
def distance(s: Normal, w: DetectorWork, c: DetectorConfig, i: Index) -> Real:
    """The squared distance to member i of the bank; w.d and w.u as for it."""
    total = real(0)
    for j in range(len(w.x)):
        w.d[j] = w.x[j] - s.center_of[i, j]
        total += w.d[j] * w.d[j]
    if c.detector == Detector.GAUSSIANS:
        symmetric_times(s.shape_of[i], w.d, w.u, len(w.x))
        total = product(w)
    return total


@kernel
def judge(s: Normal, w: DetectorWork, c: DetectorConfig, x: Real[DIM]) -> None:
    """The score of x, and what learning it needs, to w.  O(TERMS^2), of a bank O(N DIM^2), of points O(N DIM)."""
    terms(w, c, x)
    w.nearest[0] = -1
    best = real(0)
    if c.detector == Detector.LARGEST:
        deviate(s, w)
        for j in range(len(x)):
            part = w.d[j] * w.d[j] / (s.variance[j] + c.prior)
            if part > best:
                best = part
    elif c.detector == Detector.MAHALANOBIS or c.detector == Detector.QUADRATIC:
        deviate(s, w)
        symmetric_times(s.inverse, w.d, w.u, len(w.d))
        best = product(w)
    else:
        for i in range(len(s.count_of)):
            if s.count_of[i] > 0:
                found = distance(s, w, c, i)
                if w.nearest[0] < 0 or found < best:
                    best = found
                    w.nearest[0] = i
    w.square[0] = best
    w.score[0] = sqrt(best)


# -------------------------------------------------------------------------------------------------------- learning


@kernel
def update_inverse(p: Real[...], u: Real[...], n: Index, part: Real, square: Real) -> None:
    """p becomes the inverse of (1 - part) (C + part d d'), of which u = p d and square = d'u.  O(n^2 / 2)."""
    factor = part / (real(1) + part * square)
    grow = real(1) / (real(1) - part)
    at = 0
    for i in range(n):
        row = factor * u[i]
        for j in range(i + 1):
            p[at] = (p[at] - row * u[j]) * grow
            at += 1


@kernel
def learn_one(s: Normal, w: DetectorWork, c: DetectorConfig) -> None:
    """Mean and variance or inverse covariance follow w.d."""
    count = s.seen[0] + 1
    if count > c.window:
        count = c.window
    part = real(1) / real(count + 1)
    for j in range(len(w.d)):
        s.mean[j] += part * w.d[j]
    if c.detector == Detector.LARGEST:
        for j in range(len(w.x)):
            s.variance[j] = (real(1) - part) * (s.variance[j] + part * w.d[j] * w.d[j])
    else:
        update_inverse(s.inverse, w.u, len(w.d), part, w.square[0])


@kernel
def learn_nearest(s: Normal, w: DetectorWork, c: DetectorConfig) -> None:
    """The sample takes a free place of the bank, or the nearest member follows it."""
    free = -1
    if w.nearest[0] < 0 or w.square[0] > c.apart:
        for i in range(len(s.count_of)):
            if s.count_of[i] == 0:
                free = i
                break
    if free >= 0:
        s.count_of[free] = 1
        for j in range(len(w.x)):
            s.center_of[free, j] = w.x[j]
        if c.detector == Detector.GAUSSIANS:
            at = 0
            for i in range(len(w.x)):
                for j in range(i + 1):
                    s.shape_of[free, at] = real(1) / c.prior if i == j else real(0)
                    at += 1
    else:
        own = w.nearest[0]
        if s.count_of[own] < c.window:
            s.count_of[own] += 1
        square = distance(s, w, c, own)
        # a covariance of so many numbers does not follow the first samples at once
        slow = 10 if c.detector == Detector.GAUSSIANS and s.count_of[own] < c.window else 0
        part = real(1) / real(s.count_of[own] + slow)
        for j in range(len(w.x)):
            s.center_of[own, j] += part * w.d[j]
        if c.detector == Detector.GAUSSIANS:
            update_inverse(s.shape_of[own], w.u, len(w.x), part, square)


@kernel
def watch(s: Normal, w: DetectorWork, c: DetectorConfig) -> Index:
    """A threshold that moves by factors, for scores without an upper limit.  1: an alarm, 2: an alarm, learn nothing."""
    if s.seen[0] == 0:
        s.level[0] = w.score[0]
    else:
        s.level[0] += c.smoothing * (w.score[0] - s.level[0])
    if s.seen[0] < c.warmup:
        if s.seen[0] >= c.warmup - s.seen[0] and s.level[0] > s.threshold[0]:
            s.threshold[0] = s.level[0]
        return 0
    if s.level[0] > s.threshold[0]:
        if s.held[0] <= c.relearn_after:
            s.held[0] += 1
        if s.held[0] <= c.relearn_after:
            return 2
        # longer than that it is the new normal
        s.threshold[0] *= c.more_alarm
        return 1
    if s.held[0] > 0 and s.held[0] <= c.relearn_after:
        s.threshold[0] *= c.more_alarm
    s.held[0] = 0
    s.threshold[0] *= c.less_alarm
    return 0


# --------------------------------------------------------------------------------------------------------- entries


@kernel
def within(c: DetectorConfig, x: Real[DIM]) -> Bool:
    """Whether every input is a number within the limit."""
    for j in range(len(x)):
        if not (absolute(x[j]) <= c.input_max_abs):
            return False
    return True


@kernel
def novelty(s: Normal, w: DetectorWork, c: DetectorConfig, x: Real[DIM], score: Real[1]) -> Index:
    """Write how far x is from what is normal to score: DONE, or REFUSED_INPUT with score unchanged."""
    if not within(c, x):
        return DetectorStatus.REFUSED_INPUT
    if s.seen[0] == 0:
        score[0] = real(0)
        return DetectorStatus.DONE
    judge(s, w, c, x)
    score[0] = w.score[0]
    return DetectorStatus.DONE


@kernel
def begin(s: Normal, w: DetectorWork, c: DetectorConfig, x: Real[DIM]) -> None:
    """The first sample is the mean."""
    terms(w, c, x)
    for j in range(len(s.mean)):
        s.mean[j] = w.d[j]
    if c.detector != Detector.LARGEST:
        at = 0
        for i in range(len(s.mean)):
            for j in range(i + 1):
                s.inverse[at] = real(1) / c.prior if i == j else real(0)
                at += 1


@kernel
def update(s: Normal, w: DetectorWork, c: DetectorConfig, x: Real[DIM]) -> Index:
    """Learn x: DONE, NOVEL or HELD; REFUSED_INPUT with nothing changed."""
    if not within(c, x):
        return DetectorStatus.REFUSED_INPUT
    if s.seen[0] == 0 and (c.detector != Detector.GAUSSIANS and c.detector != Detector.CENTROIDS):
        begin(s, w, c, x)
    judge(s, w, c, x)
    alarmed = watch(s, w, c)
    if s.seen[0] < MOST:
        s.seen[0] += 1
    if alarmed == 2:
        return DetectorStatus.HELD
    if c.detector == Detector.GAUSSIANS or c.detector == Detector.CENTROIDS:
        learn_nearest(s, w, c)
    else:
        learn_one(s, w, c)
    return DetectorStatus.NOVEL if alarmed == 1 else DetectorStatus.DONE


@kernel
def alarm(s: Normal, c: DetectorConfig, state: Real[2]) -> Index:
    """Write the alarm level and its threshold to state: DONE."""
    state[0] = s.level[0]
    state[1] = s.threshold[0]
    return DetectorStatus.DONE


@kernel
def valid_one(s: Normal, c: DetectorConfig) -> Bool:
    """Whether mean and variance or inverse covariance are numbers."""
    for i in range(len(s.mean)):
        if not (absolute(s.mean[i]) <= c.most):
            return False
    if c.detector == Detector.LARGEST:
        for i in range(len(s.variance)):
            if not (s.variance[i] >= real(0) and s.variance[i] <= c.most):
                return False
    else:
        for i in range(len(s.inverse)):
            if not (absolute(s.inverse[i]) <= c.most):
                return False
    return True


@kernel
def valid_bank(s: Normal, c: DetectorConfig) -> Bool:
    """Whether all members are numbers."""
    for i in range(len(s.count_of)):
        if s.count_of[i] < 0 or s.count_of[i] > c.window:
            return False
        for j in range(len(s.center_of[0])):
            if not (absolute(s.center_of[i, j]) <= c.most):
                return False
        if c.detector == Detector.GAUSSIANS:
            for j in range(len(s.shape_of[0])):
                if not (absolute(s.shape_of[i, j]) <= c.most):
                    return False
    return True


@kernel
def valid(s: Normal, c: DetectorConfig) -> Bool:
    """Whether learning could have led to this state."""
    good = True
    if c.detector == Detector.GAUSSIANS or c.detector == Detector.CENTROIDS:
        good = valid_bank(s, c)
    else:
        good = valid_one(s, c)
    if not good:
        return False
    if not (s.level[0] >= real(0) and s.level[0] <= c.most and s.threshold[0] >= real(0) and s.threshold[0] <= c.most):
        return False
    return s.held[0] >= 0 and s.held[0] <= c.relearn_after + 1 and s.seen[0] >= 0 and s.seen[0] <= MOST


PROGRAM = Program(
    name="detectors",
    structs=(Normal, DetectorWork),
    persistent=(Normal,),
    configs=(DetectorConfig,),
    statuses=(DetectorStatus,),
    entries=(
        Entry("novelty", novelty, "question"),
        Entry("update", update, "update"),
        Entry("alarm", alarm, "reading"),
    ),
    valid=valid,
)


# ------------------------------------------------------------------------------------------------------- the spec


class Detectors:
    """What a spec wants to know of them."""

    rules: tuple[str, ...] = ("okfeb",)
    programs: Mapping[Any, Program] = {"none": PROGRAM}
    online = False

    def why_ignored(self, spec: Spec, section: str, key: str) -> str | None:
        return None

    def validate(self, spec: Spec, refuse: Any) -> None:
        return None

    def capacities(self, spec: Any) -> dict[str, int]:
        dim = spec.dim
        kept = dim + dim * (dim + 1) // 2 if spec.detector == "quadratic" else dim
        squares = dim * (dim + 1) // 2
        sizes = {"DIM": dim, "OUTPUTS": 1, "N_MAX": spec.members, "TERMS": kept}
        return sizes | {"PACKED": kept * (kept + 1) // 2, "SQUARES": squares}

    def size_bound(self, spec: Any) -> int:
        sizes = self.capacities(spec)
        return sizes["PACKED"] + 4 * sizes["TERMS"] + sizes["N_MAX"] * (spec.dim + sizes["SQUARES"] + 1) + 64

    def parameters(self, spec: Any) -> dict[str, Any]:
        novelty, dim = spec.novelty, spec.dim
        return {
            "detector": Detector[spec.detector.upper()],
            "center": spec.input.center or [0.0] * dim,
            "scale": spec.input.scale or [1.0] * dim,
            "input_max_abs": spec.input.max_abs,
            "most": 1e30,
            "prior": spec.prior**2,
            "window": spec.window,
            "apart": spec.apart**2,
            "smoothing": novelty.smoothing,
            "more_alarm": growth(ALARM_STEP * (1 - novelty.false_alarm_rate)),
            "less_alarm": growth(-ALARM_STEP * novelty.false_alarm_rate),
            "warmup": novelty.warmup,
            "relearn_after": novelty.relearn_after,
        }


DETECTORS = Detectors()


class DetectorSpec(Spec):
    """A spec of one of the detectors, with the inputs and alarms of a monitor."""

    input: ScaledInput
    learning: Learning = Learning()
    novelty: NoveltySection | None = None

    detector: Literal["largest", "mahalanobis", "quadratic", "gaussians", "centroids"]
    members: int = 1  # of a bank
    window: int = 1000  # samples that count; in a bank, of each member
    prior: float = 0.05  # standard deviation of everything before the first sample; of a Gaussian in a bank
    apart: float = 1e15  # a bank's free place is taken by a sample so far from the others; none is

    @property
    def family(self) -> Any:
        return DETECTORS


def detector(monitor: Spec, kind: str, **parameters: Any) -> DetectorSpec:
    """One that takes the place of a monitor."""
    given = monitor.model_dump(exclude_unset=True, include={"precision", "input", "novelty"})
    return DetectorSpec.model_validate(
        given | {"name": kind, "learning": {"rule": "okfeb"}, "detector": kind, **parameters}
    )
