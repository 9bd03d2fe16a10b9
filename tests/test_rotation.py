"""The part of the exhaustive suite whose turn it is beside a commit."""

from types import SimpleNamespace

from tests.conftest import EVERY_COMMIT, ROTATED, in_its_turn, left_out


def waiting():
    """Ten functions with the mark, of 1 to 4 combinations, and sixty without."""
    for mark, functions in ((True, 10), (False, 60)):
        for number in range(functions):
            for case in range(1 + number % 4):
                name = f"tests/test_{mark}.py::test_{number}[{case}]"
                known = SimpleNamespace(args=()) if mark else None
                yield SimpleNamespace(nodeid=name, get_closest_marker=lambda _, known=known: known)


def test_each_commit_has_its_turn_and_in_some_hundred_every_test_has_one():
    items = list(waiting())
    turns = [[item.nodeid for item in in_its_turn(items, f"{commit:040x}")] for commit in range(500)]
    assert turns[7] == [item.nodeid for item in in_its_turn(items[::-1], f"{7:040x}")]
    functions = [{name.partition("[")[0] for name in turn} for turn in turns]
    assert all(len(names) == len(turn) == sum(ROTATED.values()) for names, turn in zip(functions, turns, strict=True))
    assert set.union(*functions[:100]) == {item.nodeid.partition("[")[0] for item in items}
    assert {name for turn in turns for name in turn} == {item.nodeid for item in items}
    assert in_its_turn(items, "") == []
    long = SimpleNamespace(
        nodeid="tests/test_long.py::test", get_closest_marker=lambda _: SimpleNamespace(args=("minutes",))
    )
    assert in_its_turn([long], "0") == []


def test_each_commit_leaves_out_half_of_the_functions_and_none_for_long():
    items = [
        SimpleNamespace(nodeid=f"tests/cli/test_a.py::test_{number}[{case}]") for number in range(200) for case in "ab"
    ]
    always = [SimpleNamespace(nodeid=f"{each}x.py::test_a") for each in EVERY_COMMIT]
    left = [{item.nodeid for item in left_out(items + always, f"{commit:040x}")} for commit in range(20)]
    assert all(70 < len({name.partition("[")[0] for name in names}) == len(names) / 2 < 130 for names in left)
    assert set.intersection(*left) == set() and not {item.nodeid for item in always} & set.union(*left)
    assert left_out(items, "") == []
