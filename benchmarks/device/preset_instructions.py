"""Instructions and bytes of every preset and rule on emulated microcontrollers: cortex-m0plus, cortex-m4f, rv32imac.

    python -m benchmarks.device.preset_instructions [--toolchain gcc] [--only NAME …] [-o docs] [--quick]

4 inputs, float32, -O2.  The host learns the stream of presets.py, which keeps every technique busy, until the budget
is full and has been exchanged, and an update that exchanges a vector is near, if there is one; the device goes on from
that state, and predicts and learns up to 100 samples: fewer, but at least 10, where they would take more than 5 million
instructions.  Then its memory is compared with the host's, byte for byte.  Counted is each instruction from a call's
first to its return, the float library included.  "replaced" is the part of these updates that exchanged a vector.

Writes preset-instructions.csv to the output folder and the tables into docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.device.presets import DIM, LINEAR, PRESETS, filling, spec_of, stream
from benchmarks.tables import DATA, Rows, load, markdown, merged, progress_bar, publish, save
from pykernel.algorithms.online.klms import KLMS
from pykernel.errors import UserError
from pykernel.gen.project import Project, build
from pykernel.host.model import HostModel
from pykernel.spec.model import Spec, make_spec
from pykernel.targets.build import Toolchain, model_image
from pykernel.targets.target import find_target
from pykernel.targets.unicorn_runner import UnicornModel

Status = KLMS["real"].status

TARGETS = ("cortex-m0plus", "cortex-m4f", "rv32imac")
BUDGETS = (8, 32)
AHEAD = 2000
"""How far an update is looked for that exchanges a vector."""
LEAST, MOST = 10, 100
"""Updates that are counted ..."""
INSTRUCTIONS = 5_000_000
"""... and after how many instructions no further one is."""
COLUMNS = (
    *("preset", "n", "target", "state_bytes", "ram_bytes", "flash_bytes", "stack_bytes"),
    *("predict_median", "update_median", "update_max", "updates", "replaced"),
)


def model_of(preset: str, n: int) -> Spec:
    if preset not in LINEAR:
        return spec_of(preset, n)
    learning = dict(LINEAR[preset])
    content: dict[str, Any] = {"name": "busy", "input": {"dim": DIM, "max_abs": 10.0}, "learning": learning}
    if preset == "rff-rls":
        learning["features"] = n
        content["kernel"] = {"sigma": 1.0}
    return make_spec(content)


def sizes_of(preset: str, budgets: Sequence[int]) -> Sequence[int]:
    """The budgets, or one where the model has none."""
    return budgets[:1] if preset in LINEAR and preset != "rff-rls" else budgets


def window(spec: Spec, n: int) -> int:
    """Where counting begins: the budget is full, and one of the next LEAST updates exchanges a vector, if any does."""
    start = filling(n)
    x, y = stream(n, start + AHEAD)
    replaced = np.flatnonzero(HostModel(spec).update(x, y)[start:] == Status.REPLACED)
    if len(replaced) and replaced[0] >= LEAST:
        start += int(replaced[0]) - LEAST // 2
    return start


def row(project: Project, preset: str, n: int, target: str, chain: Toolchain, most: int = MOST) -> dict[str, Any]:
    """What a model takes on a target; all blank but the bytes where it does not fit.

    Raises RuntimeError if its memory is not the host's in the end.
    """
    spec, figures = project.spec, project.figures
    sizes = {key: figures[key] for key in ("state_bytes", "ram_bytes")}
    made: dict[str, Any] = dict.fromkeys(COLUMNS, "") | {"preset": preset, "n": n, "target": target} | sizes
    try:
        image = model_image(project, find_target(target), chain)
    except UserError as large:
        print(large, file=sys.stderr)
        return made
    start = window(spec, n)
    x, y = stream(n, start + most)
    host, device = HostModel(spec, project.drop), UnicornModel(project, image)
    host.update(x[:start], y[:start])
    device.memory.bytes[:] = host.memory.bytes
    device.paint_stack()
    end, done = device.machine.instructions + INSTRUCTIONS, start
    while done < len(x) and (done < start + LEAST or device.machine.instructions < end):
        device.prequential(x[done : done + 1], y[done : done + 1])
        done += 1
    statuses = host.prequential(x[start:done], y[start:done])[1]
    if bytes(device.memory.bytes) != bytes(host.memory.bytes):
        raise RuntimeError(f"{preset}, N = {n}, {target}: the memory is not the host's")
    kernel_rule = preset not in LINEAR
    return made | {
        "flash_bytes": image.flash_bytes,
        "stack_bytes": device.machine.stack_used(),
        "predict_median": round(float(np.median(device.costs["predict"]))),
        "update_median": round(float(np.median(device.costs["update"]))),
        "update_max": max(device.costs["update"]),
        "updates": done - start,
        "replaced": f"{float(np.mean(statuses == Status.REPLACED)):.2f}" if kernel_rule else "",
    }


def measure(
    presets: Sequence[str],
    budgets: Sequence[int],
    targets: Sequence[str],
    chain: Toolchain,
    most: int,
    tick: Callable[[], None],
) -> list[dict[str, Any]]:
    rows = []
    for preset in presets:
        for n in sizes_of(preset, budgets):
            try:
                project = build(model_of(preset, n))
            except UserError as refused:
                print(f"{preset}: {refused}", file=sys.stderr)
                break
            for target in targets:
                rows.append(row(project, preset, n, target, chain, most))
                tick()
    return rows


def tables(rows: Rows) -> dict[str, str]:
    """One line for each preset and budget, with the targets side by side."""
    targets = list(dict.fromkeys(row["target"] for row in rows))
    found: dict[tuple[str, str], dict[str, Mapping[str, str]]] = {}
    for one in rows:
        found.setdefault((one["preset"], one["n"]), {})[one["target"]] = one
    lines = []
    for (preset, n), there in found.items():
        first = next(iter(there.values()))
        has_n = preset not in LINEAR or preset == "rff-rls"
        line = [preset, n if has_n else "", f"{int(first['state_bytes']):,}", f"{int(first['ram_bytes']):,}"]
        for target in targets:
            one = there[target]
            if one["update_median"]:
                predict, median, most = (int(one[k]) for k in ("predict_median", "update_median", "update_max"))
                line += [f"{predict:,}", f"{median:,}; {most:,}"]
            else:
                line += ["does not fit", ""]
        lines.append(line)
    heads = ["preset", "N", "state", "RAM"]
    for target in targets:
        heads += [f"{target}: predict", "update, median; max"]
    return {"preset instructions": markdown(heads, lines)}


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--toolchain", choices=("gcc", "zig"), default="gcc")
    parser.add_argument("-o", "--out", type=Path, default=DATA)
    parser.add_argument("--quick", action="store_true", help="one preset, budget and target: does it work?")
    parser.add_argument("--only", nargs="+", choices=(*PRESETS, *LINEAR), metavar="NAME", help="keep the others' rows")
    parser.add_argument("--show", action="store_true", help="measure nothing: the table from the CSV file")
    chosen = parser.parse_args(words)
    path = chosen.out / "preset-instructions.csv"
    if chosen.show:
        rows = load(path)
    else:
        names, budgets, targets, most = chosen.only or (*PRESETS, *LINEAR), BUDGETS, TARGETS, MOST
        if chosen.quick:
            names, budgets, targets, most = ("nt", "nlms"), (8,), ("cortex-m4f",), LEAST
        with progress_bar() as bar:
            total = sum(len(sizes_of(preset, budgets)) for preset in names) * len(targets)
            task = bar.add_task("counting", total=total)
            made = measure(names, budgets, targets, chosen.toolchain, most, lambda: bar.advance(task))
        rows = save(path, merged(path, made, "preset", names, (*PRESETS, *LINEAR)))
    shown = tables(rows)
    if chosen.out == DATA:
        publish(shown)
    print("\n".join(shown.values()))
    print(f"Instructions of a call, bytes; {chosen.toolchain} -O2.")


if __name__ == "__main__":
    main()
