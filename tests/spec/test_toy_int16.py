"""A rule in int16 in one file: the level that follows, for processors without an FPU.

What the rule keeps, how it answers and learns, how its numbers are scaled; the frame of int16 makes the rest.
"""

import math

import numpy as np
import pytest

from pykernel.algorithms import frame
from pykernel.algorithms.frame import Status
from pykernel.algorithms.int16.arithmetic import clip, part_of
from pykernel.algorithms.int16.frame import INT16, Int16Framed, hear
from pykernel.algorithms.rule import Rule, programs
from pykernel.dialect import DIM, OUTPUTS, Config, Index, Int, Int16, Struct, between, kernel
from pykernel.errors import UserError
from pykernel.host.model import HostModel
from pykernel.spec.families.int16 import Int16Spec, complain_of_inputs, complain_of_rate
from pykernel.spec.families.int16_online import Int16Label, complain_of_label_range, frame_parameters
from pykernel.spec.families.int16_scales import COUNTS, Scales, conversion, factors, limits
from pykernel.spec.family import Models
from pykernel.spec.model import FAMILIES, load_spec, make_spec
from pykernel.spec.stages import LinearPart
from tests.spec.test_toy_family import (
    LEVELS,
    STREAM,
    Drift,
    LevelLearning,
    LevelStatus,
    assert_the_frame_makes_the_rest,
)

# ------------------------------------------------------------------------------------- the family: a level that follows


class Int16Level(Struct):
    """What labels mostly are."""

    level: between(Int[OUTPUTS], "-rest_most", "rest_most")


class Int16LevelConfig(Config):
    part: Index  # of an error that a sample corrects, in units of 2^-16


class Int16LevelModel(Int16Framed):
    parts = Int16Level, Int16LevelConfig


@kernel
def answer(m: Int16LevelModel, x: Int16[DIM], y: Int[OUTPUTS]) -> None:
    """y = the level."""
    for o in range(len(y)):
        y[o] = clip(m.level[o], -m.rest_most, m.rest_most)


@kernel
def learn(m: Int16LevelModel, x: Int16[DIM]) -> Index:
    """Move the level towards y."""
    answer(m, x, m.error)
    hear(m)
    steady = True
    for o in range(len(m.error)):
        steady = steady and m.error[o] == 0
        m.level[o] = clip(m.value[o] + part_of(m.error[o], m.part), -m.rest_most, m.rest_most)
    return LevelStatus.STEADY if steady else Status.DONE


INT16_LEVEL = programs(
    Rule(
        name="level",
        model=Int16LevelModel,
        memory=(Int16Level,),
        work=(),
        configs=(Int16LevelConfig,),
        statuses=LevelStatus,
        hooks={frame.answer: answer, frame.learn: learn},
        costs=("O(1)", "O(1)"),
        stand_ins=INT16,
    )
)


class Int16LevelSpec(Int16Spec):
    label: Int16Label = Int16Label()
    linear: LinearPart | None = None
    learning: LevelLearning = LevelLearning()
    drift: Drift = Drift()


class Int16Levels(Models):
    rules = {"level": "toy", "slow-level": "toy"}  # noqa: RUF012
    spec = Int16LevelSpec
    online = True
    programs = INT16_LEVEL
    planned = (("level", None),)

    def validate(self, spec, refuse):
        complain_of_inputs(spec, refuse)
        complain_of_label_range(spec, refuse)
        complain_of_rate("[learning] part", spec.learning.part, refuse)

    def scales(self, spec):
        octave = math.floor(math.log2(COUNTS / (limits(spec) * np.abs(factors(spec))).max()))
        return Scales(conversion(spec, 2.0**octave), octave, 24 - math.ceil(math.log2(spec.label_max_abs)))

    def capacities(self, spec):
        return {"DIM": spec.dim, "OUTPUTS": spec.outputs} | spec.conversion.sizes

    def unit(self, spec, question):
        return 2.0**-spec.label_shift

    def parameters(self, spec):
        slower = spec.learning.brake if spec.learning.rule == "slow-level" else 1.0
        own = {"part": min(round(65536 * spec.learning.part / slower), 65535), "rehearsed": 40}
        reach = int(spec.conversion.reach.max())
        return spec.conversion.parameters() | frame_parameters(spec, reach, 4.0**spec.scales.octave) | own


INT16_LEVELS = Int16Levels()

# ------------------------------------------------------------------------------------------------------------ the tests

BASE = {
    "name": "tank",
    "precision": "int16",
    "input": {"dim": 1, "max_abs": 10.0},
    "label": {"max_abs": 50.0},
    "learning": {"rule": "level"},
}


@pytest.fixture(autouse=True)
def with_levels(monkeypatch):
    monkeypatch.setattr("pykernel.spec.model.FAMILIES", (*FAMILIES, LEVELS, INT16_LEVELS))


def test_its_spec_is_read_written_and_computed(tmp_path):
    path = tmp_path / "tank.toml"
    path.write_text(
        'name = "tank"\nprecision = "int16"\n[input]\ndim = 1\nmax_abs = 10.0\n[label]\nmax_abs = 50.0\n'
        '[learning]\nrule = "slow-level"\npart = 1.0\n[drift]\nper_hour = 1.0\n'
    )
    spec = load_spec(path)
    assert type(spec) is Int16LevelSpec and spec.drift == Drift(per_hour=1.0)
    path.write_text(spec.to_toml())
    assert load_spec(path) == spec == make_spec(spec.model_dump())
    model = HostModel(spec)
    model.update(np.zeros(1), 8.0)
    assert model.predict(np.zeros(1)) == pytest.approx(4.0, abs=1e-5)


REFUSED = [
    ({"label": {}}, "[label] max_abs is missing; int16 needs the range of the labels"),
    ({"learning": {"rule": "level", "part": 1e-6}}, "[learning] part is 1e-06; it must be at least 1.5e-05, the smallest learning rate"),
    ({"learning": {"rule": "level", "brake": 3.0}}, "[learning] brake belongs to slow-level; level does not have it"),
    ({"kernel": {"sigma": 1.0}}, "[kernel] belongs to klms, "),
    ({"learning": {"rule": "quadratic-rls"}}, 'precision is "int16", which only klms, qklms, nlms, rls, expansion-nlms, expansion-rls, expansion-softmax, spectrum-nlms, spectrum-ekf, frozen, level, slow-level can have; for quadratic-rls, choose'),
]  # fmt: skip


@pytest.mark.parametrize(("change", "says"), REFUSED, ids=lambda value: str(value)[:40])
def test_refusals_follow_from_its_declarations(change, says):
    with pytest.raises(UserError) as refused:
        make_spec(BASE | change)
    assert str(refused.value).startswith(f"spec: {says}")


@pytest.mark.in_turn
@pytest.mark.parametrize("label", [{}, {"outputs": 3}, {"classes": ["a", "b", "c"]}], ids=["one", "several", "classes"])
@pytest.mark.parametrize("around", ["plain", "stages", "signal"])
def test_the_frame_makes_the_rest(label, around):
    """Every kind of label, stages and signal: on the host and in C, with a self-test and states that are checked."""
    content = BASE | {"label": label if "classes" in label else label | {"max_abs": 50.0}}
    if around == "stages":
        content["input"] = {"dim": 1, "max_abs": [10.0], "center": [2.0], "scale": [0.5]}
        if "classes" not in label:
            content |= {"label": content["label"] | {"center": True, "gain": True, "low": -3.0}, "linear": {}}
    if around == "signal":
        raw = {"channels": ["a"], "max_abs": 10.0, "window": 8, "hop": 4, "features": ["mean"]}
        content = {k: v for k, v in content.items() if k != "input"} | {"signal": raw}
    assert_the_frame_makes_the_rest(content, label)


def test_it_learns_what_the_rule_of_reals_learns():
    """The two differ by what 16 bits of a part and 24 bits of a label round."""
    whole = HostModel(make_spec(BASE | {"learning": {"rule": "level", "part": 0.25}}))
    reals = HostModel(make_spec(BASE | {"learning": {"rule": "level", "part": 0.25}, "precision": "float64"}))
    for model in (whole, reals):
        model.update(STREAM[:, :1], STREAM[:, 0])
    assert whole.predict(np.zeros(1)) == pytest.approx(reals.predict(np.zeros(1)), abs=1e-4)
