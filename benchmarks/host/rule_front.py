"""Every rule that learns numbers sample by sample, on the raw streams of numbers: error, bytes, instructions.

    python -m benchmarks.host.rule_front          # docs/data/rule-front.csv, and the table in docs/benchmarks.md
    python -m benchmarks.host.rule_front --show   # the table of the file

Each rule stands within the stages of a spec without a rule, as far as it takes them, with ``[mixture]`` and without.  Of a rule's
settings those of a small grid count that err least over all streams: the waves' constants were chosen on these streams, too.
error: root mean square over the second half of a stream; the table divides it by that of the best simple predictor.
instructions: median of an update on a Cortex-M4F, GCC -O2, with 3 inputs.
"""

from __future__ import annotations

import argparse
import contextlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np

from benchmarks.device.default_cost import samples
from benchmarks.host.first_results import SIMPLE, error_of, read
from benchmarks.host.first_streams import REGRESSION, stream
from benchmarks.tables import DATA, Rows, load, markdown, progress_bar, publish, save
from pykernel.errors import UserError
from pykernel.host.model import HostModel
from pykernel.spec.defaults import STAGED, width
from pykernel.spec.model import Spec, make_spec
from pykernel.targets.check import check_targets
from pykernel.tuning.costs import memory_bytes

VECTORS = 32


@dataclass(frozen=True)
class Tried:
    """A rule with what it is given, and values of its keys that are tried; widths: factors of the default's."""

    learning: Mapping[str, Any]
    reduction: Mapping[str, Any] = field(default_factory=dict)
    widths: Sequence[float] = (0.7, 1.0, 1.4)
    grid: Mapping[str, Sequence[Any]] = field(default_factory=dict)


def stored(rule: str, grid: Mapping[str, Sequence[Any]], **reduction: Any) -> Tried:
    return Tried({"rule": rule}, {"n_max": VECTORS} | reduction, grid=grid)


STEPS = {"learning.eta": (0.1, 0.3, 0.6)}
FORGETTING = {"learning.forgetting": (0.998, 0.9995)}
RULES: dict[str, Tried] = {
    **{
        f"klms, {technique}": stored("klms", STEPS, technique=technique)
        for technique in ("nt", "mklms", "fklms", "fmklms")
    },
    "qklms, nt": stored("qklms", STEPS, technique="nt"),
    "knlms": stored("knlms", STEPS),
    "ald-krls": stored("ald-krls", {"reduction.ald_threshold": (0.01, 0.1, 0.3)}),
    "sw-krls": stored("sw-krls", {"reduction.ridge": (0.01, 0.1, 0.3)}),
    "fb-krls": stored("fb-krls", {"reduction.ridge": (0.01, 0.1, 0.3)}),
    "krls-t": stored("krls-t", {"learning.noise": ("auto",), "learning.forgetting": (0.999, 0.9999)}),
    "nystrom-rls": Tried({"rule": "nystrom-rls"}, {"n_max": VECTORS}, grid=FORGETTING),
    "rff-rls": Tried({"rule": "rff-rls", "features": VECTORS}, grid=FORGETTING),
    "nlms": Tried({"rule": "nlms"}, widths=(1.0,), grid={"learning.eta": (0.01, 0.1, 0.5)}),
    "rls": Tried({"rule": "rls"}, widths=(1.0,), grid=FORGETTING),
    "quadratic-rls": Tried({"rule": "quadratic-rls"}, widths=(1.0,), grid=FORGETTING),
    "spectrum-nlms, 8": Tried({"rule": "spectrum-nlms"}, widths=(1.0,)),
    "spectrum-nlms, 16": Tried({"rule": "spectrum-nlms", "features": 16}, widths=(1.0,)),
    "spectrum-ekf, 4 in blocks of 2": Tried({"rule": "spectrum-ekf", "block": 2}, widths=(1.2,)),
    "spectrum-ekf, 4": Tried({"rule": "spectrum-ekf"}, widths=(1.2,)),
    "spectrum-ekf, 8 in blocks of 8": Tried({"rule": "spectrum-ekf", "features": 8, "block": 8}, widths=(1.2,)),
}


def spec_of(tried: Tried, dim: int, factor: float, keys: Mapping[str, Any], mixed: bool) -> Spec:
    """The rule with as many of the stages as it takes."""
    label: dict[str, Any] = {"column": "y", **STAGED["label"]}
    content: dict[str, Any] = {
        "name": "front",
        "input": {"columns": [f"x{i}" for i in range(dim)]} | STAGED["input"],
        "label": label,
        "linear": {},
        "kernel": {"sigma": float(f"{factor * width(dim):.4g}")},
        "learning": dict(tried.learning),
        **({"reduction": dict(tried.reduction)} if tried.reduction else {}),
        **({"mixture": {}} if mixed else {}),
    }
    for key, value in keys.items():
        section, name = key.split(".")
        content[section][name] = value
    lacking: list[tuple[str, ...]] = [
        (),
        ("linear",),
        ("linear", "kernel"),
        ("linear", "center"),
        ("linear", "center", "gain"),
    ]
    for left in lacking:
        made = {key: part for key, part in content.items() if key not in left}
        made["label"] = {key: value for key, value in label.items() if key not in left}
        try:
            return make_spec(made)
        except UserError as error:
            refused = error
    raise refused


def tries(tried: Tried) -> Iterator[tuple[float, dict[str, Any]]]:
    for factor, *values in product(tried.widths, *tried.grid.values()):
        yield factor, dict(zip(tried.grid, values, strict=True))


def errors(tried: Tried, factor: float, keys: Mapping[str, Any], mixed: bool) -> dict[str, float]:
    """Stream -> error."""
    found = {}
    for name in REGRESSION:
        x, y = stream(name)
        answers, _ = HostModel(spec_of(tried, x.shape[1], factor, keys, mixed)).prequential(x, y)
        found[name] = error_of(answers, y, 0)
    return found


def simple_errors() -> dict[str, float]:
    """Stream -> error of the best simple predictor."""
    known = read()
    return {name: max(min(float(known[name, "as is"][each]["error"]) for each in SIMPLE), 1e-12) for name in REGRESSION}


def mean_of(found: Mapping[str, float], simple: Mapping[str, float]) -> float:
    return math.exp(float(np.mean([math.log(max(found[name], 1e-12) / simple[name]) for name in REGRESSION])))


def row(name: str, mixed: bool, simple: Mapping[str, float]) -> dict[str, Any]:
    tried, best = RULES[name], (math.inf, 0.0, dict[str, Any](), dict[str, float]())
    for factor, keys in tries(tried):
        found = errors(tried, factor, keys, mixed)
        if (mean := mean_of(found, simple)) < best[0]:
            best = mean, factor, keys, found
    mean, factor, keys, found = best
    spec = spec_of(tried, 3, factor, keys, mixed)
    (there,) = check_targets(spec, ("cortex-m4f",), stream=samples(3), chain="gcc", tries=0, level="-O2").rows
    if not there["equal"]:
        raise RuntimeError(f"{name}: {there['first_difference']}")
    ratios = [found[each] / simple[each] for each in REGRESSION]
    return {
        "model": name + (", with a linear expert" if mixed else ""),
        "mean": f"{mean:.4g}",
        "median": f"{np.median(ratios):.4g}",
        "worst": f"{max(ratios):.4g}",
        "ram_bytes": memory_bytes(spec)["ram_bytes"],
        "instructions": round(there["update"]["median"]),
        "settings": ", ".join([f"width {factor:g}", *(f"{key.split('.')[1]} {value}" for key, value in keys.items())]),
    }


def measure() -> list[dict[str, Any]]:
    simple, rows = simple_errors(), list[dict[str, Any]]()
    with progress_bar() as bar:
        task = bar.add_task("learning", total=2 * len(RULES))
        for name in RULES:
            for mixed in (False, True):
                with contextlib.suppress(UserError):  # linear rules have no linear expert beside them
                    rows.append(row(name, mixed, simple))
                bar.advance(task)
    return rows


def table(rows: Rows) -> str:
    heads = ["model", "error: geometric mean", "median", "worst", "RAM, D = 3", "instructions"]
    lines = []
    for each in sorted(rows, key=lambda one: int(one["ram_bytes"])):
        shown = [f"{float(each[key]):.3f}" for key in ("mean", "median")]
        sizes = [f"{int(each[key]):,}" for key in ("ram_bytes", "instructions")]
        lines.append([each["model"], *shown, f"{float(each['worst']):.2f}", *sizes])
    return markdown(heads, lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--show", action="store_true", help="only write the table of the file")
    path = DATA / "rule-front.csv"
    rows = load(path) if parser.parse_args().show else save(path, measure())
    publish({"rule-front": table(rows)})
    print(table(rows))


if __name__ == "__main__":
    main()
