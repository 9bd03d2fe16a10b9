"""Run a model, with its signal stage, over a recording as on the device."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from pykernel.dialect import Memory
from pykernel.errors import UserError, shown_option
from pykernel.files import all_or_none, whole_file
from pykernel.host import snapshot
from pykernel.host.monitoring import Monitoring
from pykernel.host.predictions import prediction_header, prediction_lines
from pykernel.host.recording import Recorded
from pykernel.host.samples import missing_rows
from pykernel.host.seen import Seen
from pykernel.host.signal import SignalStage, delay_of, steps_of
from pykernel.host.simulation import Simulation
from pykernel.rows.columns import Columns
from pykernel.spec.model import Spec
from pykernel.telling import Watch


class Pipeline:
    """A simulation of a spec's model, preceded by the signal stage if the spec has one.

    delay, refresh_every, train_every, until: see ``Simulation``.
    """

    def __init__(
        self, spec: Spec, delay: int = 0, refresh_every: int = 0, train_every: int = 0, until: int | None = None
    ) -> None:
        inner = spec.inner
        self.spec, self.stage = spec, None if spec.signal is None else SignalStage(spec)
        self.simulation: Simulation | Monitoring
        if inner.program.label_kind == "none":
            for name, given in (("delay", delay), ("train_every", train_every)):
                if given:
                    raise UserError(
                        f"{spec.name} learns without labels, so {shown_option(name)} has no effect; leave it out"
                    )
            self.simulation = Monitoring(inner, refresh_every)
        else:
            late = delay_of(spec, delay)
            self.simulation = Simulation(inner, late, refresh_every, train_every, spec.forecasts, until)

    def _fields(self, whole: Memory) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield (values, place) for each field of the model and of the signal stage: the field's array in the memory of the
        model or stage, and its array in ``whole``, the device's memory.
        """
        for part in (self.simulation.model.memory, *([] if self.stage is None else [self.stage.memory])):
            for struct in part.structs:
                for name in struct.fields:
                    yield part.field(name), whole.field(name)

    def memory(self) -> Memory:
        """Return the device's memory after the rows run so far."""
        whole = self.spec.memory()
        for part, place in self._fields(whole):
            place[...] = part
        return whole

    def go_on(self, memory: Memory) -> None:
        """Continue from a device's memory."""
        for part, place in self._fields(memory):
            part[...] = place
        asked = 0 if self.stage is None or not self.spec.forecasts else len(self.stage.asked())
        self.simulation.went_on(asked)

    def run(
        self,
        recording: Recorded,
        watch: Watch,
        output: Path | None = None,
        save: Path | None = None,
        seen: Seen | None = None,
    ) -> bytes:
        """Run all rows, write the answers and the state to their files (both files or neither), and report how the
        recording was read.

        Returns the snapshot, or empty bytes if ``save`` is None.
        """
        spec, simulation, raw, columns = self.spec, self.simulation, recording.raw, Columns()
        # with forecasts, the raw rows of the steps are not known: ``steps_of`` yields a step only when the step's true
        # value is known
        place = None if raw is None or spec.forecasts else raw.raw_row
        state = b""
        with all_or_none(), contextlib.ExitStack() as stack:
            rows, size = recording.batches(stack, columns)
            written = stack.enter_context(whole_file(output)) if output else None
            show = stack.enter_context(watch.progress(size))
            if written:
                written.write(prediction_header(spec.inner, place is not None).encode())
            for looks in (seen and seen.reading, recording.known and recording.known.reading, raw and raw.counted):
                rows = looks(rows) if looks else rows
            for batch in steps_of(spec, rows, self.stage):
                recording.gaps += int(np.isnan(batch.x).any(axis=1).sum())
                if raw is not None:
                    raw.place(batch.raw)
                answered = []
                for steps in simulation.run(batch.x, batch.y):
                    if written:
                        written.write(prediction_lines(spec.inner, steps, place).encode())
                    answered.append(steps)
                if seen is not None:
                    seen.answer(answered)
                show(batch.position, f"running {spec.name}")
            again = simulation.visits and simulation.train_every and recording.again
            simulation.finish(steps_of(spec, recording.batches(stack)[0]) if again else ())
            if save:
                state = snapshot.saved(spec, self.memory())
                with whole_file(save) as file:
                    file.write(state)
        if recording.path is not None:
            recording.read = columns.report(missing=missing_rows(spec, recording.gaps))
            watch.data(recording.read)
        return state
