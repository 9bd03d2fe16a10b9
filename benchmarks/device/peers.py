"""What other generators make of three public data sets, and what ours does, on an emulated Cortex-M4F.

    pip install emlearn==0.23.2 m2cgen==0.10.0 micromlgen==1.1.28
    python -m benchmarks.device.peers

Breast cancer (569 x 30, two classes) and digits (1,797 x 64, ten classes) of scikit-learn, and the year of bike rentals
that is shipped (8,645 x 8, numbers).  Each model is trained on the first 70 % (classes: of a fixed shuffle) and judged on
at most 300 of the others, by what its C answers on the emulator: the error rate, or the root mean square error.  Of ours,
the model that learns takes each of the other rows once its answer is known.  One compiler builds all code, GCC -O2; what is
not ours with its defaults, contraction of products and sums among them.

flash          all that is linked, the C library's functions included
RAM            static data, the model's struct and the stack that was used
instructions   of one prediction, the mean; of ours that learns also of one update

Inputs of support vector machines and networks are standardised before; the others' C does not do so, and what that takes is
not counted.  Ours takes raw inputs.  Writes docs/data/peers.csv, and the tables of
docs/benchmarks.md and README.md.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import re
import tempfile
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.device.imported_instructions import ANSWER, BUILDS, DEFAULTS, TARGET
from benchmarks.tables import DATA, ROOT, Rows, gcc_version, markdown, publish, save
from pykernel.errors import UserError
from pykernel.gen.compilers import Compiler
from pykernel.host.bikeshare import bikeshare
from pykernel.host.model import HostModel
from pykernel.importers.importing import from_sklearn
from pykernel.spec.defaults import width
from pykernel.spec.model import Spec, make_spec
from pykernel.targets.build import Image, toolchain
from pykernel.targets.check import check_targets
from pykernel.targets.unicorn_runner import MAILBOX, EmulatedCpu
from pykernel.tuning.trials import Table, content_of

CHAIN, LEVEL = BUILDS[0]
JUDGED, VECTORS, TREES, HIDDEN = 300, 64, 10, 16
HELD = 0.3


@dataclass(frozen=True)
class Set:
    """Rows in the order in which they come; y: numbers, or positions of classes."""

    name: str
    x: np.ndarray
    y: np.ndarray
    classes: int = 0

    @property
    def split(self) -> int:
        return len(self.x) - round(HELD * len(self.x))

    @property
    def judged(self) -> np.ndarray:
        """Which of the last rows count, evenly spread."""
        return np.unique(np.linspace(self.split, len(self.x) - 1, JUDGED).astype(int))

    def error(self, answers: np.ndarray) -> float:
        """Of answers to the judged rows."""
        known = self.y[self.judged]
        if self.classes:
            return float(np.mean(answers != known))
        return float(np.sqrt(np.mean(np.square(answers - known))))

    @property
    def base(self) -> dict[str, Any]:
        names = [f"c{i}" for i in range(self.classes)]
        label = {"classes": names} if self.classes else {"outputs": 1}
        return {"name": "model", "input": {"dim": self.x.shape[1]}, "label": label}


def sets() -> list[Set]:
    from sklearn.datasets import load_breast_cancer, load_digits

    found = []
    for name, load in (("breast cancer", load_breast_cancer), ("digits", load_digits)):
        x, y = load(return_X_y=True)
        order = np.random.default_rng(0).permutation(len(x))
        found.append(Set(name, x[order].astype(np.float32), y[order].astype(np.int32), int(y.max()) + 1))
    x, y, _ = bikeshare()
    return [*found, Set("bike rentals", x.astype(np.float32), y.astype(np.float32))]


# ----------------------------------------------------------------------------------------------------------------- ours


def measured(data: Set, spec: Spec, answers: np.ndarray, name: str, learns: bool) -> dict[str, Any]:
    """On the target, compared byte for byte there."""
    rows = data.judged[:100] if not spec.program.learns else np.arange(data.split - 100, data.split)
    how: dict[str, Any] = {"chain": CHAIN, "emulator": "unicorn", "level": LEVEL, "tries": 0}
    row = check_targets(spec, [TARGET.name], stream=(data.x[rows], data.y[rows]), **how).rows[0]
    assert row["equal"]
    ask = row["classify"] if data.classes else row["predict"]
    costs = {"flash": row["flash_bytes"], "ram": row["ram_bytes"] + row["stack_bytes"], "predict": round(ask["mean"])}
    update = f"{round(row['update']['mean'])}" if learns else ""
    told = {"data": data.name, "code": "pykernel", "model": name, "learns": "yes" if learns else "no"}
    told["compiler"] = named(toolchain(TARGET, CHAIN))
    return told | {"error": f"{data.error(answers):.4g}"} | costs | {"update": update}


def named(compiler: Compiler) -> str:
    """For a table."""
    return f"{CHAIN} {gcc_version(compiler.version)} {LEVEL}"


def ours(data: Set) -> Iterator[dict[str, Any]]:
    question = "classify" if data.classes else "predict"
    table = Table(data.x.astype(float), data.y)
    how = {"rule": "frozen", "size": VECTORS, "method": "sgma", "width": width(data.x.shape[1])}
    spec = make_spec(content_of({"base": data.base, **how}, table))
    answers, _ = HostModel(spec).ask(question, data.x[data.judged])
    yield measured(data, spec, answers.reshape(-1), f"kernel machine, {VECTORS} vectors", False)
    spec = make_spec(data.base)
    model = HostModel(spec)
    model.update(data.x[: data.split], data.y[: data.split])
    answers, _ = model.prequential(data.x[data.split :], data.y[data.split :], question=question)
    yield measured(data, spec, answers.reshape(-1)[data.judged - data.split], "the default, krls-t 32", True)
    yield from imported(data, question)


def imported(data: Set, question: str) -> Iterator[dict[str, Any]]:
    machine = machine_of(data)
    spec = from_sklearn(machine, "model")
    x = scaled(data)[data.judged]
    answers, _ = HostModel(spec).ask(question, x)
    scaled_set = Set(data.name, scaled(data), data.y, data.classes)
    name = type(machine).__name__
    yield measured(scaled_set, spec, answers.reshape(-1), f"{name}, {len(machine.support_)} vectors", False)


# --------------------------------------------------------------------------------------------------------------- theirs


def scaled(data: Set) -> np.ndarray:
    first = data.x[: data.split].astype(float)
    deviation = first.std(axis=0)
    return ((data.x - first.mean(axis=0)) / np.where(deviation > 0, deviation, 1.0)).astype(np.float32)


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


def forest_of(data: Set) -> Any:
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

    kind = RandomForestClassifier if data.classes else RandomForestRegressor
    return kind(TREES, max_depth=8, random_state=0).fit(data.x[: data.split], data.y[: data.split])


def network_of(data: Set) -> Any:
    from sklearn.neural_network import MLPClassifier, MLPRegressor

    kind = MLPClassifier if data.classes else MLPRegressor
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = kind(hidden_layer_sizes=(HIDDEN,), max_iter=2000, random_state=0)
        return made.fit(scaled(data)[: data.split], data.y[: data.split])


def forest_and_machine(data: Set) -> Iterator[tuple[Any, str, np.ndarray]]:
    """Each with its name and its inputs."""
    yield forest_of(data), f"forest of {TREES} trees", data.x
    machine = machine_of(data)
    yield machine, f"{type(machine).__name__}, {len(machine.support_)} vectors", scaled(data)


def run(
    data: Set, code: str, model: str, source: str, inputs: np.ndarray, kind: type, flags: tuple[str, ...] = ()
) -> Any:
    """A row of C that has ``void score(const T *x, R *y)``; kind: of the answer."""
    # not -ftree-loop-distribute-patterns: it makes the runtime's memset call itself
    given = ("-Wno-error", "-w", *DEFAULTS[:2], "-ffp-contract=fast", *flags)
    image = Image(TARGET, CHAIN, {"score.c": source}, LEVEL, given, libraries=("-lm", "-lc"))
    told = {"data": data.name, "code": code, "model": model, "learns": "no", "compiler": named(image.compiler)}
    if image.flash_bytes > TARGET.part.flash.bytes:
        return told | {"error": "", "flash": image.flash_bytes, "ram": "", "predict": "", "update": ""}
    machine = EmulatedCpu(image)
    machine.paint_stack(machine.free)
    before, answers = machine.instructions, []
    for row in inputs[data.judged]:
        machine.uc.mem_write(MAILBOX, row.tobytes())
        machine.call("score", MAILBOX, ANSWER)
        answers.append(np.frombuffer(machine.uc.mem_read(ANSWER, np.dtype(kind).itemsize), kind)[0])
    costs = {
        "flash": image.flash_bytes,
        "ram": image.data_bytes + machine.stack_used(),
        "predict": round((machine.instructions - before) / len(answers)),
    }
    return told | {"error": f"{data.error(np.array(answers)):.4g}"} | costs | {"update": ""}


def emlearn(data: Set) -> Iterator[dict[str, Any]]:
    import emlearn as peer

    np.seterr(all="ignore")  # which it changes
    code, kind = f"emlearn {peer.__version__}", np.int32 if data.classes else np.float32
    answer = "int32_t" if data.classes else "float"
    for model, name, inputs in (
        (forest_of(data), f"forest of {TREES} trees", data.x),
        (network_of(data), f"network, {HIDDEN} hidden units", scaled(data)),
    ):
        # it also leaves files where it is called
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            peer.convert(model, dtype="float", method="inline").save(file="model.h", name="model")
            header = Path("model.h").read_text()
        function = "model_regress1" if not data.classes and "forest" not in name else "model_predict"
        source = (
            f"#include <stdint.h>\nvoid score(const float *x, {answer} *y);\n{header}\n"
            f"void score(const float *x, {answer} *y) {{ *y = {function}(x, {data.x.shape[1]}); }}\n"
        )
        yield run(data, code, name, source, inputs, kind, (f"-I{peer.includedir}",))


def m2cgen(data: Set) -> Iterator[dict[str, Any]]:
    import m2cgen as peer

    code = f"m2cgen {peer.__version__}"
    for model, name, inputs in forest_and_machine(data):
        text = peer.export_to_c(model)
        several = "double * output" in text
        head = "void score(double * input, double * output)" if several else "double score(double * input)"
        assert head in text
        text = text.replace(head, "static " + head.replace("score", "value"))
        if several:
            body = f"double v[{data.classes}]; value(x, v); int b = 0; for (int i = 1; i < {data.classes}; i++) if (v[i] > v[b]) b = i; *y = b;"
        else:
            body = "*y = value(x) > 0;" if data.classes else "*y = value(x);"
        answer = "int" if data.classes else "double"
        source = f"void score(double *x, {answer} *y);\n{text}\nvoid score(double *x, {answer} *y) {{ {body} }}\n"
        kind = np.int32 if data.classes else np.float64
        yield run(data, code, name, source, inputs.astype(np.float64), kind)


def micromlgen(data: Set) -> Iterator[dict[str, Any]]:
    """The bodies of its class's functions, as C."""
    if not data.classes:
        return
    from micromlgen import port  # type: ignore[import-not-found]

    code = f"micromlgen {importlib.metadata.version('micromlgen')}"
    for model, name, inputs in forest_and_machine(data):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            text = port(model)
        predict = re.search(r"int predict\(float \*x\) \{.*?(?=/\*\*|protected:)", text, re.DOTALL)
        kernel = re.search(r"float compute_kernel\(float \*x, \.\.\.\) \{.*?return [^;]*;\s*\}", text, re.DOTALL)
        assert predict is not None
        source = (
            "#include <stdarg.h>\n#include <stdint.h>\n#include <math.h>\nvoid score(float *x, int32_t *y);\n"
            f"{f'static {kernel[0]}' if kernel else ''}\nstatic {predict[0]}\nvoid score(float *x, int32_t *y) {{ *y = predict(x); }}\n"
        )
        yield run(data, code, name, source, inputs, np.int32)


# --------------------------------------------------------------------------------------------------------------- report


def heads(rows: Rows) -> list[str]:
    """Of the table; with the compiler, which is the same for all."""
    (compiler,) = {row["compiler"] for row in rows}
    return ["data", "code", "model", "error", f"flash, {compiler}", "RAM", "predict", "update"]


def line(row: Any) -> list[str]:
    error = "does not fit" if not row["error"] else row["error"]
    if row["error"]:
        error = f"{float(error):.1%}" if float(error) < 1 else f"{float(error):.1f}"
    counts = [f"{int(row[key]):,}" if row[key] else "" for key in ("flash", "ram", "predict", "update")]
    return [row["data"], row["code"], row["model"], error, *counts]


def short(rows: Rows) -> list[list[str]]:
    """For the README: of ours the kernel machine and what learns, of each other the model of least error."""
    chosen = []
    for name in dict.fromkeys(row["data"] for row in rows):
        of_set = [row for row in rows if row["data"] == name]
        chosen += of_set[1::-1]
        for code in dict.fromkeys(row["code"] for row in of_set[3:]):
            judged = [row for row in of_set if row["code"] == code and row["error"]]
            chosen.append(min(judged, key=lambda row: float(row["error"])))
    return list(map(line, chosen))


MAKERS: tuple[Callable[[Set], Iterator[dict[str, Any]]], ...] = (ours, emlearn, m2cgen, micromlgen)


def main() -> None:
    found: list[dict[str, Any]] = []
    for data in sets():
        for maker in MAKERS:
            try:
                for row in maker(data):
                    print(*row.values(), flush=True)
                    found.append(row)
            except UserError as reason:
                print(f"({data.name}, {maker.__name__}: {reason})", flush=True)
    rows = save(DATA / "peers.csv", found)
    publish({"peers": markdown(heads(rows), list(map(line, rows)))}, ROOT / "docs" / "benchmarks.md")
    publish({"peers": markdown(heads(rows), short(rows))}, ROOT / "README.md")


if __name__ == "__main__":
    main()
