"""What Frama-C proves of the generated C, for small models of many rules; writes docs/data/proof.csv and docs/proof.md's table.

    python -m benchmarks.device.proof [--only NAME …] [--timeout S] [-o docs]
    python -m benchmarks.device.proof --finite [--only NAME …] [--timeout S] [-o docs]

Each program has 4 vectors of 2 inputs, unless its name says more.  "state": every call of the algorithms, from any state that
``load`` accepts; "snapshot": save, load, store, restore and wipe with any bytes; "wild": the calls with any bytes in the
model.  Seconds are of the CPU; a call that takes more than --timeout (of the clock) is not proved.

--finite: the level of that name instead, in a table of its own, docs/data/finite.csv.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.tables import DATA, ROOT, Rows, load, markdown, merged, place, save
from pykernel.files import whole_file
from pykernel.spec.model import make_spec
from pykernel.workflows.prove import prove

PAGE = ROOT / "docs" / "proof.md"
COLUMNS = ("program", "level", "calls", "alarms", "ranges", "proved", "seconds", "not_proved", "config_hash")
VECTORS = [[0.5, -0.25], [-1.0, 0.75], [0.25, 0.5], [1.0, 1.0]]
FROZEN: dict[str, Any] = {
    "input": {"dim": 2, "max_abs": 4.0},
    "kernel": {"sigma": 1.0},
    "learning": {"rule": "frozen"},
    "expansion": {"vectors": VECTORS, "weights": [[0.5], [-1.0], [0.75], [0.25]], "bias": [0.25]},
}
TWO: dict[str, Any] = {"input": {"dim": 2}}
WHOLE: dict[str, Any] = {"precision": "int16", "input": {"dim": 2, "max_abs": 4.0}, "label": {"max_abs": 4.0}}


def online(rule: str, technique: str | None = None, **keys: Any) -> dict[str, Any]:
    """A model with 4 vectors."""
    chosen = {"technique": technique} if technique else {}
    learning = {"rule": rule, **keys}
    return TWO | {"kernel": {"sigma": 1.0}, "learning": learning, "reduction": {"n_max": 4, **chosen}}


PROGRAMS: dict[str, dict[str, Any]] = {
    "default": TWO | {"reduction": {"n_max": 4}},
    "klms, nt": online("klms", "nt"),
    "klms, mklms": online("klms", "mklms"),
    "qklms": online("qklms", quantisation=0.5),
    "krls-t": online("krls-t", "mklms"),
    "rls": TWO | {"learning": {"rule": "rls"}},
    "[novelty] alone": TWO | {"novelty": {}},
    "frozen": FROZEN,
    "frozen, products": FROZEN | {"expansion": FROZEN["expansion"] | {"distance": "products"}},
    "int16 klms": WHOLE | {"kernel": {"sigma": 1.0}, "learning": {"rule": "klms"}, "reduction": {"n_max": 4}},
    "int16 default": WHOLE | {"reduction": {"n_max": 4}},
    "int16 frozen": FROZEN | {"precision": "int16"},
}


FEW: dict[str, Any] = {"kernel": {"sigma": 1.0}}
FINITE: dict[str, dict[str, Any]] = {
    "klms, nt": PROGRAMS["klms, nt"],
    "klms, nt, 2 outputs": PROGRAMS["klms, nt"] | {"label": {"outputs": 2}},
    "klms, at": online("klms", "at"),
    "knlms": online("knlms"),
    "nlms": TWO | {"learning": {"rule": "nlms"}},
    "expansion-nlms": TWO | FEW | {"learning": {"rule": "expansion-nlms"}, "expansion": {"vectors": VECTORS}},
    "expansion-rls": TWO | FEW | {"learning": {"rule": "expansion-rls"}, "expansion": {"vectors": VECTORS}},
    "frozen": FROZEN,
    "frozen, products": PROGRAMS["frozen, products"],
    "spectrum-nlms": TWO | FEW | {"learning": {"rule": "spectrum-nlms", "features": 4}},
    "spectrum-softmax": TWO
    | FEW
    | {"learning": {"rule": "spectrum-softmax", "features": 4}, "label": {"classes": ["a", "b", "c"]}},
    "spectrum-ekf": TWO | FEW | {"learning": {"rule": "spectrum-ekf", "features": 4}},
    "rls": PROGRAMS["rls"],
    "klms, mklms": PROGRAMS["klms, mklms"],
    "default": PROGRAMS["default"],
    "[novelty] alone": PROGRAMS["[novelty] alone"],
}
"""Programs of the level "finite"."""


def measure_finite(program: str, timeout: float) -> dict[str, Any]:
    found = prove(make_spec({"name": "m", **FINITE[program]}), level="finite", timeout=timeout)
    row = {
        "program": program,
        "calls": len(found.rows),
        "alarms": len(found.alarms),
        "ranges": sum(row["ranges"] for row in found.rows),
        "proved": sum(row["proved_ranges"] for row in found.rows),
        "seconds": f"{found.seconds:.0f}",
        "left": "; ".join(f"{row['call']} {row['why']}" for row in found.rows if not row["proved"]),
        "config_hash": found.config_hash,
    }
    print(row, flush=True)
    return row


def table_finite(rows: Rows) -> str:
    heads = ("program", "alarms", "limits and answers", "CPU s", "not proved")
    return markdown(
        heads,
        [
            [row["program"], row["alarms"], f"{row['proved']} of {row['ranges']}", row["seconds"], row["left"] or "–"]
            for row in rows
        ],
    )


def measure(program: str, timeout: float) -> list[dict[str, Any]]:
    spec = make_spec({"name": "m", **PROGRAMS[program]})
    rows = []
    for level in ("state", "snapshot", "wild"):
        if level == "snapshot" and not spec.program.persistent:
            continue
        found = prove(spec, level=level, timeout=timeout)
        rows.append(
            {
                "program": program,
                "level": level,
                "calls": len(found.rows),
                "alarms": len(found.alarms),
                "ranges": sum(row["ranges"] for row in found.rows),
                "proved": sum(row["proved_ranges"] for row in found.rows),
                "seconds": f"{found.seconds:.0f}",
                "not_proved": " ".join(row["call"] for row in found.rows if not row["proved"]),
                "config_hash": found.config_hash,
            }
        )
        print(rows[-1], flush=True)
    return rows


def table(rows: Rows) -> str:
    def shown(program: str, level: str) -> list[str]:
        found = [row for row in rows if (row["program"], row["level"]) == (program, level)]
        if not found:
            return ["–"] * (3 if level == "state" else 1)
        (row,) = found
        left = f": {row['not_proved'].replace(' ', ', ')}" if row["not_proved"] else ""
        alarms = f"{row['alarms']}{left}"
        return [alarms, f"{row['proved']} of {row['ranges']}", row["seconds"]] if level == "state" else [alarms]

    heads = ("program", "alarms", "ranges", "CPU s", "snapshots: alarms", "any bytes in the model: alarms")
    programs = list(dict.fromkeys(row["program"] for row in rows))
    return markdown(
        heads, [[name, *shown(name, "state"), *shown(name, "snapshot"), *shown(name, "wild")] for name in programs]
    )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=list(PROGRAMS | FINITE))
    parser.add_argument("--finite", action="store_true")
    parser.add_argument("--timeout", type=float, default=600.0)
    parser.add_argument("-o", "--output", type=Path, default=DATA.parent)
    given = parser.parse_args(arguments)
    programs = list(FINITE if given.finite else PROGRAMS)
    path = given.output / "data" / ("finite.csv" if given.finite else "proof.csv")
    for program in given.only or programs:
        rows = [measure_finite(program, given.timeout)] if given.finite else measure(program, given.timeout)
        save(path, merged(path, rows, "program", [program], programs))
    page = given.output / PAGE.name
    if page.is_file():
        name, shown = ("finite", table_finite) if given.finite else ("proofs", table)
        text = place(page.read_text(encoding="utf-8"), name, shown(load(path)))
        with whole_file(page) as file:
            file.write(text.encode())


if __name__ == "__main__":
    main()
