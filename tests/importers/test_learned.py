"""What a device has learned, as a small frozen model: of every rule, and from files that nobody should trust."""

from __future__ import annotations

import struct
import warnings
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pykernel.errors import UserError
from pykernel.host import snapshot
from pykernel.host.model import HostModel
from pykernel.host.signal import SignalStage
from pykernel.importers import learned
from pykernel.importers.importing import load_model
from pykernel.importers.place import Place
from pykernel.spec.families.expansion import INT16_EXPANSION_MODELS, SOFTMAX
from pykernel.spec.families.expansion import RULES as EXPANSION_RULES
from pykernel.spec.families.linear import LINEAR_MODELS
from pykernel.spec.families.online import RULES
from pykernel.spec.families.spectrum import RULES as SPECTRUM_RULES
from pykernel.spec.model import Spec, int16_rules, make_spec, rules
from pykernel.training.distilled import made_up
from tests.support.machines import MACHINES, SIGNALS

SPREAD = np.random.default_rng(0).normal(size=(14, 3)).tolist()
WHOLE: dict[str, Any] = {"precision": "int16", "input": {"dim": 3, "max_abs": 4.0}, "label": {"max_abs": 4.0}}
SMALL: dict[str, Any] = {"kernel": {"sigma": 1.0}, "reduction": {"n_max": 14}}
MODELS: dict[str, dict[str, Any]] = MACHINES | SIGNALS
MODELS |= {rule: SMALL | {"learning": {"rule": rule}} for rule in RULES}
MODELS |= {rule: {"learning": {"rule": rule}} for rule in LINEAR_MODELS.rules}
MODELS |= {
    "raw": {"reduction": {"n_max": 14}},
    "several": SMALL | {"label": {"columns": ["a", "b"], "low": -1.0, "high": 0.75}},
    "scaled": SMALL | {"input": {"center": [1.0, -1.0, 0.0], "scale": [2.0, 0.5, -1.0]}, "label": {"classes": ["n", "y"]}},
    **{
        rule: {"kernel": {"sigma": 1.0}, "learning": {"rule": rule}, "expansion": {"vectors": SPREAD}}
        | ({"label": {"classes": ["n", "y"]}} if rule == SOFTMAX else {})
        for rule in EXPANSION_RULES
    },
    "rff-rls": {"kernel": {"sigma": 1.0}, "learning": {"rule": "rff-rls"}},
    **{rule: {"kernel": {"sigma": 1.0}, "learning": {"rule": rule}} for rule in SPECTRUM_RULES},
    "spectrum-softmax": {
        "kernel": {"sigma": 1.0},
        "learning": {"rule": "spectrum-softmax"},
        "label": {"classes": ["n", "y"]},
    },
    "whole-klms": WHOLE | SMALL | {"learning": {"rule": "klms"}},
    "whole-qklms": WHOLE | {"kernel": {"function": "matern32", "gamma": 1.0}, "reduction": {"n_max": 14}},
    "whole-nlms": WHOLE | {"learning": {"rule": "nlms"}},
    "whole-rls": WHOLE | {"learning": {"rule": "rls"}},
    "whole-waves": WHOLE | {"kernel": {"sigma": 1.0}, "learning": {"rule": "spectrum-nlms"}},
    "whole-filter": WHOLE | {"kernel": {"sigma": 1.0}, "learning": {"rule": "spectrum-ekf"}},
    **{
        f"whole-{rule}": WHOLE
        | {"kernel": {"sigma": 1.0}, "learning": {"rule": rule}}
        | {"expansion": {"vectors": SPREAD, "weights": [[0.5]] * len(SPREAD), "bias": [0.0]}}
        | ({"label": {"classes": ["n", "y"]}} if rule == SOFTMAX else {})
        for family in INT16_EXPANSION_MODELS
        for rule in family.rules
    },
    "whole-signal": {
        "precision": "int16",
        "signal": {"channels": ["a", "b"], "max_abs": 4.0, "lags": [0, 1]},
        "label": {"column": "y", "max_abs": 4.0},
        "kernel": {"sigma": 0.5},
        "input": {"center": [0.25, 0.0, 0.5, 0.0]},
        "reduction": {"n_max": 14},
    },
}  # fmt: skip


def spec_of(name: str) -> Spec:
    content = MODELS[name]
    inputs = {} if "signal" in content else {"input": {"dim": 3} | content.get("input", {})}
    return make_spec(content | {"name": "flow"} | inputs)


def taught(spec: Spec, rows: int = 300, seed: int = 0) -> HostModel:
    """A model that has seen some rows, call by call, as a device does."""
    model, rng = HostModel(spec), np.random.default_rng(seed)
    x = rng.normal(size=(rows, spec.width))
    y = np.sin(2 * x[:, 0]) + 0.5 * x[:, -1]
    kind = spec.program.label_array(spec.capacities)
    if kind.is_class:
        y = np.digitize(y, [-0.4, 0.4])
        y = np.minimum(y, len(spec.label.classes or ()) - 1)
    elif kind.shape:
        y = np.stack([y, *[y**2] * (kind.shape[0] - 1)], axis=1) if kind.shape[0] else None
    if spec.signal is not None:
        model.prequential(x, np.zeros((rows, 0)) if spec.forecasts else y)
        return model
    for i in range(0, rows, 20):
        model.update(x[i : i + 20], None if y is None else y[i : i + 20])
    for entry in ("select", "train"):
        model.call(entry)
    return model


def saved(folder: Path, model: HostModel) -> tuple[Path, Path]:
    spec, state = folder / "flow.toml", folder / "state.bin"
    spec.write_text(model.spec.to_toml())
    state.write_bytes(snapshot.save(model))
    return spec, state


def test_every_rule_that_saves_is_there() -> None:
    saving = {rule for rule, family in rules().items() if any(p.persistent for p in family.programs.values())}
    tried = {spec_of(name).learning.rule for name in MODELS if not name.startswith("whole")}
    assert tried >= saving and len(saving) > 12, saving - tried
    whole = {rule for rule, family in int16_rules().items() if any(p.persistent for p in family.programs.values())}
    assert {spec_of(name).learning.rule for name in MODELS if name.startswith("whole")} == whole


@pytest.mark.in_turn(54)
@pytest.mark.parametrize("name", MODELS)
def test_a_state_of_every_rule_becomes_a_small_frozen_model_or_a_sentence(name: str, tmp_path: Path) -> None:
    spec = spec_of(name)
    if not spec.program.persistent:
        (tmp_path / "flow.toml").write_text(spec.to_toml())
        with pytest.raises(UserError, match="flow learns nothing on the device"):
            load_model(tmp_path / "flow.toml", start=tmp_path / "state.bin", vectors=2)
        return
    model = taught(spec)
    files = saved(tmp_path, model)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            made = load_model(files[0], "small", start=files[1], vectors=4, precision=spec.precision)
        except UserError as error:
            text = str(error)
    if spec.learning.rule in (*LINEAR_MODELS.rules, *SPECTRUM_RULES):
        assert text == "flow: stores no vectors of its inputs; only a model that stores vectors can be made smaller"
        return
    if spec.label_kind == "none":
        assert text == "flow: learns no function of its inputs; only a model that predicts can be made smaller"
        return
    if name == "stream-linear":
        assert "has 2 vectors, and 4 were asked for; ask for fewer" in text
        return
    notes = " ".join(str(each.message) for each in caught)
    assert "flow: with 4 vectors instead of" in notes and "(95 %: " in notes and "made-up rows" in notes
    assert made.learning.rule == "frozen" and len(made.expansion.vectors) == 4 and made.precision == spec.precision
    assert made.label.classes == spec.label.classes and made.label.low == spec.label.low
    assert made.sample_columns == spec.sample_columns and made.signal == spec.signal
    # the state is read as the device has it, with all that stands around the kernel
    machine, answers = learned.read_state(spec, files[1])
    inner = HostModel(spec.inner)
    for struct_ in inner.memory.structs:
        for field in struct_.fields:
            inner.memory.field(field)[...] = model.memory.field(field)
    rng = np.random.default_rng(1)
    z = made_up(machine.vectors, 400, rng)
    x = z if machine.scale is None else z / machine.scale
    x = x if machine.center is None else x + machine.center
    own = inner.predict(x).reshape(len(x), -1)
    assert np.array_equal(own, answers(z)) and np.isfinite(own).all()
    # what is said to be lost is lost on other rows, too
    said = float(notes.split("its values change by ")[1].split()[0])
    found = HostModel(made.inner).predict(x).reshape(len(x), -1)
    taken = np.isfinite(found).all(axis=1)
    lost = np.sqrt(np.mean(np.square((found - own)[taken] / own.std(axis=0))))
    assert taken.mean() > 0.95 and said / 2 <= lost <= 2 * said and said < 0.6
    if spec.label.classes:
        same = np.mean(HostModel(made.inner).classify(x) == inner.classify(x))
        assert same > 0.8 and "its class changes for" in notes


@pytest.mark.parametrize("name", ["raw", "whole-qklms", "signal-forecast", "whole-signal"])
def test_the_vectors_are_what_the_kernel_compares_with(name: str, tmp_path: Path) -> None:
    """At its own vectors the machine's kernel sum is the device's, but for what no kernel computes."""
    spec = spec_of(name)
    model = taught(spec)
    machine, answers = learned.machine_of(spec, model.memory, Place("flow"))
    told = answers(machine.vectors)
    assert len(machine.vectors) == int(model.memory.field("n")[0]) > 4
    if name in ("raw", "signal-forecast"):
        assert np.array_equal(machine.weights, model.memory.field("alpha")[: len(machine.vectors)])
    else:  # in int16, by the answers at the vectors
        sums = machine.functions(machine.vectors)
        wrong = (sums - told) - (sums - told).mean(axis=0)
        assert np.abs(wrong).max() < 0.02 * told.std()
    if name == "whole-signal":  # a standardiser's mean has moved since
        x = np.random.default_rng(0).normal(size=(300, 2))  # what it was taught
        features = SignalStage(spec).steps(x).features
        near = np.abs(machine.inputs()[:, None] - features).max(axis=2).min(axis=1)
        assert (near <= 1e-2).all()


# ----------------------------------------------------------------------------------------------------- hostile files


def _again(data: bytes) -> bytes:
    """With a CRC that fits."""
    return data[:-4] + struct.pack("<I", zlib.crc32(data[:-4]))


@pytest.fixture(scope="module", params=["raw", "kfd-classes", "subspace-rls", "whole-klms", "stream"])
def state(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Spec, Path, bytes]:
    folder = tmp_path_factory.mktemp("state")
    model = taught(spec_of(request.param), 200)
    _, path = saved(folder, model)
    return model.spec, path, path.read_bytes()


@pytest.mark.in_turn(22)
@settings(max_examples=25)
@given(data=st.data())
def test_no_file_does_more_than_a_sentence(state: tuple[Spec, Path, bytes], data: st.DataObject) -> None:
    """Bits, numbers and lengths are changed, behind a CRC that fits, or as the bytes of a state alone."""
    spec, path, good = state
    changed = bytearray(good)
    for _ in range(data.draw(st.integers(0, 3))):
        at = data.draw(st.integers(0, len(good) - 5))
        changed[at : at + 4] = data.draw(st.sampled_from([
            b"\xff\xff\xff\xff", b"\0\0\xc0\x7f", b"\0\0\x80\x7f", b"\xff\xff\xff\x7f", b"\0\0\0\x80", b"\x01\0\0\0", good[at:at+3] + bytes([good[at+3] ^ 1]),
        ]))  # fmt: skip
    shape = data.draw(st.sampled_from(["crc", "as it is", "alone", "cut", "longer", "empty"]))
    content = {
        "crc": _again(bytes(changed)),
        "as it is": bytes(changed),
        "alone": bytes(changed[snapshot.HEADER.size : -4]),
        "cut": bytes(changed[: data.draw(st.integers(0, len(good)))]),
        "longer": bytes(changed) + b"\0" * data.draw(st.integers(1, 10_000)),
        "empty": b"",
    }[shape]
    other = path.with_name("other.bin")
    other.write_bytes(content)
    try:
        machine, answers = learned.read_state(spec, other)
    except UserError as error:
        text = str(error)
        assert "\n" not in text and text.startswith((str(other), "flow: ")) and len(text) < 400
        return
    assert np.isfinite(answers(machine.vectors)).all() and np.isfinite(machine.columns_of_weights()).all()


def test_other_files_are_refused_in_a_sentence(tmp_path: Path) -> None:
    spec, state = saved(tmp_path, taught(spec_of("raw"), 100))
    model = tmp_path / "gate.onnx"
    model.write_bytes(b"PK")
    (tmp_path / "new.bin").write_bytes(snapshot.save(HostModel(spec_of("raw"))))
    constant = HostModel(spec_of("krls-t"))
    constant.update(np.random.default_rng(0).normal(size=(60, 3)), np.zeros(60))
    (tmp_path / "c").mkdir()
    zeros = saved(tmp_path / "c", constant)
    for path, own, vectors, says in (
        (spec, tmp_path / "none.bin", 4, "none.bin: cannot be read: No such file or directory"),
        (spec, tmp_path, 4, "cannot be read: "),
        (spec, spec, 4, "flow.toml: has "),
        (spec, zeros[1], 4, "state.bin: is a state of kind "),
        (spec, tmp_path / "new.bin", 4, "flow: stores no vectors yet; let it learn more"),
        (zeros[0], zeros[1], 4, "flow: gives the same answer for all its vectors; let it learn more"),
        (
            spec,
            state,
            None,
            "flow.toml: is a model that continues to learn, and a spec cannot hold its state; add vectors",
        ),
        (spec, state, 0, "vectors is 0; it must be a whole number of 1 or more"),
        (spec, state, 10**9, "vectors, and 1000000000 were asked for; ask for fewer"),
        (spec, None, 4, "flow.toml: is a spec, which does not hold what a device has learned; add start"),
        (model, state, 4, "gate.onnx: is not a spec; a device's state can only be read with its spec"),
        (tmp_path / "no.toml", state, 4, "no.toml: there is no such file"),
    ):
        with pytest.raises(UserError) as error:
            load_model(path, start=own, vectors=vectors)
        assert says in str(error.value) and "\n" not in str(error.value), (says, str(error.value))
