"""Output of commands: tables, sizes and numbers, progress, JSON, sentences on standard error; and exit codes.

All text is treated as untrusted: names of columns, files, specs and boards can contain markup and control characters.
So every function here takes plain text, and replaces invisible characters.  Only ``Styled`` text has a style.  No other
module of ``cli`` prints.
"""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from shlex import quote
from typing import TYPE_CHECKING, Any

import typer

from pykernel.errors import UNWRITTEN, visible
from pykernel.progress import Show, bar, told_late
from pykernel.telling import Watch, byte_count, finite, plain

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

OK, FAILED, BAD_INPUT, INTERRUPTED, UNREAD = 0, 1, 2, 130, 141  # the last two are the codes that shells use


# ------------------------------------------------------------------------------------------------------------ sentences


class Styled(str):
    """Text of a table's cell with a style of rich's; its characters are plain text as all others are."""

    style: str

    def __new__(cls, text: str, style: str) -> Styled:
        made = super().__new__(cls, text)
        made.style = style
        return made


def styled(style: str, cells: Iterable[str]) -> list[str]:
    """A row of a table in a style."""
    return [Styled(cell, style) for cell in cells]


def show(*lines: object) -> None:
    """Print each argument on a line of its own; without arguments, an empty line."""
    print("\n".join(map(visible, lines)), flush=True)


def show_facts(*facts: tuple[str, str | None]) -> None:
    """Print names and what there is to say of each; a fact without a text is left out."""
    for name, text in facts:
        if text:
            show(f"{name:<9} {text}")


def say(kind: str, text: str) -> None:
    print(f"{kind}: {visible(text)}", file=sys.stderr)


def warn(*texts: str) -> None:
    for text in texts:
        say("warning", text)


def tell(text: str) -> None:
    """Print on standard error which step starts."""
    print(visible(text), file=sys.stderr)


def interrupted(kept: str = UNWRITTEN) -> typer.Exit:
    """Print that the command was interrupted, and what was kept.  Returns the exception to raise.

    It replaces KeyboardInterrupt, for which typer would exit without a message.
    """
    say("error", f"interrupted{kept}")
    return typer.Exit(INTERRUPTED)


# -------------------------------------------------------------------------------------- tables, and the ends of reports


def show_table(
    title: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    words: Container[int] = (0,),
    spare: Sequence[str] = (),
) -> None:
    """Print a table without breaking words or numbers, because a reader may have to type them.

    words: columns that are aligned to the left; the others have numbers.  If the window is too narrow, cells are
    wrapped between words.  If this is not enough, the columns in ``spare`` are left out in their order.  If this is not
    enough, each row is printed as a list.
    """
    from rich import box
    from rich.console import Console
    from rich.table import Table

    console, table = Console(), Table(box=box.SIMPLE_HEAD)
    for i, column in enumerate(columns):
        table.add_column(_text(column), justify="left" if i in words else "right", overflow="fold")
    for cells in rows:
        table.add_row(*map(_text, cells))
    # printed separately: rich would wrap the table's own title to the table's width
    console.print(_text(title), style="bold", highlight=False)
    gone: list[str] = []
    while not (fits := _fit(table, console)) and len(gone) < len(spare):
        gone.append(spare[len(gone)])
        table.columns = [column for column in table.columns if str(column.header) != gone[-1]]
    if not fits:
        for cells in rows:
            console.print()
            for column, value in zip(columns, cells, strict=False):
                if value:
                    console.print(_text(f"  {column}  "), _text(value), sep="", highlight=False, soft_wrap=True)
        console.print()
        return
    console.print(table)
    if gone:
        show(f"left out, for the window is narrow: {', '.join(gone)}", "")


def _text(cell: str) -> Text:
    """A cell for rich, in which markup has no effect."""
    from rich.text import Text

    return Text(visible(cell), cell.style if isinstance(cell, Styled) else "")


def _fit(table: Table, console: Console) -> bool:
    """Set the widths of columns so that the table fits without broken words; returns whether this is possible."""
    from rich.measure import Measurement

    wide = console.options.update(width=10_000)
    measured = []
    for column in table.columns:
        sizes = [Measurement.get(console, wide, cell) for cell in (column.header, *column.cells)]
        measured.append((max(size.minimum for size in sizes), max(size.maximum for size in sizes)))
    # three characters between columns, two on each side
    left = console.width - 3 * len(measured) - 1 - sum(least for least, _ in measured)
    each = list(zip(table.columns, measured, strict=True))
    texts = sum(column.justify != "right" for column in table.columns)
    # a number stays on the line of its unit if there is room; text columns share the rest, and short ones need less
    for column, (least, most) in sorted(each, key=lambda one: (one[0].justify != "right", one[1][1] - one[1][0])):
        share = left
        if column.justify != "right":
            share, texts = left // texts, texts - 1
        more = max(0, min(most - least, share))
        column.width, left = least + more, left - more
    return left >= 0


def print_next(spec: str, *before: str) -> None:
    """Print the next commands for a spec that was written.  before: those before it is generated."""
    commands = [*before, f"pykernel generate {quote(spec)} -o out/"]
    show("", "next:", *(f"  {command}" for command in commands))


def print_sizes(figures: Mapping[str, Any], simple: Mapping[str, int] | None = None) -> None:
    """Bytes of the model, and of simple predictors."""
    sizes = {
        "state (RAM)": figures["state_bytes"],
        "work (RAM)": figures["work_bytes"],
        "tables and trained values (flash)": figures["const_bytes"],
        **{f"instead: {text}": size for text, size in (simple or {}).items()},
    }
    rows = [(text, byte_count(size)) for text, size in sizes.items()]
    show_table(f"{figures['name']} in memory", ("part", "size"), rows)


def equality(row: Mapping[str, Any]) -> Styled:
    return Styled("yes", "green") if row["equal"] else Styled("NO", "bold red")


def print_check(rows: Sequence[Mapping[str, Any]], learns: bool = True) -> None:
    """learns: whether the model does."""
    columns = ("compiler", "samples", "equal", "code -Os", "constants", "state's hash")
    cells = [
        [
            f"{row['compiler']} {row['flags']}",
            f"{row['samples']:,}",
            equality(row),
            byte_count(row.get("text_bytes")),
            byte_count(row.get("rodata_bytes")),
            str(row.get("state_hash", "")),
        ]
        for row in rows
    ]
    show_table("is the C's memory equal to the simulation's, byte for byte?", columns, cells)
    print(f"state's hash: what NAME_hash returns after these samples, each predicted{' and then learned' * learns}\n")


def print_engines(engine: str, witnesses: Sequence[Mapping[str, Any]]) -> None:
    """Print what simulated the model, and whether other engines computed the same."""
    told = [
        f"; {row['engine']}, the second witness, has {'the same bytes' if row['equal'] else 'OTHER BYTES'}"
        for row in witnesses
    ]
    show(f"simulated by {engine}{''.join(told)}", "")


def print_targets(rows: Sequence[Mapping[str, Any]]) -> None:
    columns = ("target", "built, run by", "equal", "flash", "RAM", "stack", "at most")
    sizes = [f"{part}_bytes" for part in ("flash", "ram", "stack", "stack_bound")]
    built = [
        [
            row["target"],
            f"{row['toolchain']}, {row['emulator']}",
            equality(row),
            *(byte_count(row.get(key)) for key in sizes),
        ]
        for row in rows
    ]
    title = f"{rows[0]['samples']:,} samples on emulated CPUs: is the memory equal to the simulation's?"
    show_table(title, columns, built)
    calls = [
        [
            row["target"],
            call,
            *counts(row[call], "min", "median", "max", "worst", "bound"),
            *counts(row[call], "ratio", digits=2),
        ]
        for row in rows
        for call in row.get("calls", ())
    ]
    if calls:
        heads = ("target", "call", "min", "median", "max", "worst", "bound", "ratio")
        show_table("instructions of one call", heads, calls, spare=("min", "median", "ratio"))
    print_times(rows)
    for line in (line for row in rows for line in bounds_told(row)):
        show(line)


def counts(figures: Mapping[str, Any], *keys: str, digits: int = 0, missing: str = "-") -> list[str]:
    """Figures as text; ``missing`` for a figure that there is not."""
    return [missing if figures[key] is None else f"{figures[key]:,.{digits}f}" for key in keys]


def print_times(rows: Sequence[Mapping[str, Any]]) -> None:
    """Print the cycles that a target's own timer has counted, and the proved bound."""
    times = [
        [
            row["target"],
            call,
            *counts(figures, "min", "median", "max"),
            *counts(row.get("bounds", {}).get(call, {"cycles": None}), "cycles"),
        ]
        for row in rows
        for call, figures in row.get("times", {}).items()
    ]
    if times:
        title = "cycles of one call, by the CPU's timer (reading the timer takes about 130 of them)"
        show_table(title, ("target", "call", "min", "median", "max", "bound"), times)


def print_loads(loads: Sequence[Mapping[str, Any]]) -> None:
    """Print the load of a sample, including all functions that a firmware calls for it."""
    known = [load for load in loads if load["cycles"] is not None]
    charged = any("mah_a_day" in load for load in loads)
    columns = ("target", "cycles", "are", "time", "of a period", "mean", *(["a day"] if charged else []))
    rows = []
    for load in known:
        part, time = f"{100 * load['share']:.3g} %", load["microseconds"]
        # four digits, because it is not an estimate
        shown = f"{time / 1000:,.4g} ms" if time >= 1000 else f"{time:,.4g} µs"
        slow = Styled(part, "bold red") if load["share"] > 1 else part
        usual = f"{100 * load['mean_share']:.3g} %"
        charge = [f"{load['mah_a_day']:.3g} mAh"] if charged else []
        rows.append([load["target"], f"{load['cycles']:,}", load["kind"], shown, slow, usual, *charge])
    if rows:
        show_table("a sample takes at most", columns, rows)
    for load in loads:
        if load["cycles"] is None:
            show(f"{load['target']}: no cycles are known without a bound; pykernel check --board measures them")
        elif load["mean_share"] > 1:
            show(
                f"{load['target']}: samples come faster than they are learned; take a smaller model, fewer samples a second, or a faster clock"
            )
        elif load["waiting"]:
            show(
                f"{load['target']}: {load['waiting']:,} more samples may come while the longest one is learned, and its alarm "
                "answered: let an interrupt put them into a queue of so many"
            )


def bounds_told(row: Mapping[str, Any]) -> list[str]:
    """Sentences: bounds that are not in the table of calls, and the reasons for missing bounds."""
    bounds = row.get("bounds", {})
    proved = {name: bound for name, bound in bounds.items() if bound["instructions"] is not None}
    lines, timed = [], row.get("times", {})
    others = [f"{name} {bound['instructions']:,}" for name, bound in proved.items() if name not in row.get("calls", ())]
    if others:
        lines.append(f"{row['target']}: instructions at most: {', '.join(others)}")
    cycles = [
        f"{name} {bound['cycles']:,}"
        for name, bound in proved.items()
        if bound["cycles"] and name not in timed and (timed or name in row.get("calls", ()))
    ]
    if cycles:
        how = "estimated" if any(bound["estimated"] for bound in proved.values()) else "without wait states"
        lines.append(f"{row['target']}: cycles at most, {how}: {', '.join(cycles)}")
    reasons = dict.fromkeys(bound["refused"] for name, bound in bounds.items() if bound["refused"])
    return lines + [f"{row['target']}: no bound: {reason}" for reason in reasons]


def print_board(rows: Sequence[Mapping[str, Any]]) -> None:
    (row,) = rows
    sizes = [byte_count(row[key]) for key in ("ram_bytes", "stack_bytes")]
    title = f"{row['samples']:,} samples on the board: is the memory equal to the simulation's?"
    cells = [row["board"], row["compiler"], equality(row), *sizes]
    show_table(title, ("board", "compiled by", "equal", "RAM", "stack"), [cells])
    hertz, calls = row["hertz"], []
    for name, figures in row["times"].items():
        seconds = [f"{figures[key] / hertz * 1e6:,.1f}" for key in ("median", "max")] if hertz else []
        calls.append([name, *counts(figures, "calls", "min", "median", "max"), *seconds])
    if calls:
        rate = f", at {hertz / 1e6:g} MHz" if hertz else ""
        columns = ("call", "calls", "min", "median", "max", *(["median, µs", "max, µs"] if hertz else []))
        show_table(f"ticks of the board's counter for one call{rate}", columns, calls)


def first_difference(rows: Sequence[Mapping[str, Any]]) -> str:
    wrong = next(row for row in rows if not row["equal"])
    if "engine" in wrong:
        return f"{wrong['engine']}, the second witness, differs: {wrong['first_difference']}"
    built = f"{wrong.get('board', '')} {wrong['compiler']} {wrong['flags']}".strip()
    return f"{built}: the C differs from the simulation: {wrong['first_difference']}"


# ----------------------------------------------------------------------------------------------------------------- JSON


def print_json(value: Any) -> None:
    print(json.dumps(finite(value), default=plain, allow_nan=False))


def print_report(report: Mapping[str, Any], as_json: bool, shown: Callable[[Mapping[str, Any]], None]) -> None:
    """Print what a command found: as one JSON object, or for people, as ``shown`` prints it."""
    if as_json:
        print_json(report)
    else:
        shown(report)


# ------------------------------------------------------------------------------------------------------------- progress


class Printing(Watch):
    """Prints the messages of a workflow; with --json, only those for standard error."""

    def __init__(self, as_json: bool) -> None:
        self.as_json, self.bars = as_json, not as_json
        self.read: Mapping[str, Any] | None = None
        """What was read from a table, as plain values."""

    def note(self, *lines: str) -> None:
        if not self.as_json:
            show(*lines, "")

    def data(self, data: Mapping[str, Any] | None) -> None:
        self.read = data
        super().data(data)

    def tell(self, sentence: str) -> None:
        tell(sentence)

    def warn(self, sentence: str) -> None:
        warn(sentence)

    def progress(self, total: float | None = 1) -> contextlib.AbstractContextManager[Show]:
        """A progress bar on standard error, if it is a terminal; else, and with --json, lines, if the work takes long."""
        return told_late(total) if self.as_json else bar(total)
