"""Trained vectors: the loss and its gradient, the search, and what is chosen."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from scipy.special import log_softmax

from pykernel.errors import UserError
from pykernel.training import vectors
from pykernel.training.vectors import Rows, Vectors, class_targets, objective, risk, train

CASES: tuple[tuple[vectors.Loss, int], ...] = (("squared", 2), ("absolute", 1), ("classes", 1), ("classes", 3))


def drawn(loss: vectors.Loss, outputs: int, widths: vectors.Widths, n: int = 30, d: int = 3) -> tuple[Rows, Vectors]:
    """Rows, and numbers at random."""
    rng = np.random.default_rng(outputs)
    y = rng.normal(size=(n, outputs))
    if loss == "classes":
        y = class_targets(rng.integers(0, max(2, outputs), n), max(2, outputs))
    counts = rng.uniform(0.2, 2.0, n)
    rows = Rows(rng.normal(size=(n, d)), y, counts / counts.mean())
    size = d if widths == "inputs" else 1
    found = Vectors(
        rng.normal(size=(5, d)), 0.3 * rng.normal(size=size), rng.normal(size=(5, outputs)), rng.normal(size=outputs)
    )
    return rows, found


@pytest.mark.parametrize("widths", ["one", "inputs"])
@pytest.mark.parametrize(("loss", "outputs"), CASES)
def test_the_gradient_is_what_differences_say(loss: vectors.Loss, outputs: int, widths: vectors.Widths) -> None:
    rows, found = drawn(loss, outputs, widths)
    start, numbers = np.zeros_like(found.log_scale), found.packed()

    def value(at: np.ndarray) -> float:
        return objective(loss, 0.05, start, found.unpacked(at), rows)[0]

    step = 1e-6
    differences = [(value(numbers + step * e) - value(numbers - step * e)) / (2 * step) for e in np.eye(len(numbers))]
    gradient = objective(loss, 0.05, start, found, rows)[1]
    assert np.abs(gradient - differences).max() < 1e-7 < np.abs(gradient).max()


@pytest.mark.parametrize(("loss", "outputs"), CASES)
def test_the_risk_is_the_papers_formula_row_by_row(loss: vectors.Loss, outputs: int) -> None:
    rows, found = drawn(loss, outputs, "inputs")
    e, total = np.exp(found.log_scale), 0.0
    for x, y, count in zip(rows.x, rows.targets, rows.counts, strict=True):
        f = found.bias.copy()
        for v, a in zip(found.vectors, found.weights, strict=True):
            f += a * np.exp(-0.5 * sum((e[j] * (x[j] - v[j])) ** 2 for j in range(len(x))))
        if loss == "classes":
            both, own = (np.array([0.0, f[0]]), int(y[0])) if outputs == 1 else (f, int(y.argmax()))
            total -= count * log_softmax(both)[own]
        elif loss == "squared":
            total += count * 0.5 * np.mean((f - y) ** 2)
        else:
            total += count * np.mean(np.sqrt((f - y) ** 2 + vectors.CORNER**2))
    assert risk(loss, found.functions(rows.x), rows)[0] == pytest.approx(total / len(rows), rel=1e-12)


def test_a_row_that_counts_twice_is_two_rows() -> None:
    rows, found = drawn("classes", 3, "one", n=9)
    twice = np.array([2, 1, 1, 3, 1, 1, 1, 2, 1])
    some = Rows(rows.x, rows.targets, twice / twice.mean())
    repeated = np.repeat(np.arange(9), twice)
    every = Rows(rows.x[repeated], rows.targets[repeated], np.ones(len(repeated)))
    a, b = (objective("classes", 0.01, np.zeros(1), found, each) for each in (some, every))
    assert a[0] == pytest.approx(b[0], rel=1e-12) and np.allclose(a[1], b[1], rtol=1e-10, atol=1e-14)


def machine(x: np.ndarray) -> np.ndarray:
    """A machine of three vectors with a width for each input; the last input says nothing."""
    v, e = np.array([[1.0, 0, 0], [-1, 1, 0], [0, -1, 0]]), np.array([1.0, 2.0, 0.0])
    k = np.exp(-0.5 * np.square((x[:, None] - v) * e).sum(axis=2))
    return np.asarray(k @ np.array([1.0, -2.0, 1.5]))


def sample(n: int = 300, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    x = np.random.default_rng(seed).normal(size=(n, 3))
    y = machine(x)
    return x, ((y - y.mean()) / y.std())[:, None]


def test_a_machine_of_three_vectors_is_found_again() -> None:
    """To a fiftieth of the labels' variance, where three rows as vectors leave a third; the input that says nothing gets the
    largest width."""
    x, y = sample(200)
    found = train(Rows(x, y, np.ones(len(x))), 3, "squared", units=["given"], ridges=[1e-6, 1e-4], starts=3)
    assert found.taken.widths == "inputs" and found.taken.risk < 2e-2
    assert np.square(found.model.functions(x) - y).mean() < 2e-2
    e = np.exp(found.model.log_scale)
    assert e[2] < 0.5 * e[0] < 0.5 * e[1]
    rows = vectors.begin(Rows(x, y, np.ones(len(x))), "squared", x[:3], "one", np.random.default_rng(0))
    assert np.square(rows.functions(x) - y).mean() > 0.3


def test_what_was_left_out_was_not_seen() -> None:
    """Labels at random: functions of rows that were left out know nothing, those of rows that were seen do."""
    rng = np.random.default_rng(0)
    rows = Rows(rng.normal(size=(60, 4)), rng.normal(size=(60, 1)), np.ones(60))
    found = train(rows, 12, "squared", ridges=[1e-6], units=["given"])
    left_out = rows.targets[found.places] - found.left_out
    assert np.square(left_out).mean() > 0.9 * np.square(rows.targets).mean()
    assert found.optimism > 0


def test_inputs_in_other_units_give_the_same_model() -> None:
    """To the bit, where the unit is a power of two."""
    x, y = sample(100)
    a, b = (train(Rows(each, y, np.ones(len(x))), 3, "squared", ridges=[1e-4], steps=60) for each in (x, x / 1024))
    assert a.taken == b.taken and a.left_out.tobytes() == b.left_out.tobytes()
    assert a.model.vectors.tobytes() == (1024 * b.model.vectors).tobytes()


def test_one_seed_gives_one_model_and_others_give_others() -> None:
    x, y = sample(80)
    packed = [
        train(Rows(x, y, np.ones(80)), 4, "squared", ridges=[1e-4], steps=30, seed=seed).model.packed().tobytes()
        for seed in (1, 1, 2)
    ]
    assert packed[0] == packed[1] != packed[2]


@pytest.mark.parametrize("after", [0.0, 0.2, 0.6, 0.9])
def test_an_interrupt_keeps_the_best_so_far(after: float) -> None:
    x, y = sample(80)
    told: list[float] = []

    def tell(part: float) -> None:
        told.append(part)
        if part >= after:
            raise KeyboardInterrupt

    def run() -> Any:
        return train(Rows(x, y, np.ones(80)), 4, "squared", ridges=[1e-4], steps=40, tell=tell)

    if not after:
        with pytest.raises(KeyboardInterrupt):  # there is nothing to keep
            run()
        return
    # what ends the work tells that it is done: that call comes after the first interrupt
    tell_once = tell

    def once(part: float) -> None:
        if not any(each >= after for each in told):
            tell_once(part)

    tell = once
    found = run()
    assert found.interrupted and np.square(found.model.functions(x) - y).mean() < 0.3
    assert len(found.places) == len(found.left_out) > 0
    assert all(a <= b + 0.2 for a, b in itertools.pairwise(told))


def test_many_rows_are_searched_by_some_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond COMPARED rows the candidates see a part; beyond MANY the last search does, too."""
    monkeypatch.setattr(vectors, "COMPARED", 100)
    monkeypatch.setattr(vectors, "MANY", 200)
    x, y = sample(2000)
    found = train(
        Rows(x, y, np.ones(len(x))), 3, "squared", units=["given"], widths=["inputs"], ridges=[1e-4], starts=3
    )
    assert len(found.places) == 100 and np.square(found.model.functions(x) - y).mean() < 0.03


def test_fewer_rows_in_a_fold_than_vectors_and_equal_rows() -> None:
    x = np.repeat(np.arange(4.0), 3)[:, None]
    found = train(Rows(x, np.sin(x), np.ones(12)), 12, "squared", ridges=[1e-4])
    assert np.isfinite(found.model.packed()).all() and np.abs(found.model.functions(x) - np.sin(x)).max() < 0.2


def test_candidates_are_judged_as_the_device_computes_them() -> None:
    """A device that answers zero where weights are larger than 1: what is taken survives there, though it is worse in exact
    arithmetic; the functions of rows left out are the device's; and where nothing can be, its own sentence says why."""
    x, y = sample(150)
    rows = Rows(x, y, np.ones(len(x)))
    keys: dict[str, Any] = {"units": ["given"], "widths": ["one"], "ridges": [1e-6, 1e-1], "steps": 60, "starts": 2}

    def small_weights(found: Vectors, at: np.ndarray) -> np.ndarray:
        if np.abs(found.weights).max() > 1.0:
            raise UserError("weights are large")
        return np.rint(64 * found.functions(at)) / 64

    plain, judged = train(rows, 6, "squared", **keys), train(rows, 6, "squared", computed=small_weights, **keys)
    assert plain.taken.ridge == 1e-6 and np.abs(plain.model.weights).max() > 1.0
    assert judged.taken.ridge == 1e-1 and np.abs(judged.model.weights).max() <= 1.0
    assert plain.taken.risk < judged.taken.risk < np.inf
    assert (judged.left_out * 64 == np.rint(judged.left_out * 64)).all() and np.ptp(judged.left_out) > 0.1

    def nothing(found: Vectors, at: np.ndarray) -> np.ndarray:
        raise UserError("no model fits")

    with pytest.raises(UserError, match="no model fits"):
        train(rows, 6, "squared", computed=nothing, **keys)


def test_the_bar_moves_forwards_only_from_start_to_start() -> None:
    x, y = sample(80)
    told: list[float] = []
    train(Rows(x, y, np.ones(80)), 4, "squared", ridges=[1e-4], steps=40, starts=4, tell=told.append)
    assert all(a <= b for a, b in itertools.pairwise(told)) and told[-1] == 1.0
    assert len([part for part in told if 0.8 < part < 1.0]) > 5  # the later starts, too


@pytest.mark.exhaustive
def test_a_step_that_goes_too_far_is_taken_back_without_a_word() -> None:
    """Inputs with few values far out: numbers overflow on the way (numpy warned of that), and the model is finite."""
    rng = np.random.default_rng(21)
    n, d = int(rng.integers(20, 60)), int(rng.integers(1, 4))
    x = rng.standard_t(1.2, size=(n, d))
    y = (x[:, 0] > 0).astype(int) ^ (rng.random(n) < 0.1)
    found = train(Rows(x, class_targets(y, 2), np.ones(n)), 4, "classes").model
    assert all(np.isfinite(part).all() for part in vars(found).values())
