"""Signatures, docstrings and refusals that follow from the declarations of parameters."""

import inspect
import pickle
from types import SimpleNamespace

import pytest
from sklearn.base import clone

from pykernel import BudgetedKernelClassifier, BudgetedKernelRegressor
from pykernel.errors import UserError
from pykernel.estimators.parameters import Parameter, moved, of_keys
from pykernel.spec.families.online import KernelSpec
from pykernel.spec.sections import Section
from tests.support.signatures import shown


@pytest.mark.parametrize(
    ("kind", "given", "says"),
    [
        (BudgetedKernelRegressor, "n_mx", "'n_mx' is not a parameter; did you mean 'n_max'?"),
        (
            BudgetedKernelClassifier,
            "label_max_abs",
            "'label_max_abs' is not a parameter; did you mean 'input_max_abs'?",
        ),
    ],
)
def test_a_misspelt_parameter_is_refused_with_the_nearest_name(kind, given, says):
    with pytest.raises(TypeError) as refused:
        kind(**{given: 1})
    assert isinstance(refused.value, UserError) and str(refused.value).startswith(f"{kind.__name__}: {says}")
    with pytest.raises(TypeError, match="too many positional"):
        kind(1, 2, 3)
    with pytest.raises(ValueError, match=f"Invalid parameter '{given}'"):
        kind().set_params(**{given: 1})


class Narrow(BudgetedKernelRegressor):
    """A user's own estimator: with an ``__init__`` of its own, and with fewer parameters."""

    def __init__(self, width=2.0):
        super().__init__("nt", rule="klms", sigma=width)
        self.width = width


class Renamed(BudgetedKernelRegressor):
    pass


def test_a_class_below_may_have_its_own_init():
    assert list(inspect.signature(Narrow).parameters) == ["width"]
    model = Narrow(3.0).fit([[0.0], [1.0]], [0.0, 1.0])
    assert model.get_params() == {"width": 3.0} and clone(model).sigma == 3.0
    assert model.spec_.kernel.sigma == 3.0 and model.spec_.reduction.technique == "nt"
    below = pickle.loads(pickle.dumps(Renamed("nt", n_max=7)))
    assert below.get_params()["n_max"] == 7 and shown(Renamed) == shown(BudgetedKernelRegressor)
    assert inspect.getdoc(Renamed) == inspect.getdoc(BudgetedKernelRegressor)


class Gate(Section):
    eta: float = 1.0
    open: bool = True


class GatedSpec(KernelSpec):
    gate: Gate = Gate()


def test_keys_of_several_sections_become_parameters_of_different_names():
    found = of_keys([SimpleNamespace(spec=GatedSpec)] * 2, ["learning", "gate"])
    assert found["eta"] == Parameter("learning", "eta", None, float | None)
    assert found["gate_eta"] == Parameter("gate", "eta", None, float | None)
    assert found["open"] == Parameter("gate", "open", True, bool) and found["noise"].kind == float | str | None
    assert list(found)[:2] == ["rule", "eta"] and list(moved(found, {"eta": "rho"}))[:3] == ["rule", "rho", "eta"]
