"""A range for each input: what lies in it is answered, the next number beyond it is refused, on the host as in C."""

import numpy as np
import pytest

from pykernel.errors import UserError
from pykernel.gen.binding import CModel
from pykernel.gen.compilers import compiler
from pykernel.gen.project import build
from pykernel.host.model import HostModel
from pykernel.spec.model import make_spec
from pykernel.training.machine import Machine
from pykernel.training.trained import to_spec
from tests.support.tools import needs

pytestmark = needs("gcc")
TABLES = {"vectors": [[0.0, 0.0], [1.0, -1.0]], "weights": [[1.0], [2.0]], "bias": [0.5]}
INPUT = {"dim": 2, "max_abs": [3.0, 0.7]}
CENTERED = INPUT | {"center": [1500.0, -0.3], "scale": [0.1, 2.0]}
SPECS = {
    "frozen": {"input": CENTERED, "learning": {"rule": "frozen"}, "expansion": TABLES, "kernel": {"sigma": 1.0}},
    "stand-ins": {"input": CENTERED | {"missing": "mean"}, "learning": {"rule": "frozen"}, "expansion": TABLES}
    | {"kernel": {"sigma": 1.0}},
    "klms": {"input": INPUT, "learning": {"rule": "klms"}, "kernel": {"sigma": 1.0}, "reduction": {"n_max": 4}},
    "the default": {"input": INPUT | {"standardise": True}},
    "rls": {"input": INPUT, "learning": {"rule": "rls"}},
}


@pytest.mark.in_turn(5)
@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("kind", SPECS)
def test_the_device_refuses_the_next_number_beyond_each_end(kind, precision):
    spec = make_spec({"name": "m", "precision": precision, **SPECS[kind]})
    number = spec.real.dtype.type
    low, high = (side.astype(number) for side in spec.input_ranges)
    within = np.array([(low + high) / 2, low, high], number)
    beyond = np.repeat(within[:1], 7, axis=0)
    for row, j, value in ((0, 0, low[0]), (1, 0, high[0]), (2, 1, low[1]), (3, 1, high[1])):
        beyond[row, j] = np.nextafter(value, number(-np.inf if row % 2 == 0 else np.inf))
    beyond[4:, 1] = np.inf, -np.inf, np.nan
    expected = np.append(np.zeros(4, bool), [False, False, spec.completes])
    assert spec.accepts(within).all() and (spec.accepts(beyond) == expected).all()
    asked = np.vstack([within, beyond])
    (answers, statuses), told = (
        model.ask("predict", asked) for model in (HostModel(spec), CModel(build(spec), compiler("gcc"), ["-O2"]))
    )
    assert ((statuses < 0) == ~np.append(np.ones(3, bool), expected)).all() and (statuses == told[1]).all()
    assert answers.tobytes() == told[0].tobytes()


def test_a_list_of_another_length_or_with_no_range_is_refused():
    for limits, said in (
        ([1.0], r"max_abs holds 1 numbers; it must hold 2, one for each input"),
        ([1.0, 0.0], "max_abs holds 0.0; it must be a number above 0"),
        ([1.0, float("nan")], "max_abs holds nan; it must be a number above 0"),
        ([1.0, "x"], "max_abs holds 'x'; it must be a number above 0"),
    ):
        with pytest.raises(UserError, match=said):
            make_spec({"name": "m", "input": {"dim": 2, "max_abs": limits}})


def test_what_training_saw_bounds_a_kernel_machine_and_not_a_linear_one():
    rng = np.random.default_rng(0)
    seen = rng.uniform([10.0, -1.0], [20.0, 1.0], (300, 2))
    given = {"vectors": seen[:5], "weights": np.ones((5, 1)), "bias": np.zeros(1), "seen": seen}
    machine = Machine("a test", "gaussian", center=np.array([15.0, 0.0]), scale=np.array([0.3, 3.0]), **given)
    low, high = to_spec(machine, "m").input_ranges
    # half of the range more
    assert np.abs(low - [5.0, -2.0]).max() < 0.3 and np.abs(high - [25.0, 2.0]).max() < 0.3
    assert isinstance(to_spec(Machine("a test", "linear", **given), "m").input.max_abs, float)
    assert to_spec(machine, "m", max_abs=99.0).input.max_abs == 99.0
