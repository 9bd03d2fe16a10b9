"""Quality of the generated C: what checkers, more warnings, sanitizers and fuzzers find in it, and how it looks."""

import os
import re
import subprocess
import sys

import numpy as np
import pytest

from pykernel.algorithms.online.techniques import TECHNIQUES
from pykernel.gen.compilers import STRICT
from pykernel.gen.project import build
from pykernel.gen.streams import mixed_stream
from pykernel.host.model import HostModel
from pykernel.spec.families.online_keys import GRADIENT
from pykernel.spec.model import declared, make_spec
from tests.support import ROOT
from tests.support.built import built
from tests.support.every_model import MODELS as MODELS_OF_ALL_RULES
from tests.support.every_model import STAGES, content_of, family_of
from tests.support.harness import SANITIZERS, build_fuzzer, write_sources
from tests.support.machines import MACHINES, SIGNALS, machine
from tests.support.random_specs import RULES, random_spec
from tests.support.specs import named
from tests.support.tools import need, needs

PRECISIONS = ("float32", "float64")
MORE_WARNINGS = """-Wmissing-prototypes -Wstrict-prototypes -Wcast-qual -Wcast-align -Wundef -Wpointer-arith
    -Wwrite-strings -Wswitch-default -Wredundant-decls -Wunused""".split()


# what differs in the C: techniques, rules, strategies, labels
MODELS = {
    **{technique: {"reduction": {"technique": technique, "force": True}} for technique in TECHNIQUES},
    "qklms": {"learning": {"rule": "qklms"}, "reduction": {"technique": "fmklms"}},
    "krls-t": {"learning": {"rule": "krls-t", "forgetting": 0.99}},
    # searches for neighbours, and then refuses
    "krls-t-fast": {
        "learning": {"rule": "krls-t"},
        "reduction": {"technique": "fmklms", "projection": "klms", "force": True},
    },
    "fb-krls": {"learning": {"rule": "fb-krls"}, "reduction": {"technique": "sup"}},
    "sw-krls": {"learning": {"rule": "sw-krls"}},
    "ald-krls": {"learning": {"rule": "ald-krls"}},
    "knlms": {"learning": {"rule": "knlms"}},
    "before": {"reduction": {"when": "before", "technique": "ls", "projection": "lsridge"}},
    "threshold": {"reduction": {"technique": "lsreg", "lambda_max": 1e-3, "removals": 2}},
    "truncation": {"reduction": {"technique": "fklms", "truncate_below": 1e-3, "truncate_age": 50, "tie": "newest"}},
    "outputs": {"label": {"outputs": 3}, "reduction": {"technique": "lsridge"}},
    "classes": {"label": {"classes": ["a", "b", "c"]}},
    "nlms": {"learning": {"rule": "nlms"}},
    "rls": {"learning": {"rule": "rls", "forgetting": 0.99}, "label": {"classes": ["a", "b"]}},
    "quadratic-rls": {"learning": {"rule": "quadratic-rls"}, "label": {"outputs": 2}},
    "rff-rls": {"learning": {"rule": "rff-rls", "features": 8}, "kernel": {"sigma": 1.0}},
    "spectrum-ekf": {"learning": {"rule": "spectrum-ekf"}, "kernel": {"sigma": 1.0}},
    "spectrum-nlms": {
        "learning": {"rule": "spectrum-nlms"},
        "label": {"outputs": 2},
        "kernel": {"sigma": 1.0},
    },
    "spectrum-softmax": {
        "learning": {"rule": "spectrum-softmax"},
        "label": {"classes": ["a", "b", "c"]},
        "kernel": {"sigma": 1.0},
    },
}
LINEAR = ("nlms", "rls", "quadratic-rls", "rff-rls", "spectrum-ekf", "spectrum-nlms", "spectrum-softmax")
MAIN = ("nt", "fklms", "mklms", "krls-t", "rff-rls", "spectrum-ekf")
EACH = [name if name in MAIN else pytest.param(name, marks=pytest.mark.exhaustive) for name in MODELS]


def spec_of(model="mklms", precision="float32", full=False, name="m", dim=2, n_max=6):
    """full: with everything around the algorithm that can be had."""
    if model in (*MACHINES, *SIGNALS):
        return machine(model, precision, name)
    content = {section: dict(keys) for section, keys in MODELS[model].items()}
    content |= {"name": name, "precision": precision, "input": {"dim": dim, "standardise": full}}
    if full:
        content["input"]["warmup"] = 4
        if content.get("learning", {}).get("rule", "klms") in declared("mixture"):
            content["mixture"] = {}
        if "classes" not in content.get("label", {}):
            content["label"] = {"low": -1.0, "high": 1.0} | content.get("label", {})
            content["input"]["outliers"] = "hold"
            if content.get("learning", {}).get("rule", "klms") in declared("interval"):
                content["interval"] = {}
        if content.get("learning", {}).get("rule", "klms") in GRADIENT:
            content["learning"] = {"rho": 0.01, "step_limit": 0.5} | content.get("learning", {})
    if model not in LINEAR:
        content |= {"kernel": {"sigma": 1.0}, "reduction": {"n_max": n_max} | content.get("reduction", {})}
    return make_spec(named(content))


def fitted(spec):
    model = HostModel(spec)
    if not spec.program.learns:
        return build(spec)
    model.prequential(*mixed_stream(spec, 200))
    return build(spec, model.memory)


# ---------------------------------------------------------------------------------------------------- checkers


@pytest.mark.exhaustive  # four minutes; `make misra` is the same by hand
@needs("cppcheck")
def test_every_finding_of_cppcheck_is_documented(tmp_path):
    """One deviation is left out, to see that it is missed; nothing else may be."""
    page = (ROOT / "docs" / "misra.md").read_text(encoding="utf-8")
    fewer = tmp_path / "misra.md"
    fewer.write_text(re.sub(r"\| 19\.2 \|.*\n", "", page), encoding="utf-8")
    words = [sys.executable, "-m", "benchmarks.device.misra", "--deviations", fewer]
    run = subprocess.run(words, capture_output=True, text=True, cwd=ROOT)
    assert run.returncode == 1, run.stderr
    table, _, missed = run.stdout.partition("\nnot documented:\n")
    assert "| 15.5 |" in table and "is not found any more" not in table
    assert missed and not [line for line in missed.splitlines() if not line.startswith("19.2  ")]


@pytest.mark.exhaustive
@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_more_warnings_find_nothing(compiler, full, tmp_path):
    """A fifth of the models, others each night: the analyser takes seconds for each."""
    need(compiler)
    models = list(dict.fromkeys((*MODELS, *MACHINES)))
    for i in np.random.default_rng().permutation(len(models))[: len(models) // 5]:
        for precision in PRECISIONS:
            spec = spec_of(models[i], precision, full)
            folder = tmp_path / f"{models[i]}-{precision}"
            folder.mkdir()
            sources = write_sources(fitted(spec) if full else build(spec), folder)
            words = [compiler, *STRICT, *MORE_WARNINGS, "-O2", "-c", *sources]
            words += ["-fanalyzer"] if compiler == "gcc" else []
            run = subprocess.run(words, cwd=folder, capture_output=True, text=True)
            assert run.returncode == 0 and not run.stderr, run.stderr[:2000]


# ------------------------------------------------------------------------------------------------------- looks


@pytest.mark.in_turn(216)
@pytest.mark.parametrize("name", ["m", "a_model_with_the_longest_name_x"])
@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("model", [*EACH, *MACHINES])
def test_text_is_tidy_and_every_function_has_a_comment(model, full, name):
    spec = spec_of(model, "float64", full, name)
    files = (fitted(spec) if full else build(spec)).files
    header = files[f"src/{name}.h"]
    for path, text in files.items():
        if not path.endswith((".c", ".h")):
            continue
        assert text.endswith("\n") and not text.endswith("\n\n") and "\t" not in text and "\r" not in text, path
        assert not re.search(r" +$", text, re.M), path
        assert [line for line in text.splitlines() if len(line) > 120] == [], path
        if path.startswith("src/") and path.endswith(".c"):
            for found in re.finditer(r"(.*)\n(?:static )?(?:inline )?(?:\w+ )\*?(\w+)\((?:[^;{}]*)\)\n\{\n", text):
                declared = re.search(rf"\*/\n\w+ \*?{found[2]}\(", header)
                assert found[1].endswith("*/") or declared, f"{path}: {found[2]} has no comment"


def test_long_lines_are_folded_without_a_change_of_meaning():
    from pykernel.language.c_text import fold

    words = " ".join(f"word{i}" for i in range(60))
    text = f"    /* {words} */\n    int32_t a = f({', '.join(f'argument{i}' for i in range(30))}); /* {words} */\n"
    text += "#if " + " && ".join(f"defined(MACRO_{i})" for i in range(20)) + "\n#endif\n"
    folded = fold(text)
    assert max(map(len, folded.splitlines())) <= 120

    def tokens(c):
        return re.sub(r"\\\n", " ", re.sub(r"/\*.*?\*/", " ", c, flags=re.S)).split()

    assert tokens(folded) == tokens(text)
    assert " ".join(re.findall(r"word\d+", folded)).split() == words.split() * 2
    assert fold(folded) == folded


# ----------------------------------------------------------------------------------------------------- fuzzing


LEARNING = [
    (rule, precision, stage)
    for rule, precision, stage in MODELS_OF_ALL_RULES
    if "signal" in STAGES[stage] or any(each.persistent for each in family_of(rule, precision).programs.values())
]
"""Rule, precision and stage of everything that learns on the device."""


def assert_promises_hold(spec, folder, exhaustive):
    """Any function in any order; states with changed numbers and a right CRC; memory that is no model: under the sanitizers.

    Nothing that load accepts may ever lead to a number that is none, or to a state that save refuses, and no call may touch
    other memory or do what C leaves undefined.
    """
    folder.mkdir(exist_ok=True)
    project = build(spec)
    program, made = build_fuzzer(project, folder, "gcc", (*SANITIZERS, "-DALONE"))
    assert made.returncode == 0, made.stderr
    said = ""
    # of large models, several lie on the stack
    large = 1 + spec.program.state_bytes(spec.memory(project.drop).layout) // 20_000
    seed = int.from_bytes(os.urandom(3), "little") if exhaustive else 0  # each night other states
    for how, count in (("calls", 150), ("forged", 1000), ("garbage", 600)):
        # a third of the forged states are taken; with other seeds each night, a few could all be refused
        least = 20 if exhaustive and how == "forged" else 1
        words = [program, how, str(max(least, -(-count // large))), str(seed)]
        run = subprocess.run(
            ["sh", "-c", 'ulimit -s unlimited; exec "$0" "$@"', *words], capture_output=True, text=True
        )
        assert run.returncode == 0, f"{how}, seed {seed}: {run.stderr[-3000:]}\n{spec.to_toml()}"
        said += run.stdout
    assert int(re.search(r"(\d+) taken", said)[1]) > 0, said


@pytest.mark.in_turn(450)
@needs("gcc")
@pytest.mark.parametrize(("rule", "precision", "stage"), LEARNING)
def test_every_rule_precision_and_stage_keeps_every_promise(rule, precision, stage, tmp_path, exhaustive):
    # what there is not of a rule, such as spectra in int16, is its windows once more
    content = content_of(rule, precision, stage) or content_of(rule, precision, "windows")
    assert_promises_hold(make_spec(content), tmp_path, exhaustive)


@pytest.mark.exhaustive
@needs("gcc")
@pytest.mark.parametrize("seed", range(60))
def test_random_specs_keep_every_promise(seed, tmp_path):
    """Settings at their edges, too."""
    spec = random_spec(np.random.default_rng([seed, 38]), RULES[seed % len(RULES)])
    if spec.program.persistent:
        assert_promises_hold(spec, tmp_path, False)


@pytest.mark.exhaustive
@pytest.mark.in_turn(36)
@needs("gcc")
@pytest.mark.parametrize(
    ("precision", "how", "old", "new"),
    [
        ("float32", "calls", "if (!m_acceptable(x)) {", "if (false) {"),
        ("float32", "calls", "s->n = r + 1;", "s->n = r + 1; s->alpha[M_N_MAX - 1][0] += 1.0f;"),
        ("float32", "forged", " && m_snapshot_valid(stored))", " && ((void)m_snapshot_valid, true))"),
        ("float32", "garbage", "!m_intact(s)", "false"),
        ("int16", "garbage", "m_clip(s->pace, 0, 16)", "s->pace"),
    ],
)
def test_the_harness_sees_what_is_broken(precision, how, old, new, tmp_path):
    project = build(spec_of() if precision == "float32" else make_spec(content_of("klms", precision, "staged")))
    texts = [path for path, text in project.files.items() if path.startswith("src/") and old in text]
    assert texts, f"the C does not have {old!r}"
    for path in texts:
        project.files[path] = project.files[path].replace(old, new)
    program, made = build_fuzzer(project, tmp_path, "gcc", (*SANITIZERS, "-DALONE"))
    assert made.returncode == 0, made.stderr
    assert subprocess.run([program, how, "2000"], capture_output=True).returncode != 0


@pytest.mark.exhaustive
@needs("clang")
@pytest.mark.in_turn
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("model", MODELS)
def test_fuzzer_finds_nothing(model, precision, tmp_path):
    sanitizers = [flag.replace("=address", "=fuzzer,address") for flag in SANITIZERS]
    spec = spec_of(model, precision, True)
    if not spec.program.persistent:
        pytest.skip("it has no memory that a fuzzer could forge")
    program, made = build_fuzzer(build(spec), tmp_path, "clang", sanitizers)
    if "libclang_rt.fuzzer" in made.stderr:
        pytest.skip("needs clang's libFuzzer")
    assert made.returncode == 0, made.stderr
    words = [program, "-runs=5000", "-max_len=2048", "-len_control=20", "-seed=1", "-print_final_stats=1"]
    run = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr[-3000:]


IDLE_OPERATION = re.compile(r"[\w)\]] [-+] 0\b(?!\.)|\* 1\b(?!\.)|(?<![.\w])(1 \*|0 \+) ")


@pytest.mark.in_turn(180)
@pytest.mark.parametrize("model", MODELS_OF_ALL_RULES)
def test_how_it_was_trained_changes_no_byte_of_the_c(model):
    if (content := content_of(*model)) is None:
        pytest.skip("this rule has no such stage")
    plain, trained = (
        build(make_spec(content | more)).files for more in ({}, {"training": {"model": "krr", "tau": 0.1}})
    )
    differ = {name for name in plain if plain[name] != trained[name]}
    assert plain.keys() == trained.keys() and not any(name.endswith((".c", ".h", ".hpp")) for name in differ)


@pytest.mark.in_turn(180)
@pytest.mark.parametrize("model", MODELS_OF_ALL_RULES)
def test_one_reads_only_of_what_this_model_has(model):
    """Statuses, helpers, parameters in comments, sentences about choices: models with others have those of them alone."""
    if (content := content_of(*model)) is None:
        pytest.skip("this rule has no such stage")
    spec = make_spec(content | {"name": "m"})
    sources = built(spec).sources
    code = {name: re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL) for name, text in sources.items()}
    listed = set(re.findall(r"\bM_(\w+) = -?\d+", code["m.h"]))
    given = " ".join(text for name, text in code.items() if name.endswith(".c"))
    # a status that is only compared is none that a call returns
    assert {status for status in listed if not re.search(rf"(?<![=!]= )\bM_{status}\b", given)} <= {"DONE"}
    assert not IDLE_OPERATION.findall(given), IDLE_OPERATION.search(given)
    for name in re.findall(r"^static inline [\w ]+ \*?(\w+)\(", given, flags=re.MULTILINE):
        assert len(re.findall(rf"\b{name}\b", given)) > 1, name
    for name, text in sources.items():
        assert not re.search(
            r"(?<=\s)\[(not )?[a-z_]+( [A-Z]+)?\] ", " ".join(re.findall(r"/\*.*?\*/", text, flags=re.DOTALL))
        )
        for told, body in re.findall(
            r"(/\*(?:(?!\*/).)*\*/)\n(static [^;{}]*\)\n\{\n.*?^\})", text, re.DOTALL | re.MULTILINE
        ):
            for word in re.findall(r"``(\w+)``", told):
                assert re.search(rf"\b{word}\b", body) or f"m_{word}(" in given, (name, told)
