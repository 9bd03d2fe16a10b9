"""The monitor beside max |z|, Mahalanobis distance and banks of the same memory: alarms, bytes, instructions.

    python examples/novelty/compare.py [--seeds 24] [--tune] [--docs docs/data/novelty] [--quick]

Writes detection.csv, cost.csv and areas.svg, with --tune also tuning.csv and variants.csv (which parameters, on other seeds), and puts the
tables into docs/novelty.md; of another folder, into the page beside it, if there is one.  Some minutes; --quick: a few seeds, for tests.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from page import fill, load  # noqa: E402
from run import emulate, record, save  # noqa: E402
from study import NORMAL, chosen, detection, tune, variants  # noqa: E402

from pykernel import Spec, load_spec  # noqa: E402

DOCS = HERE.parents[1] / "docs" / "data" / "novelty"
EMULATED = 4000
"""Samples of the tour that each detector learns on the emulated CPU."""


def costs(specs: Mapping[str, Spec], samples: int = EMULATED) -> list[dict[str, Any]]:
    """A row for each detector: bytes, and instructions on the emulated CPU, where its memory is equal to the host's."""
    x = record()[0][:samples]
    rows = []
    for kind, spec in specs.items():
        print(f"{kind} on the emulated CPU", file=sys.stderr)
        rows.append({"detector": kind, **emulate(spec, x)})
        if rows[-1]["equal"] != "yes":
            sys.exit(f"{kind}: the C does not compute what the simulation computes")
    return rows


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=24)
    parser.add_argument("--tune", action="store_true")
    parser.add_argument("--docs", type=Path, default=DOCS)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--page-only", action="store_true", help="only tables and figures, of results that are there")
    words_given = parser.parse_args(words)
    folder, spec = words_given.docs, load_spec(HERE / "monitor.toml")
    folder.mkdir(parents=True, exist_ok=True)

    def say(text: str) -> None:
        print(text, file=sys.stderr)

    if not words_given.page_only:
        if words_given.tune or not (folder / "tuning.csv").is_file():
            save(folder / "tuning.csv", tune(spec, say=say))
        if words_given.tune or not (folder / "variants.csv").is_file():
            save(folder / "variants.csv", variants(spec, say=say))
        specs = chosen(spec, load(folder / "tuning.csv"))
        if specs["okfeb"] != spec:
            sys.exit("monitor.toml does not have the parameters that tuning.csv chose; write them into it")
        quick = words_given.quick
        rows = detection(specs, range(3 if quick else words_given.seeds), 2000 if quick else NORMAL, say)
        save(folder / "detection.csv", rows)
        counted = {kind: specs[kind] for kind in ("okfeb", "largest")} if quick else specs
        save(folder / "cost.csv", costs(counted, 300 if quick else EMULATED))
    from figures import area_figure

    rows = load(folder / "detection.csv")
    kinds = [
        kind for kind in dict.fromkeys(row["fault"] for row in rows) if kind not in ("none", "all subtle", "all gross")
    ]
    area_figure(folder / "areas.svg", rows, kinds)
    page = (DOCS.parents[1] / DOCS.name if folder.resolve() == DOCS else folder).with_suffix(".md")
    if page.is_file():
        page.write_text(fill(page.read_text(encoding="utf-8"), folder), encoding="utf-8")


if __name__ == "__main__":
    main()
