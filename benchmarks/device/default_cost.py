"""What a spec that names no rule costs on the device, and each of its stages.

    python -m benchmarks.device.default_cost

Three inputs unless a model's name says more, one label, float32; GCC -O2, and -Os for what docs/benchmarks.md shows; 800 raw samples of
the demo's kind.
Instructions: the mean and the most of all calls of the check.  "vectors": with a budget; "krls-t" is that rule alone, with 32 vectors
and the default's width.  Every row's memory is compared with the host's.  Writes docs/data/default-cost.csv and the tables of docs/benchmarks.md and README.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from benchmarks.tables import DATA, Rows, gcc_version, markdown, publish, save
from pykernel.spec.defaults import BLOCK, FEATURES, Size, completed, groups
from pykernel.spec.model import make_spec
from pykernel.targets.check import check_targets

TARGETS = ("cortex-m0plus", "cortex-m4f")
LIMITED = {f"target of {size} bytes": {"ram": size} for size in (512, 1024, 4096)}
SHOWN = (
    *("no rule, a number", *(f"no rule, a number, {limit}" for limit in LIMITED), "no rule, a number, 32 vectors"),
    *("no rule, three classes", "no rule, three classes, target of 512 bytes"),
    *("no rule, alarms", "krls-t"),
)
"""On the page; also built with -Os."""
COUNTS = {"predict_mean": "predict", "update_mean": "update, mean", "update_max": "update, largest measured"}
README = {"no rule, a number": "the default", "no rule, alarms": "monitor"}
"""In the README, by these names."""
BASE: dict[str, Any] = {"name": "flow", "input": {"columns": ["a", "b", "c"]}}
NUMBER = BASE | {"label": {"column": "y"}}
CLASSES = BASE | {"label": {"column": "y", "classes": list("abc")}}
WIDER = {"input": {"columns": list("abcdefgh")}, "label": {"column": "y", "classes": list("abcdef")}}
STORED: dict[str, Any] = {"reduction": {"n_max": 32}}


def without(made: Mapping[str, Any], *stages: str) -> dict[str, Any]:
    """A default without some of its stages."""
    made = {name: dict(part) if isinstance(part, dict) else part for name, part in made.items()}
    for stage in stages:
        if stage in ("linear", "mixture"):
            made.pop(stage, None)
        elif stage == "noise":
            made["learning"]["noise"] = 0.1
        elif stage == "standardise":
            made["input"] = {"columns": BASE["input"]["columns"]}
        else:
            made["input" if stage == "outliers" else "label"].pop(stage)
    return made


WAVES, VECTORS = completed(NUMBER), completed(NUMBER | STORED)
STAGES = ("outliers", "mixture", "clip", "gain", "linear", "noise", "center")
"""What is left out, one after another."""
MODELS: dict[str, dict[str, Any]] = {
    "no rule, a number": dict(WAVES),
    **{f"without {', '.join(STAGES[:i])}": without(WAVES, *STAGES[:i]) for i in range(1, len(STAGES) + 1)},
    **{f"no rule, a number, {limit}": dict(completed(NUMBER | {"target": part})) for limit, part in LIMITED.items()},
    "krls-t": without(VECTORS, "clip", "gain", "linear", "noise", "center", "standardise"),
    "no rule, three classes": dict(completed(CLASSES)),
    **{
        f"no rule, three classes, {limit}": dict(completed(CLASSES | {"target": part}))
        for limit, part in LIMITED.items()
    },
    "no rule, six classes, eight inputs": dict(completed(BASE | WIDER)),
    "no rule, three classes, 32 vectors": dict(completed(CLASSES | STORED)),
    "no rule, alarms": dict(completed(BASE | {"novelty": {}})),
    **{
        f"no rule, a number, {n} vectors": dict(completed(NUMBER | {"reduction": {"n_max": n}}))
        for n in (8, 16, 32, 64)
    },
}


def samples(dim: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    z = rng.normal(size=(800, dim))
    y = np.sin(2 * z[:, 0]) + z[:, 1] + 0.1 * rng.normal(size=800)
    return z * np.resize([1, 20, 0.1], dim) + np.resize([20, 1000, 0], dim), 50 + 5 * y


def table(rows: Rows, shown: Mapping[str, str] | None = None) -> str:
    """Instructions at -O2.  shown: models, by the names that they get; by default those of the page, by their own."""
    found = {(row["model"], row["target"], row["level"]): row for row in rows}
    (compiler,) = {row["compiler"] for row in rows}
    lines, keys = [], [key for key in COUNTS if shown is None or key != "update_mean"]
    for name, told in (shown or dict(zip(SHOWN, SHOWN, strict=True))).items():
        for target in TARGETS:
            row, small = found[name, target, "-O2"], found[name, target, "-Os"]
            counts = [f"{int(row[key]):,}" for key in keys]
            flash = f"{int(row['flash_bytes']):,} / {int(small['flash_bytes']):,}"
            lines.append([told, target, f"{int(row['ram_bytes']):,}", flash, *counts])
    heads = ["model", "target", "RAM", f"flash, {compiler} -O2 / -Os", *(COUNTS[key] for key in keys)]
    return markdown(heads, lines)


def sizes() -> str:
    """The default's models, and the bytes that they take for some numbers of inputs: for one label, or three classes."""
    dims, lines = (1, 3, 8, 16), []
    every = [(waves, o) for task, o in (("number", 1), ("class", 3)) for waves in groups(task, False)[0]]
    for waves, outputs in every:
        learning = {"features": FEATURES[waves.rule], "block": BLOCK} | waves.sections["learning"]
        blocks = f", in blocks of {learning['block']}" if waves.rule == "spectrum-ekf" else ""
        mixture = waves.sections.get("mixture")
        beside = "" if mixture is None else f", with `[mixture]`{' in blocks' * bool(mixture)}"
        each = [f"{waves.costs(Size(dim, outputs))[0]:,}" for dim in dims]
        lines.append([f"`{waves.rule}`, {learning['features']} waves{blocks}{beside}", *each])
    return markdown(["model", *(f"bytes, D = {dim}" for dim in dims)], lines)


def main() -> None:
    rows = []
    for name, level in [
        (name, level) for name in MODELS for level in ("-O2", "-Os") if level == "-O2" or name in SHOWN
    ]:
        content = MODELS[name]
        spec = make_spec(content)
        x, y = samples(spec.dim)
        borders = np.linspace(46, 54, len(spec.label.classes or "ab") - 1)
        labels = np.digitize(y, borders).astype(np.int32) if spec.label.classes else y
        stream = (x, np.zeros((len(x), 0)) if spec.program.label_kind == "none" else labels)
        for row in check_targets(spec, TARGETS, stream=stream, chain="gcc", tries=0, level=level).rows:
            if not row["equal"]:
                raise RuntimeError(f"{name} on {row['target']}: {row['first_difference']}")
            asked = row.get("predict") or row.get("novelty") or row.get("classify")
            rows.append(
                {
                    **{"model": name, "target": row["target"], "compiler": f"gcc {gcc_version(row['version'])}"},
                    **{"level": level, "ram_bytes": row["ram_bytes"]},
                    **{"flash_bytes": row["flash_bytes"], "stack_bytes": row["stack_bytes"]},
                    **{"predict_mean": round(asked["mean"]), "update_mean": round(row["update"]["mean"])},
                    "update_max": row["update"]["max"],
                }
            )
            print(*rows[-1].values(), flush=True)
    saved = save(DATA / "default-cost.csv", rows)
    publish({"default costs": table(saved)})
    publish({"readme costs": table(saved, README)})
    publish({"default-sizes": sizes()})


if __name__ == "__main__":
    main()
