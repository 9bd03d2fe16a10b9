"""The signal stage in a search: it turns raw rows into steps, and adds [signal] to each model.

The search works with the inner model, on steps.  The whole model, with [signal], is written as the spec and measured on a
device.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from pykernel.host.samples import Batch
from pykernel.host.signal import steps_of
from pykernel.rows.text import BATCH
from pykernel.spec.model import Spec, make_spec
from pykernel.spec.sections import StandardisedInput
from pykernel.spec.signal import plan_of
from pykernel.tuning.combinations import Content

DERIVED = ("columns", "dim", "max_abs", "resolution")
"""Keys of [input] that follow from the signal."""
NAMES = ("column", "columns", "outputs")
"""Keys of [label] that name the labels, or give their number.  The inner model has only the number of labels."""
MEASURED_ROWS, MEASURED_WINDOWS = 20_000, 8
"""Costs on a device are measured with the last raw rows: MEASURED_ROWS rows or, if this is more, MEASURED_WINDOWS times
the number of rows that a step and its forecast span."""


HELD = 0.3
"""Fraction of the rows that is judged, at the end of the table."""


def first_judged(rows: int) -> int:
    return rows - max(1, round(HELD * rows))


@dataclass(frozen=True)
class Stage:
    """A signal stage, and the recorded rows that it turns into steps.

    base: name, precision, [signal] and [label] of the spec; [novelty] for a monitor; the scaling in [input] for int16.
    x: raw rows, (rows, CHANNELS).  y: the rows' labels: an array of shape (rows, 0) if there are none, or if the label
    is forecast from the signal.  raw_rows: counts of the raw rows and their gaps (``RawRows.report``).
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
        if spec.real.is_int16:  # in int16, the features depend on these keys
            base["input"] = {
                key: value for key, value in content["input"].items() if key in ("center", "scale", "max_abs")
            }
        return cls(base | ({"novelty": {}} if spec.label_kind == "none" else {"label": label}), x, y, raw_rows)

    def with_signal(self, signal: Content) -> Stage:
        """Return a stage with another [signal] for the same raw rows.

        A fixed scaling is computed again from the new features.
        """
        own = {key: value for key, value in self.base.items() if key != "input"} | {"signal": signal}
        other = replace(self, base=own)
        return other.scaled(other.steps()[0]) if "center" in self.base.get("input", {}) else other

    def scaled(self, x: np.ndarray) -> Stage:
        """For an int16 model with the default scaling, return the stage with a center, scales and ranges that are computed
        from the steps before the judged ones.  Otherwise, return this stage.

        Without these values, an int16 model would take the largest possible magnitudes of the features as their
        ranges.  A feature is clipped if its distance from the center is more than twice the largest recorded distance,
        and more than 4 standard deviations.
        """
        spec, given = self.plain, {"center": None, "scale": None}
        default = spec.signal_inputs(given).get("scale")
        before, scale = spec.scaling
        if not spec.real.is_int16 or before is not None or list(scale or ()) != default:
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
        """The spec of an arbitrary model with this stage.  Raises UserError if [signal] is not valid."""
        return make_spec(self.base)

    def overlaps(self) -> list[str]:
        """Return a list with one warning if steps share raw samples, else an empty list."""
        signal = self.plain.signal
        assert signal is not None
        share = (signal.window or 1) + plan_of(signal).oldest * signal.step > signal.step
        return ["steps share raw samples, so errors estimated on left-out steps are optimistic"] if share else []

    def steps(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the samples of the inner model: features (steps, DIM) and labels."""
        starts = range(0, len(self.x), BATCH)
        made = list(steps_of(self.plain, (Batch(self.x[i : i + BATCH], self.y[i : i + BATCH], 0) for i in starts)))
        return np.concatenate([batch.x for batch in made]), np.concatenate([batch.y for batch in made])

    def inside(self, spec: Spec) -> Content:
        """Return the content of the inner model of ``spec``, a whole model with this stage."""
        content = dump(spec.inner)
        content["input"] = content.get("input", {}) | self.seen(spec)
        content["input"].pop("columns", None)
        if spec.label_kind != "none":
            label = {key: value for key, value in content.get("label", {}).items() if key not in NAMES}
            content["label"] = label | ({} if spec.label.classes else {"outputs": spec.outputs})
        return content

    @staticmethod
    def seen(spec: Spec) -> Content:
        """Return the keys "dim", "max_abs" and "resolution" of the inner model's [input], which follow from [signal]."""
        own = dump(spec).get("input", {})
        return {"dim": spec.dim} | {key: own[key] for key in ("max_abs", "resolution") if key in own}

    def around(self, content: Mapping[str, Any]) -> Spec:
        """Return the whole model: the inner model's content with this stage.  Raises UserError if the whole model is not valid."""
        inner = make_spec(content)
        given = {key: value for key, value in content.get("input", {}).items() if key not in DERIVED}
        if inner.real.is_int16:  # the inner model's ranges may be narrower than those from [signal]
            given["max_abs"] = content["input"]["max_abs"]
        if isinstance(
            inner.input, StandardisedInput
        ):  # the inner model's value, because the default with [signal] is true
            given["standardise"] = inner.standardises
        label = {key: value for key, value in content.get("label", {}).items() if key not in NAMES}
        label |= {key: value for key, value in self.base.get("label", {}).items() if key in NAMES}
        whole = {**content, "signal": self.base["signal"], "input": given}
        return make_spec(whole | ({"label": label} if label else {}))

    def device_rows(self, spec: Spec) -> tuple[np.ndarray, np.ndarray]:
        """Return raw rows that the whole model accepts on a device, with their labels if the model takes labels.

        A label that is missing, or that the model refuses, is replaced by the previous label that the model accepts.
        """
        assert spec.signal is not None
        plan = plan_of(spec.signal)
        longest = (spec.signal.window or 1) + (plan.oldest + spec.signal.ahead) * spec.stride
        rows = np.flatnonzero(spec.accepts(self.x))[-max(MEASURED_ROWS, MEASURED_WINDOWS * longest) :]
        if spec.program.label is None:
            return self.x[rows], np.zeros((len(rows), 0))
        y = self.y[rows]
        flat = y.reshape(len(y), -1)
        known = (flat >= 0 if y.dtype.kind in "iu" else spec.within_limit(flat)).all(axis=1)
        latest = np.maximum.accumulate(np.where(known, np.arange(len(y)), int(known.argmax())))
        return self.x[rows], y[latest]


def dump(spec: Spec) -> Content:
    """Return the content of a spec."""
    return spec.model_dump(mode="json", exclude_unset=True)
