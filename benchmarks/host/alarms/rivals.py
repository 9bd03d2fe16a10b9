"""Detectors that judge each row by the rows before it, and then learn it: the project's own, and what it should beat.

Each class has a ``name``, a ``grid`` of settings, ``bytes(dim)`` of what it keeps between rows, and ``levels(rows)``: (T, D) to
(T,), where level t depends on rows 0, .., t only.  NaN: the detector is not ready.  Levels of rivals may be smoothed, as
ours are, and Mahalanobis distance, max |z|, VAR and the Gaussians that learn may hold back what is in alarm, as ours do.

Trained detectors are fitted on the first ``settling(T)`` rows, and know nothing before.  Bytes are float32 numbers, indices of nodes
too; what only the training needs, such as scikit-learn's 2,000 rows of each refit, is not counted.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np

from benchmarks.host.alarms import kernels
from pykernel.errors import UserError
from pykernel.gen.project import build
from pykernel.host.monitoring import Monitoring
from pykernel.spec.defaults import completed
from pykernel.spec.model import Spec, make_spec

Setting = Mapping[str, Any]

SETTLING = 2000
NUMBER = 4
"""Bytes of a float32."""
COUNTED, FIRST = 20, 100


def settling(rows: int) -> int:
    """The rows that no detector is judged on, and on which trained ones are fitted: 2,000, a third of a short stream."""
    return min(SETTLING, rows // 3)


def crossed(**values: tuple[Any, ...]) -> tuple[dict[str, Any], ...]:
    """All combinations."""
    made: list[dict[str, Any]] = [{}]
    for key, each in values.items():
        made = [old | {key: value} for old in made for value in each]
    return tuple(made)


class Detector:
    """Of one setting."""

    name: ClassVar[str]
    slow: ClassVar[int] = 0  # rows that it sees of the first stream of each kind; 0: it is fast, and sees all
    grid: ClassVar[tuple[Setting, ...]] = ({},)
    smoothings: ClassVar[tuple[float, ...]] = (1.0,)

    def __init__(self, smoothing: float = 1.0, **setting: Any) -> None:
        self.smoothing, self.setting = smoothing, setting

    def bytes(self, dim: int) -> int:
        raise NotImplementedError

    def raw(self, rows: np.ndarray) -> np.ndarray:
        """Levels that are not smoothed, (T,)."""
        raise NotImplementedError

    def levels(self, rows: np.ndarray) -> np.ndarray:
        return smoothed(self.raw(rows), self.smoothing)

    def judged(self, rows: np.ndarray, *alphas: float) -> tuple[np.ndarray, np.ndarray]:
        """Levels (T,), and which rows are in alarm where a part alpha of them is wanted, (alphas, T)."""
        levels = self.levels(rows)
        return levels, np.array([common_alarms(levels, alpha) for alpha in alphas])

    @classmethod
    def why_absent(cls) -> str:
        """A sentence if a package is not installed."""
        return ""


def smoothed(levels: np.ndarray, smoothing: float) -> np.ndarray:
    return levels if smoothing == 1 else kernels.smoothed(levels, smoothing)


def common_alarms(levels: np.ndarray, alpha: float) -> np.ndarray:
    """The rows in alarm, (T,), by the threshold of all detectors that have none of their own.

    It is the exact (1 - alpha) quantile of the last 20 / alpha levels, of an alarm only its first COUNTED rows, so that a lasting
    fault does not become the threshold.  No alarm before FIRST levels are known.  Its memory is not counted.
    """
    return kernels.in_alarm(levels, alpha, round(20 / alpha), COUNTED, FIRST)


def doubles(rows: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(rows, np.float64)


# ------------------------------------------------------------------------------------------------------------- ours


class Bare(Detector):
    """A spec that names no rule."""

    name = "spec without a rule"

    def content(self, dim: int) -> dict[str, Any]:
        return {"name": "first", "input": {"columns": [f"x{i}" for i in range(dim)]}, "novelty": {}}

    def spec(self, dim: int, alpha: float = 0.01) -> Spec:
        made: dict[str, Any] = dict(completed(self.content(dim)))
        return make_spec(made | {"novelty": {**made["novelty"], "false_alarm_rate": alpha}})

    def bytes(self, dim: int) -> int:
        return int(build(self.spec(dim)).figures["state_bytes"])

    def raw(self, rows: np.ndarray) -> np.ndarray:
        return self.judged(rows, 0.01)[0]

    def judged(self, rows: np.ndarray, *alphas: float) -> tuple[np.ndarray, np.ndarray]:
        """Levels are those of the first alpha.  A row that the spec refuses has the level of the row before."""
        levels, alarms = [], []
        for alpha in alphas:
            spec = self.spec(rows.shape[1], alpha)
            steps = list(Monitoring(spec).run(doubles(rows), np.zeros((len(rows), 0))))
            levels.append(np.concatenate([each.states for each in steps])[:, 0].astype(float))
            statuses = np.concatenate([each.statuses for each in steps])
            alarms.append(np.isin(statuses, [int(status) for status in spec.program.alarms]))
        return levels[0], np.array(alarms)


class Changing(Bare):
    """The same, for a machine that gets new states."""

    name = 'life "changing"'

    def content(self, dim: int) -> dict[str, Any]:
        return super().content(dim) | {"novelty": {"life": "changing"}}


# --------------------------------------------------------------------------------------------------------- distances


class Rival(Detector):
    """Not ours."""

    smoothings = (1.0, 0.5, 0.2)


class Chance(Rival):
    """Levels that know nothing of the rows: what a long fault gives to everyone."""

    name = "chance"
    smoothings = (1.0,)

    def bytes(self, dim: int) -> int:
        return 0

    def raw(self, rows: np.ndarray) -> np.ndarray:
        return np.random.default_rng(0).random(len(rows))


class Largest(Rival):
    name = "max |z|"
    grid = crossed(window=(30, 100, 300, 1000, 4000, 0), hold=(0, 100))

    def bytes(self, dim: int) -> int:
        return NUMBER * 2 * dim

    def raw(self, rows: np.ndarray) -> np.ndarray:
        return kernels.largest(doubles(rows), self.setting["window"], self.setting["hold"])


class Mahalanobis(Rival):
    name = "Mahalanobis"
    grid = crossed(window=(300, 1000, 4000, 0), ridge=(1e-5, 1e-4, 1e-3, 1e-2), hold=(0, 100))

    def bytes(self, dim: int) -> int:
        return NUMBER * (dim + dim * (dim + 1) // 2)

    def raw(self, rows: np.ndarray) -> np.ndarray:
        return kernels.mahalanobis(doubles(rows), self.setting["window"], self.setting["ridge"], self.setting["hold"])


class MovingAverage(Rival):
    name = "EWMA chart"
    grid = crossed(rate=(0.05, 0.1, 0.2, 0.4), window=(100, 300, 1000, 4000, 0))
    smoothings = (1.0,)

    def bytes(self, dim: int) -> int:
        return NUMBER * 3 * dim

    def raw(self, rows: np.ndarray) -> np.ndarray:
        return kernels.moving_average(doubles(rows), self.setting["rate"], self.setting["window"])


class CumulativeSum(Rival):
    name = "CUSUM chart"
    grid = crossed(slack=(0.25, 0.5, 1.0, 2.0), clip=(4.0, 100.0), most=(100.0, 1000.0), window=(1000, 4000, 0))
    smoothings = (1.0,)

    def bytes(self, dim: int) -> int:
        return NUMBER * 4 * dim

    def raw(self, rows: np.ndarray) -> np.ndarray:
        return kernels.cumulative_sum(
            doubles(rows), *(self.setting[key] for key in ("slack", "clip", "most", "window"))
        )


class Autoregression(Rival):
    name = "VAR(1)"
    grid = crossed(forgetting=(0.99, 0.997, 0.999, 0.9998), window=(300, 1000, 4000), ridge=(1e-5, 1e-3), hold=(0, 100))

    def bytes(self, dim: int) -> int:
        """Weights, P, the residuals' moments, the inputs' mean and variance, the last row."""
        return NUMBER * ((dim + 1) * dim + (dim + 1) * (dim + 2) // 2 + dim + dim * (dim + 1) // 2 + 3 * dim)

    def raw(self, rows: np.ndarray) -> np.ndarray:
        forgetting, window, ridge, hold = (self.setting[key] for key in ("forgetting", "window", "ridge", "hold"))
        return kernels.autoregression(doubles(rows), forgetting, window, ridge, hold)


# ----------------------------------------------------------------------------------------------------------- trained


class Trained(Rival):
    """Fitted on the first rows, which are standardised by themselves."""

    def raw(self, rows: np.ndarray) -> np.ndarray:
        first = settling(len(rows))
        x = doubles(rows)
        center, scale = x[:first].mean(axis=0), x[:first].std(axis=0)
        z = np.clip((x - center) / np.where(scale > 1e-9 * np.abs(center) + 1e-30, scale, 1.0), -100, 100)
        return np.concatenate([np.full(first, np.nan), self.after(z[:first], z[first:])])

    def after(self, before: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Levels of rows after the first ones, (rows,)."""
        raise NotImplementedError


@functools.lru_cache(maxsize=64)
def mixture(members: int, reg: float, dim: int, rows: bytes) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Weights, means and covariances by expectation maximisation.  rows: memory of (rows, dim), float64."""
    from sklearn.mixture import GaussianMixture

    model = GaussianMixture(members, reg_covar=reg, random_state=0)
    with warnings.catch_warnings():  # that it did not converge, or that rows repeat
        warnings.simplefilter("ignore")
        model.fit(np.frombuffer(rows).reshape(-1, dim))
    return model.weights_, model.means_, model.covariances_


class Mixture(Trained):
    """Of Gaussians with full covariances."""

    members: ClassVar[int]
    grid = crossed(reg=(1e-3, 1e-2, 1e-1), nearest=(False, True))

    def bytes(self, dim: int) -> int:
        return NUMBER * (self.members * (1 + dim + dim * (dim + 1) // 2) + 2 * dim)

    def after(self, before: np.ndarray, rows: np.ndarray) -> np.ndarray:
        reg = self.setting["reg"]
        weights, means, covariances = mixture(self.members, reg, before.shape[1], before.tobytes())
        counts = (weights * len(before)).astype(np.int64)
        parts = weights + 1e-6, means.copy(), covariances.copy(), counts
        window, hold = self.setting.get("window", 0), self.setting.get("hold", 0)
        return kernels.gaussians(rows, *parts, self.setting["nearest"], window, reg, hold)


class LearningMixture(Mixture):
    """Its nearest Gaussian learns each row."""

    grid = crossed(reg=(1e-2, 1e-1), nearest=(False, True), window=(500, 4000), hold=(0, 100))


class FewGaussians(Mixture):
    name, members = "4 Gaussians, trained", 4


class Gaussians(Mixture):
    name, members = "16 Gaussians, trained", 16


class FewLearningGaussians(LearningMixture):
    name, members = "4 Gaussians, trained, learning", 4


class LearningGaussians(LearningMixture):
    name, members = "16 Gaussians, trained, learning", 16


class Refitted(Trained):
    """A model of scikit-learn.  With ``refit`` a new one follows after every SETTLING rows, of those that were not in alarm.

    In alarm: above 99 % of the rows that the model was fitted on.  If that is more than half of the rows, all count.
    """

    def model(self, rows: int, dim: int) -> Any:
        raise NotImplementedError

    def fitted(self, rows: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        model = self.model(*rows.shape).fit(rows)
        self.measure(model)
        return lambda x: -model.score_samples(x)

    def measure(self, model: Any) -> None:
        """Notes what the bytes depend on."""

    def after(self, before: np.ndarray, rows: np.ndarray) -> np.ndarray:
        levels, known = np.zeros(len(rows)), before
        level_of = self.fitted(known)
        step = SETTLING if self.setting["refit"] else len(rows)
        for start in range(0, len(rows), step):
            if start:
                level_of = self.fitted(known)
            part = rows[start : start + step]
            levels[start : start + step] = found = level_of(part)
            good = part[found <= np.quantile(level_of(known), 0.99)]
            known = good if 2 * len(good) > len(part) else part
        return levels


class Forest(Refitted):
    name = "isolation forest"
    grid = (
        *crossed(trees=(100,), samples=(256,), refit=(False, True)),
        {"trees": 100, "samples": 1024, "refit": False},
    )
    nodes = 0

    def model(self, rows: int, dim: int) -> Any:
        from sklearn.ensemble import IsolationForest

        samples = min(rows, self.setting["samples"])
        return IsolationForest(n_estimators=self.setting["trees"], max_samples=samples, random_state=0)

    def measure(self, model: Any) -> None:
        self.nodes = max(self.nodes, sum(tree.tree_.node_count for tree in model.estimators_))

    def bytes(self, dim: int) -> int:
        """Of the largest forest that was fitted, or the most possible: two numbers for each node."""
        most = self.setting["trees"] * (2 * self.setting["samples"] - 1)
        return NUMBER * (2 * (self.nodes or most) + 2 * dim)


class SupportVectors(Refitted):
    name = "one-class SVM"
    grid = crossed(nu=(0.01, 0.05), gamma=(0.1, 0.5, 2.0), refit=(False, True))
    vectors = 0

    def model(self, rows: int, dim: int) -> Any:
        from sklearn.svm import OneClassSVM

        return OneClassSVM(nu=self.setting["nu"], gamma=self.setting["gamma"] / dim)

    def measure(self, model: Any) -> None:
        self.vectors = max(self.vectors, len(model.support_vectors_))

    def bytes(self, dim: int) -> int:
        """Of the most support vectors that were found; before a fit, of the fewest possible."""
        count = self.vectors or round(self.setting["nu"] * SETTLING)
        return NUMBER * (count * (dim + 1) + 2 * dim)


# ------------------------------------------------------------------------------------------------------------- trees


class HalfSpace(Rival):
    """River's HalfSpaceTrees behind its MinMaxScaler."""

    name, slow = "half-space trees", 40_000
    grid = crossed(trees=(25,), height=(6, 8), window=(250,))

    def bytes(self, dim: int) -> int:
        """A threshold or channel, and two counts for each node; the channels' limits."""
        return NUMBER * (self.setting["trees"] * 3 * (2 ** (self.setting["height"] + 1) - 1) + 2 * dim)

    def raw(self, rows: np.ndarray) -> np.ndarray:
        from river.anomaly import HalfSpaceTrees
        from river.preprocessing import MinMaxScaler

        trees, height, window = (self.setting[key] for key in ("trees", "height", "window"))
        scaler, model = MinMaxScaler(), HalfSpaceTrees(trees, height, window, seed=0)
        levels = np.zeros(len(rows))
        for t, row in enumerate(rows.tolist()):
            x = dict(enumerate(row))
            scaler.learn_one(x)
            z = scaler.transform_one(x)
            levels[t] = model.score_one(z)
            model.learn_one(z)
        levels[: window + 1] = np.nan
        return levels


class CutForest(Rival):
    """Robust random cut forest (Guha et al. 2016) by the package rrcf; a row's level is its collusive displacement."""

    name, slow = "robust random cut forest", 12_000
    grid = ({"trees": 20, "size": 256},)

    @classmethod
    def why_absent(cls) -> str:
        try:
            with warnings.catch_warnings():  # pkg_resources, which it imports, is old
                warnings.simplefilter("ignore")
                import rrcf  # noqa: F401
        except ImportError as error:
            return f"rrcf cannot be imported ({error}), so its rows are left out; pip install rrcf 'setuptools<81'"
        return ""

    def bytes(self, dim: int) -> int:
        """The rows, which the trees share; for each leaf an index and a count, for each branch a cut, links and a box."""
        trees, size = self.setting["trees"], self.setting["size"]
        return NUMBER * (size * dim + trees * (2 * size + (size - 1) * (5 + 2 * dim)) + 2 * dim)

    def raw(self, rows: np.ndarray) -> np.ndarray:
        """A displacement is of the tree with the row, and known at the row."""
        import rrcf

        size, levels = self.setting["size"], np.zeros(len(rows))
        count, x = self.setting["trees"], doubles(rows)
        forest = [rrcf.RCTree(random_state=number) for number in range(count)]
        mean, square = np.zeros(x.shape[1]), np.zeros(x.shape[1])
        jitter = np.random.default_rng(0).normal(0, 1e-6, x.shape)  # rows that are equal are one leaf
        for t, row in enumerate(x):
            mean += (row - mean) / (t + 1)
            square += (row * row - square) / (t + 1)
            unit = np.sqrt(np.maximum(square - mean * mean, 0)) + 1e-9 * np.abs(mean) + 1e-30
            point = np.clip((row - mean) / unit, -100, 100) + jitter[t]
            for tree in forest:
                if t >= size:
                    tree.forget_point(t - size)
                tree.insert_point(point, index=t)
                levels[t] += tree.codisp(t) / count
        levels[:size] = np.nan
        return levels


DETECTORS: dict[str, type[Detector]] = {
    each.name: each
    for each in (
        *(Bare, Changing, Chance, Largest, Mahalanobis, MovingAverage, CumulativeSum, Autoregression),
        *(
            FewGaussians,
            Gaussians,
            FewLearningGaussians,
            LearningGaussians,
            Forest,
            SupportVectors,
            HalfSpace,
            CutForest,
        ),
    )
}


def named(name: str) -> type[Detector]:
    """Raises UserError if there is no such detector."""
    if name not in DETECTORS:
        raise UserError(f"there is no detector {name!r}; there are {', '.join(DETECTORS)}")
    return DETECTORS[name]


def written(detector: Detector) -> str:
    """A setting, as the files have it."""
    told = {**detector.setting, **({"smoothing": detector.smoothing} if detector.smoothing != 1 else {})}
    return " ".join(f"{key}={value}" for key, value in told.items()) or "default"


def of(name: str, setting: str) -> Detector:
    """The detector of a setting that ``written()`` wrote."""
    kind = named(name)
    for each in kind.grid:
        for smoothing in kind.smoothings:
            made = kind(smoothing, **each)
            if written(made) == setting:
                return made
    raise UserError(f"{name} has no setting {setting!r}; run without --show to choose among those that it has")
