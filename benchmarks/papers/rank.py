"""How many features a subspace should have, from data: samples that are left out judge.

    found = choose_rank(x, MercerKernel("gaussian", gamma=0.5))
    found.rank                                 # this many features; more hardly leave less of other samples
    found = choose_rank(x, kernel, y, classes=True)
    found.rank                                 # ... or with which a linear model of y is best

Paper 001 says that lambda (``shrinkage``) controls the rank and that r only bounds it, but not how to choose them.
docs/paper-001.md compares ways: 0.1 is as good as a chosen lambda, r should be chosen.  Features come sorted by their
singular values, so that one subspace has the features of all ranks: a choice costs as much as a fit.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import eigh  # type: ignore[import-untyped]

from pykernel.bases.arguments import checked_count, checked_numbers
from pykernel.bases.basis import share
from pykernel.bases.gram import MercerKernel
from pykernel.errors import UserError
from pykernel.rows import as_rows
from pykernel.training.bkfe import above_rounding, inverse_of
from pykernel.training.subspace import HostSubspace

JUDGES = 4
"""One row of so many judges."""
LEAST = 2 * JUDGES
"""Rows below which there is nothing to choose by."""
NEARLY = 1.05
"""What is within 5 % of the least is as good."""
ENOUGH = 0.01
"""Without labels no more features are added once this part of the samples is left."""
MOST = 64
"""Features that are tried if no number is given."""
WEIGHTS = 10.0 ** np.arange(-4, 2)
"""Ridges of the linear models that judge; singular values of samples are compared with lambda, which is about 0.1."""


@dataclass(frozen=True, eq=False)
class RankChoice:
    """rank: the choice.  ranks: (k,), those that were compared, rising.

    left: (k,), what each leaves of the samples that judge: the mean of e2(x) / k(x, x).  errors: None without labels, or
    (k,): the part of wrong classes, or the squared error in parts of the variance, of a linear model on the features.
    """

    rank: int
    ranks: np.ndarray
    left: np.ndarray
    errors: np.ndarray | None


def choose_rank(
    x: Any,
    kernel: MercerKernel,
    y: Any = None,
    *,
    classes: bool = False,
    most: int | None = None,
    shrinkage: float = 0.1,
    basis: int | None = None,
    seed: int = 0,
) -> RankChoice:
    """The number of features, by a quarter of the rows, drawn at random, which a subspace of the others does not know.

    Parameters
    ----------
    x : (N, D) array, or what ``as_rows`` takes
    kernel, shrinkage, basis
        As of ``HostSubspace.fit``; basis: a number of vectors, or None.
    y : (N,) or (N, o), optional
        Labels.  None: r grows as long as the next larger one (by a factor of about 1.4) leaves 5 % less of the judging
        samples, and more than 1 % of them is left.  With labels: the r whose linear model's error is least.
    classes : bool
        Whether y, (N,), are names or numbers of classes; then their errors are counted.
    most : int, optional
        Largest r; None: 64.
    seed : int
        Of the rows that judge, and of the vectors.

    O(N^2 (D + r)), as of ``HostSubspace.fit``; with a basis of n vectors O(N n (D + n)).

    Raises
    ------
    UserError
        One sentence says what was wrong with an argument, or that no direction is left.
    """
    rows = as_rows(x)
    most, seed = MOST if most is None else checked_count(most, "most", 1), checked_count(seed, "seed", 0)
    if len(rows) < LEAST:
        raise UserError(f"there are {len(rows)} rows; to choose a number of features takes {LEAST}")
    wanted = None if y is None else _columns(y, classes, len(rows))
    order = np.random.default_rng([seed, JUDGES]).permutation(len(rows))
    cut = len(rows) // JUDGES
    judges, learned = np.sort(order[:cut]), np.sort(order[cut:])
    x_judges, x_learned = rows.take(judges), rows.take(learned)
    found = HostSubspace.fit(
        x_learned, kernel, min(most, len(learned)), shrinkage, basis=basis and min(basis, len(learned)), seed=seed
    )
    if not found.kept:
        raise UserError(
            f"shrinkage is {shrinkage:g}, and no singular value of {len(learned)} rows in feature space exceeds it; it must be lower"
        )
    ranks = _ranks(found.kept)
    left = _left(found, x_judges)[ranks - 1]
    if wanted is None:
        return RankChoice(_falling(ranks, left), ranks, left, None)
    z, z_judges = _sorted(found, x_learned), _sorted(found, x_judges)
    errors = np.array([_error(z[:, :r], wanted[learned], z_judges[:, :r], wanted[judges], classes) for r in ranks])
    return RankChoice(int(ranks[np.argmin(errors)]), ranks, left, errors)


def _columns(y: Any, classes: bool, count: int) -> np.ndarray:
    """(N, o): labels as numbers; one column of +-1 for each class."""
    values = np.asarray(y) if classes else checked_numbers(y, "y")
    if values.shape[:1] != (count,) or values.ndim > (1 if classes else 2):
        raise UserError(
            f"y has the shape {values.shape}; it must be ({count},){'' if classes else f' or ({count}, outputs)'}"
        )
    if not classes:
        return values.reshape(count, -1)
    names = np.unique(values)
    if len(names) < 2:
        raise UserError(f"y has {len(names)} class; there must be two or more")
    return np.where(values[:, None] == names, 1.0, -1.0)


def _ranks(kept: int) -> np.ndarray:
    """1, 2, 3, 4, 6, 8, 11, 16, …: each about 1.4 times the one before; the last is ``kept``."""
    grown = {kept} | {round(2 ** (k / 2)) for k in range(2 * kept.bit_length())}
    return np.array(sorted(r for r in grown if r <= kept))


def _falling(ranks: np.ndarray, left: np.ndarray) -> int:
    """The last r up to which each larger one leaves at least 5 % less, if there is something to leave."""
    for (rank, here), (_, there) in itertools.pairwise(zip(ranks, left, strict=True)):
        if here <= ENOUGH or there * NEARLY > here:
            return int(rank)
    return int(ranks[-1])


def _error(z: np.ndarray, y: np.ndarray, z_judges: np.ndarray, truth: np.ndarray, classes: bool) -> float:
    """Of ridge regression with an intercept, with the weight that is best for the judges.  O(N r^2 + r^3)."""
    mean, around = z.mean(0), y.mean(0)
    values, turn = eigh((z - mean).T @ (z - mean))
    inner, asked = turn.T @ ((z - mean).T @ (y - around)), (z_judges - mean) @ turn
    least = np.inf
    for weight in WEIGHTS:
        answers = (asked / (np.maximum(values, 0.0) + weight)) @ inner + around
        if classes:
            error = float(np.mean(answers.argmax(1) != truth.argmax(1)))
        else:
            spread = truth.var(0)
            error = float(np.mean(np.mean((answers - truth) ** 2, axis=0) / np.where(spread > 0, spread, 1.0)))
        least = min(least, error)
    return least


def _sorted(found: HostSubspace, x: np.ndarray) -> np.ndarray:
    """z(x) in coordinates in which G is diagonal, the largest direction first: of rank s < r, they are the first s."""
    values, turn = np.linalg.eigh(found.gram)
    kept = above_rounding(values)
    scale = np.sqrt(np.where(kept, values, 0.0)) * inverse_of(np.maximum(values, 0.0), found.shrinkage)
    return np.asarray((found.kernel.gram(x, found.vectors) @ (found.a @ turn) * scale)[:, ::-1])


def _left(found: HostSubspace, x: np.ndarray) -> np.ndarray:
    """(r,): the mean of ``score`` over the rows, with the first 1, 2, …, r directions, the largest first."""
    values, turn = np.linalg.eigh(found.gram)
    inverse, diagonal = inverse_of(np.maximum(values, 0.0), found.shrinkage), found.kernel.self_values(x)
    known = np.square(found.kernel.gram(x, found.vectors) @ (found.a @ turn)) * (inverse + found.shrinkage * inverse**2)
    left = diagonal[:, None] - np.cumsum(known[:, ::-1], axis=1)
    return np.asarray(share(np.clip(left, 0.0, diagonal[:, None]), diagonal[:, None]).mean(axis=0))
