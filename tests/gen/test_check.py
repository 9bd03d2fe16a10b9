"""Bit equality: the host's state and the C's are the same bytes, after long streams, on every compiler at hand."""

import re
import threading
import time

import numpy as np
import pytest

from pykernel.algorithms.frame import Status
from pykernel.algorithms.novelty.state import GmmStatus
from pykernel.algorithms.online.techniques import TECHNIQUES as REGISTERED
from pykernel.errors import UserError
from pykernel.gen.binding import CModel
from pykernel.gen.check import Host, Reference, check, differing_fields
from pykernel.gen.compilers import LEVELS, compile_c, compiler, find_compilers, takes
from pykernel.gen.project import build
from pykernel.gen.streams import mixed_stream, stream_of
from pykernel.host.model import HostModel
from pykernel.progress import told_late
from pykernel.spec.model import make_spec
from tests.support.compilers import EACH as EACH_COMPILER
from tests.support.compilers import QUICK, in_one_build
from tests.support.specs import named
from tests.support.toys import LABELS, toy_spec

PRESETS = tuple(REGISTERED)
TECHNIQUES = ("nt", "fklms", "mklms")  # where one with each kind of memory is enough
PRECISIONS = ("float32", "float64")
# rules and strategies: keys of [learning], keys of [reduction], what must become of samples besides being added
CHOICES = {
    "qklms": ({"rule": "qklms", "quantisation": 0.5}, {"technique": "mklms"}, "replaced absorbed"),
    "krls-t": ({"rule": "krls-t", "forgetting": 0.998}, {"technique": "mklms"}, "replaced absorbed merged"),
    "krls-t, sup": ({"rule": "krls-t"}, {"technique": "sup"}, "replaced discarded"),
    "fb-krls": ({"rule": "fb-krls"}, {"technique": "at", "projection": "klms"}, "replaced"),
    "sw-krls": ({"rule": "sw-krls"}, {"ridge": 0.01}, "replaced"),
    "ald-krls": ({"rule": "ald-krls"}, {"ald_threshold": 0.05}, "absorbed"),
    "knlms": ({"rule": "knlms", "coherence": 0.9}, {}, "absorbed merged discarded"),
    "before": ({}, {"technique": "mklms", "when": "before"}, "added"),
    "newest only": ({}, {"technique": "mklms", "candidates": "newest"}, "discarded"),
    "threshold": ({"rho": 0.01}, {"technique": "mklms", "lambda_max": 1e-4, "removals": 3}, "replaced discarded"),
    "truncation": ({"rho": 0.02}, {"technique": "fklms", "truncate_below": 0.01, "truncate_age": 300}, "replaced"),
    "oldest": ({}, {"technique": "klms", "tie": "oldest"}, "replaced"),
    "newest": ({}, {"technique": "afklms", "tie": "newest"}, "replaced"),
    "another projection": ({}, {"technique": "nt", "projection": "lsridge"}, "replaced"),
    "fklms, as printed": ({}, {"technique": "fklms", "projection": "fklms", "force": True}, "replaced"),
}


def spec_of(technique="mklms", precision="float32", dim=3, n_max=16, **sections):
    return make_spec(
        named(
            {
                "name": "flow",
                "precision": precision,
                "input": {"dim": dim},
                "kernel": {"sigma": 1.0},
                "reduction": {"technique": technique, "n_max": n_max},
            }
            | sections
        )
    )


def assert_equal(report):
    assert report.ok, [(row["compiler"], row["flags"], row["first_difference"]) for row in report.rows]


@pytest.mark.in_turn(108)
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("technique", PRESETS)
def test_state_is_equal_after_100000_updates(technique, precision, exhaustive):
    """All paths are taken: what is stored, replaced, absorbed, merged, discarded and refused."""
    reduction = {"technique": technique, "n_max": 16, "force": True}
    spec = spec_of(precision=precision, learning={"eta": 0.4, "rho": 0.002}, reduction=reduction)
    levels = LEVELS if exhaustive or technique == "mklms" else ("-O2",)
    report = check(spec, samples=100_000, levels=levels, compilers=[find_compilers()[0].name])
    assert_equal(report)
    assert {row["flags"] for row in report.rows} == {level for level in levels if takes(find_compilers()[0], level)}
    # lsridge has neither a Schur complement nor a near neighbour to absorb by
    absorbed = set() if technique == "lsridge" else {"absorbed"}
    assert {"added", "replaced", "merged", "refused_input", "refused_label"} | absorbed <= set(report.statuses)
    assert report.statuses["replaced"] > 200


@pytest.mark.in_turn(72)
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("choice", CHOICES)
def test_every_rule_and_strategy_is_equal(choice, precision):
    learning, reduction, wanted = CHOICES[choice]
    spec = spec_of(precision=precision, learning=learning, reduction={"n_max": 16} | reduction)
    report = in_one_build(spec, samples=30_000)
    assert_equal(report)
    assert {"added", "refused_input", "refused_label", *wanted.split()} <= set(report.statuses)


@pytest.mark.in_turn(18)
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("kind", LABELS)
def test_every_kind_of_label(kind, precision):
    """Numbers, several numbers, two classes and three, by programs that gen has never seen; questions are asked too."""
    spec = toy_spec(kind, precision)
    report = in_one_build(spec, samples=4_000)
    assert_equal(report)
    assert {"refused_input", "refused_label", "learned"} <= set(report.statuses)
    reference = Reference(build(spec), None, *mixed_stream(spec, 400))
    assert reference.questions == (["novelty"] if spec.label.classes is None else ["novelty", "classify"])
    # on rows that are refused, too
    statuses = np.concatenate([each.statuses for each in reference.results[0] if each.name == "novelty"])
    assert len(statuses) == reference.PARTS * reference.ASKED and (statuses == 0).sum() > 40


def test_labels_of_a_stream_are_of_their_kind():
    x, y = mixed_stream(toy_spec("reals"), 5000)
    assert x.shape == (5000, 3) and y.shape == (5000, 3) and y.dtype == np.float32
    missing = np.isnan(y)
    assert missing.any() and not (missing.all(axis=1) & missing.any(axis=1)).any()
    smooth = y[:2000][np.isfinite(y[:2000]).all(axis=1) & (np.abs(y[:2000]) < 10).all(axis=1)]
    correlation = np.corrcoef(smooth.T)[np.triu_indices(3, 1)]
    assert (np.abs(correlation) > 0.02).all() and (np.abs(correlation) < 0.999).all()
    _, y = mixed_stream(toy_spec("class"), 5000)
    assert y.shape == (5000,) and y.dtype == np.int32
    assert set(y) == {0, 1, 2, -1, 3, -(2**31), 2**31 - 1} and ((y >= 0) & (y < 3)).mean() > 0.98


@pytest.mark.in_turn
@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        (
            ", 1.0f + s->power)",
            ", 1.0f + s->power + 1e-6f)",
            r"novelty of row \d+ after update \d+: \[.*\] on the host",
        ),
        ("s->value[o] > s->value[best]", "s->value[o] >= s->value[best]", "classify of row 0 after update"),
        ("*label = best;", "*label = best; s->power = 0.0f;", r"classify of row \d+ after update \d+: power is"),
    ],
)
def test_a_changed_question_is_caught(old, new, says):
    """One that writes something else, and one that does not leave the model alone."""
    spec = toy_spec("class")
    x, y = mixed_stream(spec, 200)
    x[:] = x[:1]  # far from the origin or, at first, nowhere: all classes are equally likely
    y[:] = -1
    if "novelty" in says or "power is" in says:
        x, y = mixed_stream(spec, 200)
    reference = Reference(build(spec), None, x, y)
    assert old in reference.project.files["src/toy.c"]
    row = reference.compare(find_compilers()[0], "-O1", patch=lambda text: text.replace(old, new))
    assert not row["equal"] and re.search(says, row["first_difference"])


@pytest.mark.exhaustive
@pytest.mark.in_turn
@pytest.mark.parametrize("c", EACH_COMPILER[1:], ids=str)
@pytest.mark.parametrize(("technique", "precision"), [("fklms", "float64"), ("mklms", "float32")])
def test_every_compiler_agrees(technique, precision, c):
    assert_equal(check(spec_of(technique, precision), samples=5_000, compilers=[c.name]))


def test_the_check_of_a_monitor_sees_alarms_and_more_regimes_than_there_is_room_for():
    spec = make_spec({"name": "m", "input": {"dim": 3}, "learning": {"rule": "gmm"}})
    model, (x, y) = HostModel(spec), stream_of(spec, 1000, 0, None)
    _, statuses = model.prequential(x, y)
    assert (statuses == GmmStatus.BORN).sum() > spec.learning.components
    assert {GmmStatus.STRANGE, GmmStatus.NOVEL, GmmStatus.HELD, Status.REFUSED_INPUT} <= set(statuses)


def test_a_fitted_model_and_a_stream_of_ones_own_are_checked():
    spec = spec_of("mklms")
    model = HostModel(spec)
    x, y = mixed_stream(spec, 1000, seed=3)
    model.prequential(x[:600], y[:600])
    before = bytes(model.memory.bytes)
    report = check(spec, model.memory, stream=(x[600:], y[600:]), levels=("-O1",), compilers=[find_compilers()[0].name])
    assert_equal(report)
    assert report.figures["learned"] and report.rows[0]["samples"] == 400
    assert bytes(model.memory.bytes) == before


def test_a_changed_rule_is_caught_and_the_place_is_named():
    """One digit of a coefficient, one comparison: the stream finds it, and the report says where it began."""
    project = build(spec_of("mklms"))
    reference = Reference(project, None, *mixed_stream(project.spec, 4000))
    c = find_compilers()[0]
    for old, new in (
        ("0.16666578f", "0.16666582f"),
        ("kappa -= s->l[j] * s->l[j]", "kappa -= 2.0f * s->l[j] * s->l[j]"),
    ):
        assert old in project.files["src/flow.c"]
        row = reference.compare(c, "-O1", patch=lambda text, old=old, new=new: text.replace(old, new))
        assert not row["equal"], old
        assert re.search(r"(update|prediction) \d+.*on the host, .* in C", row["first_difference"])
    assert row["selftest"] == "broken build"


def test_a_late_difference_is_found_in_its_piece(monkeypatch):
    """The stream is learned in pieces; of the first that differs each row is looked at, of those before none."""
    monkeypatch.setattr(Reference, "PIECE", 0)
    project = build(toy_spec("real"))
    reference = Reference(project, None, *mixed_stream(project.spec, 2000))
    assert len(reference.results[0]) > 100
    device, singles = CModel(project, find_compilers()[0], ("-O1",)), []
    assert reference.verdict(device)["equal"]
    right = device.prequential

    def wrong(x, y):
        singles.append(len(x))
        answers, statuses = right(x, y)
        at = np.flatnonzero((x == reference.x[1234]).all(1) & (y == reference.y[1234]))
        if at.size:
            device.memory.bytes[0] ^= 1
        return answers, statuses

    monkeypatch.setattr(device, "prequential", wrong)
    verdict = reference.verdict(device)
    assert not verdict["equal"] and verdict["first_difference"].startswith("update 1234: ")
    assert 0 < singles.count(1) <= max(singles)


def test_a_witness_that_differs_fails_the_check_and_says_where(monkeypatch):
    """Numba's place is taken by plain Python here, which is made to learn one sample wrongly."""
    spec = toy_spec("real")
    monkeypatch.setattr("pykernel.gen.check.engines_of_a_check", lambda: ("llvm", "python"))
    how = {"samples": 60, "levels": ("-O1",), "compilers": [find_compilers()[0].name]}
    said = []
    report = check(spec, **how, tell=said.append)
    assert report.ok and report.witnesses == [{"engine": "python", "equal": True, "first_difference": None}]
    begins = [
        f"{report.rows[0]['compiler']} -O1, 60 samples: the same bytes as llvm",
        "python compiles",
        "python, the reference",
    ]
    assert all(map(str.startswith, said, begins)) and len(said) == len(begins)
    right = Host.prequential

    def wrong(model, x, y):
        found = right(model, x, y)
        if model.engine == "python" and np.array_equal(x[-1], stream[0][44]):
            model.memory.bytes[0] ^= 1
        return found

    stream = mixed_stream(spec, 60)
    monkeypatch.setattr(Host, "prequential", wrong)
    report = check(spec, **how)
    assert not report.ok and report.rows[0]["equal"]
    (witness,) = report.witnesses
    assert re.fullmatch(r"update 44: \w+(\[\d+\])* is .* in llvm, .* in python", witness["first_difference"])


def test_nothing_is_compiled_twice(monkeypatch):
    compiled = []

    def kept(c, sources, output, flags=(), mode=("-shared", "-fPIC")):
        compiled.append((c.name, output.name, *(flag for flag in flags if flag.startswith(("-O", "-m")))))
        compile_c(c, sources, output, flags, mode)

    for module in ("binding", "check"):
        monkeypatch.setattr(f"pykernel.gen.{module}.compile_c", kept)
    report = check(toy_spec("real"), samples=40, compilers=[QUICK[0].name])
    assert_equal(report)
    assert len(set(compiled)) == len(compiled) >= len(report.rows) + 1
    assert all(row["text_bytes"] == report.rows[0]["text_bytes"] > 0 for row in report.rows)


def test_forecasts_of_the_newest_sample_are_compared(monkeypatch):
    """Where a reading takes the place of the main question, each of the stream's answers counts, not the last alone."""
    signal = {"channels": ["a"], "max_abs": 30.0, "lags": [0], "differences": [1]}
    labels = {"column": "y", "max_abs": 10.0}
    spec = make_spec({"name": "flow", "learning": {"rule": "nlms"}, "signal": signal, "label": labels})
    reference = Reference(build(spec), None, *mixed_stream(spec, 300))
    assert reference.spec.program.reads
    device = CModel(reference.project, find_compilers()[0], ("-O1",))
    right = device.prequential
    assert reference.verdict(device)["equal"]

    def wrong(x, y):
        answers, statuses = right(x, y)
        return answers + np.float32(1), statuses

    monkeypatch.setattr(device, "prequential", wrong)
    verdict = reference.verdict(device)
    asks = reference.spec.program.asks
    assert not verdict["equal"] and re.fullmatch(rf"{asks} \d+: .* on the host, .* in C", verdict["first_difference"])


def test_every_flipped_bit_is_seen_and_named():
    project = build(spec_of("mklms"))
    reference = Reference(project, None, *mixed_stream(project.spec, 300))
    c = find_compilers()[0]
    host, device = reference.fresh_host(), CModel(project, c, ("-O1",))
    for model in (host, device):
        model.prequential(reference.x[:300], reference.y[:300])
    assert not list(differing_fields(host, device))
    rng = np.random.default_rng(0)
    for at in rng.integers(0, len(device.memory.bytes), 20):
        device.memory.bytes[at] ^= 1 << int(rng.integers(0, 8))
        assert len(list(differing_fields(host, device))) == 1
        device.memory.bytes[at] = host.memory.bytes[at]
    assert not list(differing_fields(host, device))


def test_the_compiler_is_cc_then_gcc_or_clang_then_zig(monkeypatch):
    find_compilers.cache_clear()
    first = find_compilers()[0]
    monkeypatch.setenv("CC", " ".join([*first.command, "-DTWO=2"]))
    find_compilers.cache_clear()
    assert find_compilers()[0].command[-1] == "-DTWO=2" and len(find_compilers()) == 1
    monkeypatch.setenv("CC", "no-such-compiler")
    find_compilers.cache_clear()
    with pytest.raises(UserError, match=r"\$CC is 'no-such-compiler', which does not run"):
        find_compilers()
    monkeypatch.delenv("CC")
    monkeypatch.setenv("PATH", "/nonexistent")
    find_compilers.cache_clear()
    try:
        assert [c.name for c in find_compilers()] == ["zig"]
        monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
        find_compilers.cache_clear()
        with pytest.raises(UserError, match=r"install gcc or clang, or install zig with: .*pip install"):
            find_compilers()
    finally:
        monkeypatch.undo()
        find_compilers.cache_clear()
    with pytest.raises(UserError, match="compiler 'cc65' was not found"):
        compiler("cc65")


@pytest.mark.exhaustive
def test_zig_alone_serves(tmp_path):
    """The wheel compiles, links and loads where no other compiler is."""
    pytest.importorskip("ziglang")
    zig = compiler("zig")
    (tmp_path / "a.c").write_text("int twice(int a);\nint twice(int a) { return 2 * a; }\n")
    compile_c(zig, [tmp_path / "a.c"], tmp_path / "a.so")
    assert (tmp_path / "a.so").stat().st_size > 0


def test_bad_numbers_are_refused():
    with pytest.raises(UserError, match="samples is 0"):
        check(spec_of(), samples=0)


def test_nothing_is_silent_for_long(capfd, monkeypatch):
    """Whatever is new by the end of the pause is told then, though each step is short; later pauses grow with the time."""
    timers, now = [], [0.0]

    class Timer:  # a clock that stands still until the test lets it go on
        def __init__(self, pause, call):
            self.end, self.call, self.on = now[0] + pause, call, False
            timers.append(self)

        def start(self):
            self.on = True

        def cancel(self):
            self.on = False

    def go_on(seconds):
        now[0] += seconds
        for timer in timers:
            if timer.on and timer.end <= now[0]:
                timer.on = timer.call() is not None

    monkeypatch.setattr(threading, "Timer", Timer)
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    with told_late(pause=2.0) as say:
        for i in range(3):
            say(0.0, f"step {i}")
            go_on(0.6)
        assert capfd.readouterr().err == ""
        say(0.25, "step 3")
        go_on(0.6)
        assert capfd.readouterr().err == "pykernel: step 3 (25%)\n"
        say(0.25, "step 3")  # nothing new
        go_on(90.0)
        assert capfd.readouterr().err == ""
        for tick in range(100):
            say(0.5 + tick / 1000, "on it")
            go_on(1.0)
        assert 5 <= len(capfd.readouterr().err.splitlines()) <= 8
        say(1.0, "done")
    go_on(100.0)
    assert capfd.readouterr().err == "" and all(timer.daemon for timer in timers)
