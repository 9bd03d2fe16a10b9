"""What tracking a subspace costs on the device: bytes, and instructions of each call; writes docs/data/subspace-device.csv.

    python -m benchmarks.device.subspace_cost [--target cortex-m4f cortex-m0plus] [--toolchain zig] [--level -O2] [-o docs]
                                       [--quick] [--show]

Rule okfeb, float32, a Gaussian kernel, standard normal inputs whose mean moves slowly on.  The host learns until the budget
is full, and an exchange of a vector is near, if there is one; the device goes on from that state, answers and learns 60
samples (at least 6, where they would take more than 30 million instructions), makes features of some, and refreshes.  Then
its memory is compared with the host's, byte for byte, and so are its answers.  "update" is the most that any of these
samples took, whatever became of it; "exchanged" the most where one took a vector's place.  Vectors' claims fade by 0.98, so
that there are exchanges; state and RAM are those without fading (with it, 4 N bytes more).

Sizes: (N, D, r) of (32, 8, 4), (64, 16, 8) and (128, 16, 16), beside what an earlier study counted for its layout (N + 1
rows, full r x r matrices, P packed): 4 ((N + 1)(D + r + 2) + 2 r^2 + 2 r) bytes for the drop budget, N (N + 1) / 2 numbers
more with the exact one.  Then N from 16 to 128 at D = 8, r = 4, and r from 2 to 16 at N = 64, D = 8, for the exponents.
"with head": ridge regression of one label on the features.  Of the updates, all are counted on the
first target, and on others the default one, with both budgets.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

import benchmarks.host.subspace_bench as bench
from benchmarks.host.subspace_bench import spec_of  # loads NumPy with one thread
from benchmarks.tables import DATA, Rows, load, markdown, progress_bar, publish, save
from pykernel.algorithms.subspace.state import SubspaceStatus
from pykernel.errors import UserError
from pykernel.gen.project import build
from pykernel.gen.streams import as_taken
from pykernel.host.model import HostModel
from pykernel.spec.model import Spec
from pykernel.targets.build import model_image, toolchain
from pykernel.targets.target import find_target
from pykernel.targets.unicorn_runner import UnicornModel

TARGETS = ("cortex-m4f", "cortex-m0plus")
TABLE = ((32, 8, 4), (64, 16, 8), (128, 16, 16))
"""N, D, r."""
BUDGETS, RANKS, MIDDLE = (16, 32, 64, 128), (2, 4, 8, 16), 64
VARIANTS: dict[str, dict[str, Any]] = {
    "drop": {"budget": "drop"},
    "exact": {},
    "exact, rls": {"update": "rls"},
    "exact, hybrid": {"update": "hybrid"},
    "exact, nonparametric": {"update": "nonparametric"},
}
FULL = "exact, with head"
FADING = 0.98
"""Of the models that are counted, so that vectors are exchanged."""
LEAST, MOST, INSTRUCTIONS, AHEAD = 6, 60, 30_000_000, 3000
COLUMNS = (
    *("target", "series", "variant", "n", "dim", "rank", "state_bytes", "ram_bytes", "flash_bytes", "stack_bytes"),
    *("counted_bytes", "novelty", "features", "update_median", "update", "exchanged", "refresh", "updates", "compiler"),
)


def variant_spec(variant: str, n: int, dim: int, rank: int, fading: float = 1.0) -> Spec:
    more: dict[str, Any] = dict(VARIANTS.get(variant, {}))
    if variant == FULL:
        more |= {"label": {"column": "y", "max_abs": 10.0}}
    return spec_of(dim, n, rank, 1 / (2 * dim), fading=fading, **more)


def stream(n: int, dim: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Inputs that move on by their own width in 20 N samples, and a label; a longer stream begins with a shorter."""
    noise = np.random.default_rng((n, dim)).normal(size=(count, dim))
    x = noise + (np.arange(count) / (20 * n))[:, None] / np.sqrt(dim)
    return x.astype(np.float32), np.sin(x.sum(1)).astype(np.float32)


def labels(spec: Spec, y: np.ndarray) -> np.ndarray | None:
    return None if spec.program.label_kind == "none" else y


def window(spec: Spec, n: int, dim: int) -> int:
    """Where counting begins: the budget is full, and one of the next LEAST updates exchanges a vector, if any does."""
    start = 4 * n + 200
    x, y = stream(n, dim, start + AHEAD)
    statuses = HostModel(spec).update(x, labels(spec, y))[start:]
    swaps = np.flatnonzero(statuses == SubspaceStatus.REPLACED)
    return start + (max(int(swaps[0]) - LEAST // 2, 0) if len(swaps) else 0)


def counted_bytes(n: int, dim: int, rank: int, exact: bool) -> int:
    """What an earlier study counted for float32."""
    return 4 * ((n + 1) * (dim + rank + 2) + 2 * rank**2 + 2 * rank + (n * (n + 1) // 2 if exact else 0))


def measured(job: Mapping[str, Any], chain: Any, level: str) -> dict[str, Any]:
    """Raises RuntimeError if the device's memory or answers are not the host's in the end."""
    n, dim, rank = job["n"], job["dim"], job["rank"]
    spec = variant_spec(job["variant"], n, dim, rank, FADING)
    project, part = build(spec), find_target(job["target"])
    made: dict[str, Any] = dict.fromkeys(COLUMNS, "") | dict(job)
    plain = build(variant_spec(job["variant"], n, dim, rank)).figures
    made |= {key: plain[key] for key in ("state_bytes", "ram_bytes")}
    if job["variant"] in ("drop", "exact"):
        made["counted_bytes"] = counted_bytes(n, dim, rank, job["variant"] == "exact")
    try:
        image = model_image(project, part, chain, level=level)
    except UserError as large:
        print(large, file=sys.stderr)
        return made
    start = window(spec, n, dim)
    inputs, targets = stream(n, dim, start + MOST)
    x, y = as_taken(spec, inputs, labels(spec, targets))
    host, device = HostModel(spec, project.drop), UnicornModel(project, image)
    host.update(x[:start], y[:start])
    device.memory.bytes[:] = host.memory.bytes
    device.paint_stack()
    asks = spec.program.asks
    end, done, answers = device.machine.instructions + INSTRUCTIONS, start, []
    while done < len(x) and (done < start + LEAST or device.machine.instructions < end):
        answers.append(device.prequential(x[done : done + 1], y[done : done + 1])[0])
        done += 1
    expected, statuses = host.prequential(x[start:done], y[start:done])
    questions = [name for name in ("novelty", "features") if name != asks]
    given = {
        name: (device.ask(name, x[done - 4 : done])[0], host.ask(name, x[done - 4 : done])[0]) for name in questions
    }
    host.refresh()
    device.call("refresh")
    given[asks] = np.concatenate(answers), expected
    if bytes(device.memory.bytes) != bytes(host.memory.bytes) or any(
        a.tobytes() != b.tobytes() for a, b in given.values()
    ):
        raise RuntimeError(f"{job}: memory or answers are not the host's")
    taken = np.array(device.costs["update"])
    swapped = statuses == SubspaceStatus.REPLACED
    return made | {
        "flash_bytes": image.flash_bytes,
        "stack_bytes": device.machine.stack_used(),
        "novelty": max(device.costs["novelty"]),
        "features": max(device.costs["features"]),
        "update_median": round(float(np.median(taken))),
        "update": int(taken.max()),
        "exchanged": int(taken[swapped].max()) if swapped.any() else "",
        "refresh": max(device.costs["refresh"]),
        "updates": done - start,
        "compiler": f"{chain} {toolchain(part, chain).version} {level}",
    }


def plan(targets: Sequence[str], quick: bool) -> Iterator[dict[str, Any]]:
    if quick:
        table, budgets, ranks, variants = ((8, 3, 2),), (8, 16), (2, 4), ("drop", "exact")
    else:
        table, budgets, ranks, variants = TABLE, BUDGETS, RANKS, tuple(VARIANTS)
    for target in targets:
        for n, dim, rank in table:
            for variant in (*(variants if target == TARGETS[0] else variants[:2]), FULL):
                yield {"target": target, "series": "table", "variant": variant, "n": n, "dim": dim, "rank": rank}
        for variant in variants if target == TARGETS[0] else variants[:2]:
            for n in budgets:
                yield {"target": target, "series": "n", "variant": variant, "n": n, "dim": 8, "rank": 4}
            for rank in ranks:
                n = budgets[-1] if quick else MIDDLE
                yield {"target": target, "series": "rank", "variant": variant, "n": n, "dim": 8, "rank": rank}


# ------------------------------------------------------------------------------------------------------------- shown


def exponent(costs: Mapping[int, float]) -> float:
    """Slope on log-log axes, by least squares."""
    return float(np.polyfit(np.log(list(costs)), np.log(list(costs.values())), 1)[0])


CALLS = ("novelty", "features", "update", "refresh")


def cell(text: str) -> str:
    return f"{int(text):,}" if text else "–"


def tables(rows: Rows) -> dict[str, str]:
    made = {}
    heads = ["N, D, r", "variant", "state", "counted before", "RAM", "flash", "novelty", "features", "update: median"]
    heads += ["most", "exchanged", "refresh"]
    keys = ("state_bytes", "counted_bytes", "ram_bytes", "flash_bytes", "novelty", "features", "update_median")
    for target in dict.fromkeys(row["target"] for row in rows):
        body = []
        for row in rows:
            if (row["target"], row["series"]) == (target, "table"):
                size = ", ".join(row[key] for key in ("n", "dim", "rank"))
                body.append(
                    [size, row["variant"], *(cell(row[key]) for key in (*keys, "update", "exchanged", "refresh"))]
                )
        made[f"subspace cost, {target}"] = markdown(heads, body)
        lines = []
        for variant in VARIANTS:
            for series, by in (("n", "N"), ("rank", "r")):
                found = [r for r in rows if (r["target"], r["series"], r["variant"]) == (target, series, variant)]
                if not found:
                    continue
                line = [variant, by]
                for call in CALLS:
                    costs = {int(r[series]): float(r[call]) for r in found if r[call]}
                    span = f"{min(costs.values()):,.0f} – {max(costs.values()):,.0f}"
                    last = exponent(dict(sorted(costs.items())[-2:]))
                    line.append(f"{exponent(costs):.2f}, {last:.2f} ({span})")
                lines.append(line)
        made[f"subspace exponents, {target}"] = markdown(["variant", "against", *CALLS], lines)
    return made


def main(words: Sequence[str] | None = None) -> None:
    chosen = bench.arguments(
        __doc__,
        words,
        target={"nargs": "+", "default": list(TARGETS)},
        toolchain={"choices": ("gcc", "zig"), "default": "zig"},
        level={"default": "-O2"},
        only={"nargs": "+", "choices": (*VARIANTS, FULL), "metavar": "VARIANT", "help": "keep the others' rows"},
    )
    path = chosen.out / "subspace-device.csv"
    if chosen.show:
        rows = load(path)
    else:
        jobs = list(plan(chosen.target[:1] if chosen.quick else chosen.target, chosen.quick))
        with progress_bar() as bar:
            some = [job for job in jobs if not chosen.only or job["variant"] in chosen.only]
            made = [measured(job, chosen.toolchain, chosen.level) for job in bar.track(some, description="counting")]
        if len(some) < len(list(plan(TARGETS, chosen.quick))) and not chosen.quick:
            made = bench.merged(path, made, ("target", "series", "variant", "n", "dim", "rank"))
        rows = save(path, made)
    shown = tables(rows)
    if chosen.out == DATA:
        publish(shown)
    print("\n".join(shown.values()))


if __name__ == "__main__":
    main()
