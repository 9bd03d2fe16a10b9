"""Nothing in the C is computed in an ``int`` of unknown width: proved from the text, where there is no compiler for AVRs."""

from __future__ import annotations

import tomllib
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from pykernel.dialect import DIM, INT16, Extent, Index, Word
from pykernel.gen.project import build
from pykernel.language import widths
from pykernel.language.ir import Binary, Choice, DialectError, Length, Literal, Local, Parameter, Unary
from pykernel.language.widths import Widths
from pykernel.spec.model import Spec, make_spec
from tests.gen.test_ranges import PRELUDE, Case, Maker
from tests.support.dialect_cases import c_source, load
from tests.support.int_widths import faults
from tests.support.random_specs import INT16_RULES, RULES, random_spec

GOLDEN = Path(__file__).parents[1] / "golden"
NLMS = {
    "name": "line",
    "precision": "int16",
    "input": {"dim": 3, "max_abs": 3.0},
    "label": {"max_abs": 4.0},
    "learning": {"rule": "nlms"},
}


def found_in(spec: Spec, folder: Path) -> list[str]:
    """Faults in a model's files, and in the program that a board gets."""
    project = build(spec)
    files = {Path(name).name: text for name, text in project.files.items() if name.startswith("src/")}
    folder.mkdir(exist_ok=True)
    return faults({name: text for name, text in files.items() if name.endswith((".c", ".h"))}, folder)


# ------------------------------------------------------------------------------------------------- the reader itself


WRONG = {
    "return UNIT * UNIT;": "* is computed in 16 bits, and may be from 16777216",
    "return -UNIT - 30000;": "- is computed in 16 bits, and may be from -34096",
    "return a[0] * a[1];": "* is computed in 16 bits, and may be from -1073709056 to 1073741824",
    "return (int32_t)(a[0] + a[1]);": "+ is computed in 16 bits, and may be from -65536 to 65534",
    "return -a[0];": "- is computed in 16 bits, and may be from -32767 to 32768",
    "return u[0] * u[1];": "* is computed in 16 bits, and may be from 0 to 4294836225",
    "return u[0] - u[1];": "- is computed in 16 bits, and may be from -65535 to 65535",
    "return 1 << k;": "a number of 16 bits is shifted by up to",
    "return (int32_t)(w & 0xFFFFu) + (1 << 15);": "<< is computed in 16 bits, and may be from 32768",
    "return (a[0] < u[0]) ? 1 : 0;": "a number from -32768 becomes one without a sign, of 16 bits",
    "return (k > 0) ? UNIT + UNIT * 9 : 0;": "* is computed in 16 bits, and may be from 36864",
    "return 0xFFFFu + 1u;": "+ is computed in 16 bits, and may be from 65536",
    "return (SIZE + END) > w;": "+ is computed in 16 bits, and may be from 65556",
    "return k + (6 * 6000);": "* is computed in 16 bits, and may be from 36000",
    "int16_t i; for (i = 0; i < 9; i++) { k += i; } return k;": "a narrow variable counts",
}
RIGHT = (
    "return (int32_t)UNIT * UNIT;",
    "return (int32_t)a[0] * (int32_t)a[1];",
    "return k * UNIT + 40000 * 1000;",
    "return (int32_t)(w >> 16) + (3 * UNIT);",
    "return (int32_t)((uint32_t)bytes[0] | ((uint32_t)bytes[1] << 8));",
    "return (int32_t)((w >> 1) ^ (0xEDB88320u & (uint32_t)(0u - (w & 1u))));",
    "for (int32_t i = 0; i < UNIT; i++) { w ^= bytes[i]; } return (w < 5u) ? -1 : UNIT;",
    "return a[UNIT - 1] < -300;",
    "return (a[0] / 7) + (a[1] % 5);",
)
FRAME = """#include <stdint.h>
#define UNIT 4096
#define SIZE 65535u
#define END 21u
int32_t run(const int16_t a[2], const uint16_t u[2], const uint8_t *bytes, int32_t k, uint32_t w);
int32_t run(const int16_t a[2], const uint16_t u[2], const uint8_t *bytes, int32_t k, uint32_t w)
{
    %s
}
"""


@pytest.mark.parametrize("body", WRONG)
def test_what_depends_on_the_width_of_an_int_is_found(body: str, tmp_path: Path) -> None:
    found = faults({"m.c": FRAME % body}, tmp_path)
    assert len(found) >= 1 and WRONG[body] in found[0] and found[0].startswith("m.c:8: ")


@pytest.mark.parametrize("body", RIGHT)
def test_what_does_not_is_let_pass(body: str, tmp_path: Path) -> None:
    assert faults({"m.c": FRAME % body}, tmp_path) == []


# ------------------------------------------------------------------------------------------------------- what is cast


CONFIG = SimpleNamespace(unit=4096, small=3, large=40000)
LINE = 1


def number(value: int, kind: object = Index) -> Literal:
    return Literal(LINE, kind, value)


def parameter(name: str) -> Parameter:
    return Parameter(LINE, Index, name)


def test_an_operator_on_constants_is_cast_where_16_bits_do_not_hold_the_result() -> None:
    made = Widths({"DIM": 9, "N_MAX": 300}, CONFIG)
    unit, small, dim = parameter("unit"), parameter("small"), Length(LINE, Index, DIM)
    rows = Length(LINE, Index, Extent("(N_MAX * (DIM + 1))"))
    local = Local(LINE, Index, "k")

    def needs(op: str, left: object, right: object, kind: object = Index) -> bool:
        return made.needs_width(Binary(LINE, kind, op, left, right))

    assert needs("*", unit, unit) and needs("*", unit, number(8)) and not needs("*", unit, number(7))
    assert needs("+", number(32767), number(1)) and not needs("+", number(32766), number(1))
    assert needs("-", number(-32767), number(1)) and not needs("-", number(-32766), number(1))
    assert not needs("*", local, unit) and not needs("*", unit, local), "a local has 32 bits"
    assert not needs("*", parameter("large"), unit) and not needs("+", number(32768), unit), "C gives 32 bits by itself"
    assert needs("*", parameter("unknown"), number(2)) and not needs("//", parameter("unknown"), number(2))
    assert needs("*", Choice(LINE, Index, local, unit, small), number(8))
    assert not needs("*", Choice(LINE, Index, local, unit, local), number(8))
    assert needs("-", Unary(LINE, Index, "-", unit), number(30000))
    # what was cast has 32 bits, and so has what is computed with it
    assert not needs("*", Binary(LINE, Index, "*", unit, unit), unit)
    assert needs("<<", number(1, Word), local, Word) and not needs("<<", number(65536, Word), local, Word)
    assert needs("+", number(65535, Word), number(1, Word), Word) and needs("-", number(0, Word), number(1, Word), Word)
    assert not needs("+", number(65534, Word), number(1, Word), Word)
    assert not needs("+", rows, dim) and needs("*", rows, number(11))
    assert made.extent_needs_width(Extent("(N_MAX * (N_MAX + 1))")) and not made.extent_needs_width(Extent("N_MAX"))
    assert not Widths({"N_MAX": 100000}, None).extent_needs_width(Extent("N_MAX"))
    assert Widths({"N_MAX": 100000}, None).extent_needs_width(Extent("(N_MAX + 1)"))
    assert Widths({}, None).extent_needs_width(Extent("(N_MAX + 1)"))


CONSTANTS = """
@kernel
def run(s: Whole, c: Given, x: Int16[DIM], y: Int) -> Index:
    k = c.q * c.q + 70000
    s.w[0] = word(c.q * 5000) * 3 + (s.w[1] << (c.q + 1))
    if c.q * 9999 > y:
        k = (c.q if y > 0 else 3) * 12000
    for i in range((len(s.a) + 1) * 7000):
        s.a[0] = 0
    return k - (-c.q * 6000) * 3
"""


def test_sums_and_products_of_constants_are_cast(tmp_path: Path) -> None:
    case = Case(tmp_path, "return 1")
    kernel = load(tmp_path, PRELUDE + CONSTANTS).run
    text, _, _ = c_source([kernel], INT16, case.config)
    assert text.count("(int32_t)M_Q * 5000") == 1 and "(int32_t)M_Q * 9999" in text and "(M_Q * M_Q) + 70000" in text
    assert faults({"m.c": text}, tmp_path) == []
    assert faults({"m.c": text.replace("(int32_t)", "")}, tmp_path) != []


@pytest.mark.parametrize("part", [0, *(pytest.param(i, marks=pytest.mark.exhaustive) for i in range(1, 20))])
def test_random_programs_have_no_bare_int(part: int, tmp_path: Path) -> None:
    for seed in range(12 * part, 12 * part + 12):
        case = Case(tmp_path, Maker(seed).body())
        text, _, _ = c_source([case.kernel], INT16, case.config)
        assert faults({"m.c": text}, tmp_path) == [], seed


def test_the_proof_refuses_what_an_int_of_16_bits_does_not_hold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the printer ever took more for an int: what it does not cast must fit in 16 bits."""
    case = Case(tmp_path, "return c.q * 5000")
    assert case.prove() == (35000, 35000)
    monkeypatch.setattr(widths, "INT_MAX", 2**31 - 1)
    with pytest.raises(DialectError, match="this product is from 35000 to 35000 here; an int of 16 bits cannot hold"):
        case.prove()


# ------------------------------------------------------------------------------------------------------------- models


def test_normalised_lms_multiplies_its_unit_in_32_bits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = make_spec(NLMS)
    assert "line_word((int32_t)LINE_UNIT * LINE_UNIT)" in build(spec).files["src/line.c"]
    assert found_in(spec, tmp_path) == []
    # the negative control: as it was printed before
    monkeypatch.setattr(Widths, "needs_width", lambda self, node: False)
    assert ["16777216" in fault for fault in found_in(spec, tmp_path)] == [True]


@pytest.mark.in_turn(9)
@pytest.mark.parametrize("name", sorted(path.stem for path in GOLDEN.glob("*.toml")))
def test_the_examples_have_no_bare_int(name: str, tmp_path: Path) -> None:
    assert found_in(make_spec(tomllib.loads((GOLDEN / f"{name}.toml").read_text())), tmp_path) == []


@pytest.mark.in_turn(9)
@pytest.mark.parametrize("part", [0, *(pytest.param(i, marks=pytest.mark.exhaustive) for i in range(1, 80))])
@pytest.mark.parametrize("precision", ["int16", "float32"])
def test_random_models_have_no_bare_int(precision: str, part: int, tmp_path: Path) -> None:
    """Every rule; with the snapshot, and what is written by hand."""
    of = INT16_RULES if precision == "int16" else RULES
    count = 2 if precision == "int16" else 1
    for seed in range(count * part, count * part + count):
        spec = random_spec(np.random.default_rng(seed), of[seed % len(of)], precision=precision)
        assert found_in(spec, tmp_path / str(seed)) == [], f"{precision}, seed {seed}"


@pytest.mark.exhaustive
def test_a_snapshot_of_a_little_less_than_64_kib_has_none(tmp_path: Path) -> None:
    """Its size fits in 16 bits, and with its header no more."""
    content = {"name": "big", "input": {"dim": 124, "max_abs": 10.0}, "learning": {"rule": "klms"}}
    content |= {"kernel": {"sigma": 1.0}, "reduction": {"technique": "nt", "n_max": 131, "force": True}}
    spec = make_spec(content)
    assert 65516 <= build(spec).figures["state_bytes"] <= 65535
    assert found_in(spec, tmp_path) == []
