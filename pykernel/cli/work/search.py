"""What ``pykernel sweep`` and ``pykernel plan`` do alike: what is tried, the recorded rows, the processes at work."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pykernel.cli import inputs, output
from pykernel.cli.options.search import PlanOptions, SearchOptions
from pykernel.dialect import sources_digest
from pykernel.errors import UntrustedCode, UserError
from pykernel.files import open_data
from pykernel.host.signal import RawRows, delay_of
from pykernel.host.simulate import DELAY_LIMIT, Batch, require_columns, samples_of
from pykernel.parallel import Workers
from pykernel.spec.model import FAMILIES, Spec, load_spec, make_spec
from pykernel.spec.renamed import word_meant
from pykernel.targets.check import choose
from pykernel.targets.target import find_target
from pykernel.tuning.combinations import rules as all_rules
from pykernel.tuning.combinations import techniques as all_techniques
from pykernel.tuning.plan import FEW_ROWS, infer
from pykernel.tuning.stage import Stage, dump
from pykernel.tuning.sweep import Data, context, work
from pykernel.tuning.trials import FEWEST, MOST_ROWS, Table
from pykernel.tuning.trials import work as trial


def need_rounds(rounds: int) -> None:
    if not 0 <= rounds <= 20:
        raise UserError(f"rounds is {rounds}; it must be 0 or more, and at most 20")


def rules(given: Sequence[str] | None) -> list[str]:
    """Those that are to be tried."""
    return _known(given, all_rules(), "rule")


def techniques(given: Sequence[str] | None) -> list[str]:
    """Those that are to be tried."""
    return _known(given, all_techniques(), "technique")


def _known(given: Sequence[str] | None, known: Sequence[str], what: str) -> list[str]:
    words = inputs.words(",".join(given or ()))
    for word in words:
        if word not in known:
            remedy = word_meant(word, known, f"there are: {', '.join(known)}")
            raise UserError(f"--{what} {word} is not known; {remedy}")
    return list(words or known)


def measure(spec: Spec, given: str | None) -> Any:
    """What is minimised."""
    known = ("error_rate",) if spec.label_kind == "class" else ("mae", "rmse")
    if given is not None and given not in known:
        raise UserError(f"--score {given} is not for these labels; there is: {', '.join(known)}")
    return given or known[0]


def counting_target(name: str) -> str | None:
    """Where instructions are counted; None for nowhere."""
    if name == "none":
        return None
    if find_target(name).unicorn is None:
        raise UserError(f"--target {name} has no emulator that counts instructions; see pykernel targets, or give none")
    return name


def need_emulator(target: str) -> None:
    """Say so before the work, not after it."""
    choose([target], None, "unicorn")


def plain_spec(spec_file: Path) -> Spec:
    """The spec, which must be data: searches run in other processes and on other machines, and execute no code."""
    try:
        return load_spec(spec_file)
    except UntrustedCode:
        raise UserError(
            f"{spec_file}: [kernel] names code, which sweep and plan do not execute; give a spec with one of the project's kernels"
        ) from None


def load(spec: Spec, spec_file: Path | str, options: SearchOptions) -> tuple[Spec, Data]:
    """What models are like, and what they learn: of a spec with a [signal] its steps, by the model inside."""
    if spec.label_kind == "none":
        raise UserError(f"{spec_file}: has no [label], so there is no error to compare; for monitors see pykernel plan")
    require_columns(spec, str(spec_file))
    x, y, delay, stage = recorded(spec, options)
    return spec if stage is None else make_spec(stage.inside(spec)), Data(x, y, delay, stage)


def planned_data(options: PlanOptions) -> tuple[dict[str, Any], Table, list[str]]:
    """A spec's content, given or made from the data, the data, and what was assumed."""
    if options.spec_file is not None:
        if options.inputs is not None or options.label is not None:
            raise UserError("--inputs and --label are for data without a spec; with --spec, the spec names the columns")
        spec = plain_spec(options.spec_file)
        x, y, delay, stage = recorded(spec, options)
        if stage is not None and (own := stage.scaled(x)) is not stage:
            output.tell(
                "scaled   [input] center and scale are the mean and the deviation of the steps before the judged ones"
            )
            stage, spec = own, make_spec(dump(spec) | {"input": own.base["input"]})
            x, y = stage.steps()
        content = dump(spec) if stage is None else stage.inside(spec)
        for key in ("rule", "technique"):
            content.get("learning", {}).pop(key, None)
        if spec.label_kind == "none":
            content.setdefault("novelty", {})
            content.pop("label", None)
        return content, recent(x, None if spec.label_kind == "none" else y, delay, stage), []
    with contextlib.ExitStack() as stack:
        name, file, size = open_data(options.data, stack)
        show = stack.enter_context(output.progress(options.as_json, size))
        found = infer(file, name, inputs.words(options.inputs), options.label, show)
    make_spec(found.content, name)  # what no spec can name is refused before the work
    return found.content, recent(found.x, found.y, options.delay), found.assumed


def recent(x: np.ndarray, y: np.ndarray | None, delay: int, stage: Stage | None = None) -> Table:
    """The last rows; what is too few is refused, and what is few or left out is told."""
    rows = "rows" if stage is None else "steps"
    if not 0 <= delay <= DELAY_LIMIT or delay > len(x) // 2:
        raise UserError(
            f"delay is {delay}; it must be from 0 to {min(DELAY_LIMIT, len(x) // 2):,} {rows}, half of the table"
        )
    if len(x) < FEWEST:
        raise UserError(f"the table has {len(x)} {rows}; a plan needs {FEWEST} or more, and some hundred to be of use")
    if len(x) > MOST_ROWS:
        output.tell(f"the last {MOST_ROWS:,} of {len(x):,} {rows} are taken")
        x, y = x[-MOST_ROWS:], None if y is None else y[-MOST_ROWS:]
    table = Table(x, y, delay, stage)
    if len(x) < FEW_ROWS:
        output.warn(f"{len(x)} {rows} are few: models are judged on the last {len(x) - table.split} {rows} alone")
    if y is not None:
        judged = int(table.known(slice(table.split, None)).sum())
        if judged < 2 or not table.known(slice(0, table.split - delay)).any():
            raise UserError(
                f"the table needs labels in its first and in its last {rows}: the error is taken on the last 30 %"
            )
    return table


def recorded(spec: Spec, options: SearchOptions) -> tuple[np.ndarray, np.ndarray, int, Stage | None]:
    """Samples, labels, after how many samples a model learns a label, and the stage that made them of the rows, if any."""
    delay, raw = delay_of(spec, options.delay), None if spec.signal is None else RawRows(spec)
    batches = read_batches(spec, options, raw)
    x, y = np.concatenate([b.x for b in batches]), np.concatenate([b.y for b in batches])
    if raw is None:
        return x, y, delay, None
    stage = Stage.of(spec, x, y, raw.report())
    with output.progress(options.as_json) as show:
        show(0, "making steps of the rows")
        x, y = stage.steps()
    raw.need_steps(options.data, len(x))
    if told := output.gaps(stage.raw_rows, len(x)):
        output.tell(f"gaps     {told}")
    for warning in raw.warnings(len(x)):
        output.warn(warning)
    output.tell(f"signal   {raw.rows:,} raw rows are {len(x):,} steps of {spec.dim} features")
    return x, y, delay, stage


def read_batches(spec: Spec, options: SearchOptions, raw: RawRows | None) -> list[Batch]:
    with contextlib.ExitStack() as stack:
        name, file, size = open_data(options.data, stack)
        show = stack.enter_context(output.progress(options.as_json, size))
        batches, rows = [], samples_of(spec, file, name)
        for batch in rows if raw is None else raw.counted(rows):
            batches.append(batch)
            show(batch.position, f"reading {name}")
    if raw is None and (gaps := sum(batch.gaps for batch in batches)):
        output.tell(f"skipped  {output.skipped(gaps)}")
    return batches


def plan_choices(options: PlanOptions) -> tuple[list[str] | None, list[str] | None]:
    """Rules and techniques that are given; None for all, and for each rule's default."""
    chosen = rules(options.rule) if options.rule else None
    return chosen, techniques(options.technique) if options.technique else None


@contextlib.contextmanager
def plan_workers(base: dict[str, Any], table: Table, options: PlanOptions) -> Iterator[Workers]:
    """Processes at work on the trials of a plan."""
    kernels = [entry.kernel for f in FAMILIES for program in f.programs.values() for entry in program.entries]
    with Workers(
        trial,
        table,
        jobs=options.jobs,
        scheduler=options.scheduler,
        results=options.results or options.out / "results.jsonl",
        context={"data": table.digest, "sources": sources_digest(kernels)},
        title=None if options.as_json else "trying",
    ) as at_work:
        yield at_work


@contextlib.contextmanager
def workers(base: Spec, data: Data, options: SearchOptions, folder: Path, expect: int) -> Iterator[Workers]:
    """Processes at work; an interrupt tells where their finished runs are kept."""
    results = options.results or folder / "results.jsonl"
    at_work = Workers(
        work,
        data,
        jobs=options.jobs,
        scheduler=options.scheduler,
        results=results,
        context=context(base, data),
        title=None if options.as_json else "running",
        expect=expect,
    )
    try:
        with at_work:
            yield at_work
    except KeyboardInterrupt:
        raise output.interrupted(kept(at_work)) from None


def kept(workers: Workers) -> str:
    """What an interrupt leaves, and what to do then."""
    done, path = len(workers.results.found), workers.results.path
    if not done:
        return output.UNWRITTEN
    return (
        f"; {done:,} finished {'run is' if done == 1 else 'runs are'} kept in {path}; run the same command to continue"
    )
