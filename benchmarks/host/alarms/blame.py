"""What an alarm says is at fault: which sensor, and which kind of fault.

    python -m benchmarks.host.alarms.blame          # docs/data/alarms-blame.csv, a minute
    python -m benchmarks.host.alarms.blame --held   # alarms-blame-held.csv: plants that nobody has chosen a constant on; run this once
    python -m benchmarks.host.alarms.blame --recorded FOLDER   # alarms-blame-recorded.csv: recordings by strangers, see recorded.py
    python -m benchmarks.host.alarms.blame --show   # what was measured, and which kinds were told; also with --held and --recorded

The monitor is that of a bare [novelty].  Of each fault that is judged and has a row in alarm, what counts is the last row in alarm
of its longest alarm (episode) that NAME_blame gives a kind for.  A relearned fault ends an alarm; the kind is gone then.

A line of the file is a source, a kind of plant and what an operator should be told ("": nobody can say; then only the sensor
counts).  ``faults`` judged; ``alarmed`` with an alarm; of these ``first``: the sensor with the largest share is one of the
fault's; ``two``: that one, or the second if it has at least half of the largest share, is; ``named``: how many names these
were.  ``some`` and ``some_first``: alarmed and first, of the faults that do not change all sensors.  unknown .. regime: how often the kind was told.

Sources: the public plants of the seeds that judge detectors; hidden: those of their faults that stay within their sensors' normal
ranges.  "chosen on": the public plants of another seed, and the first held plants: the constants were chosen on these, and on more seeds of
them.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from benchmarks.host.alarms import held_second
from benchmarks.host.alarms.held_plants import held
from benchmarks.host.alarms.measure import judged_faults
from benchmarks.host.alarms.plants import fault_free, plants
from benchmarks.host.alarms.plants_faults import inside
from benchmarks.host.alarms.recorded import CHOSEN, JUDGED, recorded
from benchmarks.host.alarms.run import CHOSEN_ON, JUDGED_ON
from benchmarks.host.alarms.stream import Fault, Stream
from benchmarks.tables import DATA, Rows, load, markdown, save
from pykernel.algorithms.novelty.state import GmmStatus
from pykernel.host.model import HostModel
from pykernel.spec.model import make_spec

KINDS = [kind.name.lower() for kind in GmmStatus if GmmStatus.UNKNOWN <= kind <= GmmStatus.REGIME]
COUNTS = ("faults", "alarmed", "first", "two", "named", "some", "some_first", *KINDS)


HELD_ON = 3
"""Seeds 0 to 2 judged earlier rules."""
RECORDED_ON = range(100, 108)
"""Faults of the recordings; others chose the rule."""


class Said(NamedTuple):
    """What an alarm says in one of its rows."""

    shares: np.ndarray  # (D,)
    kind: str


def alarms_of(model: HostModel, rows: np.ndarray) -> list[list[Said]]:
    """Learn the rows of a fault, (T, D); what each alarm in them said, row by row."""
    found: list[list[Said]] = []
    since = 0
    for row in rows:
        status = model.update(row[None])[0]
        now = int(model.read("alarm")[0][2])
        if now > 0 and status in (GmmStatus.NOVEL, GmmStatus.HELD):
            if now <= since or not since or not found:
                found.append([])
            shares, kind = model.read("blame")
            found[-1].append(Said(shares.copy(), GmmStatus(kind).name.lower()))
        since = now
    return found


def verdicts(stream: Stream) -> Iterator[tuple[Fault, Said | None]]:
    """Each judged fault and what its longest alarm said in the end; None if there was none."""
    rows = stream.rows.astype(float)
    model = HostModel(make_spec({"name": "monitor", "input": {"dim": rows.shape[1]}, "novelty": {}}))
    at = 0
    for fault in judged_faults(stream):
        model.update(rows[at : fault.first])
        found = alarms_of(model, rows[fault.first : fault.last])
        at = fault.last
        yield fault, max(found, key=len)[-1] if found else None


def counted(fault: Fault, said: Said | None) -> Counter[str]:
    found = Counter(faults=1)
    if said is not None:
        two = np.argsort(-said.shares, kind="stable")[:2]
        named = two[said.shares[two] >= said.shares.max() / 2]
        first, some = int(two[0]) in fault.channels, len(fault.channels) < len(said.shares)
        found += Counter(alarmed=1, first=int(first), two=int(np.isin(named, fault.channels).any()), named=len(named))
        found += Counter({"some": int(some), "some_first": int(some and first), said.kind: 1})
    return found


def lines(source: str, streams: Iterable[Stream], clean: Iterable[Stream] | None = None) -> list[dict[str, Any]]:
    """Lines of the file.  clean: the same streams without faults, where hidden faults are counted once more."""
    found: dict[tuple[str, str, str], Counter[str]] = {}
    others: Iterable[Stream | None] = [None] * 1000 if clean is None else clean
    for stream, sound in zip(streams, others, strict=False):
        for fault, said in verdicts(stream):
            names = [source]
            if sound is not None and inside(stream.rows, sound.rows, fault):
                names.append(f"{source}, hidden")
            for name in names:
                found.setdefault((name, stream.kind, fault.says), Counter()).update(counted(fault, said))
    return [
        {"source": name, "kind": kind, "says": says} | {count: each[count] for count in COUNTS}
        for (name, kind, says), each in sorted(found.items())
    ]


def public() -> list[dict[str, Any]]:
    found = []
    for seed in JUDGED_ON:
        found += lines(f"plants {seed}", plants(seed), fault_free(seed))
    found += lines("chosen on: plants", plants(CHOSEN_ON), fault_free(CHOSEN_ON))
    return found + lines("chosen on: held plants", held(0))


def real(folder: str) -> list[dict[str, Any]]:
    found = lines("recordings", recorded(folder, JUDGED, RECORDED_ON))
    return found + lines("chosen on: recordings", recorded(folder, CHOSEN, RECORDED_ON))


# ------------------------------------------------------------------------------------------------------------- tables


def total(rows: Rows, count: str) -> int:
    return sum(int(row[count]) for row in rows)


def part(some: int, every: int) -> str:
    return f"{some / every:.2f}" if every else ""


def right(rows: Rows) -> int:
    return sum(int(row[row["says"]]) for row in rows if row["says"])


def summary(rows: Rows) -> str:
    """A line for each source."""
    made = []
    for source in dict.fromkeys(row["source"] for row in rows):
        own = [row for row in rows if row["source"] == source]
        known = [row for row in own if row["says"]]
        alarmed, told = total(own, "alarmed"), total(known, "alarmed")
        answers = told - total(known, "unknown")
        parts = [
            *(part(total(own, count), alarmed) for count in ("first", "two", "named")),
            part(total(own, "some_first"), total(own, "some")),
        ]
        kinds = [part(answers, told), part(right(known), answers), part(right(known), told)]
        made.append([source, str(total(own, "faults")), str(alarmed), *parts, str(told), *kinds])
    heads = ("source", "faults", "alarmed", "sensor first", "one of two names", "names", "first, not all sensors")
    return markdown([*heads, "kind known", "answered", "right of the answers", "right of all"], made)


def confusion(rows: Rows, source: str) -> str:
    """What should be told, and how often each kind was."""
    made = []
    for says in (*KINDS[1:], ""):
        own = [row for row in rows if (row["source"], row["says"]) == (source, says)]
        made.append([says or "nobody can say", *(str(total(own, kind)) for kind in KINDS)])
    return markdown([source, *KINDS], made)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--held", action="store_true", help="plants that nobody has chosen a constant on; run this once"
    )
    parser.add_argument("--recorded", metavar="FOLDER", help="recordings by strangers, in this folder; see recorded.py")
    parser.add_argument("--show", action="store_true", help="only the tables of what was measured")
    options = parser.parse_args()
    end = "-held" if options.held else "-recorded" if options.recorded else ""
    path = DATA / f"alarms-blame{end}.csv"
    if options.show:
        rows = load(path)
    elif options.recorded:
        rows = save(path, real(options.recorded))
    else:
        rows = save(path, lines("second held plants", held_second.held(HELD_ON)) if options.held else public())
    print(summary(rows))
    if options.show:
        for source in dict.fromkeys(row["source"] for row in rows):
            print(confusion(rows, source))


if __name__ == "__main__":
    main()
