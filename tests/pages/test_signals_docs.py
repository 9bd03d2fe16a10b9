"""docs/guide/signals.md: its example runs, and prints what the page says; generated READMEs tell what firmwares get wrong."""

import re

import numpy as np

from pykernel.gen.project import build
from pykernel.host.signal import SignalStage
from pykernel.spec.model import make_spec
from tests.support import DOCS


def test_the_example_prints_what_the_page_says(capsys):
    page = (DOCS / "guide/signals.md").read_text(encoding="utf-8")
    (code, said) = re.search(r"^```python\n(.*?)^```\n\n```text\n(.*?)^```", page, re.DOTALL | re.MULTILINE).groups()
    names = {}
    exec(compile(code, "guide/signals.md", "exec"), names)
    assert capsys.readouterr().out == said
    # the calls that the page names are those of the spec
    entries = {entry.name for entry in make_spec(names["spec"].model_dump(exclude_unset=True)).program.entries}
    assert {"push", "classify_newest", "signal"} <= entries


def test_a_firmware_is_told_how_phases_begin_and_which_count_is_refused():
    signal = {"channels": ["a", "b"], "max_abs": [2047, 32767], "resolution": 1, "periods": [24, 168]}
    content = {"name": "gauge", "precision": "int16", "signal": signal, "learning": {"rule": "nlms"}}
    spec = make_spec(content | {"label": {"column": "y", "max_abs": 1.0}})
    readme = build(spec).files["README.md"]
    # what the README says is so: the phases of a device that begins 79 samples later, and the lowest counts
    assert (
        "`gauge_gap(&model, n)`" in readme and "\nif (x[0] < -2047) { x[0] = -2047; }\nif (x[1] < -32767) {" in readme
    )
    recording, device = SignalStage(spec), SignalStage(spec)
    x = np.zeros((200, 2))
    device.gap(79)
    assert (device.steps(x[79:]).features == recording.steps(x).features[79:]).all()
    assert spec.accepts(np.array([[-2047, -32767], [-2048, 0], [0, -32768]])).tolist() == [True, False, False]
