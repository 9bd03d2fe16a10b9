"""A recording: the rows of a file or of arrays."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pykernel.errors import UserError
from pykernel.files import open_data
from pykernel.host.samples import Batch, by_name, require_columns, samples_of, training_of
from pykernel.host.signal import RawRows, steps_of
from pykernel.rows.columns import Columns
from pykernel.rows.text import BATCH
from pykernel.spec.model import Spec
from pykernel.telling import Watch

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    Recording = str | Path | ArrayLike | tuple[ArrayLike, ArrayLike | None]


class Recorded:
    """The rows of a file or of arrays. name: the file's name in messages; by default its path."""

    def __init__(self, spec: Spec, data: Recording, name: str | None = None) -> None:
        self.path = str(data) if isinstance(data, str | Path) else None
        self.spec, self.name, training = spec, name, training_of(spec)
        pair = data if isinstance(data, tuple) and len(data) == 2 else (data, None)
        self.arrays = None if self.path is not None else _arrays(spec, *pair)
        self.read: dict[str, Any] | None = None
        """A description of how the file was read, as a dict."""
        self.gaps = 0
        """Number of rows with a missing input."""
        self.raw = None if spec.signal is None else RawRows(spec)
        """Counts of raw rows."""
        self.known = None if training is None or training.data is None else Digest(training.rows)
        """Digest of the first rows, which may be the model's training rows."""
        if self.path is not None:
            require_columns(spec)

    @property
    def again(self) -> bool:
        """Whether the rows can be read again."""
        return self.path is None or Path(self.path).is_file()

    @property
    def trained(self) -> int | None:
        """The number of training rows at the beginning of the recording, or None if the recording begins with other
        rows or has not been read yet.
        """
        return self.known.most if self.known is not None and self.known.digest == training_of(self.spec).data else None

    def steps(self, watch: Watch) -> int:
        """Count the samples that the model will see."""
        with contextlib.ExitStack() as stack:
            rows, size = self.batches(stack)
            show, count = stack.enter_context(watch.progress(size)), 0
            for batch in steps_of(self.spec, rows):
                count += len(batch.x)
                show(batch.position, "counting rows")
        return count

    def batches(self, stack: contextlib.ExitStack, seen: Columns | None = None) -> tuple[Iterable[Batch], float | None]:
        """Return (batches, size): the batches of rows, and the value that ``Batch.position`` has at the end, in bytes or
        rows, or None if this value is not known.

        seen: counts the file's cells by their content.
        """
        if self.arrays is not None:
            return self._pieces(*self.arrays), len(self.arrays[0])
        assert self.path is not None
        name, file, size = open_data(self.path, stack)
        return samples_of(self.spec, file, self.name or name, seen=seen), size

    def _pieces(self, x: np.ndarray, y: np.ndarray) -> Iterator[Batch]:
        for start in range(0, len(x), BATCH):
            end = min(start + BATCH, len(x))
            yield Batch(x[start:end], y[start:end], end)


class Digest:
    """A digest of the first ``most`` rows as a spec reads them, computed batch by batch."""

    def __init__(self, most: int | None = None) -> None:
        self.most, self.rows, self._parts = most, 0, (hashlib.sha256(), hashlib.sha256())

    def reading(self, batches: Iterable[Batch]) -> Iterator[Batch]:
        for batch in batches:
            more = len(batch.x) if self.most is None else min(len(batch.x), self.most - self.rows)
            for part, values in zip(self._parts, (batch.x, batch.y), strict=True):
                part.update(np.ascontiguousarray(values[:more]).tobytes())
            self.rows += more
            yield batch

    @property
    def digest(self) -> str:
        return hashlib.sha256(b"".join(part.digest() for part in self._parts)).hexdigest()[:16]


def _arrays(spec: Spec, x: ArrayLike, y: ArrayLike | None) -> tuple[np.ndarray, np.ndarray]:
    """Return arrays of inputs and labels, in the form that a Batch has.  A data frame's columns are found by name.
    Raises UserError if the arrays do not fit the spec.
    """
    try:
        inputs = np.ascontiguousarray(np.asarray(by_name(x, spec.sample_columns), np.float64))
    except (TypeError, ValueError):
        raise UserError("x is not a table of numbers; give a path, an array x, or a pair of arrays (x, y)") from None
    width = spec.dim if spec.signal is None else len(spec.signal.channels)
    if inputs.ndim != 2 or inputs.shape[1] != width or not len(inputs):
        raise UserError(f"x has the shape {inputs.shape}; {spec.name} takes rows of {width} numbers")
    kind = spec.inner.program.label_kind
    if kind == "none" or spec.forecasts:
        if y is not None and np.size(y):
            raise UserError(f"{spec.name} takes no labels; give None for y")
        return inputs, np.zeros((len(inputs), 0))
    if y is None:
        raise UserError(f"{spec.name} learns from labels; give (x, y)")
    labels = np.asarray(by_name(y, spec.label_columns))
    if kind == "class":
        labels = _positions(spec, labels)
    labels = np.ascontiguousarray(labels, np.int32 if kind == "class" else np.float64)
    shape = (len(inputs), spec.outputs) if kind == "reals" else (len(inputs),)
    if labels.shape != shape:
        raise UserError(f"y has the shape {labels.shape}; for these rows the shape must be {shape}")
    return inputs, labels


def _positions(spec: Spec, labels: np.ndarray) -> np.ndarray:
    """Return the class indices of labels that are given as indices or names."""
    if labels.dtype.kind in "iu":
        return labels
    known = {name: at for at, name in enumerate(spec.label.classes or ())}
    unknown = [each for each in dict.fromkeys(labels.ravel().tolist()) if each not in known]
    if unknown:
        there = f"class names ({', '.join(known)}) or " if known else ""
        raise UserError(
            f"y holds {unknown[0]!r}, which is not a class; give {there}class indices, which are integers from 0"
        )
    return np.array([known[each] for each in labels.ravel().tolist()]).reshape(labels.shape)
