"""How many lost neighbours the fast techniques search for in an update; writes docs/data/searches.csv.

    python -m benchmarks.host.searches [--samples 8000] [-o docs]

The generated C of FKLMS and FMKLMS counts its calls of find_neighbour, once as it is and once without the limit of
``pykernel.algorithms.online.reduction.SEARCHES`` in a choice.  Seven streams: uniform, normal, a random walk, clusters, a lattice (exact ties),
sines, and points around one in the middle, which is the nearest of many.  "limited" is the part of updates in which a choice
without the limit searches more often than the limit allows.  With ``when = "before"`` a choice searches for what it does not
need, too, as long as the limit allows: without a limit it would search for all.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.tables import DATA, save
from pykernel.algorithms.online.state import SEARCHES
from pykernel.gen.binding import CModel
from pykernel.gen.compilers import compiler
from pykernel.gen.project import build
from pykernel.spec.model import make_spec

SIZES = ((16, 2), (32, 8), (64, 3))
UNLIMITED = 1_000_000


def counting(source: str, limit: int) -> str:
    """The C with a counter of searches, and with this limit."""
    head, name, rest = source.partition("static void m_find_neighbour(")
    if not name:
        return source
    before, comment, after = head.rpartition("/*")
    counter = "static int searches;\nint m_searches(void);\nint m_searches(void) { int n = searches; searches = 0; return n; }\n"
    signature, brace, body = rest.partition("{")
    made = f"{before}{counter}{comment}{after}{name}{signature}{brace} searches++;{body}"
    start = made.index("{", made.index("static void m_resolve_neighbours("))
    # it remembers the first ones only: there is no place for more, and no update of these streams is refused
    for old, new in (
        (f"turn < {SEARCHES};", f"turn < {limit};"),
        ("if (lost < s->n) {", f"if ((lost < s->n) && (turn < {SEARCHES})) {{"),
    ):
        assert old in made[start:], old
        made = made[:start] + made[start:].replace(old, new, 1)
    return made


def model_of(technique: str, when: str, n_max: int, dim: int, limit: int) -> CModel:
    content = {
        "name": "m",
        "input": {"dim": dim, "max_abs": 1e6},
        "kernel": {"sigma": 1.0},
        "learning": {"rule": "klms"},
    }
    spec = make_spec({**content, "reduction": {"technique": technique, "n_max": n_max, "when": when}})
    model = CModel(build(spec), compiler("gcc"), ("-O2",), patch=lambda source: counting(source, limit))
    model._ffi.cdef("int m_searches(void);")
    return model


def streams(dim: int, count: int) -> Iterator[tuple[str, np.ndarray]]:
    rng = np.random.default_rng(0)
    yield "uniform", rng.uniform(-3, 3, (count, dim))
    yield "normal", rng.normal(size=(count, dim))
    walk = np.cumsum(0.1 * rng.normal(size=(count, dim)), axis=0)
    yield "walk", walk - 6 * np.round(walk / 6)
    yield "clusters", 3 * rng.normal(size=(5, dim))[rng.integers(0, 5, count)] + 0.1 * rng.normal(size=(count, dim))
    yield "lattice", np.round(2 * rng.normal(size=(count, dim))) / 2
    yield "sines", np.sin(np.arange(count)[:, None] / 20 + np.arange(dim))
    around = rng.normal(size=(count, dim))
    around /= np.linalg.norm(around, axis=1, keepdims=True)
    around[::7] *= 0.01
    yield "around one", 2 * around


def counts(model: CModel, x: np.ndarray) -> np.ndarray:
    found = []
    for row in x:
        model.prequential(row[None], np.sin(row.sum())[None], predict=False)
        found.append(model._lib.m_searches())
    return np.array(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=8000)
    parser.add_argument("-o", "--output", type=Path, default=DATA)
    given = parser.parse_args()
    rows = []
    for technique in ("fklms", "fmklms"):
        for when in ("after", "before"):
            for n_max, dim in SIZES:
                for name, x in streams(dim, given.samples):
                    limited = counts(model_of(technique, when, n_max, dim, SEARCHES), x)
                    free = counts(model_of(technique, when, n_max, dim, UNLIMITED), x) if when == "after" else None
                    rows.append(
                        {
                            "technique": technique,
                            "when": when,
                            "n_max": n_max,
                            "dim": dim,
                            "stream": name,
                            "mean": f"{limited.mean():.3f}",
                            "most": int(limited.max()),
                            "mean_unlimited": "" if free is None else f"{free.mean():.3f}",
                            "most_unlimited": "" if free is None else int(free.max()),
                            "limited": "" if free is None else f"{(free > SEARCHES).mean():.4f}",
                        }
                    )
                    print(*rows[-1].values(), flush=True)
    save(given.output / "searches.csv", rows)


if __name__ == "__main__":
    main()
