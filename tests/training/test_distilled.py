"""Fewer vectors for a machine: the projection against its definition, what is lost, and what is refused."""

from dataclasses import replace

import numpy as np
import pytest

from pykernel.bases.gram import MercerKernel
from pykernel.errors import UserError
from pykernel.importers.importing import compare_smaller
from pykernel.spec.kernel_settings import INDEFINITE
from pykernel.training import distilled
from pykernel.training.distilled import classes_of, distil, projected
from pykernel.training.machine import Machine, pairs, votes
from pykernel.training.trained import to_spec


def a_machine(n=40, dim=3, functions=1, seed=0, **keys):
    rng = np.random.default_rng(seed)
    weights, bias = rng.normal(size=(n, functions)), rng.normal(size=functions)
    return Machine("SVR", "gaussian", rng.normal(size=(n, dim)), weights, bias, **{"gamma": 0.2, **keys})


def of_pairs(n=30, classes=3, seed=0):
    machine = a_machine(n, functions=classes - 1, seed=seed)
    several = classes * (classes - 1) // 2
    support = np.repeat(np.arange(classes), n // classes)
    return replace(
        machine, bias=np.full(several, 0.1), support_class=support, decision="ovo", classes=tuple("abcdefgh"[:classes])
    )


def left(kernel, vectors, weights, chosen):
    """The squares of the norms of what a projection leaves of each function, by its definition."""
    gram = kernel.gram(vectors, vectors)
    own = np.linalg.solve(gram[np.ix_(chosen, chosen)], gram[chosen] @ weights)
    apart = weights.copy()
    apart[chosen] -= own
    return (apart * (gram @ apart)).sum(axis=0), own


@pytest.mark.parametrize(
    "machine",
    [
        a_machine(functions=2),
        replace(a_machine(), function="matern32"),
        replace(a_machine(dim=4), function="polynomial", degree=3, coef0=1.0),
        replace(a_machine(), function="laplacian"),
        of_pairs(),
    ],
    ids=["gaussian", "matern32", "polynomial", "laplacian", "pairs"],
)
def test_the_projection_is_that_of_its_definition_and_each_choice_the_best(machine):
    m, kernel = 6, machine.kernel
    weights = machine.columns_of_weights()
    norms = (weights * (kernel.gram(machine.vectors, machine.vectors) @ weights)).sum(axis=0)
    chosen, found = projected(machine, m)
    assert len(set(chosen)) == m
    exact = left(kernel, machine.vectors, weights, chosen)[1]
    assert np.abs(found - exact).max() <= 1e-7 * np.abs(exact).max()
    for k in range(m):
        tried = [
            (left(kernel, machine.vectors, weights, [*chosen[:k], i])[0] / norms).sum()
            for i in range(len(machine.vectors))
            if i not in chosen[:k]
        ]
        taken = (left(kernel, machine.vectors, weights, chosen[: k + 1])[0] / norms).sum()
        assert taken <= min(tried) * (1 + 1e-9)


def test_a_span_that_holds_all_needs_no_more_vectors():
    rng = np.random.default_rng(0)
    machine = Machine("SVR", "polynomial", rng.normal(size=(20, 2)), rng.normal(size=(20, 1)), np.zeros(1), degree=2)
    chosen, weights = projected(machine, 10)  # x1^2, x1 x2, x2^2
    z = rng.normal(size=(50, 2))
    assert len(chosen) == 3
    values = machine.kernel.gram(z, machine.vectors[chosen]) @ weights
    assert np.allclose(values, machine.functions(z), rtol=1e-9, atol=1e-9)


def test_a_machine_that_is_a_small_one_becomes_it():
    """40 vectors, of which each 5 are one and the same but for a hair."""
    rng = np.random.default_rng(1)
    small = a_machine(8, seed=1)
    parts = rng.dirichlet(np.ones(5), 8)
    near = np.repeat(small.vectors, 5, axis=0) + 1e-4 * rng.normal(size=(40, 3))
    machine = replace(small, vectors=near, weights=(parts[:, :, None] * small.weights[:, None]).reshape(40, 1))
    for x in (None, rng.normal(size=(400, 3))):
        found = distil(machine, 8, x)
        assert found.machine.vectors.shape == (8, 3) and found.vectors_before == 40
        assert found.error.value <= found.steps["weighed"] < 2e-3 and found.steps["projected"] < 2e-3
        z = rng.normal(size=(200, 3))
        values = found.machine.functions(found.machine.scaled(z))
        assert np.abs(values - machine.functions(z)).max() < 5e-3 * machine.functions(z).std()


KINDS = {
    "numbers": a_machine(functions=2, center=np.array([1.0, -2.0, 30.0]), scale=np.array([2.0, 0.5, -0.1])),
    "two classes": a_machine(classes=("no", "yes"), calibration=np.array([[-1.5, 0.2]])),
    "one for each class": a_machine(functions=3, classes=("a", "b", "c")),
    "pairs": of_pairs(),
    "polynomial": replace(a_machine(), function="polynomial", degree=3, coef0=1.0),
    "sigmoid": replace(a_machine(), function="sigmoid", gamma=0.1),
    "other units": replace(a_machine(), function="matern52", scale=np.array([1e-3, 1.0, 1e3])),
}


@pytest.mark.in_turn(18)
@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("recorded", [True, False])
def test_each_step_loses_less_and_the_spec_is_the_machine(name, recorded):
    machine = KINDS[name]
    rng = np.random.default_rng(3)
    z = rng.normal(size=(700, 3))
    inputs = replace(machine, vectors=z).inputs()
    found = distil(machine, 6, inputs[:500] if recorded else None)
    steps, smaller = found.steps, found.machine
    assert (steps["projected"] is None) == (name == "sigmoid") and found.made_up != recorded
    told = found.error or found.classes_differ
    assert steps["moved"] == told.value and told.low <= told.value <= told.high
    # classes are few: two rows of chance
    slack = 2 / found.rows if found.error is None else 0.0
    assert steps["moved"] <= steps["weighed"] + slack
    if found.error is not None:
        assert steps["moved"] < 0.8 * steps["weighed"]
    # what is said is so on other rows
    own = smaller.functions(smaller.scaled(inputs[500:]))
    answers = machine.functions(machine.scaled(inputs[500:]))
    if recorded and found.error is not None:
        seen = np.sqrt((np.square(own - answers).mean(axis=0) / answers.var(axis=0)).mean())
        assert 0.4 * told.value < seen < 2.5 * told.value
    if machine.classes is not None:
        differ = np.mean(classes_of(smaller, own) != classes_of(machine, answers))
        low, high = found.classes_differ.low, found.classes_differ.high
        assert not recorded or low - 0.07 <= differ <= high + 0.07
    assert (smaller.function, smaller.support_class) == ("gaussian", None) and len(smaller.vectors) == 6
    assert smaller.calibration is machine.calibration
    assert any("became one function for each class" in note for note in smaller.notes) == (name == "pairs")
    assert any("became a Gaussian kernel" in note for note in smaller.notes) == (machine.function != "gaussian")
    report = compare_smaller(to_spec(smaller, "m"), smaller, inputs[500:])
    assert report["ok"] and report["rows"] == 200, report


def test_where_the_search_gains_nothing_the_start_stays(monkeypatch):
    """The moved vectors are no worse than the others on the rows that say when the search ends."""
    machine, worse = a_machine(), distilled.trained.search

    def search(*arguments, **keys):
        path = worse(*arguments, **keys)
        return replace(path, best=replace(path.best, weights=path.best.weights + 3.0))

    monkeypatch.setattr(distilled.trained, "search", search)
    found = distil(machine, 6)
    assert found.steps["moved"] <= found.steps["weighed"]


@pytest.mark.exhaustive
def test_the_same_seed_gives_the_same_machine():
    machine = a_machine()
    one, same, other = (distil(machine, 5, seed=seed).machine.vectors for seed in (0, 0, 1))
    assert np.array_equal(one, same) and not np.array_equal(one, other)


def test_classes_of_pairs_are_those_of_the_votes():
    for break_ties in (False, True):
        machine = replace(of_pairs(60, 4, 2), break_ties=break_ties)
        f = machine.functions(np.random.default_rng(0).normal(size=(300, 3)) * 2)
        counted = np.zeros((300, 4))
        for p, (i, j) in enumerate(pairs(4)):
            counted[np.arange(300), np.where(f[:, p] > 0, i, j)] += 1
        told = votes(f, 4) if break_ties else counted
        assert np.array_equal(classes_of(machine, f), told.argmax(axis=1))


def test_each_input_of_a_made_up_row_is_that_of_one_of_two():
    rng = np.random.default_rng(0)
    z = rng.normal(size=(50, 4))
    found = distilled.made_up(z, 1000, rng)
    owners = np.array([[np.flatnonzero(z[:, j] == value)[0] for j, value in enumerate(row)] for row in found])
    several = [len(set(row)) for row in owners]
    assert found.shape == (1000, 4) and set(several) == {1, 2} and np.mean(several) > 1.7
    assert len(set(owners.ravel())) == 50


def test_rows_of_a_small_recording_are_judged_alone():
    """What is lost is told of rows that were recorded, however many were made up for the search."""
    machine, x = a_machine(), np.random.default_rng(0).normal(size=(100, 3))
    assert distil(machine, 5, x).rows == round(distilled.JUDGED * 100)


LINEAR = Machine("Ridge", "linear", np.ones((5, 3)), np.ones((5, 1)), np.zeros(1))


@pytest.mark.parametrize(
    ("machine", "m", "x", "says"),
    [
        (LINEAR, 2, None, "is linear, and already has one vector for each function"),
        (a_machine(), 40, None, "has 40 vectors, and 40 were asked for"),
        (a_machine(), 0, None, "vectors is 0; it must be a whole number"),
        (a_machine(), True, None, "vectors is True"),
        (a_machine(), 2.5, None, "vectors is 2.5"),
        (a_machine(), 4, np.zeros((50, 2)), "rows have shape (50, 2); they must be (rows, 3)"),
        (a_machine(), 4, np.zeros((29, 3)), "29 rows are too few to measure the loss"),
        (a_machine(), 4, np.full((50, 3), np.nan), "not finite"),
        # SciPy's k-means wrote over memory that was not its own
        (a_machine(), 4, np.outer(np.arange(50), [1e299, 0, 1]), "some rows are too far from the mean of the rows"),
        (a_machine(), 4, np.outer(np.arange(50), [1e150, 0, 1]), "some rows are too far from the mean of the rows"),
        (replace(a_machine(), function="matern32"), 4, np.outer(np.arange(50), [1e299, 0, 1]), "too far"),
        (replace(a_machine(), function="fourier"), 4, None, "are weights of the inputs"),
    ],
)
def test_what_cannot_be_is_refused(machine, m, x, says):
    with pytest.raises(UserError) as error:
        distil(machine, m, x)
    assert says in str(error.value) and "\n" not in str(error.value)


def test_equal_vectors_count_once():
    machine = a_machine(10)
    twice = replace(
        machine, vectors=np.repeat(machine.vectors, 2, axis=0), weights=np.repeat(machine.weights, 2, axis=0)
    )
    with pytest.raises(UserError, match="has 10 vectors, and 12 were asked for"):
        distil(twice, 12)


def test_a_kernel_of_frequencies_is_learned_from_rows():
    rng = np.random.default_rng(0)
    kernel = MercerKernel("fourier")
    assert kernel.function in INDEFINITE
    machine = Machine("Ridge", "fourier", 0.1 * rng.normal(size=(40, 3)), rng.normal(size=(40, 1)), np.zeros(1))
    found = distil(replace(machine, offsets=rng.uniform(size=40)), 8, rng.normal(size=(500, 3)))
    assert found.steps["projected"] is None and found.error.value < 0.5


def test_constant_rows_and_functions_are_no_accident():
    machine = a_machine()
    found = distil(machine, 3, np.ones((60, 3)))
    own = found.machine
    assert np.allclose(own.functions(own.scaled(np.ones((1, 3)))), machine.functions(np.ones((1, 3))))
