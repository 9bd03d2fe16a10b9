"""The section of a spec for raw signals: the features that are computed from a signal, and the parameters of the
kernels that compute them.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, get_args

from pydantic import BeforeValidator, Field, field_validator, model_validator

from pykernel.spec.sections import (
    DIM_LIMIT,
    NAME_LIMIT,
    Columns,
    Numbers,
    Section,
    different,
    shown_value,
)
from pykernel.spec.suggestions import word_meant

CHANNELS_LIMIT = 64
WINDOW_LIMIT = 65536
POWER_LIMITS = {"kurtosis": 1e8, "skewness": 1e11}
"""Feature -> largest `max_abs` for which the sums of powers over the longest window fit in float32."""
STEPS_LIMIT = 65536
PERIOD_LIMIT = 2**24  # clocks are converted to float32, which holds integers up to this limit; int16 has another limit

FeatureName = Literal[
    "mean",
    "rms",
    "std",
    "min",
    "max",
    "range",
    "crest",
    "skewness",
    "kurtosis",
    "crossings",
    "change",
    "slope",
    "correlation",
    "centroid",
    "dominant",
    "flatness",
]
SPECTRAL = ("band", "centroid", "dominant", "flatness")
KINDS: tuple[str, ...] = (*(name for name in get_args(FeatureName) if name not in SPECTRAL), *SPECTRAL)
Features = Annotated[tuple[FeatureName, ...], Field(strict=False, min_length=1)]
Counts = Annotated[tuple[Annotated[int, Field(ge=0, le=STEPS_LIMIT)], ...], Field(strict=False)]
Periods = Annotated[tuple[Annotated[int, Field(ge=2, le=PERIOD_LIMIT)], ...], Field(strict=False)]


def _pair(pair: Any) -> Any:
    if not isinstance(pair, (list, tuple)) or len(pair) != 2:
        raise ValueError(f"holds {shown_value(pair)}; it must hold pairs of frequencies, such as [[1, 10], [10, 50]]")
    return pair


Band = Annotated[tuple[float, float], Field(strict=False), BeforeValidator(_pair)]


class SignalSection(Section):
    """Raw samples, and the features that the model gets from them."""

    channels: Annotated[Columns, different(1, CHANNELS_LIMIT, "each channel must be a different column")] = Field(
        description="names of the numbers in a raw sample, as in the data's header"
    )
    max_abs: float | Numbers = Field(
        1e6,
        description="largest magnitude of a raw number: a sample with a larger one is refused. In int16, a list with a number for each channel is also allowed",
    )
    resolution: float | Numbers | None = Field(
        None,
        description="int16: the value of one count, in the channel's unit, such as 1 for an ADC's readings. Give one number for all channels, or a list with a number for each channel. If not given, it is the smallest power of two for which the counts fit in 16 bits",
    )
    window: int | None = Field(
        None,
        ge=2,
        le=WINDOW_LIMIT,
        description="number of raw samples from which the features are computed; if not given, the model uses the raw samples themselves",
    )
    rate: float | None = Field(
        None,
        ge=1e-9,
        le=1e9,
        description='raw samples per second; needed for `bands`, for the features centroid, dominant and flatness, and for times such as `"8 h"` in `[novelty]`',
    )
    hop: int | None = Field(
        None,
        ge=1,
        le=WINDOW_LIMIT,
        description="number of raw samples from the start of one window to the start of the next; it must divide `window`. If not given, it is equal to `window`",
    )
    features: Features | dict[str, Features] | None = Field(
        None,
        description=f'features of each channel in a window: {", ".join(get_args(FeatureName))}; correlation is computed for each pair of channels. Channels can have different lists: `features = {{ax = ["rms"], ay = ["mean"]}}`',
    )
    bands: tuple[Band, ...] = Field(
        (),
        strict=False,
        description="frequency bands in Hz, such as `[[1, 10], [10, 50]]`. Each channel gets one feature for each band: the root mean square of the signal within the band. Needs `rate`, and a window that is a power of two",
    )
    log: bool = Field(
        False,
        description="for bands: log2(1 + power / floor) instead of the root mean square, with floor = (`max_abs` / 2²⁰)²",
    )
    lags: Counts | None = Field(
        None,
        description="lags of the values that the model uses, in steps; the present value has lag 0. A step is a raw sample, or a hop if there is a window. If not given, the lags are `[0]`",
    )
    differences: Counts = Field((), description="for each number n: the present value minus the value n steps ago")
    averages: Counts = Field((), description="for each number n: the mean of the values in the latest n steps")
    periods: Periods = Field(
        (),
        description="for each period, given in raw samples: the cosine and the sine of the phase within the period. In int16, a period is at most 65,536",
    )
    ahead: int = Field(
        1,
        ge=1,
        le=STEPS_LIMIT,
        description="forecast horizon in steps, if `[label] column` is one of the channels",
    )

    @field_validator("max_abs", "resolution", mode="before")
    @classmethod
    def _positive(cls, numbers: Any) -> Any:
        for value in numbers if isinstance(numbers, (list, tuple)) else [numbers]:
            if isinstance(value, (int, float)) and not isinstance(value, bool) and not 1e-15 <= value <= 1e15:
                raise ValueError(f"holds {shown_value(value)}; each number must be from 1e-15 to 1e15")
        return numbers

    @field_validator("features", mode="before")
    @classmethod
    def _lists(cls, features: Any) -> Any:
        known = get_args(FeatureName)
        for channel, names in features.items() if isinstance(features, Mapping) else ():
            if not isinstance(names, (list, tuple)) or not names:
                raise ValueError(
                    f"has {shown_value(names)} for {shown_value(channel)}; it must be a list of one or more features, such as "
                    '["mean", "rms"]'
                )
            for name in names:
                if name not in known:
                    meant = word_meant(
                        name if isinstance(name, str) else "", known, f"the features are: {', '.join(known)}"
                    )
                    raise ValueError(f"has {shown_value(name)} for {shown_value(channel)}; {meant}")
        return features

    @model_validator(mode="after")
    def _together(self) -> SignalSection:
        for key in ("differences", "averages"):
            if 0 in getattr(self, key):
                raise ValueError(f"{key} holds 0; each number must be 1 or more")
        if self.window is None:
            for key in ("hop", "features", "bands"):
                if getattr(self, key):
                    raise ValueError(f"{key} also requires the key window")
            return self
        hop = self.hop or self.window
        if self.window % hop:
            raise ValueError(f"hop is {hop}, which does not divide window ({self.window}); choose a divisor of window")
        if hop < 2:
            raise ValueError("hop is 1, but must be 2 or more; if every raw sample is to be a step, leave window out")
        if self.features is None and not self.bands:
            raise ValueError('features are missing; with a window, give some, such as ["mean", "rms"]')
        if isinstance(self.features, dict):
            for name in self.features:
                if name not in self.channels:
                    raise ValueError(
                        f"features has an entry for {shown_value(name)}, which is not a channel; the channels are: {', '.join(self.channels)}"
                    )
            for name in self.channels:
                if name not in self.features:
                    raise ValueError(
                        f"features has no entry for the channel {name!r}; give the channel a list of features, or leave it out of channels"
                    )
        self._check_spectrum()
        correlated = [name for name, own in zip(self.channels, self.of_channels, strict=True) if "correlation" in own]
        if len(correlated) == 1:
            raise ValueError(
                f"features has correlation only for {correlated[0]!r}, but correlation needs two channels; add it to another "
                "channel, too, or leave it out"
            )
        return self

    def __hash__(self) -> int:
        return hash(self.model_dump_json())  # by the text, because the dict of features is not hashable

    def _check_spectrum(self) -> None:
        names = [name for each in self.of_channels for name in each if name in SPECTRAL]
        what = "bands" if self.bands else names[0] if names else ""
        if self.log and not self.bands:
            raise ValueError("log needs bands; give bands, or leave log out")
        if not what:
            return
        if self.rate is None:
            raise ValueError(f"rate is missing; for {what}, give the rate in raw samples per second")
        if self.window not in [2**n for n in range(3, 17)]:
            raise ValueError(f"window is {self.window}; for {what}, it must be a power of two from 8 to 65536")
        called = [f"[{low:g}, {high:g}]" for low, high in self.bands]
        for band in called:
            if called.count(band) > 1:
                raise ValueError(f"bands holds {band} twice; leave one of them out")
        for low, high in self.bands:
            if not 0 <= low < high:
                raise ValueError(
                    f"bands holds [{low:g}, {high:g}]; the first number must be 0 or more, and smaller than the second"
                )
            if self.bins(low, high)[0] >= self.bins(low, high)[1]:
                width = self.rate / (self.window or 1)
                raise ValueError(
                    f"bands holds [{low:g}, {high:g}], which contains no frequency of the spectrum; choose a band that contains a multiple of {width:g} Hz, from {width:g} to {self.rate / 2:g} Hz"
                )

    def bins(self, low: float, high: float) -> tuple[int, int]:
        """Return the first frequency index of the band low <= f < high, and the index after the last one.  Index 0 is
        never included.
        """
        assert self.rate is not None and self.window is not None
        width = self.rate / self.window
        first, after = (math.ceil(min(edge, self.rate) / width - 1e-9) for edge in (low, high))
        return max(1, first), min(self.window // 2 + 1, after)

    @property
    def of_channels(self) -> list[tuple[str, ...]]:
        """The features of each channel."""
        if isinstance(self.features, dict):
            return [self.features[name] for name in self.channels]
        return [self.features or ()] * len(self.channels)

    def label_measure(self, label_column: str | None) -> int:
        """Return the index of the measure that is forecast: the channel or the channel's mean.  It is 0 if nothing is forecast."""
        if label_column not in self.channels:
            return 0
        own = f"mean {label_column}" if self.window is not None else label_column
        return next((i for i, row in enumerate(plan_of(self).measures) if row.name == own), 0)

    @property
    def most(self) -> float:
        """The largest allowed magnitude of a raw number, over all channels."""
        return max(self.max_abs) if isinstance(self.max_abs, tuple) else self.max_abs

    @property
    def step(self) -> int:
        """Number of raw samples from one step to the next."""
        return 1 if self.window is None else self.hop or self.window


@dataclass(frozen=True)
class Row:
    """A measure or a feature: its kind, the index of its source, and its largest magnitude."""

    name: str
    kind: str
    of: int
    steps: int
    limit: float


@dataclass(frozen=True)
class Plan:
    """The computations of a signal stage.

    measures: the values that are computed in each step, sorted by kind.  Their ``of`` is the index of a channel or of a
    pair of channels.  For frequency bands, their ``steps`` is the index of the band.
    features: the model's inputs, sorted by kind.  Their ``of`` is the index of a measure or of a period.  Their
    ``steps`` is the lag in steps, or the number of steps that are averaged.
    oldest: the age, in steps, of the oldest value in the features.
    """

    measures: tuple[Row, ...]
    pairs: tuple[tuple[int, int], ...]
    features: tuple[Row, ...]
    oldest: int


@functools.lru_cache(maxsize=256)
def plan_of(signal: SignalSection) -> Plan:
    measures, pairs = _measures(signal)
    features = _features(signal, measures)
    reach = [row.steps - (row.kind == "average") for row in features if row.kind != "phase"]
    return Plan(measures, pairs, features, max(reach, default=0))


def _measures(signal: SignalSection) -> tuple[tuple[Row, ...], tuple[tuple[int, int], ...]]:
    """Return the measures, and the pairs of channels whose correlation is measured."""
    most, count, nyquist, channels = signal.most, signal.window or 1, (signal.rate or 0.0) / 2, signal.channels
    if signal.window is None:
        return tuple(Row(name, "value", j, 0, most) for j, name in enumerate(channels)), ()
    loudest = math.log2(1 + 2.0**42) if signal.log else 2 * most
    limits = {"range": 2 * most, "change": 2 * most, "slope": 2 * most, "kurtosis": float(count)}
    limits |= {"centroid": nyquist, "dominant": nyquist, "flatness": 1.0, "crossings": 1.0}
    limits |= {"crest": math.sqrt(count), "skewness": math.sqrt(count)}
    measures, pairs = list[Row](), tuple[tuple[int, int], ...]()
    for kind in KINDS:
        having = [j for j, names in enumerate(signal.of_channels) if kind in names]
        if kind == "correlation":
            pairs = tuple(itertools.combinations(having, 2))
            measures += [Row(f"{kind} {channels[a]} {channels[b]}", kind, i, 0, 1.0) for i, (a, b) in enumerate(pairs)]
        else:
            measures += [Row(f"{kind} {channels[j]}", kind, j, 0, limits.get(kind, most)) for j in having]
        for i, (low, high) in enumerate(signal.bands if kind == "band" else ()):
            measures += [Row(f"{low:g} to {high:g} Hz {name}", kind, j, i, loudest) for j, name in enumerate(channels)]
    return tuple(measures), pairs


def _features(signal: SignalSection, measures: tuple[Row, ...]) -> tuple[Row, ...]:
    features = list[Row]()
    for kind, counts, factor in (
        ("lag", (0,) if signal.lags is None else signal.lags, 1.0),
        ("difference", signal.differences, 2.0),
        ("average", signal.averages, 1.0),
    ):
        for steps in dict.fromkeys(counts):
            suffix = "" if (kind, steps) == ("lag", 0) else f" {kind} {steps}"
            features += [Row(row.name + suffix, kind, i, steps, factor * row.limit) for i, row in enumerate(measures)]
    for p, period in enumerate(dict.fromkeys(signal.periods)):
        features += [Row(f"{wave} of {period}", "phase", p, 0, 1.0) for wave in ("cosine", "sine")]
    return tuple(features)


def rows_a_second(content: Any) -> float | None:
    """Return the number of rows per second that a model gets, or None if this number is not known.

    content: the section [signal], or None.
    """
    signal = None if content is None else SignalSection.model_validate(content)
    return None if signal is None or signal.rate is None else signal.rate / signal.step


def sensors_of(signal: SignalSection) -> tuple[int, ...]:
    """For each feature, return the index of its sensor.  Each channel, each pair of channels and each period is a
    separate sensor.
    """
    plan, count = plan_of(signal), len(signal.channels)
    found = []
    for row in plan.features:
        measure = row if row.kind == "phase" else plan.measures[row.of]
        found.append({"phase": count + len(plan.pairs), "correlation": count}.get(measure.kind, 0) + measure.of)
    return tuple(found)


def raw_samples_needed(signal: SignalSection) -> int:
    """Return the number of raw samples that are needed for the first features."""
    return (signal.window or 1) + plan_of(signal).oldest * signal.step


def inputs_of(signal: SignalSection) -> dict[str, Any]:
    """Return the model's inputs as keys of [input].  Raises ValueError if there are no features, too many features, or unsuitable names."""
    plan = plan_of(signal)
    names = [row.name for row in plan.features]
    if not names:
        raise ValueError(
            "lags is [], and nothing else makes features; leave lags out, or give differences, averages or periods"
        )
    if len(names) > DIM_LIMIT:
        raise ValueError(f"makes {len(names)} features; at most {DIM_LIMIT} are allowed")
    if len(set(names)) < len(names):
        double = next(name for i, name in enumerate(names) if name in names[:i])
        raise ValueError(f"channels make two features that are called {double!r}; rename a channel")
    if (longest := max(names, key=len)) and len(longest) > NAME_LIMIT:
        raise ValueError(
            f"channels make a feature whose name has {len(longest)} characters ({shown_value(longest)}); at most {NAME_LIMIT} are "
            "allowed: shorten the channel names"
        )
    return {"columns": names, "max_abs": max(row.limit for row in plan.features)}


def complain_of_reals(signal: SignalSection, precision: Any) -> None:
    """Raise ValueError for keys and lists that only integer models allow, and for features whose powers can overflow
    float32.
    """
    if isinstance(signal.max_abs, tuple):
        raise ValueError(
            "max_abs is a list, which only precision int16 takes; give a single number, the largest in the list"
        )
    if signal.resolution is not None:
        raise ValueError("resolution is the value of one count, and only precision int16 has counts; leave it out")
    kinds = {name for names in signal.of_channels for name in names} if signal.window is not None else set()
    for name, most in POWER_LIMITS.items() if precision != "float64" else ():
        if name in kinds and signal.most > most:
            raise ValueError(
                f"max_abs is {signal.most:g}; with the feature {name} it must be at most {most:g}, because powers of larger "
                f"numbers overflow float32: take another unit, leave {name} out, or choose precision float64"
            )


def capacities(signal: SignalSection, forecasts: bool) -> dict[str, int]:
    plan = plan_of(signal)
    spectral = signal.window if any(row.kind in SPECTRAL for row in plan.measures) else None
    return {
        "CHANNELS": len(signal.channels),
        "BLOCKS": 1 if signal.window is None else signal.window // signal.step,
        "FEATURES_KEPT": plan.oldest + (signal.ahead if forecasts else 0) + 1,
        "MEASURES": len(plan.measures),
        "PAIRS": max(1, len(plan.pairs)),
        "PERIODS": max(1, len(set(signal.periods))),
        "RAW_KEPT": spectral or 8,
        "RAW_HALF": (spectral or 8) // 2,
        "RAW_QUARTER": (spectral or 8) // 4,
        "LEVELS": max(1, ((spectral or 8).bit_length() - 3) // 2),
    }


def shared_parameters(
    signal: SignalSection, known: Sequence[str], label_column: str | None, awaits: bool
) -> dict[str, Any]:
    """Return the values that SignalConfig and Int16SignalConfig have in common.

    known: the kinds of measures that the signal stage can compute.  awaits: whether the firmware gives the labels
    later, in a separate call.
    """
    plan, kinds = plan_of(signal), [row.kind for row in plan_of(signal).measures]
    made, periods = [row.kind for row in plan.features], list(dict.fromkeys(signal.periods)) or [1]
    bands = [signal.bins(*signal.bands[row.steps]) if row.kind == "band" else (0, 0) for row in plan.measures]
    half = capacities(signal, False)["RAW_HALF"]
    levels = half.bit_length() - 1
    values: dict[str, Any] = {
        "windows": signal.window is not None,
        "has_extremes": bool({"min", "max", "range", "crest"} & set(kinds)),
        "has_spectrum": bool(set(SPECTRAL) & set(kinds)),
        "has_differences": "difference" in made,
        "has_averages": "average" in made,
        "has_periods": "phase" in made,
        "awaits": awaits,
        "hop_last": signal.step - 1,
        "oldest": plan.oldest,
        "ahead": signal.ahead,
        "label_measure": signal.label_measure(label_column),
        "measure_of": [row.of for row in plan.measures],
        "band_first_bin": [first for first, _ in bands],
        "band_after_bin": [after for _, after in bands],
        "reversed": [int(format(i, f"0{levels}b")[::-1], 2) for i in range(half // 2)],
        "made_of": [row.of for row in plan.features],
        "made_steps": [row.steps for row in plan.features],
        "difference_first": made.count("lag"),
        "average_first": made.count("lag") + made.count("difference"),
        "phase_first": len(made) - made.count("phase"),
        "period": periods,
        "period_back": [signal.ahead * signal.step % period for period in periods],
    }
    # where the measures of each kind begin and end
    for kind in known:
        first = kinds.index(kind) if kind in kinds else 0
        values |= {f"has_{kind}": kind in kinds, f"{kind}_first": first, f"{kind}_after": first + kinds.count(kind)}
    return values


def parameters(signal: SignalSection, label_column: str | None, awaits: bool) -> dict[str, Any]:
    """Return the values of SignalConfig.  awaits: whether the firmware gives the labels later, in a separate call."""
    plan, hop, window = plan_of(signal), signal.step, signal.window or 1
    kinds = {row.kind for row in plan.measures}
    pairs = plan.pairs or ((0, 0),)
    powers = 4 if "kurtosis" in kinds else 3 if "skewness" in kinds else 2 if _SQUARES & kinds else 1
    # sum of (t - middle)^2, t = 0 ... window - 1
    spread = window * (window * window - 1) / 12
    shared = shared_parameters(signal, KINDS, label_column, awaits)
    return (
        shared
        | _spectrum(signal)
        | {
            "has_sums": bool(kinds - _WITHOUT_SUMS),
            "has_power2": powers >= 2,
            "has_power3": powers >= 3,
            "has_power4": powers >= 4,
            "sample_max_abs": signal.most,
            "hop": hop,
            "block_share": 1 / hop,
            "window_share": 1 / window,
            "gap_share": 1 / max(1, window - 1),
            "slope_share": 1 / spread if spread else 0.0,
            "block_step": float(hop),
            "measure_limit": [row.limit for row in plan.measures],
            "pair_first": [a for a, _ in pairs],
            "pair_second": [b for _, b in pairs],
            "made_share": [1 / max(1, row.steps) for row in plan.features],
            "made_limit": [row.limit for row in plan.features],
            "period_share": [1 / period for period in shared["period"]],
        }
    )


def _spectrum(signal: SignalSection) -> dict[str, Any]:
    """Return SignalConfig's values for the spectrum."""
    half = capacities(signal, False)["RAW_HALF"]
    levels = half.bit_length() - 1
    # the first level is computed alone, and the second if an odd number of levels follows; others in pairs
    spans = [2**level for level in range(2 - levels % 2, levels, 2)] or [0]
    return {
        "takes_log": signal.log,
        # the squared weights of a Hann window sum to 3/8 of its length
        "power_scale": 2 / (2 * half * 0.375 * 2 * half),
        "power_share": 1 / half,
        "log_scale": (2.0**20 / signal.most) ** 2,
        "bin_width": (signal.rate or 0.0) / (2 * half),
        "cosines": list(cosines(2 * half)),
        "has_single_level": levels % 2 == 0,
        "spans": spans,
        "groups": [half // max(1, 4 * span) for span in spans],
    }


PI = 0x3243F6A8885A308D313198A2E
"""Pi, times 2^96."""


@functools.lru_cache(maxsize=8)
def cosines(whole: int) -> tuple[float, ...]:
    """Return cos(2 pi c / whole) for c < whole / 2, computed in integers so that the result is the same on every machine."""

    def near(angle: int) -> int:
        # 1 - x^2 / 2! + x^4 / 4! ..., in units of 2^-96
        total, term, square = 1 << 96, 1 << 96, angle * angle >> 96
        for i in range(2, 60, 2):
            term = -(term * square >> 96) // ((i - 1) * i)
            total += term
        return total

    def value(c: int) -> float:
        if 4 * c > whole:
            return -value(whole // 2 - c)
        return 0.0 if 4 * c == whole else near(2 * PI * c // whole) / 2**96

    return tuple(value(c) for c in range(whole // 2))


_WITHOUT_SUMS = {"min", "max", "range", "change", "crossings"}
_SQUARES = {"rms", "std", "crest", "correlation"}
"""Features that need sums of squares."""


def completed(
    content: Mapping[str, Any], signal: SignalSection, made: Mapping[str, Any], learns: bool, written: bool
) -> dict[str, Any]:
    """Return the content with the model's inputs.  Raises ValueError for a key of [input] that contradicts [signal],
    and for ``ahead`` without a forecast.

    made: keys of [input] that follow from the signal.  learns: whether the device learns the label.  If it does, and
    the label is a forecast, the label's default limit is the limit of the channel.  written: whether a person wrote the
    content.
    """
    inputs = content.get("input", {})
    if not isinstance(inputs, Mapping):
        return dict(content)
    label = content.get("label", {})
    column = label.get("column") if isinstance(label, Mapping) else None
    forecasts = isinstance(column, str) and column in signal.channels
    if signal.ahead != 1 and not forecasts:
        raise ValueError("ahead is for forecasts, but [label] column is not one of the channels; leave ahead out")
    for key in ("columns", "dim", "max_abs", "resolution", "offset"):
        wanted, own = (list(value) if isinstance(value, tuple) else value for value in (inputs.get(key), made.get(key)))
        free = not written or (key == "max_abs" and "resolution" in made)  # in int16, the user may narrow the ranges
        if wanted is not None and not (free and wanted == own):
            raise ValueError(f"[input] {key} contradicts [signal], whose features are the inputs; leave this key out")
    completed = {**content, "input": {**inputs, **made}}
    if forecasts and learns and label.get("max_abs") is None:
        most = signal.max_abs
        most = most if isinstance(most, float) else most[signal.channels.index(column)]
        completed["label"] = {**label, "max_abs": most}
    return completed
