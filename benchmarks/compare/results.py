"""What a comparison needs and writes: who takes part, curves and table as CSV and LaTeX, BibTeX, the figure."""

from __future__ import annotations

import contextlib
import csv
import io
import math
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.compare import contenders, sources
from benchmarks.compare.contenders import Contender, Outcome, Setting
from benchmarks.compare.curves import learning_curves
from benchmarks.compare.options import Compare
from benchmarks.compare.tasks import TASKS
from benchmarks.kept import Kept
from pykernel.cli import output
from pykernel.cli.face import read_spec
from pykernel.errors import UNWRITTEN, UserError
from pykernel.files import whole_file
from pykernel.host.samples import read_rows
from pykernel.request.kinds import Words, words
from pykernel.spec.suggestions import word_meant
from pykernel.tuning.combinations import techniques as all_techniques
from pykernel.tuning.stage import dump

MOST_SEEDS, MOST_ROWS = 10_000, 1_000_000
COLUMNS = ("task", "rule", "technique", "n", "mse_db", "se_db", "nmse_db", "vectors", "ram_bytes", "refused", "seeds",
    "rows", "settings")  # fmt: skip


@dataclass(frozen=True)
class Arena:
    """Who takes part (found), who cannot (refused: task, name, why), and in what."""

    found: Sequence[Contender]
    refused: Sequence[Mapping[str, str]]
    data: tuple[np.ndarray, np.ndarray] | None
    seeds: int
    size: int
    rows: int | None

    @property
    def runs(self) -> int:
        return len(self.found) * self.seeds

    def rows_of(self, contender: Contender) -> int:
        if self.data is not None:
            return len(self.data[1])
        return self.rows or TASKS[contender.task].rows


def arena_of(options: Compare) -> Arena:
    """Raises UserError for what cannot be compared."""
    if not 1 <= options.seeds <= MOST_SEEDS:
        raise UserError(f"--seeds is {options.seeds}; it must be from 1 to {MOST_SEEDS:,}")
    if options.rows is not None and not contenders.LEAST_ROWS <= options.rows <= MOST_ROWS:
        raise UserError(f"--rows is {options.rows}; it must be from {contenders.LEAST_ROWS} to {MOST_ROWS:,}")
    chosen = _known(options.rule, contenders.comparable(), "rule") or list(contenders.comparable())
    techniques = _known(options.technique, all_techniques(), "technique")
    given = [setting_of(text) for text in ([options.set_] if isinstance(options.set_, str) else options.set_ or ())]
    contenders.check_settings(given, chosen)
    streams, data = _streams(options)
    found: list[Contender] = []
    refused = []
    for task, base in streams.items():
        some, others = contenders.contenders(task, base, chosen, techniques, options.n_max, given)
        found += some
        refused += [{"task": task, "name": name, "reason": why} for name, why in others]
    if not found:
        raise UserError(f"nothing is left to compare: {refused[0]['name']}: {refused[0]['reason']}")
    return Arena(found, refused, data, 1 if data is not None else options.seeds, options.n_max, options.rows)


def _known(given: Words, known: Sequence[str], what: str) -> list[str]:
    given_words = words(given if isinstance(given, str) else ",".join(given or ()))
    for word in given_words:
        if word not in known:
            remedy = word_meant(word, known, f"there are: {', '.join(known)}")
            raise UserError(f"--{what} {word} is not known; {remedy}")
    return given_words


def _streams(options: Compare) -> tuple[dict[str, dict[str, Any]], tuple[np.ndarray, np.ndarray] | None]:
    """A spec's content without a rule for each stream, and the rows of one's own."""
    if (options.data is None) != (options.spec is None):
        raise UserError("--data and --spec belong together: a stream, and a spec that names its columns")
    if options.data is None:
        bases = {}
        for task in _known(options.task, list(TASKS), "task") or list(TASKS):
            x, _ = TASKS[task].make(0, contenders.LEAST_ROWS)
            bases[task] = {
                "name": "model",
                "precision": options.precision,
                "input": {"dim": x.shape[1]},
                "kernel": {"sigma": TASKS[task].sigma},
            }
        return bases, None
    if options.task or options.rows is not None:
        raise UserError("--task and --rows are for the built-in streams; with --data leave them out")
    assert options.spec is not None
    spec = read_spec(options.spec, False)
    if spec.signal is not None:
        raise UserError(f"{spec.name} has a [signal], which compare does not take; pykernel simulate does")
    if spec.label_kind != "real":
        raise UserError(f"{options.spec}: compare needs one label that is a number")
    x, y = read_rows(spec, options.data)
    if len(x) < contenders.LEAST_ROWS:
        raise UserError(f"{options.data}: has {len(x)} rows; to compare, there must be {contenders.LEAST_ROWS} or more")
    content = dump(spec) | {"precision": options.precision}
    return {Path(options.data).stem: content}, (x, y)


def setting_of(text: str) -> Setting:
    """[RULE.]KEY=VALUE, the value as in TOML; a bare word is a word."""
    name, equals, value = text.partition("=")
    rule, _, key = name.rpartition(".")
    if not equals or not key or not value:
        raise UserError(
            f"--set is {text!r}; it must be KEY=VALUE or RULE.KEY=VALUE, such as eta=0.1 or krls-t.noise=0.1"
        )
    try:
        parsed = tomllib.loads(f"v = {value}")["v"]
    except tomllib.TOMLDecodeError:
        parsed = value
    return Setting(key, parsed, rule or None)


@contextlib.contextmanager
def workers(arena: Arena, options: Compare, as_json: bool) -> Iterator[Kept]:
    """Processes at work on the runs; an interrupt tells where the finished ones are kept."""
    at_work = Kept(
        contenders.work,
        arena.data,
        jobs=options.jobs,
        results=Path(options.output) / "results.jsonl",
        context=contenders.context(arena.data),
        title=None if as_json else "running",
        expect=arena.runs,
    )
    try:
        with at_work:
            yield at_work
    except KeyboardInterrupt:
        done = f"; {len(at_work.results):,} finished runs are kept in {at_work.path}; run the same command to continue"
        raise output.interrupted(done if at_work.results else UNWRITTEN) from None


# -------------------------------------------------------------------------------------------------------------- results


def report_of(arena: Arena, results: Sequence[Outcome]) -> dict[str, Any]:
    rows = [{**each.row, "n": arena.size, "rows": arena.rows_of(each.contender)} for each in results]
    return {"table": rows, "refused": list(arena.refused)}


def write(out: Path, arena: Arena, results: Sequence[Outcome]) -> dict[str, Any]:
    """All files; their paths."""
    rows = report_of(arena, results)["table"]
    paths = {"curves": "curves.csv", "table_csv": "table.csv", "tex": "table.tex", "bib": "used.bib"}
    texts = {
        "curves": _csv(("task", "rule", "technique", "sample", "mse_db", "se_db"), _points(arena, results)),
        "table_csv": _csv(COLUMNS, ([_cell(row, key) for key in COLUMNS] for row in rows)),
        "tex": _tex(rows),
        "bib": sources.bibliography(contenders.sources_of([each.contender for each in results])),
    }
    for name, text in texts.items():
        with whole_file(out / paths[name]) as file:
            file.write(text.encode())
    learning_curves(out / "curves.png", _panels(arena, results), "mean squared error before learning, dB")
    return {name: str(out / path) for name, path in paths.items()} | {"plot": str(out / "curves.png")}


def _points(arena: Arena, results: Sequence[Outcome]) -> Iterable[Sequence[str]]:
    for each in results:
        who = each.contender
        for end, mean, error in zip(contenders.blocks(arena.rows_of(who))[1:], each.mean, each.error, strict=True):
            yield [who.task, who.rule, who.technique or "", str(end), _number(mean), _number(error)]


def _panels(arena: Arena, results: Sequence[Outcome]) -> dict[str, Any]:
    panels: dict[str, Any] = {}
    for each in results:
        ends = contenders.blocks(arena.rows_of(each.contender))[1:]
        panels.setdefault(each.contender.task, {})[each.contender.name] = (ends, each.mean, each.error)
    return panels


def _number(value: float) -> str:
    """With four digits behind the point; empty where there is none."""
    return f"{value:.4f}" if math.isfinite(value) else ""


def _cell(row: Mapping[str, Any], key: str) -> str:
    value = row[key]
    if key == "settings":
        return "; ".join(f"{name}={word} ({row['origin'][name]})" for name, word in value.items())
    if value is None:
        return ""
    return _number(value) if isinstance(value, float) else str(value)


def _csv(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    return text.getvalue()


def _tex(rows: Sequence[Mapping[str, Any]]) -> str:
    """A tabular that needs no package; what was set stands in comments behind the rows."""
    lines = [
        "\\begin{tabular}{lllrrr}",
        "\\hline",
        "task & rule & technique & MSE, dB & NMSE, dB & vectors \\\\",
        "\\hline",
    ]
    for row in rows:
        cites = ",".join(sources.RULES[row["rule"]])
        spread = f" $\\pm$ {row['se_db']:.2f}" if math.isfinite(row["se_db"]) else ""
        vectors = "" if row["vectors"] is None else f"{row['vectors']:.1f}"
        cells = [
            row["task"],
            f"{row['rule']} \\cite{{{cites}}}",
            row["technique"] or "",
            f"${row['mse_db']:.2f}${spread}",
        ]
        lines.append(
            " & ".join([*cells, f"${row['nmse_db']:.2f}$", vectors]).replace("_", "\\_")
            + f" \\\\ % {_cell(row, 'settings')}"
        )
    return "\n".join([*lines, "\\hline", "\\end{tabular}", ""])
