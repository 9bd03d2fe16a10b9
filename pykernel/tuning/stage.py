"""The signal stage in a search: raw rows become steps on the way in, and each model gets its [signal] on the way out.

What is searched is the model inside, on steps.  What is written, and measured on a device, is the whole.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from pykernel.host.signal import steps_of
from pykernel.host.simulate import BATCH, Batch
from pykernel.spec.model import Spec, make_spec
from pykernel.spec.sections import StandardisedInput
from pykernel.spec.signal import plan_of
from pykernel.tuning.combinations import Content

DERIVED = ("columns", "dim", "max_abs", "resolution")
"""Keys of [input] that follow from the signal."""
NAMES = ("column", "columns", "outputs")
"""Keys of [label] that say which labels there are: a model inside a stage only knows how many."""
MEASURED_ROWS, MEASURED_WINDOWS = 20_000, 8
"""A device is measured on the last so many raw rows, or on those of so many windows, if they are more."""


HELD = 0.3
"""The last part of the rows, on which models are judged."""


def first_judged(rows: int) -> int:
    return rows - max(1, round(HELD * rows))


@dataclass(frozen=True)
class Stage:
    """A signal stage, and the recorded rows that it makes steps of.

    base: name, precision, [signal] and [label] of the spec.  x: raw rows (rows, CHANNELS); y: their labels, (rows, 0) where
    there are none, or where they are measures of the signal.  raw_rows: how many there are, and how many are gaps.
    """

    base: Content
    x: np.ndarray
    y: np.ndarray
    raw_rows: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, spec: Spec, x: np.ndarray, y: np.ndarray, raw_rows: Mapping[str, int]) -> Stage:
        content = dump(spec)
        label = {key: value for key, value in content.get("label", {}).items() if key in (*NAMES, "classes")}
        base: Content = {key: content[key] for key in ("name", "precision", "signal") if key in content}
        if spec.real.is_integer:  # ranges and centers count for the features
            base["input"] = {
                key: value for key, value in content["input"].items() if key in ("center", "scale", "max_abs")
            }
        return cls(base | ({"novelty": {}} if spec.label_kind == "none" else {"label": label}), x, y, raw_rows)

    def with_signal(self, signal: Content) -> Stage:
        """The same raw rows through another signal; where its features are scaled by numbers, by numbers of theirs."""
        own = {key: value for key, value in self.base.items() if key != "input"} | {"signal": signal}
        other = replace(self, base=own)
        return other.scaled(other.steps()[0]) if "center" in self.base.get("input", {}) else other

    def scaled(self, x: np.ndarray) -> Stage:
        """The stage with center, scale and ranges of its steps before those that are judged, where whole numbers have only the
        largest magnitudes to go by.  A feature beyond twice the range that was seen counts as so large."""
        spec, given = self.plain, {"center": None, "scale": None}
        default = spec.signal_inputs(given).get("scale")
        before, scale = spec.scaling
        if not spec.real.is_integer or before is not None or list(scale or ()) != default:
            return self
        x = x[: first_judged(len(x))]
        center, deviation = x.mean(axis=0), x.std(axis=0)
        own = {
            "center": center.tolist(),
            "scale": (1 / np.where(deviation > 0, deviation, 1 / np.array(default))).tolist(),
        }
        most = np.array(spec.signal_inputs(own)["max_abs"])
        seen = np.maximum(2 * np.abs(x - center).max(axis=0), 4 * deviation)
        own["max_abs"] = np.where(deviation > 0, np.minimum(seen, most), most).tolist()
        return replace(self, base=self.base | {"input": own})

    @property
    def plain(self) -> Spec:
        """Some model with this stage around it.  Raises UserError if the signal cannot be."""
        return make_spec(self.base)

    @property
    def digest(self) -> bytes:
        parts = [repr(self.base).encode(), *(np.ascontiguousarray(part).tobytes() for part in (self.x, self.y))]
        return hashlib.sha256(b"\0".join(parts)).digest()

    def overlaps(self) -> list[str]:
        """A sentence if steps share raw samples."""
        signal = self.plain.signal
        assert signal is not None
        if (signal.window or 1) + plan_of(signal).oldest * signal.step <= signal.step:
            return []
        return ["steps share raw samples, so that estimates by rows left out are too small"]

    def steps(self) -> tuple[np.ndarray, np.ndarray]:
        """What the model inside learns: features (steps, DIM) and labels."""
        rows = range(0, len(self.x), BATCH)
        raw = (Batch(self.x[i : i + BATCH], self.y[i : i + BATCH], 0) for i in rows)
        made = list(steps_of(self.plain, raw))
        return np.concatenate([batch.x for batch in made]), np.concatenate([batch.y for batch in made])

    def inside(self, spec: Spec) -> Content:
        """The content of a model with this stage around it, without the stage."""
        content = dump(spec.inner)
        content["input"] = content.get("input", {}) | self.seen(spec)
        content["input"].pop("columns", None)
        if spec.label_kind != "none":
            label = {key: value for key, value in content.get("label", {}).items() if key not in NAMES}
            content["label"] = label | ({} if spec.label.classes else {"outputs": spec.outputs})
        return content

    @staticmethod
    def seen(spec: Spec) -> Content:
        """What follows from the signal for [input] of the model inside, but for names."""
        own = dump(spec).get("input", {})
        return {"dim": spec.dim} | {key: own[key] for key in ("max_abs", "resolution") if key in own}

    def around(self, content: Mapping[str, Any]) -> Spec:
        """The whole of a model: its content with this stage.  Raises UserError for what cannot be."""
        inner = make_spec(content)
        given = {key: value for key, value in content.get("input", {}).items() if key not in DERIVED}
        if inner.real.is_integer:  # which may be less than the signal says
            given["max_abs"] = content["input"]["max_abs"]
        if isinstance(inner.input, StandardisedInput):  # which [signal] switches on, unless it is said
            given["standardise"] = inner.standardises
        label = {key: value for key, value in content.get("label", {}).items() if key not in NAMES}
        label |= {key: value for key, value in self.base.get("label", {}).items() if key in NAMES}
        whole = {**content, "signal": self.base["signal"], "input": given}
        return make_spec(whole | ({"label": label} if label else {}))

    def device_rows(self, spec: Spec) -> tuple[np.ndarray, np.ndarray]:
        """Raw rows for a device with the whole model: those that it takes, each with a label, where it takes labels."""
        assert spec.signal is not None
        plan = plan_of(spec.signal)
        longest = (spec.signal.window or 1) + (plan.oldest + spec.signal.ahead) * spec.stride
        rows = np.flatnonzero(spec.accepts(self.x))[-max(MEASURED_ROWS, MEASURED_WINDOWS * longest) :]
        if spec.program.label is None:
            return self.x[rows], np.zeros((len(rows), 0))
        y = self.y[rows]
        flat = y.reshape(len(y), -1)
        known = (flat >= 0 if y.dtype.kind in "iu" else np.abs(flat) <= spec.label.max_abs).all(axis=1)
        latest = np.maximum.accumulate(np.where(known, np.arange(len(y)), int(known.argmax())))
        return self.x[rows], y[latest]


def dump(spec: Spec) -> Content:
    """The content of a spec."""
    return spec.model_dump(mode="json", exclude_unset=True)
