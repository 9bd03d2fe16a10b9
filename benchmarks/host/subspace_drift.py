"""Does rounding add up in a subspace that is tracked for long?  Float32 beside float64; writes docs/data/subspace-drift.csv.

    python -m benchmarks.host.subspace_drift [--samples 100000] [-o docs] [--quick] [--show]

OKFEB (rule okfeb) through the host's model, 100,000 samples: digits (1,797 x 64, each again and again, so that there are
exact repeats), and a stream of eight sensors that moves on, with repeats on a grid.  N = 64, r = 8, lambda = 0.1, a Gaussian
kernel whose 2 sigma^2 is the rows' mean squared distance, then 3, 10, 30 and 1,000 times wider.  Both precisions get the
same ald_threshold; the float64 default is a row of its own.  Kept: the drift of G = A'KA, max |G - A'KA| / max |A'KA|; of P = K^-1,
max |PK - I|; |K - Khat|_F / N over 400 of the last samples' rows by the model's own features, in either precision; the
mean score that the model gives those rows; how many vectors there are, and how many were exchanged.  Both are computed in
float64 from vectors and A as they are, without another call of the model.  "refresh": NAME_refresh each so many samples, 0
never; the drift is read before the last one would come.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

import benchmarks.host.subspace_bench as bench
from benchmarks import basis_data
from benchmarks.host.subspace_bench import Held, gamma_of, matrix_error, spec_of  # loads NumPy with one thread
from benchmarks.tables import DATA, Rows, load, markdown, progress_bar, publish, save
from pykernel.algorithms.subspace.state import SubspaceStatus
from pykernel.host.model import HostModel
from pykernel.spec.model import Spec

N_MAX, RANK, SAMPLES, JUDGED = 64, 8, 100_000, 400
STREAMS = ("digits", "moving")
WIDTHS = (1, 3, 10, 30, 1000)
ALD_THRESHOLDS = (1e-1, 1e-2, 1e-3)
"""Beside the default; the last is refused in float32."""
FADINGS = (1.0, 0.98)
REFRESHES = (0, 1000)
DEFAULT = "default"
OTHERS = ("rls", "hybrid", "nonparametric")


def stream(name: str, samples: int) -> np.ndarray:
    rng = np.random.default_rng(0)
    if name == "digits":
        x = basis_data.load("digits").x
        return np.concatenate([x[rng.permutation(len(x))] for _ in range(-(-samples // len(x)))])[:samples]
    # a curve that takes the whole stream to be gone through, noise, and each seventh sample on a grid of 1
    t = np.linspace(0, 200, samples)[:, None]
    x = np.sin(t * np.array([1, 0.7, 0.31, 0.11, 0.05, 0.9, 0.2, 0.4])) + 0.5 * rng.normal(size=(samples, 8))
    x[::7] = np.round(x[::7])
    return x


def with_ald_threshold(dim: int, gamma: float, ald_threshold: float | None, **how: Any) -> Spec:
    """A spec with an ald_threshold that it would perhaps refuse."""
    spec = spec_of(dim, N_MAX, RANK, gamma, **how)
    if ald_threshold is None:
        return spec
    return spec.model_copy(update={"reduction": spec.reduction.model_copy(update={"ald_threshold": ald_threshold})})


def tracked(spec: Spec, x: np.ndarray, refresh: int) -> tuple[HostModel, int]:
    """The model after the stream, and how many vectors were exchanged."""
    model, swaps = HostModel(spec), 0
    for at in range(0, len(x), refresh or len(x)):
        if at:
            model.refresh()
        statuses = model.update(x[at : at + (refresh or len(x))])
        swaps += int(np.sum(statuses == SubspaceStatus.REPLACED))
    return model, swaps


def judged(model: HostModel, x: np.ndarray) -> dict[str, float]:
    held = Held.of(model)
    p = held.drift_p()
    found = {
        "n": float(len(held.vectors)),
        "drift_g": held.drift_g(),
        "error": matrix_error(held.kernel, x, model.ask("features", x)[0].astype(float)),
        "true_error": matrix_error(held.kernel, x, held.subspace().features(x)),
        "score": float(model.novelty(x).astype(float).mean()),
        "true_score": float(held.subspace().score(x).mean()),
    }
    return found if p is None else found | {"drift_p": p}


def plan(quick: bool, samples: int) -> Iterator[dict[str, Any]]:
    widths, fadings = (WIDTHS[:2], FADINGS[1:]) if quick else (WIDTHS, FADINGS)
    for name in STREAMS[1:] if quick else STREAMS:
        for width in widths:
            for fading in fadings:
                for budget in ("drop", "exact"):
                    ald_thresholds: Sequence[Any] = (DEFAULT, *ALD_THRESHOLDS) if budget == "exact" else (DEFAULT,)
                    for ald_threshold in ald_thresholds[:2] if quick else ald_thresholds:
                        for refresh in REFRESHES if ald_threshold == DEFAULT or width <= 10 else REFRESHES[:1]:
                            common = {"stream": name, "width": width, "update": "parametric", "budget": budget}
                            yield common | {
                                "fading": fading,
                                "ald_threshold": ald_threshold,
                                "refresh": min(refresh, samples // 4),
                            }
            for update in OTHERS if width in (1, 10) and not quick else ():
                common = {"stream": name, "width": width, "update": update, "budget": "exact"}
                yield common | {"fading": FADINGS[1], "ald_threshold": DEFAULT, "refresh": 0}


def measured(task: Mapping[str, Any], samples: int) -> dict[str, Any]:
    x = stream(task["stream"], samples)
    gamma = gamma_of(x[:10_000]) / task["width"] ** 2
    last = x[-10 * JUDGED :: 10]
    how = {key: task[key] for key in ("update", "budget", "fading")}
    ald_threshold = None if task["ald_threshold"] == DEFAULT else float(task["ald_threshold"])
    line: dict[str, Any] = dict(task) | {"defaults": int(ald_threshold is None), "samples": samples}
    if task["budget"] == "drop":
        line["ald_threshold"] = ""
    elif ald_threshold is None:  # float32's; float64 has its own
        line["ald_threshold"] = f"{spec_of(x.shape[1], N_MAX, RANK, gamma, **how).config.ald_threshold:g}"
    for precision in ("float32", "float64"):
        with np.errstate(all="ignore"):
            model, swaps = tracked(
                with_ald_threshold(x.shape[1], gamma, ald_threshold, precision=precision, **how), x, task["refresh"]
            )
            found = judged(model, last)
        line[f"n_{precision}"], line[f"swaps_{precision}"] = int(found["n"]), swaps
        for key in ("drift_g", "drift_p"):
            line[f"{key}_{precision}"] = f"{found[key]:.1e}" if key in found else ""
        for key in ("error", "true_error", "score", "true_score"):
            line[f"{key}_{precision}"] = f"{found[key]:.7g}"
    return line


# ------------------------------------------------------------------------------------------------------------- shown


def number(row: Mapping[str, str], key: str) -> float:
    """What is not finite any more is infinite."""
    value = float(row[key] or 0)
    return value if np.isfinite(value) else np.inf


def off(row: Mapping[str, str], key: str = "score") -> float:
    """How far what the float32 model answers is from what its own vectors and A say in float64, in parts of that."""
    told, true = number(row, f"{key}_float32"), number(row, f"true_{key}_float32")
    return abs(told - true) / true if np.isfinite(told) and true > 0 else np.inf


def worst(rows: Sequence[Mapping[str, str]], measure: Any) -> float:
    return max(measure(row) for row in rows)


def short(value: float) -> str:
    return "not finite" if not np.isfinite(value) else f"{value:.0e}" if value else "0"


def percent(value: float) -> str:
    return "not finite" if not np.isfinite(value) else f"{value:.1%}" if value >= 1e-3 else short(value)


def span(values: Sequence[str]) -> str:
    found = sorted({int(value) for value in values})
    return f"{found[0]}" if len(found) == 1 else f"{found[0]} – {found[-1]}"


def drifts(rows: Sequence[Mapping[str, str]], exact: bool) -> list[str]:
    """The worst of G, of P, of the score."""
    g, p = (worst(rows, lambda row, key=key: number(row, key)) for key in ("drift_g_float32", "drift_p_float32"))
    return [short(g), short(p) if exact else "–", percent(worst(rows, off))]


def tables(rows: Rows) -> dict[str, str]:
    """The worst over streams and fadings: of each width and ald_threshold, and of each update."""
    heads = [
        "times wider",
        "budget, ald_threshold",
        "vectors",
        "most exchanged",
        "error / float64's",
        "drift of G",
        "of P",
    ]
    heads.append("score off")
    lines = []
    main = [row for row in rows if row["update"] == "parametric"]
    for width in dict.fromkeys(row["width"] for row in main):
        seen: set[tuple[str, ...]] = set()
        for row in main:
            kind = (row["budget"], row["ald_threshold"])
            if row["width"] != width or kind in seen:
                continue
            seen.add(kind)
            found = [r for r in main if (r["width"], r["budget"], r["ald_threshold"]) == (width, *kind)]
            without = [r for r in found if r["refresh"] == "0"]
            refreshed = [r for r in found if r["refresh"] != "0"]
            name = "drop" if row["budget"] == "drop" else f"exact, {float(row['ald_threshold']):g}"
            line = [width, name, span([r["n_float32"] for r in without])]
            line.append(f"{max(int(r['swaps_float32']) for r in without):,}")
            parts = sorted(number(r, "error_float32") / number(r, "error_float64") for r in without)
            line.append(f"{parts[0]:.2g} – {parts[-1]:.2g}" if parts[-1] - parts[0] > 0.01 else f"{parts[0]:.2g}")
            for some in (without, refreshed):
                line += drifts(some, row["budget"] == "exact") if some else ["–"] * 3
            line.append(
                short(worst(without, lambda r: number(r, "drift_p_float64"))) if row["budget"] == "exact" else "–"
            )
            lines.append(line)
    made = {"subspace drift": markdown([*heads, "refreshed: G", "P", "score off", "float64: P"], lines)}
    lines = []
    for row in rows:
        if row["refresh"] == "0" and row["fading"] == "0.98" and row["width"] in ("1", "10") and row["defaults"] == "1":
            answers = [f"{number(row, f'{key}_{p}'):.4f}" for key in ("error", "score") for p in ("float32", "float64")]
            of = [short(number(row, "drift_g_float32")), short(number(row, "drift_p_float32"))]
            kind = row["update"] if row["budget"] == "exact" else f"{row['update']}, drop"
            vectors = [row["n_float32"], row["n_float64"]]
            lines.append([row["stream"], row["width"], kind, *vectors, *of, *answers])
    heads = ["stream", "times wider", "update", "vectors, float32", "float64", "drift of G", "of P", "error, float32"]
    made["subspace drift, updates"] = markdown([*heads, "float64", "score, float32", "float64"], lines)
    return made


def main(words: Sequence[str] | None = None) -> None:
    choices = ("parametric", *OTHERS)
    only = {"nargs": "+", "choices": choices, "metavar": "UPDATE", "help": "keep the others' rows"}
    widths = {"nargs": "+", "type": int, "default": list(WIDTHS), "help": "keep the others' rows"}
    samples = {"type": int, "default": SAMPLES}
    chosen = bench.arguments(__doc__, words, samples=samples, only=only, width=widths)
    path = chosen.out / "subspace-drift.csv"
    if chosen.show:
        rows = load(path)
    else:
        samples = 6_000 if chosen.quick else chosen.samples
        made, tasks = [], list(plan(chosen.quick, samples))
        some = chosen.only or choices
        tasks = [task for task in tasks if task["update"] in some and task["width"] in chosen.width]
        with progress_bar() as bar:
            for task in bar.track(tasks, description="streams"):
                made.append(measured(task, samples))
        if len(made) < len(list(plan(chosen.quick, samples))):
            made = bench.merged(
                path, made, ("stream", "width", "update", "budget", "fading", "ald_threshold", "refresh")
            )
        rows = save(path, made)
    shown = tables(rows)
    if chosen.out == DATA:
        publish(shown)
    print("\n".join(shown.values()))


if __name__ == "__main__":
    main()
