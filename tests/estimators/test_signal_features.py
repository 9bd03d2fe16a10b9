"""The signal stage as a transformer: the rows of the device."""

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import GridSearchCV, TimeSeriesSplit
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

from pykernel import SignalFeatures
from pykernel.errors import UserError
from pykernel.host.signal import SignalStage
from pykernel.spec.model import make_spec
from pykernel.spec.signal import raw_samples_needed

WINDOWS = {"window": 16, "hop": 8, "features": ["mean", "kurtosis"], "rate": 100.0, "bands": [[5.0, 20.0]]}
OF_EACH = {"ax": ["rms"], "ay": ["std", "mean"]}
LAGS = {"lags": (0, 1, 3), "differences": [2], "averages": [3], "periods": [24], "precision": "float64"}
WHOLE = {
    "window": 16,
    "hop": 4,
    "features": ["mean", "rms"],
    "lags": [0, 1],
    "max_abs": [4.0, 8.0],
    "precision": "int16",
}


def recording(rows=200):
    rng, t = np.random.default_rng(2), np.arange(rows)
    x = np.sin(t[:, None] / [3.0, 7.0]) + 0.3 * rng.normal(size=(rows, 2)) + 2.0
    return pd.DataFrame(x, columns=["ax", "ay"])


@pytest.mark.parametrize("how", [{}, WINDOWS, LAGS, WINDOWS | LAGS, WHOLE, WINDOWS | {"features": OF_EACH}])
def test_each_row_holds_the_newest_features_of_the_device(how):
    x = recording()
    stage = SignalFeatures(**how).fit(x)
    keys = {key: value for key, value in how.items() if key != "precision"} | {"channels": ["ax", "ay"]}
    content = {"name": "m", "precision": stage.precision, "signal": keys, "learning": {"rule": "nlms"}}
    spec = make_spec(content | {"label": {"column": "y", "max_abs": 3.0}})
    device, least = SignalStage(spec), raw_samples_needed(spec.signal)
    _, newest = device.push(x)
    found = stage.transform(x)
    assert found[least - 1 :].astype(newest.dtype).tobytes() == newest[least - 1 :].tobytes()
    assert (found[: least - 1] == found[least - 1]).all() and np.isnan(newest[: least - 1]).all()
    # each call starts anew
    assert (stage.transform(x[:least]) == found[:least]).all() and (stage.transform(x) == found).all()
    steps, labels = stage.steps(x, np.arange(200)[:, None])
    assert labels[0] == least - 1 and (np.diff(labels[:, 0]) == spec.signal.step).all()
    assert (steps == found[labels[:, 0]]).all() and (stage.steps(x) == steps).all()
    names = stage.get_feature_names_out()
    assert tuple(names) == spec.input.columns
    framed = stage.set_output(transform="pandas").transform(x)
    assert list(framed.columns) == list(names) and (framed.to_numpy() == found).all()


def test_windows_are_chosen_by_a_search():
    """Numbers come as NumPy's; folds lie behind each other in time."""
    loud = np.arange(1200) // 50 % 2
    x = np.random.default_rng(0).normal(size=(1200, 2)) * (1 + loud)[:, None]
    grid = {"signalfeatures__window": np.array([2, 10, 100])}
    search = GridSearchCV(make_pipeline(SignalFeatures(features=["std"]), SVC()), grid, cv=TimeSeriesSplit(3))
    assert search.fit(x, loud).best_params_ == {"signalfeatures__window": 10}


@pytest.mark.parametrize(
    ("how", "rows", "says"),
    [
        ({"hop": 8}, 20, r"\[signal\] hop also requires the key window"),
        ({"window": 8, "features": ["men"]}, 20, "did you mean 'mean'"),
        ({"window": 8, "features": [1, 2]}, 20, "features is 1; it must be 'mean', 'rms', [^;]* or 'flatness'$"),
        ({"window": 8, "features": {"ax": ["mean"]}}, 20, r"\[signal\] features has no entry for the channel 'ay'"),
        ({"precision": "int16"}, 20, r"\[signal\] max_abs is missing; int16 needs the range of each channel"),
        ({"lags": []}, 20, r"\[signal\] lags is \[\], and nothing else makes features"),
        ({"window": 8, "hop": 4, "features": ["mean"], "lags": [0, 2]}, 15, "has 15 rows, but the first features need 16"),
        ({"max_abs": 2.0}, 20, "row [0-9]+ of X holds a number beyond max_abs, which the device refuses"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_in_a_sentence(how, rows, says):
    with pytest.raises(UserError, match=f"^SignalFeatures: .*{says}") as refused:
        SignalFeatures(**how).fit(recording(20)).transform(recording(rows))
    assert "\n" not in str(refused.value)


def test_what_is_missing_is_refused():
    x = recording(20)
    stage = SignalFeatures().fit(x)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        stage.steps(x, np.zeros(19))
    x.iloc[3, 1] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        stage.transform(x)
    with pytest.raises(UserError, match="holds 65 names; it must hold from 1 to 64"):
        SignalFeatures().fit(np.zeros((1, 65)))
