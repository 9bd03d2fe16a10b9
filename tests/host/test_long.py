"""The gate of numerics, shortened: float32 does on long smooth streams what float64 does, at the defaults and at limits of keys."""

from __future__ import annotations

import pytest

from benchmarks.host import long

SHORT = [
    ("krls-t", "lorenz", 4.0, 16, 20_000),
    ("ald-krls, least ridge", "sines", 4.0, 16, 15_000),
    ("quadratic-rls, forgetting 0.99", "sensors", 0, 0, 15_000),
    ("okfeb", "mackey", 20.0, 16, 4_000),
]
"""Each had errors of 1.2 to 20 times those of float64, until what it keeps was written in other coordinates."""

KNOWN: dict[str, float] = {
    "krls-t, least ridge and noise": 1.25,
    "krls-t, the same, forgetting 0.9999": 1.15,
    "okfeb, drop": 1.4,
}
"""Rule -> what the geometric mean of its errors may be, in parts of float64's, in place of ``long.MOST_WORSE``."""


def judged(tasks: list[dict[str, object]]) -> list[long.Verdict]:
    rows = [{key: str(value) for key, value in row.items()} for row in long.rows_of(tasks, [*map(long.both, tasks)])]
    return list(long.verdicts(rows))


@pytest.mark.in_turn(18)
@pytest.mark.parametrize(("rule", "stream", "sigma", "n_max", "samples"), SHORT)
def test_float32_errs_as_float64_does(rule: str, stream: str, sigma: float, n_max: int, samples: int) -> None:
    size = {"sigma": sigma, "n_max": n_max, "samples": samples}
    (verdict,) = judged([{"rule": rule, "stream": stream, **size, "seed": seed} for seed in (0, 1, 2)])
    assert verdict.held, verdict


@pytest.mark.exhaustive
@pytest.mark.parametrize("rule", long.RULES)
@pytest.mark.parametrize("stream", long.STREAMS)
def test_every_rule_keeps_the_contract(rule: str, stream: str) -> None:
    """At the sizes of the gate, with all seeds; in the mean, for tenths alone are chance where choices differ."""
    tasks = [each for each in long.tasks_of(rule) if each["stream"] == stream]
    for verdict in judged(tasks):
        assert verdict.works and verdict.mean <= KNOWN.get(rule, long.MOST_WORSE), verdict


@pytest.mark.exhaustive("minutes")
@pytest.mark.parametrize("stream", long.STREAMS)
def test_a_spec_without_a_rule_keeps_it_for_ten_million_samples(stream: str) -> None:
    size = {"sigma": long.MILLION[0], "n_max": long.MILLION[1], "samples": 10_000_000}
    (verdict,) = judged([{"rule": "no rule", "stream": stream, **size, "seed": 0}])
    assert verdict.works and verdict.mean <= long.MOST_WORSE, verdict


def test_the_table_counts_what_was_refused_and_what_is_worse() -> None:
    """Below the floor nothing is worse; a refusal, or a state that is not sound, is never allowed."""
    task = {"rule": "rls", "stream": "ramp", "sigma": 1.0, "n_max": 8, "samples": 100, "seed": 0}

    def made(wide: float, narrow: float, refused: int = 0, unsound: int = 0) -> long.Verdict:
        found = {"refused": refused, "unsound": unsound, "errors": [narrow] * long.TENTHS}
        both = {
            "float64": {"refused": 0, "unsound": 0, "errors": [wide] * long.TENTHS},
            "float32": found,
            "largest": 2.0,
        }
        rows = [{key: str(value) for key, value in row.items()} for row in long.rows_of([task], [both])]
        (verdict,) = long.verdicts(rows)
        assert f"| {refused} |" in long.table_of(rows)
        return verdict

    assert made(0.1, 0.105).held and made(1e-5, 1e-3).held and made(0.1, 0.05).held
    for verdict in (made(0.1, 0.106), made(1e-3, 3e-3), made(0.1, 0.1, refused=1), made(0.1, 0.1, unsound=1)):
        assert not verdict.held and not verdict.held_in_the_mean
