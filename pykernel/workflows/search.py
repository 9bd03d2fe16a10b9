"""Read the data of a plan: the recorded rows of one device, or of many."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pykernel.errors import UserError, shown_option
from pykernel.files import need_not_data
from pykernel.host.run import DELAY_LIMIT
from pykernel.host.samples import missing_rows, read_each, samples_of
from pykernel.host.scores import Ranges
from pykernel.host.signal import RawRows, delay_of
from pykernel.request.kinds import Words, words
from pykernel.request.option import stated
from pykernel.rows.columns import Columns
from pykernel.rows.recordings import recordings_of
from pykernel.spec.defaults import INPUT_LIMIT
from pykernel.spec.model import Spec, make_spec
from pykernel.telling import Watch, gaps_sentence, raise_first_error
from pykernel.tuning.combinations import BASES, WAYS, input_limit, monitors, rules, techniques
from pykernel.tuning.data import FEWEST, MOST_ROWS, Devices, Table, parts_of
from pykernel.tuning.notes import noted
from pykernel.tuning.plan import FEW_ROWS
from pykernel.tuning.stage import HELD, Stage, dump
from pykernel.tuning.tables import infer, sentinels
from pykernel.workflows.arguments import need_known, need_report, need_unweighted, opened
from pykernel.workflows.requests import Plan

if TYPE_CHECKING:
    from pykernel.report.document import Section


class Asked:
    """The arguments of a plan: its data, and the files to write.

    report: the path of the page.  stated: the arguments that differ from their defaults, for the report.
    """

    def __init__(self, request: Plan) -> None:
        self.many = recordings_of(request.data)
        self.files = [str(request.data)] if isinstance(request.data, str | Path) else [*map(str, request.data)]
        self.data = str(request.data) if self.many is None else self.many.source
        self.delay, self.jobs, self.output, self.watch = (
            request.delay,
            request.jobs,
            Path(request.output),
            request.watch,
        )
        self.read: dict[str, Any] = {}
        """A description of the data as it was read, as plain values."""
        self.max_abs: float | None = None
        """[input] max_abs, if it was derived from the data."""
        self.report, self.stated = (
            self.output / "report.html" if request.report is None else Path(request.report),
            stated(request),
        )
        if self.many is not None:
            self.stated["data"] = self.data
        need_report(self.report)
        need_not_data(self.report, self.data)


def table_read(table: Table, base: Mapping[str, Any]) -> Section:
    """Return the section of a report that describes the table as it was read.  base: a spec's content, which names the columns."""
    from pykernel.report.common import table_read as table_section

    labels = None if table.y is None or table.of_classes else np.asarray(table.y, np.float64).reshape(len(table.x), -1)
    input, label = base["input"] if table.stage is None else dump(table.stage.plain)["input"], base.get("label", {})
    columns = list(input.get("columns") or [f"input {j}" for j in range(table.x.shape[1])])
    wanted = label.get("columns") or [label.get("column") or "label"]
    ranges = Ranges([*columns, *(wanted if labels is not None else [])])
    ranges.add(table.x if labels is None else np.column_stack([table.x, labels]))
    return table_section(ranges.report(), ranges.courses(), ranges.rows)


def only(value: Words) -> tuple[list[str] | None, list[str] | None]:
    """Return the rules and the techniques to try; None for all.

    A word is a rule, a technique, or a rule and a technique separated by a slash.  Raises UserError for any other word.
    """
    known, named = (*rules(), *monitors()), (*techniques(), *WAYS)
    parts = [
        word.partition("/") if "/" in word or word in known else ("", "", word)
        for word in words(value if isinstance(value, str) else ",".join(value or ()))
    ]
    for rule, _, technique in parts:
        need_known(rule or technique, (*known, *named), "only")
        if rule:
            need_known(rule, known, "only")
            need_known(technique or named[0], named, "only")
            if technique in WAYS and technique not in BASES.get(rule, ()):
                having = ", ".join(each for each, ways in BASES.items() if technique in ways)
                raise UserError(
                    f"{shown_option('only')} {rule}/{technique}: {rule} does not have this technique; rules that have it: {having}"
                )
    chosen, ways = (list(dict.fromkeys(each[place] for each in parts if each[place])) for place in (0, 2))
    if ways and not chosen and {*ways} <= {*WAYS}:  # only rules of BASES have these techniques
        chosen = [rule for rule in BASES if {*BASES[rule]} & {*ways}]
    return chosen or None, ways or None


def planned_data(
    options: Asked, spec: Spec | None, inputs: str | Sequence[str] | None, label: str | None
) -> tuple[dict[str, Any], Table, list[str]]:
    """Return a spec's content (given, or made from the data), the data, and sentences about assumptions."""
    watch = options.watch
    if spec is not None:
        if inputs is not None or label is not None:
            raise UserError(
                f"{shown_option('inputs')} and {shown_option('label')} are for data without a spec; with {shown_option('spec')}, the spec names the columns"
            )
        need_unweighted(spec)
        parts: list[tuple[np.ndarray, np.ndarray]] = []
        if options.many is None:
            x, y, delay, stage = recorded(spec, options)
        else:
            (parts, stage), delay = recorded_parts(spec, options), delay_of(spec, options.delay)
            x, y = (np.concatenate([part[k] for part in parts]) for k in (0, 1))
        if stage is not None and (own := stage.scaled(x)) is not stage:
            watch.tell(
                "scaled   over the first 70 % of the steps, [input] center is the mean, and scale is 1 / the standard deviation"
            )
            stage, spec = own, make_spec(dump(spec) | {"input": own.base["input"]})
            x, y = stage.steps()
        content = dump(spec) if stage is None else stage.inside(spec)
        for key in ("rule", "technique"):
            content.get("learning", {}).pop(key, None)
        if spec.label_kind == "none":
            content.setdefault("novelty", {})
            content.pop("label", None)
        if stage is None and not spec.real.is_int16:
            if content.get("input", {}).get("max_abs", INPUT_LIMIT) == INPUT_LIMIT:
                options.max_abs = input_limit(x, sentinels(options.read))
                content["input"] = content.get("input", {}) | {"max_abs": options.max_abs}
        if parts:
            return content, fleet(options, parts, spec.label_kind == "none", delay, stage, spec.completes), []
        return content, recent(watch, x, None if spec.label_kind == "none" else y, delay, stage, spec.completes), []
    if options.many is not None:
        name = options.data
        with watch.progress(options.many.size) as show:
            inferred = infer(options.many, name, words(inputs), label, show)
    else:
        with opened(options.data, watch) as (name, file, show):
            inferred = infer(file, name, words(inputs), label, show)
        noted(inferred.data, options.data)
    content = inferred.content
    options.max_abs = content["input"]["max_abs"] = input_limit(inferred.x, sentinels(inferred.data))
    make_spec(content, name)  # raises UserError for names that no spec can contain, before any computation starts
    labels = None if inferred.column is None else inferred.y
    options.read = inferred.data
    for code in sorted({each for each in sentinels(inferred.data) if abs(each) <= options.max_abs}):
        watch.warn(
            f"{code:g} stands for missing values, but measured inputs are just as large, so the device cannot refuse {code:g}: "
            "the firmware must replace it by NaN"
        )
    if inferred.device is None:
        return content, recent(watch, inferred.x, labels, options.delay), inferred.assumed
    ends = np.cumsum(np.bincount(inferred.device))[:-1]
    parts = list(zip(np.split(inferred.x, ends), np.split(inferred.y, ends), strict=True))
    return content, fleet(options, parts, labels is None, options.delay), inferred.assumed


MOST_DEVICES, ENOUGH_DEVICES, FOLDS = 50, 20, 3
"""MOST_DEVICES: largest number of devices in a plan.  If there are more, this many are drawn with a fixed seed, so that 1,000 rows of each
device can be used.  With ENOUGH_DEVICES devices or more, models are evaluated on 30 % of the devices, drawn with the
same seed.  With fewer devices, models are evaluated on each device once, in FOLDS folds, which takes FOLDS times as
long.
"""


def fleet(
    options: Asked,
    parts: Sequence[tuple[np.ndarray, np.ndarray]],
    watches: bool,
    delay: int,
    stage: Stage | None = None,
    completes: bool = False,
) -> Table:
    """Return the rows of many devices as a table.  The order of the devices is drawn with a fixed seed.

    parts: inputs and labels of each device.  watches: true if there are no labels.  stage: the first device's signal stage, if there is
    one.  Raises UserError for too few devices, rows or labels, or if ``delay`` is out of range.
    """
    many, watch, unit = options.many, options.watch, "rows" if stage is None else "steps"
    assert many is not None
    raise_first_error(
        (
            len(many) < 2,
            f"{many.source}: has {len(many)} device; 2 or more are needed, so that models can be tested on devices that they were not trained on",
        ),
    )
    for device, (x, _) in zip(many.devices, parts, strict=True):
        if len(x) < FEWEST:
            raise UserError(
                f"{device.path}: has {len(x)} {unit}; a plan needs {FEWEST} or more from each device; leave this device out"
            )
    order = np.random.default_rng(0).permutation(len(parts))[:MOST_DEVICES].tolist()
    most, folds = MOST_ROWS // len(order), min(FOLDS, len(order)) if len(order) < ENOUGH_DEVICES else 1
    judges = round(HELD * len(order)) if folds == 1 else len(parts_of(len(order), folds)[-1])
    taken = [[part[:most] for part in parts[i]] for i in order]
    rows = [len(x) for x, _ in taken]
    devices = Devices(tuple(rows[:-judges]), tuple(rows[-judges:]))
    shortest = min(rows) // 2
    raise_first_error(
        (
            not 0 <= delay <= shortest,
            f"delay is {delay}; it must be from 0 to {shortest:,} {unit}, at most half of the shortest recording",
        ),
    )
    x, y = (np.concatenate(each) for each in zip(*taken, strict=True))
    table = Table(x, None if watches else y, delay, stage, completes, devices=devices, device_folds=folds)
    if len(order) < len(parts) or max(len(x) for x, _ in parts) > most:
        watch.tell(f"{len(order):,} of {len(parts):,} devices are used, and at most the first {most:,} {unit} of each")
    judged = (
        f"each of the {len(order):,} devices is used once to test models trained on other devices"
        if folds > 1
        else f"{judges:,} of {len(order):,} are used to test the models"
    )
    watch.tell(
        f"devices  {judged}; on a test device, a model that learns starts anew, and its errors are measured on the second half of the rows"
    )
    for fold in () if watches else table.folds:
        if fold.known(fold.judged).sum() < 2 or not fold.known(slice(0, fold.split - delay)).any():
            raise UserError(
                "each device needs labels, some of them in the second half of its rows; leave out devices without labels"
            )
    return table


def recent(
    watch: Watch, x: np.ndarray, y: np.ndarray | None, delay: int, stage: Stage | None = None, completes: bool = False
) -> Table:
    """Return the last rows as a table.  Warns if there are few rows, and reports if rows are left out.

    Raises UserError for too few rows or labels, or if ``delay`` is out of range.
    """
    rows = "rows" if stage is None else "steps"
    most = min(DELAY_LIMIT, len(x) // 2)
    raise_first_error(
        (not 0 <= delay <= most, f"delay is {delay}; it must be from 0 to {most:,} {rows}, at most half of the table"),
        (
            len(x) < FEWEST,
            f"the table has {len(x)} {rows}; a plan needs {FEWEST} or more, and a few hundred for a useful result",
        ),
    )
    if len(x) > MOST_ROWS:
        watch.tell(f"only the last {MOST_ROWS:,} of {len(x):,} {rows} are used")
        x, y = x[-MOST_ROWS:], None if y is None else y[-MOST_ROWS:]
    table = Table(x, y, delay, stage, completes)
    if len(x) < FEW_ROWS:
        watch.warn(
            f"the table has only {len(x)} {rows}: models are tested only on the last {len(x) - table.split} {rows}"
        )
    if y is not None:
        judged = int(table.known(slice(table.split, None)).sum())
        if judged < 2 or not table.known(slice(0, table.split - delay)).any():
            raise UserError(
                f"the table needs labels in the first 70 % of its {rows}, for training, and in the last 30 %, where the error is measured"
            )
    return table


def need_no_code(spec: Spec) -> None:
    if spec.custom is not None:
        raise UserError(
            f"{spec.name}: [kernel] source names a file with Python code, which plan never executes; give a spec with a built-in kernel"
        )


def recorded(spec: Spec, options: Asked) -> tuple[np.ndarray, np.ndarray, int, Stage | None]:
    """Return the samples, the labels, the labels' delay (a number of samples), and the signal stage, if there is one.

    Raises UserError for a spec with code, because a search runs in other processes, which do not execute a spec's code.
    """
    need_no_code(spec)
    watch, seen = options.watch, Columns()
    delay, raw = delay_of(spec, options.delay), None if spec.signal is None else RawRows(spec)
    with opened(options.data, watch) as (name, file, show):
        batches = []
        for batch in samples_of(spec, file, name, seen=seen):
            batches.append(batch)
            show(batch.position, f"reading {name}")
    x, y = np.concatenate([batch.x for batch in batches]), np.concatenate([batch.y for batch in batches])
    if raw is not None:
        raw.take(x)
    if raw is None:
        _empty_sentinels(spec, x, y, seen)
    options.read = seen.report(missing=missing_rows(spec, int(np.isnan(x).any(axis=1).sum())))
    noted(options.read, options.data)
    if raw is None:
        watch.data(options.read)
        return x, y, delay, None
    stage = Stage.of(spec, x, y, raw.report())
    with watch.progress() as show:
        show(0, "making steps of the rows")
        x, y = stage.steps()
    raw.need_steps(options.data, len(x))
    watch.data(options.read)
    if gaps := gaps_sentence(stage.raw_rows, len(x)):
        watch.tell(f"gaps     {gaps}")
    _tell_steps(spec, raw, len(x), options)
    return x, y, delay, stage


def _tell_steps(spec: Spec, raw: RawRows, steps: int, options: Asked) -> None:
    for warning in raw.warnings(steps, options.delay):
        options.watch.warn(warning)
    options.watch.tell(f"signal   {raw.rows:,} raw rows give {steps:,} steps of {spec.dim} features")


def recorded_parts(spec: Spec, options: Asked) -> tuple[list[tuple[np.ndarray, np.ndarray]], Stage | None]:
    """Return a list with the inputs and labels of each device, and the first device's signal stage, if there is one.

    This stage has the counts of the raw rows of all devices.
    Raises UserError for a spec with code, and for [signal] in int16.
    """
    many, watch, seen = options.many, options.watch, Columns()
    assert many is not None
    need_no_code(spec)
    raise_first_error(
        (
            spec.signal is not None and spec.real.is_int16,
            f"{spec.name}: the scales of [signal] in int16 come from one recording; give one file",
        ),
    )
    parts = read_each(spec, many, watch, seen)
    raw, stages = None if spec.signal is None else RawRows(spec), list[Stage]()
    for x, y in parts:
        if raw is None:
            _empty_sentinels(spec, x, y, seen)
        else:
            raw.take(x)
            stages.append(Stage.of(spec, x, y, raw.report()))
    missing = sum(int(np.isnan(x).any(axis=1).sum()) for x, _ in parts)
    options.read = seen.report(file=many.source, missing=missing_rows(spec, missing))
    watch.data(options.read)
    if raw is None:
        return parts, None
    parts = [stage.steps() for stage in stages]
    steps = sum(len(x) for x, _ in parts)
    _tell_steps(spec, raw, steps, options)
    return parts, replace(stages[0], raw_rows=raw.report())


def _empty_sentinels(spec: Spec, x: np.ndarray, y: np.ndarray, seen: Columns) -> None:
    for values, names in ((x, spec.sample_columns or ()), (y.reshape(len(y), -1), spec.label_columns)):
        for j, name in enumerate(names if values.dtype.kind == "f" else ()):
            values[:, j] = seen.columns[name].emptied(values[:, j])
