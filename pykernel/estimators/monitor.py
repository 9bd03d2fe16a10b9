"""A monitor as a scikit-learn estimator: it learns, row by row, what is normal for a machine, and raises alarms for other rows.

The estimator runs the host model of the rule "gmm", so what it learns equals, bit for bit, what a device learns.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import OutlierMixin  # type: ignore[import-untyped]
from sklearn.utils.validation import check_is_fitted  # type: ignore[import-untyped]

from pykernel.algorithms.novelty.threshold import LEVEL_MOST
from pykernel.estimators.base import Streaming
from pykernel.estimators.online import COMMON
from pykernel.estimators.parameters import Parameter, of_keys
from pykernel.host.single import Single
from pykernel.spec.defaults import INPUT_LIMIT
from pykernel.spec.families.gmm import GMM_MODELS
from pykernel.spec.family import Family


class Told(NamedTuple):
    """The device's report after each row of a stream, as arrays with one entry for each row.

    level: the smoothed novelty, (n_samples,).  threshold: the level above which there is an alarm, (n_samples,).
    alarm: True if the row's status is an alarm, (n_samples,) of bool.  since: length of the alarm so far, in rows, or 0
    if the latest accepted row is not in alarm, (n_samples,) of int.  blame: each sensor's share in the present alarm
    or, if there is none, in the latest alarm, (n_samples, n_features).  kind: the kind of alarm as a word, or "" if
    there is no alarm, (n_samples,) of str.  An alarm keeps its kind in gaps of up to five quiet rows.
    """

    level: np.ndarray
    threshold: np.ndarray
    alarm: np.ndarray
    since: np.ndarray
    blame: np.ndarray
    kind: np.ndarray


class OnlineMonitor(OutlierMixin, Streaming):  # type: ignore[misc]
    """A monitor in fixed memory that finds novel rows, the sensor to blame, and the kind of change.

    A bank of Gaussians, one for each regime of the machine, learns the distribution of the rows; a linear model
    predicts each row from the previous row. A row is novel if it is unlike all regimes, if it does not follow from the
    previous row, or if a sensor keeps repeating the same value. As a rule, the Gaussians and the linear model learn
    nothing during an alarm, but a change that lasts ``relearn_after`` rows becomes normal.

    ``monitor`` takes rows in time order, and gives the same results as a microcontroller, bit for bit. ``predict`` and
    ``score_samples`` evaluate each row separately, as if this row came next.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    level_, threshold_ : float
        Smoothed novelty after the last row, and the limit above which there is an alarm.
    since_ : int
        Length of the present alarm so far, in rows; 0 if the latest accepted row is not in alarm.
    blame_ : ndarray of shape (n_features,)
        Each sensor's share in the present alarm or, if there is none, in the latest alarm.
    kind_ : str
        The kind of alarm: "jump", "drift", "stuck" or "noise" for a change of one sensor, "regime" for a new
        combination of values, or "unknown". Empty if there is no alarm. An alarm keeps its kind in gaps of up
        to five quiet rows.
    regimes_ : ndarray of shape (components,)
        Fraction of the latest rows in each regime; -1 for a rejected regime, 0 for a Gaussian without a regime.
    offset_ : float
        The negative of the present threshold, which is also defined during the warm-up, although the device raises no
        alarms then. In the first quarter of the warm-up, it is the negative of the largest possible level.
    spec_ : Spec
        The spec from which code is generated, with all parameters, including derived parameters.
    model_ : HostModel
        The learned state (``model_.memory``), and the functions that work on this state.
    status_counts_ : dict of str to int
        Number of rows with each status since the start. A usual row has the status WARMING in the warm-up (no alarms),
        UNARMED during the commissioning (alarms, but a state that recurs still becomes normal), and DONE afterwards.
        BORN: the candidate for a new regime became a regime. STRANGE: the row was added to this candidate, without an
        alarm. NOVEL, HELD and ABSENT: alarms. REFUSED_INPUT: the row was refused.
    n_features_in_ : int
        Number of inputs.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the inputs, if the data had names; they become the spec's columns.

    Notes
    -----
    With K ``components`` and D features, a row takes O(K D^2) time. An alarm adds O(D^3) for each row, and the search for
    two regimes to merge adds at most O(K^2 D^3).
    No scaler is needed: each regime has its own scale.

    Examples
    --------
    >>> import numpy as np
    >>> from pykernel import OnlineMonitor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(1200, 3)) * [1.0, 5.0, 0.1] + [0.0, 20.0, 1.0]
    >>> model = OnlineMonitor().fit(X[:1000])
    >>> X[1100:, 1] += 60.0  # a sensor's offset jumps
    >>> told = model.monitor(X[1000:1115])
    >>> bool(told.alarm[102:].all()), told.blame[-1].argmax().item(), told.kind[-1].item()
    (True, 1, 'jump')
    >>> model.predict([[0.0, 20.0, 1.0], [0.0, 20.0, 9.0]])
    array([ 1, -1])
    >>> model.to_spec("pump").learning.rule
    'gmm'
    """

    _without = ("rule",)
    _instead_of_scaler = "leave the scaler out, because each regime has its own scale"

    @classmethod
    def _families(cls) -> list[Family]:
        return [GMM_MODELS]

    @classmethod
    def _declared(cls) -> dict[str, Parameter]:
        limit = (
            f"float, default={INPUT_LIMIT:g}\nLargest magnitude of an input; samples with a larger input are refused."
        )
        common = {
            "missing": COMMON["missing"],
            "precision": COMMON["precision"],
            "input_max_abs": replace(COMMON["input_max_abs"], text=limit),
        }
        return of_keys(cls._families(), ("learning", "novelty")) | common

    def fit(self, X: Any, y: Any = None) -> Self:
        """Forget everything, then learn the samples in order.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.
        y : ignored

        Returns
        -------
        self : estimator

        Raises
        ------
        UserError
            If a parameter is invalid, or if it is given but has no effect, such as ``commissioning`` with ``life="changing"``.
        ValueError
            If the data are not finite numbers of the right shape.
        """
        return self._stream(X, None, afresh=True)

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Learn these samples once, in order, continuing from what was learned before.

        Calls with consecutive parts of a stream lead to the same state, byte for byte, as one call with the whole stream.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.
        y : ignored

        Returns
        -------
        self : estimator
        """
        return self._stream(X, None, afresh=not hasattr(self, "model_"))

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the present threshold minus each sample's novelty.

        Samples are evaluated separately, without smoothing, and nothing is learned.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.

        Returns
        -------
        values : ndarray of shape (n_samples,)
            ``score_samples(X) - offset_``, which is below 0 for novel samples.
        """
        return self.score_samples(X) - self.offset_

    def predict(self, X: Any) -> np.ndarray:
        """Predict whether each sample is known (1) or novel (-1), by the present threshold.

        Samples are evaluated separately, without smoothing. If ``smoothing`` is below 1, ``monitor`` may therefore raise
        no alarm for a single sample that this method finds novel.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            1 or -1. The result is also -1 if the device would refuse the sample, because an input is beyond
            ``input_max_abs``.
        """
        X = self._inputs(X)
        with np.errstate(invalid="ignore"):
            known = -self.model_.novelty(X).astype(np.float64) >= self.offset_
        return np.where(known, 1, -1)

    def monitor(self, X: Any) -> Told:
        """Learn the rows in order, and return the device's report after each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs, in time order.

        Returns
        -------
        told : named tuple of arrays
            ``level``, ``threshold``, ``alarm``, ``since``, ``blame`` and ``kind``.
        """
        check_is_fitted(self)
        rows, model, program = self.spec_.raw_inputs(self._inputs(X)), self.model_, self.spec_.program
        one, statuses, kinds = Single(model), np.zeros(len(rows), np.int32), []
        state, shares = (program.reading(name, model.memory) for name in ("alarm", "blame"))
        look = model.executor.bound(program.entry("alarm"), state)
        accuse = model.executor.bound(program.entry("blame"), shares)
        states, blame = np.zeros((len(rows), len(state))), np.zeros((len(rows), len(shares)))
        for i, row in enumerate(rows):
            one.x[:] = row
            statuses[i] = one.learn()
            look()
            kinds.append(self._word(accuse()))
            states[i], blame[i] = state, shares
        self._counted(statuses)
        alarm = np.isin(statuses, program.alarms)
        return Told(states[:, 0], states[:, 1], alarm, states[:, 2].astype(int), blame, np.array(kinds, str))

    def score_samples(self, X: Any) -> np.ndarray:
        """Return the negative of each row's novelty, as if this row came next.

        O(components n_features^2) for each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.

        Returns
        -------
        scores : ndarray of shape (n_samples,)
            The negative of the number that the device's ``NAME_novelty`` writes: about 0 for normal rows, and at least
            -64. If the device would refuse the input, the score is NaN, and a warning is issued.
        """
        X = self._inputs(X)
        return -self._finite(self.model_.novelty(X))

    @property
    def level_(self) -> float:
        return float(self._read("alarm")[0][0])

    @property
    def threshold_(self) -> float:
        return float(self._read("alarm")[0][1])

    @property
    def since_(self) -> int:
        return int(self._read("alarm")[0][2])

    @property
    def blame_(self) -> np.ndarray:
        return self._read("blame")[0].astype(np.float64)

    @property
    def kind_(self) -> str:
        return self._word(self._read("blame")[1])

    @property
    def regimes_(self) -> np.ndarray:
        return self._read("regimes")[0].astype(np.float64)

    def acknowledge(self) -> bool:
        """Accept the cause of the alarm as normal: the rows of the alarm become a regime at once.

        Returns
        -------
        changed : bool
            False if nothing changed, because there is nothing to acknowledge, or because all ``components`` are in use
            and no two of them can be merged.
        """
        return self._decided("acknowledge")

    def reject(self) -> bool:
        """Declare that the cause of the alarm is never normal: similar rows will always raise an alarm and will never be learned.

        Returns
        -------
        changed : bool
            False if nothing changed, because there is nothing to reject, or because all ``components`` are in use and no
            two of them can be merged.
        """
        return self._decided("reject")

    def unlearn(self) -> bool:
        """Remove the newest regime, if it was added after the warm-up, whether by learning, by ``acknowledge`` or by ``reject``.

        Returns
        -------
        changed : bool
            False if nothing changed, because no regime was added since the warm-up or the last ``unlearn``, or because no
            normal regime would be left.
        """
        return self._decided("unlearn")

    def _decided(self, action: str) -> bool:
        check_is_fitted(self)
        return int(self.model_.call(action)) >= 0

    def _read(self, reading: str) -> tuple[np.ndarray, int]:
        check_is_fitted(self)
        return self.model_.read(reading)

    def _word(self, code: int) -> str:
        """Return the word for a kind of alarm, or "" if there is no alarm."""
        return self.spec_.program.status(code).name.lower() if code else ""

    @property
    def offset_(self) -> float:
        threshold, memory = self.threshold_, self.model_.memory
        return -threshold if memory.field("taught")[0] > 0 else -float(LEVEL_MOST.value(self.spec_.real))

    def _sections(self, values: Any) -> dict[str, Any]:
        return {"novelty": {}, **super()._sections(values)}
