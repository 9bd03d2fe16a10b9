"""Small programs for one label, several and a class: nothing in gen knows them, so whoever adds one needs no edit there."""

# ruff: noqa: SIM110 — in the dialect `for` has no substitutes
from enum import IntEnum

from pykernel.dialect import DIM, OUTPUTS, Bool, Config, Index, Real, Struct, absolute, kernel, real
from pykernel.dialect.program import Entry, Program
from pykernel.spec.model import Spec
from pykernel.spec.sections import Learning


class ToyStatus(IntEnum):
    """What a call did: 0 done, above 0 noteworthy, below 0 refused and the model unchanged."""

    DONE = 0
    LEARNED = 1  # the weights changed
    SURE = 2  # they did not have to
    REFUSED_INPUT = -1  # an input is not finite or too large
    REFUSED_LABEL = -2  # a label is


class Toy(Struct):
    """Weights on the inputs."""

    weight: Real[OUTPUTS, DIM]
    power: Real  # mean of |x|^2
    count: Index  # samples learned, at most 1000


class ToyWork(Struct):
    """What an update needs besides."""

    target: Real[OUTPUTS]
    value: Real[OUTPUTS]


class ToyConfig(Config):
    eta: Real  # learning rate
    input_max_abs: Real
    label_max_abs: Real
    classes: Index  # how many there are
    margins: bool  # whether labels are classes


@kernel
def toy_within(c: ToyConfig, x: Real[DIM]) -> Bool:
    """Whether every input is a number within its limit."""
    for j in range(len(x)):
        if not (absolute(x[j]) <= c.input_max_abs):
            return False
    return True


@kernel
def toy_values(s: Toy, x: Real[DIM], y: Real[OUTPUTS]) -> None:
    """y = W x."""
    for o in range(len(y)):
        total = real(0)
        for j in range(len(x)):
            total += s.weight[o, j] * x[j]
        y[o] = total


@kernel
def toy_predict(s: Toy, c: ToyConfig, x: Real[DIM], y: Real[OUTPUTS]) -> Index:
    """Write W x to y: DONE, or REFUSED_INPUT with y unchanged."""
    if not toy_within(c, x):
        return ToyStatus.REFUSED_INPUT
    toy_values(s, x, y)
    return ToyStatus.DONE


@kernel
def toy_classify(s: Toy, w: ToyWork, c: ToyConfig, x: Real[DIM], label: Index[1]) -> Index:
    """Write the likeliest class of x to label: DONE, or REFUSED_INPUT with label unchanged."""
    if not toy_within(c, x):
        return ToyStatus.REFUSED_INPUT
    toy_values(s, x, w.value)
    best = 0
    if len(w.value) == 1:
        if w.value[0] > real(0):
            best = 1
    else:
        for o in range(1, len(w.value)):
            if w.value[o] > w.value[best]:
                best = o
    label[0] = best
    return ToyStatus.DONE


@kernel
def toy_novelty(s: Toy, c: ToyConfig, x: Real[DIM], y: Real[1]) -> Index:
    """Write |x|^2 in parts of what it was on average to y: DONE, or REFUSED_INPUT with y unchanged."""
    if not toy_within(c, x):
        return ToyStatus.REFUSED_INPUT
    y[0] = toy_power(x) / (real(1) + s.power[0])
    return ToyStatus.DONE


@kernel
def toy_power(x: Real[DIM]) -> Real:
    """|x|^2."""
    total = real(0)
    for j in range(len(x)):
        total += x[j] * x[j]
    return total


@kernel
def toy_learn(s: Toy, w: ToyWork, c: ToyConfig, x: Real[DIM]) -> Index:
    """Go toward w.target: normalised least mean squares, or a perceptron with a margin."""
    toy_values(s, x, w.value)
    power = toy_power(x)
    status = ToyStatus.SURE
    for o in range(len(w.target)):
        error = w.target[o] - w.value[o]
        if c.margins and w.target[o] * w.value[o] >= real(1):
            error = real(0)
        if error != real(0):
            status = ToyStatus.LEARNED
        for j in range(len(x)):
            s.weight[o, j] += c.eta * error * x[j] / (real(1) + power)
    if s.count[0] < 1000:
        s.count[0] += 1
    s.power[0] += (power - s.power[0]) / real(s.count[0])
    return status


@kernel
def toy_update(s: Toy, w: ToyWork, c: ToyConfig, x: Real[DIM], y: Real) -> Index:
    """Learn that W x should be y."""
    if not toy_within(c, x):
        return ToyStatus.REFUSED_INPUT
    if not (absolute(y) <= c.label_max_abs):
        return ToyStatus.REFUSED_LABEL
    w.target[0] = y
    return toy_learn(s, w, c, x)


@kernel
def toy_update_several(s: Toy, w: ToyWork, c: ToyConfig, x: Real[DIM], y: Real[OUTPUTS]) -> Index:
    """Learn that W x should be y, each of whose elements must be a number within the limit."""
    if not toy_within(c, x):
        return ToyStatus.REFUSED_INPUT
    for o in range(len(y)):
        if not (absolute(y[o]) <= c.label_max_abs):
            return ToyStatus.REFUSED_LABEL
    for o in range(len(y)):
        w.target[o] = y[o]
    return toy_learn(s, w, c, x)


@kernel
def toy_update_class(s: Toy, w: ToyWork, c: ToyConfig, x: Real[DIM], label: Index) -> Index:
    """Learn that x is of the class."""
    if not toy_within(c, x):
        return ToyStatus.REFUSED_INPUT
    if label < 0 or label >= c.classes:
        return ToyStatus.REFUSED_LABEL
    for o in range(len(w.target)):
        w.target[o] = real(-1)
    if len(w.target) > 1:
        w.target[label] = real(1)
    elif label == 1:
        w.target[0] = real(1)
    return toy_learn(s, w, c, x)


@kernel
def toy_valid(s: Toy, c: ToyConfig) -> Bool:
    """Whether learning could have led to this state."""
    if s.count[0] < 0 or s.count[0] > 1000:
        return False
    if not (s.power[0] >= real(0) and s.power[0] <= c.input_max_abs * c.input_max_abs * real(len(s.weight[0]) + 1)):
        return False
    for o in range(len(s.weight)):
        for j in range(len(s.weight[0])):
            if not (absolute(s.weight[o, j]) <= real(1000000) * c.label_max_abs):
                return False
    return True


def toy_program(name, update, *others):
    return Program(
        name=name,
        structs=(Toy, ToyWork),
        persistent=(Toy,),
        configs=(ToyConfig,),
        statuses=(ToyStatus,),
        entries=(
            Entry("predict", toy_predict, "question"),
            Entry("update", update, "update"),
            Entry("novelty", toy_novelty, "question"),
            *others,
        ),
        valid=toy_valid,
    )


class ToyFamily:
    """What a spec wants to know."""

    rules = {"nlms": "linear"}  # noqa: RUF012
    online = False
    programs = {  # noqa: RUF012
        "real": toy_program("toy", toy_update),
        "reals": toy_program("toys", toy_update_several),
        "class": toy_program("toy classes", toy_update_class, Entry("classify", toy_classify, "question")),
    }

    def validate(self, spec, refuse):
        pass

    def capacities(self, spec):
        return {"DIM": spec.dim, "OUTPUTS": spec.outputs}

    def parameters(self, spec):
        return {
            "eta": spec.learning.eta,
            "input_max_abs": spec.input.max_abs,
            "label_max_abs": spec.label.max_abs,
            "classes": len(spec.label.classes or ()),
            "margins": spec.label.classes is not None,
        }


TOYS = ToyFamily()


class ToyLearning(Learning):
    eta: float = 0.5


class ToySpec(Spec):
    """A spec of one of these programs."""

    learning: ToyLearning = ToyLearning()

    @property
    def family(self):
        return TOYS


ToyFamily.spec = ToySpec

LABELS = {
    "real": {"max_abs": 10.0},
    "reals": {"outputs": 3, "max_abs": 10.0},
    "two classes": {"classes": ["shut", "open"]},
    "class": {"classes": ["low", "mid", "high"]},
}


def toy_spec(kind, precision="float32", dim=3, **sections):
    """A spec for a kind of label, of LABELS."""
    content = {
        "name": "toy",
        "precision": precision,
        "input": {"dim": dim, "max_abs": 100.0},
        "label": LABELS[kind],
        "learning": {"rule": "nlms", "eta": 0.5},
    }
    return ToySpec.model_validate(content | sections)
