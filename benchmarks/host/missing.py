"""What missing inputs cost: error with gaps over error on the whole rows, for each value of [input] missing.

    python -m benchmarks.host.missing          # docs/data/missing.csv, and the table and sentences of docs/reference/rules.md
    python -m benchmarks.host.missing --show   # the same of the file

Streams: the numbers of first_streams.py as they are.  One input in ten is missing, each by itself, or for ten rows in a row.
Errors are root mean squares over the second half of the rows.  A model that refuses a row leaves its last answer standing.

whole: the same over the rows without a gap alone.  persistence: the correlation of an input with itself one row before, mean
over the stream's inputs.  The table calls a stream slow if it is 0.5 or more.
"""

from __future__ import annotations

import argparse
import textwrap
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.host.first_results import minimal
from benchmarks.host.first_streams import REGRESSION, raw
from benchmarks.tables import DATA, Rows, load, markdown, publish, save
from pykernel.host.model import HostModel
from pykernel.spec.model import Spec, make_spec
from pykernel.tuning.stage import dump

PART = 0.1
RUN = 10
SLOW = 0.5
CHOICES = ("refuse", "mean", "hold")
RULES = {"krls-t": "krls-t", "spectrum-ekf": "spectrum-ekf, the default"}


def single(shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    return rng.random(shape) < PART


def runs(shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    silent = rng.random((shape[0] // RUN + 1, shape[1])) < PART
    return silent.repeat(RUN, axis=0)[: shape[0]]


GAPS: dict[str, Callable[[tuple[int, ...], np.random.Generator], np.ndarray]] = {"single": single, "runs of ten": runs}


def spec_of(rule: str, dim: int, missing: str) -> Spec:
    spec = minimal(dim, 0, **({"reduction": {"n_max": 32}} if rule == "krls-t" else {}))
    content = dump(spec)
    return make_spec(content | {"input": content["input"] | {"missing": missing}})


def misses(spec: Spec, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The errors of the second half."""
    answers = np.reshape(HostModel(spec).prequential(x, y)[0], -1).astype(float)
    there = np.maximum.accumulate(np.where(np.isnan(answers), 0, np.arange(len(answers))))
    return (np.nan_to_num(answers[there]) - y)[len(y) // 2 :]


def rms(errors: np.ndarray) -> float:
    return float(np.sqrt(np.mean(errors**2)))


def persistence(x: np.ndarray) -> float:
    columns = [column for column in x.T if np.ptp(column) > 0]
    return float(np.mean([np.corrcoef(column[1:], column[:-1])[0, 1] for column in columns]))


def measured() -> list[dict[str, Any]]:
    found = []
    for name in REGRESSION:
        x, y = raw(name)
        for rule in RULES:
            usual = misses(spec_of(rule, x.shape[1], "refuse"), x, y)
            for gaps, make in GAPS.items():
                missing = make(x.shape, np.random.default_rng(zlib.crc32(f"{name} {gaps}".encode())))
                whole = ~missing.any(axis=1)[len(y) // 2 :]
                for choice in CHOICES:
                    errors = misses(spec_of(rule, x.shape[1], choice), np.where(missing, np.nan, x), y)
                    found.append(
                        {
                            "stream": name,
                            "inputs": x.shape[1],
                            "persistence": f"{persistence(x):.3f}",
                            "rule": rule,
                            "gaps": gaps,
                            "missing": choice,
                            "error": f"{rms(errors) / max(rms(usual), 1e-12):.4g}",
                            "whole": f"{rms(errors[whole]) / max(rms(usual[whole]), 1e-12):.4g}" if whole.any() else "",
                        }
                    )
    return found


def table(rows: Rows) -> str:
    """For each rule, kind of gaps and kind of stream: median errors, and on how many streams each choice is best."""
    made = []
    for rule, called in RULES.items():
        for gaps in GAPS:
            for slow in (True, False):
                chosen = [
                    row for row in rows
                    if (row["rule"], row["gaps"]) == (rule, gaps) and (float(row["persistence"]) >= SLOW) is slow
                ]  # fmt: skip
                errors = {
                    choice: np.array([float(row["error"]) for row in chosen if row["missing"] == choice])
                    for choice in CHOICES
                }
                best = np.argmin(np.stack(list(errors.values())), axis=0)
                cells = [f"{np.median(each):.2f}" for each in errors.values()]
                wins = " / ".join(str(int((best == i).sum())) for i in range(len(CHOICES)))
                made.append([called, gaps, "slow" if slow else "not slow", *cells, wins])
    titles = [f"`{choice}`" for choice in CHOICES]
    return markdown(["", "gaps", "inputs", *titles, "streams on which each is best"], made)


def advice(rows: Rows) -> str:
    """Which choice is better when, and where it loses."""

    def ratios(slow: bool, better: str, worse: str) -> np.ndarray:
        errors = {(r["stream"], r["rule"], r["gaps"], r["missing"]): float(r["error"]) for r in rows}
        keys = [
            (r["stream"], r["rule"], r["gaps"])
            for r in rows
            if r["missing"] == better and (float(r["persistence"]) >= SLOW) is slow
        ]
        return np.array([errors[*key, better] / errors[*key, worse] for key in keys])

    told = []
    for slow, words in ((True, "slow"), (False, "other")):
        held = ratios(slow, "hold", "mean")
        better, worse = ("hold", "mean") if np.median(held) < 1 else ("mean", "hold")
        found = held if better == "hold" else 1 / held
        refused = ratios(slow, better, "refuse")
        told.append(
            f"On {words} inputs `{better}` is better than `{worse}`: {np.median(found):.2f} of its error in the median, and less "
            f"in {int((found < 1).sum())} of {len(found)} trials; against `refuse` it wins {int((refused < 1).sum())} and has "
            f"{np.median(refused):.2f} of the error, at worst {refused.max():.2f} times."
        )
    return textwrap.fill(" ".join(told), 120) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--show", action="store_true")
    path = DATA / "missing.csv"
    rows = load(path) if parser.parse_args().show else save(path, measured())
    publish({"missing": table(rows), "missing, in words": advice(rows)})
    print(table(rows), advice(rows), sep="\n\n")


if __name__ == "__main__":
    main()
