"""What other generators make of three public data sets, and what ours does, on an emulated Cortex-M4F.

    pip install -r benchmarks/peers.txt
    python -m benchmarks.device.peers

Breast cancer (569 x 30, two classes) and digits (1,797 x 64, ten classes) of scikit-learn, and the year of bike rentals
that is shipped (8,645 x 8, numbers).  Each model is trained on the first 70 % (classes: of a fixed shuffle) and judged on
at most 300 of the others: the error rate, or the root mean square error.  Of ours, the model that learns takes each of the
other rows once its answer is known.  Networks choose solver, penalty and steps by five folds.

flash          all that is linked into a program that only predicts, the C library's functions included; of ours that learns,
               with all of its functions
whole          of ours: flash with all functions of the model (probabilities, self-test, hash)
RAM            static data, the model's struct and the stack that was used
instructions   of one prediction, the mean; of ours that learns also of one update

``benchmarks/device/others.py`` says how all of this is built.  Support vector machines are given standardised inputs, which
is not counted; models in int16 and emlearn's trees counts, as of a sensor; all others inputs as they are.  Writes
docs/data/peers.csv, and the tables of docs/benchmarks.md and README.md.
"""

from __future__ import annotations

import importlib.metadata
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks.device import others
from benchmarks.device.imported_instructions import TARGET
from benchmarks.device.others import CHAIN, LEVEL, Code, Set, named, sets
from benchmarks.host import blas_kernels
from benchmarks.host.blas_kernels import shown
from benchmarks.tables import DATA, Rows, load, markdown, publish, save
from pykernel.errors import UserError
from pykernel.estimators.trained import TrainedKernelClassifier, TrainedKernelRegressor
from pykernel.host.model import HostModel
from pykernel.importers.importing import from_sklearn
from pykernel.parallel import one_thread
from pykernel.spec.defaults import width
from pykernel.spec.model import Spec, make_spec
from pykernel.targets.build import toolchain
from pykernel.targets.check import check_targets
from pykernel.tuning.data import Table
from pykernel.tuning.trials import content_of

VECTORS, TRAINED, TREES, LEAVES, HIDDEN = 64, 16, 10, 128, (16, 32)
FOREST = f"forest of {TREES} trees"

# ----------------------------------------------------------------------------------------------------------------- ours


def row(data: Set, code: str, model: str, compiler: str, error: float | None, **costs: Any) -> dict[str, Any]:
    told = {"data": data.name, "code": code, "model": model, "learns": "yes" if costs.get("update") else "no"}
    told |= {"compiler": compiler, "error": "" if error is None else f"{error:.4g}"}
    return told | {key: costs.get(key, "") for key in ("flash", "whole", "ram", "predict", "update")}


def ours(data: Set) -> Iterator[dict[str, Any]]:
    yield the_default(data)
    kind = TrainedKernelClassifier if data.classes else TrainedKernelRegressor
    with one_thread, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a linear model that is as good: it is not asked for here
        trained = kind(TRAINED).fit(*data.train)
        for precision, more in (("float32", ""), ("int16", ", int16")):
            spec = trained.to_spec("model", precision=precision)
            yield frozen(data, spec, f"{TRAINED} trained vectors{more}")
        for precision, more in (("float32", ""), ("int16", ", int16")):
            spec = from_sklearn(others.network_of(data, HIDDEN[0]), "model", precision=precision, data=data.train[0])
            yield frozen(data, spec, f"network, {HIDDEN[0]} hidden units{more}")
    table = Table(data.x.astype(float), data.y)
    how = {"rule": "frozen", "size": VECTORS, "method": "sgma", "width": width(data.x.shape[1])}
    spec = make_spec(content_of({"base": data.base, **how}, table))
    yield frozen(data, spec, f"{VECTORS} chosen vectors")
    machine = machine_of(data)
    name = f"{type(machine).__name__}, {len(machine.support_)} vectors"
    yield frozen(data, from_sklearn(machine, "model"), name, scaled(data))


def frozen(data: Set, spec: Spec, name: str, inputs: np.ndarray | None = None) -> dict[str, Any]:
    ran, error, whole = others.ours(data, spec, inputs)
    return row(data, "pykernel", name, ran.compiler, error, whole=whole, **ran.costs)


def the_default(data: Set) -> dict[str, Any]:
    """On the target, compared byte for byte there."""
    spec = make_spec(data.base)
    model = HostModel(spec)
    model.update(data.x[: data.split], data.y[: data.split])
    answers, _ = model.prequential(data.x[data.split :], data.y[data.split :], question=data.question)
    error = data.error(answers.reshape(-1)[data.judged - data.split])
    rows = np.arange(data.split - 100, data.split)
    how: dict[str, Any] = {"chain": CHAIN, "emulator": "unicorn", "level": LEVEL, "tries": 0}
    found = check_targets(spec, [TARGET.name], stream=(data.x[rows], data.y[rows]), **how).rows[0]
    assert found["equal"]
    costs = {"flash": found["flash_bytes"], "whole": found["flash_bytes"]}
    costs |= {"ram": found["ram_bytes"] + found["stack_bytes"], "predict": round(found[data.question]["mean"])}
    compiler = named(toolchain(TARGET, CHAIN))
    return row(
        data,
        "pykernel",
        f"the default, {spec.learning.rule}",
        compiler,
        error,
        update=round(found["update"]["mean"]),
        **costs,
    )


# --------------------------------------------------------------------------------------------------------------- theirs


def scaled(data: Set) -> np.ndarray:
    first = data.x[: data.split].astype(float)
    deviation = first.std(axis=0)
    return ((data.x - first.mean(axis=0)) / np.where(deviation > 0, deviation, 1.0)).astype(np.float32)


BY_HAND = "C by hand"
"""As short as the network can be written."""
MACHINES: dict[str, Any] = {}


def machine_of(data: Set) -> Any:
    """A support vector machine, on standardised inputs; of numbers on few rows, so that it fits the part."""
    from sklearn.svm import SVC, SVR

    if data.name not in MACHINES:
        x, y = scaled(data)[: data.split], data.y[: data.split]
        gamma = 1 / x.shape[1]
        if data.classes:
            MACHINES[data.name] = SVC(C=10.0, gamma=gamma).fit(x, y)
        else:
            rows = np.linspace(0, len(x) - 1, 600).astype(int)
            MACHINES[data.name] = SVR(C=1000.0, epsilon=40.0, gamma=gamma).fit(x[rows], y[rows])
    return MACHINES[data.name]


def forest_and_machine(data: Set) -> Iterator[tuple[Any, str, np.ndarray]]:
    """Each with its name and its inputs."""
    yield others.forest_of(data, TREES, LEAVES, data.x), FOREST, data.x
    machine = machine_of(data)
    yield machine, f"{type(machine).__name__}, {len(machine.support_)} vectors", scaled(data)


def theirs(data: Set, generator: str, model: str, code: Code) -> dict[str, Any]:
    ran = others.run(code, data.judged)
    error = None if ran.predict is None else data.error(ran.answers)
    made = generator if generator == BY_HAND else f"{generator} {importlib.metadata.version(generator)}"
    return row(data, made, model, ran.compiler, error, **ran.costs)


def emlearn(data: Set) -> Iterator[dict[str, Any]]:
    inputs = others.counts(data)
    forest = others.forest_of(data, TREES, LEAVES, inputs)
    for method, code in others.emlearn_forest(data, forest, inputs).items():
        yield theirs(data, "emlearn", f"{FOREST}, {method}", code)
    for hidden in HIDDEN:
        with one_thread:
            network = others.network_of(data, hidden)
        name = f"network, {hidden} hidden units"
        yield theirs(data, "emlearn", name, others.emlearn_network(data, network))
        yield theirs(data, BY_HAND, name, others.network_by_hand(data, network))
        yield theirs(data, BY_HAND, f"{name}, int8", others.network_in_int8(data, network))


def m2cgen(data: Set) -> Iterator[dict[str, Any]]:
    for model, name, inputs in forest_and_machine(data):
        yield theirs(data, "m2cgen", name, others.m2cgen_code(data, model, inputs))


def micromlgen(data: Set) -> Iterator[dict[str, Any]]:
    for model, name, inputs in forest_and_machine(data) if data.classes else ():
        yield theirs(data, "micromlgen", name, others.micromlgen_code(data, model, inputs))


# --------------------------------------------------------------------------------------------------------------- report


def heads(rows: Rows) -> list[str]:
    """Of the table; with the compiler, which is the same for all."""
    (compiler,) = {row["compiler"] for row in rows}
    return ["data", "code", "model", "error", f"flash, {compiler}", "RAM", "predict", "update"]


def line(row: Any) -> list[str]:
    error = shown(float(row["error"])) if row["error"] else "does not fit"
    counts = [f"{int(row[key]):,}" if row[key] else "" for key in ("flash", "ram", "predict", "update")]
    return [row["data"], row["code"], row["model"], error, *counts]


def short(rows: Rows) -> str:
    """For the README: of ours what learns and trained vectors, then the network of each, and the forest that errs least."""
    lines: dict[str, list[str]] = {}
    spread = blas_kernels.spreads(load(blas_kernels.FILE))
    names = list(dict.fromkeys(row["data"] for row in rows))
    for name in names:
        of_set = [row for row in rows if row["data"] == name]
        networks = {
            f"{HIDDEN[0]} hidden units, {row['code']}": row
            for row in of_set
            if row["model"] == f"network, {HIDDEN[0]} hidden units"
        }
        forests = [row for row in of_set if row["model"].startswith(FOREST) and row["error"]]
        best = min(forests, key=lambda row: (float(f"{float(row['error']):.3g}"), int(row["flash"])))
        for title, row in {
            "the default": of_set[0],
            of_set[1]["model"]: of_set[1],
            **networks,
            f"{FOREST}, the best code": best,
        }.items():
            error, flash, _, instructions = line(row)[3:7]
            least, most = map(shown, spread.get((name, row["model"]), (0.0, 0.0)))
            if row["code"] == "pykernel" and least != most:
                error += f" ({least} to {most})"
            lines.setdefault(title, []).append("; ".join([error, flash, instructions]))
    return markdown(["model", *names], [[title, *cells] for title, cells in lines.items()])


MAKERS: tuple[Callable[[Set], Iterator[dict[str, Any]]], ...] = (ours, emlearn, m2cgen, micromlgen)


def main() -> None:
    found: list[dict[str, Any]] = []
    for data in sets():
        for maker in MAKERS:
            try:
                for each in maker(data):
                    print(*each.values(), flush=True)
                    found.append(each)
            except UserError as reason:
                print(f"({data.name}, {maker.__name__}: {reason})", flush=True)
    rows = save(DATA / "peers.csv", found)
    publish({"peers": markdown(heads(rows), list(map(line, rows)))})
    publish({"readme peers": short(rows)})


if __name__ == "__main__":
    main()
