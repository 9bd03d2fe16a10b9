"""The shipped stream: hourly demand for rental bikes, the stream's spec, and trivial forecasts."""

from __future__ import annotations

import csv
import math
from importlib import resources

import numpy as np

from pykernel.spec.defaults import completed
from pykernel.spec.model import Spec, make_spec

DAY = 24  # rows per day; a few hours are missing from the data


def bikeshare() -> tuple[np.ndarray, np.ndarray, tuple[str, ...]]:
    """Return the shipped stream: inputs (8645, 8), scaled to about [-2, 2]; rentals per hour, (8645,); and the inputs' names."""
    with resources.files("pykernel.data").joinpath("bikeshare.csv").open(encoding="utf-8") as file:
        reader = csv.DictReader(file)
        rows = np.array([[float(row[name]) for name in reader.fieldnames or ()] for row in reader])
    hour, workingday, temperature, humidity, weather, rentals = rows.T
    angle = 2 * math.pi * hour / 24
    columns = {
        "hour_sin": np.sin(angle),
        "hour_cos": np.cos(angle),
        "halfday_sin": np.sin(2 * angle),
        "halfday_cos": np.cos(2 * angle),
        "workingday": 2 * workingday - 1,
        "temperature": 4 * temperature - 2,
        "humidity": 2 * humidity - 1,
        "weather": weather - 0.5,
    }
    return np.column_stack(list(columns.values())), rentals, tuple(columns)


def default_spec() -> Spec:
    """Return the stream's spec, a default model for the stream's columns."""
    columns = list(bikeshare()[2])
    return make_spec(
        dict(completed({"name": "bikeshare", "input": {"columns": columns}, "label": {"column": "rentals"}}))
    )


def lagged(y: np.ndarray, rows: int) -> np.ndarray:
    """Forecast each label as the label ``rows`` rows earlier. The first ``rows`` forecasts are 0."""
    return np.concatenate([np.zeros(rows), y[:-rows]])


def running_mean(y: np.ndarray) -> np.ndarray:
    """Forecast each label as the mean of all earlier labels. The first forecast is 0."""
    return np.concatenate([[0.0], np.cumsum(y)[:-1] / np.arange(1, len(y))])


def mean_error(forecasts: np.ndarray, y: np.ndarray) -> float:
    """Return the mean absolute error over the second half of the rows. The predictors warm up over the first half."""
    return float(np.abs(forecasts - y)[len(y) // 2 :].mean())
