"""Small programs without update, without labels, and with actions, visits and readings: nothing in gen or targets
knows them."""

# ruff: noqa: SIM110 — in the dialect `for` has no substitutes
from enum import IntEnum

from pykernel.algorithms.extents import L_MAX
from pykernel.dialect import CLASSES, DIM, OUTPUTS, Bool, Config, Index, Real, Struct, absolute, kernel, real
from pykernel.dialect.program import Entry, Program
from pykernel.spec.families.online import Reduction, ridge_of
from pykernel.spec.model import Spec
from pykernel.spec.sections import Learning


class MadeStatus(IntEnum):
    """What a call did: 0 done, above 0 noteworthy, below 0 refused and the model unchanged."""

    DONE = 0
    REPLACED = 1  # in place of the oldest sample
    DRIFTED = 2  # from drift: refresh is due
    REFUSED_INPUT = -1  # an input is not finite or too large
    REFUSED_LABEL = -2  # a label is
    TOO_FEW = -3  # samples
    NOT_TRAINED = -4  # with all the samples


@kernel
def made_within(max_abs: Real, x: Real[DIM]) -> Bool:
    """Whether every number is within the limit."""
    for j in range(len(x)):
        if not (absolute(x[j]) <= max_abs):
            return False
    return True


# --------------------------------------------------------------------- a model that was learned elsewhere: it predicts


class GlassWork(Struct):
    """What a prediction needs besides."""

    scaled: Real[DIM]
    value: Real[OUTPUTS]


class GlassConfig(Config):
    max_abs: Real  # largest magnitude of an input
    center: Real[DIM]  # subtracted from the inputs


class GlassWeights(Config):
    weight: Real[OUTPUTS, DIM]
    sharpness: Real


@kernel
def glass_values(w: GlassWork, c: GlassConfig, q: GlassWeights, x: Real[DIM], y: Real[OUTPUTS]) -> None:
    """y = W s, s = d / (1 + |d|), d = x - center."""
    for j in range(len(x)):
        d = x[j] - c.center[j]
        w.scaled[j] = d / (real(1) + absolute(d))
    for o in range(len(y)):
        total = real(0)
        for j in range(len(x)):
            total += q.weight[o, j] * w.scaled[j]
        y[o] = total


@kernel
def glass_predict(w: GlassWork, c: GlassConfig, q: GlassWeights, x: Real[DIM], y: Real[OUTPUTS]) -> Index:
    """Write W s to y: DONE, or REFUSED_INPUT with y unchanged.  O(OUTPUTS DIM)."""
    if not made_within(c.max_abs, x):
        return MadeStatus.REFUSED_INPUT
    glass_values(w, c, q, x, y)
    return MadeStatus.DONE


@kernel
def glass_classify(w: GlassWork, c: GlassConfig, q: GlassWeights, x: Real[DIM], label: Index[1]) -> Index:
    """Write the likeliest class of x to label: DONE, or REFUSED_INPUT with label unchanged."""
    if not made_within(c.max_abs, x):
        return MadeStatus.REFUSED_INPUT
    glass_values(w, c, q, x, w.value)
    best = 0
    if len(w.value) == 1:
        if w.value[0] > real(0):
            best = 1
    else:
        for o in range(1, len(w.value)):
            if w.value[o] > w.value[best]:
                best = o
    label[0] = best
    return MadeStatus.DONE


@kernel
def glass_probability(w: GlassWork, c: GlassConfig, q: GlassWeights, x: Real[DIM], p: Real[CLASSES]) -> Index:
    """Write each class's part of the whole to p: DONE, or REFUSED_INPUT with p unchanged."""
    if not made_within(c.max_abs, x):
        return MadeStatus.REFUSED_INPUT
    glass_values(w, c, q, x, w.value)
    total = real(0)
    for o in range(len(p)):
        f = q.sharpness * w.value[0]
        if len(w.value) == 1:
            if o == 0:
                f = -f
        else:
            f = q.sharpness * w.value[o]
        p[o] = real(1) + f / (real(1) + absolute(f))
        total += p[o]
    for o in range(len(p)):
        p[o] = p[o] / total
    return MadeStatus.DONE


@kernel
def glass_novelty(w: GlassWork, c: GlassConfig, q: GlassWeights, x: Real[DIM], score: Real[1]) -> Index:
    """Write how far x is from the center, from 0 to 1, to score: DONE, or REFUSED_INPUT with score unchanged."""
    if not made_within(c.max_abs, x):
        return MadeStatus.REFUSED_INPUT
    glass_values(w, c, q, x, w.value)
    score[0] = real(0)
    for j in range(len(x)):
        score[0] += absolute(w.scaled[j])
    return MadeStatus.DONE


def glass_program(labels, *entries):
    return Program(
        name=f"glass {labels}",
        structs=(GlassWork,),
        persistent=(),
        configs=(GlassConfig, GlassWeights),
        statuses=(MadeStatus,),
        entries=entries,
        labels=labels,
    )


GLASS_PREDICT = Entry("predict", glass_predict, "question")


class GlassFamily:
    """What a spec wants to know.  The weights are made up; rho is one of them."""

    rules = {"nlms": "linear"}  # noqa: RUF012
    online = False
    programs = {  # noqa: RUF012
        "real": glass_program("real", GLASS_PREDICT),
        "reals": glass_program("reals", GLASS_PREDICT),
        "class": glass_program(
            "class",
            GLASS_PREDICT,
            Entry("classify", glass_classify, "question"),
            Entry("probability", glass_probability, "question"),
        ),
    }

    def validate(self, spec, refuse):
        pass

    def capacities(self, spec):
        classes = {"CLASSES": len(spec.label.classes)} if spec.label.classes else {}
        return {"DIM": spec.dim, "OUTPUTS": spec.outputs} | classes

    def parameters(self, spec):
        weight = [[0.3 * (o + 1) * (-1) ** (o + j) / (j + 1) for j in range(spec.dim)] for o in range(spec.outputs)]
        weight[0][0] = spec.learning.rho
        center = [0.125 * j for j in range(spec.dim)]
        return {"max_abs": spec.input.max_abs, "center": center, "weight": weight, "sharpness": 3.0}


# ------------------------------------------------------------- a model that is trained on the device, from what it keeps


class Oven(Struct):
    """Samples, and what was made of them when the model was trained."""

    slope: Real[DIM]  # the model
    power: Real  # sum of |x|^2 of what is kept, as updates have it
    wrong: Real  # sum of squared errors of what was assessed
    kept_x: Real[L_MAX, DIM]
    kept_y: Real[L_MAX]
    next: Index  # where the next sample goes
    count: Index  # how many there are
    fresh: Index  # 1 if the model is of all samples
    assessed: Index  # since the model was trained


class OvenWork(Struct):
    """What a training needs besides."""

    candidate: Real[DIM]


class OvenConfig(Config):
    max_abs: Real  # largest magnitude of an input
    label_max_abs: Real  # and of a label
    ridge: Real
    classes: Index  # how many there are; 0 for numbers


@kernel
def oven_value(s: Oven, x: Real[DIM]) -> Real:
    """f(x)."""
    total = real(0)
    for j in range(len(x)):
        total += s.slope[j] * x[j]
    return total


@kernel
def oven_predict(s: Oven, c: OvenConfig, x: Real[DIM], y: Real[OUTPUTS]) -> Index:
    """Write f(x) to y: DONE, or REFUSED_INPUT with y unchanged."""
    if not made_within(c.max_abs, x):
        return MadeStatus.REFUSED_INPUT
    y[0] = oven_value(s, x)
    return MadeStatus.DONE


@kernel
def oven_classify(s: Oven, c: OvenConfig, x: Real[DIM], label: Index[1]) -> Index:
    """Write the class of x to label: DONE, or REFUSED_INPUT with label unchanged."""
    if not made_within(c.max_abs, x):
        return MadeStatus.REFUSED_INPUT
    label[0] = 0
    if oven_value(s, x) > real(0):
        label[0] = 1
    return MadeStatus.DONE


@kernel
def oven_square(x: Real[DIM]) -> Real:
    """|x|^2."""
    total = real(0)
    for j in range(len(x)):
        total += x[j] * x[j]
    return total


@kernel
def oven_keep(s: Oven, x: Real[DIM], y: Real) -> Index:
    """Keep a sample, if need be in place of the oldest."""
    i = s.next[0]
    status = MadeStatus.DONE
    if s.count[0] == len(s.kept_y):
        status = MadeStatus.REPLACED
    else:
        s.count[0] += 1
    s.power[0] -= oven_square(s.kept_x[i])
    for j in range(len(x)):
        s.kept_x[i, j] = x[j]
    s.power[0] += oven_square(s.kept_x[i])
    s.kept_y[i] = y
    s.next[0] = i + 1 if i + 1 < len(s.kept_y) else 0
    s.fresh[0] = 0
    return status


@kernel
def oven_update(s: Oven, c: OvenConfig, x: Real[DIM], y: Real) -> Index:
    """Keep a sample."""
    if not made_within(c.max_abs, x):
        return MadeStatus.REFUSED_INPUT
    if not (absolute(y) <= c.label_max_abs):
        return MadeStatus.REFUSED_LABEL
    return oven_keep(s, x, y)


@kernel
def oven_update_class(s: Oven, c: OvenConfig, x: Real[DIM], label: Index) -> Index:
    """Keep a sample of a class."""
    if not made_within(c.max_abs, x):
        return MadeStatus.REFUSED_INPUT
    if label < 0 or label >= c.classes:
        return MadeStatus.REFUSED_LABEL
    return oven_keep(s, x, real(2 * label - 1))


@kernel
def oven_train(s: Oven, w: OvenWork, c: OvenConfig) -> Index:
    """Make a model of what is kept: DONE, or TOO_FEW with the model unchanged.  O(L DIM)."""
    if s.count[0] < 2:
        return MadeStatus.TOO_FEW
    for j in range(len(s.slope)):
        square = c.ridge
        product = real(0)
        for i in range(s.count[0]):
            square += s.kept_x[i, j] * s.kept_x[i, j]
            product += s.kept_x[i, j] * s.kept_y[i]
        w.candidate[j] = product / square
    for j in range(len(s.slope)):
        s.slope[j] = w.candidate[j]
    s.fresh[0] = 1
    s.assessed[0] = 0
    s.wrong[0] = real(0)
    return MadeStatus.DONE


@kernel
def oven_refresh(s: Oven) -> Index:
    """Compute the power afresh."""
    s.power[0] = real(0)
    for i in range(s.count[0]):
        s.power[0] += oven_square(s.kept_x[i])
    return MadeStatus.DONE


@kernel
def oven_restart(s: Oven) -> Index:
    """Forget the samples, not the model."""
    for i in range(len(s.kept_y)):
        for j in range(len(s.slope)):
            s.kept_x[i, j] = real(0)
        s.kept_y[i] = real(0)
    s.power[0] = real(0)
    s.next[0] = 0
    s.count[0] = 0
    s.fresh[0] = 0
    return MadeStatus.DONE


@kernel
def oven_judge(s: Oven, x: Real[DIM], y: Real) -> Index:
    """Add a sample's squared error to what leave_one_out tells."""
    if s.fresh[0] == 0:
        return MadeStatus.NOT_TRAINED
    error = y - oven_value(s, x)
    s.wrong[0] += error * error
    if s.assessed[0] < 1000000:
        s.assessed[0] += 1
    return MadeStatus.DONE


@kernel
def oven_assess(s: Oven, c: OvenConfig, x: Real[DIM], y: Real) -> Index:
    """Add a sample's squared error to what leave_one_out tells: DONE, or below 0 with nothing added."""
    if not made_within(c.max_abs, x):
        return MadeStatus.REFUSED_INPUT
    if not (absolute(y) <= c.label_max_abs):
        return MadeStatus.REFUSED_LABEL
    return oven_judge(s, x, y)


@kernel
def oven_assess_class(s: Oven, c: OvenConfig, x: Real[DIM], label: Index) -> Index:
    """Add a sample's squared error to what leave_one_out tells: DONE, or below 0 with nothing added."""
    if not made_within(c.max_abs, x):
        return MadeStatus.REFUSED_INPUT
    if label < 0 or label >= c.classes:
        return MadeStatus.REFUSED_LABEL
    return oven_judge(s, x, real(2 * label - 1))


@kernel
def oven_leave_one_out(s: Oven, out: Real[2]) -> Index:
    """Write the mean squared error of what was assessed, and its root's bound, to out; TOO_FEW if that is nothing."""
    if s.assessed[0] == 0:
        return MadeStatus.TOO_FEW
    out[0] = s.wrong[0] / real(s.assessed[0])
    out[1] = out[0] / (real(1) + out[0])
    return MadeStatus.DONE


@kernel
def oven_drift(s: Oven, out: Real[1]) -> Index:
    """Write how far the power is from what is kept: DRIFTED, or DONE."""
    total = real(0)
    for i in range(s.count[0]):
        total += oven_square(s.kept_x[i])
    out[0] = s.power[0] - total
    if absolute(out[0]) > real(0.25) * total:
        return MadeStatus.DRIFTED
    return MadeStatus.DONE


@kernel
def oven_valid(s: Oven, c: OvenConfig) -> Bool:
    """Whether updates and training could have led to this state."""
    if s.count[0] < 0 or s.count[0] > len(s.kept_y) or s.next[0] < 0 or s.next[0] >= len(s.kept_y):
        return False
    if s.fresh[0] != 0 and s.fresh[0] != 1:
        return False
    if s.assessed[0] < 0 or s.assessed[0] > 1000000:
        return False
    for i in range(len(s.kept_y)):
        if not made_within(c.max_abs, s.kept_x[i]):
            return False
    return True


def oven_program(name, update, assess, *others):
    return Program(
        name=name,
        structs=(Oven, OvenWork),
        persistent=(Oven,),
        configs=(OvenConfig,),
        statuses=(MadeStatus,),
        entries=(
            Entry("predict", oven_predict, "question"),
            *others,
            Entry("update", update, "update"),
            Entry("train", oven_train, "training"),
            Entry("assess", assess, "visit"),
            Entry("leave_one_out", oven_leave_one_out, "reading"),
            Entry("drift", oven_drift, "reading"),
            Entry("refresh", oven_refresh, "action"),
            Entry("restart", oven_restart, "action"),
        ),
        valid=oven_valid,
        between=("refresh", "train"),
    )


class OvenFamily:
    """What a spec wants to know."""

    rules = {"nlms": "linear"}  # noqa: RUF012
    online = False
    programs = {  # noqa: RUF012
        "real": oven_program("oven", oven_update, oven_assess),
        "class": oven_program(
            "oven classes", oven_update_class, oven_assess_class, Entry("classify", oven_classify, "question")
        ),
    }

    def validate(self, spec, refuse):
        pass

    def capacities(self, spec):
        return {"DIM": spec.dim, "OUTPUTS": 1, "L_MAX": spec.reduction.n_max}

    def parameters(self, spec):
        return {
            "max_abs": spec.input.max_abs,
            "label_max_abs": spec.label.max_abs,
            "ridge": ridge_of(spec),
            "classes": len(spec.label.classes or ()),
        }


# ----------------------------------------------------------------------------- a model that learns without any labels


class GaugeStatus(IntEnum):
    """What an update did."""

    DONE = 0
    NOVEL = 1  # the level is above the threshold
    HELD = 2  # the same, and the sample was not learned
    REFUSED_INPUT = -1  # an input is not finite or too large


class Gauge(Struct):
    """Where samples mostly are."""

    mean: Real[DIM]
    spread: Real  # mean square distance from there
    level: Real  # smoothed novelty
    seen: Index
    episode: Index  # rows of the alarm, which begins anew after a row without one


class GaugeWork(Struct):
    """What an update needs besides."""

    step: Real[DIM]


class GaugeConfig(Config):
    max_abs: Real  # largest magnitude of an input
    threshold: Real  # of the level; not for models without alarms
    alarms: bool


@kernel
def gauge_square(s: Gauge, w: GaugeWork, x: Real[DIM]) -> Real:
    """|x - mean|^2; the difference is left in the working memory."""
    total = real(0)
    for j in range(len(x)):
        w.step[j] = x[j] - s.mean[j]
        total += w.step[j] * w.step[j]
    return total


@kernel
def gauge_score(s: Gauge, square: Real) -> Real:
    """How new a sample of that distance is, from 0 to 1."""
    if s.seen[0] == 0:
        return real(1)
    return square / (square + s.spread[0] + real(1))


@kernel
def gauge_novelty(s: Gauge, w: GaugeWork, c: GaugeConfig, x: Real[DIM], score: Real[1]) -> Index:
    """Write how new x is, from 0 to 1, to score: DONE, or REFUSED_INPUT with score unchanged."""
    if not made_within(c.max_abs, x):
        return GaugeStatus.REFUSED_INPUT
    square = gauge_square(s, w, x)
    score[0] = gauge_score(s, square)
    return GaugeStatus.DONE


@kernel
def gauge_side(s: Gauge, c: GaugeConfig, x: Real[DIM], side: Index[2]) -> Index:
    """Write on how many axes x is above the mean, and below, to side: DONE, or REFUSED_INPUT with side unchanged."""
    if not made_within(c.max_abs, x):
        return GaugeStatus.REFUSED_INPUT
    side[0] = 0
    side[1] = 0
    for j in range(len(x)):
        if x[j] > s.mean[j]:
            side[0] += 1
        if x[j] < s.mean[j]:
            side[1] += 1
    return GaugeStatus.DONE


@kernel
def gauge_learn(s: Gauge, w: GaugeWork, c: GaugeConfig, x: Real[DIM]) -> Index:
    """Move the mean and the spread towards x, unless x is very far."""
    square = gauge_square(s, w, x)
    score = gauge_score(s, square)
    s.level[0] += real(0.25) * (score - s.level[0])
    status = GaugeStatus.DONE
    if c.alarms:
        if s.level[0] > c.threshold and s.seen[0] > 20:
            status = GaugeStatus.NOVEL
            if s.episode[0] < 30000:
                s.episode[0] += 1
            if score > real(0.9):
                return GaugeStatus.HELD
        else:
            s.episode[0] = 0
    if s.seen[0] < 50:
        s.seen[0] += 1
    rate = real(1) / real(s.seen[0])
    for j in range(len(x)):
        s.mean[j] += rate * w.step[j]
    s.spread[0] += rate * (square - s.spread[0])
    return status


@kernel
def gauge_update(s: Gauge, w: GaugeWork, c: GaugeConfig, x: Real[DIM]) -> Index:
    """Learn a sample: DONE, NOVEL, HELD, or REFUSED_INPUT with the model unchanged."""
    if not made_within(c.max_abs, x):
        return GaugeStatus.REFUSED_INPUT
    return gauge_learn(s, w, c, x)


@kernel
def gauge_alarm(s: Gauge, c: GaugeConfig, state: Real[3]) -> Index:
    """Write the level, its threshold and the number of rows since the alarm began to state: NOVEL, or DONE."""
    state[0] = s.level[0]
    state[1] = c.threshold
    state[2] = real(s.episode[0])
    if s.level[0] > c.threshold:
        return GaugeStatus.NOVEL
    return GaugeStatus.DONE


@kernel
def gauge_restart(s: Gauge, c: GaugeConfig) -> Index:
    """Let the next samples weigh as the first did."""
    s.seen[0] = 0
    s.spread[0] = real(0)
    if c.alarms:
        s.episode[0] = 0
    return GaugeStatus.DONE


@kernel
def gauge_valid(s: Gauge, c: GaugeConfig) -> Bool:
    """Whether updates could have led to this state."""
    if s.seen[0] < 0 or s.seen[0] > 50:
        return False
    if c.alarms:
        if s.episode[0] < 0 or s.episode[0] > 30000:
            return False
    if not (s.level[0] >= real(0) and s.level[0] <= real(1) and s.spread[0] >= real(0)):
        return False
    return made_within(c.max_abs, s.mean)


class GaugeFamily:
    """What a spec wants to know.  rho is the alarm's threshold; 1: there are no alarms."""

    rules = {"nlms": "linear"}  # noqa: RUF012
    online = True
    programs = {  # noqa: RUF012
        "none": Program(
            name="gauge",
            structs=(Gauge, GaugeWork),
            persistent=(Gauge,),
            configs=(GaugeConfig,),
            statuses=(GaugeStatus,),
            entries=(
                Entry("novelty", gauge_novelty, "question"),
                Entry("side", gauge_side, "question"),
                Entry("update", gauge_update, "update"),
                Entry("alarm", gauge_alarm, "reading", lambda config: bool(config.alarms)),
                Entry("restart", gauge_restart, "action"),
            ),
            valid=gauge_valid,
            alarms=(GaugeStatus.NOVEL, GaugeStatus.HELD),
        )
    }

    def validate(self, spec, refuse):
        pass

    def capacities(self, spec):
        return {"DIM": spec.dim, "OUTPUTS": 1}

    def parameters(self, spec):
        rho = spec.learning.rho
        return {"max_abs": spec.input.max_abs, "threshold": rho, "alarms": rho < 1}


class ClearFamily(GlassFamily):
    """The same without labels."""

    programs = {"none": glass_program("none", Entry("novelty", glass_novelty, "question"))}  # noqa: RUF012


GLASS, CLEAR, OVEN, GAUGE = GlassFamily(), ClearFamily(), OvenFamily(), GaugeFamily()


class MadeLearning(Learning):
    rho: float = 0.0


class GlassSpec(Spec):
    learning: MadeLearning = MadeLearning()

    @property
    def family(self):
        return GLASS


class ClearSpec(Spec):
    learning: MadeLearning = MadeLearning()

    @property
    def family(self):
        return CLEAR


class GaugeSpec(Spec):
    learning: MadeLearning = MadeLearning()

    @property
    def family(self):
        return GAUGE


class OvenSpec(Spec):
    learning: Learning = Learning()
    reduction: Reduction = Reduction()

    @property
    def family(self):
        return OVEN


LABELS = {
    "real": {"max_abs": 10.0},
    "reals": {"outputs": 3, "max_abs": 10.0},
    "two classes": {"classes": ["shut", "open"]},
    "class": {"classes": ["low", "mid", "high"]},
}


def glass_spec(kind="real", precision="float32", dim=3, rho=0.7, **sections):
    """A model that only predicts, for a kind of label."""
    content = {"name": "glass", "precision": precision, "input": {"dim": dim, "max_abs": 100.0}, "label": LABELS[kind]}
    return GlassSpec.model_validate(content | {"learning": {"rule": "nlms", "rho": rho}} | sections)


def oven_spec(kind="real", precision="float32", dim=3, samples=12, **sections):
    """A model that is trained on the device, for numbers or two classes."""
    content = {"name": "oven", "precision": precision, "input": {"dim": dim, "max_abs": 100.0}, "label": LABELS[kind]}
    more = {"learning": {"rule": "nlms"}, "reduction": {"n_max": samples}}
    return OvenSpec.model_validate(content | more | sections)


def clear_spec(precision="float32", dim=3, **sections):
    """A model that only tells how new a sample is, and was learned elsewhere."""
    content = {"name": "clear", "precision": precision, "input": {"dim": dim, "max_abs": 100.0}}
    return ClearSpec.model_validate(content | {"learning": {"rule": "nlms", "rho": 0.7}} | sections)


def gauge_spec(precision="float32", dim=3, threshold=0.6, **sections):
    """A model that learns without labels, with alarms (threshold below 1) or without."""
    content = {"name": "gauge", "precision": precision, "input": {"dim": dim, "max_abs": 100.0}}
    return GaugeSpec.model_validate(content | {"learning": {"rule": "nlms", "rho": threshold}} | sections)
