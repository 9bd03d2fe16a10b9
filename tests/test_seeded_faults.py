"""The seeded faults still fit the code; running the suite on each is ``python -m tests.seeded_faults``."""

import ast
import functools
from collections import Counter

import pytest

from tests.seeded_faults import FAULTS, ROOMS
from tests.support import ROOT

dumped = functools.cache(lambda text: ast.dump(ast.parse(text)))


@pytest.mark.parametrize("number", range(1, len(FAULTS) + 1))
def test_a_fault_is_there_once_and_still_parses(number):
    fault = FAULTS[number - 1]
    text = (ROOT / fault.file).read_text(encoding="utf-8")
    changed = fault.applied(text)
    assert ast.dump(ast.parse(changed)) != dumped(text)
    with pytest.raises(ValueError, match="0 times, not once"):
        fault.applied(text.replace(fault.old, ""))


def test_there_are_fifty_faults_all_over_the_mathematics_and_ten_of_each_other_room():
    assert len(FAULTS) == len({fault[1:4] for fault in FAULTS})
    assert Counter(fault.room for fault in FAULTS) == {"": 50} | dict.fromkeys(ROOMS, 10)
    assert all((ROOT / file).is_file() for files in ROOMS.values() for file in files)
    rooms = Counter(fault.file.rsplit("/", 1)[0] for fault in FAULTS if not fault.room)
    assert set(rooms) >= {f"pykernel/algorithms{room}" for room in ("", "/online", "/batch", "/basis", "/subspace")} | {
        "pykernel/language"
    }
