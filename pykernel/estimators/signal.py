"""The signal stage as a scikit-learn transformer: features of raw samples, bit for bit as on a microcontroller."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import TransformerMixin  # type: ignore[import-untyped]
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data  # type: ignore[import-untyped]

from pykernel.algorithms.signal.state import SignalStatus
from pykernel.estimators.base import KernelEstimator
from pykernel.estimators.parameters import Parameter
from pykernel.host.signal import SignalStage
from pykernel.spec.model import Spec
from pykernel.spec.signal import raw_samples_needed

COUNTS = Parameter("signal", kind=Sequence[int] | None)
NUMBERS = Parameter("signal", kind=float | Sequence[float] | None)
PARAMETERS = {
    "window": Parameter("signal", kind=int | None),
    "hop": Parameter("signal", kind=int | None),
    "rate": Parameter("signal", kind=float | None),
    "features": Parameter("signal", kind=Sequence[str] | Mapping[str, Sequence[str]] | None),
    "bands": Parameter("signal", kind=Sequence[Sequence[float]] | None),
    "log": Parameter("signal", default=False, kind=bool),
    "lags": COUNTS,
    "differences": COUNTS,
    "averages": COUNTS,
    "periods": COUNTS,
    "max_abs": NUMBERS,
    "resolution": NUMBERS,
    "precision": Parameter("", default="float32", kind=str),
}
"""The parameters: the keys of [signal] that define features, and the precision."""


class SignalFeatures(TransformerMixin, KernelEstimator):
    """Features of raw samples: window measures, spectra, lags, differences, averages and phases.

    A device with the same ``[signal]`` in its spec computes the same numbers, bit for bit. ``from_sklearn`` accepts a
    pipeline that begins with this step; the device then takes raw samples. docs/guide/signals.md defines each feature.

    Rows of X are raw samples in time order, and columns are channels. Without ``window``, each raw sample is a step.
    With ``window``, the first step ends when the first window is full; from then on, a step ends every ``hop`` raw
    samples.

    Parameters
    ----------
    window : int, default=None
        Number of raw samples in a window. None: there are no windows; ``lags``, ``differences`` and ``averages`` then
        apply to the raw samples.
    hop : int, default=None
        Number of raw samples from the start of one window to the start of the next; it must divide ``window``. None: the
        same as ``window``.
    rate : float, default=None
        Raw samples per second; needed for ``bands`` and for the features "centroid", "dominant" and "flatness".
    features : sequence of str, or dict of sequences, default=None
        Features of each channel in a window, such as ``["mean", "rms"]``; a dict has a separate list for each channel.
    bands : sequence of (float, float), default=None
        Frequency bands, each given as a pair of frequencies in Hz. For each band and channel, the feature is the root mean
        square of the signal within the band. ``window`` must be a power of two.
    log : bool, default=False
        For ``bands``: log2(1 + power / floor) instead of the root mean square, with floor = (max_abs / 2^20)^2.
    lags : sequence of int, default=None
        For each number n, the value n steps ago; 0 is now. None: ``[0]``.
    differences : sequence of int, default=None
        For each number n, the difference between the value now and the value n steps ago.
    averages : sequence of int, default=None
        For each number n, the mean of the latest n steps.
    periods : sequence of int, default=None
        For each period, in raw samples: cos(2 pi n / period) and sin(2 pi n / period) at the n-th row; the first row has
        n = 1.
    max_abs : float, or for int16 a sequence of floats, default=None
        Largest magnitude of a raw sample; for int16, each channel may have a separate limit. The device
        refuses a raw sample beyond the limit, and so does ``transform``. None: 1e6.
    resolution : float or sequence of float, default=None
        For int16: the value of one count of a raw sample, such as 1 for an ADC's readings. None: a power of two derived
        from ``max_abs``.
    precision : {"float32", "float64", "int16"}, default="float32"
        Number format on the device. "int16" computes with integers only, and needs ``max_abs``.

    Attributes
    ----------
    n_features_in_ : int
        Number of channels.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the channels, if the data had names. Otherwise the channels are called x0, x1 and so on.

    See Also
    --------
    pykernel.importers.importing.from_sklearn : Converts a pipeline with this step to a spec.

    Notes
    -----
    Each row of ``transform`` depends on earlier rows, so split by time, and do not shuffle. With windows, most
    consecutive rows are equal, so train on the result of ``steps``. A model that learns on the device needs ``[signal]``
    in its own spec.

    ``transform`` takes O(n_samples (n_features_in_ + n_features_out)) operations. With windows, each step adds
    O(m window / hop), where m is the number of features of a window, without lags, differences and averages. Spectra add
    O(n_features_in_ window log(window)) for each step, and each average over n steps adds O(n).

    References
    ----------
    Pebay, P. P. (2008). Formulas for robust, one-pass parallel computation of covariances and arbitrary-order
    statistical moments. Sandia report 2008-6212.

    Examples
    --------
    >>> import numpy as np
    >>> from pykernel import SignalFeatures
    >>> raw = np.sin(np.arange(40.0)).reshape(-1, 1)
    >>> stage = SignalFeatures(window=16, hop=8, features=["rms", "crest"]).fit(raw)
    >>> stage.get_feature_names_out().tolist(), stage.transform(raw).shape, stage.steps(raw).shape
    (['rms x0', 'crest x0'], (40, 2), (4, 2))
    """

    _family, _positional = PARAMETERS, 2

    def fit(self, X: Any, y: Any = None) -> Self:
        """Store the number and the names of the channels.  Nothing else is learned.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_channels)
            Raw samples, in time order.
        y : ignored

        Returns
        -------
        self : estimator

        Raises
        ------
        UserError
            If a parameter is invalid.
        ValueError
            If X contains anything but finite numbers.
        """
        validate_data(self, X, dtype=np.float64)
        self._spec()
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Return the newest features after each raw sample, as the device's ``NAME_signal`` writes them at that time.

        Each call starts anew. The first rows, after which a device has no features yet, hold the first features that it
        computes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_channels)
            Raw samples, in time order.

        Returns
        -------
        z : ndarray of shape (n_samples, n_features_out)
            The numbers that the device computes, converted to float64.

        Raises
        ------
        UserError
            If there are too few rows for the first features, or the magnitude of a value exceeds ``max_abs``.
        ValueError
            If X contains anything but finite numbers. NaN is refused: for a missing raw sample, the firmware calls
            ``NAME_gap``, after which windows and lags start again. Transform the parts before and after a gap
            separately.
        """
        statuses, values = self._pushed(X)
        first = int(np.argmax(statuses == SignalStatus.READY))
        values[:first] = values[first]
        return values

    def steps(self, X: Any, y: Any = None) -> Any:
        """Return one row of features per step, without the repetitions of ``transform``. Train on these rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_channels)
            Raw samples, in time order.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), default=None
            A label for each raw sample.

        Returns
        -------
        z : ndarray of shape (n_steps, n_features_out)
        y : ndarray of shape (n_steps,) or (n_steps, n_outputs)
            For each step, the label of its last raw sample. Returned only if ``y`` was given.

        Raises
        ------
        UserError
            If there are too few rows for the first features, or the magnitude of a value exceeds ``max_abs``.
        ValueError
            If X contains anything but finite numbers, or X and y have different lengths.
        """
        check_consistent_length(X, y)
        statuses, values = self._pushed(X)
        ends = statuses == SignalStatus.READY
        return values[ends] if y is None else (values[ends], np.asarray(y)[ends])

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the features' names as in a spec, such as ``rms ax``.

        Parameters
        ----------
        input_features : ignored

        Returns
        -------
        names : ndarray of str, of shape (n_features_out,)
        """
        check_is_fitted(self)
        return np.array(self._spec().input.columns, object)

    def __pykernel_signal__(self) -> Spec:
        """Return the spec that ``from_sklearn`` uses if this transformer is the first step of a pipeline."""
        return self._spec()

    def _spec(self) -> Spec:
        """Return a spec with this transformer's [signal], and with a placeholder model, because a spec must have a model."""
        content = self._sections(self._given())
        channels = list(self._columns or [f"x0..x{self.n_features_in_ - 1}"])
        given = {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in content.pop("signal", {}).items()}
        signal = given | {"channels": channels}
        model = {"learning": {"rule": "nlms"}, "label": {"max_abs": 1.0}}
        return self._made({"name": "windows", **model, "signal": signal, **content}, None)

    def _pushed(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return (statuses, values): the status of each raw sample, and the newest features after it (NaN before the first step)."""
        X, spec = self._inputs(X), self._spec()
        assert spec.signal is not None
        least = raw_samples_needed(spec.signal)
        self._where.need(
            len(X) >= least, f"X has {len(X)} rows, but the first features need {least}; give X at least {least} rows"
        )
        statuses, values = SignalStage(spec).push(X)
        for row in np.flatnonzero(statuses == SignalStatus.REFUSED_SAMPLE):
            raise self._where.error(
                f"row {row} of X holds a number beyond max_abs, which the device refuses; raise max_abs, or transform the rows "
                "before and after this row separately"
            )
        return statuses, values.astype(np.float64)
