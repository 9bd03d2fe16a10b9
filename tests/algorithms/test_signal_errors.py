"""docs/guide/signals.md's table of errors: no window exceeds it, also of those that a search makes for that."""

import re

import numpy as np
import pytest

from tests.support import DOCS
from tests.support.signal_errors import (
    EPSILON,
    EXTENDED,
    FLATTEST,
    Judge,
    Truth,
    errors_of_noise,
    promises,
    random_windows,
    worst_windows,
)

pytestmark = pytest.mark.skipif(not EXTENDED, reason="NumPy's longdouble is no wider than float64 here")
SIZES = [(8, 8), (8, 4), (16, 16), (16, 2), (24, 2), (32, 8), (64, 64), (64, 32), (256, 2), (256, 32), (256, 256)]


def within(found):
    """Raises AssertionError for the feature whose error is beyond the page's, with the window."""
    for kind, (part, window) in found.items():
        assert part <= 1, (kind, part, window.tolist())


@pytest.mark.in_turn(18)
@pytest.mark.parametrize("precision", EPSILON)
@pytest.mark.parametrize(("window", "hop"), [(8, 8), (16, 4), (24, 2), (64, 32)])
def test_a_search_finds_no_larger_error(window, hop, precision):
    found = worst_windows(window, hop, precision, promises(), generations=8)
    within(found)
    # the page does not promise much less than what there is, and the search is one
    near = {"mean", "rms", "crest", "change", "slope", "crossings"} | ({"band 0"} if window != 24 else set())
    assert all(found[kind][0] > 0.05 for kind in near), {kind: part for kind, (part, _) in found.items()}


@pytest.mark.exhaustive
@pytest.mark.parametrize("precision", EPSILON)
@pytest.mark.parametrize(("window", "hop"), SIZES)
def test_a_long_search_finds_no_larger_error(window, hop, precision):
    for seed in range(1 if window > 64 else 3):
        within(worst_windows(window, hop, precision, promises(), seed, generations=60 if window > 64 else 150))


def test_a_promise_that_is_too_small_is_noticed():
    """Each of the factors a tenth of the page's."""
    tenth = {kind: (factor / 10, unit) for kind, (factor, unit) in promises().items()}
    found = worst_windows(16, 16, "float32", tenth, generations=8)
    assert {kind for kind, (part, _) in found.items() if part > 1} >= {"mean", "rms", "std", "kurtosis", "band 0"}


@pytest.mark.parametrize("precision", EPSILON)
def test_a_power_of_nothing_does_not_decide_flatness(precision):
    """Of whole numbers some powers are zero but for rounding: the definition counts them as a part of the mean."""
    x = np.array([-1, 1, 0, 0, 1, 1, 0, -1, -1, -1, -1, 1, -1, 0, -1, 1], precision)
    for window in (x, np.tile([1, 1, -1, -1], 4).astype(precision), np.eye(16)[5].astype(precision)):
        judge = Judge(16, 16, precision, promises())
        assert judge.parts(np.stack([window, x])[None])["flatness"][0] <= 1
    powers = Truth(np.tile([1, 1, -1, -1], 4)).powers()
    # two powers beside the tone, by the window; the other five
    assert (powers > 1e-6).sum() == 3 and Truth(np.tile([1, 1, -1, -1], 4)).value("flatness") < FLATTEST**0.6


def test_small_and_large_numbers_are_as_exact_within_the_pages_limits(monkeypatch):
    page = " ".join((DOCS / "guide/signals.md").read_text(encoding="utf-8").split())
    assert "`kurtosis` needs s > 10⁻⁹, `skewness` needs s > 10⁻¹², and all other features need s > 10⁻¹⁶" in page
    assert "pykernel refuses a `max_abs` above 10⁸ with `kurtosis`, or above 10¹¹ with `skewness`." in page
    monkeypatch.setattr("tests.support.signal_errors.LEAST_STD", 0.0)
    x = random_windows(np.random.default_rng(5), 1000, 64)
    std = x.std(-1, keepdims=True)
    keep = ((std > 0) & (np.abs(x.mean(-1, keepdims=True)) < 1e6 * std)).all((1, 2))
    shape = x[keep] / std[keep]
    peaks = np.abs(shape).max(-1, keepdims=True)
    for least, most, kinds in ((1e-9, 1e8, {"kurtosis"}), (1e-12, 1e11, {"skewness"}), (1e-16, 1e15, set())):
        judge = Judge(64, 32, "float32", promises(), max_abs=most)
        for windows in (1.01 * least * shape, 0.999 * most * shape / peaks):
            parts = judge.parts(windows.astype(np.float32))
            assert kinds <= set(parts) and (kinds or not {"kurtosis", "skewness"} & set(parts))
            for kind in kinds or set(parts) - {"kurtosis", "skewness", "flatness"}:
                assert parts[kind].max() <= 1, (kind, least, most)


def test_the_page_has_the_errors_of_noise():
    page, near, far = (DOCS / "guide/signals.md").read_text(encoding="utf-8"), errors_of_noise(0), errors_of_noise(1e5)
    for kind in near:
        line = next(line for line in page.split("## How exact")[1].splitlines() if f"`{kind}`" in line)
        same = re.findall(r"`(\w+)`", line)
        told = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[3:5]]
        most = [max(found.get(each, 0.0) for each in same) for found in (near, far)]
        assert told == [f"{error:.0e}".replace("e-0", "e-") if error else "0" for error in most], kind
