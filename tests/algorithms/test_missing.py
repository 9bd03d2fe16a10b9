"""Missing inputs: what stands in, what they leave alone, and that completing on the host comes to the same."""

import io

import numpy as np
import pytest

from pykernel.errors import UserError
from pykernel.host.identity import specialised
from pykernel.host.model import HostModel
from pykernel.host.replay import read_log
from pykernel.host.samples import missing_rows, stand_ins
from pykernel.host.snapshot import is_valid
from pykernel.spec.model import make_spec
from pykernel.telling import incomplete_rows_sentence
from pykernel.workflows.simulate import simulate

DIM = 3
FROZEN = {
    "name": "m",
    "input": {"dim": 1},
    "kernel": {"sigma": 1.0},
    "learning": {"rule": "frozen"},
    "expansion": {"vectors": [[0.5]], "weights": [[1.0]], "bias": [0.0]},
}
KINDS = {
    "number": {"label": {"max_abs": 1e6}, "learning": {"rule": "klms"}},
    "numbers": {"label": {"max_abs": 1e6, "outputs": 2}, "learning": {"rule": "krls-t"}},
    "class": {"label": {"classes": ["a", "b", "c"]}, "learning": {"rule": "klms"}},
    "none": {"learning": {"rule": "okfeb"}},
}


def spec_of(kind="number", missing="hold", precision="float32", **more):
    content = {"name": "m", "precision": precision, "kernel": {"sigma": 1.5}, "reduction": {"n_max": 8}} | KINDS[kind]
    given = {"dim": DIM, "max_abs": 1e6, "missing": missing}
    return make_spec(content | {"input": given | more.pop("input", {})} | more)


def default(missing, **more):
    given = {"columns": [f"x{j}" for j in range(DIM)], "missing": missing} | more
    return make_spec({"name": "m", "input": given, "label": {"column": "y"}, "reduction": {"n_max": 8}})


@pytest.mark.parametrize(
    "content, ways",
    [
        ({"name": "m", "input": {"dim": 2}, "novelty": {}}, ["hold"]),
        ({"name": "m", "input": {"dim": 2}}, ["mean", "hold"]),
        (FROZEN, []),
    ],
)
def test_only_stand_ins_that_the_spec_takes_are_advised(content, ways):
    spec = make_spec(content)
    assert stand_ins(spec) == ways and missing_rows(spec, 3) == {"rows": 3, "then": "skipped", "by": ways}
    assert all(each in incomplete_rows_sentence(3, by=ways) for each in ways) and (
        "[input] missing" in incomplete_rows_sentence(3, by=ways)
    ) == bool(ways)


def stream(n=400, kind="number", seed=0, part=0.15):
    """Bounded inputs, of which some are missing, but not all of a row."""
    rng = np.random.default_rng(seed)
    x = (rng.uniform(-1, 1, (n, DIM)) * [1, 10, 0.1] + [0, 100, 3]).astype(np.float32).astype(float)
    y = np.sin(3 * x[:, 0]) + 0.1 * x[:, 1]
    gaps = rng.random(x.shape) < part
    gaps[gaps.all(axis=1)] = False
    labels = {
        "numbers": np.stack([y, -2 * y], axis=1),
        "class": (np.arange(n) % 3).astype(np.int32),
        "none": np.zeros((n, 0)),
    }
    return np.where(gaps, np.nan, x), x, labels.get(kind, y)


def state(model):
    """The bytes of what the model keeps."""
    return bytes(model.memory.bytes[: model.spec.program.state_bytes(model.memory.layout)])


def fields(model):
    """What the model keeps, by name."""
    kept = {struct.__name__ for struct in model.spec.program.persistent}
    return {slot.name: model.memory.field(slot.name) for slot in model.memory.layout.slots if slot.struct in kept}


@pytest.mark.parametrize("kind", KINDS)
def test_to_hold_is_to_fill_the_rows_on_the_host(kind):
    """A model without the key, on rows in which each gap is the value before, has the same answers and the same bytes."""
    gappy, _, y = stream(kind=kind)
    last, filled = np.zeros(DIM), []
    for row in gappy:
        last = np.where(np.isnan(row), last, row)
        filled.append(last)
    completing, plain = HostModel(spec_of(kind)), HostModel(spec_of(kind, "refuse"))
    for found, expected in zip(completing.prequential(gappy, y), plain.prequential(np.array(filled), y), strict=True):
        np.testing.assert_array_equal(found, expected)
    own = fields(completing)
    np.testing.assert_array_equal(own.pop("latest_input"), last.astype(np.float32))
    assert own.pop("values_seen").tolist() == (~np.isnan(gappy)).sum(axis=0).tolist()
    for name, values in fields(plain).items():
        if name in own:
            assert own[name].tobytes() == values.tobytes(), name


def test_an_input_has_the_statistics_of_its_own_values():
    """Gaps neither shrink the variance nor move the mean, also beyond the horizon and where an input begins late."""
    more = {"standardise": True, "horizon": 50}
    gappy, _, y = stream(300, part=0.3)
    gappy[:40, 2], gappy[:40, 0] = np.nan, 1.0
    model = HostModel(spec_of(missing="mean", input=more))
    assert (model.update(gappy, y) >= 0).all()
    for j, column in enumerate(gappy.T):
        there = ~np.isnan(column)
        alone = HostModel(spec_of(missing="refuse", input=more | {"dim": 1}))
        alone.update(column[there, None], y[there])
        for name in ("mean", "variance", "scale"):
            assert model.memory.field(name)[j] == alone.memory.field(name)[0], (name, j)


@pytest.mark.parametrize(("missing", "field"), [("mean", "mean"), ("hold", "latest_input")])
def test_a_question_is_answered_for_the_stand_ins_and_changes_nothing(missing, field):
    gappy, x, y = stream()
    model = HostModel(default(missing))
    model.update(gappy, y)
    before, standing = state(model), np.array(model.memory.field(field), float)
    gaps = np.vstack([np.isnan(gappy[-40:]), np.ones((1, DIM), bool)])
    rows = np.vstack([x[-40:], x[:1]])
    for question in ("predict", "novelty", "variance"):
        asked, statuses = model.ask(question, np.where(gaps, np.nan, rows))
        assert (statuses == 0).all()  # also where nothing is there
        np.testing.assert_array_equal(asked, model.ask(question, np.where(gaps, standing, rows))[0])
    assert state(model) == before
    nothing = model.spec.program.status(int(model.update(np.full((1, DIM), np.nan), y[:1])[0]))
    assert nothing.name == "REFUSED_INPUT" and state(model) == before
    assert model.update(np.array([[np.inf, np.nan, 3.0]]), y[:1])[0] == nothing


def test_what_stands_in_is_usual():
    """An outlying value is not held, and with outliers = "hold" there is one memory for both."""
    gappy, _, y = stream(500)
    gappy[-2] = [0.5, 1e5, 3.0]
    model = HostModel(default("hold", outliers="hold"))
    model.update(gappy[:-1], y[:-1])
    assert abs(model.memory.field("latest_input")[1]) < 200
    assert "held_input" in specialised(model.spec).unread


def test_a_dead_input_and_one_that_begins_late_cost_no_samples():
    gappy, _, y = stream(900, part=0.0)
    gappy[:, 0], gappy[:600, 1] = np.nan, np.nan
    model = HostModel(default("mean"))
    answers, statuses = model.prequential(gappy, y)
    assert (statuses >= 0).all()
    errors = np.ravel(answers) - y
    assert np.std(errors[700:]) < 0.95 * np.std(errors[100:600])  # what begins late is learned
    assert model.memory.field("mean")[0] == model.memory.field("scale")[0] == 0


FORGED = [
    ("values_seen", 2, "an input has more values than there were samples"),
    ("latest_input", 1.0, "an input has a latest value, but had none"),
    ("mean", 1.0, "an input has a mean, but had no value"),
    ("scale", 1.0, "the same of its scale"),
    ("latest_input", np.nan, "no number"),
]


@pytest.mark.parametrize(("field", "value", "why"), FORGED, ids=lambda value: str(value)[:30])
def test_forged_states_are_refused(field, value, why):
    model = HostModel(spec_of(missing="hold", input={"standardise": True}))
    assert is_valid(model.spec, model.memory)
    model.update(np.array([[1.0, np.nan, np.nan]]), [1.0])
    assert is_valid(model.spec, model.memory)
    model.memory.field(field)[1] = value
    assert not is_valid(model.spec, model.memory), why


FROZEN = {
    "learning": {"rule": "frozen"},
    "expansion": {"vectors": [[1.0, 2.0, 0.0], [2.0, 3.0, 1.0]], "weights": [[1.0], [-1.0]], "bias": [0.5]},
}


def test_a_frozen_model_takes_its_center():
    content = {"name": "m", "kernel": {"sigma": 1.0}} | FROZEN
    centered = {"dim": DIM, "center": [1.0, -2.0, 3.0], "max_abs": 10.0}
    model = HostModel(make_spec(content | {"input": centered | {"missing": "mean"}}))
    x, center = np.array([[1.5, np.nan, 2.5], [np.nan] * 3]), np.array(centered["center"])
    plain = HostModel(make_spec(content | {"input": centered}))
    np.testing.assert_array_equal(model.predict(x), plain.predict(np.where(np.isnan(x), center, x)))
    assert model.spec.config is not None and model.spec.completes


SENTENCES = [
    ({"input": {"dim": 3, "missing": "mean"}, "learning": {"rule": "klms"}}, r'"mean", but the mean is not known; add standardise = true or'),
    ({"input": {"dim": 3, "missing": "mean"}} | FROZEN, r'"mean", but the mean is not known; add center'),
    ({"input": {"dim": 3, "missing": "hold"}} | FROZEN, r"\[input\] missing is 'hold'; it must be 'refuse' or 'mean'"),
    ({"input": {"dim": 3, "missing": "drop"}, "learning": {"rule": "klms"}}, r"missing is 'drop'; it must be"),
    ({"input": {"missing": "hold"}, "signal": {"channels": ["a"], "lags": [0, 1]}, "label": {"column": "a"}, "learning": {"rule": "klms"}}, r"\[signal\] accepts only complete raw rows; report a missing row with NAME_gap"),
    ({"input": {"dim": 3, "missing": "hold", "max_abs": 1.0}, "label": {"max_abs": 1.0}, "learning": {"rule": "klms"}, "precision": "int16"}, r"\[input\] missing"),
    ({"input": {"dim": 3, "missing": "hold"}, "learning": {"rule": "krr"}}, r"\[input\] missing belongs to"),
]  # fmt: skip


@pytest.mark.parametrize(("content", "says"), SENTENCES, ids=lambda value: str(value)[-40:])
def test_what_cannot_be_is_refused_in_a_sentence(content, says):
    with pytest.raises(UserError, match=says):
        make_spec({"name": "m", "kernel": {"sigma": 1.0}} | content)


def test_simulate_counts_what_stands_in_and_scores_these_rows():
    gappy, _, y = stream(300)
    found = {each: simulate(default(each), (gappy, y)).report for each in ("mean", "refuse")}
    cells = int(np.isnan(gappy).sum())
    told = found["mean"]["missing"]
    assert (told["by"], told["inputs"], told["of"]) == ("mean", cells, 300 * DIM)
    assert sum(told["columns"].values()) == cells and found["mean"]["inputs_refused"] == 0
    assert found["mean"]["all"]["scored"] >= 298 and found["refuse"]["all"]["scored"] < 250


def test_a_log_keeps_its_gaps():
    """In a row that was recorded, an empty cell was missing, as nan is; an empty row was not recorded."""
    log = io.BytesIO(b"x0,x1,x2,y,state_hash,call\n1,,nan,2,00000000,\n,,,,,reset\n")
    (rows,) = read_log(log, "log", default("mean"))
    np.testing.assert_array_equal(rows.x, [[1, np.nan, np.nan], [0, 0, 0]])
    assert rows.has["sample"].tolist() == [True, False]
    log.seek(0)
    with pytest.raises(UserError, match="has some inputs and not others"):
        list(read_log(log, "log", default("refuse")))
