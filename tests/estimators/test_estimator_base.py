"""What all estimators share: parameters that are declared once, and the base that everything about them follows from."""

import doctest
import inspect
import re
import sys
import warnings

import numpy as np
import pytest
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import KFold, TimeSeriesSplit
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.validation import has_fit_parameter

import pykernel
from pykernel import (
    BudgetedKernelClassifier,
    BudgetedKernelRegressor,
    OnlineMonitor,
    SignalFeatures,
    SupportVectorClassifier,
    SupportVectorRegressor,
    TrainedKernelClassifier,
    TrainedKernelRegressor,
)
from pykernel.errors import UserError
from pykernel.estimators import base, signal
from pykernel.spec.model import Spec, keys_of

ALL = [
    kind
    for kind in (getattr(pykernel, name) for name in pykernel.__all__)
    if isinstance(kind, type) and issubclass(kind, base.KernelEstimator)
]


MERE_BORDER = "the most probable class need not be the predicted one: Platt's sigmoids have an order of their own"
WEIGHTS = "vectors are chosen among rows, and solutions rounded: rows that are repeated change both"
EARLIER_ROWS = "the features of a raw sample depend on those before"
FIXED = {"sigma": 2.0}
FEW = {"ridge": 1e-4, "widths": "inputs", "standardise": True, "max_iter": 60, "n_init": 1}
WINDOWS = {"window": 16, "hop": 8, "features": ["mean", "kurtosis"], "rate": 100.0, "bands": [[5.0, 20.0]]}
OTHERS = [
    *(
        kind(**FIXED, penalty=each)
        for kind in (SupportVectorRegressor, SupportVectorClassifier)
        for each in ("l2", "l1")
    ),
    *(kind(**FEW) for kind in (TrainedKernelRegressor, TrainedKernelClassifier)),
    *(BudgetedKernelRegressor(rule=rule) for rule in ("qklms", "ald-krls", "nlms", "rff-rls")),
    BudgetedKernelRegressor("fklms", rule="fb-krls", projection="klms", precision="float64"),
    BudgetedKernelRegressor(missing="hold"),
    *(BudgetedKernelClassifier(rule=rule) for rule in ("klms", "krls-t", "rls", "spectrum-softmax")),
    OnlineMonitor(precision="float64", missing="hold", warmup=50),
    *(kind(basis=40, ridge=[0.01, 1.0]) for kind in ALL if "coding" in kind._parameters() or "LSSVM" in kind.__name__),
    SignalFeatures(**WINDOWS),
    SignalFeatures(lags=(0, 1, 3), differences=[2], averages=[3], periods=[24], precision="float64"),
]
"""Beside each kind as it is by default, whose training takes no minutes."""


def not_promised(estimator):
    """Checks of scikit-learn's that ask for what no page promises."""
    chosen = getattr(estimator, "basis", None) is not None or getattr(estimator, "penalty", "l2") == "l1"
    named = getattr(estimator, "rule", None) not in (None, "spectrum-softmax")
    failing = {}
    if is_classifier(estimator) and (chosen or named or isinstance(estimator, TrainedKernelClassifier)):
        failing["check_classifiers_train"] = MERE_BORDER
    if getattr(estimator, "rule", None) is not None and hasattr(estimator, "class_weight"):
        failing["check_class_weight_classifiers"] = (
            "weights are of models with [mixture], which a rule that is named has not"
        )
    if has_fit_parameter(estimator, "sample_weight"):
        failing["check_sample_weight_equivalence_on_dense_data"] = WEIGHTS
    if isinstance(estimator, SignalFeatures) and (estimator.window or estimator.lags):
        failing |= dict.fromkeys(
            ("check_methods_sample_order_invariance", "check_methods_subset_invariance"), EARLIER_ROWS
        )
    return failing


@pytest.mark.in_turn(54)
@pytest.mark.filterwarnings("ignore:.*and a linear model's")
@parametrize_with_checks(
    [kind() for kind in ALL if not kind.__name__.startswith(("Support", "Trained"))] + OTHERS,
    expected_failed_checks=not_promised,
)
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


@pytest.mark.parametrize("kind", [kind for kind in ALL if "cv" in kind._parameters()])
@pytest.mark.filterwarnings("ignore:.*and a linear model's")
def test_folds_are_those_of_a_splitter_or_a_list(kind):
    """What is left out is predicted by a model of the other samples; whoever is in no test set, or in two, is refused."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(90, 2))
    y = np.sin(x[:, 0]) + x[:, 1]
    y = (y > 0) if is_classifier(kind()) else y
    fixed = {"sigma": 2.0, "ridge": 0.1, "C": 1.0, **FEW}
    model = kind(**{key: value for key, value in fixed.items() if key in kind._parameters()})
    splitter = KFold(3, shuffle=True, random_state=0)
    splits = list(splitter.split(x))
    one, other = (clone(model).set_params(cv=each).fit(x, y) for each in (splitter, splits))
    left_out = "cv_predictions_" if hasattr(one, "cv_predictions_") else "loo_predictions_"
    assert (getattr(one, left_out) == getattr(other, left_out)).all() and (one.predict(x) == other.predict(x)).all()
    assert not (getattr(one, left_out) == getattr(clone(model).fit(x, y), left_out)).all()
    for wrong in (
        splits[:1],
        splits[:2],
        [*splits, splits[0]],
        TimeSeriesSplit(3),
        [(splits[0][0], [900])] * 2,
        [7, 8],
    ):
        with pytest.raises(UserError, match="each sample must be in exactly one of two or more test sets"):
            clone(model).set_params(cv=wrong).fit(x, y)


@pytest.mark.exhaustive
@pytest.mark.parametrize("module", sorted({kind.__module__ for kind in ALL}))
def test_the_examples_run(module):
    result = doctest.testmod(sys.modules[module])
    assert result.attempted >= 5 and not result.failed


@pytest.mark.in_turn
@pytest.mark.parametrize("kind", [kind for kind in ALL if is_regressor(kind())])
@pytest.mark.filterwarnings("ignore:.*and a linear model's", "ignore:.*weights nearly cancel")
def test_a_column_of_labels_is_predicted_as_a_column(kind):
    x = np.random.default_rng(0).normal(size=(60, 2))
    y = np.sin(2 * x[:, 0])
    flat, column = kind().fit(x, y), kind().fit(x, y[:, None])
    assert flat.predict(x).shape == (60,) and column.predict(x).shape == (60, 1)
    assert flat.predict(x).tobytes() == column.predict(x).tobytes() and column.to_spec("m").outputs == 1


@pytest.mark.parametrize(
    ("classes", "names"),
    [
        ([3, 7, 2**40], ("3", "7", str(2**40))),
        ([False, True], ("False", "True")),
        (np.array(["b", "a"], object), ("a", "b")),
        (["", "a\nb", " c", "class 1", "d" * 200], ("class 0", "class 1", "class 2", "class 1'", "class 4")),
    ],
)
@pytest.mark.parametrize("kind", [kind for kind in ALL if is_classifier(kind())])
@pytest.mark.filterwarnings(
    "ignore:.*and a linear model's", "ignore:.*weights nearly cancel", "ignore:The number of un"
)
@pytest.mark.in_turn
def test_classes_of_any_kind(kind, classes, names):
    x = np.random.default_rng(0).normal(size=(150, 2))
    classes = np.asarray(classes)
    y = classes[np.digitize(x[:, 0], np.linspace(-0.5, 0.5, len(classes) - 1))]
    model = kind().fit(x, y)
    assert (model.classes_ == np.unique(y)).all() and model.classes_.dtype == classes.dtype
    assert model.to_spec("m").label.classes == names
    told, values = model.predict(x), model.decision_function(x)
    assert told.dtype == classes.dtype and values.shape == ((150,) if len(classes) == 2 else (150, len(classes)))
    positions = (values > 0).astype(int) if len(classes) == 2 else values.argmax(axis=1)
    assert (told == model.classes_[positions]).all() and model.score(x, y) > 0.7


def documented(kind):
    """Parameters and, where they are told, defaults, of the numpydoc section, in its order."""
    section = inspect.getdoc(kind).split("Parameters\n----------\n")[1].split("\n\nAttributes\n")[0]
    section = section.replace("\\\n", "")
    found = {}
    # "name : type, default=…", or several names in a row that another class tells of
    for names, rest in re.findall(r"^(\w+(?:,\s*\w+)*)(?: : (.*))?$", section, re.MULTILINE):
        default = re.search(r"default=(.*)$", rest)
        found |= dict.fromkeys(re.split(r",\s*", names), default and default[1])
    return found


@pytest.mark.parametrize("kind", ALL)
def test_signature_docstring_and_list_name_the_same_parameters(kind):
    parameters = inspect.signature(kind).parameters
    assert list(parameters) == list(kind._parameters())
    assert list(documented(kind)) == list(parameters)
    for name, default in documented(kind).items():
        given = parameters[name].default
        # None: the default of the spec, which may be told instead
        assert default is None or given is None or default == (f'"{given}"' if isinstance(given, str) else str(given))


@pytest.mark.parametrize("kind", ALL)
def test_each_parameter_is_of_a_key_of_the_spec_or_of_the_estimator(kind):
    for name, parameter in kind._parameters().items():
        if parameter.section is not None and name != "kernel":
            keys = keys_of(parameter.section) if parameter.section else Spec.model_fields
            assert (parameter.key or name) in keys, name


def test_every_key_of_a_signal_that_makes_features_is_a_parameter():
    assert set(signal.PARAMETERS) - {"precision"} == set(keys_of("signal")) - {"channels", "ahead"}


@pytest.mark.parametrize("kind", ALL)
def test_what_is_given_is_kept_as_it_is(kind):
    given = {name: object() for name in inspect.signature(kind).parameters}
    kept = kind(**given)
    assert vars(kept) == given and kept.get_params(deep=False) == given


@pytest.mark.parametrize("kind", ALL)
def test_a_value_that_cannot_be_is_refused_in_the_words_of_the_list(kind):
    x = np.random.default_rng(0).normal(size=(30, 2))
    for name, parameter in kind._parameters().items():
        if parameter.must is None:
            continue
        with pytest.raises(pykernel.errors.UserError) as caught:
            kind(**{name: {"no": "value"}}).fit(x, x[:, 0] > 0)
        expected = f"{kind.__name__}: {name} is {{'no': 'value'}}; it must be {parameter.must.be}"
        assert str(caught.value) == expected


@pytest.mark.parametrize("kind", ALL)
def test_questions_before_fit_are_told_so(kind):
    asked = 0
    for name in (
        "predict", "decision_function", "predict_proba", "transform", "score_samples",
    ):  # fmt: skip
        if hasattr(kind(), name):
            asked += 1
            with pytest.raises(NotFittedError):
                getattr(kind(), name)([[0.0, 1.0]])
    assert asked


@pytest.mark.in_turn
@pytest.mark.filterwarnings("ignore:.*and a linear model's")  # which is as good here
@pytest.mark.parametrize("kind", ALL)
def test_notebooks_and_pipelines_show_it(kind):
    """scikit-learn's representations, which read every parameter, before and after fit."""
    x = np.random.default_rng(0).normal(size=(40, 2))
    model = kind()
    page = model._repr_html_()
    assert kind.__name__ in page and "Not fitted" in page and repr(model) == f"{kind.__name__}()"
    model.fit(x, x[:, 0] > 0)
    assert "Not fitted" not in model._repr_html_()
    told = inspect.getdoc(kind).split("\nAttributes\n----------\n")[1].split("\n\n")[0]
    assert {name for name in vars(model) if name.endswith("_")} <= set(re.findall(r"\w+_\b", told))
    if hasattr(model, "predict") and hasattr(model, "score"):
        assert model.score(x, x[:, 0] > 0) > 0.5
    if hasattr(model, "transform"):
        names = model.get_feature_names_out()
        assert names.shape == (model.transform(x).shape[1],) and names[0] == "x0"
        pytest.importorskip("pandas")
        assert list(model.set_output(transform="pandas").transform(x).columns) == list(names)


@pytest.mark.in_turn
@pytest.mark.parametrize("kind", [kind for kind in ALL if is_regressor(kind())])
@pytest.mark.filterwarnings("ignore:.*and a linear model's", "ignore:.*weights nearly cancel")
def test_a_constant_label_is_learned_beside_another_one_too(kind):
    x = np.random.default_rng(0).normal(size=(60, 2))
    for y in (np.full(60, 7.1), np.column_stack([np.full(60, 7.1), x[:, 0]])):
        assert np.abs(kind().fit(x, y).predict(x).reshape(60, -1)[:, 0] - 7.1).max() < 0.1


def test_warnings_are_of_the_line_that_called():
    """Through our own helpers, too."""
    x = np.random.default_rng(0).normal(size=(60, 2))
    model = OnlineMonitor(input_max_abs=10.0).fit(x)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.score_samples(100 * x)
        model.partial_fit(100 * x)
        model.monitor(100 * x)
    assert [warning.filename for warning in caught] == [__file__] * 3


@pytest.mark.filterwarnings(
    "ignore:.*and a linear model's", "ignore:.*weights nearly cancel", "ignore:.*the device needs"
)
@pytest.mark.in_turn
@pytest.mark.parametrize("kind", [kind for kind in ALL if hasattr(kind, "to_spec")])
def test_names_of_columns_reach_the_spec_and_change_nothing(kind):
    """Of labels, too, unless a name is no text or an input's."""
    pandas = pytest.importorskip("pandas")
    x = np.random.default_rng(0).normal(size=(24, 3))
    y, frame = x[:, 0] > 0, pandas.DataFrame(x, columns=["hour", "humidity [%]", "Größe"])
    model = kind().fit(frame, y)
    question = "predict" if hasattr(model, "predict") else "transform"
    assert model.feature_names_in_.tolist() == list(frame)
    same = np.array_equal if hasattr(kind, "partial_fit") else np.allclose  # LAPACK rounds by the layout
    assert same(getattr(model, question)(frame), getattr(kind().fit(x, y), question)(x))
    for name, spec in inspect.getmembers(model, inspect.ismethod):
        if name == "to_spec":
            assert spec("m").input.columns == tuple(frame)
    with pytest.raises(ValueError, match="feature names"):
        getattr(model, question)(frame.rename(columns={"hour": "day"}))
    if not (is_classifier(model) or is_regressor(model)):
        return
    for name, expected in (("flow", ("flow",)), ("hour", ()), (3, ()), ("", ())):
        assert kind().fit(frame, pandas.Series(y, name=name)).to_spec("m").label_columns == expected
    if is_regressor(model):
        both = pandas.DataFrame({"flow": x[:, 0], "level": -x[:, 1]})
        assert kind().fit(frame, both).to_spec("m").label_columns == ("flow", "level")
        assert kind().fit(x, both).to_spec("m").outputs == 2
