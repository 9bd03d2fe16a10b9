"""Instructions of one prediction on an emulated Cortex-M4F, 64 expansion vectors of 8 inputs, and where they go.

Each instruction of the -O2 build is counted by address; debug information (which changes no instruction) says which
line of the generated C it comes from, inlined or not, and so which part: distance, exp, or the sum around them.
Beside it m2cgen's code for a support vector regression of the same size, which computes in double, at GCC's defaults.

    python -m benchmarks.device.predict_instructions
"""

import re
import subprocess
import sys
from collections import Counter

import numpy as np
from elftools.elf.elffile import ELFFile

from benchmarks.device.imported_instructions import DEFAULTS
from pykernel.errors import UserError
from pykernel.gen.project import build
from pykernel.host.model import HostModel
from pykernel.spec.model import make_spec
from pykernel.targets.build import Image, model_image
from pykernel.targets.target import find_target
from pykernel.targets.unicorn_runner import MAILBOX, EmulatedCpu, UnicornModel

VECTORS, INPUTS, CALLS = 64, 8, 200
GOAL = 3400
TARGET = find_target("cortex-m4f")
PARTS = {"squared_distance": "distance", "gaussian": "exp", "exp_negative": "exp", "pow2": "exp"}


def function_lines(source: str) -> list[tuple[int, str]]:
    """Where each function of a generated C file begins, and its name without the prefix."""
    heads = re.finditer(r"^[a-z][\w ]* model_(\w+)\([^;]*?\)\n\{", source, re.MULTILINE)
    return [(source.count("\n", 0, head.start()) + 1, head[1]) for head in heads]


def line_of_address(image: Image) -> dict[int, int]:
    """Line of model.c for each address that debug information knows."""
    lines: dict[int, int] = {}
    with image.elf.open("rb") as file:
        info = ELFFile(file).get_dwarf_info()
        for unit in info.iter_CUs():
            before = None
            for entry in info.line_program_for_CU(unit).get_entries():
                state = entry.state
                if state is None:
                    continue
                if before is not None and not before.end_sequence:
                    lines.update(dict.fromkeys(range(before.address, state.address, 2), before.line))
                before = state
    return lines


def split(image: Image, executed: dict[int, int], calls: int) -> dict[str, float]:
    """Instructions per call of each part."""
    source = (image.folder / "model.c").read_text()
    heads, lines = function_lines(source), line_of_address(image)
    total: Counter[str] = Counter()
    for address, count in executed.items():
        line = lines.get(address, 0)
        name = next((name for start, name in reversed(heads) if start <= line), "")
        total[PARTS.get(name, "sum and the rest")] += count
    return {part: count / calls for part, count in total.items()}


def inner_loop(image: Image, executed: dict[int, int]) -> list[str]:
    """What is executed for every expansion vector: the disassembly of the addresses counted at least so often."""
    objdump = "arm-none-eabi-objdump"
    try:
        listing = subprocess.run([objdump, "-d", image.elf], capture_output=True, text=True, check=True).stdout
    except OSError:
        return [f"({objdump} is not installed)"]
    often = {address for address, count in executed.items() if count >= CALLS * VECTORS // 8}
    shown = []
    for line in listing.splitlines():
        match = re.match(r" *([0-9a-f]+):\t[0-9a-f ]+\t(.*)", line)
        if match and int(match[1], 16) in often:
            address = int(match[1], 16)
            shown.append(f"{executed[address] / CALLS:8.1f}  {address:x}  {match[2].split('@')[0].strip()}")
    return shown


def pykernel_row(chain: str, listing: bool) -> None:
    spec = make_spec(
        {
            "name": "model",
            "input": {"dim": INPUTS},
            "kernel": {"sigma": 1.0},
            "learning": {"rule": "klms"},
            "reduction": {"technique": "nt", "n_max": VECTORS, "ald_threshold": 0.0},
        }
    )
    project = build(spec)
    x, y = samples()
    host = HostModel(spec, project.drop)
    host.update(x, y)
    assert host.memory.field("n")[0] == VECTORS
    image = model_image(project, TARGET, chain, flags=("-g",))
    model = UnicornModel(project, image)
    model.restore(bytes(host.memory.bytes))
    machine = model.machine
    machine.counts[1:] = 0
    model.paint_stack()
    each = []
    for row in x[:CALLS]:
        call, status = model.measure("predict", b"", row, None)
        assert status == 0
        assert model.answered("predict")[0] == host.predict(row)[0]
        each.append(call.instructions)
    executed = machine.executed()
    parts = split(image, executed, CALLS)
    figures = " | ".join(f"{parts.get(part, 0):,.0f}" for part in ("distance", "exp", "sum and the rest"))
    print(f"| pykernel, {chain} -O2 | {np.mean(each):,.0f} | {max(each):,} | {figures} | {machine.stack_used()} |")
    if listing:
        print(*inner_loop(image, executed), sep="\n", file=sys.stderr)


def samples() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (400, INPUTS)).astype(np.float32)
    return x, np.sin(x.sum(1)).astype(np.float32)


def m2cgen_row(chain: str) -> None:
    """m2cgen's C for an SVR with as many support vectors."""
    import m2cgen
    from sklearn.svm import SVR

    x, y = samples()
    svr = SVR(gamma=0.5, epsilon=0.0, C=1e6).fit(x[:VECTORS], y[:VECTORS])
    assert len(svr.support_) == VECTORS
    code = m2cgen.export_to_c(svr)
    # generated code is not warning-free
    source = '#pragma GCC diagnostic ignored "-Wpedantic"\ndouble score(double *input);\n' + code
    image = Image(
        TARGET,
        chain,
        {"svr.c": source},
        flags=("-Wno-error", *DEFAULTS, "-ffp-contract=fast"),
        libraries=("-lm", "-lc"),
    )
    machine = EmulatedCpu(image)
    machine.paint_stack(machine.free)
    each = []
    for row in x[:CALLS].astype(np.float64):
        machine.uc.mem_write(MAILBOX, row.tobytes())
        before = machine.instructions
        machine.call("score", MAILBOX)
        each.append(machine.instructions - before)
    print(
        f"| m2cgen {m2cgen.__version__}, {chain} -O2, newlib | {np.mean(each):,.0f} | {max(each):,} | | | | {machine.stack_used()} |"
    )


def main() -> None:
    print("| code | instructions, mean | max | distance | exp | sum and the rest | stack |")
    print("|---|---|---|---|---|---|---|")
    for chain in ("gcc", "zig"):
        try:
            pykernel_row(chain, listing="-v" in sys.argv)
        except UserError as missing:
            print(f"({missing})", file=sys.stderr)
    try:
        m2cgen_row("gcc")
    except (UserError, ImportError) as missing:
        print(f"(m2cgen: {missing})", file=sys.stderr)
    print(f"\ngoal: {GOAL:,} instructions")


if __name__ == "__main__":
    main()
