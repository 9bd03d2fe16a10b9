"""Trained machines that go on learning in whole numbers, and linear models, beside those of float32: errors, and what they cost.

    python -m benchmarks.host.whole_expansion           # docs/data/whole-expansion.csv, and the tables in docs/whole-numbers.md
    python -m benchmarks.host.whole_expansion --show    # the tables of the file

The first third of each stream of benchmarks/host/first_streams.py trains 16 vectors; on the rest each row is predicted, then
learned.  error: root mean square over the second half of the stream; of classes the part that is wrong, at least half of a row.
"drifts": after the recording the labels rise steadily, by two of their deviations in all; where they are classes, each input does so
by one of its own deviations.  Ranges of inputs and labels are those of all rows, so that none is refused; streams whose ranges are
too wide for 16 bits beside the kernel's width are left out.

Linear models learn the whole of each stream of numbers, whose inputs are given in parts of their deviations, and labels from their mean.  float32
has its own defaults, or the memory and the prior of int16.

Cost: the support vector regression of benchmarks/device/whole_numbers.py on a Cortex-M0+ (GCC -O2), medians; update: its rows, with
other labels; of linear models its eight inputs.
"""

from __future__ import annotations

import argparse
import itertools
import math
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.device.imported_instructions import samples
from benchmarks.device.whole_numbers import counted, svr
from benchmarks.host.first_results import error_of
from benchmarks.host.first_streams import CLASSES, REGRESSION, stream
from benchmarks.host.learned_vectors import VECTORS
from benchmarks.tables import DATA, Rows, load, markdown, publish, save
from pykernel import TrainedKernelClassifier, TrainedKernelRegressor
from pykernel.errors import UserError
from pykernel.gen.project import build
from pykernel.host.model import HostModel
from pykernel.spec.families.expansion import INT16_EXPANSION_MODELS
from pykernel.spec.model import Spec, make_spec

ROOM = 1.001
FROZEN = "frozen"
PRECISIONS = ("float32", "int16")
VARIANTS = ("as is", "drifts")
LINES: dict[str, dict[str, Any]] = {
    "`nlms`": {"rule": "nlms", "eta": 0.1},
    "`rls`, defaults": {"rule": "rls"},
    "`rls`, forgetting 0.998, prior_variance 10": {"rule": "rls", "forgetting": 0.998, "prior_variance": 10.0},
}
"""Linear models.  In int16 the last two are the same."""


def drifting(x: np.ndarray, y: np.ndarray, cut: int, variant: str, classes: bool) -> tuple[np.ndarray, np.ndarray]:
    """The stream, which is as it was up to its row number ``cut``."""
    if variant == "as is":
        return x, y
    ramp = np.maximum(np.arange(len(y)) - cut, 0) / (len(y) - cut)
    return (x + ramp[:, None] * x.std(0), y) if classes else (x, y + 2 * ramp * y.std())


def going_on(frozen: Spec, rule: str, x: np.ndarray, y: np.ndarray) -> Spec:
    """The frozen model, which goes on learning by the rule; x, y: all rows."""
    content = frozen.model_dump(exclude_unset=True)
    if frozen.real.is_int16:
        far = np.abs(x - np.array(content["input"].get("center", np.zeros(x.shape[1])))).max(0)
        content["input"] |= {"max_abs": np.maximum(ROOM * far, 1e-6).tolist()}
        content["input"].pop("resolution", None)
    else:
        content["input"]["max_abs"] = ROOM * float(np.abs(x).max())
    if rule == FROZEN:
        return make_spec(content)
    label = content.get("label", {}) | ({} if frozen.label.classes else {"max_abs": ROOM * float(np.abs(y).max())})
    return make_spec(content | {"label": label, "learning": {"rule": rule}})


def errors() -> Iterator[dict[str, Any]]:
    for name in (*REGRESSION, *CLASSES):
        x, y = stream(name)
        cut, classes = len(x) // 3, name in CLASSES
        y = y.astype(np.int32) if classes else y
        kind = TrainedKernelClassifier if classes else TrainedKernelRegressor
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a fit that is no better than a linear one
            made = kind(min(VECTORS, cut // 4), random_state=0, progress=False).fit(x[:cut], y[:cut])
        known = np.unique(y[:cut]) if classes else None
        for variant in VARIANTS:
            rows = drifting(x, y, cut, variant, classes)
            try:
                specs = {
                    (rule, precision): going_on(made.to_spec("m", precision=precision), rule, *rows)
                    for precision in PRECISIONS
                    for rule in (FROZEN, *INT16_EXPANSION_MODELS[0].rules)
                }
            except UserError as error:  # the range of the inputs is too wide for 16 bits
                print(f"{name}, {variant}: {error}", flush=True)
                continue
            for (rule, precision), spec in specs.items():
                yield row(name, variant, rule, precision, "error", f"{wrong(spec, *rows, cut, known):.6g}")
        print(name, flush=True)


def wrong(spec: Spec, x: np.ndarray, y: np.ndarray, cut: int, known: np.ndarray | None) -> float:
    """The error; known: the classes of the recording."""
    model, late = HostModel(spec), slice(len(y) // 2, None)
    if known is None:
        answers = np.full(len(x), np.nan)
        after = model.prequential(x[cut:], y[cut:])[0] if spec.program.learns else model.predict(x[cut:])
        answers[cut:] = after.reshape(-1)
        return error_of(answers, y, 0)
    missed = []
    for t in range(cut, len(y)):
        missed.append(known[int(model.ask("classify", x[t : t + 1])[0].ravel()[0])] != y[t])
        if spec.program.learns and y[t] in known:
            model.update(x[t : t + 1], np.searchsorted(known, y[t : t + 1]).astype(np.int32))
    found = np.array(missed[late.start - cut :])
    return max(float(found.mean()), 0.5 / len(found))


def line_of(name: str, precision: str, reach: np.ndarray, label: float) -> Spec:
    inputs = {"dim": len(reach), "max_abs": reach.tolist() if precision == "int16" else float(reach.max())}
    content = {"name": "line", "precision": precision, "input": inputs, "label": {"max_abs": label}}
    return make_spec(content | {"learning": LINES[name]})


def line_errors() -> Iterator[dict[str, Any]]:
    for name in REGRESSION:
        x, y = stream(name)
        x, y = (x - x.mean(0)) / np.where(x.std(0) > 0, x.std(0), 1.0), y - y.mean()
        reach = np.maximum(ROOM * np.abs(x).max(0), 1e-6)
        for line, precision in itertools.product(LINES, PRECISIONS):
            spec = line_of(line, precision, reach, ROOM * float(np.abs(y).max()))
            answers, statuses = HostModel(spec).prequential(x, y)
            assert (statuses >= 0).all()
            yield row(name, "as is", line, precision, "error", f"{error_of(np.ravel(answers), y, 0):.6g}")


def cost_of(rule: str, spec: Spec, x: np.ndarray, y: np.ndarray) -> Iterator[dict[str, Any]]:
    found, figures = counted(spec, "cortex-m0plus", "gcc", x, y), build(spec).figures
    kept = {
        "predict": found["predict"]["median"],
        "update": found["update"]["median"] if spec.program.learns else "",
        "ram": figures["ram_bytes"],
        "flash": found["flash_bytes"],
    }
    for what, value in kept.items():
        yield row("cost", "", rule, spec.precision, what, value)


def costs() -> Iterator[dict[str, Any]]:
    x, y = samples()[0][:60], samples()[1][:60]
    for line, precision in itertools.product(LINES, PRECISIONS):
        yield from cost_of(line, line_of(line, precision, np.abs(x).max(0) + ROOM, ROOM * float(np.abs(y).max())), x, y)
    for precision in PRECISIONS:
        for rule in (FROZEN, *INT16_EXPANSION_MODELS[0].rules):
            spec = going_on(svr(precision, "differences"), rule, x, y)
            yield from cost_of(rule, spec, x, y)


def row(stream_: str, variant: str, rule: str, precision: str, what: str, value: Any) -> dict[str, Any]:
    return {"stream": stream_, "variant": variant, "rule": rule, "precision": precision, "what": what, "value": value}


def tables(rows: Rows) -> dict[str, str]:
    value = {(r["stream"], r["variant"], r["rule"], r["precision"], r["what"]): r["value"] for r in rows}

    def mean(names: Any, variant: str, of: tuple[str, str], beside: tuple[str, str]) -> str:
        parts = [
            math.log(float(value[n, variant, *of, "error"]) / max(float(value[n, variant, *beside, "error"]), 1e-12))
            for n in names
        ]
        return f"{math.exp(float(np.mean(parts))):.3f}"

    lines = []
    for title, every in (("numbers", REGRESSION), ("classes", CLASSES)):
        for variant in VARIANTS:
            names = [name for name in every if (name, variant, FROZEN, "int16", "error") in value]
            for rule in INT16_EXPANSION_MODELS[0].rules:
                whole, real = (rule, "int16"), (rule, "float32")
                ratios = [
                    float(value[n, variant, *whole, "error"]) / float(value[n, variant, *real, "error"]) for n in names
                ]
                beside = (mean(names, variant, each, (FROZEN, each[1])) for each in (real, whole))
                lines.append(
                    [
                        f"{len(names)} of {title}",
                        variant,
                        f"`{rule}`",
                        *beside,
                        mean(names, variant, whole, real),
                        f"{max(ratios):.2f}",
                    ]
                )
    head = ["streams", "", "rule", "float32 / frozen", "int16 / frozen", "int16 / float32", "worst"]
    cost = [
        [
            f"`{rule}`",
            precision,
            *(
                f"{float(v):,.0f}" if (v := value["cost", "", rule, precision, what]) != "" else ""
                for what in ("predict", "update", "ram", "flash")
            ),
        ]
        for rule in (FROZEN, *INT16_EXPANSION_MODELS[0].rules)
        for precision in PRECISIONS
    ]
    return {
        "whole-expansion": markdown(head, lines),
        "whole-expansion-cost": markdown(["rule", "precision", "predict", "update", "RAM", "flash"], cost),
        "whole-lines": lines_table(value),
    }


def lines_table(value: dict[tuple[str, ...], str]) -> str:
    """Errors of linear models in int16 over float32, then what each precision costs."""
    lines = []
    for line in LINES:
        beside = {
            name: math.log(
                float(value[name, "as is", line, "int16", "error"])
                / float(value[name, "as is", line, "float32", "error"])
            )
            for name in REGRESSION
        }
        worst = max(beside, key=lambda name: beside[name])
        both = (
            " / ".join(f"{float(value['cost', '', line, precision, what]):,.0f}" for precision in PRECISIONS)
            for what in ("predict", "update", "ram", "flash")
        )
        mean = math.exp(sum(beside.values()) / len(beside))
        lines.append([line, f"{mean:.3f}", f"{math.exp(beside[worst]):.3f}, {worst}", *both])
    return markdown(["rule", "int16 / float32", "worst", "predict", "update", "RAM", "flash"], lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--show", action="store_true", help="only write the tables of the file")
    path = DATA / "whole-expansion.csv"
    rows = load(path) if parser.parse_args().show else save(path, [*costs(), *line_errors(), *errors()])
    publish(tables(rows), DATA.parent / "whole-numbers.md")
    print(*tables(rows).values(), sep="\n")


if __name__ == "__main__":
    main()
