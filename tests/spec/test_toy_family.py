"""A rule in one file: its memory, what it answers, what it learns, its keys; the frame makes the rest."""

import inspect
import json
import pickle
import pydoc
import re
from enum import IntEnum
from pathlib import Path
from typing import Annotated

import numpy as np
import pytest
from pydantic import Field
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, TimeSeriesSplit
from sklearn.utils.estimator_checks import check_estimator

from pykernel.algorithms import frame
from pykernel.algorithms.frame import Framed, Status, hear
from pykernel.algorithms.rule import Rule, programs
from pykernel.dialect import DIM, OUTPUTS, Config, Index, Real, Struct, kernel, real
from pykernel.errors import UserError
from pykernel.estimators.online import BudgetedKernelClassifier, BudgetedKernelRegressor
from pykernel.gen.project import build
from pykernel.host.model import HostModel
from pykernel.host.snapshot import load, save
from pykernel.river import Classifier, Regressor
from pykernel.spec import stages
from pykernel.spec.base import Spec
from pykernel.spec.families.online_keys import GRADIENT
from pykernel.spec.model import FAMILIES, load_spec, make_spec
from pykernel.spec.schema import spec_schema
from pykernel.spec.sections import Counts, Learning, Of, Rate, Section, StandardisedInput, Tried
from tests.support.compilers import in_one_build
from tests.support.json_schema import misfits
from tests.support.key_tables import key_tables
from tests.support.specs import named

# -------------------------------------------------------------------------------------- the family: a level that follows


class LevelStatus(IntEnum):
    """What only levels return."""

    STEADY = 1  # the label was the level already


class Level(Struct):
    """What labels mostly are."""

    level: Real[OUTPUTS]


class LevelConfig(Config):
    part: Real  # of an error that a sample corrects


class LevelModel(Framed):
    parts = Level, LevelConfig


@kernel
def answer(m: LevelModel, x: Real[DIM], y: Real[OUTPUTS]) -> None:
    """y = the level."""
    for o in range(len(y)):
        y[o] = m.level[o]


@kernel
def learn(m: LevelModel, x: Real[DIM]) -> Index:
    """Move the level towards y."""
    answer(m, x, m.error)
    hear(m)
    steady = True
    for o in range(len(m.error)):
        steady = steady and m.error[o] == real(0)
        m.level[o] += m.part * m.error[o]
    return LevelStatus.STEADY if steady else Status.DONE


LEVEL = programs(
    Rule(
        name="level",
        model=LevelModel,
        memory=(Level,),
        work=(),
        configs=(LevelConfig,),
        statuses=LevelStatus,
        hooks={frame.answer: answer, frame.learn: learn},
        costs=("O(1)", "O(1)"),
    )
)


class LevelLearning(Learning):
    """How fast the level follows."""

    part: Annotated[float, Rate(), Tried(3, 0.001, 1.0)] = Field(
        0.5, gt=0, le=1, description="the part of an error that one sample corrects"
    )
    brake: Annotated[float, Of("slow-level")] = Field(2.0, ge=1, description="how much slower the level follows")


class Drift(Section):
    """How the level moves by itself: a section that no other family has."""

    per_hour: float | None = Field(None, description="what the level gains in an hour")
    hours: Annotated[int, Counts("counts with per_hour; give it, or leave hours out", ("drift.per_hour",))] = Field(
        1, ge=1, description="after how many hours"
    )


class LevelSpec(Spec):
    input: StandardisedInput
    label: stages.StagedLabel = stages.StagedLabel()
    learning: LevelLearning = LevelLearning()
    drift: Drift = Drift()

    @property
    def family(self):
        return LEVELS


class Levels:
    rules = {"level": "toy", "slow-level": "toy"}  # noqa: RUF012
    spec = LevelSpec
    online = True
    programs = LEVEL

    def validate(self, spec, refuse):
        if (spec.drift.per_hour or 0.0) > spec.label.max_abs:
            refuse("[drift] per_hour", "must be within [label] max_abs")

    def capacities(self, spec):
        return {"DIM": spec.dim, "OUTPUTS": spec.outputs}

    def parameters(self, spec):
        slower = spec.learning.brake if spec.learning.rule == "slow-level" else 1.0
        own = {"part": spec.learning.part / slower, "rehearsed": 40}
        return stages.parameters(spec, spec.label.max_abs) | own


LEVELS = Levels()

# ------------------------------------------------------------------------------------------------------------ the tests

BASE = {"name": "tank", "input": {"dim": 1}, "learning": {"rule": "level"}}


@pytest.fixture(autouse=True)
def with_levels(monkeypatch):
    monkeypatch.setattr("pykernel.spec.model.FAMILIES", (*FAMILIES, LEVELS))


def test_its_spec_is_read_written_and_computed(tmp_path):
    path = tmp_path / "tank.toml"
    path.write_text(
        'name = "tank"\n[input]\ndim = 1\n[learning]\nrule = "slow-level"\npart = 1.0\n[drift]\nper_hour = 1.0\n'
    )
    spec = load_spec(path)
    assert type(spec) is LevelSpec and spec.drift == Drift(per_hour=1.0) and spec.kernel is None
    path.write_text(spec.to_toml())
    assert load_spec(path) == spec == make_spec(spec.model_dump()) == pickle.loads(pickle.dumps(spec))
    model = HostModel(spec)
    model.update(np.zeros(1), 8.0)
    assert model.predict(np.zeros(1)) == 4.0
    assert "int tank_update(" in build(spec).files["src/tank.h"].replace("int32_t", "int")


REFUSED = [
    ({"learning": {"rule": "level", "brake": 3.0}}, "[learning] brake belongs to slow-level; level does not have it: leave it out"),
    ({"learning": {"rule": "level", "rho": 0.1}}, f"[learning] rho belongs to {', '.join(GRADIENT[:-1])} and {GRADIENT[-1]}; level does not have it: leave it out"),
    ({"kernel": {"sigma": 1.0}}, "[kernel] belongs to klms, "),
    ({"reduction": {"n_max": 3}}, "[reduction] n_max belongs to klms, "),
    ({"learning": {}, "drift": {"per_hour": 1.0}}, "[drift] per_hour belongs to level and slow-level; klms does not have it: leave it out"),
    ({"drift": {"per_hours": 1.0}}, "[drift] 'per_hours' is not a key of a spec; did you mean 'per_hour'?"),
    ({"learning": {"rule": "level", "etta": 1.0}}, "[learning] 'etta' is not a key of a spec; did you mean 'eta'?"),
    ({"learning": {"rule": "level", "part": 2.0}}, "[learning] part is 2.0; it must be less than or equal to 1"),
    ({"drift": {"hours": 2}}, "[drift] hours counts with per_hour; give it, or leave hours out"),
    ({"drift": {"per_hour": 1e9}}, "[drift] per_hour must be within [label] max_abs"),
    ({"learning": {"rule": "levl"}}, "[learning] rule is 'levl'; did you mean 'level'?"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "says"), REFUSED, ids=lambda value: str(value)[:40])
def test_refusals_follow_from_its_declarations(change, says):
    with pytest.raises(UserError) as refused:
        make_spec(named(BASE | change))
    assert str(refused.value).startswith(f"spec: {says}")


def test_what_changes_nothing_may_be_written_out():
    made = make_spec(BASE | {"kernel": None, "reduction": {"n_max": 32}, "drift": {"hours": 1}})
    assert made.to_toml() == make_spec(BASE | {"drift": {"hours": 1}}).to_toml()
    klms = BASE | {"learning": {}, "kernel": {"sigma": 1.0}}
    assert make_spec(klms | {"drift": {"hours": 1}}) == make_spec(klms)


def test_what_a_spec_has_can_be_asked():
    slow, quick = make_spec(BASE | {"learning": {"rule": "slow-level"}}), make_spec(BASE)
    assert slow.has("learning", "brake") and not quick.has("learning", "brake")
    assert not quick.has("reduction", "technique") and not quick.has("learning", "eta")
    assert quick.has("drift", "per_hour") and not quick.has("drift", "hours")


def test_the_schema_and_the_tables_have_it():
    schema = spec_schema()
    assert misfits(schema, BASE | {"drift": {"per_hour": 1.0}}) == []
    assert [path for path, _ in misfits(schema, BASE | {"learning": {"rule": "level", "brake": 3.0}})] == [
        "learning.brake"
    ]
    assert [path for path, _ in misfits(schema, BASE | {"learning": {}, "drift": {}})] == ["drift"]
    assert "| `brake` | `slow-level` | `2.0` | from 1 | how much slower the level follows |" in key_tables()["level"]


STREAM = np.random.default_rng(0).normal(2.0, 1.0, (400, 3))


@pytest.mark.in_turn
@pytest.mark.parametrize("label", [{}, {"outputs": 3}, {"classes": ["a", "b", "c"]}], ids=["one", "several", "classes"])
@pytest.mark.parametrize("around", ["plain", "stages", "signal"])
def test_the_frame_makes_the_rest(label, around):
    """Every kind of label, stages and signal: on the host and in C, with a self-test and states that are checked."""
    content = BASE | {"label": label}
    if around == "stages":
        content["input"] = {"dim": 1, "standardise": True, "warmup": 4}
        if "classes" not in label:
            content["label"] = label | {"center": True, "gain": True, "clip": 5.0, "low": -3.0, "max_abs": 50.0}
    if around == "signal":
        raw = {"channels": ["a"], "max_abs": 10.0, "window": 8, "hop": 4, "features": ["mean"]}
        content = {k: v for k, v in content.items() if k != "input"} | {"signal": raw}
    assert_the_frame_makes_the_rest(content, label)


def assert_the_frame_makes_the_rest(content, label):
    spec = make_spec(content)
    report = in_one_build(spec, samples=600)
    assert report.ok and report.statuses.get("FROZEN", 0) == 0
    model, alone = HostModel(spec), spec.signal is None
    y = np.argmax(STREAM, axis=1) if "classes" in label else STREAM if label else STREAM[:, 0]
    statuses = model.update(STREAM[:, :1], y)
    assert {"DONE"} <= {spec.program.status(status).name for status in statuses}
    question = spec.program.forecasts(spec.config)
    answers = model.ask(question, np.zeros((1, 1)))[0] if alone else model.read(question)[0]
    assert np.isfinite(answers).all() and ("classes" in label or (answers != 0).any())
    before = bytes(model.memory.bytes)
    model.freeze()
    assert spec.program.status(model.update(STREAM[:1, :1], y[:1])[0]).name in ("FROZEN", "GATHERING")
    model.freeze(False)
    restored = HostModel(spec)
    load(restored, save(model))
    kept = spec.program.state_bytes(spec.memory().layout)
    assert not alone or bytes(restored.memory.bytes)[:kept] == before[:kept]


def asked_of_every_command(run, spec, plan):
    """What each command prints as JSON, {} of those that have none.  plan: more words for that command."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(300, 1))
    y = 5.0 + np.repeat(rng.normal(size=6), 50) + 0.3 * rng.normal(size=300)
    Path("tank.csv").write_text("a,y\n" + "".join(f"{a:.4f},{b:.4f}\n" for a, b in zip(x[:, 0], y, strict=True)))
    Path("tank.toml").write_text(spec)
    words = {
        "simulate": "tank.toml tank.csv",
        "generate": "tank.toml -o tank",
        "check": "tank.toml --data tank.csv --level -O2",
        "plan": f"tank.csv --label y --only level,slow-level {plan} --jobs 1 --ram 4k -o planned",
        "page": "tank.toml tank.csv -o tank.html",
        "info": "schema",
    }
    reports = {}
    for command, given in words.items():
        as_json = [] if command in ("info", "page") else ["--json"]
        code, out, err = run(command, *given.split(), *as_json)
        assert code == 0, (command, err)
        reports[command] = json.loads(out) if as_json else {}
    return reports


@pytest.mark.exhaustive
def test_every_command_takes_it(tmp_path, monkeypatch, run, one_build):
    """plan varies its key, from what the key's declaration says."""
    monkeypatch.chdir(tmp_path)
    spec = 'name = "tank"\n[input]\ncolumns = ["a"]\n[label]\ncolumn = "y"\n[learning]\nrule = "level"\n'
    asked_of_every_command(run, spec, "--trials 4 --target cortex-m4f")
    assert load_spec(Path("planned/planned.toml")).learning.rule in ("level", "slow-level")


@pytest.mark.parametrize("kind", [BudgetedKernelRegressor, BudgetedKernelClassifier, Regressor, Classifier])
@pytest.mark.parametrize("own", [{}, {"part": 0.3}, {"part": 0.3, "per_hour": 1.5, "hours": 2}], ids=str)
def test_estimators_and_river_take_it(kind, own):
    """Its keys are parameters; the memory is that of the model that learns the same samples."""
    x, y = STREAM[:, :1], 5.0 + STREAM[:, 1]
    river, classifies = kind in (Regressor, Classifier), kind in (BudgetedKernelClassifier, Classifier)
    labels = y > 5.0 if classifies else y
    section = {"learning": {"rule": "level", **({"part": own["part"]} if own else {})}}
    drift = {key: value for key, value in own.items() if key != "part"}
    label = {"classes": ["False", "True"]} if classifies else {"max_abs": 100.0}
    content = (
        BASE | section | {"input": {"dim": 1, "max_abs": 100.0}, "label": label} | ({"drift": drift} if drift else {})
    )
    model = HostModel(make_spec(content))
    model.update(x, labels.astype(int) if classifies else labels)
    given = own | ({} if classifies else {"label_max_abs": 100.0}) | {"n_epochs": 1}
    estimator = kind(rule="level", input_max_abs=100.0, **given)
    for made in (estimator, estimator.clone() if river else clone(estimator), pickle.loads(pickle.dumps(estimator))):
        if river:
            for row, each in zip(x, labels.tolist(), strict=True):
                made.learn_one({"a": row[0]}, each)
        else:
            made.fit(x, labels)
        assert made.spec_.learning.part == own.get("part", 0.5) and made.spec_.drift.hours == own.get("hours", 1)
        assert bytes(made.model_.memory.bytes) == bytes(model.memory.bytes)


@pytest.mark.parametrize("kind", [BudgetedKernelRegressor, Regressor])
def test_its_keys_are_parameters_like_others(kind):
    parameters = inspect.signature(kind).parameters
    names = list(parameters)
    assert names.index("part") > names.index("features") and parameters["part"].default is None
    assert parameters["part"].annotation == float | None and {"brake", "per_hour", "hours"} <= set(names)
    told = inspect.getdoc(kind)
    if kind is BudgetedKernelRegressor:
        assert 'part : float, default=0.5\n    "level", "slow-level": the part of an error' in told
        assert '"spectrum-softmax", "level", "slow-level"}, default=None' in told
        assert re.search(r'None: 5 for "klms", .*"spectrum-softmax", "level" and "slow-level",', told)
        assert "part: float | None = None" in pydoc.plain(pydoc.render_doc(kind))
    assert " part," in told or "part : " in told
    with pytest.raises(TypeError, match=f"{kind.__name__}: 'partt' is not a parameter; did you mean 'part'?"):
        kind(partt=0.3)


def test_scikit_learn_takes_its_keys():
    model = BudgetedKernelRegressor(rule="level", part=0.3)
    assert model.get_params()["part"] == 0.3 and repr(model) == "BudgetedKernelRegressor(part=0.3, rule='level')"
    assert model.set_params(part=0.4).part == 0.4 and clone(model).part == 0.4
    x, y = STREAM[:, :1], np.repeat([1.0, 9.0], 200)
    assert sum(clone(model).fit(x, y).status_counts_.values()) == 5 * len(x)
    found = GridSearchCV(model, {"part": [0.01, 0.9]}, cv=TimeSeriesSplit(3)).fit(x, y)
    assert found.best_params_ == {"part": 0.9} and found.best_estimator_.spec_.learning.part == 0.9
    with pytest.raises(UserError, match=r"BudgetedKernelRegressor: \[learning\] part is 2.0; it must be less than"):
        BudgetedKernelRegressor(rule="level", part=2.0).fit(x, y)
    with pytest.raises(
        UserError, match=r"\[learning\] part belongs to level and slow-level; klms does not have it: leave it out"
    ):
        BudgetedKernelRegressor(rule="klms", part=0.3).fit(x, y)
    check_estimator(
        BudgetedKernelRegressor(rule="level", part=0.3),
        expected_failed_checks={"check_regressors_train": "a level does not depend on the inputs"},
        on_skip=None,
    )


def test_they_are_gone_with_the_family(monkeypatch):
    assert "part" in inspect.signature(BudgetedKernelRegressor).parameters
    monkeypatch.undo()
    for kind in (BudgetedKernelRegressor, Regressor):
        assert "part" not in inspect.signature(kind).parameters
        assert "part : " not in inspect.getdoc(kind) and "slow-level" not in inspect.getdoc(kind)
        with pytest.raises(TypeError, match="'part' is not a parameter"):
            kind(part=0.3)
