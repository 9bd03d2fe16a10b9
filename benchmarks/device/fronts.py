"""Error against flash and instructions on an emulated Cortex-M4F: trained vectors beside networks, trees and others.

    pip install emlearn==0.23.2 m2cgen==0.10.0 lightgbm==4.7.0
    python -m benchmarks.device.fronts [--splits 3] [--only digits …] [-o docs/data]
    python -m benchmarks.device.fronts_page

Breast cancer and digits of scikit-learn, 30 % of the rows at random as the test, other ones in each split; and the bike
rentals that are shipped, with the last 30 % of the rows as the test and another seed in each split.  A model is judged on
all rows of the test, once.  ``benchmarks/device/others.py`` says what is counted.

trained vectors         this project, ``fit --model trained``, 4 to 32 vectors, in float32 and in int16
chosen vectors          this project, ``fit -n``: 8 to 64 rows as vectors, width and ridge by leave-one-out
network, emlearn        8, 16, 32 hidden units, solver, penalty and steps by five folds (``benchmarks/host/trained_vectors.py``)
network, by hand        the same network in C as short as it can be, in float32, and with weights in int8
trees, emlearn          random forests of 1 to 30 trees, inputs in int16
boosted trees, m2cgen   LightGBM, learning rate and leaves by three folds; its C turned into float32
full machine            this project, an imported SVC or SVR, C and width by folds

Models in int16 and trees are given counts, as a sensor would; what makes counts of floats is not in their instructions.
"whole" is the flash of our models with all of their functions linked: probabilities, self-test, hash.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.device import others
from benchmarks.device.others import Set
from benchmarks.tables import DATA, merged, save
from pykernel.estimators.batch import KernelRidgeClassifier, KernelRidgeRegressor
from pykernel.estimators.trained import TrainedKernelClassifier, TrainedKernelRegressor
from pykernel.importers.importing import from_sklearn
from pykernel.parallel import one_thread

TRAINED, CHOSEN, HIDDEN = (4, 8, 16, 32), (8, 16, 32, 64), (8, 16, 32)
FORESTS = ((1, 16), (3, 32), (10, 32), (10, 128), (30, 128))
"""Trees, and leaves of each."""
FORESTS_OF_NUMBERS = ((1, 32), (1, 128), (3, 32), (3, 128), (10, 128))
"""emlearn compares each leaf with each other one, of which there are few kinds if they hold classes."""
ROUNDS = {2: (3, 10, 30, 100), 10: (2, 5, 10, 20), 0: (3, 10, 30, 100)}
"""Of boosting; with ten classes a round has ten trees."""
COMPARED = 1500
"""Rows on which the full machine's settings are compared."""
NAMES = tuple(each.name for each in others.sets())

Found = tuple[str, int, str, others.Ran, float, int | str]
"""Family, size, variant, cost, error, flash with all functions."""


def of_ours(data: Set, seed: int) -> Iterator[Found]:
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    x, y = data.train
    trained = TrainedKernelClassifier if data.classes else TrainedKernelRegressor
    for size in TRAINED:
        model = trained(size, random_state=seed).fit(x, y)
        for precision in ("float32", "int16"):
            found = others.ours(data, model.to_spec("model", precision=precision))
            yield "trained vectors" + (", int16" if precision == "int16" else ""), size, "", *found
    chosen = KernelRidgeClassifier if data.classes else KernelRidgeRegressor
    for size in CHOSEN:
        machine = make_pipeline(StandardScaler(), chosen(basis=size, random_state=seed)).fit(x, y)
        yield "chosen vectors", size, "", *others.ours(data, from_sklearn(machine, "model"))
    if data.classes or not seed:  # the rentals' rows are the same in each split
        machine = full_machine(data)
        yield "full machine", len(machine[-1].support_), "", *others.ours(data, from_sklearn(machine, "model"))


def full_machine(data: Set) -> Any:
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC, SVR

    x, y = data.train
    unit = 1.0 if data.classes else float(y.std())
    pipe = Pipeline([("scale", StandardScaler()), ("machine", SVC() if data.classes else SVR(epsilon=0.1 * unit))])
    grid = {
        "machine__C": [unit, 10 * unit, 100 * unit],
        "machine__gamma": np.array([0.1, 0.3, 1.0]) / x.shape[1],
    }
    rows = np.random.default_rng(0).permutation(len(x))[:COMPARED]
    search = GridSearchCV(pipe, grid, cv=5, refit=False).fit(x[rows], y[rows])
    return pipe.set_params(**search.best_params_).fit(x, y)


def of_others(data: Set, seed: int) -> Iterator[Found]:
    def ran(family: str, size: int, variant: str, code: others.Code) -> Found:
        found = others.run(code, data.judged)
        return family, size, variant, found, data.error(found.answers) if found.predict is not None else np.nan, ""

    for size in HIDDEN:
        network = others.network_of(data, size, seed)
        yield ran("network, emlearn", size, "", others.emlearn_network(data, network))
        yield ran("network, by hand", size, "", others.network_by_hand(data, network))
        yield ran("network, by hand, int8", size, "", others.network_in_int8(data, network))
    inputs = others.counts(data)
    for trees, leaves in FORESTS if data.classes else FORESTS_OF_NUMBERS:
        forest = others.forest_of(data, trees, leaves, inputs, seed)
        for method, code in others.emlearn_forest(data, forest, inputs).items():
            yield ran("trees, emlearn", trees, f"{leaves} leaves, {method}", code)
    for rounds in ROUNDS[data.classes]:
        model = others.boosted_of(data, rounds, seed)
        yield ran("boosted trees, m2cgen", rounds, "", others.m2cgen_code(data, model, data.x, single=True))


def measured(data: Set, split: int) -> Iterator[dict[str, Any]]:
    with one_thread, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for maker in (of_ours, of_others):
            for family, size, variant, ran, error, whole in maker(data, split):
                told = {"data": data.name, "split": split, "family": family, "size": size, "variant": variant}
                costs = {"error": "" if np.isnan(error) else f"{error:.5g}", **ran.costs, "whole": whole}
                yield told | {"compiler": ran.compiler} | costs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--only", nargs="+", choices=NAMES, default=list(NAMES), metavar="NAME")
    parser.add_argument("-o", "--output", type=Path, default=DATA)
    given = parser.parse_args()
    rows: dict[str, list[dict[str, Any]]] = {name: [] for name in given.only}
    for split in range(given.splits):
        for data in others.sets(split, None):
            if data.name in rows:
                for row in measured(data, split):
                    print(*row.values(), flush=True)
                    rows[data.name].append(row)
    found = [row for of_set in rows.values() for row in of_set]
    path = given.output / "fronts.csv"
    save(path, merged(path, found, "data", given.only, NAMES))


if __name__ == "__main__":
    main()
