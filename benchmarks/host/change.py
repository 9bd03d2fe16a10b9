"""How soon each model follows a change: error relative to a fresh model; writes docs/data/change.csv.

    python -m benchmarks.host.change [--seeds 3] [--only NAME …] [-o docs] [--show]

Three inputs from a cube of edge 3, f = sin(1.3 a) + 0.6 cos(a c / 2) in coordinates from the cube's centre, noise of 0.02;
sigma 1, 32 vectors, float32, all else by default.  20,000 samples come first, then one of these, and then 20,000 samples of
the new state:

    nothing      the same goes on
    drift        in 5,000 samples the cube moves by 10 along each axis, and stays
    flip         f turns into -f at once
    drift, flip  the cube moves as above, and f turns at its end
    excursion    2,000 samples from a cube at 60, and back
    constant     5,000 times the same input, and back
    cluster      5,000 samples within 0.05 of one input, and back
    jump         the cube is at 60 at once, and stays

In each window of the new state, the root mean squared error is divided by that of a fresh model of the same spec, which
starts with the new state: the windows end after 1,000, 5,000 and 20,000 samples and begin at 500, 4,000 and 15,000.  For
okfeb, which learns without labels, the error is the mean score, what is left over of a sample.  Medians over the seeds.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.tables import DATA, Rows, load, markdown, merged, progress_bar, publish, save
from pykernel.algorithms.online.techniques import TECHNIQUES
from pykernel.host.model import HostModel
from pykernel.spec.model import Spec, make_spec

BEFORE, CHANGING, AFTER = 20_000, 5_000, 20_000
WINDOWS = ((500, 1_000), (4_000, 5_000), (15_000, 20_000))
DIM, VECTORS = 3, 32
KINDS = ("nothing", "drift", "flip", "drift, flip", "excursion", "constant", "cluster", "jump")
FAST = ("fklms", "fmklms", "afklms", "afmklms")

Case = Mapping[str, Mapping[str, Any]]


def cases() -> dict[str, Case]:
    """What is in the sections of a spec, by name."""
    found: dict[str, Case] = {}
    for rule in ("klms", "qklms"):
        for technique in TECHNIQUES:
            found[f"{rule}, {technique}"] = {
                "learning": {"rule": rule},
                "reduction": {"technique": technique, "force": True},
            }
    for technique in FAST:
        found[f"klms, {technique}, published"] = {
            "reduction": {"technique": technique, "projection": "fklms", "force": True}
        }
    for rule in ("krls-t", "fb-krls", "ald-krls"):
        found[rule] = {"learning": {"rule": rule}}
    found["krls-t, forgetting 0.999"] = {"learning": {"rule": "krls-t", "forgetting": 0.999}}
    relabels = {"learning": {"rule": "fb-krls", "relabel": True}}
    found["fb-krls, relabel"] = relabels
    found["fb-krls, relabel, fading 0.999"] = {**relabels, "reduction": {"fading": 0.999}}
    for technique in ("nt", "klms", "mklms", "sup", "ls", "lsreg", "lsridge"):
        found[f"klms, {technique}, fading 0.999"] = {"reduction": {"technique": technique, "fading": 0.999}}
    for rule in ("qklms", "krls-t", "fb-krls"):
        found[f"{rule}, fading 0.999"] = {"learning": {"rule": rule}, "reduction": {"fading": 0.999}}
    for rule in ("nlms", "rls"):
        found[rule] = {"learning": {"rule": rule}}
    found["rls, forgetting 0.999"] = {"learning": {"rule": "rls", "forgetting": 0.999}}
    for forgetting in (1.0, 0.999):
        name = "nystrom-rls" if forgetting == 1 else f"nystrom-rls, forgetting {forgetting}"
        found[name] = {"learning": {"rule": "nystrom-rls", "forgetting": forgetting}}
    for update in ("parametric", "hybrid", "nonparametric", "rls"):
        for budget in ("exact", "drop"):
            if (update, budget) != ("rls", "drop"):
                found[f"okfeb, {update}, {budget}"] = {
                    "learning": {"rule": "okfeb", "features": 6},
                    "subspace": {"update": update, "budget": budget},
                }
    found["okfeb, parametric, exact, fading 0.999"] = {
        "learning": {"rule": "okfeb", "features": 6},
        "subspace": {"fading": 0.999},
    }
    return found


def spec_of(name: str, case: Case) -> Spec:
    rule = case.get("learning", {}).get("rule", "klms")
    content: dict[str, Any] = {"name": "changing", "input": {"dim": DIM, "max_abs": 1e4}, **case}
    content["learning"] = {"rule": rule, **case.get("learning", {})}
    if rule not in ("nlms", "rls"):
        content["kernel"] = {"sigma": 1.0}
        content["reduction"] = {"n_max": VECTORS, **case.get("reduction", {})}
    if rule != "okfeb":
        content["label"] = {"max_abs": 100.0}
    return make_spec(content, name)


@dataclass(frozen=True)
class Stream:
    """What comes before, changes included, and after."""

    x: np.ndarray
    y: np.ndarray
    new_x: np.ndarray
    new_y: np.ndarray


def streams(seed: int) -> Iterator[tuple[str, Stream]]:
    rng = np.random.default_rng(seed)

    def cube(count: int) -> np.ndarray:
        return rng.uniform(-1.5, 1.5, (count, DIM))

    def labels(x: np.ndarray, sign: float = 1.0) -> np.ndarray:
        f = np.sin(1.3 * x[:, 0]) + 0.6 * np.cos(0.5 * x[:, 0] * x[:, 2])
        return np.asarray(sign * f + 0.02 * rng.normal(size=len(x)))

    before, after = cube(BEFORE), cube(AFTER)
    one = before[5]
    for name in KINDS:
        between, moved, centre, sign = np.zeros((0, DIM)), 0.0, 0.0, 1.0
        if name in ("drift", "drift, flip"):
            between, moved, centre = cube(CHANGING), np.linspace(0, 10, CHANGING)[:, None], 10.0
        if name in ("flip", "drift, flip"):
            sign = -1.0
        if name == "excursion":
            between, moved = cube(2_000), 60.0
        if name == "constant":
            between = np.repeat(one[None], CHANGING, axis=0)
        if name == "cluster":
            between = one + 0.05 * rng.normal(size=(CHANGING, DIM))
        if name == "jump":
            centre = 60.0
        x, y = np.concatenate([before, between + moved]), labels(np.concatenate([before, between]))
        yield name, Stream(x, y, after + centre, labels(after, sign))


def errors(spec: Spec, stream: Stream, first: bool) -> list[float]:
    """The error in each window; first: whether what came before was learned."""
    model = HostModel(spec)
    if spec.learning.rule == "okfeb":
        if first:
            model.update(stream.x)
        scores, _ = model.prequential(stream.new_x)
        return [float(scores[a:b].mean()) for a, b in WINDOWS]
    if first:
        model.update(stream.x, stream.y)
    answers, _ = model.prequential(stream.new_x, stream.new_y)
    squares = (answers.astype(float) - stream.new_y) ** 2
    squares[~np.isfinite(squares)] = np.inf
    return [float(np.sqrt(squares[a:b].mean())) for a, b in WINDOWS]


def measured(name: str, seed: int) -> list[dict[str, Any]]:
    """All kinds of change, for one case and seed."""
    spec = spec_of(name, cases()[name])
    rows = []
    for kind, stream in streams(seed):
        if kind not in ("flip", "drift, flip") or spec.learning.rule != "okfeb":
            fresh, old = np.array(errors(spec, stream, False)), np.array(errors(spec, stream, True))
            rows.append({"name": name, "change": kind, "fresh": fresh, "ratios": old / fresh})
    return rows


def summary(results: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One row for each case and change: medians over the seeds."""
    found: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for result in results:
        found.setdefault((result["name"], result["change"]), []).append(result)
    return [
        {
            "name": name,
            "change": change,
            "fresh_error": f"{np.median([r['fresh'][-1] for r in group]):.3g}",
            **{
                f"after_{end}": f"{np.median([r['ratios'][i] for r in group]):.3g}"
                for i, (_, end) in enumerate(WINDOWS)
            },
        }
        for (name, change), group in found.items()
    ]


def on_page(name: str) -> bool:
    """Whether a case is in the page's table; the file has all."""
    few = ("qklms, mklms", "qklms, fading", "okfeb, parametric", "okfeb, hybrid, exact", "okfeb, rls, exact")
    return name.startswith(few) or not ("af" in name or "published" in name or name.startswith(("qklms", "okfeb")))


def table(rows: Rows) -> str:
    """The ratios after 20,000 samples, and the worst after 5,000."""
    lines = []
    for name in dict.fromkeys(row["name"] for row in rows if on_page(row["name"])):
        at = {row["change"]: row for row in rows if row["name"] == name}
        late = [float(row["after_20000"]) for row in at.values()]
        cells = [short(at[kind]["after_20000"]) if kind in at else "" for kind in KINDS]
        early = short(max(float(row["after_5000"]) for row in at.values()))
        worst = f"**{short(max(late))}**" if max(late) > 1.5 else short(max(late))
        lines.append([name, at["nothing"]["fresh_error"], *cells, worst, early])
    return markdown(["model", "fresh", *KINDS, "worst", "after 5,000"], lines)


def short(ratio: Any) -> str:
    return f"{float(ratio):.2f}" if float(ratio) < 10 else f"{float(ratio):.0f}" if float(ratio) < 1e4 else "lost"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", nargs="+", choices=list(cases()), help="only these; the file keeps the others")
    parser.add_argument("-o", "--output", type=Path, default=DATA)
    parser.add_argument("--show", action="store_true", help="make the table from the file; measure nothing")
    given = parser.parse_args()
    path = given.output / "change.csv"
    if given.show:
        rows = load(path)
    else:
        names = given.only or list(cases())
        results: list[dict[str, Any]] = []
        tasks = [(name, seed) for name in names for seed in range(given.seeds)]
        with progress_bar() as bar:
            for name, seed in bar.track(tasks, description="change"):
                results += measured(name, seed)
        rows = save(path, merged(path, summary(results), "name", names, list(cases())))
    print(table(rows))
    if given.output == DATA:
        publish({"change": table(rows)})


if __name__ == "__main__":
    main()
