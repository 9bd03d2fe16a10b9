"""What the three examples are worth, beside simple methods, and what they cost on a device.

    python -m examples.signals.data                                  # the recordings, from PyPI
    python -m examples.signals.study [--only NAME …] [-o docs/data/signals]

forecast   errors on the same hours, one hour and one day ahead.
exercises  errors on people of whom nothing was learned, and after half of each of their sets was.
bearing    alarms of the monitor and of simple scores, of the same features and of usual single ones.
cost       bytes, and the most instructions of a raw sample: bound, and counted on the recordings.
tried      other settings, by the data that these were chosen on.

Settings were chosen on the first half of the bike rentals, on CHOSEN_ON people, and by what is known of healthy bearings.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.tables import DATA, save
from examples.signals.data import FAULTS, FOLDER, NORMAL, ROOT
from examples.signals.page import show
from pykernel import HostModel, Spec, load_spec
from pykernel.algorithms.novelty.threshold import GAP
from pykernel.host.samples import Batch, read_rows
from pykernel.host.signal import SignalStage, steps_of
from pykernel.host.simple import linear_specs
from pykernel.spec.model import make_spec
from pykernel.tuning.costs import memory_bytes

HERE = Path(__file__).parent
BIKES = ROOT / "pykernel" / "data" / "bikeshare.csv"
RECORDED = {"bicycles": BIKES, "exercises": FOLDER / "exercises.csv", "bearing": FOLDER / "bearing.csv"}
Rows = list[dict[str, Any]]


def spec_of(name: str, **changed: Any) -> Spec:
    """The spec of an example, with other keys in its sections; None takes a section or key away."""
    spec = load_spec(HERE / f"{name}.toml")
    if not changed:
        return spec
    content = spec.model_dump(exclude_unset=True)
    for name in ("input", "label"):  # what follows from the signal
        content[name] = {k: v for k, v in content.get(name, {}).items() if k not in ("columns", "dim", "max_abs")}
    for section, keys in changed.items():
        merged = {} if keys is None else content.get(section, {}) | keys
        content[section] = {key: value for key, value in merged.items() if value is not None}
    return make_spec({name: keys for name, keys in content.items() if keys or name == "novelty"})


# --------------------------------------------------------------------------------------------------------- forecast

DAY = {"signal": {"lags": [0, 144], "ahead": 24}}
"""The same hour of the day and of the week, seen a day before."""


def answers(spec: Spec) -> tuple[np.ndarray, np.ndarray]:
    """What the model said of every hour that has features and a truth, and the truth."""
    raw, _ = read_rows(spec, str(BIKES))
    batches = list(steps_of(spec, [Batch(raw, np.zeros(len(raw)), 0)]))
    x, truth = (np.concatenate([getattr(batch, key) for batch in batches]) for key in ("x", "y"))
    known = ~np.isnan(truth)
    return HostModel(spec.inner).prequential(x, truth)[0][known], truth[known]


def forecasts(ahead: int) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Of each predictor what it said, and the truth, of every hour that has features and a truth."""
    spec = spec_of("bicycles", **({} if ahead == 1 else DAY))
    assert spec.signal is not None and spec.signal.ahead == ahead
    raw, _ = read_rows(spec, str(BIKES))
    batches = list(steps_of(spec, [Batch(raw, np.zeros(len(raw)), 0)]))
    x, truth = (np.concatenate([getattr(batch, key) for batch in batches]) for key in ("x", "y"))
    models = {"model": spec.inner, **linear_specs(spec.inner)}
    found = {name: HostModel(each).prequential(x, truth, 0, ahead - 1)[0] for name, each in models.items()}
    hours = np.arange(len(raw) - len(x), len(raw))[: len(x) - ahead]
    series = raw[:, 0]
    assert np.array_equal(truth[:-ahead], series[hours + ahead])
    naive = {"last value": series[hours], "same hour yesterday": series[hours + ahead - 24]}
    naive["same hour last week"] = series[hours + ahead - 168]
    return {name: said[: len(hours)] for name, said in found.items()} | naive, truth[: len(hours)]


def forecast() -> Rows:
    rows: Rows = []
    for ahead in (1, 24):
        found, truth = forecasts(ahead)
        for name, said in found.items():
            errors = np.abs(said - truth)
            half = len(errors) // 2
            rows.append(
                {"ahead": ahead, "predictor": name, "hours": len(errors), "mae": f"{errors.mean():.1f}"}
                | {"rmse": f"{np.sqrt((errors**2).mean()):.1f}", "mae_second_half": f"{errors[half:].mean():.1f}"}
            )
    return rows


# -------------------------------------------------------------------------------------------------------- exercises

CHOSEN_ON, JUDGED_ON = (1, 2, 3, 4, 5), (6, 7, 8, 9, 10)


class Windows:
    """Features of all windows, and of each its class, its person, and whether it is of the first half of its set."""

    def __init__(self, spec: Spec) -> None:
        raw, labels = read_rows(spec, str(RECORDED["exercises"]))
        people = np.array([int(line.rsplit(",", 1)[1]) for line in RECORDED["exercises"].read_text().split()[1:]])
        pieces = [piece for piece in SignalStage(spec).recorded(raw) if len(piece.rows)]
        rows = np.concatenate([piece.rows for piece in pieces])
        self.x = np.concatenate([piece.features for piece in pieces])
        self.y, self.person = labels[rows], people[rows]
        self.first = np.concatenate([np.arange(len(p.rows)) < len(p.rows) // 2 for p in pieces])


Fit = Callable[[np.ndarray, np.ndarray], Callable[[np.ndarray], np.ndarray]]


def learned(spec: Spec) -> Fit:
    """A model that learns the windows in their order, and is then asked."""

    def fit(x: np.ndarray, y: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        model = HostModel(spec.inner)
        model.update(x, y)
        return model.classify

    return fit


def fitted(estimator: Any) -> Fit:
    from sklearn.base import clone
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return lambda x, y: make_pipeline(StandardScaler(), clone(estimator)).fit(x, y).predict


def exercises() -> Rows:
    from sklearn.dummy import DummyClassifier
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.neighbors import NearestCentroid
    from sklearn.svm import SVC

    spec = spec_of("exercises")
    windows = Windows(spec)
    plain = spec_of("exercises", input=None, kernel=None, learning=None)
    linear = spec_of("exercises", input=None, kernel=None, reduction=None, learning={"rule": "rls", "noise": None, "forgetting": None})  # fmt: skip
    methods = {
        "model": learned(spec),
        "the spec without scale, width and rule": learned(plain),
        "linear model (rls)": learned(linear),
        "majority class": fitted(DummyClassifier()),
        "nearest centroid": fitted(NearestCentroid()),
        "logistic regression": fitted(LogisticRegression(max_iter=1000)),
        "random forest, 100 trees": fitted(RandomForestClassifier(100, random_state=0)),
        "support vector machine": fitted(SVC()),
    }
    return [
        {"method": name, "windows": len(windows.x), "chosen_on": new_people(windows, fit, CHOSEN_ON)["new"]}
        | new_people(windows, fit)
        for name, fit in methods.items()
    ]


def new_people(windows: Windows, fit: Fit, people: Sequence[int] = JUDGED_ON) -> dict[str, str]:
    """Errors in percent on people of whom nothing was learned, but of all others; and after half of each of their sets was."""

    def error(person: int, own: bool, second: bool) -> float:
        mine = windows.person == person
        learn = ~mine | (windows.first & own)
        judged = mine & ~(windows.first & second)
        return 100 * float(np.mean(fit(windows.x[learn], windows.y[learn])(windows.x[judged]) != windows.y[judged]))

    new = [error(person, False, False) for person in people]
    before, after = ([error(person, own, True) for person in people] for own in (False, True))
    found = {"new": np.mean(new), "worst": max(new), "second_halves": np.mean(before), "own_learned": np.mean(after)}
    return {name: f"{value:.1f}" for name, value in found.items()}


# ---------------------------------------------------------------------------------------------------------- bearing


def area(normal: np.ndarray, fault: np.ndarray) -> float:
    """The area under the ROC curve: how often a level of the fault is above one of normal operation."""
    order = np.sort(normal)
    below = np.searchsorted(order, fault, "left") + np.searchsorted(order, fault, "right")
    return float(below.mean() / 2 / len(order))


def smoothed(scores: np.ndarray, part: float) -> np.ndarray:
    """The level after each score, as the device smooths it."""
    levels, level = np.empty(len(scores)), scores[0]
    for t, score in enumerate(scores):
        level += part * (score - level)
        levels[t] = level
    return levels


Score = Callable[[np.ndarray], np.ndarray]


def simple_scores(learnt: np.ndarray) -> dict[str, Score]:
    mean, deviation = learnt.mean(0), learnt.std(0)
    inverse = np.linalg.inv(np.cov(learnt.T))
    return {
        "max |z|, same features": lambda x: np.abs((x - mean) / deviation).max(1),
        "Mahalanobis distance, same features": lambda x: np.sqrt(np.einsum("ij,jk,ik->i", x - mean, inverse, x - mean)),
    }


def recorded_features(spec: Spec) -> dict[str, np.ndarray]:
    """Of each recording, (steps, features)."""
    raw, _ = read_rows(spec, str(RECORDED["bearing"]))
    pieces = [piece.features for piece in SignalStage(spec).recorded(raw)]
    names = [*NORMAL, *(name for group in FAULTS.values() for name in group)]
    return dict(zip(names, pieces, strict=False))


def monitored(spec: Spec) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray], int]:
    """Levels of the monitor, and whether it is in alarm, from what it knows after two healthy recordings; its bytes."""
    found, model = recorded_features(spec), HostModel(spec.inner)
    for name in NORMAL[:2]:
        model.prequential(found[name])
    kept = bytes(model.memory.bytes)
    levels, alarms = {}, {}
    for name, x in found.items():
        model.memory.bytes[:] = kept
        _, states, statuses = model.prequential_alarms(x)
        levels[name] = states[:, 0]
        alarms[name] = np.isin(statuses, [int(status) for status in spec.inner.program.alarms])
    return levels, alarms, memory_bytes(spec.inner)["state_bytes"]


def verdict(name: str, levels: Mapping[str, np.ndarray], alarms: Mapping[str, np.ndarray], size: int) -> dict[str, Any]:
    """False alarms in the third healthy recording, steps and how many alarms they make; of each group of faults AUC and the part of the steps in alarm."""
    normal = NORMAL[2]
    row = {"score": name, "bytes": size, "steps": len(levels[normal]), "false": f"{100 * alarms[normal].mean():.1f}"}
    row |= {
        "false_alarms": int(np.sum(np.diff(np.flatnonzero(alarms[normal]), prepend=-len(levels[normal])) > GAP + 1))
    }
    for group, names in FAULTS.items():
        row |= {f"auc, {group}": f"{min(area(levels[normal], levels[each]) for each in names):.3f}"}
        row |= {f"seen, {group}": f"{100 * min(alarms[each].mean() for each in names):.0f}"}
        late = max(int(np.argmax(alarms[each])) if alarms[each].any() else len(alarms[each]) for each in names)
        row |= {f"after, {group}": late}
    return row


def compared(name: str, found: Mapping[str, np.ndarray], score: Score, size: int, part: float) -> dict[str, Any]:
    """A score with the monitor's smoothing; its threshold is the largest level of the second healthy recording."""
    levels = {each: smoothed(score(x), part) for each, x in found.items()}
    alarms = {each: level > levels[NORMAL[1]].max() for each, level in levels.items()}
    return verdict(name, levels, alarms, size)


def bearing() -> Rows:
    spec = spec_of("bearing")
    assert spec.novelty is not None
    part = spec.novelty.smoothing
    found, rows = recorded_features(spec), [verdict("model", *monitored(spec))]
    for name, score in simple_scores(np.concatenate([found[each] for each in NORMAL[:2]])).items():
        d = spec.dim
        rows.append(compared(name, found, score, 4 * (2 * d if "max" in name else d + d * (d + 1) // 2), part))
    for feature in ("rms", "kurtosis", "crest"):
        signal = {"features": [feature], "bands": None, "log": None, "rate": None}
        alone = recorded_features(spec_of("bearing", signal=signal, input=None))
        learnt = np.concatenate([alone[each] for each in NORMAL[:2]])
        rows.append(compared(f"{feature} alone", alone, lambda x: x[:, 0], 4, part))
        if feature == "rms":
            mean, deviation = learnt.mean(), learnt.std()
            distance = lambda x, m=mean, s=deviation: np.abs(x[:, 0] - m) / s  # noqa: E731
            rows.append(compared("z of rms, high or low", alone, distance, 8, part))
    return rows


# ------------------------------------------------------------------------------------------------------------- cost

TARGETS = {"cortex-m4f": {"bicycles": 1500, "exercises": 40_000, "bearing": 60_000}}
TARGETS["cortex-m0plus"] = {"bicycles": 400, "exercises": 12_000, "bearing": 20_000}
"""Rows of the recordings that are emulated; with soft floating point, fewer."""


def cost() -> Rows:
    from pykernel.targets.check import check_targets

    rows: Rows = []
    for name, path in RECORDED.items():
        spec = spec_of(name)
        x, y = read_rows(spec, str(path))
        for target, count in TARGETS.items():
            taken = count[name]
            report = check_targets(spec, [target], stream=(x[:taken], y[:taken]), chain="gcc", tries=0)
            (row,) = report.rows
            assert row["equal"], row
            call = next(each for each in ("push_labelled", "push") if each in row["calls"])
            rows.append(
                {"example": name, "target": target, "state_bytes": row["state_bytes"], "ram_bytes": row["ram_bytes"]}
                | {"flash_bytes": row["flash_bytes"], "stack_bytes": row["stack_bytes"], "rows": taken, "call": call}
                | {
                    "mean": round(row[call]["mean"]),
                    "median": round(row[call]["median"]),
                    "counted": row[call]["max"],
                    "bound": row[call]["bound"],
                }
                | {"compiler": f"{row['compiler']} {row['version'].split()[-2]} {row['flags']}"}
            )
    return rows


# ------------------------------------------------------------------------------------------------- what was tried

BICYCLES_TRIED: Mapping[str, Mapping[str, Any]] = {
    "as shipped": {},
    "lags 0, 23, 167": {"signal": {"lags": [0, 23, 167]}},
    "lags 0, 1, 2, 23, 167": {"signal": {"lags": [0, 1, 2, 23, 167]}},
    "lags 0, 1, 23": {"signal": {"lags": [0, 1, 23]}},
    "periods 24, 168": {"signal": {"periods": [24, 168]}},
    "no period": {"signal": {"periods": None}},
    "no workingday": {"signal": {"channels": ["rentals"]}},
    "temperature": {"signal": {"channels": ["rentals", "workingday", "temperature"]}},
    "temperature, humidity, weather": {
        "signal": {"channels": ["rentals", "workingday", "temperature", "humidity", "weather"]}
    },
    "difference 1": {"signal": {"differences": [1]}},
    "average 24": {"signal": {"averages": [24]}},
    "n_max 32": {"reduction": {"n_max": 32}},
    "n_max 96": {"reduction": {"n_max": 96}},
}
UNITS = {
    **{"mean a": 1, "mean w": 2, "std a": 3, "std w": 1, "min a": 1, "max a": 1, "range a": 1, "range w": 0.3},
    **{"change a": 30, "change w": 10, "crossings": 5, "skewness": 0.5, "correlation": 1, "centroid": 0.5},
}
"""What brings a feature of accelerometer (a) or gyroscope (w) to about the same scale."""
BOTH = ["mean", "std"]


def exercises_with(more: Sequence[str], where: str = "aw", **signal: Any) -> Spec:
    """Other features beside, or another window; sigma grows with the root of the number of features."""
    names = ("ax", "ay", "az", "wx", "wy", "wz")
    keys = {"features": {name: [*BOTH, *(more if name[0] in where else ())] for name in names}} | signal
    columns = spec_of("exercises", signal=keys, input=None).input.columns or ()
    scale = [UNITS.get(f"{c.split()[0]} {c.split()[1][0]}") or UNITS[c.split()[0]] for c in columns]
    width = round(2 * (len(scale) / 12) ** 0.5, 2)
    return spec_of("exercises", signal=keys, input={"scale": scale}, kernel={"sigma": width})


def exercises_tried() -> dict[str, Spec]:
    found = {"as shipped": spec_of("exercises")}
    found |= {
        f"{each} too": exercises_with([each]) for each in ("range", "change", "crossings", "skewness", "correlation")
    }
    found["min, max of the accelerometer too"] = exercises_with(["min", "max"], "a")
    found["centroid of the gyroscope too"] = exercises_with(["centroid"], "w", rate=50.0)
    found |= {f"window {n}": exercises_with([], window=n, hop=n // 2) for n in (128, 512)}
    found |= {f"sigma {width}": spec_of("exercises", kernel={"sigma": width}) for width in (1.5, 3.0)}
    found |= {f"noise {noise}": spec_of("exercises", learning={"noise": noise}) for noise in (0.1, 0.3, 3.0)}
    found["running scale, sigma 3.46"] = spec_of("exercises", input=None, kernel={"sigma": 3.46})
    found["n_max 96"] = spec_of("exercises", reduction={"n_max": 96})
    found["n_max 96, noise 0.1"] = spec_of("exercises", reduction={"n_max": 96}, learning={"noise": 0.1})
    return found


def tried() -> Rows:
    """What settings were chosen by: bicycles, MAE of the first half; exercises, errors in % of people 1 to 5."""
    rows: Rows = []
    for what, changed in BICYCLES_TRIED.items():
        errors = np.abs(np.subtract(*answers(spec_of("bicycles", **changed))))
        rows.append({"example": "bicycles", "changed": what, "error": f"{errors[: len(errors) // 2].mean():.1f}", "own_learned": ""})  # fmt: skip
    for what, spec in exercises_tried().items():
        found = new_people(Windows(spec), learned(spec), CHOSEN_ON)
        rows.append({"example": "exercises", "changed": what, "error": found["new"], "own_learned": found["own_learned"]})  # fmt: skip
    return rows


STUDIES: Mapping[str, Callable[[], Rows]] = {
    "forecast": forecast,
    "exercises": exercises,
    "bearing": bearing,
    "cost": cost,
    "tried": tried,
}


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=STUDIES, default=list(STUDIES))
    parser.add_argument("-o", "--out", type=Path, default=DATA / "signals")
    chosen = parser.parse_args(words)
    chosen.out.mkdir(parents=True, exist_ok=True)
    for name in chosen.only:
        for row in save(chosen.out / f"{name}.csv", STUDIES[name]()):
            print(*row.values(), sep="  ")
    if chosen.out == DATA / "signals":
        show()


if __name__ == "__main__":
    main()
