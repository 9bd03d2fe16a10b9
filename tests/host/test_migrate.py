"""A state under another spec: other numbers, more room, less room, and what cannot be."""

import numpy as np
import pytest

from benchmarks.bits import samples_of
from pykernel.algorithms.online.state import Projection
from pykernel.errors import UserError
from pykernel.host import snapshot
from pykernel.host.identity import identity
from pykernel.host.migrate import migrate
from pykernel.host.model import HostModel
from pykernel.spec.model import make_spec, rules
from pykernel.spec.sections import fields_of
from tests.support.every_model import MODELS, accepted, content_of, family_of
from tests.support.following import triangle_of

REMOVING = [
    {"learning": {"rule": "klms"}, "reduction": {"technique": technique}}
    for technique in ("nt", "at", "klms", "mklms", "sup", "ls", "lsreg", "fklms", "fmklms", "afklms")
]
REMOVING += [{"learning": {"rule": "klms"}, "reduction": {"technique": "mklms", "when": "before"}}]
REMOVING += [{"learning": {"rule": "klms"}, "reduction": {"technique": "mklms", "candidates": "newest"}}]
REMOVING += [{"learning": {"rule": rule}} for rule in ("qklms", "krls-t", "fb-krls", "sw-krls")]
REMOVING += [
    {
        "learning": {"rule": "krls-t"},
        "kernel": {"function": "polynomial", "gamma": 0.5},
        "input": {"dim": 2, "max_abs": 2.0},
    }
]


def spec_of(n_max, **sections):
    content = {"name": "m", "precision": "float64", "input": {"dim": 2}, "kernel": {"sigma": 1.0}, **sections}
    return make_spec(content | {"reduction": content.get("reduction", {}) | {"n_max": n_max}})


def learned(spec, samples=40):
    model = HostModel(spec, engine="python")
    x, y = samples_of(spec, samples)
    model.prequential(x, y)
    return model, x[: samples // 3]


def moved(old, model, new):
    made = migrate(old, snapshot.save(model), new, engine="python")
    other = HostModel(new, engine="python")
    snapshot.load(other, made.data)
    return made, other


@pytest.mark.in_turn(40)
@pytest.mark.parametrize(
    "sections", REMOVING, ids=lambda s: " ".join(map(str, {**s["learning"], **s.get("reduction", {})}.values()))
)
def test_a_budget_grows_and_shrinks(sections):
    """In more room the same bits, and the way back is the identity; in less, what the technique's own definition leaves."""
    old, larger, smaller = (spec_of(n, **sections) for n in (6, 9, 4))
    model, x = learned(old)
    assert int(model.memory.field("n")[0]) == 6
    made, grown = moved(old, model, larger)
    assert (made.removed, made.vectors) == (0, 6)
    assert (grown.predict(x) == model.predict(x)).all()
    back, same = moved(larger, grown, old)
    assert back.removed == 0 and snapshot.save(same) == snapshot.save(model)
    less, shrunk = moved(old, model, smaller)
    assert (less.removed, less.vectors) == (2, 4)
    kept, before = shrunk.memory.field("v")[:4], model.memory.field("v")[:6]
    rows = [next(i for i in range(6) if (before[i] == v).all()) for v in kept]
    assert len(set(rows)) == 4
    if old.config.projection == Projection.KLMS:
        # equation 12 for both at once: alpha - P_:r P_rr^-1 alpha_r
        factor, alpha = triangle_of(model, "t"), model.memory.field("alpha")
        inverse, gone = factor.T @ factor, [i for i in range(6) if i not in rows]
        part = np.linalg.solve(inverse[np.ix_(gone, gone)], alpha[gone])
        assert np.allclose(shrunk.memory.field("alpha"), alpha[rows] - inverse[np.ix_(rows, gone)] @ part, atol=1e-9)
    if old.config.projection == Projection.NONE:
        assert (shrunk.memory.field("alpha") == model.memory.field("alpha")[rows]).all()
    if old.config.keeps_factor or old.config.keeps_complex or old.config.keeps_overlap:
        # the matrices are those of the vectors that stay
        fresh = HostModel(smaller, engine="python")
        fresh.memory.copy_from(shrunk.memory)
        fresh.refresh()
        for name in ("inverse", "squared", "z_re", "z_im", "overlap"):
            was, now = shrunk.memory.field(name), fresh.memory.field(name)
            assert np.allclose(was, now, rtol=1e-6, atol=1e-6 * (1 + np.abs(now).max())), name
        gram = [t.T @ t for t in (triangle_of(shrunk, "t"), triangle_of(fresh, "t"))]
        assert np.allclose(*gram, rtol=1e-6, atol=1e-6 * (1 + np.abs(gram[1]).max()))
    x, y = samples_of(smaller, 20)
    assert (shrunk.prequential(x, y)[1] >= -2).all()


REFUSED = [
    (
        {"kernel": {"sigma": 2.0}},
        r"\[kernel\] sigma is 2.0, and was 1.0: the values of the state would have another meaning",
    ),
    ({"learning": {"rule": "qklms"}}, r"\[learning\] rule is .qklms., and was .klms."),
    ({"input": {"dim": 3}}, r"\[input\] dim is 3, and was 2"),
    ({"input": {"dim": 2, "standardise": True}}, r"\[input\] standardise is True, and was False"),
    ({"label": {"outputs": 2}}, r"\[label\] outputs is 2, and was None"),
    ({"precision": "float32"}, "precision is .float32., and was .float64."),
    ({"reduction": {"technique": "nt"}}, r"\[reduction\] technique is .nt., and was .mklms."),
]


@pytest.mark.parametrize(("changes", "sentence"), REFUSED, ids=[str(changes) for changes, _ in REFUSED])
def test_what_cannot_be_converted_says_which_key(changes, sentence):
    old = spec_of(6, learning={"rule": "klms"}, reduction={"technique": "mklms"})
    model, _ = learned(old)
    given = {"learning": {"rule": "klms"}, "reduction": {"technique": "mklms"}} | changes
    with pytest.raises(UserError, match=sentence) as refused:
        migrate(old, snapshot.save(model), spec_of(6, **given), engine="python")
    assert "\n" not in str(refused.value) and "start the snapshot and vectors" in str(refused.value)


def test_of_several_changes_only_those_are_blamed_that_are_to_blame():
    """Also in int16, where keys have other defaults."""
    content = content_of("qklms", "int16", "plain")
    old = make_spec(content)
    model, _ = learned(old, 24)
    new = make_spec(content | {"kernel": {"sigma": 2.0}, "learning": {"rule": "qklms", "eta": 0.25}})
    with pytest.raises(UserError, match=r"^m: \[kernel\] sigma is 2.0, and was 1.0: the values") as refused:
        migrate(old, snapshot.save(model), new, engine="python")
    assert "eta" not in str(refused.value)


def test_a_limit_that_the_state_is_beyond_is_named():
    old = spec_of(6, learning={"rule": "klms"}, input={"dim": 2, "max_abs": 4.0})
    model, _ = learned(old)
    new = spec_of(6, learning={"rule": "klms"}, input={"dim": 2, "max_abs": 0.5})
    with pytest.raises(UserError, match=r"beyond a limit of m; give m the limits of m: \[input\] max_abs"):
        migrate(old, snapshot.save(model), new, engine="python")


@pytest.mark.in_turn(27)
@pytest.mark.parametrize("stage", ["plain", "staged", "windows"])
@pytest.mark.parametrize("precision", ["float32", "int16"])
def test_every_rule_moves_to_itself(precision, stage):
    """Each model that learns takes its own state, with the same bytes; and under another budget where it has one."""
    seen = 0
    for rule, of, within in MODELS:
        content = content_of(rule, of, within) if (of, within) == (precision, stage) else None
        if content is None or not (spec := make_spec(content)).program.persistent:
            continue
        if stage == "windows" and rule not in ("klms", "nlms"):
            continue
        model, _ = learned(spec, 24 if stage != "windows" else 120)
        data = snapshot.save(model, sequence=3)
        assert migrate(spec, data, spec, engine="python").data == data
        seen += 1
        if spec.program.budget is None or family_of(rule, precision) is None:
            continue
        larger = make_spec(content | {"reduction": content["reduction"] | {"n_max": 7}})
        if identity(larger).meaning.keys() == identity(spec).meaning.keys():
            try:
                made, other = moved(spec, model, larger)
            except UserError as error:
                assert "n_max is 7, and was 5" in str(error) and precision == "int16"
                continue
            assert (other.memory.field("v")[:5] == model.memory.field("v")).all() and made.removed == 0
    assert seen


def test_the_command(tmp_path, monkeypatch, run):
    monkeypatch.chdir(tmp_path)
    old, smaller = (spec_of(n, learning={"rule": "klms"}) for n in (6, 4))
    model, _ = learned(old)
    for name, spec in (
        ("old", old),
        ("new", smaller),
        ("other", spec_of(6, learning={"rule": "klms"}, kernel={"sigma": 2.0})),
    ):
        (tmp_path / f"{name}.toml").write_text(spec.to_toml())
    (tmp_path / "state.bin").write_bytes(snapshot.save(model))
    code, out, err = run("state", "migrate", "old.toml", "state.bin", "new.toml", "-o", "new.bin")
    assert code == 0 and "[reduction] n_max" in out and "vectors: 4, after 2 were removed" in out, err
    assert (tmp_path / "new.bin").read_bytes() == migrate(old, snapshot.save(model), smaller).data
    code, _, err = run("state", "migrate", "old.toml", "state.bin", "new.toml", "-o", "new.bin")
    assert code == 2 and "new.bin" in err
    code, out, _ = run("state", "migrate", "old.toml", "state.bin", "new.toml", "-o", "new.bin", "--force", "--json")
    assert code == 0 and '"removed": 2' in out
    code, _, err = run("state", "migrate", "old.toml", "state.bin", "other.toml", "-o", "none.bin")
    assert code == 2 and "[kernel] sigma is 2.0, and was 1.0" in err and not (tmp_path / "none.bin").exists()


def other_numbers(spec):
    """Specs that differ in one number each: (key, spec)."""
    content = spec.model_dump(mode="json", exclude_unset=True)
    for section, key, _ in fields_of(type(spec), spec.learning.rule):
        value = getattr(getattr(spec, section), key, None) if key is not None and section in content else None
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not spec.has(section, key):
            continue
        for other in (value * 0.75, value * 1.5) if isinstance(value, float) else (value + 1, value + 7):
            changed = accepted(content | {section: content[section] | {key: other}})
            if changed is not None:
                yield f"{section}.{key}", changed


@pytest.mark.in_turn(324)
@pytest.mark.parametrize("precision", ["float32", "float64", "int16"])
@pytest.mark.parametrize("stage", ["plain", "staged"])
@pytest.mark.parametrize("rule", list(rules()))
def test_a_state_of_the_same_kind_is_learned_on(rule, stage, precision):
    """Whatever number differs between two models of one kind: the state is refused, or it is one of the other model's:
    what that learns from it is valid again, and its questions answer."""
    content = content_of(rule, precision, stage) if family_of(rule, precision) is not None else None
    if content is None or not (spec := make_spec(content)).program.persistent:
        return
    model, x = learned(spec, 24)
    data, kind = snapshot.save(model), identity(spec).state_kind
    for key, other in other_numbers(spec):
        if identity(other).state_kind != kind:
            continue
        goes_on = HostModel(other, engine="python")
        try:
            snapshot.load(goes_on, data)
        except UserError as error:
            assert "learning cannot produce" in str(error)
            continue
        before = goes_on.ask(spec.program.asks, x)[0] if spec.program.asks in spec.program.questions else np.zeros(1)
        assert not np.isinf(np.asarray(before, float)).any(), key
        goes_on.prequential(*samples_of(other, 24))
        assert snapshot.is_valid(other, goes_on.memory, "python"), key
