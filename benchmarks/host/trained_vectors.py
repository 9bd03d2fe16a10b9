"""Trained vectors beside chosen vectors, networks, trees and full machines; writes docs/data/trained-vectors.csv.

    pip install statsmodels==0.15.0
    python -m benchmarks.host.trained_vectors [--splits 3] [--only NAME …] [-o docs/data]

Thirteen tables.  Ten were named before any of them was looked at: scikit-learn's digits, breast cancer, wine and diabetes,
River's image segments, phishing, bananas and Trump approval, statsmodels' fair and randhie.  Three more: Friedman's function,
and with the last 30 % of the rows as the test bike rentals and the digits in the order of the file, where other people write
later.  Of others 30 % at random are the test, other ones in each split.

trained   this project, 8, 16 and 32 vectors, as ``pykernel fit --model trained`` trains them
chosen    this project, as many vectors among the rows: kernel ridge regression and its classifier, width and ridge by
          leave-one-out
network   scikit-learn's perceptron with 8, 16 and 32 hidden units on standardised inputs: solver (L-BFGS or Adam with early
          stopping), penalty and number of steps by five folds, then the best of three seeds by its loss
boosted   scikit-learn's histogram gradient boosting, 200 rounds
full      support vector machine, C and width by five folds, all its vectors

error: the part of wrong classes, or the root of the mean squared error in standard deviations of the test labels; numbers:
how many numbers the model stores; seconds: CPU time of training with all of its choices.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from benchmarks.tables import DATA, ROOT, merged, save
from pykernel.estimators.batch import KernelRidgeClassifier, KernelRidgeRegressor
from pykernel.estimators.trained import TrainedKernelClassifier, TrainedKernelRegressor
from pykernel.parallel import one_thread

SIZES = (8, 16, 32)
TEST = 0.3


@dataclass(frozen=True)
class Task:
    """Rows, labels (classes as integers), and whether the test is the last rows."""

    name: str
    x: np.ndarray
    y: np.ndarray
    classes: int
    in_time: bool = False

    def split(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        rows = np.arange(len(self.x)) if self.in_time else np.random.default_rng(number).permutation(len(self.x))
        cut = round((1 - TEST) * len(rows))
        return rows[:cut], rows[cut:]

    def error(self, truth: np.ndarray, found: np.ndarray) -> float:
        if self.classes:
            return float((truth != found).mean())
        return float(np.sqrt(np.square(found - truth).mean()) / truth.std())


def of_sklearn(name: str) -> Task:
    from sklearn import datasets  # type: ignore[import-untyped]

    found = getattr(datasets, f"load_{name}")()
    classes = 0 if name == "diabetes" else len(np.unique(found.target))
    return Task(name, found.data, found.target, classes)


def of_river(name: str) -> Task:
    from river import datasets

    rows = [(list(x.values()), y) for x, y in getattr(datasets, name)()]
    x, labels = np.array([row for row, _ in rows], float), [y for _, y in rows]
    if isinstance(labels[0], float):
        return Task(name, x, np.array(labels), 0)
    names = sorted(set(labels))
    return Task(name, x, np.array([names.index(each) for each in labels]), len(names))


def of_statsmodels(name: str) -> Task:
    import importlib

    found = importlib.import_module(f"statsmodels.datasets.{name}").load_pandas()
    return Task(name, found.exog.to_numpy(float), found.endog.to_numpy(float), 0)


def of_bikes() -> Task:
    table = np.loadtxt(ROOT / "pykernel" / "data" / "bikeshare.csv", delimiter=",", skiprows=1)
    return Task("bikes", table[:, :5], table[:, 5], 0, in_time=True)


def of_friedman() -> Task:
    from sklearn.datasets import make_friedman1

    x, y = make_friedman1(2000, noise=1.0, random_state=0)
    return Task("friedman", x, y, 0)


TASKS: dict[str, Callable[[], Task]] = {
    "digits": lambda: of_sklearn("digits"),
    "breast_cancer": lambda: of_sklearn("breast_cancer"),
    "wine": lambda: of_sklearn("wine"),
    "diabetes": lambda: of_sklearn("diabetes"),
    "ImageSegments": lambda: of_river("ImageSegments"),
    "Phishing": lambda: of_river("Phishing"),
    "Bananas": lambda: of_river("Bananas"),
    "TrumpApproval": lambda: of_river("TrumpApproval"),
    "fair": lambda: of_statsmodels("fair"),
    "randhie": lambda: of_statsmodels("randhie"),
    "bikes": of_bikes,
    "friedman": of_friedman,
    "digits in order": lambda: replace(of_sklearn("digits"), name="digits in order", in_time=True),
}


def models(task: Task, split: int) -> Iterator[tuple[str, Any, Any]]:
    """Name, what is trained, and of what is trained how many numbers it stores (None: as for the device)."""
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC, SVR

    trained = TrainedKernelClassifier if task.classes else TrainedKernelRegressor
    chosen = KernelRidgeClassifier if task.classes else KernelRidgeRegressor
    for size in SIZES:
        yield (
            f"trained {size}",
            trained(size, random_state=split),
            lambda m: m.vectors_.size + m.alpha_.size + m.bias_.size,
        )
        yield (
            f"chosen {size}",
            make_pipeline(StandardScaler(), chosen(basis=size, random_state=split)),
            lambda m: m[-1].basis_.size + m[-1].alpha_.size + m[-1].bias_.size,
        )
        yield f"network {size}", Network(task.classes, size, split), lambda m: m.numbers
    boosted = HistGradientBoostingClassifier if task.classes else HistGradientBoostingRegressor
    yield "boosted", boosted(max_iter=200, random_state=split), lambda m: 0
    grid = {"machine__C": [1, 10, 100], "machine__gamma": np.array([0.1, 0.3, 1.0]) / task.x.shape[1]}
    from sklearn.pipeline import Pipeline

    machine = Pipeline([("scale", StandardScaler()), ("machine", SVC() if task.classes else scaled_labels(SVR))])
    few = 4000  # of more rows a full machine takes minutes
    yield "full", First(GridSearchCV(machine, grid, cv=5), few), lambda m: m.numbers


class First:
    """Trains on so many rows, drawn at random."""

    def __init__(self, model: Any, most: int) -> None:
        self.model, self.most = model, most

    def fit(self, x: np.ndarray, y: np.ndarray) -> First:
        rows = np.random.default_rng(0).permutation(len(x))[: self.most]
        self.model.fit(x[rows], y[rows])
        return self

    def predict(self, x: np.ndarray) -> Any:
        return self.model.predict(x)

    @property
    def numbers(self) -> int:
        machine = self.model.best_estimator_[-1]
        machine = getattr(machine, "model_", machine)
        return int(machine.support_vectors_.size + machine.dual_coef_.size)


def scaled_labels(kind: Any) -> Any:
    """A machine for labels in standard deviations, with scikit-learn's conventions."""
    from sklearn.base import BaseEstimator, RegressorMixin

    class Inside(RegressorMixin, BaseEstimator):  # type: ignore[misc]
        def __init__(self, C: float = 1.0, gamma: float = 1.0) -> None:
            self.C, self.gamma = C, gamma

        def fit(self, x: Any, y: Any) -> Any:
            self.middle_, self.deviation_ = y.mean(), y.std()
            self.model_ = kind(C=self.C, gamma=self.gamma).fit(x, (y - self.middle_) / self.deviation_)
            return self

        def predict(self, x: Any) -> Any:
            return self.middle_ + self.deviation_ * self.model_.predict(x)

    return Inside()


class Network:
    """A perceptron of one hidden layer, as careful as the trained vectors."""

    CHOICES: ClassVar[list[dict[str, Any]]] = [
        *({"solver": "lbfgs", "alpha": a, "max_iter": steps} for a in (1e-3, 1e-1, 1.0, 10.0) for steps in (50, 300)),
        *(
            {"solver": "adam", "alpha": a, "max_iter": 400, "early_stopping": True, "learning_rate_init": 1e-2}
            for a in (1e-4, 1e-1)
        ),
    ]

    def __init__(self, classes: int, hidden: int, seed: int) -> None:
        self.classes, self.hidden, self.seed = classes, hidden, seed

    def made(self, choice: dict[str, Any], seed: int) -> Any:
        from sklearn.neural_network import MLPClassifier, MLPRegressor

        kind = MLPClassifier if self.classes else MLPRegressor
        return kind(hidden_layer_sizes=(self.hidden,), random_state=seed, **choice)

    def fit(self, x: np.ndarray, y: np.ndarray) -> Network:
        from sklearn.model_selection import KFold, StratifiedKFold

        self.center, deviation = x.mean(axis=0), x.std(axis=0)
        self.scale = 1 / np.where(deviation > 0, deviation, 1.0)
        z = (x - self.center) * self.scale
        if not self.classes:
            self.middle, self.deviation = y.mean(), y.std()
            y = (y - self.middle) / self.deviation
        rows = np.random.default_rng(self.seed).permutation(len(z))[:2000]
        folds = (StratifiedKFold if self.classes else KFold)(5, shuffle=True, random_state=self.seed)
        found = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # steps that were limited on purpose
            for choice in self.CHOICES:
                loss = 0.0
                for a, b in folds.split(z[rows], y[rows] if self.classes else None):
                    model = self.made(choice, self.seed).fit(z[rows][a], y[rows][a])
                    if self.classes:
                        p = model.predict_proba(z[rows][b])[
                            np.arange(len(b)), np.searchsorted(model.classes_, y[rows][b])
                        ]
                        loss -= float(np.log(np.maximum(p, 1e-12)).mean())
                    else:
                        loss += float(np.square(model.predict(z[rows][b]) - y[rows][b]).mean())
                found.append(loss)
            choice = self.CHOICES[int(np.argmin(found))]
            fits = [self.made(choice, self.seed + k).fit(z, y) for k in range(3)]
        self.model = min(fits, key=lambda m: m.loss_)
        return self

    def predict(self, x: np.ndarray) -> Any:
        found = self.model.predict((x - self.center) * self.scale)
        return found if self.classes else self.middle + self.deviation * found

    @property
    def numbers(self) -> int:
        return sum(w.size for w in self.model.coefs_) + sum(b.size for b in self.model.intercepts_)


def measured(task: Task, splits: int) -> Iterator[dict[str, Any]]:
    for number in range(1 if task.in_time else splits):
        train, test = task.split(number)
        # of rows in order only the seed differs
        for seed in range(splits if task.in_time else 1):
            for name, model, numbers in models(task, number + seed):
                start = time.process_time()
                with one_thread, warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    model.fit(task.x[train], task.y[train])
                seconds = time.process_time() - start
                error = task.error(task.y[test], np.asarray(model.predict(task.x[test])))
                yield {
                    "table": task.name,
                    "rows": len(task.x),
                    "inputs": task.x.shape[1],
                    "classes": task.classes,
                    "split": number + seed,
                    "model": name,
                    "error": f"{error:.5f}",
                    "numbers": numbers(model),
                    "seconds": f"{seconds:.2f}",
                }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--only", nargs="+", choices=tuple(TASKS), default=list(TASKS))
    parser.add_argument("-o", "--output", type=Path, default=DATA)
    given = parser.parse_args()
    for name in given.only:
        rows = []
        for row in measured(TASKS[name](), given.splits):
            rows.append(row)
            print(*row.values(), flush=True)
        path = given.output / "trained-vectors.csv"
        save(path, merged(path, rows, "table", [name], list(TASKS)))


if __name__ == "__main__":
    main()
