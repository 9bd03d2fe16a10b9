"""Check whether a model's C code computes the same bytes as the host: with this machine's compilers, on emulated CPUs, or on a board."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pykernel.errors import CheckFailed, shown_option
from pykernel.files import all_or_none, need_not_data, whole_file
from pykernel.report.document import Result
from pykernel.request.kinds import measured
from pykernel.request.option import function, stated
from pykernel.telling import Watch, raise_first_error
from pykernel.workflows.arguments import need_report
from pykernel.workflows.models import spec_and_memory
from pykernel.workflows.requests import Check

if TYPE_CHECKING:
    import numpy as np

    from pykernel.gen.check import Report
    from pykernel.report.document import Document
    from pykernel.spec.model import Spec

ON_TARGETS = 1000
"""Default number of random samples on a target or a board."""


def first_difference(rows: Sequence[Mapping[str, Any]]) -> str:
    wrong = next(row for row in rows if not row["equal"])
    if "engine" in wrong:
        return f"{wrong['engine']}, the reference, differs: {wrong['first_difference']}"
    built = f"{wrong.get('board', '')} {wrong['compiler']} {wrong['flags']}".strip()
    return f"{built}: the C code differs from the simulation: {wrong['first_difference']}"


@dataclass(frozen=True, repr=False)
class Checked(Result):
    """The result of a check: whether the C code computes the same bytes as the host, and the code's costs.

    rows: one row for each build, target or board, with ``equal``, bytes, and the instructions of each call.  on_target: rows of a
    check on the CPU of the spec's [target], if [target] has limits that need this check.  figures: bytes and other figures of the model.
    simple_bytes: memory of simple predictors.
    engine: the engine that simulated the model.  witnesses: one row for each other engine that learned the same stream, with
    ``engine``, ``equal`` and ``first_difference``.
    exceeded: one sentence for each limit of the [target] that is exceeded.  loads: for each target or board, the fraction of the
    processor's time that the model takes; empty if no sampling rate was given.
    """

    name: str
    rows: list[dict[str, Any]]
    on_target: list[dict[str, Any]]
    engine: str
    witnesses: list[dict[str, Any]]
    figures: dict[str, Any]
    simple_bytes: dict[str, int]
    exceeded: list[str]
    loads: list[dict[str, Any]]
    statuses: dict[str, int]
    calls: dict[str, dict[str, int]]
    spec: Spec
    asked: dict[str, Any]

    @property
    def page(self) -> Document:
        from pykernel.gen.project import inside
        from pykernel.report.checks import checked

        hashes = {key: self.figures[key] for key in ("state_bytes", "work_bytes", "const_bytes", "config_hash")}
        learned = " and then learned" * self.spec.program.learns
        hash_sentence = f"NAME_hash returns this hash after all samples, each predicted{learned}"
        hashes |= {
            "simple": self.simple_bytes,
            "hash_told": hash_sentence,
            "state_hash": self.figures.get("state_hash"),
        }
        return checked(
            self.name, self.report, self.rows, self.spec.program.learns, self.asked, inside(self.spec) | hashes
        )

    @property
    def equal(self) -> bool:
        """Whether the bytes of all builds and of all engines equal the host's."""
        return all(row["equal"] for row in (*self.rows, *self.on_target, *self.witnesses))

    @property
    def ok(self) -> bool:
        """Whether all bytes are equal, and no limit of the spec's [target] is exceeded."""
        return self.equal and not self.exceeded

    @property
    def failure(self) -> Exception | None:
        if not self.equal:
            return CheckFailed(first_difference([*self.rows, *self.on_target, *self.witnesses]))
        large = any(" takes " in sentence for sentence in self.exceeded)
        smaller = "; a smaller [reduction] n_max needs fewer bytes" * (large and self.spec.has("reduction", "n_max"))
        return CheckFailed("; ".join(self.exceeded) + smaller) if self.exceeded else None

    @property
    def report(self) -> dict[str, Any]:
        """The result as ``pykernel check --json`` prints it."""
        return {
            "ok": self.ok,
            "check": [*self.rows, *self.on_target],
            "engine": self.engine,
            "witnesses": self.witnesses,
            "sizes": self.figures,
            "simple_bytes": self.simple_bytes,
            "exceeded": self.exceeded,
            **({"load": self.loads} if self.loads else {}),
        }


def run(request: Check) -> Checked:
    """Run ``pykernel check``."""
    from pykernel.engine.choice import engine_used
    from pykernel.gen import record as validity
    from pykernel.host.simple import simple_bytes
    from pykernel.targets.check import exceeded

    spec, learned = spec_and_memory(request.model)
    page = None if request.report is None else Path(request.report)
    need_report(page)
    if page is not None and isinstance(request.data, str | Path):
        need_not_data(page, str(request.data))
    known, target = learned if request.memory is None else request.memory, request.target
    if request.record is not None and known is None:
        known = validity.start_of(Path(request.record), spec)
    if request.rate is not None and target is None and request.board is None and spec.target is not None:
        # if --rate is given without a target, the load is computed for the CPU that the spec names
        target = spec.target.name
    asked = replace(request, memory=known, target=[target] if isinstance(target, str) else target)
    _need_possible(asked)
    if request.record is not None:
        validity.require_project(Path(request.record), spec)
    report = compared(spec, asked)
    with engine_used(report.engine):  # the other engines (witnesses) have already checked this model
        on_target = check_own_target(spec, asked)
    equal = report.ok and all(row["equal"] for row in on_target)
    measured = [*(report.rows if asked.target else []), *on_target]
    result = Checked(
        name=spec.name,
        rows=report.rows,
        on_target=on_target,
        engine=report.engine,
        witnesses=report.witnesses,
        figures=report.figures,
        simple_bytes=dict(simple_bytes(spec)),
        exceeded=exceeded(spec, report.figures, measured) if equal else [],
        loads=_loads_of(spec, asked, report.rows),
        statuses=report.statuses,
        calls=report.calls,
        spec=spec,
        asked=stated(request),
    )
    with all_or_none():
        if request.record is not None:
            validity.record(Path(request.record), spec, report, request.data is not None or request.stream is not None)
        if page is not None:
            result.page.write(page)
    return result


def count_of(asked: Check) -> int:
    if asked.samples is not None:
        return asked.samples
    from pykernel.gen.check import SAMPLES

    return ON_TARGETS if asked.target or asked.board else SAMPLES


def how_of(asked: Check) -> dict[str, Any]:
    """Return the given arguments that apply only to checks on this machine: name -> value."""
    return {name: value for name in ("levels", "compilers", "engine") if (value := getattr(asked, name)) is not None}


def _need_possible(asked: Check) -> None:
    """Raise UserError if a number is invalid, if arguments contradict each other, or if one needs another that was not given."""
    target, board, rate = shown_option("target"), shown_option("board"), shown_option("rate")
    amounts = {"clock": asked.clock, "rate": asked.rate, "current": asked.current}
    of_targets = {
        "toolchain": asked.toolchain,
        "emulator": asked.emulator,
        "level": None if asked.level == "-O2" else asked.level,
    }
    raise_first_error(
        *(
            (
                value and not asked.target,
                f"{shown_option(name)} {value} is for targets; add {target} …, or {target} all",
            )
            for name, value in of_targets.items()
        ),
    )
    for name, amount in amounts.items():
        if amount is not None:
            measured(amount, name)
    raise_first_error(
        *(
            (
                amount and not asked.rate,
                f"{shown_option(name)} {amount} needs the number of samples per second, too; add {rate} …",
            )
            for name, amount in amounts.items()
        ),
        (
            asked.rate and not (asked.target or asked.board),
            f"{rate} is for targets and boards; add {target} … or {board} …",
        ),
        (
            asked.rate and asked.target and not asked.clock,
            f"{rate} needs the processor's clock, too; add {shown_option('clock')} …",
        ),
        (asked.board == "", f"{board} has no value; give a port, such as /dev/ttyACM0"),
        (asked.board and asked.target, f"{board} and {target} start two different checks; give only one of them"),
        (asked.log and not asked.board, f"{shown_option('log')} {asked.log} is for boards; add {board} …"),
    )
    if asked.log and isinstance(asked.data, str | Path):
        need_not_data(Path(asked.log), str(asked.data))
    raise_first_error(
        (
            asked.data and asked.samples,
            f"{shown_option('samples')} is for random samples; leave {shown_option('samples')} or {shown_option('data')} out",
        ),
        (
            asked.data and asked.stream is not None,
            "data and stream both replace the random samples; give only one of them",
        ),
        (
            how_of(asked) and (asked.target or asked.board),
            f"{shown_option(next(iter(how_of(asked)), ''))} applies only to checks on this PC; leave {target} and {board} out",
        ),
    )


def _loads_of(spec: Spec, asked: Check, rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return a dict for each row, with the fraction of the processor's time that the model takes and, if a current was given, the charge
    per day.

    The list is empty if no rate was given.
    """
    from pykernel.targets.load import load_of

    if asked.rate is None:
        return []
    clock = None if asked.clock is None else measured(asked.clock, "clock")
    rate, current = measured(asked.rate, "rate"), measured(asked.current, "current") if asked.current else None
    loads = []
    for row in rows:
        load, name = load_of(spec, row, clock, rate), row.get("board") or row["target"]
        if load is None:
            loads.append({"target": name, "cycles": None})
            continue
        loads.append(
            {
                "target": name,
                "kind": load.kind,
                "cycles": round(load.most),
                "microseconds": load.seconds * 1e6,
                "share": load.share,
                "mean_share": load.mean_share,
                "waiting": load.waiting,
                **({} if current is None else {"mah_a_day": load.charge(current)}),
            }
        )
    return loads


def check_own_target(spec: Spec, asked: Check) -> list[dict[str, Any]]:
    """Return the rows of a check on the CPU of the spec's [target].

    The list is empty if [target] has no limits that need this check, or if the user has requested this CPU.
    """
    limits = spec.target
    if limits is None or limits.name is None or not (limits.flash or limits.instructions or limits.cycles):
        return []
    if {"all", limits.name} & set(asked.target or ()):
        return []
    there = replace(
        asked,
        target=[limits.name],
        board=None,
        log=None,
        levels=None,
        compilers=None,
        engine=None,
        samples=asked.samples or ON_TARGETS,
    )
    return compared(spec, there).rows


def _recorded(
    spec: Spec, data: str | Path | Sequence[str | Path], log: str | Path | None, watch: Watch
) -> tuple[tuple[np.ndarray, np.ndarray], list[tuple[str, int]]]:
    """Return the recorded rows, and a list with the name and the number of rows of each device.

    The rows of many devices follow one another, device by device.  For a single recording, the list is empty.
    """
    import numpy as np

    from pykernel.host.samples import read_each, read_rows
    from pykernel.rows.columns import Columns
    from pykernel.rows.recordings import need_none, recordings_of

    many, seen = recordings_of(data), Columns()
    if many is None:
        stream = read_rows(spec, str(data), seen)
        watch.data(seen.report())
        return stream, []
    need_none(log=log)
    parts = read_each(spec, many, watch)
    x, y = (np.concatenate(each) for each in zip(*parts, strict=True))
    watch.tell(f"devices  {len(many):,}, with {len(x):,} rows; the model starts anew on each device")
    return (x, y), [(device.name, len(rows)) for device, (rows, _) in zip(many.devices, parts, strict=True)]


def compared(spec: Spec, asked: Check) -> Report:
    """Compare the results of the C code with those of the host.  The C code runs on this machine, on targets or on a board."""
    stream, devices = asked.stream, list[tuple[str, int]]()
    if asked.data:
        stream, devices = _recorded(spec, asked.data, asked.log, asked.watch)
    watch = asked.watch
    with watch.progress() as show, contextlib.ExitStack() as stack:
        if asked.board:
            from pykernel.targets.check import check_board

            log = None
            if asked.log:
                log = io.TextIOWrapper(stack.enter_context(whole_file(asked.log)), "utf-8", write_through=True)
            report = check_board(
                spec, asked.board, asked.memory, count_of(asked), asked.seed, stream, asked.baud, log, show, devices
            )
            if log:
                log.detach()
            return report
        if asked.target:
            from pykernel.targets.check import check_targets

            return check_targets(
                *(
                    spec,
                    asked.target,
                    asked.memory,
                    count_of(asked),
                    asked.seed,
                    asked.toolchain,
                    asked.emulator,
                    stream,
                ),
                level=asked.level,
                progress=show,
                devices=devices,
            )
        from pykernel.gen.check import check as check_here

        how: dict[str, Any] = {"progress": show} | how_of(asked)
        if watch.bars:
            how["tell"] = watch.tell
        how |= {"samples": count_of(asked), "seed": asked.seed, "stream": stream, "devices": devices}
        return check_here(spec, memory=asked.memory, **how)


check = function(Check, run)
