"""How far imported models are from scikit-learn: bound and measured error, for each kind of model, step and kernel.

    python -m benchmarks.host.import_errors [-o docs]

Each estimator is fitted on 120 samples and imported in float32 and in float64.  Then the model on the host is compared with
scikit-learn on 120 samples that were held back, with means up to 1000 and deviations from 0.1 to 10.  Writes
import-errors.csv to the output folder and the table into docs/guide/importing.md.
"""

from __future__ import annotations

import argparse
import functools
import math
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.feature_selection import SelectFromModel, SelectKBest, SelectPercentile, VarianceThreshold, f_regression
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, Matern, RationalQuadratic, WhiteKernel
from sklearn.impute import SimpleImputer
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import (
    ARDRegression,
    BayesianRidge,
    ElasticNet,
    ElasticNetCV,
    HuberRegressor,
    Lars,
    LarsCV,
    Lasso,
    LassoCV,
    LassoLars,
    LassoLarsCV,
    LassoLarsIC,
    LinearRegression,
    LogisticRegression,
    LogisticRegressionCV,
    OrthogonalMatchingPursuit,
    OrthogonalMatchingPursuitCV,
    Perceptron,
    QuantileRegressor,
    Ridge,
    RidgeClassifier,
    RidgeClassifierCV,
    RidgeCV,
    SGDClassifier,
    SGDOneClassSVM,
    SGDRegressor,
    TheilSenRegressor,
    TweedieRegressor,
)
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputRegressor
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    RobustScaler,
    StandardScaler,
)
from sklearn.svm import SVC, SVR, LinearSVC, LinearSVR, NuSVC, NuSVR, OneClassSVM

from benchmarks.tables import DATA, Rows, markdown, publish, save
from pykernel.importers import importing
from pykernel.importers.sklearn import read_estimator
from pykernel.importers.steps import scaler_types, steps_of
from pykernel.spec.model import Spec
from pykernel.training import rounding

PRECISIONS = ("float32", "float64")
ERROR = {"float32": 8 * 2.0**-23, "float64": 1e-12}
"""What decision values may differ by, in sum |w| max |k| + |b|."""


def data(
    seed: int = 0,
    n: int = 120,
    dim: int = 4,
    spread: tuple[float, ...] = (1.0, 10.0, 0.1, 3.0),
    middle: tuple[float, ...] = (0.0, 1000.0, 5.0, -2.0),
) -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]:
    """Inputs that float32 holds, some of them held back, and targets: numbers, two classes and three."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(2 * n, dim))
    x = (z * spread[:dim] + middle[:dim]).astype(np.float32).astype(np.float64)
    numbers = np.sin(z[:, 0]) + z[:, 1]
    classes = np.digitize(z[:, 0] + z[:, 1] * z[:, 2 % dim], [-0.5, 0.5])
    return x[:n], x[n:], {"numbers": numbers[:n], "two": (classes[:n] > 0).astype(int), "three": classes[:n]}


def scaled(model: Any, scaler: Any = StandardScaler) -> Pipeline:
    return make_pipeline(scaler(), model)


SVMS = {
    **{f"SVC {k}": (scaled(SVC(kernel=k, coef0=0.5)), "two") for k in ("linear", "poly", "rbf", "sigmoid")},
    **{f"SVC {k}, 3": (scaled(SVC(kernel=k, C=10)), "three") for k in ("linear", "poly", "rbf", "sigmoid")},
    **{f"NuSVC {k}": (scaled(NuSVC(kernel=k, nu=0.3), MinMaxScaler), "three") for k in ("linear", "rbf")},
    "SVC pairs": (scaled(SVC(decision_function_shape="ovo", class_weight="balanced")), "three"),
    "SVC break_ties": (scaled(SVC(break_ties=True, degree=2, kernel="poly")), "three"),
    "SVC auto": (scaled(SVC(gamma="auto", degree=5, kernel="poly", coef0=1.0)), "two"),
    **{f"SVR {k}": (scaled(SVR(kernel=k), MaxAbsScaler), "numbers") for k in ("linear", "poly", "rbf", "sigmoid")},
    "NuSVR poly 1": (scaled(NuSVR(kernel="poly", degree=1, coef0=2.0), RobustScaler), "numbers"),
    **{f"OneClassSVM {k}": (scaled(OneClassSVM(kernel=k, nu=0.2)), "numbers") for k in ("rbf", "poly")},
}
OTHERS = {
    **{
        f"KernelRidge {k}": (scaled(KernelRidge(kernel=k, alpha=0.1, degree=2)), "numbers")
        for k in ("linear", "poly", "polynomial", "rbf", "laplacian")
    },
    "KernelRidge sigmoid": (scaled(KernelRidge(kernel="sigmoid", alpha=10.0, coef0=0.1)), "numbers"),
    "KernelRidge gamma": (scaled(KernelRidge(kernel="rbf", gamma=0.7, alpha=0.1)), "numbers"),
    "GPR": (scaled(GaussianProcessRegressor(alpha=0.01)), "numbers"),
    "GPR normalised": (
        scaled(
            GaussianProcessRegressor(
                ConstantKernel(2.0) * RBF(1.5) + WhiteKernel(0.1), normalize_y=True, optimizer=None
            )
        ),
        "numbers",
    ),
    "GPR anisotropic": (
        scaled(
            GaussianProcessRegressor(ConstantKernel(0.5) + RBF([1.0, 2.0, 3.0, 4.0]) + WhiteKernel(0.1), optimizer=None)
        ),
        "numbers",
    ),
}
GP_KERNELS = {
    "RBF": RBF(1.5),
    "RBFs": ConstantKernel(0.5) + RBF([1.0, 2.0, 3.0, 4.0]) * ConstantKernel(2.0) + WhiteKernel(0.1),
    "Matern, not smooth": ConstantKernel(2.0) * Matern([1.0, 2.0, 3.0, 4.0], nu=0.5) + WhiteKernel(0.1),
    "RationalQuadratic": ConstantKernel(2.0) * RationalQuadratic(1.5, 0.4) + WhiteKernel(0.1) + ConstantKernel(0.5),
    "Matern 1.5": Matern(1.5, nu=1.5),
    "Matern 2.5": ConstantKernel(2.0) * Matern([1.0, 2.0, 3.0, 4.0], nu=2.5) + WhiteKernel(0.1) + ConstantKernel(0.5),
    "Materns": Matern(1.5, nu=2.5) + ConstantKernel(0.3) * Matern(1.5, nu=2.5),
}
OTHERS |= {
    f"GPR {name}": (scaled(GaussianProcessRegressor(kernel, alpha=0.05, optimizer=None), MinMaxScaler), "numbers")
    for name, kernel in GP_KERNELS.items()
}
ALL = SVMS | OTHERS


REGRESSORS = (ARDRegression, BayesianRidge, ElasticNet, ElasticNetCV, HuberRegressor, Lars, LarsCV, Lasso, LassoCV, LassoLars,
              LassoLarsCV, LassoLarsIC, LinearRegression, OrthogonalMatchingPursuit, OrthogonalMatchingPursuitCV,
              QuantileRegressor, Ridge, RidgeCV, SGDRegressor, TheilSenRegressor, TweedieRegressor, LinearSVR)  # fmt: skip
CLASSIFIERS = (LogisticRegression, LogisticRegressionCV, Perceptron, RidgeClassifier, RidgeClassifierCV, SGDClassifier,
               LinearSVC, LinearDiscriminantAnalysis)  # fmt: skip
STEPS = {
    "PCA, poly": (PCA(2), SVR(kernel="poly")),
    "PCA, linear": (PCA(2, whiten=True), StandardScaler(), Ridge()),
    "VarianceThreshold": (MinMaxScaler(), VarianceThreshold(0.03), SVR()),
    "SelectPercentile": (SelectPercentile(f_regression, percentile=50), SVR()),
    "SelectFromModel": (SelectFromModel(Lasso(0.1)), SVR()),
    "SimpleImputer": (SimpleImputer(), SVR()),
    "ColumnTransformer": (
        ColumnTransformer(
            [("a", StandardScaler(), [0, 1]), ("b", make_pipeline(SimpleImputer(), MinMaxScaler()), [3])]
        ),
        SVR(),
    ),
    "Nystroem": (Nystroem(n_components=30, random_state=0), Ridge()),
    "Nystroem, scaled": (Nystroem(kernel="laplacian", n_components=30, random_state=0), StandardScaler(), Lasso(0.001)),
    "Nystroem, selected": (Nystroem(n_components=30, random_state=0), VarianceThreshold(1e-3), SVR(kernel="linear")),
    "Nystroem, poly": (PCA(3), Nystroem(kernel="poly", degree=2, n_components=9, random_state=0), Ridge()),
    "RBFSampler": (RBFSampler(gamma=0.3, n_components=40, random_state=0), Ridge()),
    "RBFSampler, mixed": (
        PCA(2, whiten=True),
        RBFSampler(n_components=30, random_state=0),
        VarianceThreshold(0.03),
        SVR(kernel="linear"),
    ),
    "GPR Matern 0.5": (
        SelectKBest(f_regression, k=1),
        GaussianProcessRegressor(Matern(nu=0.5), alpha=0.1, optimizer=None),
    ),
    "GPR Matern inf": (GaussianProcessRegressor(Matern(nu=math.inf), alpha=0.1, optimizer=None),),
    "GPR DotProduct": (GaussianProcessRegressor(DotProduct() + WhiteKernel(), alpha=0.1, optimizer=None),),
    "TransformedTargetRegressor": (TransformedTargetRegressor(KernelRidge(kernel="rbf"), transformer=MinMaxScaler()),),
}
UNITS = {"hidden_layer_sizes": (12,), "random_state": 0}
NETWORKS = {
    "MLPRegressor relu": ("numbers", StandardScaler(), MLPRegressor(**UNITS)),
    "MLPRegressor tanh": ("several", RobustScaler(), MLPRegressor(activation="tanh", **UNITS)),
    "MLPRegressor logistic": ("several", MinMaxScaler(), MLPRegressor(activation="logistic", **UNITS)),
    "MLPRegressor identity": ("numbers", StandardScaler(), MLPRegressor(activation="identity", **UNITS)),
    "MLPRegressor, no units": ("numbers", StandardScaler(), MLPRegressor(hidden_layer_sizes=(), random_state=0)),
    "PCA, MLPRegressor": ("numbers", StandardScaler(), PCA(2, whiten=True), MinMaxScaler(), MLPRegressor(**UNITS)),
    "MLPClassifier relu": ("two", MinMaxScaler(), MLPClassifier(**UNITS)),
    "MLPClassifier tanh": ("three", StandardScaler(), MLPClassifier(activation="tanh", **UNITS)),
    "MLPClassifier logistic": (
        "two",
        SelectKBest(k=3),
        StandardScaler(),
        MLPClassifier(activation="logistic", **UNITS),
    ),
    "MLPClassifier identity": ("three", MaxAbsScaler(), MLPClassifier(activation="identity", **UNITS)),
}
"""Networks with one hidden layer: target, steps and the network."""
FOLDED = {
    **{kind.__name__: (scaled(kind()), "numbers") for kind in REGRESSORS if kind is not TweedieRegressor},
    "TweedieRegressor": (scaled(TweedieRegressor(power=0)), "numbers"),
    "Ridge, several": (scaled(Ridge()), "several"),
    "SGDOneClassSVM": (scaled(SGDOneClassSVM(random_state=0)), "numbers"),
    **{f"{kind.__name__}, {target}": (scaled(kind()), target) for kind in CLASSIFIERS for target in ("two", "three")},
    "SGDClassifier, log_loss": (scaled(SGDClassifier(loss="log_loss", random_state=0)), "three"),
    **{name: (make_pipeline(StandardScaler(), *steps), "numbers") for name, steps in STEPS.items()},
    "PCA, SVC linear": (make_pipeline(StandardScaler(), PCA(2), SVC(kernel="linear")), "three"),
    "RBFSampler, classes": (
        make_pipeline(MinMaxScaler(), RBFSampler(n_components=30, random_state=0), LinearSVC()),
        "three",
    ),
    "SelectKBest": (make_pipeline(StandardScaler(), SelectKBest(k=2), SVC()), "three"),
    "CalibratedClassifierCV": (CalibratedClassifierCV(scaled(SVC()), ensemble=False), "two"),
    "CalibratedClassifierCV, 3": (scaled(CalibratedClassifierCV(OneVsRestClassifier(SVC()), ensemble=False)), "three"),
    "OneVsRestClassifier": (scaled(OneVsRestClassifier(SVC())), "three"),
    "OneVsRestClassifier, scaled": (OneVsRestClassifier(scaled(LogisticRegression())), "three"),
    "MultiOutputRegressor": (scaled(MultiOutputRegressor(SVR())), "several"),
    "MultiOutputRegressor, RBFSampler": (
        MultiOutputRegressor(scaled(make_pipeline(RBFSampler(n_components=20, random_state=0), Ridge()))),
        "several",
    ),
    "MultiOutputRegressor, scaled": (MultiOutputRegressor(scaled(Ridge())), "several"),
    **{name: (make_pipeline(*steps), target) for name, (target, *steps) in NETWORKS.items()},
    "OneVsRestClassifier, networks": (scaled(OneVsRestClassifier(MLPClassifier(**UNITS))), "three"),
    "TransformedTargetRegressor, network": (
        TransformedTargetRegressor(scaled(MLPRegressor(**UNITS)), transformer=StandardScaler()),
        "numbers",
    ),
    "GridSearchCV": (GridSearchCV(scaled(SVR()), {"svr__C": [1.0, 2.0]}, cv=2), "numbers"),
}
"""What is folded into a frozen model: steps, linear models, models around models."""


@functools.cache
def fitted(name: str) -> tuple[Any, np.ndarray]:
    """An estimator of ``ALL`` or ``FOLDED``, fitted, and the rows that were held back."""
    estimator, target = (ALL | FOLDED)[name]
    x, held, y = data()
    y["several"] = np.column_stack([y["numbers"], y["numbers"] ** 2])
    return estimator.fit(x, y[target]), held


def bound(spec: Spec, used: np.ndarray) -> float:
    """B of the page at rows of a spec's inputs, in the sum of its own terms."""
    folded = rounding.machine_of(spec)
    z, weights = folded.scaled(used), np.abs(folded.columns_of_weights())
    products = np.abs(z) @ np.abs(folded.vectors).T
    inner = dict.fromkeys(("relu", "tanh", "logistic", "identity"), products + np.abs(folded.shifts))
    k = inner | {"linear": products, "polynomial": (folded.gamma * products + abs(folded.coef0)) ** folded.degree}
    size = (k.get(folded.function, np.ones_like(products)) @ weights + np.abs(folded.bias)).max()
    return float(ERROR[spec.precision] * size * (1 if spec.precision == "float32" else folded.dim))


def measured() -> list[dict[str, Any]]:
    """A row for each estimator and precision."""
    rows = []
    for name in ALL | FOLDED:
        estimator, held = fitted(name)
        source = read_estimator(estimator)
        used = held if source.taken is None else held[:, list(source.taken)]
        for precision in PRECISIONS:
            spec = importing.from_sklearn(estimator, "m", precision=precision)
            found = importing.compare(spec, source, estimator, used)
            assert spec.kernel is not None and spec.expansion is not None
            rows.append(
                {
                    "model": name,
                    "precision": precision,
                    "kernel": spec.kernel.function,
                    "vectors": len(spec.expansion.vectors),
                    "bound": f"{bound(spec, used):.2g}",
                    "allowed": f"{found['allowed']:.2g}",
                    "difference": f"{found['difference']:.2g}",
                    "classes_differ": found["classes_differ"],
                }
            )
    return rows


def kind_of(name: str) -> str:
    """The first step that is no scaler, or the model."""
    estimator = fitted(name)[0]
    *before, (_, model) = steps_of(estimator)
    steps = [type(step).__name__ for _, step in before if type(step) not in scaler_types()]
    if steps:
        return f"`{steps[0]}`"
    if hasattr(model, "coef_") and not hasattr(model, "kernel"):
        return "linear classifiers" if hasattr(model, "classes_") else "linear models"
    return f"`{type(model).__name__}`"


def table(rows: Rows) -> str:
    """Float32: of each kind the model that comes nearest to its bound."""
    kinds: dict[str, list[Any]] = {}
    for row in rows:
        if row["precision"] == "float32":
            kinds.setdefault(kind_of(row["model"]), []).append(row)
    heads = ["first step, or model", "models", "nearest to its bound", "B", "measured"]
    cells = []
    for kind in sorted(kinds, key=lambda kind: kind.strip("`").lower()):
        worst = max(kinds[kind], key=lambda row: float(row["difference"]) / float(row["bound"]))
        cells.append([kind, str(len(kinds[kind])), worst["model"], worst["bound"], worst["difference"]])
    return markdown(heads, cells)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, default=DATA)
    out = parser.parse_args().output
    warnings.simplefilter("ignore")  # some do not converge, which is nothing to an import
    made = save(out / "import-errors.csv", measured())
    if out == DATA:
        publish({"import errors": table(made)})
    print(table(made))


if __name__ == "__main__":
    main()
