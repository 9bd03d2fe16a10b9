"""pykernel fit --set training.model=trained: what is written is what was trained, limits are kept, and an interrupt keeps the best."""

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
from tests.cli.test_fit import samples, write, write_both
from tests.support.reports import without

pytest.importorskip("sklearn")
QUICK = ("--set", "training.model=trained", "--set", "training.ridge=1e-4", "--set", "training.cv=3")


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[np.ndarray, np.ndarray]:
    x, y, _ = write_both(tmp_path, 120)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("pykernel.estimators.trained.vectors.STEPS", 60)
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
        "-n",
        "8",
        "--hold-out",
        "0.25",
        "--set",
        f"precision={precision}",
    )
    spec = load_spec("flow.toml")
    assert spec.precision == precision and report["vectors"] == len(spec.expansion.vectors) == 8  # type: ignore[attr-defined]
    assert build(spec).figures["const_bytes"] == report["flash_bytes"]
    errors, found = report["errors"], np.asarray(HostModel(spec).predict(x), float).ravel()
    assert np.sqrt(np.square(found - y).mean()) < 0.5 * y.std()
    assert errors["cross_validated"] < report["simple"]["linear model"]["rmse"] < without(report) and errors[
        "held_out"
    ] < without(report)
    assert errors["corrected"] >= errors["cross_validated"]
    assert report["chosen"]["ridge"] == 1e-4 and report["candidates"][0]["risk"] == min(
        each["risk"] for each in report["candidates"]
    )


@pytest.mark.exhaustive
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
        (["--set", "kernel.sigma=1"], "--set kernel.sigma does not apply to --set training.model=trained"),
        (["--set", "training.method=sgma"], "--set training.method does not apply to --set training.model=trained"),
        (
            ["--set", "kernel.function=laplacian"],
            "--set kernel.function is laplacian; --set training.model=trained has only the gaussian kernel",
        ),
        (["-n", "500"], "--n-max is 500; it must be from 1 to 120"),
        (
            ["--set", "training.cv=kept"],
            "--set training.cv is 'kept'; with --set training.model=trained it must be a number of folds",
        ),
        (["--set", "training.loss=hinge"], "--set training.loss is 'hinge'; it must be squared or absolute"),
        (["--flash", "20"], "but a model with one vector of 2 inputs"),
    ],
)
def test_what_is_not_of_this_model_is_refused(table: Any, run: Any, options: list[str], sentence: str) -> None:
    code, _, err = run("fit", "flow.csv", "--label", "y", "-o", "m.toml", "--set", "training.model=trained", *options)
    assert code == 2 and sentence in " ".join(err.split()) and not Path("m.toml").exists()


def test_a_loss_is_of_trained_vectors_alone(table: Any, run: Any) -> None:
    code, _, err = run("fit", "flow.csv", "--label", "y", "-o", "m.toml", "--set", "training.loss=absolute")
    assert code == 2 and "--set training.loss applies only to --set training.model=trained" in " ".join(err.split())
    code, _, err = run("fit", "kinds.csv", "--label", "y", "-o", "m.toml", *QUICK, "--set", "training.loss=absolute")
    assert code == 2 and "--set training.loss is for numbers" in " ".join(err.split())


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
    assert code == 130 and "interrupted; m.toml holds the best model so far" in " ".join(err.split())
    x, y = table
    found = np.asarray(HostModel(load_spec("m.toml")).predict(x), float).ravel()
    assert np.sqrt(np.square(found - y).mean()) < 0.6 * y.std()


def test_a_linear_model_that_is_as_good_is_told(table: Any, run: Any) -> None:
    x, _ = table
    write(Path("line.csv"), x, x @ [1.0, 0.001])
    assert any(
        "a linear model is as good" in each for each in fit(run, "line.csv", "--label", "y", "-o", "m.toml")["warnings"]
    )


# ------------------------------------------------------------------------------------------------ without --model


@pytest.fixture
def quick(table: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A few candidates; what is tested is who is taken."""
    train = vectors.train
    monkeypatch.setattr(vectors, "train", lambda *a, **k: train(*a, **k | {"ridges": (1e-4,), "starts": 1}))


def default(run: Any, *arguments: str) -> dict[str, Any]:
    code, out, err = run("fit", *arguments, "--json")
    assert code == 0, err
    return dict(json.loads(out)) | {"err": err}


@pytest.mark.exhaustive
@pytest.mark.parametrize("kind", ["numbers", "classes"])
def test_where_vectors_are_limited_the_better_ones_are_taken(quick: Any, run: Any, kind: str) -> None:
    """Of four inputs two mean nothing: among rows there are no four vectors that know."""
    x = np.random.default_rng(0).uniform(-2, 2, (240, 4))
    y = np.sin(2 * x[:, 0]) + x[:, 1]
    write(Path("t.csv"), x, y if kind == "numbers" else ["low" if each < 0 else "high" for each in y], "a,b,c,d,y")
    reports = {}
    for name, words in {
        "moved": ["--set", "training.model=trained"],
        "rows": ["--set", "kernel.sigma=1,2,4,8"],
        "both": [],
    }.items():
        reports[name] = default(
            run,
            "t.csv",
            "--label",
            "y",
            "-n",
            "6",
            "--hold-out",
            "0.2",
            "-o",
            f"{name}.toml",
            "--set",
            "name=m",
            *words,
        )
    found = reports["both"]
    other, taken = found["instead"][0], reports["moved"]
    assert found["model"] == taken["model"] == "trained" and found["errors"] == taken["errors"]
    both, moved = (load_spec(f"{name}.toml").model_dump(exclude={"training"}) for name in ("both", "moved"))
    assert both == moved
    assert other["model"] == reports["rows"]["model"] and other["vectors"] == 6 and other["better"] < -2
    assert other["error"] > taken["errors"]["cross_validated"]
    # on rows that neither saw
    assert reports["rows"]["errors"]["held_out"] > taken["errors"]["held_out"]


def test_who_is_as_good_is_not_taken_but_told(quick: Any, run: Any) -> None:
    x, _ = samples(120)[:2]
    write(Path("line.csv"), x, x @ [1.0, 0.5] + np.random.default_rng(0).normal(0, 1, len(x)))
    code, out, err = run("fit", "line.csv", "--label", "y", "-n", "6", "-o", "m.toml")
    told = " ".join(out.split())
    assert code == 0 and " standard errors of the difference" in told, err
    assert " instead 6 vectors with --set training.model=trained: " in told
    assert "; 6 hidden units with --set training.model=network: " in told


def test_who_says_how_vectors_are_chosen_gets_these(quick: Any, run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pykernel.workflows.beside.TrainedJob", None)  # it would be called
    for words in (
        ["--set", "kernel.sigma=1"],
        ["--set", "training.method=efvs"],
        ["--set", "training.ridge=0.1"],
        ["--set", "kernel.function=laplacian"],
        ["--set", "training.cv=4"],
    ):
        report = default(run, "flow.csv", "--label", "y", "-n", "4", "-o", "m.toml", "--force", *words)
        assert report["model"] == "ls-svm" and report["instead"] == []
    assert default(run, "flow.csv", "--label", "y", "-o", "m.toml", "--force")["instead"] == []  # it is small


@pytest.mark.exhaustive
@pytest.mark.parametrize("surely", [2.0, -100.0])
def test_in_place_of_a_large_model_a_few_vectors_are_taken_unless_they_are_surely_worse(
    surely: float, quick: Any, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pykernel.workflows.beside.LARGE", 1000)
    monkeypatch.setattr("pykernel.workflows.beside.SURELY", surely)
    report = default(run, "flow.csv", "--label", "y", "-o", "m.toml")
    others = {each["model"]: each for each in report["instead"]}
    if surely > 0:
        assert (
            report["model"] != "ls-svm"
            and report["vectors"] == 16
            and others["ls-svm"]["flash_bytes"] > 2 * report["flash_bytes"]
        )
        assert others["ls-svm"]["better"] <= surely and not any(
            "bytes of flash, with an error of" in each for each in report["warnings"]
        )
        return
    assert report["model"] == "ls-svm" and report["basis"] is None and {*others} == {"trained", "network"}
    least = min(others.values(), key=lambda each: each["error"])
    told = f"--set training.model={least['model']} with 16 vectors takes {least['flash_bytes']:,}, with an error of {least['error']:.4g}"
    assert told in " ".join(report["warnings"][-1].split())
    asked = default(run, "flow.csv", "--label", "y", "--set", "training.model=trained", "-o", "t.toml")
    assert asked["flash_bytes"] == others["trained"]["flash_bytes"]
    assert asked["errors"]["cross_validated"] == pytest.approx(others["trained"]["error"])
