"""Time of one update against the budget N, of every technique and kernel rule: Numba, the generated C, and baselines.

    python -m benchmarks.host.update_cost [--rounds 9] [--dlib INCLUDE] [--blas LIBRARY] [-o docs] [--quick]

One thread, float32, 4 inputs.  All contenders of all budgets take turns in one process, a block of updates each; a cell
is the median over the rounds.  CPU time of the thread is what counts, so that others on the machine disturb through
caches and clocks only.  The stream keeps every technique busy: samples fill a box whose volume grows with N (the mean
spacing is two kernel widths, whatever N), labels are noise, multipliers decay.  "replaced" is the part of updates that
exchanged a vector; the others weighed all candidates and discarded the sample, which costs less.

Baselines: dlib's krls (headers: Debian's libdlib-dev, or --dlib; --blas is linked if given, dlib's own loops run
otherwise), and the report's procedure in NumPy, which inverts every candidate's K_RR afresh.

Writes update-cost.csv and update-cost.png to the output folder and the tables into docs/benchmarks.md.
"""

from __future__ import annotations

import os

from benchmarks.tables import DATA

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy is loaded

import argparse
import ctypes
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.tables import Rows, load, markdown, progress_bar, publish, save
from pykernel.algorithms.online.klms import KLMS
from pykernel.algorithms.online.techniques import TECHNIQUES
from pykernel.errors import UserError
from pykernel.files import whole_file
from pykernel.gen.binding import CModel
from pykernel.gen.compilers import Compiler, compiler
from pykernel.gen.project import build
from pykernel.host.model import HostModel
from pykernel.spec.model import Spec, make_spec

Status = KLMS["real"].status

DIM = 4
BUDGETS = (8, 16, 32, 64, 128, 256)
FITTED_FROM = 32
ROUNDS = 9
BLOCK_SECONDS = 0.008
STREAM = 20_000
ALD_THRESHOLD, RIDGE, ETA, RHO = 2e-3, 1e-3, 0.5, 0.1
LONGEST_UPDATE = 0.5
"""Seconds of one update beyond which a baseline is not asked for larger budgets."""

FAST = ("nt", "at", "fklms", "fmklms", "afklms", "afmklms", "qklms, nt", "knlms")
PRESETS: dict[str, dict[str, dict[str, Any]]] = {
    **{
        name: {"learning": {"rule": "klms", "eta": ETA, "rho": RHO}, "reduction": {"technique": name}}
        for name in TECHNIQUES
    },
    "qklms, nt": {"learning": {"rule": "qklms", "eta": ETA, "rho": RHO}, "reduction": {"technique": "nt"}},
    "krls-t, sup": {"learning": {"rule": "krls-t", "forgetting": 0.99}, "reduction": {"technique": "sup"}},
    "fb-krls, sup": {"learning": {"rule": "fb-krls"}, "reduction": {"technique": "sup"}},
    "sw-krls": {"learning": {"rule": "sw-krls"}, "reduction": {}},
    "ald-krls": {"learning": {"rule": "ald-krls"}, "reduction": {}},
    "knlms": {"learning": {"rule": "knlms", "eta": ETA}, "reduction": {}},
}
"""Every technique under the paper's rule, and the other kernel rules."""
LIMITS = {True: 1.2, False: 2.2}
"""Largest exponents that were aimed at: with and without a Gram matrix (FAST)."""

COLUMNS = ("preset", "runtime", "n", "microseconds", "per_mklms", "replaced", "refused")


def spec_of(preset: str, n_max: int, precision: str = "float32") -> Spec:
    content = PRESETS[preset]
    return make_spec(
        {
            "name": "busy",
            "precision": precision,
            "input": {"dim": DIM},
            "kernel": {"sigma": 1.0},
            "learning": content["learning"],
            "reduction": {**content["reduction"], "n_max": n_max},
        }
    )


def stream(n_max: int, count: int = STREAM) -> tuple[np.ndarray, np.ndarray]:
    """Inputs two widths apart in the mean if there are N of them, and noise; a longer stream begins with a shorter."""
    inputs, noise = np.random.default_rng(n_max), np.random.default_rng((n_max, 1))
    reach = float(n_max) ** (1 / DIM)
    return inputs.uniform(-reach, reach, (count, DIM)).astype(np.float32), noise.normal(size=count).astype(np.float32)


def filling(n_max: int) -> int:
    """Samples after which a budget is full and has been exchanged a few times."""
    return 4 * n_max + 200


@dataclass
class Contender:
    """Something that learns a stream.  learn: (inputs, labels) -> statuses, if it has any."""

    preset: str
    runtime: str
    n: int
    learn: Callable[[np.ndarray, np.ndarray], Any]
    x: np.ndarray
    y: np.ndarray
    at: int = 0
    block: int = 1
    times: list[float] = field(default_factory=list)
    statuses: Counter[int] = field(default_factory=Counter)

    def begin(self, seconds: float) -> None:
        """Fill the budget and choose how many updates a turn has."""
        self.step(min(filling(self.n), len(self.x) // 2))
        first = self.step(1)
        trial = self.step(20) if first < 0.05 else first
        self.block = max(1, min(len(self.x), int(seconds / trial)))
        self.statuses.clear()

    def step(self, count: int) -> float:
        """Learn so many samples; CPU seconds for each."""
        if self.at + count > len(self.x):
            self.at = 0
        rows = slice(self.at, self.at + count)
        self.at += count
        x, y = self.x[rows], self.y[rows]
        start = time.thread_time()
        statuses = self.learn(x, y)
        seconds = time.thread_time() - start
        if statuses is not None:
            self.statuses.update(dict(zip(*(a.tolist() for a in np.unique(statuses, return_counts=True)), strict=True)))
        return seconds / count

    def turn(self) -> None:
        self.times.append(self.step(self.block))

    @property
    def microseconds(self) -> float:
        return 1e6 * float(np.median(self.times))

    def share(self, *kinds: int) -> float | None:
        """The part of updates that ended so."""
        total = sum(self.statuses.values())
        return sum(self.statuses[kind] for kind in kinds) / total if total else None


# ------------------------------------------------------------------------------------------------------- baselines


class FromScratch:
    """The report's MKLMS: after each presentation every candidate's K_RR is inverted.  O(N^4) for an update."""

    def __init__(self, n_max: int, sigma: float = 1.0) -> None:
        self.n_max, self.gamma = n_max, 0.5 / sigma**2
        self.v, self.alpha = np.zeros((0, DIM)), np.zeros(0)

    def kernel(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return np.exp(-self.gamma * ((a[:, None] - b[None]) ** 2).sum(-1))

    def predict(self, x: np.ndarray) -> np.ndarray:
        return self.kernel(np.atleast_2d(x), self.v) @ self.alpha

    def update(self, x: np.ndarray, y: np.ndarray) -> None:
        for row, label in zip(x.astype(float), y, strict=True):
            error = label - (self.predict(row)[0] if len(self.v) else 0.0)
            self.alpha = np.append((1 - ETA * RHO) * self.alpha, ETA * error)
            self.v = np.vstack([self.v, row])
            if len(self.v) > self.n_max:
                self.reduce()

    def reduce(self) -> None:
        gram = self.kernel(self.v, self.v) + RIDGE * np.eye(len(self.v))
        scores, shares = np.zeros(len(gram)), []
        for i in range(len(gram)):
            rest = np.delete(np.arange(len(gram)), i)
            shares.append(np.linalg.inv(gram[np.ix_(rest, rest)]) @ gram[rest, i])
            scores[i] = self.alpha[i] ** 2 * (gram[i, i] - gram[i, rest] @ shares[i])
        r = int(np.argmin(scores))
        self.alpha = np.delete(self.alpha, r) + shares[r] * self.alpha[r]
        self.v = np.delete(self.v, r, axis=0)


class Dlib:
    """dlib's krls as a shared library.  Raises UserError where it cannot be built."""

    def __init__(self, include: str | None = None, blas: str | None = None) -> None:
        # loaded, the file may go
        with tempfile.TemporaryDirectory(prefix="pykernel-") as folder:
            self.library = self.compile(Path(folder) / "krls.so", include, blas)
        self.library.begin.restype = ctypes.c_void_p
        self.library.begin.argtypes = (ctypes.c_double, ctypes.c_double, ctypes.c_long)
        self.library.learn.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_long)
        self.library.size.argtypes = (ctypes.c_void_p,)

    def compile(self, library: Path, include: str | None, blas: str | None) -> ctypes.CDLL:
        words = ["g++", "-O3", "-shared", "-fPIC", "-DREAL=float", f"-DDIM={DIM}", "-o", str(library)]
        words += [f"-I{include}"] if include else []
        words.append(str(Path(__file__).parent / "dlib_krls" / "krls.cpp"))
        # Debian's headers ask for a BLAS; without its bindings dlib takes its own loops
        words += [blas, f"-Wl,-rpath,{Path(blas).resolve().parent}"] if blas else ["-DDLIB_MATRIx_BLAS_BINDINGS_"]
        try:
            run = subprocess.run(words, capture_output=True, text=True)
        except OSError as error:
            raise UserError(f"dlib: g++ does not run ({error.strerror}); install it, or leave dlib out") from None
        if run.returncode:
            first = next((line for line in run.stderr.splitlines() if "error" in line), "no message")
            raise UserError(f"dlib: {first.strip()}; install libdlib-dev, or give --dlib")
        try:
            return ctypes.CDLL(str(library))
        except OSError as error:
            raise UserError(f"dlib: {error}; give --blas another library, or leave it out") from None

    def learner(self, n_max: int) -> Callable[[np.ndarray, np.ndarray], None]:
        model = self.library.begin(0.5, ALD_THRESHOLD, n_max)
        return lambda x, y: self.library.learn(model, x.ctypes.data, y.ctypes.data, len(x))


# --------------------------------------------------------------------------------------------------- measuring


def kernel_models(presets: Sequence[str], budgets: Sequence[int], tick: Callable[[], None]) -> list[Contender]:
    """Numba and C of every preset that is not refused."""
    found: list[Contender] = []
    c: Compiler | None = None
    try:
        c = compiler("gcc")
    except UserError as missing:
        print(missing, file=sys.stderr)
    for n in budgets:
        x, y = stream(n)
        for preset in presets:
            try:
                spec = spec_of(preset, n)
            except UserError as refused:
                if n == budgets[0]:
                    print(f"{preset}: {refused}", file=sys.stderr)
                tick()
                continue
            project = build(spec)
            found.append(Contender(preset, "numba", n, HostModel(spec, engine="numba").update, x, y))
            if c:
                found.append(Contender(preset, "c", n, learner(CModel(project, c, ("-O3",))), x, y))
            tick()
    return found


def learner(model: CModel) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    return lambda x, y: model.prequential(x, y, predict=False)[1]


def baselines(budgets: Sequence[int], include: str | None, blas: str | None) -> list[Contender]:
    found = []
    for n in budgets:
        model = FromScratch(n)
        # full, without the reductions that were needed to come there
        model.v, model.alpha = stream(n)[0][:n].astype(float), np.full(n, 0.1)
        start = time.thread_time()
        model.update(*(a[n : n + 1] for a in stream(n)))
        if time.thread_time() - start > LONGEST_UPDATE:
            break
        found.append(Contender("the report's procedure", "numpy", n, model.update, *(a[n:] for a in stream(n))))
    for name, linked in (("krls", None), ("krls, BLAS", blas)):
        if name == "krls" or linked:
            try:
                dlib = Dlib(include, linked)
            except UserError as missing:
                print(missing, file=sys.stderr)
                continue
            found += [Contender(name, "dlib", n, dlib.learner(n), *stream(n)) for n in budgets]
    return found


def measure(contenders: Sequence[Contender], rounds: int, seconds: float, tick: Callable[[], None]) -> None:
    for contender in contenders:
        if contender.runtime == "numpy":
            contender.step(1)
            contender.block = max(1, min(200, int(seconds / contender.step(1))))
        else:
            contender.begin(seconds)
        tick()
    for _ in range(rounds):
        for contender in contenders:
            contender.turn()
        tick()


def results(contenders: Sequence[Contender]) -> list[dict[str, str]]:
    mklms = {(c.runtime, c.n): c.microseconds for c in contenders if c.preset == "mklms"}
    rows = []
    for one in contenders:
        # baselines are compared with the C
        reference = mklms.get((one.runtime, one.n)) or mklms.get(("c", one.n)) or mklms[("numba", one.n)]
        replaced = one.share(Status.REPLACED)
        refused = one.share(Status.REFUSED_INPUT, Status.REFUSED_LABEL, Status.REFUSED_MULTIPLIER, Status.RESTARTED)
        values = (
            one.preset,
            one.runtime,
            str(one.n),
            f"{one.microseconds:.4g}",
            f"{one.microseconds / reference:.3g}",
            "" if replaced is None else f"{replaced:.2f}",
            "" if refused is None else f"{refused:.2f}",
        )
        rows.append(dict(zip(COLUMNS, values, strict=True)))
    return rows


# -------------------------------------------------------------------------------------------------- showing


def series(rows: Rows) -> dict[tuple[str, str], dict[int, float]]:
    """(preset, runtime) -> N -> microseconds."""
    found: dict[tuple[str, str], dict[int, float]] = {}
    for row in rows:
        found.setdefault((row["preset"], row["runtime"]), {})[int(row["n"])] = float(row["microseconds"])
    return found


def exponent(times: Mapping[int, float]) -> float:
    """Slope on log-log axes, by least squares over N >= FITTED_FROM (all N, where those are fewer than two)."""
    budgets = [n for n in times if n >= FITTED_FROM]
    budgets = budgets if len(budgets) > 1 else list(times)
    if len(budgets) < 2:
        return float("nan")
    return float(np.polyfit(np.log(budgets), np.log([times[n] for n in budgets]), 1)[0])


def shown(value: float) -> str:
    """About three digits."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def tables(rows: Rows) -> dict[str, str]:
    found = series(rows)
    ratios = {(row["preset"], row["runtime"], int(row["n"])): float(row["per_mklms"]) for row in rows}
    replaced = {(row["preset"], int(row["n"])): row["replaced"] for row in rows if row["runtime"] == "numba"}
    budgets = sorted({n for times in found.values() for n in times})
    made = {}
    for runtime in ("numba", "c"):
        heads = ["preset", *(f"N = {n}" for n in budgets), "exponent", "replaced"]
        lines = []
        for (preset, kind), times in found.items():
            if kind == runtime:
                cells = [f"{shown(times[n])} ({ratios[preset, kind, n]:.2f})" for n in budgets]
                lines.append([preset, *cells, f"{exponent(times):.2f}", f"{float(replaced[preset, max(budgets)]):.0%}"])
        made[f"update cost, {runtime}"] = markdown(heads, lines)
    heads = ["baseline", *(f"N = {n}" for n in budgets), "exponent"]
    lines = []
    for (preset, kind), times in found.items():
        if kind not in ("numba", "c"):
            cells = [f"{shown(times[n])} ({ratios[preset, kind, n]:.3g})" if n in times else "" for n in budgets]
            lines.append([f"{preset} ({kind})", *cells, f"{exponent(times):.2f}"])
    made["update cost, baselines"] = markdown(heads, lines)
    made["update cost, in words"] = words(rows)
    return made


def words(rows: Rows) -> str:
    """The exponents beside the goal."""
    steep = too_steep(rows)
    return f"Above the goal: {'; '.join(steep)}.\n" if steep else "No exponent is above the goal.\n"


def too_steep(rows: Rows) -> list[str]:
    """Where an exponent is above what was aimed at."""
    found = []
    for (preset, runtime), times in series(rows).items():
        if runtime in ("numba", "c"):
            limit = LIMITS[preset in FAST]
            if exponent(times) > limit:
                found.append(f"{preset}, {runtime}: {exponent(times):.2f}, above {limit}")
    return found


def draw(rows: Rows, path: Path) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    found = series(rows)
    figure = Figure(figsize=(11, 5.6), layout="constrained", dpi=150)
    FigureCanvasAgg(figure)
    panels = figure.subplots(1, 2, sharey=True)
    colours = ("#0072B2", "#D55E00", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#222222")
    presets = list(dict.fromkeys(preset for preset, runtime in found if runtime in ("numba", "c")))
    styles = {p: (colours[i % len(colours)], "-" if p not in FAST else "--") for i, p in enumerate(presets)}
    markers = {preset: "osD^v<>"[i // len(colours)] for i, preset in enumerate(presets)}
    for axes, runtime, title in zip(panels, ("numba", "c"), ("Numba", "C, gcc -O3, and baselines"), strict=True):
        for (preset, kind), times in found.items():
            if kind == runtime:
                colour, line = styles[preset]
                axes.plot(
                    *zip(*times.items(), strict=True), line, color=colour, marker=markers[preset], ms=3.5, label=preset
                )
            elif runtime == "c" and kind not in ("numba", "c"):
                axes.plot(*zip(*times.items(), strict=True), ":", color="#777777", marker=".", linewidth=1.6)
                n = max(times)
                axes.annotate(
                    f"{preset} ({kind})",
                    (n, times[n]),
                    xytext=(-4, 3),
                    textcoords="offset points",
                    fontsize=8,
                    color="#555555",
                    ha="right",
                )
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.set_xticks(sorted({n for times in found.values() for n in times}))
        axes.xaxis.set_major_formatter("{x:.0f}")
        axes.set_title(title, loc="left", fontsize=11, fontweight="bold")
        axes.set_xlabel("N, the budget")
        axes.grid(color="#dddddd", linewidth=0.6)
        axes.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("microseconds for one update (CPU time)")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside right center", frameon=False, fontsize=8.5)
    with whole_file(path) as file:
        figure.savefig(file, format="png")


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--dlib", metavar="INCLUDE", help="folder that holds dlib/, if it is not the system's")
    parser.add_argument("--blas", metavar="LIBRARY", help="a BLAS with cblas_ functions, for a second row of dlib's")
    parser.add_argument("-o", "--out", type=Path, default=DATA)
    parser.add_argument("--quick", action="store_true", help="two techniques and budgets: does it work?")
    parser.add_argument("--show", action="store_true", help="measure nothing: tables and figure from the CSV file")
    chosen = parser.parse_args(words)
    path = chosen.out / "update-cost.csv"
    if chosen.show:
        rows = load(path)
    else:
        presets, budgets, rounds, seconds = tuple(PRESETS), BUDGETS, chosen.rounds, BLOCK_SECONDS
        if chosen.quick:
            presets, budgets, rounds, seconds = ("nt", "mklms"), (8, 16), 2, 0.001
        with progress_bar() as bar:
            task = bar.add_task("compiling", total=len(presets) * len(budgets))
            contenders = kernel_models(presets, budgets, lambda: bar.advance(task))
            contenders += baselines(budgets, chosen.dlib, chosen.blas)
            task = bar.add_task("measuring", total=len(contenders) + rounds)
            measure(contenders, rounds, seconds, lambda: bar.advance(task))
        rows = save(path, results(contenders))
    draw(rows, path.with_suffix(".png"))
    made = tables(rows)
    if chosen.out == DATA:
        publish(made)
    for name, table in made.items():
        print(f"{name}\n\n{table}")


if __name__ == "__main__":
    main()
