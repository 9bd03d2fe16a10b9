"""pykernel fit --set training.model=svm: what is written is what was trained, limits are kept, and an interrupt keeps the last basis."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pykernel.gen.project import build
from pykernel.host.model import HostModel
from pykernel.spec.model import load_spec
from tests.cli.test_fit import write_both
from tests.support.reports import without

pytest.importorskip("sklearn")
QUICK = ("--set", "training.model=svm", "--set", "training.cv=3")


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[np.ndarray, np.ndarray]:
    x, y, _ = write_both(tmp_path, 160)
    monkeypatch.chdir(tmp_path)
    return x, y


def fit(run: Any, *arguments: str) -> dict[str, Any]:
    code, out, err = run("fit", *arguments, *QUICK, "--json")
    assert code == 0, err
    return dict(json.loads(out))


@pytest.mark.in_turn(9)
@pytest.mark.parametrize("precision", ["float32", "int16"])
def test_the_spec_errs_as_the_report_says(table: Any, run: Any, precision: str) -> None:
    x, y = table
    report = fit(
        run,
        "flow.csv",
        "--label",
        "y",
        "-o",
        "flow.toml",
        "--hold-out",
        "0.25",
        "--set",
        "kernel.sigma=1,3",
        "--set",
        f"precision={precision}",
    )
    spec = load_spec("flow.toml")
    assert spec.precision == precision and report["vectors"] == len(spec.expansion.vectors)  # type: ignore[attr-defined]
    assert build(spec).figures["const_bytes"] == report["flash_bytes"]
    errors, found = report["errors"], np.asarray(HostModel(spec).predict(x), float).ravel()
    assert np.sqrt(np.square(found - y).mean()) < 0.5 * y.std()
    assert errors["cross_validated"] < without(report) and errors["held_out"] < without(report)
    assert len(report["table"]) == 8 and report["table"][0]["press"] == min(each["press"] for each in report["table"])
    assert report["chosen"] == {
        "sigma": report["table"][0]["width"],
        "ridge": pytest.approx(report["table"][0]["ridge"]),
    }
    assert report["rounds"][-1]["vectors"] == report["vectors"] and report["reached"].startswith("with ")


def test_classes_in_so_much_flash(table: Any, run: Any) -> None:
    report = fit(
        run,
        "kinds.csv",
        "--label",
        "y",
        "-o",
        "kinds.toml",
        "--flash",
        "600",
        "--set",
        "kernel.sigma=2",
        "--set",
        "training.ridge=0.1",
    )
    assert report["flash_bytes"] <= 600 and report["support_vectors"] >= report["vectors"] >= 12
    assert report["classes"] == ["high", "low", "middle"] == list(load_spec("kinds.toml").label.classes or ())
    assert report["chosen"] == {"sigma": 2.0, "ridge": pytest.approx(0.1)} and report["errors"]["cross_validated"] < 0.3
    code, out, _ = run(
        "fit",
        "kinds.csv",
        "--label",
        "y",
        "--set",
        "kernel.sigma=2",
        "--set",
        "training.ridge=0.1",
        "-n",
        "6",
        "-o",
        "a.toml",
        *QUICK,
    )
    assert code == 0 and "at most 6 vectors were allowed" in " ".join(out.split())


def test_a_linear_program_in_so_much_flash(table: Any, run: Any) -> None:
    """Of --set training.model=lp only vectors with a weight are written; the limits are those of any model."""
    tried = (
        "--label",
        "y",
        "--set",
        "kernel.sigma=2",
        "--set",
        "training.ridge=0.3,3",
        "--set",
        "training.model=lp",
        "--set",
        "training.cv=3",
        "--json",
    )
    reports = []
    for file, limit in (("kinds", ("--flash", "600")), ("flow", ("-n", "7")), ("flow", ())):
        code, out, err = run("fit", f"{file}.csv", "-o", f"{file}{len(reports)}.toml", *tried, *limit)
        assert code == 0, err
        reports.append(dict(json.loads(out)))
        spec = load_spec(f"{file}{len(reports) - 1}.toml")
        weights = np.array(spec.expansion.weights)  # type: ignore[attr-defined]
        assert len(spec.expansion.vectors) == reports[-1]["vectors"]  # type: ignore[attr-defined]
        assert np.abs(weights).reshape(reports[-1]["vectors"], -1).max(axis=1).min() > 0
        assert reports[-1]["errors"]["cross_validated"] < 0.5 * without(reports[-1])
        assert [cell["ridge"] for cell in reports[-1]["table"]] in (
            [pytest.approx(0.3), 3.0],
            [3.0, pytest.approx(0.3)],
        )
    in_flash, few, free = reports
    assert in_flash["flash_bytes"] <= 600 and in_flash["basis"] is None and in_flash["model"] == "lp"
    assert few["vectors"] <= 7 < free["vectors"] < 160 and "at most 7 vectors were allowed" in few["reached"]


@pytest.mark.parametrize("model", ["svm", "lp"])
@pytest.mark.parametrize(
    "arguments, sentence",
    [
        (
            ("--set", "training.coding=signs"),
            "--set training.coding does not apply to --set training.model=MODEL; leave --set training.coding out",
        ),
        (
            ("--set", "training.loss=squared"),
            "--set training.loss does not apply to --set training.model=MODEL; leave --set training.loss out",
        ),
        (("--set", "training.method=efsv"), "--set training.method=efsv is not known; did you mean 'efvs'"),
        (("--set", "kernel.function=sigmoid"), "the sigmoid kernel is not positive definite"),
        (("--set", "training.ridge=0"), "--set training.ridge holds 0; all numbers must be above zero"),
        (("-n", "0"), "--n-max is 0; it must be from 1 to 160"),
        (("--flash", "30"), "--flash is 30 bytes, but a model with one vector"),
        (
            ("--set", "training.cv=kept"),
            "--set training.cv is 'kept'; with --set training.model=MODEL it must be a number of folds, 2 or more",
        ),
    ],
)
def test_bad_input_is_one_sentence(table: Any, run: Any, model: str, arguments: tuple[str, ...], sentence: str) -> None:
    code, _, err = run(
        "fit", "flow.csv", "--label", "y", "-o", "flow.toml", "--set", f"training.model={model}", *arguments
    )
    assert code == 2 and sentence.replace("MODEL", model) in " ".join(err.split()) and not Path("flow.toml").exists()
