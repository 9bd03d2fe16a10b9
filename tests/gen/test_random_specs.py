"""Random specs of the whole language: the same on the host and in C, whatever is called; and damaged specs."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from pykernel.errors import CheckFailed
from pykernel.gen.binding import CModel
from pykernel.gen.compilers import compile_c, compiler, takes
from pykernel.gen.project import build
from pykernel.host.model import HostModel
from pykernel.spec.model import make_spec
from tests.gate.models import declared_models
from tests.support.compilers import parting
from tests.support.random_calls import broken_promise, first_difference, random_calls, trace
from tests.support.random_specs import RULES, content_of, random_spec, shrunk
from tests.support.spec_text import damaged, toml
from tests.support.tools import needs

pytestmark = [
    needs("gcc"),
]
LEVELS = ("-O0", "-O2", "-O3 -march=native", "-Os")
BY_DEFAULT = 2
DECLARED = declared_models()


def failure(content, seed, calls, levels=LEVELS, patch=str):
    """What is wrong with a spec, or None: any function in any order, on the host and as each build of the C."""
    spec = make_spec(content)
    project = build(spec)
    called = random_calls(spec, np.random.default_rng(seed), calls)
    host = trace(HostModel(spec, project.drop, raw=spec.program.is_int16), called)
    broken = broken_promise(spec, called, host)
    if broken is not None:
        return f"host: {broken}"
    gcc = compiler("gcc")
    for level in levels:
        if takes(gcc, level):
            model = CModel(project, gcc, level.split(), patch=patch)
            different = first_difference(called, host, trace(model, called))
            if different is not None:
                return f"gcc {level}: {different}"
            if model.call("selftest") != 0:
                return f"gcc {level}: the self-test says {model.call('selftest')}"
    return None


def assert_equal(seed, calls):
    rule = RULES[seed % len(RULES)]
    content = content_of(random_spec(np.random.default_rng(seed), rule))
    found = failure(content, seed, calls)
    if found is not None:
        kind = found.partition(":")[0]
        least = shrunk(content, lambda candidate: (failure(candidate, seed, calls) or "").startswith(kind))
        pytest.fail(
            f"seed {seed}: {found}\nthe least spec that fails so, {failure(least, seed, calls)}:\n{toml(least)}"
        )


@pytest.mark.in_turn(162)
@pytest.mark.parametrize("rule, precision, stage", DECLARED)
def test_host_plain_python_and_c_agree_over_every_rule_precision_and_stage(rule, precision, stage):
    """The same, and the bytes of snapshots; plain Python sees every place in an array; one build."""
    assert parting(make_spec(DECLARED[rule, precision, stage]), 300) is None


@pytest.mark.exhaustive
@pytest.mark.in_turn(13)
@pytest.mark.parametrize("seed", range(BY_DEFAULT))
def test_host_and_c_agree_whatever_the_spec_and_the_calls(seed):
    """Statuses, answers, snapshots and the whole memory after each of 300 calls with hostile samples, in four builds."""
    assert_equal(seed, 300)


@pytest.mark.exhaustive
@pytest.mark.parametrize("part", range(30))
def test_host_and_c_agree_over_more_specs(part):
    for seed in range(BY_DEFAULT * (1 + part), BY_DEFAULT * (2 + part)):
        assert_equal(seed, 1000)


@pytest.mark.exhaustive
def test_a_failure_shrinks_to_the_least_spec_that_has_it():
    """Negative control: C that multiplies in another order is found, and nearly nothing of the spec is left."""
    rich = {
        "name": "m",
        "precision": "float64",
        "input": {"dim": 3, "max_abs": 10.0, "standardise": True, "warmup": 5},
        "kernel": {"function": "gaussian", "sigma": 1.37},
        "learning": {"rule": "klms", "eta": 0.37, "rho": 0.013},
        "label": {"outputs": 2, "max_abs": 5.0},
        "reduction": {"technique": "nt", "n_max": 7, "truncate_age": 50},
    }

    def broken(text):
        return text.replace(
            "total += difference * difference;", "total = (total + difference) + difference * difference;"
        )

    def found(content):
        return failure(content, 1, 60, ("-O0",), broken)

    assert "status" in found(rich) or "memory" in found(rich) or "and" in found(rich)
    assert failure(rich, 1, 60, ("-O0",)) is None
    least = shrunk(rich, lambda candidate: found(candidate) is not None)
    assert found(least) is not None
    assert least["precision"] == "float32" and set(least) <= {
        "name",
        "precision",
        "input",
        "kernel",
        "learning",
        "reduction",
    }
    assert set(least["input"]) <= {"dim"} and "outputs" not in least.get("label", {})


def generate(text, folder, run):
    """The C of a damaged spec, or None where it was refused as a bad spec must be."""
    Path("m.toml").write_text(text, encoding="utf-8")
    code, out, err = run("generate", "m.toml", "-o", str(folder))
    if code == 0:
        return sorted((folder / "src").glob("*.c"))
    assert code == 2 and out == "" and not folder.exists(), (code, out, err)
    assert err.startswith("error: ") and err.count("\n") == 1 and "Traceback" not in err and len(err) < 1000, err
    return None


def try_mutants(seeds, tmp_path, monkeypatch, run):
    monkeypatch.chdir(tmp_path)
    taken = 0
    for seed in seeds:
        rng = np.random.default_rng([seed, 17])
        text = damaged(toml(content_of(random_spec(rng))), rng)
        folder = tmp_path / f"out{seed}"
        try:
            sources = generate(text, folder, run)
            if sources is not None:
                taken += 1
                modules = [source for source in sources if source.name != "main.c"]
                compile_c(compiler("gcc"), modules, tmp_path / "m.so", ("-O2",))
        except (AssertionError, CheckFailed) as wrong:
            pytest.fail(f"mutant {seed}: {wrong}\n{text}")
        shutil.rmtree(folder, ignore_errors=True)
    assert 0.02 < taken / len(seeds) < 0.95


def test_a_damaged_spec_makes_c_that_compiles_or_is_refused_in_a_sentence(tmp_path, monkeypatch, run):
    try_mutants(range(296, 304), tmp_path, monkeypatch, run)


@pytest.mark.exhaustive
@pytest.mark.parametrize("part", range(5))
def test_1000_damaged_specs(part, tmp_path, monkeypatch, run):
    try_mutants(range(20 + 200 * part, 20 + 200 * (part + 1)), tmp_path, monkeypatch, run)
