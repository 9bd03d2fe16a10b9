"""``pykernel prove``: what is analysed is the C that is generated, a model is proved, and seeded faults are found."""

import itertools
import json
import re
import subprocess
from dataclasses import dataclass, replace

import pytest

import pykernel
from benchmarks.device.proof import PROGRAMS, SMALL
from pykernel.cli.app import main
from pykernel.errors import UserError
from pykernel.gen import frama_c
from pykernel.gen.model import bare
from pykernel.gen.project import build
from pykernel.gen.proof import FINITE, SNAPSHOT, STATE, WILD, Call, proof_of
from pykernel.spec.model import int16_rules, make_spec, rules
from pykernel.workflows.prove import _row
from tests.support.tools import needs

FRAMA_C = needs("frama-c", "why3", "z3")
RLS = {"name": "m", "input": {"dim": 2}, "learning": {"rule": "rls"}}
KLMS = {
    "name": "m",
    "input": {"dim": 2},
    "kernel": {"sigma": 1.0},
    "learning": {"rule": "klms"},
    "reduction": {"n_max": 3, "technique": "mklms"},
}
WHOLE = KLMS | {
    "precision": "int16",
    "input": {"dim": 2, "max_abs": 4.0},
    "label": {"max_abs": 4.0},
    "reduction": {"n_max": 3},
}
SIGNAL = {
    "name": "m",
    "signal": {"channels": ["a"], "max_abs": 10.0, "features": ["rms"], "window": 8, "hop": 4},
    "label": {"max_abs": 5.0},
}
NLMS = RLS | {"learning": {"rule": "nlms"}}
MODELS = {"rls": RLS, "klms": KLMS, "whole": WHOLE, "nlms": NLMS}


@pytest.mark.in_turn(9)
@pytest.mark.parametrize("content", [KLMS, WHOLE, SIGNAL, {"name": "m", "input": {"dim": 3}}])
def test_the_annotated_c_is_the_generated_c(content):
    """Without comments the texts are equal, so the stamp and all bits are, too."""
    spec = make_spec(content)
    plain, annotated = build(spec).sources, build(spec, annotated=True).sources
    assert {name: bare(text) for name, text in plain.items()} == {name: bare(text) for name, text in annotated.items()}
    assert "/*@" not in "".join(plain.values())
    assert "/*@ assert inside" in annotated["m.c"]


SPLIT = re.compile(r"/\*@ (?:split|merge) [^*]*\*/\n\s*(?:const )?\w+ \w+ = ([^;]*);")


def several(value):
    """Whether Frama-C makes several statements of a declaration: of a choice, or of a call that is not all of its value."""
    whole = re.fullmatch(r"m_\w+\(.*\)", value, re.DOTALL)
    depth = list(itertools.accumulate({"(": 1, ")": -1}.get(letter, 0) for letter in value))
    alone = whole and 0 not in depth[value.index("(") : -1]
    return "?" in value or bool(re.search(r"m_\w+\(", value[1:] if alone else value))


@pytest.mark.in_turn(18)
@pytest.mark.parametrize("program", PROGRAMS)
def test_frama_c_takes_every_annotation(program):
    """It refuses calls of the C, as readers of snapshots would be, which get each number by one; and a split of several statements."""
    for text in build(make_spec({"name": "m"} | PROGRAMS[program]), annotated=True).sources.values():
        for annotation in re.findall(r"/\*@(.*?)\*/", text, re.DOTALL):
            assert not re.search(r"(?<!\\)\bm_\w+\(", annotation), annotation
        assert not [value for value in SPLIT.findall(text) if several(value)]


def test_a_driver_calls_every_entry_and_states_every_range():
    spec = make_spec(WHOLE)
    proof = proof_of(spec, (STATE, SNAPSHOT, WILD))
    entries = [entry.name for entry in spec.program.entries_for(spec.config)]
    for level in (STATE, WILD):
        assert [c.name for c in proof.calls if c.level == level] == ["init", "reset", *entries, "hash"]
    kept = build(spec).files["src/m.h"]
    for struct in spec.program.structs:
        for name in struct.ranges:
            if f" {name}[" in kept or f" {name};" in kept:
                assert f"/*@ check {name}:" in proof.files["prove_state.c"]
    assert [c.name for c in proof.calls if c.level == SNAPSHOT] == ["save", "load", "store", "restore", "wipe", "valid"]


def test_a_range_without_a_number_is_no_proof(monkeypatch):
    """A driver with an empty range would prove anything."""
    monkeypatch.setattr("pykernel.gen.proof.ends_of", lambda *_: (1, 0))
    with pytest.raises(UserError, match=r"is empty: from 1(\.0)? to 0"):
        proof_of(make_spec(KLMS), (STATE,))


def test_a_call_that_the_analysis_does_not_pass_is_not_proved():
    call = Call(STATE, "update", "prove_state_update", ("m.c",), frozenset({"m_update"}), 0)
    found = frama_c.Finding(call, True, coverage={"m_update": (5, 5), "prove_state_update": (3, 4)})
    assert "nothing is proved" in _row(found, frozenset())["why"]
    assert _row(replace(found, coverage={"prove_state_update": (4, 4)}), frozenset())["proved"]


def test_without_frama_c_one_sentence_names_the_package(monkeypatch, tmp_path, capsys):
    (tmp_path / "m.toml").write_text(make_spec(RLS).to_toml())
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SystemExit) as ended:
        main(["prove", str(tmp_path / "m.toml")])
    assert ended.value.code == 2
    assert capsys.readouterr().err.count("apt install frama-c-base") == 1


@pytest.mark.exhaustive
@FRAMA_C
def test_a_model_is_proved(tmp_path, capsys):
    (tmp_path / "m.toml").write_text(make_spec(RLS).to_toml())
    with pytest.raises(SystemExit) as ended:
        main(["prove", str(tmp_path / "m.toml"), "--from", "state", "--json"])
    report = json.loads(capsys.readouterr().out)
    assert ended.value.code == 0 and report["ok"] and not report["findings"]
    assert {row["call"]: (row["proved_ranges"], row["ranges"]) for row in report["calls"]} == {
        name: (6, 6) for name in ("init", "reset", "predict", "update", "freeze", "hash")
    }


@FRAMA_C
@pytest.mark.exhaustive
def test_no_real_of_the_state_becomes_nan_or_infinite(tmp_path):
    """From a state within its limits, with inputs and labels of any bits; a weight beyond its limit is found."""
    found = pykernel.prove(make_spec(NLMS), from_="finite", call=("predict", "update"))
    assert found.ok and found.nan_steps == found.proved_nan_steps > 0, found
    assert {row["call"]: row["proved_ranges"] for row in found.calls} == {"predict": 11, "update": 10}  # and the answer
    row = found_in(FAULTS["a weight without a limit"], tmp_path)
    assert not row["proved"] and (row["alarms"] or row["why"] == "may take weights out of its range")


@pytest.mark.exhaustive
@FRAMA_C
def test_a_verdict_stands_beside_the_checks(tmp_path):
    spec = make_spec(RLS)
    pykernel.generate(spec, tmp_path)
    found = pykernel.prove(spec, from_="state", call="freeze", record=tmp_path)
    assert f"{found.verdict}; proved from state: 1 of 1 calls; Frama-C" in (tmp_path / "VALIDITY.md").read_text(
        encoding="utf-8"
    )
    again = pykernel.check(spec, samples=50, levels=("-O0",), record=tmp_path)
    assert again.ok and found.verdict in (tmp_path / "VALIDITY.md").read_text(encoding="utf-8")
    with pytest.raises(UserError, match="differs from what this version of pykernel generates"):
        pykernel.prove(make_spec(KLMS), from_="state", call="freeze", record=tmp_path)


@FRAMA_C
@pytest.mark.exhaustive
def test_the_folder_proves_it_again_without_pykernel(tmp_path, monkeypatch, exhaustive):
    monkeypatch.setenv("PWD", str(tmp_path.parent))  # Frama-C tells places from there
    monkeypatch.setenv("HOME", str(tmp_path / "nobody"))  # where nobody has told Why3 of provers
    spec = make_spec(KLMS if exhaustive else RLS)
    found = pykernel.prove(spec, from_="state", call=("freeze", "predict"), output=tmp_path)
    assert found.ok and found.nan_steps > 0
    assert all(row["proved_ranges"] == row["ranges"] > 0 for row in found.calls)

    def make():
        return subprocess.run(["make", "-s", "-B"], cwd=tmp_path, capture_output=True, text=True)

    again = make()
    assert again.returncode == 0 and again.stdout.splitlines()[-1] == "proved: 2 calls", again.stderr
    code = tmp_path / "m.c"
    code.write_text(code.read_text().replace("s->frozen = 1;", "s->frozen = frozen;"))
    again = make()
    assert again.returncode != 0 and re.search(r"prove_state.c:\d+: user check: .*frozen", again.stdout)


def test_a_call_whose_ranges_are_not_all_told_is_not_proved():
    call = Call(STATE, "predict", "prove_state_predict", ("m.c",), frozenset(), 2)
    found = frama_c.Finding(call, True, checks={"n": True}, coverage={call.main: (3, 3)})
    assert _row(found, frozenset())["why"] == "the analysis checked only 1 of 2 ranges"


@FRAMA_C
def test_a_call_that_takes_too_long_is_not_proved():
    found = pykernel.prove(make_spec(RLS), from_="state", call="update", timeout=0.05)
    assert not found.ok and found.calls[0]["why"] == "took more than 0.05 s"
    with pytest.raises(UserError, match="'updat' is not a call of m; did you mean 'update'"):
        pykernel.prove(make_spec(RLS), call="updat")


@dataclass(frozen=True)
class Fault:
    """A change of the C, and the call that must not be provable with it.

    index: an index before and after, of which the annotation is written anew, as the generator would.
    answers: the fault changes answers only, because another guard in the C keeps the counts: so the proof must pass.
    """

    model: str
    level: str
    call: str
    old: str
    new: str
    answers: bool = False
    index: tuple[str, str] = ("", "")
    file: str = "m.c"


FAULTS = {
    # float: counts, places in triangles, limits
    "a loop beyond n": Fault("klms", STATE, "predict", "i < s->n; i++", "i <= s->n; i++"),
    "counts not checked": Fault("klms", WILD, "predict", "return (s->n >= 0) && (s->n <= M_N_MAX)", "return s->n >= 0"),
    "n by two": Fault("klms", STATE, "update", "s->n = r + 1;", "s->n = r + 2;"),
    "full too late": Fault("klms", STATE, "update", "full = n == M_N_MAX", "full = n > M_N_MAX", answers=True),
    "no gap": Fault("klms", STATE, "update", "last = s->n - 1", "last = s->n", answers=True),
    "one candidate too many": Fault("klms", STATE, "update", "return s->n + 1;", "return s->n + 2;"),
    "a triangle's next rows": Fault("klms", STATE, "update", "row = row + first;", "row = row + first + 1;"),
    "a triangle's place": Fault("klms", STATE, "update", "place = place + i;", "place = place + i + 2;"),
    "a row too long": Fault("klms", STATE, "update", "gathered[i + 1] = v * d", "gathered[i + 2] = v * d", index=("i + 1", "i + 2")),
    "an unset variable": Fault("klms", STATE, "update", "int32_t nearest = 0;", "int32_t nearest;"),
    "NaN passes": Fault("klms", STATE, "predict", "if (!(x >= M_EXP_LOWEST))", "if (x < M_EXP_LOWEST)"),
    "no lower limit": Fault("klms", STATE, "predict", "if (!(x >= M_EXP_LOWEST))", "if (!(x >= -1e30f))"),
    "not 0 or 1": Fault("klms", STATE, "freeze", "s->frozen = 1;", "s->frozen = frozen;"),
    "hash too long": Fault("klms", STATE, "hash", "(const unsigned char *)s, M_STATE_BYTES", "(const unsigned char *)s, M_RAM_BYTES + 1u"),
    "reset too long": Fault("klms", STATE, "reset", "i < M_RAM_BYTES", "i <= M_RAM_BYTES"),
    "reset too short": Fault("klms", STATE, "reset", "i < M_RAM_BYTES", "i < 4u"),
    "a larger clip": Fault("klms", STATE, "update", "m_bounded(s->u[j], M_LARGEST_FACTOR)", "m_bounded(s->u[j], 2.0f * M_LARGEST_FACTOR)", answers=True),
    "another step": Fault("klms", STATE, "update", "M_ETA * s->error[o]", "-M_ETA * s->error[o]", answers=True),
    # snapshots
    "wipe too long": Fault("klms", SNAPSHOT, "wipe", "i < M_RAM_BYTES", "i <= M_RAM_BYTES", file="m_snapshot.c"),
    "a third slot": Fault("klms", SNAPSHOT, "store", "slot = 1 - slot", "slot = 2 - slot", file="m_snapshot.c"),
    "the last chunk": Fault("klms", SNAPSHOT, "restore", "left = M_SNAPSHOT_BYTES - offset", "left = M_SNAPSHOT_BYTES + 4u - offset", file="m_snapshot.c"),
    "bytes before the model": Fault("klms", SNAPSHOT, "save", "(at < M_SNAPSHOT_HEADER) ? at", "(at < 1u) ? at", file="m_snapshot.c"),
    "bytes before the copy": Fault("klms", SNAPSHOT, "restore", "if (place < M_STATE_BYTES)", "if (place != M_STATE_BYTES)", file="m_snapshot.c"),
    "a count above its range": Fault("klms", SNAPSHOT, "valid", "> m_stored_natural_ranges[k].high", "> (m_stored_natural_ranges[k].high + 1u)", file="prove_valid.c"),
    "fewer looks": Fault("klms", SNAPSHOT, "restore", "M_LOOKS 12u", "M_LOOKS 2u", answers=True, file="m_snapshot.c"),
    # whole numbers
    "a multiplier without limits": Fault("whole", STATE, "update", "m_clip(moved, -M_ALPHA_MOST, M_ALPHA_MOST)", "moved"),
    "an error without limits": Fault("whole", STATE, "update", "value = m_clip(s->error[o], -1073741824, 1073741824)", "value = s->error[o] * 4"),
    "a shift by too many": Fault("whole", STATE, "predict", "if (n >= 16)", "if (n >= 64)"),
    "a table's index": Fault("whole", STATE, "predict", "(u >> 10) & 63u", "(u >> 10) & 127u"),
    "a quotient by 0": Fault("whole", STATE, "update", "if (total > 65535)", "if (total > -1)"),
    "no nearest": Fault("whole", STATE, "update", "s->nearest = (int16_t)(nearest)", "s->nearest = (int16_t)(nearest - 1)"),
    "inputs not checked": Fault("whole", STATE, "predict", "|| (e > (int32_t)m_most[0])", "|| false"),
    "labels not checked": Fault("whole", STATE, "update", "(y >= -M_LABEL_MOST) && (y <= M_LABEL_MOST)", "y <= M_LABEL_MOST"),
    "never full": Fault("whole", STATE, "update", "if (n == M_N_MAX) {", "if (n > M_N_MAX) {", answers=True),
    # reals: weights, inputs
    "a weight without a limit": Fault("nlms", FINITE, "update", "if (!(m_absolute(s->phi[k]) <= M_WEIGHT_LIMIT))", "if (!(m_absolute(s->phi[k]) <= 1e30f))"),
    "infinite inputs": Fault("nlms", FINITE, "predict", "<= M_INPUT_MAX_ABS)", "<= 2.0f * FLT_MAX)"),
    "NaN is taken": Fault("nlms", FINITE, "update", "if (!(m_absolute(x[j]) <= M_INPUT_MAX_ABS))", "if (m_absolute(x[j]) > M_INPUT_MAX_ABS)"),
    "weights not checked before": Fault("nlms", FINITE, "update", "s->phi[k] = m_revised(s, k);", "s->phi[k] = m_revised(s, k); s->weights[0][k] = s->phi[k];"),
}  # fmt: skip
"""Small changes of the C."""
IN_ONE_BUILD = ("not 0 or 1", "a count above its range", "a loop beyond n")
"""The faults that the quick suite tries."""


def found_in(fault, folder):
    """What the analysis says of a call, with or without a fault."""
    proof = proof_of(make_spec(MODELS[fault.model]), (fault.level,))
    (call,) = [each for each in proof.calls if each.name == fault.call]
    files = dict(proof.files)
    assert fault.old in files[fault.file], "the C has changed; write the fault anew"
    lines, (before, after) = files[fault.file].splitlines(), fault.index
    for at, line in enumerate(lines):
        if fault.old in line:
            lines[at] = line.replace(fault.old, fault.new)
            if before:
                lines[at - 1] = lines[at - 1].replace(f"0 <= {before} <", f"0 <= {after} <")
    files[fault.file] = "\n".join(lines) + "\n"
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    found = frama_c.analyse(call, folder, "M", 300)
    proved, _ = frama_c.prove_passed(found.passed, folder, "M", 300)
    return _row(found, found.passed - proved)


@pytest.mark.in_turn
@FRAMA_C
@pytest.mark.parametrize("name", IN_ONE_BUILD)
def test_seeded_faults_are_found(name, tmp_path):
    assert not found_in(FAULTS[name], tmp_path)["proved"]


@FRAMA_C
@pytest.mark.exhaustive
@pytest.mark.parametrize("name", sorted(FAULTS.keys() - set(IN_ONE_BUILD)))
def test_all_seeded_faults_are_found(name, tmp_path):
    row = found_in(FAULTS[name], tmp_path)
    assert row["proved"] == FAULTS[name].answers, row


@FRAMA_C
@pytest.mark.parametrize("name", [n if n == "rls" else pytest.param(n, marks=pytest.mark.exhaustive) for n in MODELS])
def test_without_a_fault_the_same_models_are_proved(name, exhaustive):
    found = pykernel.prove(make_spec(MODELS[name]), call=None if exhaustive else "store")
    assert found.ok, found


def test_each_rule_has_a_program_that_nights_prove():
    found = {
        (spec.learning.rule, spec.real.is_int16) for spec in (make_spec({"name": "m"} | c) for c in SMALL.values())
    }
    assert found == {*((rule, False) for rule in rules()), *((rule, True) for rule in int16_rules())}


STORED = ("klms, mklms", "okfeb", "[novelty] alone", "int16 default", "[signal], 16 samples")
"""Programs of which all calls of snapshots are proved; of the others, that what ``valid`` accepts is in the ranges."""


@FRAMA_C
@pytest.mark.exhaustive
@pytest.mark.parametrize("name", PROGRAMS)
def test_every_program_is_proved(name):
    spec = make_spec({"name": "m"} | PROGRAMS[name])
    found = pykernel.prove(spec, from_=STATE, timeout=1200)
    assert found.ok, found
    if spec.program.persistent:
        found = pykernel.prove(spec, from_=SNAPSHOT, call=None if name in STORED else "valid", timeout=1200)
        assert found.ok, found
