"""Sentences of errors begin with the place that they are about."""

import pytest

from pykernel.errors import UserError
from pykernel.importers.place import Place


def test_a_sentence_begins_with_its_place():
    where = Place("Pipeline").step("scale\x00")
    where.need([0], "has no steps")
    with pytest.raises(UserError) as refused:
        where.need([], "has no steps")
    assert str(refused.value) == "Pipeline, step 'scale\\x00': has no steps"
    # whoever reads a file names it
    assert str(Place("").error("is damaged")) == "is damaged"
    assert (Place.of_file("a b.onnx"), Place.of_file("a\nb")) == ("a b.onnx", "'a\\nb'")
