"""A family in one file: its sections, its program, and nothing changed elsewhere."""

import pickle
from enum import IntEnum
from typing import Annotated

import numpy as np
import pytest
from pydantic import Field

from pykernel.dialect import DIM, OUTPUTS, Bool, Config, Index, Real, Struct, absolute, kernel
from pykernel.dialect.program import Entry, Program
from pykernel.errors import UserError
from pykernel.gen.project import build
from pykernel.host.model import HostModel
from pykernel.spec.base import Spec
from pykernel.spec.model import FAMILIES, load_spec, make_spec
from pykernel.spec.schema import key_tables, spec_schema
from pykernel.spec.sections import Learning, Of, Section
from tests.support.json_schema import misfits
from tests.support.specs import named

# -------------------------------------------------------------------------------------- the family: a level that follows


class LevelStatus(IntEnum):
    """What a call did."""

    DONE = 0
    REFUSED_INPUT = -1  # an input is not finite or too large
    REFUSED_LABEL = -2  # the label is


class Level(Struct):
    """What labels mostly are."""

    level: Real


class LevelConfig(Config):
    part: Real  # of an error that a sample corrects
    max_abs: Real


@kernel
def level_predict(s: Level, c: LevelConfig, x: Real[DIM], y: Real[OUTPUTS]) -> Index:
    """Write the level to y: DONE, or REFUSED_INPUT with y unchanged."""
    if not (absolute(x[0]) <= c.max_abs):
        return LevelStatus.REFUSED_INPUT
    y[0] = s.level[0]
    return LevelStatus.DONE


@kernel
def level_update(s: Level, c: LevelConfig, x: Real[DIM], y: Real) -> Index:
    """Move the level towards y."""
    if not (absolute(x[0]) <= c.max_abs):
        return LevelStatus.REFUSED_INPUT
    if not (absolute(y) <= c.max_abs):
        return LevelStatus.REFUSED_LABEL
    s.level[0] += c.part * (y - s.level[0])
    return LevelStatus.DONE


@kernel
def level_valid(s: Level, c: LevelConfig) -> Bool:
    """Whether learning could have led to this state."""
    return absolute(s.level[0]) <= c.max_abs


class LevelLearning(Learning):
    """How fast the level follows."""

    part: float = Field(0.5, gt=0, le=1, description="the part of an error that one sample corrects")
    brake: Annotated[float, Of("slow-level")] = Field(2.0, ge=1, description="how much slower the level follows")


class Drift(Section):
    """How the level moves by itself: a section that no other family has."""

    per_hour: float = Field(0.0, description="what the level gains in an hour")
    hours: int = Field(1, ge=1, description="after how many hours")


class LevelSpec(Spec):
    learning: LevelLearning = LevelLearning()
    drift: Drift = Drift()

    @property
    def family(self):
        return LEVELS


class Levels:
    rules = ("level", "slow-level")
    spec = LevelSpec
    online = False
    programs = {  # noqa: RUF012
        "real": Program(
            name="level",
            structs=(Level,),
            persistent=(Level,),
            configs=(LevelConfig,),
            status=LevelStatus,
            entries=(Entry("predict", level_predict, "question"), Entry("update", level_update, "update")),
            valid=level_valid,
        )
    }

    def why_ignored(self, spec, section, key):
        if (section, key) == ("drift", "hours") and spec.drift.per_hour == 0:
            return "counts with per_hour; give it, or leave hours out"
        return None

    def validate(self, spec, refuse):
        if spec.drift.per_hour > spec.label.max_abs:
            refuse("[drift] per_hour", "must be within [label] max_abs")

    def capacities(self, spec):
        return {"DIM": spec.dim, "OUTPUTS": spec.outputs}

    def size_bound(self, spec):
        return 1

    def parameters(self, spec):
        slower = spec.learning.brake if spec.learning.rule == "slow-level" else 1.0
        return {"part": spec.learning.part / slower, "max_abs": spec.label.max_abs}


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
    ({"learning": {"rule": "level", "brake": 3.0}}, "[learning] brake is of slow-level; level does not have it: leave it out"),
    ({"learning": {"rule": "level", "rho": 0.1}}, "[learning] rho is of klms and qklms; level does not have it: leave it out"),
    ({"kernel": {"sigma": 1.0}}, "[kernel] is of klms, "),
    ({"reduction": {"n_max": 3}}, "[reduction] n_max is of klms, "),
    ({"learning": {}, "drift": {"per_hour": 1.0}}, "[drift] per_hour is of level and slow-level; klms does not have it: leave it out"),
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
