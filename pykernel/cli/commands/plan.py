"""The command ``pykernel plan``: the model of smallest error that keeps a device's limits."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pykernel.cli import output
from pykernel.cli.options import takes
from pykernel.cli.options.search import PlanOptions
from pykernel.cli.output import MEASURES
from pykernel.errors import UserError

if TYPE_CHECKING:
    from pykernel.tuning.plan import Limits, Plan


@takes(PlanOptions)
def plan(options: PlanOptions) -> None:
    """Find the best model that fits a device, and check it there.

    For each rule and technique, this command measures the largest budget that fits the target. It tunes these models as
    pykernel sweep does. Then it generates the best model's C, runs the C on the emulated target and compares the memory
    byte for byte. Without a spec, the last column of numbers is the label, and the others are inputs, without times.

        pykernel plan --ram 4k --flash 16k --target cortex-m0plus data.csv

    Exit codes: 0 done, 1 no model fits (the closest one is named) or the C computes other bytes, 2 bad input, 130
    interrupted.
    """
    from pykernel.cli.work import search
    from pykernel.files import new_folder
    from pykernel.tuning.plan import NothingFits, make_plan

    search.need_rounds(options.rounds)
    limits = limits_of(options)
    base, recorded, assumed = search.planned_data(options)
    by = search.measure(base, options.score)
    tried = search.rules(options.rule), search.techniques(options.technique)
    search.need_emulator(limits.target)
    if assumed:
        output.tell(f"assumed: {'; '.join(assumed)}")
    report: dict[str, Any] = {"ok": False, "assumed": assumed, "limits": vars(limits)}
    with new_folder(options.out):
        with search.workers(base, recorded, options, options.out, 0) as workers:
            try:
                found = make_plan(base, recorded, limits, workers, *tried, by, options.rounds, output.tell)
            except NothingFits as error:
                if options.as_json:
                    output.print_json(report | {"reason": str(error)})
                raise
        report |= findings(found, by) | {"spec": str(options.out / "planned.toml")}
        write(report, found, options)
    if options.as_json:
        output.print_json(report)
    else:
        print_plan(report, found, by)


def limits_of(options: PlanOptions) -> Limits:
    from pykernel.cli.work.search import counting_target
    from pykernel.tuning.plan import make_limits, parse_amount

    place = counting_target(options.target)
    if place is None:
        raise UserError("--target none cannot be planned for; see pykernel targets")
    return make_limits(
        place,
        parse_amount(options.ram, "--ram") if options.ram else None,
        parse_amount(options.flash, "--flash") if options.flash else None,
        parse_amount(options.instructions, "--instructions", 1000) if options.instructions else None,
    )


def findings(found: Plan, by: str) -> dict[str, Any]:
    return {
        "ok": True,
        "score": by,
        "winner": found.row,
        "verified": found.verified,
        "uses": found.uses,
        "table": found.rows,
        "refused": found.refused,
        "misses": found.misses,
    }


def write(report: Mapping[str, Any], found: Plan, options: PlanOptions) -> None:
    """The spec, and all that was found; both or none."""
    from pykernel.files import all_or_none, whole_file
    from pykernel.spec.model import make_spec

    with all_or_none():
        with whole_file(options.out / "planned.toml") as file:
            file.write(make_spec(found.row["spec"]).to_toml().encode())
        with whole_file(options.out / "plan.json") as file:
            file.write(json.dumps(output.finite(report), default=output.plain, indent=1).encode() + b"\n")


def print_plan(report: Mapping[str, Any], found: Plan, by: str) -> None:
    from pykernel.tuning.plan import CALLS

    row, verified, limits = found.row, found.verified, found.limits
    table = output.new_table("limit", "takes", "allowed", "part")
    calls = [verified[call] for call in CALLS if call in verified]
    amounts = {
        "ram": (verified["ram_bytes"] + verified["stack_bytes"], limits.ram, "RAM, struct and stack"),
        "flash": (verified["flash_bytes"], limits.flash, "flash, all that is linked"),
        "instructions": (
            max(call["worst"] or call["max"] for call in calls),
            limits.instructions,
            "instructions of a call",
        ),
    }
    for key, (taken, allowed, text) in amounts.items():
        unit = "" if key == "instructions" else " B"
        part = f"{100 * found.uses[key]:.0f} %" if key in found.uses else ""
        table.add_row(text, f"{taken:,}{unit}", "any" if allowed is None else f"{allowed:,}{unit}", part)
    output.show_table(f"{output.model_name(row)} on {limits.target}, {MEASURES[by]} {output.number(row[by])}", table)
    print_tuned(found, by)
    print(f"verified  {verified['samples']:,} samples on {limits.target}: the memory is equal to the simulation's")
    print(f"values    {output.key_values(row['values'])}")
    print(f"spec      {report['spec']}")
    output.print_next(report["spec"])


def print_tuned(found: Plan, by: str) -> None:
    """The best of what fits."""
    others = output.new_table("rule", "technique", "size", MEASURES[by], "RAM without stack")
    others.columns[1].justify = "left"
    for other in found.rows[:10]:
        cells = (other["rule"], other["technique"] or "", str(other["size"] or ""), output.number(other[by]))
        others.add_row(*cells, output.byte_count(other["ram_bytes"]), style="bold" if other is found.row else "")
    output.show_table(f"the best of {len(found.rows)} that were tuned", others)
