"""Bad storage: histories of wrong readings, wrong writes and power that fails, for a model of each family.

tests/support/storage/histories.c carries them out; its first comment says what is counted.  readings.c searches for what
costs the most readings.
"""

from __future__ import annotations

import subprocess
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pykernel.errors import UserError
from pykernel.host import snapshot
from pykernel.host.model import HostModel
from pykernel.spec.model import FAMILIES, Spec, make_spec
from tests.support.built import built
from tests.support.harness import write_sources
from tests.support.machines import MACHINES, SIGNALS
from tests.support.tools import needs

pytestmark = needs("gcc", would="what is left on bad storage")

STORAGE = Path(__file__).parents[1] / "support" / "storage"
FLAGS = ("-std=c99", "-O2", "-Wall", "-Wextra", "-Werror", "-ffp-contract=off")
STATES = 30
"""States that a device of a history can learn, one after the other."""
WHOLE: dict[str, Any] = {"precision": "int16", "input": {"dim": 3, "max_abs": 4.0}, "label": {"max_abs": 4.0}}
MODELS: dict[str, dict[str, Any]] = {
    "fklms": {"learning": {"rule": "klms"}, "kernel": {"sigma": 1.0}, "reduction": {"technique": "fklms", "n_max": 3}},
    "mklms": {"kernel": {"sigma": 1.0}, "reduction": {"technique": "mklms", "n_max": 6}, "precision": "float64"},
    "rls": {"learning": {"rule": "rls"}},
    "spectrum": {"learning": {"rule": "spectrum-ekf"}, "kernel": {"sigma": 1.0}},
    "expansion": {
        "kernel": {"sigma": 1.0},
        "learning": {"rule": "expansion-rls"},
        "expansion": {"vectors": [[0.0, 0.0, 1.0], [1.0, 0.5, 0.0]], "weights": [[0.5], [-0.5]], "bias": [0.25]},
    },
    "krr": {"kernel": {"sigma": 1.0}, "learning": {"rule": "krr", "samples": 4}},
    "kfd": MACHINES["kfd"],
    "stream": MACHINES["stream-uncached"],
    "sgma": MACHINES["sgma"],
    "subspace": MACHINES["subspace-drop"],
    "monitor": MACHINES["monitor"],
    "signal": SIGNALS["signal-windows"],
    "whole": WHOLE | {"learning": {"rule": "klms"}, "kernel": {"sigma": 1.0}, "reduction": {"technique": "fklms", "n_max": 4}},
    "whole-linear": WHOLE | {"learning": {"rule": "nlms"}},
    "whole-squares": WHOLE | {"learning": {"rule": "rls"}},
    "whole-spectrum": WHOLE | {"learning": {"rule": "spectrum-nlms"}, "kernel": {"sigma": 1.0}},
    "whole-expansion": WHOLE
    | {
        "kernel": {"sigma": 1.0},
        "learning": {"rule": "expansion-rls"},
        "expansion": {"vectors": [[0.0, 0.0, 1.0], [1.0, 0.5, 0.0]], "weights": [[0.5], [-0.5]], "bias": [0.25]},
    },
    "whole-filter": WHOLE | {"learning": {"rule": "spectrum-ekf"}, "kernel": {"sigma": 1.0}},
}  # fmt: skip
KINDS = (
    "a bit flipped",
    "nothing read",
    "partly read",
    "an error",
    "all ones or zeros",
    "... for a while",
    "any of these",
)


def spec_of(model: str) -> Spec:
    content = MODELS[model]
    inputs = {} if "signal" in content else {"input": {"dim": 3} | content.get("input", {})}
    return make_spec(content | {"name": "m"} | inputs)


def learned_states(spec: Spec) -> Iterator[bytes]:
    """Snapshots of states, each once, in the order in which they are learned."""
    model, rng, seen, labels = (
        HostModel(spec),
        np.random.default_rng(0),
        set[bytes](),
        spec.program.label_array(spec.capacities),
    )
    while len(seen) < STATES:
        x = rng.normal(size=(20, spec.width))
        y = rng.integers(0, len(spec.label.classes), 20) if labels.is_class else rng.normal(size=(20, *labels.shape))
        model.update(x, y)
        data = snapshot.save(model)
        if data not in seen:
            seen.add(data)
            yield data


@pytest.fixture(scope="module", params=MODELS)
def histories(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A function: the counts of some histories of one model."""
    spec, folder = spec_of(request.param), tmp_path_factory.mktemp("storage")
    program, pool = folder / "histories", folder / "pool"
    sources = [*write_sources(built(spec), folder), STORAGE / "histories.c"]
    subprocess.run(["gcc", *FLAGS, f"-I{folder}", *sources, "-o", program], check=True)
    pool.write_bytes(b"".join(learned_states(spec)))

    def run(count: int, kind: str, reads: float, writes: float = 0.0, seed: int = 0) -> dict[str, int]:
        numbers = (count, seed, KINDS.index(kind), round(reads * 1e6), round(writes * 1e6))
        done = subprocess.run([program, *map(str, numbers), pool], capture_output=True, text=True)
        assert done.returncode == 0, (done.returncode, done.stderr)
        return {name: int(number) for name, number in map(str.split, done.stdout.splitlines())}

    run.parts = -(-built(spec).figures["snapshot_bytes"] // 64)  # type: ignore[attr-defined]
    return run


def test_every_family_that_saves_has_histories() -> None:
    saving = {f.spec for f in FAMILIES if any(p.persistent for p in f.programs.values())}
    assert {type(spec_of(model)) for model in MODELS} == saving and len(saving) == 14


@pytest.mark.exhaustive
@pytest.mark.in_turn(4 * len(KINDS))
@pytest.mark.parametrize("kind", KINDS)
def test_what_was_stored_is_there_after_wrong_readings_and_power_failures(
    histories: Any, kind: str, exhaustive: bool
) -> None:
    """After each step of each history an honest reader finds the last state whose store succeeded, or a later one."""
    # a reading of ones or zeros can be what a wrong write should have written
    alike = kind in KINDS[4:]
    # so that a reading of a whole slot is wrong in at most one of five cases
    often = min(0.005 if alike else 0.02, 0.2 / histories.parts)
    for reads, writes in ((0.0, 0.0), (0.002, 0.0), (0.0 if alike else 0.002, 0.02), (often, 0.0)):
        found = histories(300 if exhaustive else 25, kind, reads, writes)
        assert (found["nothing"], found["older"], found["garbage"]) == (0, 0, 0), (reads, writes, found)
        if (reads, writes) == (0.0, 0.0):  # power fails, and nothing else
            assert (found["fallback"], found["refused"], found["empty"]) == (0, 0, 0) and found["stores"] > 100, found
        if (reads, writes) == (0.002, 0.0):  # one wrong reading hides no snapshot, and no store fails for it
            wrong = 1 - (1 - reads) ** histories.parts  # of a whole slot
            # two in a row, or one of a slot that holds bits which read otherwise each time
            expected = (10 * wrong**2 + wrong / 4) * found["stores"]
            assert found["refused"] <= expected + 3 * expected**0.5, (expected, found)
            assert found["fallback"] <= 0.005 * found["restores"], found


# ------------------------------------------------------------------------------------------------------ how much is read


def forged(spec: Spec, good: bytes) -> list[bytes]:
    """Snapshots with a right CRC-32 and a number that learning cannot give, one for each of some places."""
    found, places = [], range(snapshot.HEADER.size, len(good) - snapshot.TRAILER.size, 4)
    # counts and flags come last in each struct
    for place in (*places[:: -(-len(places) // 30)], *places[-8:]):
        for word in (b"\xff\xff\xff\x7f", b"\xff\xff\xff\xff"):
            body = good[:place] + word + good[place + 4 : -snapshot.TRAILER.size]
            data = body + snapshot.TRAILER.pack(zlib.crc32(body))
            try:
                snapshot.read(spec, data)
            except UserError:
                found.append(data)
                break
    return found


def counting(text: str) -> str:
    """m_snapshot.c, which then counts readings of slots and checks of their numbers."""
    for before, counter in (
        (
            "    for (uint32_t offset = 0u; offset < M_SNAPSHOT_BYTES; offset += M_SNAPSHOT_CHUNK) {\n        const uint32_t count = m_fetch",
            "whole_readings++",
        ),
        ("    stored->begin = M_SNAPSHOT_BYTES; /* of no part */", "checks += (stored->state == NULL) ? 1u : 0u"),
    ):
        assert text.count(before) == 1
        text = text.replace(before, f"    {counter};\n{before}")
    return text.replace("#include <stddef.h>\n", "#include <stddef.h>\n\nextern uint32_t whole_readings, checks;\n", 1)


@pytest.mark.in_turn(67)
@pytest.mark.parametrize("model", MODELS)
def test_no_wrong_readings_cost_more_than_the_header_says(model: str, tmp_path: Path, exhaustive: bool) -> None:
    """The header said that four slots are read, and about a hundred at most; nothing had counted, and a check of numbers, which
    reads parts of a slot again, counted as one."""
    spec, program, pool = spec_of(model), tmp_path / "readings", tmp_path / "pool"
    project = built(spec)
    sources = write_sources(project, tmp_path)
    (own,) = (path for path in sources if path.name == "m_snapshot.c")
    own.write_text(counting(own.read_text()))
    subprocess.run(["gcc", *FLAGS, f"-I{tmp_path}", *sources, STORAGE / "readings.c", "-o", program], check=True)
    *_, good = learned_states(spec)
    bad = forged(spec, good)
    pool.write_bytes(b"".join([good, *bad]))
    done = subprocess.run([program, str(1000 if exhaustive else 100), "0", pool], capture_output=True, text=True)
    assert done.returncode == 0 and bad, (done.returncode, done.stderr)
    found = {name: int(number) for name, number in map(str.split, done.stdout.splitlines())}
    header = " ".join(project.files["src/m.h"].replace(" * ", " ").split())
    for call, checks in (("restore", 2), ("store", 3)):
        # three whole slots, and a check of each that is not copied; of two slots twelve looks and checks, then as many or two copies
        assert (found[f"{call}_whole"], found[f"{call}_checks"]) == (3, checks), found
        assert 24 < found[f"{call}_most"] <= 72, found
        # a check of numbers reads parts again: 1 to 19 times the slot's bytes
        assert 1 <= round(found[f"{call}_check"] / 100 / checks) <= 19
    assert header.count("a whole slot three times") == header.count("more than 72 readings and checks") == 2
