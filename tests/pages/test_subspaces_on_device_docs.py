"""docs/subspaces-on-device.md says what the C takes and has, what was measured, and what its example prints."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pykernel.algorithms.subspace.okfeb import OKFEB
from pykernel.cli.app import main
from pykernel.gen.project import build
from pykernel.host.model import HostModel
from pykernel.spec.families.subspace import (
    BUDGETS,
    DEFAULT_ALD_THRESHOLD,
    DEFAULT_ETA,
    LEAST_ALD_THRESHOLD,
    UPDATES,
)
from pykernel.spec.model import load_spec, make_spec
from tests.support.pages import blocks, commands_print, table, text_of

SubspaceStatus = OKFEB["real"].status

PAGE = text_of("subspaces-on-device.md")


def spec_of(**sections: Any) -> Any:
    content: dict[str, Any] = {"name": "m", "input": {"dim": 3, "max_abs": 10.0}, "kernel": {"sigma": 1.0}}
    content["learning"] = {"rule": "okfeb", "features": 4} | sections.pop("learning", {})
    content["reduction"] = {"n_max": 7, "force": True} | sections.pop("reduction", {})
    return make_spec(content | sections)


# --------------------------------------------------------------------------------------------------- what there is


def test_every_function_and_no_other_is_in_the_table() -> None:
    named = {name for row in table(PAGE, "## The functions") for name in re.findall(r"NAME_(\w+)\(", row[0])}
    assert named == {entry.name for program in OKFEB.values() for entry in program.entries}


def test_every_status_is_in_the_table() -> None:
    rows = [(row[0].strip("`"), int(row[1].replace("−", "-"))) for row in table(PAGE, "## Statuses")]
    assert rows == [(status.name, int(status)) for status in sorted(SubspaceStatus, key=lambda s: (s < 0, abs(s)))]


def test_numbers_of_the_text_are_those_of_the_code() -> None:
    text = " ".join(PAGE.split())
    assert len({DEFAULT_ALD_THRESHOLD, LEAST_ALD_THRESHOLD["float32"]}) == 1
    assert f"smallest allowed `ald_threshold` in float32 is {DEFAULT_ALD_THRESHOLD:g}, which is the default" in text
    for name, eta in DEFAULT_ETA.items():
        (row,) = (row for row in table(PAGE, "**`step`**") if row[0] == f"`{name}`")
        assert f"({eta:g})" in row[1]
    assert math.ceil(math.log(0.5) / math.log(0.99)) == 69 and "halves in 69 samples" in text


# --------------------------------------------------------------------------------------------------- what it takes

HEADS: dict[str, dict[str, Any]] = {
    "none": {},
    "one number": {"label": {"column": "y"}},
    "three numbers, forgetting": {"label": {"outputs": 3}, "learning": {"forgetting": 0.99}},
    "two classes": {"label": {"classes": ["a", "b"]}},
    "logistic": {"label": {"classes": ["a", "b", "c"]}, "subspace": {"head": "logistic"}},
}
OPTIONS: tuple[dict[str, Any], ...] = (
    {},
    {"subspace": {"fading": 0.99, "censoring": 0.5}},
    {"subspace": {"step": "decreasing"}, "input": {"columns": ["a", "b", "c"], "center": [1.0, 2.0, 3.0]}},
    {"subspace": {"step": "averaged", "insensitivity": 0.1}},
)


def words(cell: str, **letters: int) -> int:
    text = re.sub(r"([\w)]) (?=\()", r"\1 * ", cell)
    text = re.sub(r"([\w)]) (?=[A-Za-z])", r"\1 * ", text)
    found = eval(text, {"__builtins__": {}}, letters)
    assert float(found).is_integer()
    return int(found)


@pytest.mark.exhaustive
@pytest.mark.in_turn(36)
@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("update", UPDATES)
def test_memory_is_as_the_formulas_say(update: str, budget: str) -> None:
    formulas = [(state, work) for _, state, work in table(PAGE, "## Memory")]
    assert len(formulas) == 12
    tried = [(head, {}) for head in HEADS.values()] + [({}, option) for option in OPTIONS[1:]]
    for head, option in tried:
        subspace = {"update": update, "budget": budget, **head.get("subspace", {}), **option.get("subspace", {})}
        if update == "rls":
            subspace.pop("step", None)
        sections = {**head, **option, "subspace": subspace}
        spec = spec_of(**sections)
        labels = bool(head)
        ridge = labels and subspace.get("head") != "logistic"
        applies = (
            True,
            budget == "exact",
            update == "hybrid",
            update == "nonparametric",
            update == "rls",
            spec.subspace.fading < 1,
            subspace.get("step") in ("decreasing", "averaged"),
            spec.subspace.censoring > 0,
            ridge,
            ridge and update == "rls",
            ridge and spec.learning.forgetting < 1,
            labels and not ridge,
        )
        letters = {"D": 3, "B": 7, "r": 4, "Y": spec.outputs}
        state, work = (
            sum(words(row[side], **letters) for row, use in zip(formulas, applies, strict=True) if use)
            for side in (0, 1)
        )
        figures = build(spec).figures
        assert (figures["state_bytes"], figures["work_bytes"]) == (4 * state, 4 * work), sections
        assert figures["const_bytes"] == (24 if spec.input.center else 0)


# ------------------------------------------------------------------------------------------------- what it says of use


@pytest.mark.in_turn
@pytest.mark.parametrize("subspace", [{}, {"fading": 0.98}, {"budget": "drop"}], ids=str)
def test_scores_and_features_of_a_state_are_right_to_5e_4_in_float32(subspace: dict[str, Any]) -> None:
    gram, host = pytest.importorskip("pykernel.bases.gram"), pytest.importorskip("pykernel.training.subspace")
    rng = np.random.default_rng(0)
    x = (rng.normal(size=(6000, 3)) + np.arange(6000)[:, None] / 1000).astype(np.float32)
    for sigma in (1.0, 5.0):
        spec = spec_of(subspace=subspace, kernel={"sigma": sigma}, reduction={"n_max": 32})
        model = HostModel(spec)
        model.update(x)
        n = int(model.memory.field("n")[0])
        v, a = (model.memory.field(name)[:n].astype(float) for name in ("v", "a"))
        exact = host.HostSubspace(gram.MercerKernel.of(spec), v, a, spec.subspace.shrinkage)
        rows = x[-500:]
        np.testing.assert_allclose(model.novelty(rows), exact.score(rows), rtol=0, atol=5e-4)
        z = model.ask("features", rows)[0].astype(float)
        other = exact.features(rows, triangular=True)
        np.testing.assert_allclose(z @ z.T, other @ other.T, rtol=0, atol=5e-4)


# ------------------------------------------------------------------------------------------------------ its example


def test_the_specs_of_the_page_are_specs(tmp_path: Path) -> None:
    found = [(file, text) for file, language, text in blocks(PAGE) if language == "toml"]
    assert [file for file, _ in found] == ["follow.toml"]
    for file, text in found:
        (tmp_path / file).write_text(text)
        load_spec(tmp_path / file)


@pytest.mark.exhaustive
def test_the_example_prints_what_the_page_says(tmp_path: Path) -> None:
    pytest.importorskip("scipy")
    assert commands_print(PAGE, tmp_path, "cortex-m4f") == 1


@pytest.mark.exhaustive
def test_a_check_counts_the_instructions_of_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("unicorn")
    pytest.importorskip("ziglang")
    (command,) = (text.split() for _, language, text in blocks(PAGE) if language == "sh" and "follow.toml" in text)
    (spec,) = (text for file, _, text in blocks(PAGE) if file == "follow.toml")
    (tmp_path / "follow.toml").write_text(spec)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as stopped:
        main([*command[1:], "--json"])
    assert stopped.value.code == 0
    (found,) = json.loads(capsys.readouterr().out)["check"]
    assert found["equal"]
    (said,) = (text for _, language, text in blocks(PAGE) if language == "text" and "cortex-m4f" in text)
    assert re.findall(r"cortex-m4f +(\w+)", said) == found["calls"]
    for name in found["calls"]:
        counts = [found[name][key] for key in ("min", "median", "max", "worst", "bound")]
        expected = ["-" if count is None else f"{count:,.0f}" for count in counts]
        assert re.search(rf"cortex-m4f +{name} +" + " +".join(expected), said), name
