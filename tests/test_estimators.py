"""The scikit-learn face: its conventions, and that it computes what the host model computes."""

import copy
import doctest
import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_diabetes, make_friedman1
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from pykernel import BudgetedKernelRegressor, HostModel, estimators, load_spec
from pykernel.errors import UserError

pytestmark = pytest.mark.usefixtures("compiled")

MODELS = [
    {},
    {"technique": "fklms", "precision": "float64"},
    {"technique": "nt", "n_max": 7, "rho": 0.01},
    {"n_max": 5, "precision": "float64", "rho": 0.1},
]


@pytest.fixture
def stream():
    rng = np.random.default_rng(5)
    x = rng.normal(size=(300, 3))
    return x, np.sin(x[:, 0]) + x[:, 1] + 0.1 * rng.normal(size=300)


def state(model):
    return bytes(model.model_.memory.bytes)


@parametrize_with_checks([BudgetedKernelRegressor(), BudgetedKernelRegressor(precision="float64")])
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


def test_the_docstring_tells_the_truth():
    result = doctest.testmod(estimators)
    assert result.attempted >= 8 and not result.failed


@pytest.mark.parametrize("parameters", MODELS)
def test_pieces_of_a_stream_are_the_stream(stream, parameters):
    x, y = stream
    parameters = {**parameters, "sigma": 1.5}
    whole = BudgetedKernelRegressor(n_epochs=1, **parameters).fit(x, y)
    for cuts in (
        [150],
        [1, 2, 3, 299],
        sorted(np.random.default_rng(0).choice(299, 40, replace=False) + 1),
    ):
        pieces = BudgetedKernelRegressor(**parameters)
        for part in np.split(np.arange(300), cuts):
            pieces.partial_fit(x[part], y[part])
        assert state(pieces) == state(whole)
        assert pieces.status_counts_ == whole.status_counts_
    assert sum(whole.status_counts_.values()) == 300


@pytest.mark.parametrize("parameters", MODELS)
def test_it_is_the_host_model(stream, parameters):
    x, y = stream
    model = BudgetedKernelRegressor(n_epochs=2, **parameters).fit(x, y)
    host = HostModel(model.spec_)
    host.run(x, y)
    host.run(x, y)
    assert state(model) == bytes(host.memory.bytes)
    assert model.predict(x).tobytes() == host.predict(x).tobytes()
    assert model.predict(x).dtype == model.precision
    host.refresh()
    assert state(model.refresh()) == bytes(host.memory.bytes)


def test_fit_forgets_and_partial_fit_does_not(stream):
    x, y = stream
    model = BudgetedKernelRegressor().fit(x, y)
    once = state(model)
    assert state(model.fit(x, y)) == once
    assert state(model.partial_fit(x, -y)) != once
    assert model.status_counts_["ADDED"] == 32 and sum(model.status_counts_.values()) == 6 * 300


def test_parameters_count_from_the_next_fit(stream):
    x, y = stream
    model = BudgetedKernelRegressor(n_max=4).fit(x, y).set_params(n_max=6)
    assert model.partial_fit(x, y).spec_.reduction.n_max == 4
    assert model.fit(x, y).status_counts_["ADDED"] == 6


@pytest.mark.parametrize("parameters", MODELS)
def test_copies_go_on_as_the_original(stream, parameters):
    x, y = stream
    model = BudgetedKernelRegressor(**parameters).fit(x, y)
    pickled, copied = pickle.loads(pickle.dumps(model)), copy.deepcopy(model)
    assert pickled.predict(x).tobytes() == model.predict(x).tobytes()
    model.partial_fit(x[:50], -y[:50])
    assert state(pickled) != state(model)
    for other in (pickled, copied, clone(model).fit(x, y)):
        assert state(other.partial_fit(x[:50], -y[:50])) == state(model)
        assert other.status_counts_ == model.status_counts_


@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("factor", [2.0**-20, 8.0, 2.0**30])
def test_scale_follows_the_unit_of_the_inputs(stream, factor, precision):
    x, y = stream
    model = BudgetedKernelRegressor(precision=precision).fit(x, y)
    scaled = BudgetedKernelRegressor(precision=precision).fit(factor * x, y)
    assert scaled.spec_.kernel.sigma == factor * model.spec_.kernel.sigma
    assert scaled.spec_.input.limit == factor * model.spec_.input.limit
    assert scaled.predict(factor * x).tobytes() == model.predict(x).tobytes()


def test_scale_is_that_of_svr(stream):
    x, y = stream
    x -= x.mean(axis=0)
    sigma = BudgetedKernelRegressor().fit(x, y).spec_.kernel.sigma
    assert 1 / (2 * sigma**2) == pytest.approx(1 / (x.shape[1] * x.var()))


@pytest.mark.parametrize("x", [np.ones((1, 2)), np.ones((50, 2))])
def test_scale_needs_samples_that_differ(x):
    with pytest.raises(
        ValueError,
        match=r"these are (1 sample|50 equal samples); start with more, or give sigma",
    ):
        BudgetedKernelRegressor().partial_fit(x, np.ones(len(x)))
    BudgetedKernelRegressor(sigma=1.0).partial_fit(x, np.ones(len(x)))


@pytest.mark.parametrize(
    "data",
    [make_friedman1(800, noise=1.0, random_state=0), load_diabetes(return_X_y=True)],
    ids=["friedman", "diabetes"],
)
def test_defaults_learn(data):
    x, y = data
    model, ours, means = BudgetedKernelRegressor().partial_fit(x[:30], y[:30]), [], []
    for t in range(30, len(x)):
        ours.append(float(model.predict(x[t : t + 1])[0]))
        means.append(y[:t].mean())
        model.partial_fit(x[t : t + 1], y[t : t + 1])
    online = np.mean((ours - y[30:]) ** 2) / np.mean((means - y[30:]) ** 2)
    assert online < 0.9
    assert cross_val_score(BudgetedKernelRegressor(), x, y).mean() > 0.25


def test_a_grid_over_a_pipeline(stream):
    x, y = stream
    grid = {
        "budgetedkernelregressor__n_max": np.array([4, 16]),
        "budgetedkernelregressor__eta": np.float32([0.2, 0.5]),
    }
    search = GridSearchCV(
        make_pipeline(StandardScaler(), BudgetedKernelRegressor()),
        grid,
        error_score="raise",
    )
    assert search.fit(100 * x, y).best_params_["budgetedkernelregressor__n_max"] == 16
    assert search.score(100 * x, y) > 0.7


def test_derived_limits_leave_room(stream):
    x, y = stream
    assert BudgetedKernelRegressor(sigma=0.5).fit(x, y / abs(y).max()).spec_.label.limit == 1e6
    model = BudgetedKernelRegressor(sigma=0.5).fit(x, 1e9 * y)
    assert model.spec_.label.limit == 1e6 * abs(1e9 * y).max() and model.spec_.input.limit == 0.5e6
    assert model.status_counts_["REFUSED_LABEL"] == 0


def test_what_is_out_of_range_is_refused_counted_and_named(stream):
    x, y = stream
    model = BudgetedKernelRegressor(input_limit=10.0, label_limit=20.0).fit(x, y)
    before = state(model)
    bad = np.full((4, 3), 10.5)
    bad[2:] = 1e300  # infinite in float32
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.partial_fit(bad, np.zeros(4)).partial_fit(x[:3], [21.0, -1e300, 1e39])
    assert state(model) == before
    assert model.status_counts_["REFUSED_INPUT"] == 4 and model.status_counts_["REFUSED_LABEL"] == 3
    with pytest.warns(UserWarning, match="4 of 5 samples have an input beyond the limit of 10"):
        predictions = model.predict(np.vstack([bad, x[:1]]))
    assert np.isnan(predictions).tolist() == [True] * 4 + [False]
    with pytest.raises(ValueError, match="NaN"), pytest.warns(UserWarning):
        model.score(bad, np.zeros(4))


def test_a_model_that_keeps_refusing_says_so(stream):
    x, y = stream
    model = BudgetedKernelRegressor(input_limit=10.0).fit(x, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(estimators.PATIENCE - 1):
            model.partial_fit(11 + x[:1], y[:1])
    with pytest.warns(
        UserWarning,
        match="^the last 32 updates were all refused: raise input_limit from 10; .* call fit",
    ):
        model.partial_fit(11 + x[:1], y[:1])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.partial_fit(x[:1], y[:1])
    with pytest.warns(
        UserWarning,
        match="^the last 10 updates were all refused: raise label_limit from 0.001;",
    ):
        BudgetedKernelRegressor(label_limit=1e-3, sigma=1.0).fit(x[:2], [1.0, 2.0])


def test_a_model_that_diverges_says_so_and_can_be_reset():
    x = np.random.default_rng(0).normal(size=(2000, 2))
    y = np.ones(len(x))
    model = BudgetedKernelRegressor("fklms", sigma=3.0)  # far from orthogonal
    with pytest.warns(
        UserWarning,
        match="^learning diverges: lower eta, or for .fklms. sigma; to start afresh call fit",
    ):
        model.partial_fit(x, y)
    assert model.status_counts_["REFUSED_MULTIPLIER"] > 0
    assert np.isfinite(model.predict(x)).all()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.set_params(technique="mklms").fit(x, y)
    assert model.status_counts_["REFUSED_MULTIPLIER"] == 0
    assert np.abs(model.predict(x) - 1).max() < 0.1


@pytest.mark.parametrize(
    "parameters, sentence",
    [
        ({"technique": "lms"}, "[reduction] technique is 'lms'; "),
        ({"n_max": 0}, "[reduction] n_max is 0; "),
        ({"n_max": 2.5}, "[reduction] n_max is 2.5; "),
        ({"sigma": 0.0}, 'sigma is 0.0; it must be a number above 0 or "scale"'),
        (
            {"sigma": "auto"},
            "sigma is 'auto'; it must be a number above 0 or \"scale\"",
        ),
        ({"sigma": float("nan")}, "sigma is nan; "),
        ({"eta": 2.0}, "[learning] eta is 2.0; "),
        ({"rho": -1.0}, "[learning] rho is -1.0; "),
        ({"gate": 1e-4}, "[reduction] gate is 0.0001; "),
        ({"precision": "float16"}, "precision is 'float16'; "),
        ({"n_epochs": 0}, "n_epochs is 0; it must be a whole number from 1"),
        ({"input_limit": 0}, "[input] limit is 0; "),
        ({"label_limit": float("inf")}, "[label] limit is inf; "),
    ],
)
def test_parameters_that_cannot_be(stream, parameters, sentence):
    with pytest.raises(UserError) as caught:
        BudgetedKernelRegressor(**parameters).fit(*stream)
    assert str(caught.value).startswith("BudgetedKernelRegressor: " + sentence)
    assert "\n" not in str(caught.value)


def test_its_spec_makes_the_same_model_from_a_file(stream, tmp_path):
    x, y = stream
    model = BudgetedKernelRegressor("fklms", n_max=9, eta=0.3, rho=0.01, gate=0.01, n_epochs=1).fit(x, y)
    path = tmp_path / "flow.toml"
    path.write_text(model.to_spec("flow").to_toml())
    spec = load_spec(path)
    assert spec == model.to_spec("flow") and spec.name == "flow"
    host = HostModel(spec)
    host.learn(x, y)
    assert state(model) == bytes(host.memory.bytes)
    with pytest.raises(UserError, match=r"^BudgetedKernelRegressor: name is 'int'"):
        model.to_spec("int")
    with pytest.raises(NotFittedError):
        BudgetedKernelRegressor().to_spec("flow")


def test_column_names_reach_the_spec(stream):
    pandas = pytest.importorskip("pandas")
    x, y = stream
    frame = pandas.DataFrame(x, columns=["hour", "humidity [%]", "Größe"])
    model = BudgetedKernelRegressor().fit(frame, y)
    assert model.spec_.input.columns == ("hour", "humidity [%]", "Größe")
    assert model.feature_names_in_.tolist() == list(frame)
    assert state(model) == state(BudgetedKernelRegressor().fit(x, y))
    with pytest.raises(ValueError, match="feature names"):
        model.partial_fit(frame.rename(columns={"hour": "day"}), y)
