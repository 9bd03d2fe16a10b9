"""The error that docs/guide/signals.md allows in a feature, and windows that come near to it.

Definitions are computed with a mantissa of 64 bits, so that they can judge float64, too.  The search climbs: it changes the
windows with the largest errors, in parts of what is allowed, and keeps what is worse.
"""

import re
from dataclasses import dataclass

import numpy as np

from pykernel.host.signal import SignalStage
from pykernel.spec.model import make_spec
from pykernel.spec.signal import KINDS, POWER_LIMITS, SPECTRAL, plan_of
from tests.support import DOCS

Long = np.longdouble
EXTENDED = np.finfo(Long).nmant >= 63
"""Whether this machine has such numbers."""
EPSILON = {"float32": 2.0**-24, "float64": 2.0**-53}
FLATTEST = 2.0**-20
"""A power counts in flatness as at least this part of the mean power."""
LEAST_STD = 1e-8
"""Below, powers of float32 leave its range: the page says so."""
MAX_ABS, RATE, BANDS = 1e7, 100.0, ((0.0, 30.0), (30.0, 51.0))
SHAPES = ("skewness", "kurtosis", "correlation", "centroid", "dominant", "flatness")
"""What is 0 where a window is constant."""


def promises():
    """The table of docs/guide/signals.md: feature -> (a factor, what it is times), together the largest error in epsilons."""
    page, found = (DOCS / "guide/signals.md").read_text(encoding="utf-8"), {}
    for names, factor, unit in re.findall(
        r"^\| (`.+`) \| ([\d²⁰]+)(?: · ([^|]*(?:\\\|[^|]*)*))? \|.*\|$", page, re.MULTILINE
    ):
        times = 2.0**22 if factor == "2²²" else float(factor)
        found |= {name: (times, unit.strip() or "1") for name in re.findall(r"`(\w+)`", names)}
    return found


def turns(n, frequencies, function):
    """A function of 2π f t / n, (samples, frequencies)."""
    pi = Long("3.14159265358979323846264338327950288")
    return function(2 * pi * np.arange(n, dtype=Long) / n)[np.outer(np.arange(n), frequencies) % n]


def powers_of(away, n):
    """Of each frequency but 0, (..., n / 2), of samples without their mean: those of SciPy's periodogram times rate / n."""
    hann = (1 - turns(n, [1], np.cos)[:, 0]) / 2
    frequencies = np.arange(1, n // 2 + 1)
    re, im = ((away * hann) @ turns(n, frequencies, function) for function in (np.cos, np.sin))
    found = (re * re + im * im) * 2 / ((hann * hann).sum() * n)
    found[..., -1] /= 2
    return found


def over(a, b):
    """a / b, and 0 where b is 0."""
    return np.where(b > 0, a / np.where(b > 0, b, 1), 0)


@dataclass
class Truth:
    """Windows (..., samples), and what is so in each by definition; other: of correlation, the other channel's windows."""

    x: np.ndarray
    other: np.ndarray | None = None

    def __post_init__(self):
        self.x = np.asarray(self.x, Long)
        self.n = self.x.shape[-1]
        # what is away from the first sample is exact
        rest = self.x - self.x[..., :1]
        self.away = rest - rest.mean(-1, keepdims=True)
        self.mean, self.std = self.x.mean(-1), np.sqrt((self.away**2).mean(-1))
        self.rms = np.sqrt((self.x**2).mean(-1))
        self.peak, self.range = np.abs(self.x).max(-1), np.ptp(self.x, axis=-1)

    def moment(self, power):
        return over((self.away**power).mean(-1), self.std**power)

    @property
    def skewness(self):
        return self.moment(3)

    @property
    def kurtosis(self):
        return np.where(self.std > 0, self.moment(4) - 3, 0)

    @property
    def crest(self):
        return over(self.peak, self.rms)

    @property
    def change(self):
        return np.abs(np.diff(self.x, axis=-1)).mean(-1)

    def powers(self):
        if not hasattr(self, "_powers"):
            self._powers = powers_of(self.away, self.n)
        return self._powers

    def frequencies(self):
        return np.arange(1, self.n // 2 + 1) * Long(RATE) / self.n

    def value(self, kind, band=None):
        """The feature."""
        if kind in ("mean", "rms", "std", "range", "crest", "skewness", "kurtosis", "change"):
            return getattr(self, kind)
        if kind in ("min", "max"):
            return getattr(self.x, kind)(-1)
        if kind == "crossings":
            return np.diff(self.x < 0, axis=-1).sum(-1) / Long(self.n - 1)
        if kind == "slope":
            t = np.arange(self.n, dtype=Long) - Long(self.n - 1) / 2
            return self.away @ t / (t @ t)
        if kind == "correlation":
            other = Truth(self.other)
            return over((self.away * other.away).mean(-1), self.std * other.std)
        powers, at = self.powers(), self.frequencies()
        if kind == "band":
            return np.sqrt(powers[..., (at >= band[0]) & (at < band[1])].sum(-1))
        if kind == "centroid":
            return over(powers @ at, powers.sum(-1))
        if kind == "flatness":
            mean = powers.mean(-1, keepdims=True)
            log = np.log(np.maximum(over(powers, mean), FLATTEST)).mean(-1)
            return np.where(mean[..., 0] > 0, np.exp(log), 0)
        raise ValueError(kind)

    def error(self, kind, found, band=None):
        """Of a feature; of dominant, how much smaller the root of the found frequency's power is than that of the largest."""
        if kind != "dominant":
            return np.abs(found - self.value(kind, band))
        powers = self.powers()
        at = np.rint(np.asarray(found, float) * self.n / RATE).astype(int) - 1
        taken = np.where(at >= 0, np.take_along_axis(powers, np.maximum(at, 0)[..., None], -1)[..., 0], 0)
        return np.sqrt(powers.max(-1)) - np.sqrt(taken)

    def allowed(self, promised, kind, hop, precision, max_abs=MAX_ABS):
        """What docs/guide/signals.md allows, of each window."""
        factor, unit = promised[kind]
        n, own = self.n, self
        k = hop + n / hop
        j = k + n / 4
        away = over(np.abs(own.mean), own.std)
        shape = over(own.range, own.std)
        units = {
            "1": lambda: 1.0 + 0 * own.peak,
            "r": lambda: own.range,
            "K peak": lambda: k * own.peak,
            "K change": lambda: k * own.change,
            "K peak / n": lambda: k * own.peak / n,
            "K peak² / rms": lambda: k * over(own.peak**2, own.rms),
            "K crest³": lambda: k * own.crest**3,
            r"K (r² / s + \|m\|)": lambda: k * (over(own.range**2, own.std) + np.abs(own.mean)),
            r"K (r³ / s³ + (1 + \|skewness\|) \|m\| / s)": lambda: k * (shape**3 + (1 + np.abs(own.skewness)) * away),
            r"K (r⁴ / s⁴ + (3 + kurtosis) \|m\| / s)": lambda: k * (shape**4 + (3 + own.kurtosis) * away),
            r"K (r² / s² + \|m\| / s)": lambda: k * np.maximum(shape**2 + away, Truth(self.other).spread()),
            "J peak": lambda: j * own.peak,
            "J rate peak / p": lambda: j * RATE * over(own.peak, np.sqrt(own.powers().sum(-1))),
            "J √n peak / p": lambda: j * np.sqrt(n) * over(own.peak, np.sqrt(own.powers().sum(-1))),
            "J peak / max_abs": lambda: j * own.peak / max_abs,
        }
        return factor * units[unit]() * EPSILON[precision]

    def spread(self):
        return over(self.range, self.std) ** 2 + over(np.abs(self.mean), self.std)


class Judge:
    """Two channels' windows of one size in a stage that has all features that a spec may, and their errors in parts of what
    is allowed."""

    def __init__(self, window, hop, precision, promised, max_abs=MAX_ABS):
        self.window, self.hop, self.precision, self.promised = window, hop, precision, promised
        spectral = window >= 8 and not window & (window - 1)
        features = [kind for kind in KINDS if kind != "band" and (spectral or kind not in SPECTRAL)]
        features = [kind for kind in features if max_abs <= POWER_LIMITS.get(kind, max_abs) or precision == "float64"]
        signal = {"channels": ["a", "b"], "window": window, "hop": hop, "features": features, "max_abs": max_abs}
        if spectral:
            signal |= {"rate": RATE, "bands": [list(band) for band in BANDS]}
        made = {"name": "gauge", "signal": signal, "label": {"column": "y"}, "learning": {"rule": "nlms"}}
        spec = make_spec(made | {"precision": precision})
        self.measures, self.stage = plan_of(spec.signal).measures, SignalStage(spec)

    def features(self, x):
        """Of windows (windows, 2, samples), one after the other."""
        self.stage.gap(1)
        steps = self.stage.steps(np.ascontiguousarray(x.transpose(0, 2, 1)).reshape(-1, 2))
        return steps.features[(steps.rows + 1) % self.window == 0]

    def parts(self, x):
        """feature -> the errors in channel a, in parts of what is allowed, (windows,)."""
        truth, found = Truth(x[:, 0], x[:, 1]), {}
        counts = (truth.std == 0) | (truth.std > LEAST_STD)
        for row, values in zip(self.measures, self.features(x).T, strict=True):
            if row.kind != "correlation" and row.of != 0:
                continue
            band = BANDS[row.steps] if row.kind == "band" else None
            error = truth.error(row.kind, values.astype(Long), band)
            most = truth.allowed(self.promised, "bands" if band else row.kind, self.hop, self.precision)
            part = np.where(error == 0, 0, error / np.where(most > 0, most, 1e-300))
            judged = counts & (truth.std > 0) if row.kind in SHAPES else counts
            found[f"band {row.steps}" if band else row.kind] = np.where(judged, part, 0).astype(float)
        return found


def random_windows(rng, count, window):
    """Whole numbers, noise, spikes, alternating, tones, jumps, ramps; some far from zero, some small."""
    x, t = np.zeros((count, 2, window)), np.arange(window)
    for v in x.reshape(-1, window):
        kind = rng.integers(8)
        if kind == 0:
            v[:] = rng.integers(-1, 2, window)
        elif kind == 1:
            v[:] = rng.integers(-100, 101, window)
        elif kind == 2:
            v[:] = rng.normal(size=window)
        elif kind == 3:
            v[rng.integers(window, size=rng.integers(1, 4))] = rng.normal()
        elif kind == 4:
            v[:] = (-1.0) ** t * rng.normal() + rng.choice([0, 1e-3]) * rng.normal(size=window)
        elif kind == 5:
            v[:] = np.cos(2 * np.pi * t * rng.integers(1, window // 2 + 1) / window + rng.random())
        elif kind == 6:
            v[:] = t >= rng.integers(window)
        else:
            v[:] = t * rng.normal() + rng.choice([0, 0.1]) * rng.normal(size=window)
        if rng.random() < 0.4:
            v += 10 ** rng.uniform(-2, 5) * rng.choice([-1, 1])
        if rng.random() < 0.3:
            v *= 10 ** rng.uniform(-6, 1)
    return x


def flat_windows(rng, count, window):
    """Spectra with equal powers but for some with hardly any: there flatness is most sensitive."""
    t, half = np.arange(window), window // 2
    hann = 0.5 - 0.5 * np.cos(2 * np.pi * t / window)
    turn = 2 * np.pi * np.outer(np.arange(1, half + 1), t) / window
    waves = np.concatenate([hann * np.cos(turn), hann * np.sin(turn)])
    back = np.linalg.pinv(waves - waves.mean(1, keepdims=True), rcond=1e-9)
    x = rng.normal(size=(count, 2, window))
    for p in range(count):
        sizes, phases = np.ones(half), 2 * np.pi * rng.random(half)
        low = rng.choice(half, rng.integers(1, max(2, half // 3)), replace=False)
        low[0] *= rng.random() < 0.4
        sizes[low] = 10 ** rng.uniform(-3.5, -2.5)
        v = back @ np.concatenate([sizes * np.cos(phases), sizes * np.sin(phases)])
        x[p, 0] = v / np.abs(v).max() + rng.choice([0, 0.7])
    return x


def steered(rng, x, hop, spread=3e-5):
    """The windows with other low bits in channel a, so that the sums of a block round one way."""
    x, real = x.copy(), x.dtype.type
    sign = rng.choice([-1.0, 1.0], size=len(x))[:, None]
    for i in range(x.shape[-1]):
        if i % hop == 0:
            first, total = x[:, 0, i].copy(), np.zeros(len(x), real)
            continue
        tried = (x[:, 0, i, None] * (1 + spread * rng.uniform(-1, 1, (len(x), 12)))).astype(real)
        away = tried - first[:, None]
        sums = total[:, None] + away
        exact = total[:, None].astype(Long) + (tried.astype(Long) - first[:, None].astype(Long))
        best = ((sums - exact) * sign).argmax(1)
        total, x[:, 0, i] = sums[np.arange(len(x)), best], tried[np.arange(len(x)), best]
    return x


def changed(rng, x):
    """The windows, each changed a little."""
    made = x.astype(float)
    for v in made.reshape(-1, made.shape[-1]):
        (i, j), kind, mean, size = rng.integers(len(v), size=2), rng.integers(9), v.mean(), v.std() + 1e-12
        if kind == 0:
            v[i] = v[j]
        elif kind == 1:
            v[i] += size * rng.normal()
        elif kind == 2:
            v[i] *= 1 + rng.normal() * 10 ** rng.uniform(-7, 0)
        elif kind == 3:
            v[min(i, j) : max(i, j) + 1] = v[i]
        elif kind == 4:
            v[:] = mean + (v - mean) * rng.choice([0.5, 0.9, 1.1, 2])
        elif kind == 5:
            v += mean * rng.choice([-1, -0.9, -0.5, 0.1, 1])
        elif kind == 6:
            v *= 1 + rng.normal() * 1e-3
        elif kind == 7:
            v += rng.normal(size=len(v)) * size * 10 ** rng.uniform(-7, -1)
        else:
            v[[i, j]] = v[[j, i]]
    return made.clip(-0.9 * MAX_ABS, 0.9 * MAX_ABS).astype(x.dtype)


def worst_windows(window, hop, precision, promised, seed=0, generations=20, kept=12):
    """feature -> (the largest error that a search finds, in parts of what is allowed; the window of both channels)."""
    rng, judge = np.random.default_rng(seed), Judge(window, hop, precision, promised)
    x = random_windows(rng, 40 * kept, window).clip(-0.9 * MAX_ABS, 0.9 * MAX_ABS)
    if any(kind == "flatness" for kind in (row.kind for row in judge.measures)):
        x = np.concatenate([x, flat_windows(rng, 8 * kept, window)])
    x = x.astype(precision)
    x = np.concatenate([x, steered(rng, x[rng.permutation(len(x))[: len(x) // 4]], hop)])
    pools = {}
    for _ in range(generations + 1):
        parts = judge.parts(x)
        for kind, part in parts.items():
            windows, sizes = pools.get(kind, (x[:0], part[:0]))
            windows, sizes = np.concatenate([windows, x]), np.concatenate([sizes, part])
            order = np.argsort(-sizes, kind="stable")[:kept]
            pools[kind] = windows[order], sizes[order]
        x = changed(rng, np.concatenate([windows for windows, _ in pools.values()]))
    return {kind: (float(sizes[0]), windows[0]) for kind, (windows, sizes) in pools.items()}


def errors_of_noise(mean):
    """feature -> the largest error of 1,000 windows of 64 samples of normal noise around a mean, float32, hop 32."""
    judge = Judge(64, 32, "float32", promises())
    x = (np.random.default_rng(0).normal(size=(1000, 2, 64)) + mean).astype(np.float32)
    truth, found = Truth(x[:, 0], x[:, 1]), {}
    for row, values in zip(judge.measures, judge.features(x).T, strict=True):
        if row.kind == "correlation" or row.of == 0:
            band = BANDS[row.steps] if row.kind == "band" else None
            error = float(truth.error(row.kind, values.astype(Long), band).max())
            name = "bands" if band else row.kind
            found[name] = max(error, found.get(name, 0.0))
    return found
