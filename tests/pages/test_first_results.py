"""What README and docs/reference/rules.md say of the defaults is what was measured."""

from __future__ import annotations

import re
import tomllib

import numpy as np
import pytest

from benchmarks.device import default_cost, peers
from benchmarks.host import advice_figures, blas_kernels, first_faults, first_results, held_back
from benchmarks.provenance import ROOT
from benchmarks.tables import load
from pykernel.spec.model import make_spec
from tests.support.pages import stand, text_of

README = (ROOT / "README.md").read_text(encoding="utf-8")
ONLINE = (ROOT / "docs" / "reference/rules.md").read_text(encoding="utf-8")
KINDS = ("numbers", "classes")
WHY = (ROOT / "docs" / "guide/when-it-is-bad.md").read_text(encoding="utf-8")


def test_costs_in_the_readme_are_the_measured_ones() -> None:
    """And so are those beside other generators: one compiler, with its version, built all code of a table."""
    costs = load(default_cost.DATA / "default-cost.csv")
    made = {"default costs": default_cost.table(costs), "readme costs": default_cost.table(costs, default_cost.README)}
    assert stand(made)
    rows = load(peers.DATA / "peers.csv")
    # the README's ranges are found by these names
    assert blas_kernels.spreads(load(blas_kernels.FILE)).keys() <= {(row["data"], row["model"]) for row in rows}
    assert {row["compiler"].split()[0] for row in rows} == {"gcc"} and stand({"readme peers": peers.short(rows)})


def test_int16_in_the_readme_is_the_pages() -> None:
    page = (ROOT / "docs" / "guide/int16.md").read_text(encoding="utf-8")
    ((real, whole),) = re.findall(
        r"^\| SVR 64 x 8, differences \| cortex-m0plus, gcc -O2 \| instructions \| ([\d,]+) \| ([\d,]+) \|$",
        page,
        re.MULTILINE,
    )
    assert f"predicts in {whole} instructions instead of {real} in float32." in " ".join(README.split())
    assert f"predicts in {whole} instructions instead of {real} in float32." in " ".join(page.split())


def test_ratios_on_the_page_are_the_measured_ones() -> None:
    numbers = first_results.ratios("spec without a rule", False, first_results.SIMPLE)
    classes = first_results.ratios("spec without a rule", True, first_results.SIMPLE)
    assert len(numbers) == 180 and len(classes) == 54
    (row,) = re.findall(r"^\| spec without a rule \| (.*?) \|$", first_results.table(), re.MULTILINE)
    cells = row.split(" | ")
    for found, told in ((numbers, cells[:3]), (classes, cells[3:6])):
        assert [float(each) for each in told] == [
            round(float(each), 2) for each in (np.median(found), np.quantile(found, 0.9), found.max())
        ]
    assert first_results.table() in ONLINE
    # the goals, which do not count the last label, for it is no input: with room for another compiler's rounding, which there is none of
    numbers = first_results.ratios("spec without a rule", False, ("running mean", *first_results.LINEAR))
    assert np.median(numbers) <= 0.92 and np.quantile(numbers, 0.9) <= 1.03 and numbers.max() <= 1.2
    assert np.median(classes) <= 0.825 and np.quantile(classes, 0.9) <= 1.05 and classes.max() <= 1.2
    assert all(row["refused_in_a_row"] == "0" for rows in first_results.read().values() for row in rows.values())


def test_streams_that_chose_nothing_say_what_the_page_says() -> None:
    rows = held_back.measured()
    assert stand(held_back.tables(rows))
    words = " ".join(text_of("benchmarks.md").split())
    own, stored = (
        {kind: np.array([row[name] for row in held_back.ratios(rows, kind == "classes").values()]) for kind in KINDS}
        for name in ("no target", "krls-t, 32 vectors")
    )
    mean, before = (np.exp(np.log(each["numbers"]).mean()) for each in (own, stored))
    worst = own["numbers"].max()
    assert (
        f"error is {mean:.2f} times the error of the best simple predictor (geometric mean), and {worst:.2f} times at worst"
        in words
    )
    assert f"`krls-t` with 32 vectors has a geometric mean of {before:.2f}," in words
    assert (
        f"better than `krls-t` on {(own['numbers'] < stored['numbers']).sum()} of {len(own['numbers'])} streams,"
        in words
    )
    fewer = 1 - np.exp(np.log(stored["classes"] / own["classes"]).mean())
    assert f"`krls-t` makes {100 * fewer:.0f} % fewer errors" in words
    # the goals, set before, which do not count the last label, for it is no input
    others = [
        min(row[name] for name in first_results.SIMPLE if name != "last label")
        for row in held_back.ratios(rows, False).values()
    ]
    assert np.exp(np.log(own["numbers"] / others).mean()) <= 0.77 and (own["numbers"] / others).max() <= 1.05
    told = (
        f"On {len(own['numbers'])} data sets not used for tuning, the default has an error {100 * (1 - mean):.0f} % smaller than"
        f" the best simple model (geometric mean; {100 * (1 - np.median(own['numbers'])):.0f} % in the median)."
    )
    assert told in " ".join(README.split())


@pytest.mark.exhaustive
def test_sizes_of_the_default_are_those_that_are_taken() -> None:
    assert default_cost.sizes() in ONLINE


def test_faults_cost_what_the_page_says() -> None:
    rows = load(first_faults.DATA / "first-faults.csv")
    assert first_faults.table(rows) in ONLINE
    own = [float(row["ratio"]) for row in rows if row["predictor"] == "spec without a rule"]
    assert len(own) == 30 * len(first_faults.FAULTS) and np.median(own) <= 1.05
    # drawn starts have 1.33 to 1.39, over errors without a fault that are larger
    assert np.quantile(own, 0.9) <= 1.45


def test_what_the_page_writes_out_is_what_a_spec_without_a_rule_gets() -> None:
    short, *long = re.findall(r"```toml\n(.*?)```", ONLINE, re.DOTALL)[:3]
    content = tomllib.loads(short)
    label = content["label"]
    for text, more in zip(long, ({}, {"classes": ["no", "yes"]}), strict=True):
        content["label"], written = label | more, tomllib.loads(text)
        whole = {
            name: {**content.get(name, {}), **written.get(name, {})}
            for name in {**content, **written}
            if name != "name"
        }
        assert make_spec(content) == make_spec(whole | {"name": content["name"]})


def test_every_test_of_advice_has_a_section_and_a_picture() -> None:
    for name in advice_figures.CASES:
        assert f"\n## {name[0].upper()}{name[1:]}\n" in WHY
        picture = f"data/advice/{name.replace(' ', '-')}.svg"
        assert picture in WHY and (ROOT / "docs" / picture).is_file()
