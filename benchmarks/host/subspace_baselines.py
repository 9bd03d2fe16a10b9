"""Features tracked in fixed memory beside scikit-learn's: error, CPU time, bytes; writes docs/data/subspace-baselines.csv.

    python -m benchmarks.host.subspace_baselines [--seeds 3] [-o docs] [--quick] [--show]

Four fifths of the rows come once, in random order (bikeshare: in time order), the others are held out; a Gaussian kernel,
2 sigma^2 the rows' mean squared distance.  ``held_in``, ``held_out``: |K - zz'|_F / N over at most 2,000 rows, evenly
spaced, that came or did not.  ``residual``: what is left over of a held-out row in the mean: |phi - L q|^2 for OKFEB and
BKFE, 1 - |z|^2 for projections, |psi|^2 - |z|^2 with psi the random features where those are what is projected.
``projected``: held_out of the same subspaces without shrinkage, z'z = v'G^-1 v.  Means over the splits, and held_out's
standard deviation.  Times are CPU time of one thread for a row, the median of the splits: learning all rows that came,
divided by them, and features of the held-out rows, called at once.

Who takes part:

- OKFEB, rule okfeb through the host's model, as the device computes it: 8 of 64 vectors and so on, defaults but for the
  update, the budget and the precision; a row at a time.
- BKFE: the batch method in closed form (HostSubspace), and KernelPCA of scikit-learn, which needs all rows: bounds.
- Nystroem of scikit-learn: rows drawn uniformly.  Counted as if a reservoir drew them, which scikit-learn does not have.
- RBFSampler, random Fourier features.
- IncrementalPCA on random features, or on those of rows drawn by Nystroem before: r features, 64 rows at a time.

scikit-learn's PCAs centre, which does not approximate K: their mean is put back, as one of the features.  The limit: what
the eigenvalues of those very rows allow any features of their number.

Bytes: numbers of 4 bytes, in whatever precision the method ran here (``float64`` rows: 8), of what must be kept between
calls, intermediate results left out.  D inputs, B vectors, M random features, N rows:

- OKFEB: to transform B (D + r), its frozen map; to go on learning, the C struct's state.
- Nystroem of n: n D + n^2; the same and a counter to go on drawing.
- random features: M (D + 1), both (none is learned).  IncrementalPCA on either: (r - 1) M and the mean M
  more; singular values and a counter to go on.  KernelPCA, BKFE: N (D + r) and a mean; N (D + r) + N D, all rows, to do it again.

"equal bytes": each baseline as large as goes into what OKFEB with budget exact keeps to go on learning.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.sparse.linalg import eigsh
from sklearn.decomposition import IncrementalPCA, KernelPCA
from sklearn.kernel_approximation import Nystroem, RBFSampler
from threadpoolctl import threadpool_limits

import benchmarks.host.subspace_bench as bench
from benchmarks.host.subspace_bench import (  # loads NumPy with one thread
    SHRINKAGE,
    Held,
    gamma_of,
    matrix_error,
    spec_of,
)
from benchmarks.papers import basis_reference
from benchmarks.tables import DATA, Rows, load, markdown, progress_bar, publish, save
from pykernel.bases.gram import MercerKernel
from pykernel.gen.project import build
from pykernel.host.model import HostModel
from pykernel.training.subspace import HostSubspace

SETS = ("digits", "breast_cancer", "bikeshare")
NAMES = {
    "digits": "digits, 1,797 x 64",
    "breast_cancer": "breast cancer, 569 x 30",
    "bikeshare": "bikeshare, 8,645 x 8",
}
SIZES = ((4, 32), (8, 64), (16, 128))
"""Features, and the budget of OKFEB."""
SEEDS, JUDGED, BATCH, MANY = 3, 2000, 64, 1000
"""MANY: random features for IncrementalPCA, where memory does not count."""
WORD, LARGEST = 4, 1024
"""LARGEST: vectors that a spec may have."""
LIMIT = "limit"
PCA, NYSTROEM_PCA = "IncrementalPCA on random features", "IncrementalPCA on Nystroem"
COLUMNS = (
    *("data", "features", "memory", "method", "size", "made", "bytes_transform", "bytes_learn"),
    *("held_in", "held_out", "deviation", "residual", "projected", "learn_us", "transform_us"),
)


@dataclass
class Split:
    """Rows that come, rows that are held out, the kernel."""

    x: np.ndarray
    held: np.ndarray
    kernel: MercerKernel


def split(name: str, seed: int, rows: int = 0) -> Split:
    x = basis_reference.data(name, rows)
    order = np.random.default_rng(seed).permutation(len(x))
    came, held = order[: len(x) * 4 // 5], order[len(x) * 4 // 5 :]
    if name == "bikeshare":
        came = np.sort(came)
    return Split(x[came], x[held], MercerKernel("gaussian", gamma_of(x)))


def some(x: np.ndarray) -> np.ndarray:
    return x[:: -(-len(x) // JUDGED)]


@dataclass
class Fitted:
    """Features of rows: (rows, made); what is left over of rows, or nothing; the same without shrinkage, or nothing."""

    features: Callable[[np.ndarray], np.ndarray]
    residual: Callable[[np.ndarray], np.ndarray] | None = None
    projected: Callable[[np.ndarray], np.ndarray] | None = None


@dataclass
class Method:
    """size: vectors, rows or random features.  words: kept to transform, to go on learning; or bytes.  fit: of a split."""

    name: str
    size: int
    words: Callable[[int, int], tuple[int, int]]  # of rows and inputs
    fit: Callable[[Split, int], Fitted]
    word: int = WORD
    found: list[dict[str, float]] = field(default_factory=list)


# ---------------------------------------------------------------------------------------------------------- methods


def okfeb(name: str, n_max: int, rank: int, **how: Any) -> Method:
    def spec(dim: int, gamma: float) -> Any:
        return spec_of(dim, n_max, rank, gamma, **how)

    def fit(given: Split, seed: int) -> Fitted:
        model = HostModel(spec(given.x.shape[1], given.kernel.gamma))
        model.update(given.x)
        subspace = Held.of(model).subspace()

        return Fitted(lambda x: model.ask("features", x)[0], subspace.residual, unshrunk(subspace))

    def words(rows: int, dim: int) -> tuple[int, int]:
        return n_max * (dim + rank), build(spec(dim, 1.0)).figures["state_bytes"] // width

    width = 8 if how.get("precision") == "float64" else WORD
    return Method(name, n_max, words, fit, width)


def unshrunk(subspace: HostSubspace) -> Callable[[np.ndarray], np.ndarray]:
    """Features of the projection on the same directions: R'^-1 v, G = R'R."""
    vectors, a = subspace.vectors, subspace.a

    def features(x: np.ndarray) -> np.ndarray:
        values, turn = np.linalg.eigh(a.T @ subspace.kernel.gram(vectors, vectors) @ a)
        kept = values > 1e-9 * values.max()
        return subspace.kernel.gram(x, vectors) @ (a @ (turn[:, kept] / np.sqrt(values[kept])))

    return features


def of_projection(features: Callable[[np.ndarray], np.ndarray]) -> Fitted:
    return Fitted(features, lambda x: 1 - (features(x) ** 2).sum(1))


def drawn(given: Split, n: int, seed: int) -> Any:
    return Nystroem(kernel="rbf", gamma=given.kernel.gamma, n_components=n, random_state=seed).fit(given.x)


def nystroem(n: int) -> Method:
    def fit(given: Split, seed: int) -> Fitted:
        return of_projection(drawn(given, n, seed).transform)

    return Method("Nystroem", n, lambda rows, dim: (n * (dim + n), n * (dim + n) + 1), fit)


def random_features(m: int) -> Method:
    def fit(given: Split, seed: int) -> Fitted:
        return Fitted(sampler(given, m, seed).transform)

    return Method("RBFSampler", m, lambda rows, dim: (m * (dim + 1), m * (dim + 1)), fit)


def sampler(given: Split, m: int, seed: int) -> Any:
    return RBFSampler(gamma=given.kernel.gamma, n_components=m, random_state=seed).fit(given.x[:1])


def with_mean(coordinates: np.ndarray, mean: np.ndarray, square: float) -> np.ndarray:
    """Features of vectors, of which ``coordinates`` are those of the centred ones: those of the mean come to them, and what
    the mean has beyond them is one feature more."""
    rest = np.sqrt(max(square - float(mean @ mean), 0.0))
    return np.column_stack([coordinates + mean, np.full(len(coordinates), rest)])


def incremental(m: int, rank: int, name: str = PCA) -> Method:
    """IncrementalPCA of rank - 1, and the mean, on m random features or on the features of m rows by Nystroem."""

    def fit(given: Split, seed: int) -> Fitted:
        psi = sampler(given, m, seed) if name == PCA else drawn(given, m, seed)
        model = IncrementalPCA(n_components=rank - 1)
        whole = len(given.x) // BATCH * BATCH
        for at in range(0, whole, BATCH):
            model.partial_fit(psi.transform(given.x[at : at + BATCH]))
        if len(given.x) - whole >= rank:  # it takes no fewer rows than components
            model.partial_fit(psi.transform(given.x[whole:]))
        mean, square = model.components_ @ model.mean_, float(model.mean_ @ model.mean_)

        def features(x: np.ndarray) -> np.ndarray:
            return with_mean(model.transform(psi.transform(x)), mean, square)

        def residual(x: np.ndarray) -> np.ndarray:
            all_there_is = (psi.transform(x) ** 2).sum(1) if name == PCA else 1.0
            return np.asarray(all_there_is - (features(x) ** 2).sum(1))

        return Fitted(features, residual)

    def words(rows: int, dim: int) -> tuple[int, int]:
        kept = m * (dim + (1 if name == PCA else m)) + (rank - 1) * m + m
        return kept, kept + (rank - 1) + 1

    return Method(name, m, words, fit)


def kernel_pca(rank: int) -> Method:
    """KernelPCA of rank - 1, and the mean."""

    def fit(given: Split, seed: int) -> Fitted:
        model = KernelPCA(
            rank - 1, kernel="rbf", gamma=given.kernel.gamma, eigen_solver="arpack", random_state=seed
        ).fit(given.x)
        rows = given.kernel.gram(given.x, given.x).mean(0)  # the mean's products with the rows
        mean = (model.eigenvectors_ / np.sqrt(model.eigenvalues_)).T @ (rows - rows.mean())
        return of_projection(lambda x: with_mean(model.transform(x), mean, float(rows.mean())))

    def words(rows: int, dim: int) -> tuple[int, int]:
        kept = rows * (dim + rank - 1) + rows
        return kept, kept + rows * dim

    return Method("KernelPCA", 0, words, fit)


def batch(rank: int) -> Method:
    def fit(given: Split, seed: int) -> Fitted:
        model = HostSubspace.fit(given.x, given.kernel, rank, SHRINKAGE, seed=seed)
        return Fitted(model.features, model.residual, unshrunk(model))

    return Method("BKFE, batch", 0, lambda rows, dim: (rows * (dim + rank), rows * (2 * dim + rank)), fit)


def equal_features(rank: int, budget: int, quick: bool) -> list[Method]:
    found = [
        okfeb("OKFEB exact", budget, rank),
        okfeb("OKFEB exact, float64", budget, rank, precision="float64"),
        okfeb("OKFEB drop", budget, rank, budget="drop"),
        okfeb("OKFEB drop, float64", budget, rank, budget="drop", precision="float64"),
    ]
    if not quick:
        found += [okfeb(f"OKFEB exact, {update}", budget, rank, update=update) for update in ("hybrid", "rls")]
    return [
        *found,
        nystroem(rank),
        random_features(rank),
        incremental(MANY, rank),
        kernel_pca(rank),
        batch(rank),
    ]


def largest(make: Callable[[int], Method], rows: int, dim: int, words: int, least: int, most: int) -> Method | None:
    """The largest of its kind, from least to most, that keeps no more words to go on learning."""
    low, high = least, most
    if make(low).words(rows, dim)[1] > words:
        return None
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if make(middle).words(rows, dim)[1] <= words else (low, middle - 1)
    return make(low)


def equal_bytes(rank: int, budget: int, rows: int, dim: int) -> list[Method]:
    words = okfeb("", budget, rank).words(rows, dim)[1]

    def drop(n: int) -> Method:
        return okfeb("OKFEB drop", n, rank, budget="drop")

    kinds: list[tuple[Callable[[int], Method], int, int]] = [
        (drop, rank, LARGEST),
        (nystroem, 1, words),
        (random_features, 1, words),
        (lambda m: incremental(m, rank), rank, words),
        (lambda m: incremental(m, rank, NYSTROEM_PCA), rank, words),
    ]
    return [found for make, least, most in kinds if (found := largest(make, rows, dim, words, least, most))]


# -------------------------------------------------------------------------------------------------------- measuring


def measure(method: Method, given: Split, seed: int) -> None:
    """One split: fit, features, errors; to method.found."""
    start = time.thread_time()
    fitted = method.fit(given, seed)
    learned = time.thread_time()
    z = fitted.features(given.held)
    done = time.thread_time()
    inside, outside = some(given.x), some(given.held)
    found = {
        "learn_us": 1e6 * (learned - start) / len(given.x),
        "transform_us": 1e6 * (done - learned) / len(given.held),
        "made": z.shape[1],
        "held_in": matrix_error(given.kernel, inside, fitted.features(inside).astype(float)),
        "held_out": matrix_error(given.kernel, outside, fitted.features(outside).astype(float)),
    }
    if fitted.residual is not None:
        found["residual"] = float(fitted.residual(given.held).mean())
    if fitted.projected is not None:
        found["projected"] = matrix_error(given.kernel, outside, fitted.projected(outside))
    method.found.append(found)


def bounds(given: Split, rank: int) -> dict[str, float]:
    """|K - K_r|_F / N of the rows' own Gram matrix, K_r its best approximation of rank r."""
    found = {}
    for name, x in (("held_in", some(given.x)), ("held_out", some(given.held))):
        k = given.kernel.gram(x, x)
        top = eigsh(k, rank, return_eigenvectors=False, v0=np.ones(len(k)))
        found[name] = float(np.sqrt(max(np.sum(k * k) - np.sum(top**2), 0.0)) / len(k))
    return found


def row(name: str, rank: int, memory: str, method: Method, rows: int, dim: int) -> dict[str, Any]:
    def mean(key: str) -> str:
        values = [one[key] for one in method.found if key in one]
        return f"{np.mean(values):.4f}" if values else ""

    def time_of(key: str) -> str:
        return f"{np.median([one[key] for one in method.found]):.3g}" if key in method.found[0] else ""

    transform, learn = (method.word * words for words in method.words(rows, dim))
    outside = [one["held_out"] for one in method.found]
    values: dict[str, Any] = {"data": name, "features": rank, "memory": memory, "method": method.name}
    values |= {"size": method.size or "", "made": int(method.found[0].get("made", rank))}
    values |= {"bytes_transform": transform or "", "bytes_learn": learn or ""}
    values |= {key: mean(key) for key in ("held_in", "held_out", "residual", "projected")}
    values["deviation"] = f"{np.std(outside, ddof=1):.4f}" if len(outside) > 1 else ""
    return {key: values.get(key, "") or time_of(key) for key in COLUMNS}


def measured(
    name: str,
    sizes: Sequence[tuple[int, int]],
    seeds: int,
    quick: bool,
    only: Sequence[str] | None,
    tick: Callable[[], None],
) -> Iterator[dict[str, Any]]:
    splits = [split(name, seed, 300 if quick else 0) for seed in range(seeds)]
    rows, dim = splits[0].x.shape
    for rank, budget in sizes:
        limit = Method(LIMIT, 0, lambda rows, dim: (0, 0), lambda given, seed: Fitted(lambda x: x))
        limit.found = [bounds(given, rank) for given in splits]
        yield row(name, rank, "", limit, rows, dim)
        methods = {"equal features": equal_features(rank, budget, quick)}
        methods["equal bytes"] = equal_bytes(rank, budget, rows, dim)
        if only:
            methods = {memory: [one for one in some if one.name in only] for memory, some in methods.items()}
        for seed, given in enumerate(splits):
            for some_methods in methods.values():
                for method in some_methods:
                    measure(method, given, seed)
            tick()
        for memory, some_methods in methods.items():
            for method in some_methods:
                yield row(name, rank, memory, method, rows, dim)


# ------------------------------------------------------------------------------------------------------------- shown


def shown_time(text: str) -> str:
    return f"{float(text):,.0f}" if float(text) >= 100 else text


def shown_bytes(text: str) -> str:
    return f"{int(text):,}"


def tables(rows: Rows) -> dict[str, str]:
    """For each set, a table; the sizes follow each other in it."""
    made = {}
    for name in dict.fromkeys(row["data"] for row in rows):
        body = []
        for line in (row for row in rows if row["data"] == name):
            if line["method"] == LIMIT:
                body.append(
                    [f"**r = {line['features']}**", LIMIT, *[""] * 2, line["held_in"], line["held_out"], *[""] * 4]
                )
                continue
            size = f" ({int(line['size']):,})" if line["size"] else ""
            more = f", {line['made']} features" if line["made"] != line["features"] else ""
            body.append(
                [
                    line["memory"],
                    f"{line['method']}{size}{more}",
                    shown_bytes(line["bytes_transform"]),
                    shown_bytes(line["bytes_learn"]),
                    line["held_in"],
                    f"{line['held_out']} ± {line['deviation']}" if line["deviation"] else line["held_out"],
                    line["projected"],
                    line["residual"],
                    shown_time(line["learn_us"]),
                    shown_time(line["transform_us"]),
                ]
            )
        heads = [NAMES[name], "method (vectors, rows, random features)", "bytes: transform", "learn on"]
        heads += ["error, held in", "held out", "without shrinkage", "residual", "learn, µs", "transform, µs"]
        made[f"subspace baselines, {name}"] = markdown(heads, body)
    return made


def main(words: Sequence[str] | None = None) -> None:
    only = {"nargs": "+", "metavar": "METHOD", "help": "keep the others' rows"}
    chosen = bench.arguments(__doc__, words, seeds={"type": int, "default": SEEDS}, only=only)
    path = chosen.out / "subspace-baselines.csv"
    if chosen.show:
        rows = load(path)
    else:
        sets, sizes, seeds = (SETS[1:2], SIZES[:1], 2) if chosen.quick else (SETS, SIZES, chosen.seeds)
        for how in ({}, {"precision": "float64"}):  # compiled, before anything is timed
            model = HostModel(spec_of(2, 4, 2, 1.0, **how))
            model.update(np.zeros((2, 2)))
            model.ask("features", np.zeros((1, 2)))
        made: list[Mapping[str, Any]] = []
        with progress_bar() as bar, threadpool_limits(1):
            task = bar.add_task("features", total=len(sets) * len(sizes) * seeds)
            for name in sets:
                made += measured(name, sizes, seeds, chosen.quick, chosen.only, lambda: bar.advance(task))
        if chosen.only:
            made = bench.merged(path, made, ("data", "features", "memory", "method"))
        rows = save(path, made)
    shown = tables(rows)
    if chosen.out == DATA:
        publish(shown)
    print("\n".join(shown.values()))


if __name__ == "__main__":
    main()
