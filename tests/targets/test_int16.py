"""Whole numbers on targets: where an int has 16 bits, where eight are multiplied at once."""

from __future__ import annotations

import shutil
from typing import Any

import numpy as np
import pytest

from pykernel.errors import UserError
from pykernel.gen.check import Reference
from pykernel.gen.project import Project, build
from pykernel.gen.streams import mixed_stream
from pykernel.host.model import HostModel
from pykernel.spec.model import Spec, make_spec
from pykernel.targets.build import model_image, refuse_large_ram
from pykernel.targets.check import check_targets
from pykernel.targets.process_runner import ProcessModel
from pykernel.targets.target import find_target
from pykernel.targets.unicorn_runner import UnicornModel
from tests.algorithms.test_int16 import ONLINE, frozen, online
from tests.algorithms.test_spectrum_int16 import spec_of as waves
from tests.support.random_specs import INT16_RULES, random_spec
from tests.support.targets import EIGHT, rarely
from tests.support.tools import needs


def expansion(rule: str, **label: Any) -> Spec:
    """A trained machine that goes on learning."""
    content = {"name": "flow", "precision": "int16", "input": {"dim": 3, "max_abs": 3.0}, "kernel": {"sigma": 1.0}}
    functions = 3 if "classes" in label else 1
    vectors, weights = [[0.5, -0.5, 0.25], [-1.0, 0.75, 0.0], [0.0, 0.5, 1.0]], [[0.5], [-0.75], [0.25]]
    tables = {"vectors": vectors, "weights": [row * functions for row in weights], "bias": [0.25] * functions}
    return make_spec(content | {"label": label, "learning": {"rule": rule}, "expansion": tables})


def linear(rule: str, **label: Any) -> Spec:
    """A linear model that learns."""
    content = {"name": "flow", "precision": "int16", "input": {"dim": 3, "max_abs": 3.0}, "label": label}
    return make_spec(content | {"learning": {"rule": rule}})


MODELS: dict[str, Spec] = {
    "svr": frozen(2),
    "products": frozen(5),
    "pairs": frozen(4),
    "nt": online(**ONLINE[0]),
    "fklms": online(**ONLINE[12]),
    "stages": online(**ONLINE[1]),
    "outputs": online(**ONLINE[20]),
    "nlms": linear("nlms", max_abs=4.0),
    "nlms classes": linear("nlms", classes=["a", "b", "c"]),
    "rls": linear("rls", max_abs=4.0),
    "rls classes": linear("rls", classes=["a", "b", "c"]),
    "expansion": expansion("expansion-nlms", max_abs=4.0),
    "expansion classes": expansion("expansion-rls", classes=["a", "b", "c"]),
    "expansion softmax": expansion("expansion-softmax", classes=["a", "b", "c"]),
    "waves": waves(),
    "filter": make_spec(
        {
            "name": "flow",
            "precision": "int16",
            "input": {"dim": 3, "max_abs": 3.0},
            "label": {"max_abs": 4.0},
            "kernel": {"sigma": 1.0},
            "learning": {"rule": "spectrum-ekf"},
        }
    ),
}
OTHERS = (
    "svr",
    "pairs",
    "nt",
    "fklms",
    "outputs",
    "nlms",
    "nlms classes",
    "rls",
    "rls classes",
    "expansion",
    "expansion classes",
    "waves",
    "filter",
)


def test_every_rule_of_int16_is_among_the_models() -> None:
    assert {spec.learning.rule for spec in MODELS.values()} == set(INT16_RULES)


@pytest.mark.exhaustive
@pytest.mark.parametrize("model", ["products", "stages", *map(rarely, OTHERS)])
@pytest.mark.parametrize("target", ["cortex-m0plus", *map(rarely, EIGHT[1:])])
def test_the_same_bytes_on_each_target(target: str, model: str) -> None:
    for chain in ("zig", "gcc") if shutil.which("arm-none-eabi-gcc") and target.startswith("cortex") else ("zig",):
        report = check_targets(MODELS[model], [target], samples=100, chain=chain, tries=0)
        assert report.ok, report.rows


def corners(dim: int) -> tuple[Spec, np.ndarray]:
    """Vectors at the ends of the inputs' range, and samples there: differences of up to 16 bits, sums of squares of up to 32."""
    rng = np.random.default_rng(dim)
    vectors = rng.choice([-1.0, 1.0, 0.3], (6, dim))
    content = {"name": "flow", "precision": "int16", "input": {"dim": dim, "max_abs": 1.0}, "kernel": {"gamma": 0.5}}
    expansion = {"vectors": vectors.tolist(), "weights": rng.normal(size=(6, 1)).tolist(), "bias": [0.1]}
    spec = make_spec(content | {"learning": {"rule": "frozen"}, "expansion": expansion})
    return spec, np.concatenate([vectors, -vectors, rng.uniform(-1, 1, (20, dim))])


@pytest.mark.exhaustive
@pytest.mark.parametrize("dim", [2, 4, 5, *map(rarely, (1, 3, 6, 7, 8, 9))])
def test_squared_distances_by_dsp_instructions(dim: int) -> None:
    """Two differences in an instruction; where one would leave 16 bits, the C has no such instruction."""
    spec, x = corners(dim)
    chains = ("zig", "gcc") if shutil.which("arm-none-eabi-gcc") else ("zig",)
    for chain in chains:
        report = check_targets(spec, ["cortex-m4f"], chain=chain, tries=0, stream=(x, np.zeros(len(x))))
        assert report.ok, report.rows
    widest = int(spec.conversion.reach.max() + np.abs(spec.scales.vectors).max())
    text = build(spec).files["src/flow.c"]
    assert ("ssub16" in text) == (widest <= 32767)
    assert dim not in (2, 4) or (widest <= 32767) == (dim == 4)
    # the negative control: the instructions run on this target
    if "ssub16" in text:
        target = find_target("cortex-m4f")
        image = model_image(build(spec), target, "zig", patch=lambda c: c.replace("ssub16", "sadd16"))
        verdict = Reference(build(spec), None, x, np.zeros(len(x)), engine="llvm").verdict(
            UnicornModel(build(spec), image)
        )
        assert not verdict["equal"]


@pytest.mark.exhaustive("half a minute")
@needs("qemu-system-arm")
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("level", ["-O2", "-O3"])
def test_the_same_bytes_with_helium(model: str, level: str) -> None:
    """A Cortex-M55, whose compiler multiplies eight numbers at once."""
    report = check_targets(MODELS[model], ["cortex-m55"], samples=1000, emulator="qemu", tries=0, level=level)
    assert report.ok, report.rows


AVR = needs("simavr", "avr-gcc")


@AVR
@pytest.mark.in_turn(22)
@pytest.mark.parametrize("model", ["svr", "products", "waves", "float32", "fitted"])
def test_tables_lie_in_flash_on_an_avr(model: str) -> None:
    """Of the program as it is linked: `const` alone would lie in RAM.  In ISO C it does, for it has no word for flash."""
    real = make_spec({"name": "flow", "precision": "float32", "input": {"dim": 2}})
    spec, memory = MODELS.get(model, real), None
    if model == "fitted":
        host = HostModel(spec)
        host.update(*mixed_stream(spec, 50))
        memory = host.memory
    project, target = build(spec, memory), find_target("avr")
    assert project.figures["const_bytes"] > 90
    assert model_image(project, target, "gcc").data_bytes == 0
    iso = model_image(project, target, "gcc", flags=("-std=c99",)).data_bytes
    assert iso > 0.8 * project.figures["const_bytes"]  # the compiler folds some of it into code
    assert ProcessModel(project, target, "gcc").call("selftest") == 0


@AVR
def test_a_part_with_two_kilobytes_refuses_what_does_not_fit() -> None:
    """The model, what is linked beside it, and the stack that was measured."""
    report = check_targets(MODELS["svr"], ["atmega328p"], samples=60)
    row = report.rows[0]
    assert report.ok and row["part"] == "ATmega328P" and 100 < row["stack_bytes"] < 500
    content = {"name": "flow", "precision": "float32", "input": {"dim": 4}, "kernel": {"sigma": 1.0}}
    content |= {"learning": {"rule": "klms"}, "reduction": {"technique": "nt", "n_max": 84}}
    with pytest.raises(
        UserError, match=r"needs 1,\d+ bytes of RAM plus about 512 bytes of stack, but ATmega328P has only 2,048 bytes"
    ):
        check_targets(make_spec(content), ["atmega328p"], samples=60)
    project, target = build(MODELS["svr"]), find_target("atmega328p")
    ram = project.figures["ram_bytes"]
    refuse_large_ram(project, target, 100, 1948 - ram)
    with pytest.raises(UserError, match=r"bytes of RAM plus 1,\d+ bytes of stack"):
        refuse_large_ram(project, target, 100, 1949 - ram)


@pytest.mark.exhaustive
@AVR
@pytest.mark.parametrize("model", ["nlms", *map(rarely, sorted(MODELS.keys() - {"nlms"}))])
def test_the_same_bytes_where_an_int_has_16_bits(model: str) -> None:
    report = check_targets(MODELS[model], ["avr"], samples=40, tries=0)
    assert report.ok, report.rows


@pytest.mark.exhaustive
@AVR
@pytest.mark.parametrize("seed", [2, *map(rarely, range(3, 120))])
def test_random_models_give_the_same_bytes_where_an_int_has_16_bits(seed: int) -> None:
    """Of every rule in int16, whatever its keys.  ``tests/gen/test_int_widths.py`` needs no AVR."""
    spec = random_spec(np.random.default_rng(seed), INT16_RULES[seed % len(INT16_RULES)], precision="int16")
    report = check_targets(spec, ["avr"], samples=40, tries=0)
    assert report.ok, report.rows


@AVR
@pytest.mark.exhaustive
def test_a_number_that_is_not_widened_is_caught_where_an_int_has_16_bits() -> None:
    """The negative control: without the casts, a product of two 16-bit numbers overflows there, and nowhere else."""
    project = build(MODELS["products"])
    text = project.files["src/flow.c"]
    assert "(int32_t)a[j] * (int32_t)b[j]" in text
    narrowed = text.replace("(int32_t)a[j] * (int32_t)b[j]", "a[j] * b[j]")
    assert narrowed != text
    changed = Project(**{**vars(project), "files": project.files | {"src/flow.c": narrowed}})
    most = MODELS["products"].conversion.most
    x = np.random.default_rng(0).integers(-most, most + 1, (60, len(most))).astype(np.int16)  # no row is refused
    reference = Reference(project, None, x, mixed_stream(MODELS["products"], 60)[1], engine="llvm")
    assert reference.verdict(ProcessModel(project, find_target("avr"), "gcc"))["equal"]
    device = ProcessModel(changed, find_target("avr"), "gcc")
    assert not reference.verdict(device)["equal"]
