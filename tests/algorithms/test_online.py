"""Learning as a whole: the paper's claims, and float32 over long streams."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from pykernel.algorithms.online.klms import KLMS
from pykernel.errors import UserError
from pykernel.host.model import HostModel
from pykernel.spec.model import Spec
from tests.support.following import (
    FIXED,
    GRADIENT,
    TECHNIQUES,
    assert_sound,
    factor_error,
    in_use,
    learned,
    matrices,
    persistent,
    posterior_of,
    spec_of,
)
from tests.support.streams003 import STREAMS

Status = KLMS["real"].status


# ------------------------------------------------------------------------------------------ the paper's claims

# Mean and standard deviation of the MSE over 100 realisations (note, section 9): sinc, eta = 0.1, sigma = 0.5, no ridge
SIZES = (4, 6, 8, 10, 12, 14, 16, 20, 24)
BEFORE = """
klms           1.4e-2 3.9e-3  7.1e-3 5.9e-3  7.0e-3 3.0e-3  2.1e-4 1.8e-4  4.7e-5 3.0e-5  4.8e-5 2.8e-5  4.9e-5 2.8e-5  4.9e-5 2.8e-5  4.9e-5 2.8e-5
mklms          1.3e-2 6.3e-3  4.5e-3 2.5e-3  9.3e-4 5.2e-4  2.7e-4 2.2e-4  9.2e-5 6.1e-5  5.6e-5 3.1e-5  5.0e-5 2.8e-5  4.9e-5 2.8e-5  4.9e-5 2.8e-5
ls             1.4e-2 6.4e-3  6.0e-3 4.0e-3  8.4e-4 4.6e-4  1.8e-4 1.2e-4  6.0e-5 3.2e-5  5.1e-5 2.8e-5  4.9e-5 2.8e-5  4.9e-5 2.8e-5  4.9e-5 2.8e-5
lsreg          1.4e-2 6.4e-3  5.9e-3 4.0e-3  8.6e-4 4.8e-4  1.7e-4 1.0e-4  6.1e-5 3.1e-5  5.1e-5 2.8e-5  4.9e-5 2.8e-5  4.9e-5 2.8e-5  4.9e-5 2.8e-5
lsridge        1.4e-2 6.4e-3  5.9e-3 4.0e-3  9.0e-4 5.1e-4  1.8e-4 1.2e-4  6.7e-5 4.3e-5  5.5e-5 3.0e-5  5.3e-5 3.1e-5  5.3e-5 3.2e-5  5.3e-5 3.2e-5
fklms-newest   8.1e-2 5.4e-2  3.4e-2 3.1e-2  7.7e-3 8.4e-3  1.3e-3 1.3e-3  3.7e-4 2.1e-4  2.3e-4 1.4e-4  1.6e-4 8.5e-5  1.3e-4 6.5e-5  1.2e-4 8.8e-5
fklms          3.0e-2 2.4e-2  1.5e-2 1.5e-2  3.3e-3 3.1e-3  9.8e-4 8.3e-4  3.7e-4 4.1e-4  1.9e-4 1.1e-4  1.6e-4 9.3e-5  1.2e-4 7.0e-5  1.2e-4 1.0e-4
fmklms         1.3e-2 7.8e-3  6.9e-3 3.0e-3  2.5e-3 1.5e-3  1.1e-3 8.0e-4  5.8e-4 3.0e-4  4.5e-4 2.4e-4  3.3e-4 1.8e-4  2.0e-4 1.3e-4  1.4e-4 8.5e-5
afklms         1.4e-2 3.9e-3  7.2e-3 5.9e-3  7.0e-3 3.1e-3  4.5e-4 2.4e-4  2.7e-4 1.8e-4  4.0e-4 3.4e-4  5.5e-4 6.2e-4  5.8e-4 1.3e-3  7.4e-4 1.3e-3
nt             1.7e-2 2.2e-3  1.7e-2 1.5e-3  1.8e-2 1.5e-3  1.8e-2 1.6e-3  1.8e-2 2.0e-3  1.5e-2 3.4e-3  1.1e-2 3.6e-3  5.6e-3 1.1e-3  4.1e-3 1.2e-3
at             1.4e-1 1.7e-2  1.4e-1 1.8e-2  1.3e-1 1.9e-2  1.3e-1 1.9e-2  1.2e-1 2.0e-2  1.1e-1 2.1e-2  1.1e-1 2.1e-2  9.8e-2 2.0e-2  9.1e-2 2.1e-2
sup            1.5e-2 8.4e-3  5.7e-3 3.6e-3  1.1e-3 6.4e-4  2.2e-4 1.5e-4  7.8e-5 4.7e-5  5.3e-5 2.8e-5  4.9e-5 2.8e-5  4.9e-5 2.8e-5  4.9e-5 2.8e-5
fmklms+klms    1.3e-2 6.2e-3  4.5e-3 2.3e-3  1.0e-3 6.5e-4  2.9e-4 2.9e-4  1.9e-4 1.6e-4  1.5e-4 1.3e-4  1.4e-4 9.9e-5  1.1e-4 9.4e-5  9.1e-5 6.7e-5
fklms+klms     3.1e-2 2.4e-2  1.6e-2 1.4e-2  3.0e-3 2.7e-3  4.9e-4 5.0e-4  1.1e-4 7.2e-5  5.9e-5 3.4e-5  5.1e-5 2.9e-5  4.9e-5 2.8e-5  4.9e-5 2.8e-5
mklms+none     2.3e-2 2.3e-3  1.1e-2 1.8e-3  9.0e-3 2.4e-3  6.2e-3 2.0e-3  4.3e-3 1.1e-3  3.4e-3 7.3e-4  2.7e-3 5.9e-4  1.6e-3 3.9e-4  9.6e-4 2.0e-4
mklms+ls       1.3e-2 4.7e-3  4.3e-3 2.5e-3  1.0e-3 1.3e-3  2.5e-4 5.5e-4  7.6e-5 4.6e-5  5.1e-5 2.8e-5  4.9e-5 2.8e-5  4.9e-5 2.8e-5  4.9e-5 2.8e-5
mklms+fklms    1.3e-2 6.0e-3  6.8e-3 2.7e-3  2.0e-3 1.5e-3  8.5e-4 4.8e-4  4.2e-4 2.3e-4  2.4e-4 1.4e-4  1.7e-4 1.2e-4  1.2e-4 7.8e-5  8.5e-5 4.5e-5
nt+klms        1.0e-2 2.9e-3  5.7e-3 1.9e-3  4.1e-3 1.8e-3  2.3e-3 1.2e-3  1.8e-3 1.1e-3  1.2e-3 1.1e-3  1.1e-3 9.4e-4  4.6e-4 5.9e-4  2.3e-4 4.3e-4
"""
AFTER = """
klms           1.4e-1 6.9e-3  4.4e-2 8.5e-3  1.1e-3 4.2e-4  6.3e-5 5.6e-5  4.7e-5 2.7e-5  4.8e-5 2.8e-5  4.9e-5 2.8e-5  4.9e-5 2.8e-5  4.9e-5 2.8e-5
mklms          8.2e-3 5.5e-3  2.0e-3 1.3e-3  5.6e-4 4.8e-4  1.3e-4 9.0e-5  6.5e-5 3.7e-5  5.1e-5 2.9e-5  4.9e-5 2.8e-5  4.9e-5 2.8e-5  4.9e-5 2.8e-5
sup            1.0e-2 6.7e-3  2.4e-3 2.4e-3  6.2e-4 4.8e-4  1.2e-4 7.5e-5  6.2e-5 3.8e-5  4.9e-5 2.8e-5  4.9e-5 2.8e-5  4.9e-5 2.8e-5  4.9e-5 2.8e-5
ls             1.0e-2 6.6e-3  2.6e-3 2.6e-3  4.9e-4 4.1e-4  9.6e-5 5.9e-5  5.5e-5 3.1e-5  4.9e-5 2.8e-5  4.9e-5 2.8e-5  4.9e-5 2.8e-5  4.9e-5 2.8e-5
lsreg          1.0e-2 6.6e-3  2.7e-3 2.7e-3  4.6e-4 3.7e-4  9.0e-5 5.1e-5  5.8e-5 3.1e-5  4.9e-5 2.8e-5  4.9e-5 2.8e-5  4.9e-5 2.8e-5  4.9e-5 2.8e-5
lsridge        1.0e-2 6.6e-3  2.8e-3 2.7e-3  4.5e-4 3.6e-4  9.7e-5 6.1e-5  6.2e-5 3.6e-5  5.5e-5 3.1e-5  5.3e-5 3.3e-5  5.3e-5 3.2e-5  5.2e-5 3.1e-5
fklms          2.7e-2 2.1e-2  6.7e-3 7.2e-3  2.0e-3 2.0e-3  5.2e-4 4.9e-4  2.7e-4 2.3e-4  2.1e-4 2.2e-4  1.6e-4 1.0e-4  1.4e-4 1.1e-4  1.1e-4 8.7e-5
fmklms         1.0e-2 3.7e-3  4.6e-3 2.4e-3  1.6e-3 1.1e-3  8.9e-4 6.0e-4  5.7e-4 2.9e-4  3.9e-4 2.0e-4  3.0e-4 1.8e-4  1.9e-4 1.2e-4  1.3e-4 7.4e-5
"""
REFERENCE = (4.9e-5, 2.8e-5)  # nothing removed
GRID = np.linspace(-3, 3, 601)


def table(text: str) -> dict[tuple[str, int], tuple[float, float]]:
    rows = [line.split() for line in text.strip().splitlines()]
    return {(row[0], n): (float(row[1 + 2 * i]), float(row[2 + 2 * i])) for row in rows for i, n in enumerate(SIZES)}


def of_table(method: str, n_max: int, when: str = "after", **keys: Any) -> Spec:
    """What a row's name means, without a ridge.

    The note has no ald_threshold either, but inverts afresh each time.  Metrics that see the projection lose nothing by one;
    for the others it must be as small as numbers allow, and what they do with many vectors is chance.
    """
    technique, _, projection = method.partition("+")
    technique, _, tie = technique.partition("-")
    by_matrix = (
        {"ridge": 0.0, "ald_threshold": 1e-9 if projection else 1e-6}
        if technique not in ("nt", "at") or projection
        else {"ald_threshold": 0.0}
    )
    if technique in ("fklms", "fmklms", "afklms") and not projection:
        by_matrix = {"ald_threshold": 0.0}
    keys = by_matrix | ({"penalty": 1e-6} if technique in ("lsreg", "lsridge") else {}) | keys
    if projection:
        keys["projection"] = projection
    elif technique in ("fklms", "fmklms", "afklms", "afmklms"):
        keys["projection"] = "fklms"  # as published; the default bounds it
    if tie:
        keys["tie"] = tie
    return spec_of(technique, n_max, when=when, force=True, **{"eta": 0.1, "sigma": 0.5, **keys})


def realisation(made: Spec, seed: int) -> tuple[float, HostModel, np.ndarray]:
    """MSE on 601 points after 10 passes over 100 samples of sinc."""
    x = np.tile(np.random.default_rng(seed).uniform(-3, 3, (100, 1)), (10, 1))
    model = HostModel(made)
    statuses = model.update(x, np.sinc(x[:, 0]))
    return float(np.mean((model.predict(GRID[:, None]) - np.sinc(GRID)) ** 2)), model, statuses


@cache
def mean_error(made: Spec, realisations: int) -> float:
    errors = []
    for seed in range(realisations):
        error, _, statuses = realisation(made, seed)
        assert learned(statuses)
        errors.append(error)
    return float(np.mean(errors))


@pytest.mark.in_turn(27)
@pytest.mark.parametrize("when", ["after", "before"])
def test_sinc_errors_are_those_of_the_note(when: str, exhaustive: bool) -> None:
    """Section 9 of the note, all methods that do not diverge: equal means, within what so few realisations allow."""
    realisations = 100 if exhaustive else 8
    wrong = []
    for (method, n_max), (expected, spread) in table(AFTER if when == "after" else BEFORE).items():
        if (not exhaustive and n_max not in (8, 14, 24)) or ("+" in method and n_max > 14):
            continue
        mean = mean_error(of_table(method, n_max, when), realisations)
        # all hundred are those of the note, whose choices rounding may change
        exact = exhaustive and "+" not in method
        allowed = (0.0 if exact else 4 * spread * (1 / realisations + 1 / 100) ** 0.5) + 0.1 * expected
        print(f"{when} {method} N={n_max}: {mean:.2e}, note {expected:.1e} +- {allowed:.1e}")
        if not abs(mean - expected) < allowed:
            wrong.append(f"{method} N={n_max}: {mean:.2e}, not {expected:.1e} +- {allowed:.1e}")
    assert not wrong, wrong


@pytest.mark.exhaustive
def test_the_papers_claims() -> None:
    """Which hold is in the note, section 9, (a) to (g)."""
    realisations = 20
    unreduced = mean_error(of_table("nt", 100), realisations)
    assert abs(unreduced - REFERENCE[0]) < 4 * REFERENCE[1] * (1 / realisations + 1 / 100) ** 0.5

    def error(method: str, n_max: int) -> float:
        return mean_error(of_table(method, n_max), realisations)

    for n_max in (14, 24):  # as good as no reduction; the fast ones useful, but worse
        assert error("klms", n_max) < 1.1 * unreduced and error("mklms", n_max) < 1.15 * unreduced
        for fast in ("fklms", "fmklms"):
            assert 1.5 * unreduced < error(fast, n_max) < 12 * unreduced
    # starved, those that look at the multipliers are better, and later on they are not
    assert error("mklms", 6) < 0.2 * error("klms", 6) and error("mklms", 8) < error("klms", 8)
    assert error("klms", 12) < error("mklms", 12)
    assert error("fmklms", 6) < error("fklms", 6) and error("fklms", 14) < error("fmklms", 14)
    for method in ("ls", "lsreg"):  # no hump at 12 to 20
        for n_max in (8, 14, 20):
            assert error(method, n_max) < 1.5 * error("mklms", n_max)
    # sharing out is what matters: 5e-5 against 1.5e-2
    assert 5e-3 < error("nt", 14) < 3e-2 < 0.5 * error("at", 14)


def test_what_diverges_begins_anew() -> None:
    """FKLMS keeping the younger of a pair (note, section 8.3), and AFMKLMS, whose metric is negative where dense."""
    with pytest.raises(UserError, match="oldest"):
        spec_of("fklms", 14, tie="oldest")
    for made in (
        of_table("fklms", 14, tie="oldest", max_abs=1.0),
        of_table("afmklms", 14, max_abs=1.0, ald_threshold=0.0),
    ):
        restarted = 0
        for seed in range(5):
            _, model, statuses = realisation(made, seed)
            restarted += int((statuses == Status.RESTARTED).any())
            assert (statuses > 0).all()
            assert_sound(model)
        assert restarted >= 4


def test_a_repeated_vector_is_young_again() -> None:
    """Ten passes: nothing gets older than 100 samples if merging restarts the age (note, section 6: else 5.8e-2)."""
    plain = HostModel(of_table("mklms", 100, ald_threshold=1e-7))
    aged = HostModel(of_table("mklms", 100, ald_threshold=1e-7, truncate_age=101))
    x = np.tile(np.random.default_rng(0).uniform(-3, 3, (25, 1)), (40, 1))
    for model in (plain, aged):
        assert learned(model.update(x, np.sinc(x[:, 0])))
    np.testing.assert_array_equal(in_use(aged, "v"), in_use(plain, "v"))
    assert aged.predict(GRID[:, None]).tobytes() == plain.predict(GRID[:, None]).tobytes()
    # without repeats they go, and only those of the last 101 samples are left
    new = np.linspace(-3, 3, 150)[:, None]
    aged.update(new, np.zeros(150))
    assert in_use(aged, "age").max() <= 101 and np.isin(in_use(aged, "v"), new[-101:]).all()


def test_the_newest_alone_leaves_more_vectors_at_equal_loss() -> None:
    """Note, section 6: at lambda_max = 1e-5 13.2 vectors instead of 10.5, at the same error."""
    counts: dict[str, float] = {}
    for candidates in ("all", "newest"):
        # it takes as many as it needs: a loop in the note
        more: dict[str, Any] = {"removals": 16} if candidates == "all" else {}
        made = of_table("mklms", 60, candidates=candidates, lambda_max=1e-5, **more)
        results = [realisation(made, seed) for seed in range(20)]
        assert all(learned(statuses) for _, _, statuses in results)
        counts[candidates] = float(np.mean([model.memory.field("n")[0] for _, model, _ in results]))
        assert np.mean([error for error, _, _ in results]) < 2e-4
    print(counts)
    assert abs(counts["all"] - 10.5) < 1 and abs(counts["newest"] - 13.2) < 1.5


def test_least_squares_beats_the_gradient() -> None:
    """Note, section 11, at N = 8 and 14: KRLS-T and FB-KRLS are one to two orders better than MKLMS."""
    keys: dict[str, Any] = {"sigma": 0.5, "ridge": 1e-7, "ald_threshold": 2e-7}
    expected = {"krls-t": (8.0e-5, 7.1e-7), "fb-krls": (8.9e-5, 1.4e-6)}
    for rule, (at_8, at_14) in expected.items():
        more: dict[str, Any] = {"noise": 1e-4} if rule == "krls-t" else {}
        for n_max, note in ((8, at_8), (14, at_14)):
            mean = mean_error(spec_of("sup", n_max, rule=rule, **keys, **more), 20)
            print(f"{rule} N={n_max}: {mean:.1e}, note {note:.1e}")
            assert note / 10 < mean < 3 * note
            assert mean < mean_error(of_table("mklms", n_max), 20) / (3 if n_max == 8 else 20)


def size_tuned(key: str, values: np.ndarray, n_max: int, seed: int, **keys: Any) -> float:
    """The error with the first of the thresholds that leaves no more than n_max vectors: hindsight, as in the note."""
    for value in values:
        error, model, statuses = realisation(spec_of(n_max=60, **{**keys, key: float(value)}), seed)
        assert learned(statuses)
        if model.memory.field("n")[0] <= n_max:
            return error
    raise AssertionError(f"no {key} leaves {n_max} vectors")


@pytest.mark.exhaustive
def test_thresholds_tuned_to_the_budget() -> None:
    """Note, section 11, N = 14: ALD-KRLS 7.6e-6 (as good as SGD ever gets), QKLMS 9.3e-5, at eta = 0.5 3.2e-5."""
    ald_thresholds, quanta = np.geomspace(1e-5, 0.5, 40), np.linspace(0.05, 2, 60)
    ald = np.mean(
        [size_tuned("ald_threshold", ald_thresholds, 14, seed, rule="ald-krls", ridge=1e-7) for seed in range(10)]
    )
    slow, fast = (
        np.mean([size_tuned("quantisation", quanta, 14, s, technique="nt", rule="qklms", eta=eta) for s in range(10)])
        for eta in (0.1, 0.5)
    )
    print(f"ald-krls {ald:.1e}, qklms {slow:.1e} {fast:.1e}")
    assert 7.6e-6 / 4 < ald < 4 * 7.6e-6 and 9.3e-5 / 3 < slow < 3 * 9.3e-5 and 3.2e-5 / 3 < fast < 3 * 3.2e-5
    assert ald < fast < slow


# -------------------------------------------------------------------------------------------------- float32


@pytest.mark.in_turn(27)
@pytest.mark.parametrize("technique", ["klms", "mklms", "sup", "ls", "lsreg", "lsridge", "fklms", "fmklms"])
def test_float32_and_its_ridge_cost_little(technique: str) -> None:
    """5.4e-5 instead of 5.0e-5 at N = 14 (note, section 10)."""
    keys: dict[str, Any] = (
        {"ridge": 1e-3, "ald_threshold": 2e-3} if technique not in ("fklms", "fmklms") else {"ald_threshold": 0.0}
    )
    if technique == "lsridge":
        keys = {"ridge": 1e-3, "penalty": 1e-4}
    narrow, wide = (
        mean_error(of_table(technique, 14, precision=precision, **keys), 20) for precision in ("float32", "float64")
    )
    print(f"{technique}: {narrow:.2e}, {wide:.2e}")
    assert 0.8 * wide < narrow < 1.25 * wide


# worst |(K + ridge I) T'T - I| at ridge 1e-3, ald_threshold 2e-3: 3e-4 for MKLMS; a sliding window, where nothing protects the
# condition, 2e-3
DRIFT = {"sinc": 2e-3, "lorenz": 2e-3, "sliding": 2e-3}

LONG = [(technique, "klms") for technique in TECHNIQUES]
LONG += [
    ("mklms", "qklms"),
    ("sup", "krls-t"),
    ("klms", "krls-t"),
    ("sup", "fb-krls"),
    ("mklms", "sw-krls"),
    ("mklms", "ald-krls"),
    ("mklms", "knlms"),
]
COVERING = {("mklms", "klms", "sliding"), ("lsreg", "klms", "sinc"), ("lsridge", "klms", "lorenz"), ("ls", "klms", "sliding"),
    ("at", "klms", "lorenz"), ("afklms", "klms", "lorenz"), ("fmklms", "klms", "sliding"), ("sup", "krls-t", "sliding"),
    ("sup", "krls-t", "lorenz"), ("sup", "fb-krls", "sinc"), ("mklms", "qklms", "lorenz"), ("mklms", "ald-krls", "lorenz"),
    ("mklms", "ald-krls", "sinc"), ("mklms", "sw-krls", "lorenz"), ("mklms", "knlms", "sliding"), ("klms", "klms", "sinc")}  # fmt: skip


@pytest.mark.in_turn(54)
@pytest.mark.parametrize("stream", STREAMS)
@pytest.mark.parametrize(("technique", "rule"), LONG)
def test_float32_stays_sound_for_long(technique: str, rule: str, stream: str, exhaustive: bool) -> None:
    """A million samples: the state is finite and one that could be restored, the factor that of its vectors."""
    if not exhaustive and (technique, rule, stream) not in COVERING:
        pytest.skip("runs with --exhaustive")
    samples = 1_000_000 if exhaustive else 30_000
    generate, sigma = STREAMS[stream]
    x, y = generate(samples)
    keys: dict[str, Any] = {"rule": rule, "sigma": sigma}
    if rule in GRADIENT:
        keys["eta"] = 0.2
    if rule == "krls-t":
        keys |= {"forgetting": 0.999 if technique == "sup" else 1.0, "noise": 0.01}
    if rule not in FIXED:
        keys["force"] = True
    model = HostModel(spec_of(technique, 16, x.shape[1], "float32", **keys))
    worst, changes, refused = 0.0, 0, 0
    for part in range(0, samples, 1000):
        statuses = model.update(x[part : part + 1000], y[part : part + 1000])
        assert (statuses > 0).all()
        refused += int((statuses == Status.RESTARTED).sum())
        changes += int(np.isin(statuses, (Status.ADDED, Status.REPLACED)).sum())
        assert_sound(model)
        if model.config.keeps_factor:
            worst = max(worst, factor_error(model))
        if any(name in ("inverse", "squared", "z_re") for name in matrices(model)):
            model.refresh()
    assert np.isfinite(model.predict(x[-1000:])).all()
    if rule == "krls-t":  # the covariance is one
        spread = np.linalg.eigvalsh(posterior_of(model))
        print(f"covariance from {spread.min():.1e} to {spread.max():.1e}")
        assert spread.min() > 0
        variance = model.variance(x[-1000:])
        assert (variance > 0).all() and np.isfinite(variance).all()
    error = float(np.std(model.predict(x[-1000:]) - y[-1000:]))
    print(f"{technique} {rule} {stream}: drift {worst:.1e}, {changes} changes, {refused} refused, error {error:.2g}")
    assert worst < 10 * DRIFT[stream]
    assert technique == "afmklms" or error < 1.2 * float(np.std(y[-1000:]))
    # the fast projection may amplify (docs/reference/rules.md); on the third stream some rules are useless, and begin anew
    if technique not in ("fklms", "fmklms", "afklms", "afmklms") and stream != "sliding":
        assert refused == 0


# -------------------------------------------------------------------------------- refusals, limits, divergence


@pytest.mark.in_turn(54)
@pytest.mark.parametrize("technique", TECHNIQUES)
@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_multipliers_decay_to_zero_and_not_to_subnormal_numbers(technique: str, precision: str) -> None:
    model = HostModel(spec_of(technique, 4, precision=precision, sigma=1.0, eta=0.5, rho=0.2, force=True))
    model.update([[0.0], [50.0]], [1.0, 1.0])
    alpha = model.memory.field("alpha")
    least = 1.0
    for _ in range(1200):
        assert model.update([100.0], [0.0]) in (Status.ADDED, Status.MERGED)
        if alpha[0]:
            least = min(least, abs(alpha[0]))
    assert not alpha.any() and 2.0**-100 <= least < 2.0**-99


@pytest.mark.parametrize("technique", ["nt", "fklms", "mklms"])
def test_what_diverges_begins_anew_as_a_new_model(technique: str) -> None:
    """Dense data and a learning rate near 2, where the errors of nt and fklms feed themselves."""
    rng = np.random.default_rng(0)
    reduction = {"ridge": 1e-4, "ald_threshold": 2e-4} if technique == "mklms" else {"ald_threshold": 1e-6}
    made = spec_of(technique, 12, 3, "float32", sigma=1.0, eta=1.99, **reduction)
    x, y = rng.uniform(-1, 1, (20_000, 3)), rng.normal(size=20_000)
    model = HostModel(made)
    statuses = model.update(x, y)
    largest = np.abs(model.memory.field("alpha")).max()
    assert np.isfinite(model.predict(x)).all()
    if technique == "mklms":
        assert (statuses > 0).all() and largest < 1000
        return
    (restarted,) = np.nonzero(statuses == Status.RESTARTED)
    assert (statuses > 0).all() and len(restarted)
    fresh, after = HostModel(made), slice(restarted[-1] + 1, None)
    fresh.update(x[after], y[after])
    assert persistent(fresh) == persistent(model)
