"""The spec: what it refuses and how it says so, and that nothing else changes on the way."""

from __future__ import annotations

import functools
import importlib.resources
import json
import math
import pickle
import re
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pykernel.algorithms.kernel_choice import KERNEL_RULES
from pykernel.algorithms.online.projections import PROJECTIONS
from pykernel.algorithms.online.techniques import TECHNIQUES
from pykernel.dialect.reserved import SYSTEM_HEADERS
from pykernel.errors import UserError
from pykernel.host import snapshot
from pykernel.host.identity import identity
from pykernel.host.model import HostModel
from pykernel.spec.families.linear import LINEAR_MODELS
from pykernel.spec.families.online import KERNEL_MODELS, RULES
from pykernel.spec.keys import is_prefix
from pykernel.spec.model import DIM_LIMIT, keys_of, load_spec, make_spec, rules, sections
from pykernel.spec.sections import CPUS
from tests.support.custom_kernels import products, rational_quadratic
from tests.support.every_model import MODELS, content_of
from tests.support.header_names import header_names

BASE: dict[str, Any] = {
    "name": "flow",
    "input": {"dim": 2},
    "kernel": {"sigma": 1.0},
    "learning": {"rule": "klms"},
}

REMEDY = re.compile(
    r"must|should|choose|did you mean|the keys are|is missing|give|leave|at most|at least|save|see |needs|lower |raise |takes it|allows it"
)


def merged(**sections: Any) -> dict[str, Any]:
    return {**BASE, **sections}


def refusal(content: Any) -> str:
    with pytest.raises(UserError) as caught:
        make_spec(content, "flow.toml")
    return str(caught.value)


def assert_is_one_sentence(text: str, key: str) -> None:
    assert text.startswith("flow.toml: ") and len(text) < 400
    assert text.isprintable()  # one line, and nothing that a terminal would act on
    assert key in text
    assert REMEDY.search(text), text


HOSTILE_NAMES = """../x a;b int flоw ﬂow Flow 1flow _flow a__b flow_ a/b a\\b a.c .. /etc/passwd a*/ " $(id) `id` class
    int32_t uint8 std main pk math string con com1 task queue list timers features arduino wire spi""".split()
HOSTILE_NAMES += ["", " flow", "flow\n", "flow ", "a b", "a\0b", "a" * 300, "\u202ea", "\ud800"]

NAN, INF = math.nan, math.inf


def each(section: str | None, key: str, *values: Any, **others: Any) -> list[tuple[str, dict[str, Any]]]:
    """Changes that set one key, with other keys of its section, to values that are refused."""
    if section is None:
        return [(key, {key: value}) for value in values]
    return [(key, {section: {**BASE.get(section, {}), **others, key: value}}) for value in values]


INVALID: list[tuple[str, dict[str, Any]]] = [
    *each(None, "name", *HOSTILE_NAMES, None, 3, True, ["a"], b"flow"),
    *each(None, "precision", "float16", "double", "", None, 32),
    *each("input", "dim", 0, -1, 1025, 1.0, "2", True),
    *each("input", "dim", 3, columns=["a", "b"]),
    *each("input", "columns", [], "ab", {"a": 1}, {"a"}, [1], ["a", "a"], [""], [" a"], ["a\n"], ["a\0"], dim=None),
    *each("input", "columns", ["\u202ea"], ["a" * 101], ["\ud800"], [str(i) for i in range(DIM_LIMIT + 1)], dim=None),
    *each("input", "max_abs", 0, -1, NAN, INF, 1e300, 1e-300, "1"),
    *each("label", "max_abs", 0, -1, NAN, INF, 1e300, 1e-300, "1"),
    *each("label", "column", "", "a\nb", "\u2028", "\u200b", 3),
    *each("kernel", "sigma", 0, -0.0, -1, NAN, INF, "1", None, True, 1e-300, 1e300, 10**400),
    *each("learning", "eta", 0, -1, 2, NAN, INF, 1e-60, "0.5"),
    *each("learning", "rho", -1e-9, NAN, INF, "0"),
    *each("learning", "rho", 2.0, eta=0.5),
    *each("reduction", "technique", "lms", "", "MKLMS", None, 3, "m*/"),
    *each("reduction", "n_max", 0, -1, 10**9, 10**30, 4097, 1.5, "8", True, None, NAN),
    *each("reduction", "ridge", -1, 1.1, 1e-5, NAN, "0"),
    *each("reduction", "ald_threshold", -1, 1, 1.0, 1e-3, NAN, "0"),
    *each("kernel", "sgma", 2.0),
    *each(None, "input", 3, "x", None, []),
    *each(None, "kernel", 3, "x", None, []),
    *each(None, "label", 3, "x", None, []),
    *each(None, "learning", 3, "x", None, []),
    *each(None, "reduction", 3, "x", None, []),
    ("column", {"input": {"columns": ["a", "b"]}, "label": {"column": "a"}}),
    ("n_max", {"input": {"dim": 1024}, "reduction": {"n_max": 4096}, "precision": "float64"}),
    ("ald_threshold", {"reduction": {"ridge": 0.5}}),
    ("ald_threshold", {"reduction": {"technique": "nt", "ridge": 0.6}}),
    ("ald_threshold", {"precision": "float64", "reduction": {"ridge": 0.0}}),
    ("ald_threshold", {"precision": "float64", "reduction": {"ridge": 0.0, "ald_threshold": 1e-13}}),
    ("sigma", {"kernel": {}}),
    ("[input]", {"input": {}}),
    ("kernl", {"kernl": {"sigma": 1.0}}),
    ("a\\n\\x1b[31m", {"a\n\x1b[31m": 1}),
]


@pytest.mark.parametrize(("key", "change"), INVALID, ids=lambda value: ascii(value)[:60])
def test_invalid_values_get_one_sentence_with_key_and_remedy(key: str, change: dict[str, Any]) -> None:
    assert_is_one_sentence(refusal(merged(**change)), key)


def test_a_name_that_hides_what_generated_code_includes_is_refused() -> None:
    """Headers that are included without a folder; some file systems do not tell capitals apart."""
    texts = [
        path.read_text(encoding="utf-8")
        for folder in ("gen", "runtime_c", "targets")
        for path in importlib.resources.files(f"pykernel.data.{folder}").iterdir()
        if path.is_file()
    ]
    found = {name.lower() for text in texts for name in re.findall(r'#\s*include [<"](\w+)\.h[>"]', text)}
    names = [name for name in found if is_prefix(name)]
    assert {"stdint", "esp_log"} <= set(names)
    for name in names:
        assert "choose another" in refusal(merged(name=name)), name
    listed = ["a/include/Queue.h", "libraries/SPI/src/SPI.h", "kernel/private.h", "components/x/test/include/one.h"]
    assert header_names(listed) == {"queue", "spi"} <= SYSTEM_HEADERS


LINEAR = {"function": "linear"}
BEYOND: list[tuple[str, str, dict[str, Any]]] = [
    ("[input] max_abs", "at least", {"input": {"dim": 1, "max_abs": 1e-14}, "kernel": LINEAR,
      "learning": {"rule": "okfeb", "features": 1}, "reduction": {"n_max": 2}}),
    ("[learning] ridge", "the largest number is", {"learning": {"rule": "krr", "samples": 4, "ridge": 1e60}, "reduction": {}}),
    ("[label] low", "the smallest number above 0 is", {"label": {"low": -1e-60}}),
    ("[learning] quantisation", "at least", {"learning": {"rule": "qklms", "quantisation": 1e-30}}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "why", "change"), BEYOND, ids=lambda value: value if isinstance(value, str) else "")
def test_numbers_that_the_precision_cannot_hold_are_refused(name: str, why: str, change: dict[str, Any]) -> None:
    """No parameter of an accepted spec is infinite or lost near zero; in float64 the same spec is accepted."""
    content = {"name": "m", "input": {"dim": 2}, "kernel": {"sigma": 1.0}} | change
    message = refusal(content)
    assert_is_one_sentence(message, name)
    assert why in message and "float32" in message
    made = make_spec({**content, "precision": "float64"})
    assert all(np.isfinite(value).all() for value in made.config_values.values())


@pytest.mark.parametrize(("function", "offsets", "says"), [
    ("fourier", [], "[expansion] offsets holds 0 values; it must hold 1 or more"),
    ("fourier", [0.5], "[expansion] offsets holds 1 numbers; it must hold 2, one for each vector"),
    ("fourier", [0.5, -9.0], "[expansion] offsets holds -9; a phase must be from -1 to 1 turn"),
    ("fourier", [0.5, float("nan")], "[expansion] offsets is nan; it must be a finite number"),
    ("gaussian", [0.5, 0.5], "[expansion] offsets belongs to fourier, relu, tanh, logistic, identity; a gaussian kernel has no offsets: leave them out"),
])  # fmt: skip
def test_there_is_one_offset_for_each_vector(function: str, offsets: list[float], says: str) -> None:
    kernel = {"function": function} | ({"sigma": 1.0} if function == "gaussian" else {})
    expansion = {"vectors": [[0.0, 1.0], [1.0, 0.0]], "weights": [[1.0], [2.0]], "bias": [0.0], "offsets": offsets}
    content = {
        "name": "m",
        "input": {"dim": 2},
        "kernel": kernel,
        "learning": {"rule": "frozen"},
        "expansion": expansion,
    }
    assert refusal(content).endswith(says)


@pytest.mark.parametrize("missing", ["name", "input", "kernel"])
def test_what_is_missing_is_named(missing: str) -> None:
    assert_is_one_sentence(refusal({k: v for k, v in BASE.items() if k != missing}), missing)


def test_a_near_miss_of_a_key_is_recognised() -> None:
    assert "did you mean 'sigma'" in refusal(merged(kernel={"sigma": 1.0, "sgima": 1.0}))
    assert "did you mean 'reduction'" in refusal(merged(reducton={}))
    assert "columns, dim, max_abs" in refusal(merged(input={"dim": 2, "xyz": 1}))


@pytest.mark.parametrize(("section", "key", "given", "meant"), [
    ("reduction", "technique", "mkmls", "mklms"),
    ("kernel", "function", "rbf", "gaussian"),
    ("kernel", "function", "Poly", "polynomial"),
    ("learning", "rule", "KLMS", "klms"),
    ("learning", "rule", "krlst", "krls-t"),
])  # fmt: skip
def test_a_near_miss_of_a_value_is_recognised(section: str, key: str, given: str, meant: str) -> None:
    told = refusal(merged(**{section: {key: given}}))
    assert told == f"flow.toml: [{section}] {key} is {given!r}; did you mean {meant!r}?"


def test_a_range_stands_for_its_columns() -> None:
    spec = make_spec(merged(input={"columns": ["t", "x8..x11", "y01..y03"]}, label={"columns": ["a..b", "1..2"]}))
    assert spec.input.columns == ("t", "x8", "x9", "x10", "x11", "y01", "y02", "y03") and spec.dim == 8
    assert spec.label_columns == ("a..b", "1", "2") and make_spec(tomllib.loads(spec.to_toml())) == spec
    for columns, why in (
        (["x3..x2"], "the range 'x3..x2' of 0 names"),
        (["x0..x999999999"], "of 1000000000 names"),
        (["x0..x99999999999"], "of 100000000000 names"),
        (["x0..y3"], "'x0..y3', which is not a range of names"),
        (["x0...x3"], "'x0...x3', which is not a range of names"),
        (["x-1..x2"], "'x-1..x2', which is not a range of names"),
        (["x1", "x0..x3"], "has the name 'x1' twice"),
    ):
        assert why in refusal(merged(input={"columns": columns}))


@pytest.mark.parametrize("content", [
    b"name = " + b"[" * 20_000,
    b"name = " + b"1" * 5_000,
    b'name = "\xff"',
    b"name = 1\nname = 2",
    b"\0",
    b"name",
    b"",
    b"name = 2020-01-01",
    b'name = "flow"\n[kernel]\nsigma = nan\n[input]\ndim = 1',
    b'name = "flow"\n[kernel]\nsigma = 1e999\n[input]\ndim = 1',
    b'name = "flow"\n[[kernel]]\nsigma = 1\n[input]\ndim = 1',
], ids=lambda content: ascii(content[:20]))  # fmt: skip
def test_files_that_are_no_specs(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "flow.toml"
    path.write_bytes(content)
    with pytest.raises(UserError) as caught:
        load_spec(path)
    assert_is_one_sentence(str(caught.value).replace(str(path), "flow.toml"), "")


@pytest.mark.parametrize(
    "value", ["{" + "a." * 800 + "b = 1}", "[" * 300 + "]" * 300, "0x" + "f" * 5000, "25:00:00", "2020-01-01"]
)
def test_what_toml_can_hold_is_refused_under_every_key(value: str, tmp_path: Path) -> None:
    path = tmp_path / "flow.toml"
    for section in sections():
        for key in (*keys_of(section), "other"):
            path.write_text(f'name = "flow"\n{section}.{key} = {value}\n')
            with pytest.raises(UserError) as caught:
                load_spec(path)
            assert str(caught.value).isprintable() and REMEDY.search(str(caught.value)), caught.value


@pytest.mark.parametrize("path", ["", ".", "none.toml", "/dev/null/x", "a\0b", "a\nb", "x" * 5000])
def test_paths_that_lead_nowhere(path: str) -> None:
    with pytest.raises(UserError) as caught:
        load_spec(path)
    assert str(caught.value).isprintable() and REMEDY.search(str(caught.value))


@pytest.mark.exhaustive
@given(st.text(max_size=40) | st.from_regex(r"[a-z][a-z0-9_]*", fullmatch=True))
@example("a" * 31)
@example("a" * 32)
def test_any_text_as_name_is_an_identifier_or_refused(name: str) -> None:
    try:
        made = make_spec(merged(name=name), "flow.toml")
    except UserError as error:
        assert_is_one_sentence(str(error), "name")
    else:
        assert re.fullmatch(r"[a-z][a-z0-9_]*", made.name) and made.name == name and len(name) <= 31


@given(
    st.lists(
        st.text(max_size=12) | st.text(st.characters(categories=["Cc", "Cf", "L", "P", "S", "Z"]), max_size=5),
        max_size=4,
    )
)
def test_any_text_as_column_is_visible_or_refused(columns: list[str]) -> None:
    try:
        made = make_spec(merged(input={"columns": columns}), "flow.toml")
    except UserError as error:
        assert_is_one_sentence(str(error), "columns")
    else:
        assert list(made.input.columns or ()) == columns and len(set(columns)) == len(columns) >= 1
        assert all(name.isprintable() or "Z" in {c for c in map(_category, name)} for name in columns)
        assert not any(_category(ch) in "CX" for name in columns for ch in name)


def _category(ch: str) -> str:
    """The first letter of the general category; line ends count as X."""
    import unicodedata

    return "X" if ch in "\n\r\u2028\u2029" else unicodedata.category(ch)[0]


NUMBER = (
    st.floats() | st.integers() | st.sampled_from([0.0, -0.0, 1e-320, 1e-45, 1e-19, 1e19, 1e155, 2.0**-20, 1 - 2**-53])
)


@st.composite
def contents(draw: st.DrawFn) -> dict[str, Any]:
    """Specs of which a good part is valid."""

    def some(section: dict[str, st.SearchStrategy]) -> dict[str, Any]:
        return {key: draw(value) for key, value in section.items() if draw(st.booleans())}

    def number(low: float, high: float) -> st.SearchStrategy:
        return NUMBER if draw(st.integers(0, 9)) == 9 else st.floats(low, high)

    inputs: st.SearchStrategy[dict[str, Any]] = st.sampled_from(
        [{"dim": 1}, {"dim": 3}, {"columns": ["a", "ü", "x\"\\'#"]}]
    )
    return {
        "name": "flow",
        "precision": draw(st.sampled_from(["float32", "float64"])),
        "input": draw(inputs) | some({"max_abs": number(1e-6, 1e9)}),
        "label": some({"max_abs": number(1e-6, 1e9), "column": st.sampled_from(["y", "a"])}),
        "kernel": {"sigma": draw(number(1e-6, 1e6))},
        "learning": some({
            "eta": number(1e-6, 1.9),
            "rho": number(0, 0.5),
            "rule": st.sampled_from([*RULES, *LINEAR_MODELS.rules]),
        }),
        "reduction": some({
            "technique": st.sampled_from(list(TECHNIQUES)),
            "projection": st.sampled_from([None, *PROJECTIONS]),
            "penalty": number(1e-4, 1),
            "lambda_max": number(1e-6, 1),
            "truncate_age": st.integers(0, 100),
            "when": st.sampled_from(["after", "before"]),
            "n_max": st.integers(0, 40),
            "ridge": number(1e-4, 0.1),
            "ald_threshold": st.none() | number(0.1, 0.9),
        }),
    }  # fmt: skip


@given(contents())
@example({**BASE, "learning": {"rule": "nlms"}, "reduction": {"technique": "nt"}})
@example({**BASE, "reduction": {"technique": "at", "projection": "fklms"}})
@example({**BASE, "reduction": {"when": "before", "candidates": "newest"}})
@example({**BASE, "learning": {"rule": "krls-t", "forgetting": 0.99999}})
def test_what_is_accepted_can_be_computed_and_written_down(content: dict[str, Any]) -> None:
    try:
        made = make_spec(content, "flow.toml")
    except UserError as error:
        assert_is_one_sentence(str(error), "")
        return
    assert make_spec(tomllib.loads(made.to_toml())) == made
    assert make_spec(tomllib.loads(made.to_toml())).to_toml() == made.to_toml()
    for name in made.program.parameters:
        value = getattr(made.config, name)
        assert np.isfinite(value).all(), name
    assert made.memory().layout.nbytes > 0
    config = made.config
    if made.family not in KERNEL_MODELS:
        return
    # none of these may have been rounded away
    assert config.gamma > 0 and config.eta > 0 and config.input_max_abs > 0 and config.label_max_abs > 0
    assert config.alpha_limit > config.label_max_abs * 16
    # a first sample is new enough to be stored
    assert (
        not config.keeps_factor
        or config.stores_all
        or config.kappa_least <= config.ald_threshold < config.ridge_diagonal
    )
    # the farthest pair within the limit still has a finite distance
    reach = made.real.real(2) * config.input_max_abs
    with np.errstate(over="raise"):
        assert reach * reach * made.real.real(made.dim) < np.finfo(made.real.dtype).max


@pytest.mark.exhaustive
def test_the_config_hash_changes_with_every_parameter_that_counts() -> None:
    full: dict[str, Any] = {
        "name": "flow",
        "precision": "float64",
        "input": {"columns": ["a", "b"], "standardise": True},
        "label": {"column": "y", "low": -1.0, "high": 1.0},
        "kernel": {"sigma": 1.0},
        "learning": {"rule": "klms", "step_limit": 1.0},
        "reduction": {"ald_threshold": 0.01},
    }
    plain: dict[str, Any] = full | {"label": {"column": "y"}, "learning": {"rule": "klms"}, "reduction": {}}

    def with_rule(rule: str) -> dict[str, Any]:
        linear = rule in LINEAR_MODELS.rules
        made = {**plain, "learning": {"rule": rule}}
        return {k: v for k, v in made.items() if not linear or k not in ("reduction", "kernel")}

    def with_reduction(**reduction: Any) -> dict[str, Any]:
        return {**plain, "reduction": reduction}

    random = {**with_rule("rff-rls"), "kernel": {"sigma": 1.0}}
    spectrum = {**with_rule("spectrum-ekf"), "kernel": {"sigma": 1.0}}
    spectrum.pop("reduction")
    softmax = spectrum | {"learning": {"rule": "spectrum-softmax"}, "label": {"classes": ["p", "q"]}}
    three: dict[str, Any] = {"classes": ["p", "q", "r"]}
    vectors = [[0.0, 1.0], [1.0, 0.5], [-1.0, 0.0]]
    tables = {"vectors": vectors, "weights": [[1.0], [-2.0], [0.5]], "bias": [0.25]}
    frozen: dict[str, Any] = {
        "name": "flow",
        "input": {"dim": 2},
        "kernel": {"gamma": 0.5, "function": "polynomial"},
        "learning": {"rule": "frozen"},
        "expansion": tables,
    }
    paired = frozen | {
        "label": three,
        "kernel": {"gamma": 0.5},
        "expansion": tables
        | {
            "weights": [[1.0, 2.0], [-1.0, 1.0], [0.5, -1.0]],
            "bias": [0.1, 0.2, 0.3],
            "decision": "ovo_vote",
            "support_class": [0, 1, 2],
        },
    }
    posterior = frozen | {
        "kernel": {"sigma": 1.0},
        "learning": {"rule": "nystrom"},
        "expansion": tables | {"noise": 0.5, "prior_variance": 2.0, "label_variance": 0.25},
    }
    batch = {**plain, "input": {"columns": ["a", "b"]}, "learning": {"rule": "ls-svm"}}
    streaming: dict[str, Any] = {
        "name": "flow",
        "input": {"dim": 2},
        "kernel": {"sigma": 1.0},
        "learning": {"rule": "nystrom-rls", "samples": 16},
        "reduction": {"n_max": 4},
    }
    choosing = streaming | {"basis": {"method": "efvs"}}
    tracking: dict[str, Any] = {
        "name": "flow",
        "input": {"dim": 2},
        "label": {"classes": ["n", "y"]},
        "kernel": {"sigma": 1.0},
        "learning": {"rule": "okfeb", "features": 3},
        "reduction": {"n_max": 6},
    }
    monitoring = {"name": "flow", "input": {"dim": 2}, "novelty": {}}
    recursive = tracking | {"subspace": {"update": "rls"}}
    raw = {"channels": ["a", "b"], "periods": [24]}
    forecast = {"name": "flow", "learning": {"rule": "nlms"}, "label": {"column": "a"}, "signal": raw}
    spectra = forecast | {"signal": raw | {"window": 16, "features": ["mean"], "rate": 100.0, "bands": [[1.0, 30.0]]}}
    windows = forecast | {"signal": raw | {"window": 16, "features": ["mean", "std"]}}
    counted = forecast | {"precision": "int16", "signal": raw | {"max_abs": 100.0, "resolution": 0.02}}
    changes: list[tuple[dict[str, Any], str | None, str, Any]] = [
        (full, None, "precision", "float32"),
        (full, "input", "columns", ["a", "b", "c"]),
        (full, "input", "max_abs", 5.0),
        (full, "input", "standardise", False),
        (full, "input", "clip", 4.0),
        (full, "input", "warmup", 17),
        (full, "input", "horizon", 500),
        (full, "label", "max_abs", 5.0),
        (full, "label", "center", True),
        (full, "label", "gain", True),
        ({**full, "label": {"column": "y", "center": True}}, "label", "horizon", 500),
        (full, "label", "clip", 5.0),
        ({**full, "linear": {}}, "linear", "eta", 0.1),
        ({**full, "mixture": {}}, "mixture", "forgetting", 0.99),
        ({**full, "mixture": {}}, "mixture", "blocks", True),
        ({**full, "mixture": {}}, "mixture", "last", 3),
        ({**full, "label": {"classes": ["no", "yes"]}, "mixture": {}}, "label", "weights", [1.0, 2.0]),
        ({**full, "interval": {}}, "interval", "level", 0.8),
        (full, "input", "outliers", "hold"),
        (full, "input", "missing", "mean"),
        (full, "label", "low", -0.5),
        (full, "label", "high", 0.5),
        (plain, "label", "classes", ["no", "yes"]),
        ({**plain, "label": {}}, "label", "outputs", 2),
        ({**plain, "label": {}}, "label", "columns", ["u", "v"]),
        (full, "kernel", "sigma", 1.0 + 2**-52),
        (plain, "learning", "rule", "fb-krls"),
        (full, "learning", "eta", 0.25),
        (full, "learning", "rho", 1e-9),
        (full, "learning", "step_limit", 0.5),
        (with_rule("qklms"), "learning", "quantisation", 0.5),
        (with_rule("knlms"), "learning", "coherence", 0.6),
        (with_rule("knlms"), "learning", "epsilon", 0.1),
        (with_rule("fb-krls"), "learning", "rule", "sw-krls"),
        (with_rule("krls-t"), "learning", "forgetting", 0.999),
        (with_rule("krls-t"), "learning", "noise", 0.1),
        (with_rule("rls"), "learning", "prior_variance", 10.0),
        (random, "learning", "features", 32),
        (random, "learning", "seed", 1),
        (spectrum, "learning", "block", 2),
        (softmax, "learning", "frequency_eta", 0.25),
        (full, "reduction", "technique", "sup"),
        (full, "reduction", "projection", "ls"),
        (full, "reduction", "n_max", 33),
        (full, "reduction", "ridge", 2e-3),
        (full, "reduction", "ald_threshold", 0.02),
        (with_reduction(technique="lsridge"), "reduction", "penalty", 1e-2),
        (full, "reduction", "when", "before"),
        (full, "reduction", "candidates", "newest"),
        (full, "reduction", "lambda_max", 1e-3),
        (with_reduction(lambda_max=1e-3), "reduction", "removals", 2),
        (full, "reduction", "truncate_below", 1e-3),
        (full, "reduction", "truncate_age", 100),
        (full, "reduction", "tie", "oldest"),
        (full, "reduction", "fading", 0.999),
        (with_rule("fb-krls"), "learning", "relabel", True),
        (frozen, "input", "center", [1.0, 0.0]),
        (frozen, "input", "scale", [1.0, 2.0]),
        (frozen, "kernel", "function", "sigmoid"),
        (frozen, "kernel", "gamma", 0.25),
        (frozen, "kernel", "coef0", 1.0),
        (frozen, "kernel", "degree", 2),
        (frozen | {"kernel": {"function": "rational-quadratic", "gamma": 0.5}}, "kernel", "alpha", 2.0),
        (frozen | {"kernel": {"function": "fourier"}}, "expansion", "offsets", [0.25, 0.0, 0.0]),
        (frozen | {"input": {"dim": 2, "max_abs": 10.0}}, "kernel", "normalise", True),
        (batch, "learning", "ridge", 0.2),
        (batch, "learning", "samples", 65),
        (streaming, "basis", "method", "efvs"),
        (choosing, "basis", "method", "sgma"),
        (choosing, "basis", "candidates", 9),
        (choosing, "basis", "points", 9),
        (choosing, "basis", "tau", 0.1),
        (streaming, "basis", "horizon", 100),
        (streaming, "basis", "cache", False),
        (tracking, "subspace", "update", "hybrid"),
        (tracking, "subspace", "shrinkage", 0.2),
        (tracking, "subspace", "step", "averaged"),
        (tracking, "subspace", "eta", 0.9),
        (tracking, "subspace", "window", 100),
        (recursive, "subspace", "forgetting", 0.9),
        (tracking, "subspace", "budget", "drop"),
        (tracking, "subspace", "fading", 0.9),
        (tracking, "subspace", "insensitivity", 0.1),
        (tracking, "subspace", "censoring", 0.1),
        (tracking, "subspace", "head", "logistic"),
        (monitoring, "learning", "components", 3),
        (monitoring, "input", "sensors", [0, 0]),
        (monitoring, "novelty", "false_alarm_rate", 0.1),
        (monitoring, "novelty", "smoothing", 0.5),
        (monitoring, "novelty", "warmup", 100),
        (monitoring, "novelty", "life", "fixed"),
        (monitoring, "novelty", "commissioning", 700),
        (monitoring, "novelty", "relearn_after", 3),
        (frozen, "expansion", "vectors", [*vectors[:2], [-1.0, 0.125]]),
        (frozen, "expansion", "weights", [[1.0], [-2.0], [0.75]]),
        (frozen, "expansion", "bias", [0.5]),
        (paired, "expansion", "decision", "ovo"),
        (paired, "expansion", "support_class", [0, 0, 2]),
        (paired, "expansion", "break_ties", True),
        (frozen | {"label": {"classes": ["n", "y"]}}, "expansion", "calibration", [[-1.0, 0.5]]),
        (frozen | {"kernel": {"gamma": 0.5}}, "expansion", "distance", "products"),
        (posterior, "expansion", "noise", 0.25),
        (posterior, "expansion", "prior_variance", 3.0),
        (posterior, "expansion", "label_variance", 0.5),
        (forecast, "signal", "channels", ["a"]),
        (forecast, "signal", "max_abs", 50.0),
        (counted, "signal", "resolution", 0.01),
        (forecast, "signal", "lags", [0, 2]),
        (forecast, "signal", "differences", [1]),
        (forecast, "signal", "averages", [3]),
        (forecast, "signal", "periods", [25]),
        (forecast, "signal", "ahead", 2),
        (spectra, "signal", "rate", 90.0),
        (spectra, "signal", "bands", [[1.0, 20.0]]),
        (spectra, "signal", "log", True),
        (windows, "signal", "window", 32),
        (windows, "signal", "hop", 8),
        (windows, "signal", "features", ["mean", "rms"]),
    ]
    fields: set[tuple[str | None, str]] = {(None, "name"), (None, "precision")}
    fields |= {(section, key) for section in sections() for key in keys_of(section)}
    uncounted = {(None, "name"), ("label", "column"), ("input", "dim"), ("input", "formulas"), ("reduction", "force")}
    uncounted |= {("target", key) for key in keys_of("target")}
    uncounted |= {("expansion", "trained")}
    custom_keys = {("kernel", "source"), ("kernel", "kernel"), ("kernel", "max_value")}
    assert {(section, key) for _, section, key, _ in changes} == fields - uncounted - custom_keys, "no change here"

    @functools.cache
    def hash_of_text(text: str) -> str:
        return str(identity(make_spec(json.loads(text))).config_hash)

    def hash_of(content: Any) -> str:
        return hash_of_text(json.dumps(content))

    hashes = set()
    for base, section, key, value in changes:
        section_of = base.get(section, {}) if section else {}
        changed = {**base, key: value} if section is None else {**base, section: {**section_of, key: value}}
        assert hash_of(changed) != hash_of(base), f"{section}.{key}"
        hashes |= {hash_of(changed), hash_of(base)}
    for own, most in ((rational_quadratic, 1.0), (rational_quadratic, 2.0), (products, 2.0)):
        named = {"function": "custom", "source": "custom_kernels.py", "kernel": own.name, "max_value": most}
        made = identity(make_spec({**frozen, "input": {"dim": 2, "max_abs": 0.5}, "kernel": named}, custom=own))
        assert str(made.config_hash) not in hashes
        hashes.add(str(made.config_hash))
    content = make_spec(full).model_dump(mode="json")
    assert hash_of(content) == hash_of(full)
    # what the model is called does not count, but what a column is called; a default may be written out or left out
    assert hash_of({**content, "name": "other"}) in hashes
    assert hash_of({**content, "label": {**content["label"], "column": "z"}}) not in hashes
    assert hash_of(BASE) == hash_of(make_spec(BASE).model_dump())


@pytest.mark.parametrize("rule", ["frozen", "klms", "nlms"])
def test_specs_of_int16_are_equal_whatever_was_asked_of_them(rule: str) -> None:
    """Their scales are computed when they are needed, and are arrays: comparing two of them raised ValueError, and so did the
    snapshot of a second model."""
    content: dict[str, Any] = {
        "name": "m",
        "precision": "int16",
        "input": {"dim": 2, "max_abs": [4.0, 8.0]},
        "learning": {"rule": rule},
    }
    if rule == "frozen":
        content["expansion"] = {"vectors": [[1.0, 0.5]], "weights": [[1.0]], "bias": [0.0]}
    else:
        content["label"] = {"max_abs": 4.0}
    if rule != "nlms":
        content["kernel"] = {"sigma": 1.0}
    first, second = make_spec(content), make_spec(content)
    assert first.config and first == second and hash(first) == hash(second)
    assert pickle.loads(pickle.dumps(first)) == first and make_spec(first.model_dump(exclude_unset=True)) == first
    assert first != make_spec(content | {"name": "n"})
    if rule != "frozen":
        assert snapshot.save(HostModel(first)) == snapshot.save(HostModel(second))


@pytest.mark.in_turn(18)
@pytest.mark.parametrize("model", MODELS, ids=" ".join)
def test_what_a_spec_holds_makes_it_again(model):
    """int16 behind [signal] was refused, and an int16 qklms."""
    content = content_of(*model)
    if content is None:
        pytest.skip("the rule has no such stage")
    spec = make_spec(content)
    for how in ({}, {"mode": "json"}, {"exclude_unset": True}):
        assert make_spec(spec.model_dump(**how)) == spec


def test_formulas_are_of_columns_or_of_channels():
    named = {"name": "m", "input": {"columns": ["a", "a = b"], "formulas": ["a = b = 2 * c", "a = 3 * d"]}}
    spec = make_spec(named)
    assert spec.formulas == {1: "2 * c", 0: "3 * d"}
    assert make_spec(tomllib.loads(spec.to_toml(complete=True))).formulas == spec.formulas
    for wrong in (["c = 1"], ["a = 1", "a = 2"], ["a=1"], ["a = \n"], "a = 1"):
        with pytest.raises(UserError, match=r"\[input\] formulas"):
            make_spec({"name": "m", "input": {"columns": ["a"], "formulas": wrong}})
    with pytest.raises(UserError, match=r"\[input\] formulas"):
        make_spec({"name": "m", "input": {"dim": 1, "formulas": ["a = 1"]}})
    raw = {"channels": ["a"], "max_abs": 1.0, "window": 4, "features": ["mean"]}
    signal = make_spec({"name": "m", "input": {"formulas": ["a = 2 * c"]}, "signal": raw})
    assert signal.formulas == {0: "2 * c"} and signal.inner.formulas == {}


WORDS: dict[tuple[str, str], Iterable[str]] = {
    ("learning", "rule"): rules(),
    ("reduction", "technique"): TECHNIQUES,
    ("reduction", "projection"): PROJECTIONS,
    ("kernel", "function"): KERNEL_RULES,
    ("target", "name"): CPUS,
}


@pytest.mark.parametrize("place", WORDS)
def test_a_word_of_another_key_is_told_with_its_key(place: tuple[str, str]) -> None:
    """What is registered under one key is recognised under every other."""
    section, key = place
    for word in {word for words in WORDS.values() for word in words} - set(WORDS[place]):
        told = refusal(merged(**{section: {key: word}}))
        there = re.search(r"\('(.*)' is a value of \[(.*)\] (.*)\)$", told)
        assert there and there[1] == word and word in WORDS[there[2], there[3]], told


@pytest.mark.parametrize("window", [{}, {"window": 64, "hop": 32, "features": ["rms"]}])
def test_a_time_is_so_many_rows(window):
    signal = {"channels": ["a"], "max_abs": 1.0, "rate": 64.0} | window
    second = 2 if window else 64

    def novelty_of(**keys):
        return make_spec({"name": "m", "signal": signal, "novelty": keys}).novelty

    found = novelty_of(warmup="90 s", commissioning="8 h", relearn_after="never")
    assert (found.warmup, found.commissioning, found.relearn_after) == (90 * second, 8 * 3600 * second, 2**24)
    assert novelty_of(relearn_after="1.5 min").relearn_after == 90 * second
    for wrong, said in (
        ("soon", 'must be a number of rows, or a time such as "90 s"'),
        ("400 d", "less than or equal to"),
        ("0 s", "greater than or equal to 2"),
    ):
        with pytest.raises(UserError, match=re.escape(said)):
            novelty_of(commissioning=wrong)
    with pytest.raises(
        UserError,
        match=re.escape(
            "[novelty] warmup is '90 s', but the number of rows per second is not known; give a number of rows, or add [signal] rate"
        ),
    ):
        make_spec({"name": "m", "input": {"dim": 2}, "novelty": {"warmup": "90 s"}})


def test_alarms_are_of_the_monitor_alone():
    """Whatever else names [novelty], an empty one too, is told of gmm: no alarm may be lost without a word."""
    base = {"name": "m", "input": {"dim": 2}}
    for rule in ("okfeb", "klms"):
        for novelty in ({}, {"warmup": 500}, {"life": "fixed"}):
            told = refusal(base | {"kernel": {"sigma": 1.0}, "learning": {"rule": rule}, "novelty": novelty})
            assert_is_one_sentence(told, f"[novelty] is for monitors, whose rule is gmm; {rule} raises no alarms")
    for section, keys in (
        ("kernel", {"sigma": 1.0}),
        ("subspace", {"fading": 0.9}),
        ("reduction", {"n_max": 8}),
        ("learning", {"features": 4}),
        ("label", {"column": "y"}),
    ):
        told = refusal(base | {"novelty": {}, section: keys})
        assert_is_one_sentence(told, f"[{section}]")
        assert told.endswith("(no rule is named, and [novelty] selects gmm)"), told
