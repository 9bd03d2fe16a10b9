"""pykernel fit --model trained: what is written is what was trained, limits are kept, and an interrupt keeps the best."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pykernel.gen.project import build
from pykernel.host.model import HostModel
from pykernel.spec.model import load_spec
from pykernel.training import vectors
from tests.cli.test_fit import samples, write

pytest.importorskip("sklearn")
QUICK = ("--model", "trained", "--ridge", "1e-4", "--cv", "3")


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[np.ndarray, np.ndarray]:
    x, y, kinds = samples(120)
    write(tmp_path / "flow.csv", x, y)
    write(tmp_path / "kinds.csv", x, [("low", "middle", "high")[k] for k in kinds])
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("pykernel.estimators.trained.vectors.STEPS", 60)
    return x, y


def fit(run: Any, *arguments: str) -> dict[str, Any]:
    code, out, err = run("fit", *arguments, *QUICK, "--json")
    assert code == 0, err
    return dict(json.loads(out))


@pytest.mark.parametrize("precision", ["float32", "int16"])
def test_the_spec_errs_as_the_report_says(table: Any, run: Any, precision: str) -> None:
    x, y = table
    report = fit(
        run, "flow.csv", "--label", "y", "-o", "flow.toml", "-n", "8", "--hold-out", "0.25", "--precision", precision
    )
    spec = load_spec("flow.toml")
    assert spec.precision == precision and report["vectors"] == len(spec.expansion.vectors) == 8  # type: ignore[attr-defined]
    assert build(spec).figures["const_bytes"] == report["flash_bytes"]
    errors, found = report["errors"], np.asarray(HostModel(spec).predict(x), float).ravel()
    assert np.sqrt(np.square(found - y).mean()) < 0.5 * y.std()
    assert errors["cross_validated"] < errors["linear"] < errors["trivial"] and errors["held_out"] < errors["trivial"]
    assert errors["corrected"] >= errors["cross_validated"]
    assert report["taken"]["ridge"] == 1e-4 and report["candidates"][0]["risk"] == min(
        each["risk"] for each in report["candidates"]
    )


def test_the_largest_model_in_so_much_flash(table: Any, run: Any) -> None:
    report = fit(run, "kinds.csv", "--label", "y", "-o", "kinds.toml", "--flash", "300")
    assert report["vectors"] >= 8 and 240 <= report["flash_bytes"] <= 300
    assert report["classes"] == ["high", "low", "middle"] and load_spec("kinds.toml").label.classes == (
        "high",
        "low",
        "middle",
    )


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--sigma", "1"], "--sigma is not of --model trained"),
        (["--basis", "sgma"], "--basis is not of --model trained"),
        (["--plot", "p.png"], "--plot is not of --model trained"),
        (["--kernel", "laplacian"], "--kernel is laplacian; --model trained has the gaussian kernel only"),
        (["-n", "500"], "--n is 500; it must be from 1 to 120"),
        (["--cv", "kept"], "--cv is 'kept'; of --model trained it must be a number of folds"),
        (["--loss", "hinge"], "--loss is 'hinge'; it must be squared or absolute"),
        (["--flash", "20"], "but one vector of 2 inputs"),
    ],
)
def test_what_is_not_of_this_model_is_refused(table: Any, run: Any, options: list[str], sentence: str) -> None:
    code, _, err = run("fit", "flow.csv", "--label", "y", "-o", "m.toml", "--model", "trained", *options)
    assert code == 2 and sentence in " ".join(err.split()) and not Path("m.toml").exists()


def test_a_loss_is_of_trained_vectors_alone(table: Any, run: Any) -> None:
    code, _, err = run("fit", "flow.csv", "--label", "y", "-o", "m.toml", "--loss", "absolute")
    assert code == 2 and "--loss is of --model trained" in " ".join(err.split())
    code, _, err = run("fit", "kinds.csv", "--label", "y", "-o", "m.toml", *QUICK, "--loss", "absolute")
    assert code == 2 and "--loss is of numbers" in " ".join(err.split())


def test_an_interrupt_writes_the_best_so_far(table: Any, run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    train, told = vectors.train, []

    def interrupted(*arguments: Any, **keys: Any) -> Any:
        def tell(part: float) -> None:
            told.append(part)
            if part > 0.5 and not told.count(-1.0):
                told.append(-1.0)
                raise KeyboardInterrupt

        return train(*arguments, **keys | {"tell": tell})

    monkeypatch.setattr(vectors, "train", interrupted)
    code, _, err = run("fit", "flow.csv", "--label", "y", "-o", "m.toml", *QUICK)
    assert code == 130 and "interrupted; m.toml is the best so far" in " ".join(err.split())
    x, y = table
    found = np.asarray(HostModel(load_spec("m.toml")).predict(x), float).ravel()
    assert np.sqrt(np.square(found - y).mean()) < 0.6 * y.std()


def test_a_linear_model_that_is_as_good_is_told(table: Any, run: Any) -> None:
    x, _ = table
    write(Path("line.csv"), x, x @ [1.0, 0.001])
    assert any(
        "a linear model is as good" in each for each in fit(run, "line.csv", "--label", "y", "-o", "m.toml")["warnings"]
    )
