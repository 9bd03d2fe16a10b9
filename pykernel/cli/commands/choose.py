"""The commands ``pykernel sweep`` and ``pykernel plan``: choosing a model for the data, and for the device."""

from __future__ import annotations

import contextlib
import csv
import io
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pykernel.errors import MissingExtra, UntrustedCode, UserError

if TYPE_CHECKING:
    from pykernel.parallel import Workers
    from pykernel.spec.model import Spec
    from pykernel.tuning.plan import Plan
    from pykernel.tuning.sweep import Data, Sweep

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object for machines, and nothing else.")]
DataFile = Annotated[
    str, typer.Argument(metavar="DATA", help="A CSV file; - reads standard input.", show_default=False)
]
Delay = Annotated[int, typer.Option("--delay", metavar="K", help="Labels arrive K rows late.")]
Rules = Annotated[
    list[str] | None,
    typer.Option(
        "--rule", metavar="RULE", help="Try only these; again, or with commas, for several.", show_default=False
    ),
]
Techniques = Annotated[
    list[str] | None,
    typer.Option("--technique", metavar="TECHNIQUE", help="Try only these, likewise.", show_default=False),
]
ScoreOption = Annotated[
    str | None,
    typer.Option("--score", metavar="MEASURE", help="What to minimise: mae or rmse.", show_default="mae"),
]
Rounds = Annotated[int, typer.Option("--rounds", metavar="N", help="Times that the grid is refined around the best.")]
Jobs = Annotated[
    int | None, typer.Option("--jobs", metavar="N", help="Processes at work.", show_default="as many as cores")
]
Scheduler = Annotated[
    str | None,
    typer.Option("--scheduler", metavar="ADDRESS", help="Work on a Dask cluster instead.", show_default=False),
]
ResultsFile = Annotated[
    Path | None,
    typer.Option(
        "--results", metavar="FILE", help="Where finished runs are kept.", show_default="FOLDER/results.jsonl"
    ),
]


def sweep(
    spec_file: Annotated[Path, typer.Argument(metavar="SPEC", help="The model, a TOML file.", show_default=False)],
    data: DataFile,
    delay: Delay = 0,
    rule: Rules = None,
    technique: Techniques = None,
    n_max: Annotated[
        str, typer.Option("--n-max", metavar="N,N", help="Budgets to try: most expansion vectors (or random features).")
    ] = "8,16,32,64",
    score: ScoreOption = None,
    rounds: Rounds = 3,
    target: Annotated[
        str, typer.Option("--target", metavar="TARGET", help="Where instructions are counted; none for nowhere.")
    ] = "cortex-m4f",
    jobs: Jobs = None,
    scheduler: Scheduler = None,
    results: ResultsFile = None,
    out: Annotated[Path, typer.Option("--output", "-o", metavar="FOLDER", help="Where the results go.")] = Path(
        "pykernel-sweep"
    ),
    as_json: Json = False,
) -> None:
    """Find what predicts recorded data best, and what does so in the least memory.

    Every learning rule is tried with every technique and budget, and for each of these sigma, eta, ridge, forgetting,
    ... (those that mean something) are searched from coarse to fine. Each try is a run over all rows as `pykernel
    simulate` does it; the error is that over the second half. Other keys of the spec stay as they are. Ctrl-C keeps what
    is finished, and the same command goes on.

        pykernel sweep spec.toml data.csv --delay 24
        pykernel sweep spec.toml data.csv --rule klms --technique mklms,fklms --n-max 16,24,32 --target none
        pykernel sweep spec.toml data.csv --scheduler tcp://big-machine:8786 -o year/

    **Columns**: *MAE* (mean absolute error), *RMSE* (root mean square error) or *error rate*; *RAM*: the model and its
    working memory; *update*: mean instructions of one, counted on the target for models that are worth it. Nothing else
    found has both a smaller error and less RAM (or fewer instructions) than what is listed first.

    **Files**, in FOLDER: best.toml, cheapest.toml (least RAM within 5 % of the best), fastest.toml (fewest instructions
    within 5 %), sweep.csv, pareto.png, results.jsonl.

    **Exit codes**: 0 done, 2 bad input, 130 interrupted.
    """
    from pykernel.cli import app as cli
    from pykernel.files import all_or_none, new_folder
    from pykernel.tuning.sweep import compile_all, plan_groups, trivial
    from pykernel.tuning.sweep import sweep as run_sweep

    _need_rounds(rounds)
    base = _spec(spec_file)
    recorded = _load(base, spec_file, data, delay, as_json)
    by = _measure(base, score)
    sizes = _numbers(n_max, "--n-max")
    groups, refused = plan_groups(base, recorded, _rules(rule), _techniques(technique), sizes)
    place = _target(target)
    bound = sum(group.bound(rounds) for group in groups)
    _tell(
        f"at most {bound:,} runs over {len(recorded.x):,} rows, for {len(groups)} combinations of rule, technique and size"
    )
    with new_folder(out):
        with cli._progress(as_json) as show:
            show(0, "compiling, the first time")
            compile_all(groups, recorded)
        with _workers(base, recorded, jobs, scheduler, results or out / "results.jsonl", as_json, bound) as workers:
            found: Sweep = run_sweep(base, recorded, workers, groups, refused, by, rounds, place)
        with all_or_none():
            written = _write(out, base, found)
    report = _report(base, recorded, found) | written
    report |= {"bound": bound, "reused": workers.reused, "results": str(workers.results.path)}
    if as_json:
        cli._print_json(report)
    else:
        _print_sweep(report, found, trivial(base, recorded))


# ------------------------------------------------------------------------------------------------------------ plan


def plan(
    data: DataFile,
    spec_file: Annotated[
        Path | None,
        typer.Option("--spec", metavar="SPEC", help="The model's inputs, label and other keys.", show_default=False),
    ] = None,
    inputs: Annotated[
        str | None,
        typer.Option(
            "--inputs", metavar="A,B", help="Without a spec: the inputs' columns.", show_default="all but the label"
        ),
    ] = None,
    label: Annotated[
        str | None,
        typer.Option("--label", metavar="Y", help="Without a spec: the label's column.", show_default="the last"),
    ] = None,
    ram: Annotated[
        str | None,
        typer.Option("--ram", metavar="BYTES", help="Struct and stack, such as 4k.", show_default="all of the part's"),
    ] = None,
    flash: Annotated[
        str | None,
        typer.Option("--flash", metavar="BYTES", help="All code and constants.", show_default="all of the part's"),
    ] = None,
    instructions: Annotated[
        str | None,
        typer.Option("--instructions", metavar="N", help="Of one call in the worst case found.", show_default="any"),
    ] = None,
    target: Annotated[
        str, typer.Option("--target", metavar="TARGET", help="The CPU; see pykernel targets.")
    ] = "cortex-m4f",
    delay: Delay = 0,
    rule: Rules = None,
    technique: Techniques = None,
    score: ScoreOption = None,
    rounds: Rounds = 3,
    jobs: Jobs = None,
    scheduler: Scheduler = None,
    results: ResultsFile = None,
    out: Annotated[Path, typer.Option("--output", "-o", metavar="FOLDER", help="Where the spec goes.")] = Path(
        "pykernel-plan"
    ),
    as_json: Json = False,
) -> None:
    """Find the model of smallest error that keeps a device's limits, and check it on the emulated device.

    For each rule and technique, the largest budget that fits is found by measuring on the target; what fits is tuned as
    by `pykernel sweep`; the best is generated, compiled, run on the emulated target and compared byte for byte, and its
    most expensive call is searched for. If it does not keep the limits then, the next best is taken.

        pykernel plan --ram 4k --flash 16k --instructions 50000 --target cortex-m0plus data.csv
        pykernel plan data.csv --spec flow.toml --ram 2k --delay 24
        pykernel plan data.csv --inputs temperature,pressure --label flow --ram 2048 --technique nt,mklms

    Without a spec, all columns of numbers but the last are inputs and the last is the label (a label of words is a
    class); limits, standardising and the range of sigma come from the data. What was assumed is printed.

    **Limits**: *RAM* is the struct (model and working memory) and the stack used; *flash* all that is linked, with the
    library for floating point; *instructions* those of a single call of predict or update, the most over the stream and
    over a search for expensive samples and states. 4k is 4,096 bytes, and 50k is 50,000 instructions.

    **Files**, in FOLDER: planned.toml, plan.json (all that was found), results.jsonl.

    **Exit codes**: 0 done, 1 nothing fits (the nearest miss is named), or the C computes something else, 2 bad input,
    130 interrupted.
    """
    import json

    from pykernel.cli import app as cli
    from pykernel.files import all_or_none, new_folder, whole_file
    from pykernel.spec.model import make_spec
    from pykernel.tuning.plan import NothingFits, make_limits, make_plan, parse_amount

    _need_rounds(rounds)
    place = _target(target)
    if place is None:
        raise UserError("--target none cannot be planned for; see pykernel targets")
    limits = make_limits(
        place,
        parse_amount(ram, "--ram") if ram else None,
        parse_amount(flash, "--flash") if flash else None,
        parse_amount(instructions, "--instructions", 1000) if instructions else None,
    )
    base, recorded, assumed = _planned_data(spec_file, data, inputs, label, delay, as_json)
    by = _measure(base, score)
    chosen = _rules(rule), _techniques(technique)
    _need_emulator(place)
    if assumed:
        _tell(f"assumed: {'; '.join(assumed)}")
    report: dict[str, Any] = {"ok": False, "assumed": assumed, "limits": vars(limits)}
    path = out / "planned.toml"
    with new_folder(out):
        with _workers(base, recorded, jobs, scheduler, results or out / "results.jsonl", as_json, 0) as workers:
            try:
                found = make_plan(base, recorded, limits, workers, *chosen, by, rounds, _tell)
            except NothingFits as error:
                if as_json:
                    cli._print_json(report | {"reason": str(error)})
                raise
        report |= {
            "ok": True,
            "score": by,
            "winner": found.row,
            "verified": found.verified,
            "uses": found.uses,
            "spec": str(path),
            "table": found.rows,
            "refused": found.refused,
            "misses": found.misses,
        }
        with all_or_none():
            with whole_file(path) as file:
                file.write(make_spec(found.row["spec"]).to_toml().encode())
            with whole_file(out / "plan.json") as file:
                file.write(json.dumps(cli._finite(report), default=cli._plain, indent=1).encode() + b"\n")
    if as_json:
        cli._print_json(report)
    else:
        _print_plan(report, found, by)


def _planned_data(
    spec_file: Path | None, data: str, inputs: str | None, label: str | None, delay: int, as_json: bool
) -> tuple[Spec, Data, list[str]]:
    """The spec, given or made from the data, the data, and what was assumed."""
    from pykernel.cli import app as cli
    from pykernel.tuning.plan import infer
    from pykernel.tuning.sweep import Data

    if spec_file is not None:
        if inputs is not None or label is not None:
            raise UserError("--inputs and --label are for data without a spec; with --spec, the spec names the columns")
        spec = _spec(spec_file)
        return spec, _load(spec, spec_file, data, delay, as_json), []
    with contextlib.ExitStack() as stack:
        name, file, size = cli._open(data, stack)
        show = stack.enter_context(cli._progress(as_json, size))
        found = infer(file, name, _words([inputs] if inputs else None), label, show)
    return found.spec, Data(found.x, found.y, delay), found.assumed


def _need_emulator(target: str) -> None:
    """Say so before the work, not after it."""
    from pykernel.targets.check import choose

    choose([target], None, "unicorn")


def _print_plan(report: Mapping[str, Any], found: Plan, by: str) -> None:
    from pykernel.cli import app as cli
    from pykernel.tuning.plan import CALLS

    row, verified, limits = found.row, found.verified, found.limits
    table = cli._table("limit", "takes", "allowed", "part")
    calls = [verified[call] for call in CALLS if call in verified]
    amounts = {
        "ram": (verified["ram_bytes"] + verified["stack_bytes"], limits.ram, "RAM, struct and stack"),
        "flash": (verified["flash_bytes"], limits.flash, "flash, all that is linked"),
        "instructions": (
            max(call["worst"] or call["max"] for call in calls),
            limits.instructions,
            "instructions of a call",
        ),
    }
    for key, (taken, allowed, text) in amounts.items():
        unit = "" if key == "instructions" else " B"
        part = f"{100 * found.uses[key]:.0f} %" if key in found.uses else ""
        table.add_row(text, f"{taken:,}{unit}", "any" if allowed is None else f"{allowed:,}{unit}", part)
    cli._print(f"{_named(row)} on {limits.target}, {NAMES[by]} {cli._number(row[by])}", table)
    others = cli._table("rule", "technique", "size", NAMES[by], "RAM without stack")
    others.columns[1].justify = "left"
    for other in found.rows[:10]:
        cells = (other["rule"], other["technique"] or "", str(other["size"] or ""), cli._number(other[by]))
        others.add_row(*cells, cli._bytes(other["ram_bytes"]), style="bold" if other is row else "")
    cli._print(f"the best of {len(found.rows)} that were tuned", others)
    print(
        f"verified  {verified['samples']:,} samples on {limits.target}: the memory byte for byte that of the simulation"
    )
    print(f"values    {_values(row['values'])}")
    print(f"spec      {report['spec']}")
    print(f"\nnext:\n  pykernel generate {cli._quoted(report['spec'])} -o out/")


# ------------------------------------------------------------------------------------------------------- arguments


def _words(given: Sequence[str] | None) -> list[str]:
    words = [word.strip() for item in given or () for word in item.split(",")]
    return list(dict.fromkeys(word for word in words if word))


def _rules(given: Sequence[str] | None) -> list[str]:
    from pykernel.tuning.sweep import rules

    return _known(_words(given), rules(), "rule")


def _techniques(given: Sequence[str] | None) -> list[str]:
    from pykernel.tuning.sweep import techniques

    return _known(_words(given), techniques(), "technique")


def _need_rounds(rounds: int) -> None:
    if not 0 <= rounds <= 20:
        raise UserError(f"rounds is {rounds}; it must be 0 or more, and at most 20")


def _known(words: Sequence[str], known: Sequence[str], what: str) -> list[str]:
    for word in words:
        if word not in known:
            raise UserError(f"--{what} {word} is not known; there are: {', '.join(known)}")
    return list(words or known)


def _numbers(text: str, option: str) -> list[int]:
    numbers = []
    for word in _words([text]):
        if not word.isascii() or not word.isdigit():
            raise UserError(f"{option} is {text!r}; it must be whole numbers with commas between, such as 8,16,32")
        numbers.append(int(word))
    if not numbers:
        raise UserError(f"{option} is {text!r}; give at least one number")
    return numbers


def _measure(spec: Spec, given: str | None) -> Any:
    known = ("error_rate",) if spec.label_kind == "class" else ("mae", "rmse")
    if given is not None and given not in known:
        raise UserError(f"--score {given} is not for these labels; there is: {', '.join(known)}")
    return given or known[0]


def _target(name: str) -> str | None:
    if name == "none":
        return None
    from pykernel.targets.target import find_target

    if find_target(name).unicorn is None:
        raise UserError(f"--target {name} has no emulator that counts instructions; see pykernel targets, or give none")
    return name


def _load(spec: Spec, spec_file: Path | str, data: str, delay: int, as_json: bool) -> Data:
    """The whole stream."""
    import numpy as np

    from pykernel.cli import app as cli
    from pykernel.host.simulate import require_columns, samples_of
    from pykernel.tuning.sweep import Data, require_online

    require_online(spec, str(spec_file))
    require_columns(spec, str(spec_file))
    with contextlib.ExitStack() as stack:
        name, file, size = cli._open(data, stack)
        show = stack.enter_context(cli._progress(as_json, size))
        batches = []
        for batch in samples_of(spec, file, name):
            batches.append(batch)
            show(batch.position, f"reading {name}")
    return Data(np.concatenate([b.x for b in batches]), np.concatenate([b.y for b in batches]), delay)


def _spec(spec_file: Path) -> Spec:
    """The spec, which must be data: searches run in other processes and on other machines, and execute no code."""
    from pykernel.spec.model import load_spec

    try:
        return load_spec(spec_file)
    except UntrustedCode:
        raise UserError(
            f"{spec_file}: [kernel] names code, which sweep and plan do not execute; give a spec with one of the project's kernels"
        ) from None


def _tell(text: str) -> None:
    """What is about to be done, for whoever waits for it."""
    print(text, file=sys.stderr)


@contextlib.contextmanager
def _workers(
    base: Spec, data: Data, jobs: int | None, scheduler: str | None, results: Path, as_json: bool, expect: int
) -> Iterator[Workers]:
    from pykernel.cli import app as cli
    from pykernel.parallel import Workers
    from pykernel.tuning.sweep import context, work

    workers = Workers(
        work,
        (data.x, data.y),
        jobs=jobs,
        scheduler=scheduler,
        results=results,
        context=context(base, data),
        title=None if as_json else "running",
        expect=expect,
    )
    try:
        with workers:
            yield workers
    except KeyboardInterrupt:
        cli._warn(
            f"{len(workers.results.found):,} finished runs are kept in {results}; the same command goes on from there"
        )
        cli._say("error", "interrupted")
        # not KeyboardInterrupt, which typer turns into a bare exit
        raise typer.Exit(cli.INTERRUPTED) from None


# --------------------------------------------------------------------------------------------------------- results

NAMES = {"mae": "MAE", "rmse": "RMSE", "error_rate": "error rate"}
PICKS = {"best": "best", "cheapest": "cheapest within 5 %", "fastest": "fastest within 5 %"}


def _picks(found: Sweep) -> dict[str, int]:
    every = {"best": found.best, "cheapest": found.cheapest, "fastest": found.fastest}
    return {name: i for name, i in every.items() if i is not None}


def _named(row: Mapping[str, Any]) -> str:
    return " ".join(str(part) for part in (row["rule"], row["technique"], row["size"]) if part is not None)


def _write(out: Path, base: Spec, found: Sweep) -> dict[str, Any]:
    """The table, the plot and the specs; their paths."""
    from pykernel.files import whole_file
    from pykernel.plots import pareto_figure
    from pykernel.spec.model import make_spec

    specs = {}
    for name, i in _picks(found).items():
        specs[name] = str(out / f"{name}.toml")
        with whole_file(specs[name]) as file:
            file.write(make_spec(found.rows[i]["spec"]).to_toml().encode())
    with whole_file(out / "sweep.csv") as file:
        file.write(_csv(found).encode())
    note = None
    if found.rows:
        try:
            pareto_figure(
                out / "pareto.png",
                f"{base.name}: error against cost",
                f"{NAMES[found.by]}, second half",
                _panels(found),
            )
        except MissingExtra as missing:
            note = str(missing)
    plot = str(out / "pareto.png") if found.rows and note is None else None
    return {"specs": specs, "csv": str(out / "sweep.csv"), "plot": plot, "plot_note": note}


def _panels(found: Sweep) -> list[Any]:
    from pykernel.plots import Panel
    from pykernel.tuning.sweep import instructions

    picks = _picks(found)
    bytes_ = [(row["ram_bytes"], row[found.by], row["rule"], _named(row), row["front"]) for row in found.rows]
    panels = [Panel("bytes of RAM", bytes_, {name: picks[name] for name in ("best", "cheapest") if name in picks})]
    measured = [i for i, row in enumerate(found.rows) if instructions(row) is not None]
    if measured:
        points = [
            (instructions(row), row[found.by], row["rule"], _named(row), row["instruction_front"])
            for row in (found.rows[i] for i in measured)
        ]
        chosen = {name: measured.index(picks[name]) for name in ("best", "fastest") if picks.get(name) in measured}
        panels.append(Panel(f"instructions of an update, {found.target} (mean)", points, chosen))  # type: ignore[arg-type]
    return panels


def _csv(found: Sweep) -> str:
    """One line for each rule, technique and size: errors, costs, the values that were best; or why there is nothing."""
    measures = [key for key in NAMES if any(key in row for row in found.rows)]
    values = list(dict.fromkeys(name for row in found.rows for name in row["values"]))
    costs = ("update_mean", "update_max", "predict_mean", "predict_max", "flash_bytes", "stack_bytes")
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    head = ["rule", "technique", "size", *measures, "state_bytes", "work_bytes", "ram_bytes", *costs]
    writer.writerow([*head, "front", "instruction_front", "picked", *values, "tried", "diverged", "reason"])
    picked = {i: name for name, i in reversed(_picks(found).items())}
    for i, row in enumerate(found.rows):
        cells = [row["rule"], row["technique"], row["size"], *(row.get(key) for key in measures)]
        cells += [row["state_bytes"], row["work_bytes"], row["ram_bytes"], *_cost_cells(row["costs"])]
        cells += [int(row["front"]), int(row["instruction_front"]), picked.get(i)]
        cells += [*(row["values"].get(name) for name in values), row["tried"], row["diverged"], None]
        writer.writerow(cells)
    for row in found.refused:
        blank = [None] * (len(measures) + 3 + len(costs) + 3 + len(values) + 2)
        writer.writerow([row["rule"], row["technique"], row["size"], *blank, row["reason"]])
    return text.getvalue()


def _cost_cells(costs: Mapping[str, Any] | None) -> list[Any]:
    if not costs or "refused" in costs:
        return [None] * 6
    calls = [costs[call][key] if costs.get(call) else None for call in ("update", "predict") for key in ("mean", "max")]
    return [*calls, costs["flash_bytes"], costs["stack_bytes"]]


def _report(base: Spec, data: Data, found: Sweep) -> dict[str, Any]:
    return {
        "name": base.name,
        "rows": len(data.x),
        "delay": data.delay,
        "score": found.by,
        "table": found.rows,
        "refused": found.refused,
        "trivial": found.trivial,
        **_picks(found),
        "tries": found.tries,
        "target": found.target,
        "note": found.note,
    }


def _print_sweep(report: Mapping[str, Any], found: Sweep, beaten: Mapping[str, Mapping[str, float | None]]) -> None:
    from pykernel.cli import app as cli

    rows, by = found.rows, found.by
    late = f", labels {report['delay']:,} rows late" if report["delay"] else ""
    simple = ", ".join(f"{name} {cli._number(errors[by])}" for name, errors in beaten.items())
    picks = _picks(found)
    if rows:
        shown = [i for i, row in enumerate(rows) if row["front"] or row["instruction_front"] or i in picks.values()]
        title = (
            f"{report['name']}: {report['rows']:,} rows{late}; error over the second half (for comparison: {simple})"
        )
        cli._print(title, _table_of(found, shown, picks))
        best_of = {(row["rule"], row["technique"]): i for i, row in reversed(list(enumerate(rows)))}
        others = sorted(best_of.values())
        cli._print("each rule and technique at its best", _table_of(found, others, {}))
        outside = rows[picks["best"]]["inputs_refused"] + rows[picks["best"]]["labels_refused"]
        if outside:
            cli._warn(
                f"{outside:,} rows are beyond [input] limit or [label] limit, and were refused; raise these, or scale the columns"
            )
    if found.refused:
        table = cli._table("rule", "techniques", "sizes", "why not (the first)")
        for column in table.columns[1:]:
            column.justify = "left"
        for line in _grouped(found.refused):
            table.add_row(*line)
        cli._print("what could not be used", table)
    print(found.note)
    for name, path in report["specs"].items():
        row = rows[picks[name]]
        print(f"\n{PICKS[name]}: {_named(row)}, {NAMES[by]} {cli._number(row[by])}, {cli._bytes(row['ram_bytes'])}")
        print(f"  {_values(row['values'])}\n  {path}")
    print(f"\ntable     {report['csv']}")
    print(f"plot      {report['plot'] or report['plot_note']}")
    if not rows:
        raise UserError("nothing that was tried worked; the table says why")


def _table_of(found: Sweep, positions: Sequence[int], picks: Mapping[str, int]) -> Any:
    from pykernel.cli import app as cli
    from pykernel.tuning.sweep import instructions

    measures = [key for key in NAMES if any(key in row for row in found.rows)]
    head = ["rule", "technique", "size", *(NAMES[key] for key in measures), "RAM", "update"]
    table = cli._table(*head, *(["chosen"] if picks else []))
    for column in table.columns[1:2] + table.columns[len(head) :]:
        column.justify = "left"
    for i in positions:
        row = found.rows[i]
        count = instructions(row)
        cells = [row["rule"], row["technique"] or "", str(row["size"] or "")]
        cells += [cli._number(row[key]) for key in measures]
        cells += [cli._bytes(row["ram_bytes"]), "" if count is None else f"{count:,.0f}"]
        chosen = [name for name, at in picks.items() if at == i]
        table.add_row(*cells, *([", ".join(chosen)] if picks else []), style="bold" if chosen else "")
    return table


def _values(values: Mapping[str, float]) -> str:
    return " ".join(f"{name.partition('.')[2]} {value:g}" for name, value in values.items())


def _grouped(refused: Sequence[Mapping[str, Any]]) -> list[tuple[str, str, str, str]]:
    """Rule, techniques, sizes and the first's reason of those refused for the same, names and counts apart."""
    groups: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for row in refused:
        kind = re.sub(r"[\d,]+|\"[^\"]*\"", "", row["reason"])
        if row["technique"]:
            kind = re.sub(rf"\b{re.escape(row['technique'])}\b", "", kind, count=1)
        groups.setdefault((row["rule"], kind), []).append(row)
    found = []
    for (rule, _), rows in groups.items():
        parts = [dict.fromkeys(str(row[key]) for row in rows if row[key] is not None) for key in ("technique", "size")]
        found.append((rule, ", ".join(parts[0]), ", ".join(parts[1]), rows[0]["reason"]))
    return found
