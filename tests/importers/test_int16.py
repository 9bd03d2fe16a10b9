"""What scikit-learn trained, and what ``pykernel fit`` trains, in int16."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_wine
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, Matern, WhiteKernel
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR, LinearSVC, OneClassSVM

from pykernel.cli.app import main
from pykernel.errors import UserError
from pykernel.importers.importing import compare, from_sklearn, read_estimator
from pykernel.spec.model import load_spec

CASES: dict[str, tuple[Any, Any]] = {
    "svr": (SVR(C=100), load_diabetes),
    "laplacian": (KernelRidge(kernel="laplacian", alpha=0.1, gamma=0.1), load_diabetes),
    "gp": (GaussianProcessRegressor(RBF(3.0) + WhiteKernel(), normalize_y=True, optimizer=None), load_diabetes),
    "matern": (GaussianProcessRegressor(Matern(3.0, nu=1.5) + WhiteKernel(), optimizer=None), load_diabetes),
    "rough": (GaussianProcessRegressor(Matern(3.0, nu=0.5) + WhiteKernel(), optimizer=None), load_diabetes),
    "polynomial": (SVR(kernel="poly", degree=3, coef0=1.0, C=10), load_diabetes),
    "polynomial pairs": (SVC(kernel="poly", degree=3), load_digits),
    "ridge": (Ridge(), load_diabetes),
    "pairs": (SVC(break_ties=True, decision_function_shape="ovr"), load_wine),
    "probability": (SVC(probability=True), load_breast_cancer),
    "logistic": (LogisticRegression(max_iter=300), load_wine),
    "hinge": (LinearSVC(), load_wine),
    "one class": (OneClassSVM(nu=0.1), load_breast_cancer),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.in_turn
def test_an_imported_model_is_within_its_bound(name: str) -> None:
    machine, load = CASES[name]
    x, y = load(return_X_y=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = make_pipeline(StandardScaler(), machine).fit(x[::2], y[::2])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        known = {} if not read_estimator(model).linear else {"max_abs": (3 * np.abs(x - x.mean(0)).max(0)).tolist()}
        spec = from_sklearn(model, "m", precision="int16", **known)
    found = compare(spec, read_estimator(model), model, x[1::2])
    assert found["ok"] and found["classes_differ"] <= found["undecided"] and found["refused"] <= 0.06 * found["rows"], (
        found
    )
    # kernels with a corner at zero; and a sum of |weights| at the corner of all inputs
    loose = {"laplacian": 200, "rough": 200, "polynomial": 4000, "polynomial pairs": 4000}
    assert found["allowed"] <= loose.get(name, 60) * max(found["difference"], 1e-9)


def test_counts_are_the_numbers_themselves_where_all_are_whole() -> None:
    x, y = load_digits(return_X_y=True)
    spec = from_sklearn(SVC(gamma=0.001).fit(x[:300], y[:300]), "m", precision="int16")
    assert spec.input.resolution == 1.0 and spec.expansion.decision == "ovo"
    model = from_sklearn(SVC(gamma=0.001).fit(x[:300], y[:300]), "m")
    from pykernel.host.model import HostModel

    taken = spec.accepts(x)
    assert taken.mean() > 0.99
    assert (HostModel(spec).classify(x[taken]) == HostModel(model).classify(x[taken])).all()


def test_a_linear_model_does_not_tell_the_range_of_its_inputs() -> None:
    x, y = load_wine(return_X_y=True)
    model = LogisticRegression(max_iter=50).fit(StandardScaler().fit_transform(x), y)
    with pytest.raises(UserError, match="int16 needs the range of each input"):
        from_sklearn(model, "m", precision="int16")
    with pytest.raises(UserError, match="max_abs must be one number above 0, or 13 such numbers"):
        from_sklearn(model, "m", max_abs=[1.0] * 12)
    assert from_sklearn(model, "m", max_abs=[1.0] * 13).input.max_abs == (1.0,) * 13
    with pytest.raises(UserError, match="variance is not available with precision int16"):
        from_sklearn(GaussianProcessRegressor().fit(x, y), "m", precision="int16", variance=True)


def test_fit_says_what_rounding_costs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    x, y = load_diabetes(return_X_y=True, scaled=False)
    names = [*(f"x{i}" for i in range(x.shape[1])), "y"]
    np.savetxt(tmp_path / "d.csv", np.column_stack([x, y]), delimiter=",", header=",".join(names), comments="")
    out = tmp_path / "d.toml"
    arguments = [
        "fit",
        str(tmp_path / "d.csv"),
        "--label",
        "y",
        "--set",
        "training.model=krr",
        "--set",
        "precision=int16",
        "--n-max",
        "40",
    ]
    with pytest.raises(SystemExit) as stopped:
        main([*arguments, "-o", str(out)])
    assert not stopped.value.code and "int16     changes predictions by " in capsys.readouterr().out
    assert load_spec(out).precision == "int16"
    for kernel in ("matern32", "polynomial"):
        with pytest.raises(SystemExit) as stopped:
            main([*arguments, "-o", str(tmp_path / f"{kernel}.toml"), "--set", f"kernel.function={kernel}", "--json"])
        assert not stopped.value.code and json.loads(capsys.readouterr().out)["rounding"]["ok"]
    with pytest.raises(SystemExit):
        main([*arguments, "-o", str(tmp_path / "f.toml"), "--json"])
    assert json.loads(capsys.readouterr().out)["rounding"]["difference"] > 0


def test_rows_that_are_no_numbers_tell_no_ranges() -> None:
    x, y = load_diabetes(return_X_y=True)
    model, odd = SVR().fit(x, y), np.vstack([x, np.full((1, x.shape[1]), np.nan), np.full((1, x.shape[1]), np.inf)])
    assert from_sklearn(model, "m", precision="int16", data=odd) == from_sklearn(model, "m", precision="int16", data=x)
    with pytest.raises(UserError, match="data is not a table of numbers"):
        from_sklearn(model, "m", precision="int16", data=x + 1j)


@pytest.mark.parametrize("scale", [1.0, 1000.0])
def test_half_a_range_beyond_what_was_seen_is_accepted(scale: float) -> None:
    """Of counts, too; but for what 16 bits cannot hold."""
    rng = np.random.default_rng(0)
    x = np.rint(rng.uniform(0, 20, (80, 3)) * scale) if scale > 1 else rng.uniform(0, 20, (80, 3))
    spec = from_sklearn(SVR().fit(x / scale, x.sum(axis=1) / scale), "m", precision="int16", data=x / scale)
    low, high = (x / scale).min(axis=0), (x / scale).max(axis=0)
    beyond = 0.49 * (high - low)
    assert spec.accepts(np.vstack([low - beyond, high + beyond, x / scale])).all()
