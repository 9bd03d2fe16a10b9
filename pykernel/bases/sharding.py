"""A basis that several processes or machines choose: first one basis for each shard of the rows, then one from their
union.

    found = select_sharded("measured.npy", MercerKernel("gaussian", gamma=0.1), 100, shards=8, jobs=4)
    found.basis, found.shards

1. Each shard chooses a basis of its rows, by any method of ``select_basis``, and draws a sample of points.
2. The candidates are the union of these bases' vectors.  For each vector, all candidates are tried (rule 4.2 of paper
   002) and judged on all points.  A point of shard s represents l_s / v_s rows (the shard has l_s rows and v_s points).
   So sums over points are unbiased estimates of sums over all rows, whatever the shards contain.
3. The part that the basis leaves out is measured: on newly drawn rows, or, by the shards, on all rows.

The scores of step 2 are always estimates.  ``Basis.trace`` is an estimate unless it is measured on all rows
(``Basis.exact``).  The sharding decides only the candidates: a row that no shard has chosen cannot be chosen.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import pickle
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal, cast, get_args

import numpy as np

from pykernel.bases.arguments import checked_count, checked_fraction, need_choice, need_memory
from pykernel.bases.basis import (
    LEAST_EPSILON,
    NUMBERS,
    Basis,
    Growing,
    Stop,
    block_rows,
    measured,
    residual_sums,
    with_trace,
)
from pykernel.bases.candidates import MEMORY, best_columns
from pykernel.bases.gram import MercerKernel
from pykernel.bases.select import NOTHING, select_basis
from pykernel.errors import UserError
from pykernel.parallel import Task, Workers, checked_jobs, cores, interruptible, one_thread
from pykernel.rows import Rows, SomeRows, as_rows

Split = Literal["random", "blocks"]
POINTS = 4096
"""Rows on which candidates of the union are judged."""
MEASURED = 16_384
"""Rows on which a basis is measured, unless told otherwise."""
CANDIDATES = 8
"""Largest size of the union as a multiple of n_max, if ``per_shard`` is not given."""
CHUNK = 2**20
"""Rows that are dealt to shards at once."""


@dataclass(frozen=True)
class Shard:
    """One shard: the number of its rows, of its proposed vectors, and of the vectors that were taken; its method and
    trace.

    trace: tr R / tr K of the shard's own basis.  exact: whether ``trace`` is over all rows of the shard.
    """

    rows: int
    proposed: int
    taken: int
    method: str
    trace: float
    exact: bool


@dataclass(frozen=True)
class Sharded:
    """What ``select_sharded`` finds.

    basis: the result; its ``evaluations`` count the kernel values of all shards and of the union, but not of the
    measurement.
    shards: the shards in their order.  candidates: number of different vectors in the union.
    estimate: tr R / tr K on the points of step 2.  It is too low, because the vectors were chosen by these points.
    measured: number of rows on which ``basis.trace`` was measured; 0: ``basis.trace`` is ``estimate``.
    """

    basis: Basis
    shards: tuple[Shard, ...]
    candidates: int
    estimate: float
    measured: int


def select_sharded(
    x: Any,
    kernel: MercerKernel,
    n_max: int,
    shards: int,
    *,
    method: str = "auto",
    split: Split = "random",
    per_shard: int | None = None,
    points: int = POINTS,
    measure: int | Literal["all"] | None = MEASURED,
    seed: int = 0,
    epsilon: float = 1e-10,
    jobs: int | str | None = None,
    results: str | Path | None = None,
    title: str | None = None,
    options: Mapping[str, Any] | None = None,
) -> Sharded:
    """A basis of at most n_max vectors from shards of the rows, each by a process of its own.

    Parameters
    ----------
    x : what ``as_rows`` takes
        Of files only the path goes to the workers, which read them; an array is sent to each.
    kernel : MercerKernel
    n_max : int
    shards : int
        1 or more, and not more than there are rows.
    method : one of ``pykernel.bases.select.METHODS``
        Of each shard.
    split : "random" or "blocks"
        Each row goes to a shard at random, or consecutive rows make a shard.  Random shards are alike; they take 8 bytes for
        each row of a shard.  Blocks of sorted data are not alike, and are read in one go: best for Parquet.
    per_shard : int
        Vectors that each shard proposes; not given: n_max, but 8 n_max in all at most.
    points : int
        Rows, of all shards together, on which candidates of the union are judged.
    measure : int, "all" or None
        Rows on which the basis is measured: drawn, or all of them, in which case the shards measure; None: no measurement.
    seed : int
    epsilon : float
        Candidates with delta < epsilon are spanned.
    jobs : int or str, optional
        Processes, 1 for this one.  As many as cores if not given.
    results : path, optional
        Finished shards are kept in this file; the same call goes on from there, to the same basis, bit for bit.
    title : str, optional
        Of the progress bar.
    options : mapping, optional
        Of ``select_basis``: tau, candidates, points, and the method's own.

    Returns
    -------
    Sharded

    Cost: that of each shard; u (points + u) kernel values for a union of u vectors, O(n u (points + u)) time and
    8 (n + points + u) u bytes.  All linear algebra takes one thread a process, so that the result does not depend on where it
    was computed.  A worker process that dies is replaced, twice.

    Raises UserError for arguments out of range, and what ``select_basis`` refuses.
    """
    rows = as_rows(x)
    n_max, seed = checked_count(n_max, "n_max", 1), checked_count(seed, "seed", 0)
    shards, points = checked_count(shards, "shards", 1), checked_count(points, "points", 1)
    epsilon = checked_fraction(epsilon, "epsilon", LEAST_EPSILON, f"{LEAST_EPSILON:g}, below which rounding decides,")
    need_choice(split, "split", get_args(Split))
    if shards > len(rows):
        raise UserError(f"shards is {shards:,}; there are {len(rows):,} rows, and each shard needs one")
    most = min(n_max, math.ceil(CANDIDATES * n_max / shards))
    per_shard = most if per_shard is None else checked_count(per_shard, "per_shard", 1)
    if per_shard * shards < n_max:
        raise UserError(
            f"per_shard is {per_shard:,}; {shards:,} shards propose {per_shard * shards:,} vectors then, and n_max is {n_max:,}"
        )
    need_memory(
        8 * per_shard * shards * (n_max + points + per_shard * shards), MEMORY, "the union", "take a smaller per_shard"
    )
    if measure is not None and measure != "all":
        measure = min(checked_count(measure, "measure", 1), len(rows))
    if jobs != 1:
        _need_pickle(kernel)
    told = fingerprint(rows, kernel)
    task: dict[str, Any] = {
        "shards": shards,
        "split": split,
        "n": per_shard,
        "method": method,
        "seed": seed,
        "epsilon": epsilon,
        "points": points,
        "options": dict(options or {}),
    }
    tasks = [task | {"shard": s} for s in range(shards)]
    with tempfile.TemporaryDirectory() as folder:
        kept = Path(folder) / "results.jsonl" if results is None else Path(results)
        found = _run(work, (rows, kernel), tasks, jobs, kept, told, title)
        with one_thread:
            grown, taken, stopped = _union(rows, kernel, n_max, found, epsilon)
            grown.evaluations += sum(each["evaluations"] for each in found)
            basis = grown.basis(f"sharded-{found[0]['method']}", stopped, exact=False)
        if not len(basis):
            raise UserError(NOTHING)
        estimate, count = float(basis.trace[-1]), 0
        if measure == "all":
            about = told | {"vectors": hashlib.sha256(basis.vectors.tobytes()).hexdigest()}
            parts = [{"shard": s, "shards": shards} for s in range(shards)]
            sums = _run(measure_shard, (rows, basis), parts, jobs, kept, about, title)
            basis, count = with_trace(basis, np.sum([each["left"] for each in sums], axis=0), True), len(rows)
        elif measure is not None:
            drawn = np.random.default_rng([seed, 2]).choice(len(rows), measure, replace=False, shuffle=False)
            with one_thread:
                basis = measured(basis, SomeRows(rows, indices=np.sort(drawn)), measure == len(rows))
            count = measure
    told_shards = tuple(
        Shard(each["rows"], len(each["indices"]), taken[s], each["method"], each["trace"], each["exact"])
        for s, each in enumerate(found)
    )
    return Sharded(basis, told_shards, sum(shard.proposed for shard in told_shards), estimate, count)


# ----------------------------------------------------------------------------------------------------------- shards


def fingerprint(rows: Rows, kernel: MercerKernel) -> dict[str, Any]:
    """Digests of the data and the kernel to which results belong.

    For more than 32 MB of data, only 4,096 evenly spaced rows are digested.
    """
    count = len(rows)
    digest = hashlib.blake2b(f"{count} {rows.dim}".encode(), digest_size=16)
    if count * rows.dim <= NUMBERS:
        for _, block in rows.blocks(block_rows(0, rows.dim)):
            digest.update(block.tobytes())
    else:
        digest.update(rows.take(np.linspace(0, count - 1, 4096).astype(np.int64)).tobytes())
    versions = f"{version('pykernel-mcu')} {np.__version__}"
    return {"data": digest.hexdigest(), "kernel": kernel.described(), "versions": versions}


def shard_of(rows: Rows, shard: int, shards: int, split: Split = "random", seed: int = 0) -> SomeRows:
    """The rows of shard number ``shard``: random or consecutive rows.

    Random rows: O(l) random numbers, and 8 bytes for each row of the shard.
    """
    if split == "blocks":
        return SomeRows(rows, shard * len(rows) // shards, (shard + 1) * len(rows) // shards)
    mine: list[np.ndarray] = []
    generator = np.random.default_rng([seed, 0])
    for start in range(0, len(rows), CHUNK):
        dealt = generator.integers(shards, size=min(CHUNK, len(rows) - start), dtype=np.int32)
        if start == 0:
            # no shard is empty, however few rows there are
            dealt[:shards] = generator.permutation(shards)[: len(dealt)]
        mine.append(start + np.flatnonzero(dealt == shard))
    return SomeRows(rows, indices=np.concatenate(mine))


def work(task: Task, shared: tuple[Rows, MercerKernel]) -> dict[str, Any]:
    """A shard's basis and points, for Workers; all indices are those of the whole table."""
    s, shards = task["shard"], task["shards"]
    rows = shard_of(shared[0], s, shards, task["split"], task["seed"])
    with one_thread, interruptible():  # an interrupt ends the task: the shard begins anew
        basis = select_basis(
            rows,
            shared[1],
            task["n"],
            task["method"],
            seed=task["seed"] + s,
            epsilon=task["epsilon"],
            **task["options"],
        )
    count = max(1, min(len(rows), (s + 1) * task["points"] // shards - s * task["points"] // shards))
    points = np.random.default_rng([task["seed"], 1, s]).choice(len(rows), count, replace=False, shuffle=False)
    return {
        "rows": len(rows),
        "indices": rows.origin(basis.indices).tolist(),
        "vectors": basis.vectors.tolist(),
        "points": np.sort(rows.origin(points)).tolist(),
        "trace": float(basis.trace[-1]),
        "exact": bool(basis.exact),
        "evaluations": int(basis.evaluations),
        "method": basis.method,
    }


# ------------------------------------------------------------------------------------------------------------ union


def _union(
    rows: Rows, kernel: MercerKernel, n_max: int, found: Sequence[Mapping[str, Any]], epsilon: float
) -> tuple[Growing, list[int], Stop]:
    """Choose among all shards' vectors by weighted trace gain.

    Returns the basis, how many of its vectors come from each shard, and why it stopped.
    """
    indices = np.concatenate([np.array(each["indices"], np.int64) for each in found])
    vectors = np.concatenate([np.array(each["vectors"], np.float64).reshape(-1, rows.dim) for each in found])
    owner = np.repeat(np.arange(len(found)), [len(each["indices"]) for each in found])
    points = rows.take(np.concatenate([np.array(each["points"], np.int64) for each in found]))
    weights = np.concatenate([np.full(len(each["points"]), each["rows"] / len(each["points"])) for each in found])
    most = min(n_max, len(vectors))
    grown = Growing(kernel, rows.dim, most)
    left, taken = kernel.self_values(points), [0] * len(found)
    total = float(weights @ left)
    coordinates = np.zeros((most, len(vectors)))
    chosen = best_columns(grown.values(points, vectors), grown.values(vectors, vectors), weights, epsilon)
    for n, (r, square, c_u, c_t) in enumerate(itertools.islice(chosen, most)):
        left = np.maximum(left - c_t * c_t, 0.0)
        grown.append(vectors[r], int(indices[r]), coordinates[:n, r], square, float(weights @ left) / total)
        coordinates[n] = c_u
        taken[int(owner[r])] += 1
    return grown, taken, "n_max" if grown.n == most else "spanned"


# ------------------------------------------------------------------------------------------------------ measurement


def measure_shard(task: Task, shared: tuple[Rows, Basis]) -> dict[str, Any]:
    """``residual_sums`` of consecutive rows, for Workers."""
    with one_thread:
        rows = shard_of(shared[0], task["shard"], task["shards"], "blocks")
        return {"left": residual_sums(rows, shared[1]).tolist()}


# ---------------------------------------------------------------------------------------------------------- workers


def _run(
    function: Any, shared: Any, tasks: list[dict[str, Any]], jobs: int | str | None, results: Path, context: Any,
    title: str | None,
) -> list[dict[str, Any]]:  # fmt: skip
    """Workers.run: the tasks of a worker that dies are run again by a new one."""
    most = checked_jobs(jobs) or cores()
    some = most if isinstance(most, str) else min(most, len(tasks))
    with Workers(function, shared, jobs=some, results=results, context=context, title=title) as pool:
        return cast(list[dict[str, Any]], pool.run(tasks))


def _need_pickle(kernel: MercerKernel) -> None:
    try:
        pickle.dumps(kernel)
        json.dumps(kernel.gamma)
    except Exception:
        raise UserError("this kernel cannot be sent to other processes; take jobs=1") from None
