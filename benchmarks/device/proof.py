"""What Frama-C proves of the generated C, for small models of every rule and some of the usual sizes; writes docs/data/proof.csv
and docs/proof.md's tables.

    python -m benchmarks.device.proof [--only NAME …] [--level LEVEL …] [--timeout S] [-o docs]
    python -m benchmarks.device.proof --finite [--only NAME …] [--timeout S] [-o docs]

Each small program has 4 vectors of 2 inputs, unless its name says more.  "state": every call of the algorithms, from any state that
``load`` accepts; "snapshot": save, load, store, restore and wipe with any bytes.  Seconds are of the CPU; a call that takes more than --timeout (of the clock) is not proved.  A row is written when it is
measured: --only and --level go on where a run ended.

--finite: the level of that name instead, in a table of its own, docs/data/finite.csv.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.tables import DATA, Rows, load, markdown, merged, publish, save
from pykernel.spec.model import make_spec
from pykernel.workflows.prove import Proved, prove

LEVELS = ("state", "snapshot")
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


SIGNAL: dict[str, Any] = {
    "signal": {"channels": ["a", "b"], "max_abs": 10.0, "window": 16, "hop": 4},
    "label": {"max_abs": 5.0},
}
MEASURES = ["mean", "rms", "std", "min", "max", "range", "crossings", "change"]
"""Features that whole numbers have, too."""
STAGES: dict[str, Any] = {
    "input": {"dim": 2, "max_abs": 4.0},
    "label": {"max_abs": 4.0, "center": True, "gain": True, "low": -3.0, "high": 3.0},
    "linear": {"eta": 0.05},
}


def signal(**keys: Any) -> dict[str, Any]:
    """A model with 4 vectors of a window's features."""
    given = SIGNAL | {"signal": SIGNAL["signal"] | keys}
    return given | {"kernel": {"sigma": 1.0}, "learning": {"rule": "klms"}, "reduction": {"n_max": 4}}


SMALL: dict[str, dict[str, Any]] = {
    "default": TWO,
    "default, n_max": TWO | {"reduction": {"n_max": 4}},
    "klms, nt": online("klms", "nt"),
    "klms, mklms": online("klms", "mklms"),
    "klms, fklms": online("klms", "fklms"),
    "klms, ls": online("klms", "ls"),
    "qklms": online("qklms", quantisation=0.5),
    "krls-t": online("krls-t", "mklms"),
    "fb-krls": online("fb-krls"),
    "sw-krls": online("sw-krls"),
    "ald-krls": online("ald-krls"),
    "knlms": online("knlms"),
    "nlms": TWO | {"learning": {"rule": "nlms"}},
    "rls": TWO | {"learning": {"rule": "rls"}},
    "quadratic-rls": TWO | {"learning": {"rule": "quadratic-rls"}},
    "rff-rls": TWO | {"kernel": {"sigma": 1.0}, "learning": {"rule": "rff-rls", "features": 4}},
    "expansion-nlms": FROZEN | {"learning": {"rule": "expansion-nlms"}, "expansion": {"vectors": VECTORS}},
    "expansion-rls": FROZEN | {"learning": {"rule": "expansion-rls"}, "expansion": {"vectors": VECTORS}},
    "expansion-softmax": FROZEN
    | {
        "kernel": {"function": "relu"},
        "learning": {"rule": "expansion-softmax"},
        "label": {"classes": ["a", "b", "c"]},
    },
    "spectrum-nlms": TWO | {"kernel": {"sigma": 1.0}, "learning": {"rule": "spectrum-nlms", "features": 4}},
    "spectrum-softmax": TWO
    | {"kernel": {"sigma": 1.0}, "learning": {"rule": "spectrum-softmax", "features": 4}}
    | {"label": {"classes": ["a", "b", "c"]}},
    "krr": TWO | {"kernel": {"sigma": 1.0}, "learning": {"rule": "krr", "samples": 4}},
    "ls-svm": TWO | {"kernel": {"sigma": 1.0}, "learning": {"rule": "ls-svm", "samples": 4}},
    "kfd": FROZEN
    | {"learning": {"rule": "kfd"}, "expansion": {"vectors": VECTORS}, "label": {"classes": ["a", "b", "c"]}},
    "nystrom": FROZEN | {"learning": {"rule": "nystrom"}},
    "nystrom-rls": online("nystrom-rls", samples=8) | {"basis": {"method": "stream"}},
    "okfeb": online("okfeb", features=4),
    "[novelty] alone": TWO | {"novelty": {}},
    "frozen": FROZEN,
    "frozen, a range for each input": FROZEN | {"input": FROZEN["input"] | {"max_abs": [4.0, 2.0]}},
    "frozen, products": FROZEN | {"expansion": FROZEN["expansion"] | {"distance": "products"}},
    "stages": online("klms") | STAGES | {"input": {"dim": 2, "max_abs": 4.0, "standardise": True}},
    "[signal], 16 samples": signal(features=MEASURES),
    "[signal], spectrum": signal(
        features=["rms", "centroid", "dominant", "flatness"], rate=100.0, bands=[[10.0, 30.0]]
    ),
    "[signal], lags": {
        "signal": {"channels": ["a", "b"], "max_abs": 10.0, "lags": [0, 2], "periods": [7]},
        "label": {"column": "a"},
    },
    "int16 klms": WHOLE | {"kernel": {"sigma": 1.0}, "learning": {"rule": "klms"}, "reduction": {"n_max": 4}},
    "int16 qklms": WHOLE | {"kernel": {"sigma": 1.0}, "learning": {"rule": "qklms"}, "reduction": {"n_max": 4}},
    "int16 nlms": WHOLE | {"learning": {"rule": "nlms"}},
    "int16 rls": WHOLE | {"learning": {"rule": "rls"}},
    "int16 default": WHOLE,
    "int16 spectrum-nlms": WHOLE | {"kernel": {"sigma": 1.0}, "learning": {"rule": "spectrum-nlms", "features": 4}},
    "int16 frozen": FROZEN | {"precision": "int16"},
    **{
        f"int16 {rule}": FROZEN | {"precision": "int16", "label": {"max_abs": 4.0}, "learning": {"rule": rule}}
        for rule in ("expansion-nlms", "expansion-rls")
    },
    "int16 expansion-softmax": FROZEN
    | {"precision": "int16", "kernel": {"function": "tanh"}, "learning": {"rule": "expansion-softmax"}}
    | {"label": {"classes": ["a", "b"]}},
    "int16 expansion-softmax, three": FROZEN
    | {"precision": "int16", "learning": {"rule": "expansion-softmax"}, "label": {"classes": ["a", "b", "c"]}}
    | {"expansion": {"vectors": VECTORS, "weights": [[0.5, -1.0, 0.25]] * 4, "bias": [0.25, 0.0, -0.25]}},
    "int16 stages": WHOLE
    | {"kernel": {"sigma": 1.0}, "learning": {"rule": "klms"}, "reduction": {"n_max": 4}}
    | STAGES,
    "int16 [signal]": signal(features=MEASURES) | {"precision": "int16"},
}
USUAL: dict[str, dict[str, Any]] = {
    "flow: klms, mklms, 16 vectors, 3 inputs": {
        "input": {"columns": ["temperature", "pressure", "valve"], "max_abs": 10.0},
        "label": {"column": "flow", "max_abs": 100.0},
        "kernel": {"sigma": 1.5},
        "learning": {"rule": "klms", "eta": 0.4, "rho": 0.001},
        "reduction": {"technique": "mklms", "n_max": 16},
    },
    "default, 6 inputs": {"input": {"dim": 6}},
    "int16 default, 6 inputs": WHOLE | {"input": {"dim": 6, "max_abs": 4.0}},
    "[signal], 256 samples of 3 channels": {
        "signal": {
            "channels": ["a", "b", "c"],
            "max_abs": 10.0,
            "rate": 1000.0,
            "window": 256,
            "hop": 64,
            "features": ["rms", "crest", "kurtosis"],
            "bands": [[10.0, 50.0], [50.0, 150.0], [150.0, 400.0]],
        },
        "label": {"max_abs": 5.0},
        "learning": {"rule": "nlms"},
    },
}
"""Models of usual sizes."""
PROGRAMS = SMALL | USUAL


FINITE: dict[str, dict[str, Any]] = {
    "klms, nt": SMALL["klms, nt"],
    "klms, nt, 2 outputs": SMALL["klms, nt"] | {"label": {"outputs": 2}},
    "klms, at": online("klms", "at"),
    **{
        name: SMALL[name] for name in ("knlms", "nlms", "expansion-nlms", "expansion-rls", "frozen", "frozen, products")
    },
    **{name: SMALL[name] for name in ("spectrum-nlms", "spectrum-softmax")},
    "spectrum-ekf": TWO | {"kernel": {"sigma": 1.0}, "learning": {"rule": "spectrum-ekf", "features": 4}},
    **{name: SMALL[name] for name in ("rls", "klms, mklms", "default, n_max", "[novelty] alone")},
}
"""Programs of the level "finite"."""


def counted(found: Proved) -> dict[str, Any]:
    return {
        "calls": len(found.calls),
        "alarms": len(found.findings),
        "ranges": sum(row["ranges"] for row in found.calls),
        "proved": sum(row["proved_ranges"] for row in found.calls),
        "seconds": f"{found.seconds:.0f}",
    }


def measure_finite(program: str, timeout: float) -> dict[str, Any]:
    found = prove(make_spec({"name": "m", **FINITE[program]}), from_="finite", timeout=timeout)
    left = "; ".join(f"{row['call']} {row['why']}" for row in found.calls if not row["proved"])
    return {"program": program, **counted(found), "left": left, "config_hash": found.config_hash}


def table_finite(rows: Rows) -> str:
    heads = ("program", "alarms", "limits and answers", "CPU s", "not proved")
    return markdown(
        heads,
        [
            [row["program"], row["alarms"], f"{row['proved']} of {row['ranges']}", row["seconds"], row["left"] or "–"]
            for row in rows
        ],
    )


def measure(program: str, level: str, timeout: float) -> dict[str, Any] | None:
    """A row; None if the program keeps nothing that a snapshot could have."""
    spec = make_spec({"name": "m", **PROGRAMS[program]})
    if level == "snapshot" and not spec.program.persistent:
        return None
    found = prove(spec, from_=level, timeout=timeout)
    left = " ".join(row["call"] for row in found.calls if not row["proved"])
    return {"program": program, "level": level, **counted(found), "not_proved": left, "config_hash": found.config_hash}


def kept(path: Path, row: dict[str, Any]) -> None:
    """Write a row in place of the one of the same program and level."""
    rows = [r for r in load(path) if r["program"] in PROGRAMS] if path.is_file() else []
    # another model of the same name is another row
    rows = [
        r
        for r in rows
        if r["program"] != row["program"] or (r["level"] != row["level"] and r["config_hash"] == row["config_hash"])
    ]
    order = list(PROGRAMS)
    save(path, sorted([*rows, row], key=lambda r: (order.index(r["program"]), LEVELS.index(r["level"]))))


def table(rows: Rows, programs: Iterable[str]) -> str:
    def shown(program: str, level: str) -> list[str]:
        found = [row for row in rows if (row["program"], row["level"]) == (program, level)]
        if not found:
            return ["–"] * (3 if level == "state" else 2)
        (row,) = found
        left = f": {row['not_proved'].replace(' ', ', ')}" if row["not_proved"] else ""
        alarms = f"{row['alarms']}{left}"
        return [alarms, *([f"{row['proved']} of {row['ranges']}"] if level == "state" else []), row["seconds"]]

    heads = ("program", "alarms", "ranges", "CPU s", "snapshots: alarms", "CPU s")
    measured = {row["program"] for row in rows}
    return markdown(
        heads,
        [[name, *(cell for level in LEVELS for cell in shown(name, level))] for name in programs if name in measured],
    )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=list(PROGRAMS | FINITE))
    parser.add_argument("--level", nargs="+", choices=LEVELS, default=list(LEVELS))
    parser.add_argument("--finite", action="store_true")
    parser.add_argument("--timeout", type=float, default=60.0)
    parser.add_argument("-o", "--output", type=Path, default=DATA.parent)
    given = parser.parse_args(arguments)
    path = given.output / "data" / ("finite.csv" if given.finite else "proof.csv")
    if given.finite:
        for program in given.only or FINITE:
            row = measure_finite(program, given.timeout)
            save(path, merged(path, [row], "program", [program], list(FINITE)))
            print(row, flush=True)
    else:
        for level in given.level:
            for program in given.only or PROGRAMS:
                row = measure(program, level, given.timeout)
                if row is not None:
                    kept(path, row)
                    print(row, flush=True)
    rows = load(path)
    if given.output == DATA.parent:
        publish(
            {"finite": table_finite(rows)}
            if given.finite
            else {"proofs": table(rows, SMALL), "usual sizes": table(rows, USUAL)}
        )


if __name__ == "__main__":
    main()
