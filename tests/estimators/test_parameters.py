"""Signatures, docstrings and refusals that follow from the declarations of parameters."""

import inspect
import pickle
import pydoc
from types import SimpleNamespace

import pytest
from sklearn.base import clone

import pykernel
from pykernel import BudgetedKernelClassifier, BudgetedKernelRegressor, KernelBasis, OnlineKernelSubspace
from pykernel.errors import UserError
from pykernel.estimators.parameters import Parameter, moved, of_keys
from pykernel.spec.families.online import KernelSpec
from pykernel.spec.sections import Section
from tests.support.signatures import shown

SIGNATURES = {
    "BudgetedKernelClassifier": """
        technique=None, *, rule=None, n_max=None, sigma=None, kernel=None, gamma=None, coef0=None, degree=None,
        normalise=False, eta=None, rho=None, step_limit=None, quantisation=None, coherence=None, epsilon=None,
        forgetting=None, noise=None, relabel=False, prior_variance=None, features=None, seed=None, block=None, frequency_eta=None, ridge=None,
        ald_threshold=None, projection=None, penalty=None, when=None, candidates=None, lambda_max=None, removals=None,
        truncate_below=None, truncate_age=None, tie=None, fading=None, force=False, precision='float32', n_epochs=None,
        input_max_abs=None, missing=None
    """,
    "BudgetedKernelRegressor": """
        technique=None, *, rule=None, n_max=None, sigma=None, kernel=None, gamma=None, coef0=None, degree=None,
        normalise=False, eta=None, rho=None, step_limit=None, quantisation=None, coherence=None, epsilon=None,
        forgetting=None, noise=None, relabel=False, prior_variance=None, features=None, seed=None, block=None, frequency_eta=None, ridge=None,
        ald_threshold=None, projection=None, penalty=None, when=None, candidates=None, lambda_max=None, removals=None,
        truncate_below=None, truncate_age=None, tie=None, fading=None, force=False, precision='float32', n_epochs=None,
        input_max_abs=None, label_max_abs=None, missing=None, interval_level=None
    """,
    "KernelBasis": """
        kernel='gaussian', *, gamma=None, sigma=None, coef0=1.0, degree=3, normalise=False, n_components=100,
        method='auto', candidates=59, points=59, tau=0.0, epsilon=1e-10, method_params=None, random_state=0
    """,
    "KernelFisherClassifier": """
        kernel='gaussian', *, sigma=None, gamma=None, coef0=1.0, degree=3, ridge=None, coding='counts', basis=None,
        basis_params=None, cv='deleted', by='error', jobs=None, progress=False, precision='float32', random_state=0
    """,
    "KernelRidgeClassifier": """
        kernel='gaussian', *, sigma=None, gamma=None, coef0=1.0, degree=3, ridge=None, coding='signs', basis=None,
        basis_params=None, cv='deleted', by='error', jobs=None, progress=False, precision='float32', random_state=0
    """,
    "KernelRidgeRegressor": """
        kernel='gaussian', *, sigma=None, gamma=None, coef0=1.0, degree=3, ridge=None, basis=None, basis_params=None,
        cv='deleted', jobs=None, progress=False, precision='float32', random_state=0
    """,
    "KernelSubspace": """
        n_components=None, *, kernel=None, sigma=None, gamma=None, coef0=None, degree=None, normalise=False, shrinkage=0.1,
        n_max=None, method='closed', max_iter=200, tol=1e-10, random_state=0
    """,
    "LSSVMClassifier": """
        kernel='gaussian', *, sigma=None, gamma=None, coef0=1.0, degree=3, ridge=None, coding='signs', basis=None,
        basis_params=None, cv='deleted', by='error', jobs=None, progress=False, precision='float32', random_state=0
    """,
    "LSSVMRegressor": """
        kernel='gaussian', *, sigma=None, gamma=None, coef0=1.0, degree=3, ridge=None, basis=None, basis_params=None,
        cv='deleted', jobs=None, progress=False, precision='float32', random_state=0
    """,
    "OnlineKernelSubspace": """
        n_components=8, *, n_max=64, kernel=None, sigma=None, gamma=None, coef0=None, degree=None, normalise=False,
        update=None, shrinkage=None, step=None, eta=None, window=None, forgetting=None, budget=None, ald_threshold=None,
        fading=None, insensitivity=None, censoring=None, false_alarm_rate=None, threshold=None, smoothing=None,
        warmup=None, relearn_after=None, precision='float32', n_epochs=1, input_max_abs=None, missing=None
    """,
    "OnlineMonitor": """
        components=None, *, false_alarm_rate=None, smoothing=None, warmup=None, relearn_after=None, missing=None,
        precision='float32', input_max_abs=None
    """,
    "OnlineSubspaceClassifier": """
        n_components=16, *, n_max=64, kernel=None, sigma=None, gamma=None, coef0=None, degree=None, normalise=False,
        update=None, shrinkage=None, step=None, eta=None, window=None, forgetting=None, budget=None, ald_threshold=None,
        fading=None, insensitivity=None, censoring=None, head=None, ridge=None, head_forgetting=None, head_eta=None,
        false_alarm_rate=None, threshold=None, smoothing=None, warmup=None, relearn_after=None, precision='float32',
        n_epochs=1, input_max_abs=None, missing=None
    """,
    "OnlineSubspaceRegressor": """
        n_components=16, *, n_max=64, kernel=None, sigma=None, gamma=None, coef0=None, degree=None, normalise=False,
        update=None, shrinkage=None, step=None, eta=None, window=None, forgetting=None, budget=None, ald_threshold=None,
        fading=None, insensitivity=None, censoring=None, ridge=None, head_forgetting=None, false_alarm_rate=None,
        threshold=None, smoothing=None, warmup=None, relearn_after=None, precision='float32', n_epochs=1,
        input_max_abs=None, label_max_abs=None, missing=None
    """,
    "SignalFeatures": """
        window=None, hop=None, *, rate=None, features=None, bands=None, log=False, lags=None, differences=None,
        averages=None, periods=None, max_abs=None, resolution=None, precision='float32'
    """,
    "SupportVectorClassifier": """
        kernel='gaussian', *, sigma=None, gamma=None, coef0=1.0, degree=3, C=1.0, penalty='l2', basis=None,
        basis_params=None, tol=0.1, cv=5, progress=False, precision='float32', random_state=0
    """,
    "SupportVectorRegressor": """
        kernel='gaussian', *, sigma=None, gamma=None, coef0=1.0, degree=3, C=1.0, penalty='l2', epsilon=0.1, basis=None,
        basis_params=None, tol=0.1, cv=5, progress=False, precision='float32', random_state=0
    """,
    "TrainedKernelClassifier": """
        n_vectors=None, *, standardise=None, widths=None, ridge=None, cv=5, max_iter=300, init='k-means', n_init=3,
        progress=False, precision='float32', random_state=0
    """,
    "TrainedKernelRegressor": """
        n_vectors=None, *, loss='squared', standardise=None, widths=None, ridge=None, cv=5, max_iter=300,
        init='k-means', n_init=3, progress=False, precision='float32', random_state=0
    """,
}
"""As they were when each class wrote its own."""


@pytest.mark.parametrize("name", SIGNATURES)
def test_signatures_keep_their_parameters_order_and_defaults(name):
    kind = getattr(pykernel, name)
    assert shown(kind) == " ".join(SIGNATURES[name].split())
    signature = inspect.signature(kind.__init__)
    assert list(signature.parameters) == ["self", *inspect.signature(kind).parameters]
    assert all(each.annotation is not inspect.Parameter.empty for each in inspect.signature(kind).parameters.values())
    assert list(inspect.signature(kind().__init__).parameters) == list(inspect.signature(kind).parameters)


@pytest.mark.parametrize("name", SIGNATURES)
def test_help_shows_all(name):
    kind = getattr(pykernel, name)
    told = pydoc.plain(pydoc.render_doc(kind))
    assert inspect.getdoc(kind).splitlines()[0] in told and "{" not in inspect.getdoc(kind).partition("Parameters\n")[0]
    for parameter in inspect.signature(kind).parameters:
        assert told.count(f"{parameter}") >= 2, parameter
    for placeholder in ("{parameters}", "{others}", "{attributes}", *kind._words):
        assert placeholder not in told


@pytest.mark.parametrize(
    ("kind", "given", "says"),
    [
        (BudgetedKernelRegressor, "n_mx", "'n_mx' is not a parameter; did you mean 'n_max'?"),
        (
            BudgetedKernelClassifier,
            "label_max_abs",
            "'label_max_abs' is not a parameter; did you mean 'input_max_abs'?",
        ),
        (OnlineKernelSubspace, "force", "'force' is not a parameter; there are: n_components, n_max, kernel, sigma, "),
        (KernelBasis, "n_component", "'n_component' is not a parameter; did you mean 'n_components'?"),
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
    found = of_keys([SimpleNamespace(spec=GatedSpec)] * 2, ["learning", "gate"], {("learning", "rho"): "decay"})
    assert found["eta"] == Parameter("learning", "eta", None, float | None)
    assert found["gate_eta"] == Parameter("gate", "eta", None, float | None)
    assert found["open"] == Parameter("gate", "open", True, bool) and found["noise"].kind == float | str | None
    assert found["decay"].key == "rho" and "rho" not in found and list(found)[:2] == ["rule", "eta"]
    assert list(moved(found, {"eta": "decay"}))[:3] == ["rule", "decay", "eta"]
