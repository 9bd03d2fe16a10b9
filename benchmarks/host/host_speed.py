"""Predictions and updates per second on this host, Numba beside the generated C, for several numbers of inputs.

One thread's CPU time, float32, one run: each cell is the best of a few repetitions, Numba's and C's taking turns.  How
the cost grows with N, for every technique and rule: update_cost.py.  The budget is
full, the vectors lie apart, the labels are noise and multipliers decay, so that nearly every update does the whole
work of a reduction: "replaced" is the part of them that exchanged a vector; the others weighed every candidate and
discarded the sample.

    python -m benchmarks.host.host_speed [--seconds 0.2]
"""

import argparse
import time
from collections.abc import Callable

import numpy as np

from pykernel.algorithms.online.klms import KLMS
from pykernel.gen.binding import CModel
from pykernel.gen.compilers import find_compilers
from pykernel.gen.project import build
from pykernel.host.model import HostModel
from pykernel.spec.model import Spec, make_spec

Status = KLMS["real"].status

BUDGETS, DIMENSIONS = (8, 32, 128), (1, 8, 32)
TECHNIQUES = ("nt", "fklms", "mklms")
REPETITIONS = 5

Rates = tuple[Callable[[int], float], Callable[[int], float]]  # seconds for that many predictions, updates


def spec_of(technique: str, n_max: int, dim: int) -> Spec:
    return make_spec(
        {
            "name": "speed",
            "input": {"dim": dim},
            "kernel": {"sigma": 1.0},
            "learning": {"rule": "klms", "eta": 0.5, "rho": 0.1},
            "reduction": {"technique": technique, "n_max": n_max},
        }
    )


def samples(spec: Spec, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Inputs about two widths apart if there are N of them, and noise."""
    rng = np.random.default_rng(0)
    reach = spec.reduction.n_max if spec.dim == 1 else 2.0
    return rng.uniform(-reach, reach, (count, spec.dim)).astype(np.float32), rng.normal(size=count).astype(np.float32)


class Stream:
    """Rows in turn: those just learned would be repeats of stored vectors, which cost nothing."""

    def __init__(self, spec: Spec) -> None:
        self.x, self.y = samples(spec, 40_000)
        self.at = 0

    def next(self, count: int) -> tuple[np.ndarray, np.ndarray]:
        if self.at + count > len(self.x):
            self.at = 0
        rows = slice(self.at, self.at + count)
        self.at += count
        return self.x[rows], self.y[rows]


def numba_rate(spec: Spec) -> tuple[Rates, float]:
    """How long Numba takes, with the part of updates that replace a vector."""
    model = HostModel(spec, engine="numba")
    stream = Stream(spec)
    model.update(*stream.next(2000))
    replaced = float(np.mean(model.update(*stream.next(2000)) == Status.REPLACED))
    model.predict(stream.x[:1])
    return (
        lambda count: seconds(model.predict, stream.x[:count]),
        lambda count: seconds(model.update, *stream.next(count)),
    ), replaced


def c_rate(spec: Spec) -> Rates | None:
    """How long the generated C takes, through cffi; None without a compiler."""
    found = find_compilers()
    if not found:
        return None
    model = CModel(build(spec), found[0], ("-O3",))
    stream = Stream(spec)
    model.prequential(*stream.next(4000), predict=False)
    return (
        lambda count: seconds(model.prequential, stream.x[:count], stream.y[:count], False),
        lambda count: seconds(model.prequential, *stream.next(count), True, False),
    )


def seconds(call: Callable, *args: object) -> float:
    start = time.thread_time()
    call(*args)
    return time.thread_time() - start


def fastest(measures: list[Callable[[int], float]], budget: float) -> list[float]:
    """Calls per second of each, the best of some repetitions, taking turns."""
    counts = [max(10, min(20_000, int(100 * budget / REPETITIONS / max(measure(100), 1e-7)))) for measure in measures]
    best = [0.0] * len(measures)
    for _ in range(REPETITIONS):
        for i, (measure, count) in enumerate(zip(measures, counts, strict=True)):
            best[i] = max(best[i], count / measure(count))
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=0.2, help="time for each cell")
    budget = parser.parse_args().seconds

    found = find_compilers()
    print(f"C: {found[0] if found else 'no compiler found'}, -O3; thousands per second, C / Numba in brackets\n")
    print("| technique | N | D | predictions, Numba | predictions, C | updates, Numba | updates, C | replaced |")
    print("|---|---|---|---|---|---|---|---|")
    for technique in TECHNIQUES:
        for n_max in BUDGETS:
            for dim in DIMENSIONS:
                spec = spec_of(technique, n_max, dim)
                numba, replaced = numba_rate(spec)
                c = c_rate(spec)
                cells = []
                for kind in range(2):
                    rates = fastest([numba[kind]] + ([c[kind]] if c else []), budget)
                    cells += [f"{rates[0] / 1e3:,.0f}"]
                    cells += [f"{rates[1] / 1e3:,.0f} ({rates[1] / rates[0]:.2f})" if c else "-"]
                print(f"| {technique} | {n_max} | {dim} | {' | '.join(cells)} | {replaced:.0%} |", flush=True)


if __name__ == "__main__":
    main()
