"""A basis from shards: the union's choice against brute force, the same bytes wherever it is computed, and however it ends."""

import os
import signal
import subprocess

import numpy as np
import pytest

from pykernel.bases import sgma
from pykernel.bases.gram import MercerKernel
from pykernel.bases.select import select_basis
from pykernel.bases.sgma import SgmaInPasses
from pykernel.bases.sharding import residual_sums, select_sharded, shard_of, work
from pykernel.errors import UserError
from pykernel.rows import ArrayRows, as_rows
from tests.support import interrupts

GAUSSIAN = MercerKernel("gaussian", gamma=0.7)
QUICK = {"method": "sgma", "options": {"candidates": 20}}


def clustered(l=3000, seed=0):
    """Rows of ten clusters, one after the other: blocks of them are badly mixed."""
    rng = np.random.default_rng(seed)
    sizes = rng.multinomial(l, rng.dirichlet(np.full(10, 0.7)))
    centres = 3 * rng.normal(size=(10, 3))
    return np.concatenate([centre + rng.normal(size=(size, 3)) for centre, size in zip(centres, sizes, strict=True)])


X = clustered()


def state(found):
    """All of a result, as bytes."""
    b = found.basis
    arrays = (b.vectors, b.indices, b.factor, b.trace)
    return (
        b"".join(a.tobytes() for a in arrays)
        + repr((found.shards, found.candidates, found.estimate, b.evaluations)).encode()
    )


def error(basis, x=X):
    """tr R / tr K from its definition."""
    k, k_s = basis.kernel.gram(x, basis.vectors), basis.kernel.gram(basis.vectors, basis.vectors)
    return 1 - np.einsum("ij,ij->", k @ np.linalg.inv(k_s), k) / basis.kernel.diagonal(x).sum()


@pytest.fixture(scope="module")
def reference():
    return state(select_sharded(X, GAUSSIAN, 15, 4, jobs=1, **QUICK))


# ------------------------------------------------------------------------------------------------------ the choice


@pytest.mark.in_turn(2)
@pytest.mark.parametrize(
    "kernel", [GAUSSIAN, MercerKernel("polynomial", gamma=0.05, coef0=1.0, degree=3)], ids=["unit", "not unit"]
)
@pytest.mark.parametrize("split", ["random", "blocks"])
def test_the_union_is_chosen_by_the_weighted_gain_of_all_candidates(kernel, split):
    x, shards, n = X[:700], 3, 9
    found = select_sharded(x, kernel, n, shards, split=split, points=100, per_shard=8, jobs=1, method="efvs")
    task = {
        "shards": shards,
        "split": split,
        "n": 8,
        "method": "efvs",
        "seed": 0,
        "epsilon": 1e-10,
        "points": 100,
        "options": {},
    }
    told = [work(task | {"shard": s}, (as_rows(x), kernel)) for s in range(shards)]
    points = np.concatenate([each["points"] for each in told])
    weights = np.concatenate([np.full(len(each["points"]), each["rows"] / len(each["points"])) for each in told])
    assert weights.sum() == pytest.approx(700) and len(points) == 100
    candidates = np.concatenate([each["indices"] for each in told])
    for each in told:
        assert np.array_equal(each["vectors"], x[each["indices"]])

    def left(chosen):
        """The weighted trace of R on the points, with K_SS inverted."""
        k = kernel.gram(x[points], x[chosen])
        inverse = np.linalg.inv(kernel.gram(x[chosen], x[chosen]))
        return weights @ (kernel.diagonal(x[points]) - np.einsum("ij,jk,ik->i", k, inverse, k))

    chosen: list[int] = []
    for _ in range(n):
        scores = [left([*chosen, r]) if r not in chosen else np.inf for r in candidates]
        chosen.append(int(candidates[int(np.argmin(scores))]))
    assert found.basis.indices.tolist() == chosen
    assert found.estimate == pytest.approx(left(chosen) / (weights @ kernel.diagonal(x[points])), rel=1e-6)
    assert found.candidates == 24 and sum(shard.taken for shard in found.shards) == n
    assert [(shard.rows, shard.proposed) for shard in found.shards] == [(each["rows"], 8) for each in told]
    of_union = 24 * (100 + 24) + (0 if kernel.unit else 124)
    assert found.basis.evaluations >= sum(each["evaluations"] for each in told) + 24 * (100 + 24)
    assert found.basis.evaluations <= sum(each["evaluations"] for each in told) + of_union


@pytest.mark.parametrize(
    "kernel", [GAUSSIAN, MercerKernel("polynomial", gamma=0.05, coef0=1.0, degree=3)], ids=["unit", "not unit"]
)
def test_what_is_left_out_is_measured_on_all_rows_or_estimated_on_some(kernel):
    found = select_sharded(X, kernel, 12, 4, measure="all", jobs=1, **QUICK)
    assert found.basis.exact and found.measured == 3000 and found.basis.trace[0] == 1
    for n in (1, 5, len(found.basis)):
        assert found.basis.trace[n] == pytest.approx(error(found.basis.head(n)), rel=1e-8, abs=1e-10)
    some = select_sharded(X, kernel, 12, 4, measure=1500, jobs=1, **QUICK)
    assert not some.basis.exact and some.measured == 1500
    assert np.array_equal(some.basis.vectors, found.basis.vectors)
    assert some.basis.trace[12] == pytest.approx(found.basis.trace[12], rel=0.15)
    none = select_sharded(X, kernel, 12, 4, measure=None, jobs=1, **QUICK)
    assert none.measured == 0 and none.basis.trace[12] == none.estimate and not none.basis.exact
    assert np.allclose(
        residual_sums(as_rows(X), found.basis) / residual_sums(as_rows(X), found.basis)[0], found.basis.trace
    )


@pytest.mark.parametrize("rows, shards", [(1, 1), (7, 7), (100, 7), (3 * 2**20, 5)])
def test_each_row_is_in_one_shard_and_no_shard_is_empty(rows, shards):
    table = ArrayRows(np.zeros((rows, 1)))
    for split in ("random", "blocks"):
        parts = [shard_of(table, s, shards, split, seed=3) for s in range(shards)]
        assert min(map(len, parts)) > 0
        together = np.concatenate([part.origin(np.arange(len(part))) for part in parts])
        assert np.array_equal(np.sort(together), np.arange(rows))
        assert all((np.diff(part.origin(np.arange(len(part)))) > 0).all() for part in parts)  # read in one go
        if rows > 1000 and split == "random":
            assert np.ptp([len(part) for part in parts]) < 0.01 * rows


@pytest.mark.exhaustive
@pytest.mark.parametrize("split", ["random", "blocks"])
@pytest.mark.parametrize("method", ["sgma", "efvs", "rpcholesky"])
def test_sorted_data_in_shards_is_as_good_as_on_one_machine(split, method):
    kernel = MercerKernel("gaussian", gamma=0.05)
    for n in (8, 32):
        one = error(select_basis(X, kernel, n, method))
        found = select_sharded(X, kernel, n, 8, split=split, method=method, jobs=1)
        assert error(found.basis) < one
        if split == "blocks":
            # if each block gave its share it would not be
            parts = [shard_of(as_rows(X), s, 8, "blocks") for s in range(8)]
            share = np.concatenate([select_basis(part, kernel, n // 8, method).vectors for part in parts])
            assert error(found.basis) < 0.85 * error(_Given(kernel, share))


class _Given:
    def __init__(self, kernel, vectors):
        self.kernel, self.vectors = kernel, vectors


def test_equal_rows_everywhere_stop_when_all_is_spanned():
    x = np.repeat(X[:5], 40, axis=0)
    found = select_sharded(x, GAUSSIAN, 12, 4, per_shard=8, jobs=1, method="efvs")
    assert found.basis.stopped == "spanned" and len(found.basis) == 5 and found.basis.trace[-1] < 1e-9


# ------------------------------------------------------------------------------------------- wherever it is computed


def test_the_same_bytes_from_processes_and_from_every_source(reference, tmp_path):
    assert state(select_sharded(X, GAUSSIAN, 15, 4, jobs=2, **QUICK)) == reference
    np.save(tmp_path / "x.npy", X)
    assert state(select_sharded(tmp_path / "x.npy", GAUSSIAN, 15, 4, jobs=2, **QUICK)) == reference
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet

    pyarrow.parquet.write_table(
        pa.table({str(j): X[:, j] for j in range(3)}), tmp_path / "x.parquet", row_group_size=400
    )
    assert state(select_sharded(tmp_path / "x.parquet", GAUSSIAN, 15, 4, jobs=1, **QUICK)) == reference
    assert state(select_sharded(X, GAUSSIAN, 15, 4, jobs=1, seed=1, **QUICK)) != reference


# --------------------------------------------------------------------------------------------------- however it ends


SCRIPT = """
import sys
from pathlib import Path
import pykernel.bases.sharding as sharding
from tests.support.interrupts import pause
from tests.bases.test_sharding import GAUSSIAN, QUICK, state

select = sharding.select_basis

def paused(*arguments, **options):
    if sys.argv[2:] and Path(sys.argv[1], "r.jsonl").read_bytes():
        pause(sys.argv[1])  # one shard is finished, another is under way
    return select(*arguments, **options)

sharding.select_basis = paused

if __name__ == "__main__":
    folder = sys.argv[1]
    found = sharding.select_sharded(folder + "/x.npy", GAUSSIAN, 15, 4, jobs=1, results=folder + "/r.jsonl", **QUICK)
    open(folder + "/state", "wb").write(state(found))
"""


@pytest.mark.exhaustive
@pytest.mark.skipif(os.name == "nt", reason="signals")
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_however_a_run_ends_the_next_goes_on_to_the_same_bytes(reference, tmp_path, how):
    np.save(tmp_path / "x.npy", X)

    def run(*pauses):
        return interrupts.start("-c", SCRIPT, tmp_path, *pauses, stderr=subprocess.DEVNULL)

    process = run("pauses")
    interrupts.signalled(process, how, tmp_path)
    assert process.wait(interrupts.PATIENCE) not in (0, 99)
    finished = (tmp_path / "r.jsonl").read_bytes().count(b"\n")
    assert 1 <= finished < 4
    assert run().wait(interrupts.PATIENCE) == 0
    assert (tmp_path / "state").read_bytes() == reference
    assert (tmp_path / "r.jsonl").read_bytes().count(b"\n") == 4
    # and a third time nothing is left to do
    before = (tmp_path / "r.jsonl").read_bytes()
    assert (
        state(select_sharded(tmp_path / "x.npy", GAUSSIAN, 15, 4, jobs=1, results=tmp_path / "r.jsonl", **QUICK))
        == reference
    )
    assert (tmp_path / "r.jsonl").read_bytes() == before


def test_results_are_those_of_the_same_rows_kernel_and_arguments(reference, tmp_path):
    path = tmp_path / "r.jsonl"
    select_sharded(X, GAUSSIAN, 15, 4, jobs=1, results=path, **QUICK)
    lines = path.read_bytes().count(b"\n")
    other = X.copy()
    other[-1] += 1e-9
    for x, kernel, n in [(other, GAUSSIAN, 15), (X, MercerKernel("gaussian", gamma=0.71), 15), (X, GAUSSIAN, 14)]:
        select_sharded(x, kernel, n, 4, jobs=1, results=path, **QUICK)
        lines += 4
        assert path.read_bytes().count(b"\n") == lines
    assert state(select_sharded(X, GAUSSIAN, 15, 4, jobs=1, results=path, **QUICK)) == reference


@pytest.mark.parametrize(
    "arguments, what",
    [
        ({"shards": 0}, "shards is 0"),
        ({"shards": 4000}, "shards is 4,000; there are 3,000 rows"),
        ({"n_max": 0}, "n_max is 0"),
        ({"split": "evenly"}, "split is 'evenly'; it must be one of random, blocks"),
        ({"per_shard": 3}, "propose 12 vectors then, and n_max is 15"),
        ({"points": 0}, "points is 0"),
        ({"measure": 0}, "measure is 0"),
        ({"epsilon": 0}, "epsilon is 0"),
        ({"jobs": 0}, "jobs is 0"),
        ({"method": "best"}, "there is no method 'best'"),
        ({"options": {"colour": 1}}, "sgma has no option 'colour'"),
        ({"per_shard": 10_000, "shards": 2}, "the union takes .* MB"),
    ],
)
def test_what_cannot_be_is_refused_in_one_sentence(arguments, what):
    with pytest.raises(UserError, match=what):
        select_sharded(**({"x": X, "kernel": GAUSSIAN, "n_max": 15, "shards": 4, "jobs": 1, **QUICK} | arguments))
    with pytest.raises(UserError, match="no row can be chosen"):
        select_sharded(np.zeros((50, 2)), MercerKernel("linear"), 3, 2, jobs=1)


# ----------------------------------------------------------------------------------------------- SGMA beyond memory


@pytest.mark.parametrize(
    "kernel", [GAUSSIAN, MercerKernel("polynomial", gamma=0.05, coef0=1.0, degree=3)], ids=["unit", "not unit"]
)
def test_sgma_in_passes_chooses_the_best_of_its_candidates_by_the_exact_gain(kernel, monkeypatch):
    monkeypatch.setattr(sgma, "BLOCK", 5000)  # several blocks
    x = X[::3]
    selector = SgmaInPasses(x, kernel, 12, candidates=15, seed=4)
    tried = []
    fresh = selector._fresh

    def record():
        tried.append(fresh())
        return tried[-1]

    selector._fresh = record
    while selector.step():
        pass
    basis = selector.basis()
    assert basis.stopped == "n_max" and basis.exact and len(tried) == 12
    for n in range(12):
        assert len(tried[n]) == 15 == len(set(tried[n].rows)) and not set(tried[n].rows) & set(basis.indices[:n])
        left = [error(_Given(kernel, x[[*basis.indices[:n], r]]), x) for r in tried[n].rows]
        assert basis.indices[n] == tried[n].rows[int(np.argmin(left))]
        assert basis.trace[n + 1] == pytest.approx(min(left), rel=1e-7)
        # l (n + kappa), and the candidates' own
        assert basis.evaluations >= 12 * 1000 * 15
    features = 12 * 11 // 2
    own = 0 if kernel.unit else 12 * 15 + 1000
    assert basis.evaluations == 1000 * (12 * 15 + features) + 15 * features + own


def test_sgma_takes_passes_where_its_columns_do_not_fit_and_all_candidates_are_the_exhaustive_choice():
    x = X[:500]
    found = select_basis(x, GAUSSIAN, 20, "sgma", candidates=500, memory=10_000)
    greedy = select_basis(x, GAUSSIAN, 20, "exhaustive")
    assert found.indices.tolist() == greedy.indices.tolist() and np.allclose(found.trace, greedy.trace, rtol=1e-9)
    assert found.method == "sgma" and found.evaluations > 20 * 500 * 480
    with pytest.raises(UserError, match="memory is"):
        select_basis(x, GAUSSIAN, 20, "sgma", view="column", memory=10_000)
    few = np.repeat(X[:5], 40, axis=0)
    found = select_basis(few, GAUSSIAN, 20, "sgma", candidates=7, memory=10)
    assert found.stopped == "spanned" and len(found) == 5
    assert select_basis(X, GAUSSIAN, 200, "sgma", candidates=7, memory=10, tau=0.5).stopped == "tau"
