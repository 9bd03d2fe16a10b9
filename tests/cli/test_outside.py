"""A recording that is unlike that of the training: the rows are counted, the promise is compared, codes are no inputs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pykernel.spec.model import load_spec


def write(path: str, x: np.ndarray, y: np.ndarray) -> None:
    np.savetxt(path, np.column_stack([x, y]), delimiter=",", header="a,b,y", comments="", fmt="%.6g")


@pytest.mark.parametrize("kernel", ["gaussian", "linear"])
def test_rows_outside_of_the_training_are_told_with_what_becomes_of_them(
    kernel: str, tmp_path: Path, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    x = rng.uniform([0, 10], [1, 20], (600, 2))
    y = 3 * x[:, 0] + np.sin(x[:, 1]) + 0.05 * rng.normal(size=600)
    write("train.csv", x[:300], y[:300])
    width = [] if kernel == "linear" else ["--set", "kernel.sigma=1"]
    words = [
        "--label",
        "y",
        "--set",
        "training.model=krr",
        "--set",
        f"kernel.function={kernel}",
        *width,
        "--set",
        "training.ridge=0.01",
        "-n",
        "20",
        "-o",
        "m.toml",
    ]
    assert run("fit", "train.csv", *words)[0] == 0
    trained = load_spec("m.toml").expansion.trained
    assert np.allclose(trained.low, x[:300].min(axis=0), rtol=1e-5) and np.allclose(
        trained.high, x[:300].max(axis=0), rtol=1e-5
    )
    write("usual.csv", x[300:], y[300:])
    code, out, err = run("simulate", "m.toml", "usual.csv")
    assert code == 0 and "outside" not in out + err
    far = x[300:].copy()
    far[:100, 0] += 1.08  # beyond the range, but not refused: half of it more is accepted; the next ones are
    far[100:130, 0] += 5
    far[130:135, 1] = -9999
    write("far.csv", far, y[300:])
    code, out, err = run("simulate", "m.toml", "far.csv", "--json")
    told = "\n".join(json.loads(out)["warnings"])
    assert (
        code == 0
        and "input 0" not in told
        and told.startswith("130 of 300 rows lie outside the range of the training data")
    )
    assert (
        f"a reaches {far[:130, 0].max():.6g} here, but lay between {trained.low[0]:g} and {trained.high[0]:g} in training"
        in told
    )
    refused = int((~load_spec("m.toml").accepts(far[:130])).sum())
    assert ("are answered nevertheless" if kernel == "linear" else f"{refused} of them get no answer") in told
    assert (refused == 0) == (kernel == "linear") and refused < 130
    # a plan's promise beside the error of these rows
    here = json.loads(run("simulate", "m.toml", "usual.csv", "--json")[1])["all"]["rmse"]["model"]
    text = (
        Path("m.toml").read_text().replace("trained = {", f'trained = {{"promise" = [{here:.4g}, {0.1 * here:.4g}], ')
    )
    Path("m.toml").write_text(text)
    for data, said in (("usual.csv", ""), ("far.csv", ": these rows are unlike the training rows")):
        line = run("simulate", "m.toml", data)[1].splitlines()[-1]
        assert f"over all rows, where {here:.4g} ± " in line and f" was promised{said}" in f"{line};"


@pytest.mark.exhaustive
def test_labels_in_small_units_are_scored_like_others(
    tmp_path: Path, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In Pa or Wh they are beyond the default limit: ``fit`` and ``plan`` write another, with which the model may learn, too."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    x = rng.uniform(0, 1, (600, 2))
    y = 1e7 * (np.sin(3 * x[:, 0]) * x[:, 1] + 0.02 * rng.normal(size=600))
    write("d.csv", x, y)
    fit = ["fit", "d.csv", "--label", "y", "--set", "training.model=krr", "-n", "16", "-o"]
    plan = ["plan", "d.csv", "--label", "y", "--trials", "2", "--only", "rls,frozen"]
    assert run(*fit, "m.toml")[0] == run(*fit, "i.toml", "--set", "precision=int16")[0] == run(*plan)[0] == 0
    for spec in ("m.toml", "i.toml", "pykernel-plan/planned.toml"):
        code, out, err = run("simulate", spec, "d.csv", "--json")
        report = json.loads(out)
        assert (
            code == 0
            and report["all"]["scored"] + report["unscored"]["inputs"] >= 599
            and not report["unscored"]["labels"]
        ), err
        assert report["all"]["rmse"]["model"] < 0.7 * report["all"]["rmse"]["running mean"]
    Path("small.toml").write_text('name = "m"\n[input]\ncolumns = ["a", "b"]\n[label]\ncolumn = "y"\nmax_abs = 1e6\n')
    code, out, err = run("simulate", "small.toml", "d.csv")
    assert code == 0 and "labelled rows are not scored: y is " in " ".join(err.split()), err
