"""The model on the host: every kind of label, what it can be asked, and what it refuses."""

import re

import numpy as np
import pytest

from pykernel.errors import UserError
from pykernel.gen.streams import mixed_stream
from pykernel.host.model import HostModel
from pykernel.spec.model import make_spec
from tests.support.toys import LABELS, ToyStatus, toy_spec


def test_classes_follow_the_values():
    """Two classes: the sign of one value.  More: the largest of theirs, the first of equals."""
    two, three = HostModel(toy_spec("two classes")), HostModel(toy_spec("class"))
    x, _ = mixed_stream(two.spec, 500)
    x = x[(np.abs(x) < 10).all(axis=1)]
    assert (three.classify(x) == 0).all()
    two.update(x, (x[:, 0] > 0.2).astype(int))
    three.update(x, np.digitize(x[:, 0], [-0.5, 0.5]))
    np.testing.assert_array_equal(two.classify(x), two.predict(x) > 0)
    np.testing.assert_array_equal(three.classify(x), three.predict(x).argmax(axis=1))
    assert len(set(three.classify(x))) == 3 and three.classify(x).dtype == np.int32
    positions, _ = HostModel(toy_spec("class")).prequential(x, np.zeros(len(x), int), question="classify")
    assert positions.shape == (len(x),) and set(positions) <= {0, 1, 2}


@pytest.mark.parametrize(
    ("kind", "labels", "says"),
    [
        ("real", np.zeros((4, 1)), "the labels have shape (4, 1); for these inputs the shape must be (4,)"),
        ("real", np.zeros(3), "the labels have shape (3,); for these inputs the shape must be (4,)"),
        ("reals", np.zeros(4), "the labels have shape (1, 4); for these inputs the shape must be (4, 3)"),
        ("reals", np.zeros((4, 2)), "the labels have shape (4, 2); for these inputs the shape must be (4, 3)"),
        (
            "class",
            np.zeros(4),
            "the labels have type float64; a classifier learns class indices, which are integers",
        ),
        ("class", np.array(["low"] * 4), "which are integers"),
        ("class", np.zeros((4, 3), int), "the labels have shape (4, 3); for these inputs the shape must be (4,)"),
    ],
)
def test_labels_of_a_wrong_shape_or_type_are_refused(kind, labels, says):
    model = HostModel(toy_spec(kind))
    for learn in (model.update, model.prequential):
        with pytest.raises(ValueError, match=re.escape(says)):
            learn(np.zeros((4, 3)), labels)
    with pytest.raises(ValueError, match=re.escape("the inputs have shape (4, 2); the model takes (samples, 3)")):
        model.predict(np.zeros((4, 2)))
    assert not any(model.memory.bytes)


def test_positions_beyond_int32_are_no_class():
    model = HostModel(toy_spec("class"))
    statuses = model.update(np.ones((4, 3)), np.array([2**32, -(2**40), 2**31, 3], np.int64))
    assert (statuses == ToyStatus.REFUSED_LABEL).all()


def test_what_a_model_cannot_tell_is_a_sentence():
    model = HostModel(toy_spec("real"))
    for ask, says in (
        (model.variance, "toy keeps no variance; rule krls-t does"),
        (model.classify, "toy learns numbers, not classes; "),
    ):
        with pytest.raises(UserError, match=re.escape(says)):
            ask(np.zeros((2, 3)))
    with pytest.raises(UserError, match="toy has no update"):
        model.ask("update", np.zeros((2, 3)))
    assert not model.has("variance") and model.has("novelty") and model.has("predict")


def test_no_rows_are_no_trouble():
    for kind in LABELS:
        model = HostModel(toy_spec(kind))
        nothing = np.zeros((0, 3))
        labels = np.zeros((0, 3) if kind == "reals" else 0, model.spec.program.label_dtype(model.spec.real))
        assert (
            len(model.predict(nothing))
            == len(model.update(nothing, labels))
            == len(model.prequential(nothing, labels)[0])
            == 0
        )


def test_a_kernel_model_knows_what_is_new():
    """Far from all expansion vectors everything is new, at one of them nothing is."""
    spec = make_spec({"name": "m", "input": {"dim": 2}, "kernel": {"sigma": 1.0}, "reduction": {"n_max": 32}})
    model = HostModel(spec)
    x = np.random.default_rng(0).normal(size=(20, 2))
    model.update(x, x[:, 0])
    far, near = model.novelty(np.array([[50.0, 50.0], model.memory.field("v")[0]]))
    assert far > 0.99 and near < 0.01
