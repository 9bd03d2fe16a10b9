"""Mitchinson, Dodd and Harrison (2003) on functions that change: decay, truncation and sparsity control, error and effort.

    python -m benchmarks.papers.paper_003_changing [--jobs N] [--results FILE] [-o docs/data/paper-003-changing] [--quick] [--show]

Four streams of 4,000 samples with noise of 0.05, one input, sigma = 0.5, eta = 0.5, float32:

still     f = sinc(x) on [-3, 3]
sudden    the same, but every 500 samples the bump jumps to a place that is drawn from [-2, 2]
slow      the bump goes to and fro over [-2, 2] in 2,000 samples
moving    inputs lie within 1.5 of a place that goes to and fro over [-6, 6] in 2,000 samples; f = sin(2x) shifts meanwhile

The error is that of the predictions before each sample is learned, against f without noise, mean square over the second half.
Effort is the mean number of instructions of an update on an emulated Cortex-M4F: from states that the host learned, at places
spread over the second half; the device's memory is compared with the host's after each stretch.

Settings are chosen on five streams of each kind, and what was chosen is measured on twenty others.  Writes errors.csv (every
technique with decay, truncation and fading), effort.csv (error and instructions of every setting of three kinds: truncation,
sparsity control, both), chosen.csv (the cheapest of each kind for a wanted error) and the figure to the output folder, and
the tables into docs/paper-003.md.  Finished tasks are kept: after an interruption, the same command goes on.
"""

from __future__ import annotations

import argparse
import functools
import hashlib
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.kept import Kept
from benchmarks.papers.paper_003_changing_page import KINDS, LEVELS, best_error, cheapest, show
from benchmarks.tables import DATA, load, save
from pykernel.algorithms.online.klms import KLMS
from pykernel.dialect import sources_digest
from pykernel.errors import UserError
from pykernel.gen.project import build
from pykernel.host.model import HostModel
from pykernel.parallel import Workers
from pykernel.spec.model import Spec, make_spec
from pykernel.targets.build import model_image
from pykernel.targets.target import find_target
from pykernel.targets.unicorn_runner import UnicornModel

Status = KLMS["real"].status

TARGET, CHAIN = "cortex-m4f", "zig"
SAMPLES, NOISE, SIGMA, ETA = 4000, 0.05, 0.5, 0.5
STREAMS = ("still", "sudden", "slow", "moving")
CHANGING = STREAMS[1:]
CHOOSING, JUDGING = tuple(range(5)), tuple(range(100, 120))
"""Seeds of the streams on which settings are chosen, and of those on which the chosen ones are measured."""
STRETCHES, STRETCH = 4, 25
"""Updates are counted in so many stretches of so many samples of a stream."""
COUNTED = {CHOOSING: CHOOSING[:2], JUDGING: JUDGING[:10]}
ROOM = 64
"""Vectors that fit where no budget is meant to be reached."""

TECHNIQUES = ("nt", "at", "klms", "mklms", "sup", "ls", "lsreg", "lsridge", "fklms", "fmklms", "afklms")
CONTROLLED = ("klms", "mklms", "sup", "ls", "fklms", "fmklms")
BUDGETS = (6, 8, 10, 14, 20)
TRUNCATED: tuple[dict[str, Any], ...] = (
    *({"truncate_age": age} for age in (30, 100, 300)),
    *({"truncate_below": least} for least in (0.01, 0.03)),
)
ABSORBED = (0.03, 0.1, 0.3, 0.5, 0.7, 0.85)
"""Of ald_threshold: a sample is not stored if 1 - k^2 with its nearest vector is at most this."""
SEARCHED = 252
"""Settings of each kind."""
FINE_BUDGETS = (6, 8, 10, 12, 14, 17, 20)
FINE_ABSORBED = (0.03, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85)
THRESHOLDS = {
    "klms": (1e-3, 1e-2, 1e-1),
    "mklms": (1e-5, 1e-4, 1e-3),
    "fklms": (0.06, 0.12, 0.25),
    "fmklms": (1e-5, 1e-4, 1e-3),
}
FINE_THRESHOLDS = {
    name: (a, float(f"{(a * b) ** 0.5:.2g}"), b, float(f"{(b * c) ** 0.5:.2g}"), c)
    for name, (a, b, c) in THRESHOLDS.items()
}


# -------------------------------------------------------------------------------------------------------------- streams


@functools.lru_cache(maxsize=128)
def stream(name: str, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Inputs (samples, 1), labels, and f without noise; rounded, so that all machines agree."""
    rng = np.random.default_rng([seed, STREAMS.index(name)])
    t, phase = np.arange(SAMPLES), rng.uniform(0, 2 * np.pi)
    there_and_back = np.sin(2 * np.pi * t / 2000 + phase)
    jumps = np.repeat(rng.uniform(-2, 2, SAMPLES // 500), 500)
    noise, drawn = NOISE * rng.normal(size=SAMPLES), rng.uniform(-1, 1, SAMPLES)
    if name == "moving":
        x = 6 * there_and_back + 1.5 * drawn
        f = np.sin(2 * x + np.pi * t / 1000)
    else:
        x = 3 * drawn
        f = np.sinc(x - {"still": 0 * t, "sudden": jumps, "slow": 2 * there_and_back}[name])
    x, f = np.round(x, 9), np.round(f, 9)
    return x[:, None], np.round(f + noise, 9), f


# ------------------------------------------------------------------------------------------------------------- settings


Setting = Mapping[str, Any]
"""rho and the keys of [reduction]."""


def spec_of(setting: Setting) -> Spec:
    reduction = {key: value for key, value in setting.items() if key != "rho"}
    return make_spec(
        {
            "name": "changing",
            "precision": "float32",
            "input": {"dim": 1, "max_abs": 100.0},
            "kernel": {"sigma": SIGMA},
            "learning": {"rule": "klms", "eta": ETA, "rho": setting.get("rho", 0.0)},
            "reduction": reduction,
        }
    )


def variants() -> list[tuple[str, str, Setting]]:
    """Of errors.csv: technique, what is added, setting; 14 vectors."""
    rhos = (0.003, 0.01, 0.03, 0.1)
    made: list[tuple[str, str, Setting]] = []
    for technique in TECHNIQUES:
        plain = {"technique": technique, "n_max": 14}
        made.append((technique, "nothing", plain))
        made += [(technique, "decay", {**plain, "rho": rho}) for rho in rhos]
        for age in (15, 30, 60, 120, 250, 500):
            made += [(technique, "age", {**plain, "rho": rho, "truncate_age": age}) for rho in (0.0, *rhos[:3])]
        for least in (0.003, 0.01, 0.03, 0.1):
            made += [(technique, "magnitude", {**plain, "rho": rho, "truncate_below": least}) for rho in (0.0, *rhos)]
        if technique not in ("at", "afklms"):  # fading multiplies a score that is above zero, and no age
            made += [(technique, "fading", {**plain, "fading": fading}) for fading in (0.9, 0.97, 0.99, 0.997, 0.999)]
    return made


def strategies() -> list[tuple[str, str, Setting]]:
    """Of effort.csv: kind, technique, setting; as many of each kind, for the cheapest of more settings is cheaper.

    The ranges are as wide for each kind, and those of one kind alone are divided more finely.  Of what does both, SEARCHED are
    drawn, once.  Truncation alone absorbs nothing; the others have the product's defaults.
    """
    kinds = {"truncation": truncating(), "sparsity": controlling(), "both": doing_both()}
    kept = np.sort(np.random.default_rng(0).choice(len(kinds["both"]), SEARCHED, replace=False))
    kinds["both"] = [kinds["both"][at] for at in kept]
    assert all(len(made) == SEARCHED for made in kinds.values())
    return [(kind, technique, setting) for kind, made in kinds.items() for technique, setting in made]


def truncating() -> list[tuple[str, Setting]]:
    made: list[tuple[str, Setting]] = []
    for n in (4, 6, 8, 10, 12, 14, 17, 20, 26, 32, 40, 48):
        alone = {"n_max": n, "ald_threshold": 0.0}
        rhos = (0.0, 0.0025, 0.005, 0.01, 0.02, 0.03, 0.05)
        made += [("number", {"technique": "nt", **alone, "rho": rho}) for rho in rhos]
        made += [
            ("age, first in first out", {"technique": "at", **alone, "rho": rho}) for rho in (0.0, 0.01, 0.02, 0.05)
        ]
    room = {"technique": "nt", "n_max": ROOM, "ald_threshold": 0.0}
    for age in (8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 60):
        made += [("age", {**room, "truncate_age": age, "rho": rho}) for rho in (0.0, 0.01, 0.02, 0.05)]
    for least in (0.002, 0.003, 0.005, 0.01, 0.02, 0.03, 0.05, 0.1):
        rhos = (0.0025, 0.005, 0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.14)
        made += [("magnitude", {**room, "truncate_below": least, "rho": rho}) for rho in rhos]
    return made


def controlling() -> list[tuple[str, Setting]]:
    """The techniques that have a Gram matrix at a fixed N_max and at a fixed lambda_max, and absorbing."""
    made = controlled(FINE_BUDGETS, FINE_THRESHOLDS)
    # absorbing: as fklms at a fixed lambda_max that looks at the newest only, but before storing it
    made += [("absorbing", {"technique": "nt", "ald_threshold": least, "n_max": ROOM}) for least in FINE_ABSORBED]
    return [(name, {**setting, "rho": rho}) for name, setting in made for rho in (0.0, 0.005, 0.01)]


def controlled(budgets: Sequence[int], thresholds: Mapping[str, Sequence[float]]) -> list[tuple[str, Setting]]:
    made: list[tuple[str, Setting]] = []
    for technique in CONTROLLED:
        made += [(technique, {"technique": technique, "n_max": n}) for n in budgets]
        made += [
            (f"{technique}, λ_max", {"technique": technique, "n_max": ROOM, "lambda_max": most})
            for most in thresholds.get(technique, ())
        ]
    for technique in ("klms", "fklms"):  # the report's cheaper way: only the newest may go
        made += [
            (
                f"{technique}, λ_max, newest",
                {"technique": technique, "n_max": ROOM, "lambda_max": most, "candidates": "newest"},
            )
            for most in thresholds[technique]
        ]
    return made


def doing_both() -> list[tuple[str, Setting]]:
    made: list[tuple[str, Setting]] = []
    absorbing = [("absorbing", {"technique": "nt", "ald_threshold": least, "n_max": ROOM}) for least in ABSORBED]
    for name, setting in [*controlled(BUDGETS, THRESHOLDS), *absorbing]:
        made += [(name, {**setting, **stale, "rho": rho}) for stale in TRUNCATED for rho in (0.0, 0.01)]
    for least in ABSORBED:
        absorbs = {"technique": "nt", "ald_threshold": least}
        made += [("absorbing", {**absorbs, "n_max": n, "rho": rho}) for n in BUDGETS for rho in (0.0, 0.01, 0.02)]
    return made


# --------------------------------------------------------------------------------------------------------------- tasks


def learned(setting: Setting, names: Sequence[str], seeds: Sequence[int]) -> dict[str, Any]:
    """Of each stream: errors of the seeds, and the mean number of vectors at the end; None if updates are refused."""
    model, found = HostModel(spec_of(setting)), {}
    for name in names:
        errors, vectors = [], []
        for seed in seeds:
            x, y, f = stream(name, seed)
            model.reset()
            answers, statuses = model.prequential(x, y)
            half = len(x) // 2
            sound = (statuses >= 0).all()
            errors.append(float(np.mean((answers[half:].astype(float) - f[half:]) ** 2)) if sound else None)
            vectors.append(int(np.ravel(model.memory.field("n"))[0]))
        found[name] = {"errors": errors, "vectors": float(np.mean(vectors))}
    return found


def counted(setting: Setting, names: Sequence[str], seeds: Sequence[int]) -> dict[str, list[float]]:
    """Of each stream: mean instructions of an update, by seed.  Raises RuntimeError if the device's memory is not the host's."""
    spec = spec_of(setting)
    project = build(spec)
    image = model_image(project, find_target(TARGET), CHAIN)
    host, device, found = HostModel(spec, project.drop), UnicornModel(project, image), {}
    starts = [
        SAMPLES // 2 + k * SAMPLES // (2 * STRETCHES) + 77 * k for k in range(STRETCHES)
    ]  # at the switch, and later
    for name in names:
        found[name] = []
        for seed in seeds:
            x, y, _ = stream(name, seed)
            host.reset()
            at, before = 0, len(device.costs["update"])
            for start in starts:
                host.prequential(x[at:start], y[at:start])
                device.memory.bytes[:] = host.memory.bytes
                at = start + STRETCH
                device.prequential(x[start:at], y[start:at])
                host.prequential(x[start:at], y[start:at])
                if bytes(device.memory.bytes) != bytes(host.memory.bytes):
                    raise RuntimeError(f"{setting}: the memory on {TARGET} is not the host's")
            found[name].append(float(np.mean(device.costs["update"][before:])))
    return found


def run_task(task: Mapping[str, Any], shared: Any = None) -> Any:
    """Compute one task."""
    function = {"learned": learned, "counted": counted}[task["kind"]]
    return function(task["setting"], task["streams"], task["seeds"])


def context() -> list[str]:
    """What results depend on beside the tasks: the product's kernels, this file, and how the device's numbers differ."""
    kernels = [entry.kernel for entry in spec_of({"technique": "nt", "n_max": 4}).program.entries]
    source = Path(__file__).read_bytes().replace(b"\r\n", b"\n")
    return [sources_digest(kernels), hashlib.sha256(source).hexdigest(), f"{Status.REPLACED}"]


# -------------------------------------------------------------------------------------------------------------- results


def number(value: float) -> str:
    return f"{value:.4g}"


def mean_error(values: Sequence[float]) -> tuple[str, str]:
    found = np.asarray(values, float)
    return number(found.mean()), number(found.std(ddof=1) / np.sqrt(len(found)) if len(found) > 1 else 0.0)


def told(setting: Setting) -> str:
    return json.dumps(dict(setting), sort_keys=True)


class Measured:
    """Runs tasks, and keeps what is finished."""

    def __init__(self, workers: Workers, quick: bool) -> None:
        self.workers, self.quick = workers, quick

    def run(self, kind: str, settings: Sequence[Setting], names: Sequence[str], seeds: Sequence[int]) -> list[Any]:
        if kind == "counted":
            seeds = COUNTED[tuple(seeds)]
        seeds = seeds[:2] if self.quick else seeds
        common = {"kind": kind, "streams": list(names), "seeds": list(seeds)}
        return list(self.workers.run([{**common, "setting": dict(setting)} for setting in settings]))


def mean(errors: Sequence[float | None]) -> float:
    """Infinite where an update was refused."""
    return float(np.mean([np.inf if error is None else error for error in errors]))


def error_rows(measured: Measured) -> list[dict[str, str]]:
    """errors.csv: of each technique and what is added, the setting that is best where settings are chosen."""
    made = variants()
    if measured.quick:
        made = [one for one in made if one[0] in ("nt", "mklms")][::5]
    found = measured.run("learned", [setting for _, _, setting in made], STREAMS, CHOOSING)
    best: dict[tuple[str, str, str], tuple[float, Setting]] = {}
    for (technique, added, setting), result in zip(made, found, strict=True):
        for name in STREAMS:
            error, key = mean(result[name]["errors"]), (technique, added, name)
            if key not in best or error < best[key][0]:
                best[key] = (error, setting)
    chosen = list(best.items())
    rows = []
    for name in STREAMS:
        there = [(key, setting) for key, (_, setting) in chosen if key[2] == name]
        judged = measured.run("learned", [setting for _, setting in there], (name,), JUDGING)
        for ((technique, added, _), setting), result in zip(there, judged, strict=True):
            errors = result[name]["errors"]
            sound = [error for error in errors if error is not None]
            average, spread = mean_error(sound or [np.nan])
            rows.append(
                {
                    "stream": name,
                    "technique": technique,
                    "added": added,
                    "error": average,
                    "standard_error": spread,
                    "seeds": f"{len(errors)}",
                    "refused": f"{len(errors) - len(sound)}",
                    "vectors": number(result[name]["vectors"]),
                    "setting": told(setting),
                }
            )
    return rows


def effort_rows(measured: Measured) -> list[dict[str, str]]:
    """effort.csv: error and instructions of every setting, where settings are chosen."""
    made = strategies()
    if measured.quick:
        made = [one for kind in KINDS for one in [each for each in made if each[0] == kind][::25]]
    settings = [setting for _, _, setting in made]
    found = measured.run("learned", settings, CHANGING, CHOOSING)
    # what is nowhere within ten times the best error is not counted: no wanted error is so large
    best = {name: min(mean(result[name]["errors"]) for result in found) for name in CHANGING}
    near = [any(mean(result[name]["errors"]) <= 10 * best[name] for name in CHANGING) for result in found]
    counts = iter(measured.run("counted", [s for s, ok in zip(settings, near, strict=True) if ok], CHANGING, CHOOSING))
    rows = []
    for (kind, technique, setting), result, ok in zip(made, found, near, strict=True):
        taken = next(counts) if ok else {name: [] for name in CHANGING}
        for name in CHANGING:
            rows.append(
                {
                    "stream": name,
                    "kind": kind,
                    "technique": technique,
                    "error": number(mean(result[name]["errors"])),
                    "vectors": number(result[name]["vectors"]),
                    "instructions": f"{np.mean(taken[name]):.0f}" if ok else "",
                    "setting": told(setting),
                }
            )
    return rows


def chosen_rows(measured: Measured, effort: Sequence[Mapping[str, str]]) -> list[dict[str, str]]:
    """chosen.csv: the cheapest setting of each kind for a wanted error, on streams that it was not chosen on."""
    rows = []
    for name in CHANGING:
        picked = {
            (level, kind): cheapest(effort, name, kind, level * best_error(effort, name))
            for level in LEVELS
            for kind in KINDS
        }
        settings = [json.loads(one["setting"]) for one in picked.values() if one]
        errors = iter(measured.run("learned", settings, (name,), JUDGING))
        counts = iter(measured.run("counted", settings, (name,), JUDGING))
        taken: dict[tuple[float, str], list[float]] = {}
        for (level, kind), one in picked.items():
            line = {
                "stream": name,
                "level": f"{level:g}",
                "wanted": number(level * best_error(effort, name)),
                "kind": kind,
            }
            blank = dict.fromkeys(("technique", "error", "standard_error", "vectors", "instructions"), "")
            blank |= dict.fromkeys(("instructions_error", "ratio", "ratio_error", "setting"), "")
            if one:
                result = next(errors)[name]
                taken[level, kind] = next(counts)[name]
                average, spread = mean_error([np.nan if e is None else e for e in result["errors"]])
                blank |= {"technique": one["technique"], "setting": one["setting"], "error": average}
                blank |= {"standard_error": spread, "vectors": number(result["vectors"])}
                blank["instructions"], blank["instructions_error"] = mean_error(taken[level, kind])
            rows.append(line | blank)
        for row in rows:  # seed by seed, in parts of what both take
            mine, both = (taken.get((float(row["level"]), kind)) for kind in (row["kind"], "both"))
            if row["stream"] == name and mine and both:
                row["ratio"], row["ratio_error"] = mean_error(np.array(mine) / np.array(both))
    return rows


# -------------------------------------------------------------------------------------------------------------- command


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, help="processes; as many as cores if not given")
    parser.add_argument("--results", type=Path, help="file of finished tasks (OUTPUT/tasks.jsonl)")
    parser.add_argument(
        "-o", "--output", type=Path, default=DATA / "paper-003-changing", help="folder for CSV and figure"
    )
    parser.add_argument("--quick", action="store_true", help="a few settings and seeds: does it work?")
    parser.add_argument("--show", action="store_true", help="run nothing: figure and tables from the CSV files")
    given = parser.parse_args(words)
    if given.quick and given.output == DATA / "paper-003-changing":
        parser.error("--quick needs -o FOLDER, so that the full results stay")
    try:
        given.output.mkdir(parents=True, exist_ok=True)
        if given.show:
            results = {name: load(given.output / f"{name}.csv") for name in ("errors", "effort", "chosen")}
        else:
            path = given.results or given.output / "tasks.jsonl"
            with Kept(run_task, jobs=given.jobs, results=path, title="paper 003", context=context()) as workers:
                measured = Measured(workers, given.quick)
                results = {"errors": save(given.output / "errors.csv", error_rows(measured))}
                results["effort"] = save(given.output / "effort.csv", effort_rows(measured))
                results["chosen"] = save(given.output / "chosen.csv", chosen_rows(measured, results["effort"]))
        show(results, given.output)
    except UserError as error:
        print(f"paper_003_changing: {error}", file=sys.stderr)
        raise SystemExit(2) from None


if __name__ == "__main__":
    main()
