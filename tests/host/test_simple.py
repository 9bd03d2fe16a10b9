"""Simple predictors of alarms: distances by their definition, and how many of a model's alarms they see."""

import itertools
import json

import numpy as np
import pytest

from pykernel.host.monitoring import Monitoring
from pykernel.host.simple import Distances, SeenAlarms, simple_bytes
from pykernel.spec.model import make_spec


def in_parts(step, rows, length):
    return np.concatenate([step(rows[i : i + length]) for i in range(0, len(rows), length)])


@pytest.mark.parametrize("dim", [1, 3])
def test_distances_are_those_to_the_rows_before_the_block(dim: int) -> None:
    rng = np.random.default_rng(dim)
    x = (rng.normal(size=(600, dim)) @ rng.normal(size=(dim, dim)) + 100).astype(np.float32)
    x[77, 0] = np.nan
    found = in_parts(Distances(dim).step, x, 37)
    np.testing.assert_array_equal(found, Distances(dim).step(x))
    assert (found[:50] == 0).all() and np.isnan(found[77]).all()
    for row in (50, 99, 350, 599):
        before = x[: row // 50 * 50].astype(float)
        before = before[np.isfinite(before).all(axis=1)]
        z = (x[row] - before.mean(axis=0)) / before.std(axis=0)
        correlation = np.corrcoef(before.T).reshape(dim, dim) + Distances.RIDGE * np.eye(dim)
        expected = [np.abs(z).max(), np.sqrt(z @ np.linalg.inv(correlation) @ z)]
        np.testing.assert_allclose(found[row], expected, rtol=1e-6)


def test_about_the_last_thousand_rows_count() -> None:
    x = np.random.default_rng(0).normal(size=(20_000, 2)).astype(np.float32)
    x[10_000:] += 20
    far = Distances(2).step(x)[:, 0]
    assert far[10_000:10_050].min() > 10 and far[-1000:].max() < 7


def test_a_constant_input_that_moves_is_far_and_many_inputs_have_no_mahalanobis_distance() -> None:
    x = np.ones((200, 300), np.float32)
    x[150, 7] = 1.1
    distances = Distances(300)
    found = distances.step(x)[:, 0]
    assert distances.names == ("max |z|",) and found[150] > 1e6 and (np.delete(found, 150) < 1e-3).all()


def test_alarms_that_a_distance_sees_are_counted_as_if_all_rows_were_kept() -> None:
    rng = np.random.default_rng(3)
    for _ in range(20):
        # powers of 2 that are steps of the table, so that both count alike
        distances = 2.0 ** rng.integers(-20, 20, (300, 1))
        alarmed = rng.random(300) < rng.choice([0.02, 0.3])
        seen, begins = SeenAlarms(("d",)), alarmed & ~np.concatenate([[False], alarmed[:-1]])
        which = np.cumsum(begins) * alarmed
        for i in range(0, 300, 41):
            seen.take(distances[i : i + 41], which[i : i + 41])
        alarms = [
            max(distances[row, 0] for row, _ in rows)
            for now, rows in itertools.groupby(enumerate(alarmed), key=lambda each: each[1])
            if now
        ]
        # the lowest threshold that at most as many rows reach as are in alarm
        enough = [t for t in np.unique(distances) if (distances >= t).sum() <= alarmed.sum()]
        expected = sum(max_of >= min(enough) for max_of in alarms) / len(alarms) if enough and alarms else 0.0
        found = seen.report()
        assert found["d"] == (expected if alarms else None)
        part, lengths = alarmed.mean(), [len(list(g)) for now, g in itertools.groupby(alarmed) if now]
        if lengths:
            assert found["chance"] == pytest.approx(np.mean([1 - (1 - part) ** length for length in lengths]))


@pytest.mark.parametrize(
    ("content", "bytes"),
    [
        # the linear model: three weights, a triangle of 3 rows, three moments of each input, its first, a mean, and five counts
        ({"label": {"column": "y"}}, {"last label": 4, "running mean": 8, "linear model": 4 * (3 + 6 + 6 + 2 + 1 + 5)}),
        ({"label": {"column": "y"}, "precision": "float64"}, {"last label": 8, "running mean": 12}),
        ({"label": {"column": "y", "classes": ["a", "b", "c"]}}, {"last label": 4, "majority class": 12}),
        ({"novelty": {}}, {"max |z|": 16, "Mahalanobis distance": 20}),
        ({"learning": {"rule": "okfeb"}, "kernel": {"sigma": 1.0}}, {}),
    ],
)
def test_bytes_of_simple_predictors(content: dict, bytes: dict) -> None:
    found = simple_bytes(make_spec({"name": "m", "input": {"dim": 2}} | content))
    assert {name: found[name] for name in bytes} == bytes and bool(found) == bool(bytes)


def test_what_the_model_refuses_is_not_compared() -> None:
    """A refused row is no reason for a distance to be blind, ends no alarm, and is none."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=(4000, 3))
    for start in range(1000, 4000, 500):
        x[start : start + 60] += 6
    spec = make_spec({"name": "m", "input": {"dim": 3, "max_abs": 100.0}, "novelty": {}})

    def alarms(value: float) -> tuple[int, dict, int]:
        changed = x.copy()
        changed[5::7, 0] = value
        monitoring = Monitoring(spec)
        for _ in monitoring.run(changed, np.zeros((len(x), 0))):
            pass
        report = monitoring.report()["alarms"]
        return report["count"], report["simple"], int(monitoring.seen.counts[1, 0].sum())

    count, simple, counted = alarms(np.nan)
    assert alarms(-9999.0) == alarms(1e30) == (count, simple, counted) and counted in (count, count - 1)


def test_the_command_tells_it(run, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2000, 2)) * [1, 50] + [0, 300]
    for start in range(700, 2000, 200):
        x[start : start + 10, 0] += 12
    np.savetxt("data.csv", x, delimiter=",", header="a,b", comments="")
    with open("spec.toml", "w") as file:
        file.write('name = "m"\n[input]\ncolumns = ["a", "b"]\n[novelty]\n')
    code, out, _ = run("simulate", "spec.toml", "data.csv", "--json")
    simple = json.loads(out)["alarms"]["simple"]
    assert code == 0 and {name: each["bytes"] for name, each in simple.items()} == {
        "max |z|": 16,
        "Mahalanobis distance": 20,
    }
    # each of the seven offsets is far beyond anything normal
    assert all(each["seen"] > 0.25 for each in simple.values())
