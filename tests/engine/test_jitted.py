"""The reference, kernels printed as Python and compiled by Numba, computes what plain Python computes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from pykernel.engine.choice import VARIABLE
from pykernel.gen.check import check
from pykernel.gen.streams import mixed_stream
from pykernel.host.model import HostModel
from pykernel.spec.model import Spec, make_spec
from tests.support.compilers import QUICK
from tests.support.machines import machine
from tests.support.random_calls import first_difference, random_calls, trace
from tests.support.table_toy import frozen_spec

ONLINE = {"name": "flow", "input": {"dim": 3}, "kernel": {"sigma": 1.0}, "reduction": {"n_max": 8}}


def assert_same(spec: Spec, count: int = 120, seed: int = 3) -> None:
    """Whatever is called, in any order: the same answers and statuses, and then the same bytes."""
    calls = [c for c in random_calls(spec, np.random.default_rng(seed), count) if c.kind not in ("save", "load")]
    jitted, plain = HostModel(spec, engine="numba"), HostModel(spec, engine="python")
    found = trace(jitted, calls), trace(plain, calls)
    assert first_difference(calls, *found) is None
    assert bytes(jitted.memory.bytes) == bytes(plain.memory.bytes)
    valid = spec.program.valid
    assert valid is None or jitted.executor.call(valid) == plain.executor.call(valid)


@pytest.mark.parametrize(
    "make", [lambda: frozen_spec("float64"), lambda: make_spec(ONLINE), lambda: machine("subspace")]
)
@pytest.mark.exhaustive
def test_random_calls(make) -> None:  # type: ignore[no-untyped-def]
    assert_same(make())


def test_one_text_serves_all_sizes_and_numbers() -> None:
    """What is compiled does not hold a size or a number: else each spec of a user would cost ten seconds."""
    texts = set()
    for n_max, dim, sigma in ((8, 3, 1.0), (20, 5, 0.3)):
        spec = make_spec(ONLINE | {"input": {"dim": dim}, "kernel": {"sigma": sigma}, "reduction": {"n_max": n_max}})
        texts.add(tuple(HostModel(spec, engine="numba").executor.code.source.texts.items()))
    assert len(texts) == 1


def test_numba_is_the_second_witness_of_a_check_unless_it_is_told_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.delenv(VARIABLE, raising=False)
    spec = frozen_spec("float64")
    how = {
        "samples": 20,
        "levels": ("-O0",),
        "compilers": (QUICK[0].name,),
        "stream": mixed_stream(spec, 20),
        "progress": lambda _, text: said.append(text),
    }
    found = check(spec, **how)
    assert found.ok and found.engine == "llvm" and any("simulating with llvm" in text for text in said)
    assert found.witnesses == [{"engine": "numba", "equal": True, "first_difference": None}]
    found = check(spec, **how, engine="python")
    assert found.ok and (found.engine, found.witnesses) == ("python", [])


@pytest.mark.exhaustive
def test_the_next_process_compiles_nothing(tmp_path: Path) -> None:
    """Nor does it ask Numba to print or type anything."""
    script = (
        "import sys; from numba.core import compiler; made = []\n"
        "real = compiler.compile_extra\n"
        "compiler.compile_extra = lambda *given, **how: made.append(given[2].__name__) or real(*given, **how)\n"
        "from numba.core import dispatcher; dispatcher.compiler.compile_extra = compiler.compile_extra\n"
        "from tests.engine.test_jitted import *\n"
        "model = HostModel(machine('subspace'), engine='numba'); x = np.ones((5, 3))\n"
        "print(len(made), model.prequential(x)[0].tobytes().hex(), len(made))\n"
    )
    environment = os.environ | {"XDG_CACHE_HOME": str(tmp_path)}
    runs = [
        subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
        for _ in range(2)
    ]
    (_, cold, some), (_, warm, none) = (run.stdout.split() for run in runs)
    assert cold == warm and int(some) > 3 and int(none) == 0, [run.stdout for run in runs]
