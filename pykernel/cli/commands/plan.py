"""The command ``pykernel plan``: from a table to the model of smallest error that keeps a device's limits."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pykernel.cli import output
from pykernel.cli.options import takes
from pykernel.cli.options.search import PlanOptions
from pykernel.errors import MissingExtra, UserError, visible

if TYPE_CHECKING:
    from pykernel.spec.model import Spec
    from pykernel.tuning.plan import Arm, Limits, Search, Trial

QUIET = 10.0
"""Seconds after which a line says that nothing better was found."""
COUNTED = 2.0
"""About so many seconds take building a model for a target and counting its instructions there."""


@takes(PlanOptions)
def plan(options: PlanOptions) -> None:
    """Find the best model for a table of data, within a device's limits.

    This command tries every kind of model, and changes the best ones until the time is over. Without a label it plans a
    monitor.

        pykernel plan data.csv --label y
        pykernel plan data.csv --label y --ram 4k --target cortex-m0plus

    Errors are those of the last 30 % of the rows; for a monitor, faults are put into these rows. Frozen: the model
    learned the first 70 % only. Learning: it goes on. Ctrl-C keeps the best model so far.

    Exit codes: 0 done, 1 no model fits (the closest one is named) or the C computes other bytes, 2 bad input, 130
    interrupted before a model was tried.
    """
    from pykernel.cli.work import search
    from pykernel.files import new_folder
    from pykernel.tuning.plan import NothingFits, Search, arms

    limits, target = limits_of(options)
    need_numbers(options)
    rules, techniques = search.plan_choices(options)
    if limits.target is not None:
        search.need_emulator(limits.target)
    base, table, assumed = search.planned_data(options)
    if assumed:
        output.tell(f"assumed: {'; '.join(assumed)}")
    tried = possible(arms(base, table, rules, techniques, limits.target))
    if not tried:
        raise UserError("none of these rules is for this data; leave --rule out")
    every = search.techniques(None) if techniques is None else ()
    report: dict[str, Any] = {"ok": False, "assumed": assumed, "limits": vars(limits)}
    with new_folder(options.out), search.plan_workers(base, table, options) as workers:
        course = Search(tried, table, workers, limits, options.seed, every)
        began = time.monotonic()
        report |= {"interrupted": run(course, options)}
        each = (time.monotonic() - began) / max(1, len(course.trials))
        try:
            report |= concluded(course, base, target, options, None if report["interrupted"] else each)
        except KeyboardInterrupt:
            raise output.interrupted(search.kept(workers)) from None
        except NothingFits as error:
            if options.as_json:
                output.print_json(report | {"reason": str(error)})
            raise
    if options.as_json:
        output.print_json(report)
    else:
        print_plan(report, options)


def possible(tried: list[Arm]) -> list[Arm]:
    """Those that this installation can train."""
    if not any(arm.made.spec is None for arm in tried):
        return tried
    try:
        import pykernel.training.reduced  # noqa: F401
    except MissingExtra as missing:
        output.tell(f"without models that are trained here: {missing}")
        return [arm for arm in tried if arm.made.spec is not None]
    return tried


def need_numbers(options: PlanOptions) -> None:
    if options.trials is not None and not 1 <= options.trials <= 1_000_000:
        raise UserError(f"--trials is {options.trials}; it must be from 1 to 1,000,000")
    if not 1 <= options.time <= 10_000_000:
        raise UserError(f"--time is {options.time:g}; it must be 1 second or more")
    if options.seed < 0:
        raise UserError(f"--seed is {options.seed}; it must be 0 or more")


def run(course: Search, options: PlanOptions) -> bool:
    """Whether it was interrupted."""
    from pykernel.cli.work.search import kept

    try:
        with output.progress(options.as_json) as show:
            course.run(_Watch(options, show).left)
    except KeyboardInterrupt:
        if not course.trials:
            raise output.interrupted(kept(course.workers)) from None
        output.tell(f"interrupted after {len(course.trials)} trials; the best so far is kept")
        return True
    return False


def concluded(
    course: Search, base: Mapping[str, Any], target: Mapping[str, Any], options: PlanOptions, each: float | None
) -> dict[str, Any]:
    """What was found, once the winner is verified and written.  Raises NothingFits.

    each: seconds of a trial; None if there is no time for more of them.
    """
    from pykernel.spec.model import make_spec
    from pykernel.tuning.plan import planned, verified
    from pykernel.tuning.trials import simple, watched_simply

    winner, row, uses = verified(course, output.tell)
    specs = {"planned": planned(winner, course.table, target)}
    if winner.found["learning"] is None and (learner := course.winner(learning=True)) is not None:
        specs["learning"] = planned(learner, course.table, target)
    if (small := course.smaller(winner)) is not None:
        specs["small"] = planned(small, course.table, target)
    signal = of_signal(course, winner, each) if each is not None else None
    for name in ("leaner", "better"):
        if signal is not None and signal[name] is not None:
            content = signal[name].pop("spec") | {"name": base["name"]}
            specs[name] = make_spec(content | ({"target": dict(target)} if target else {}))
    others = watched_simply(course.table) if course.table.y is None else simple(spec_of_labels(base), course.table)
    report = findings(course, winner, others) | {
        "ok": True,
        "uses": uses,
        "verified": row,
        "spec": str(options.out / "planned.toml"),
        **{
            f"{name}_spec": str(options.out / f"{name}.toml") if name in specs else None
            for name in ("learning", "small", "leaner", "better")
        },
        "signal": signal,
    }
    comment = told_in_spec(report, "-" if options.data is None else str(options.data))
    return write(report, specs, options.out, comment)


def of_signal(course: Search, winner: Trial, each: float) -> dict[str, Any] | None:
    """What the parts of the signal earn; None without a signal, or if there is nothing to try.  each: seconds of a trial."""
    from pykernel.tuning.earned import Earned, lean_variants, rich_variants, window_variants

    if course.table.stage is None:
        return None
    if course.table.y is None:
        output.tell("what features earn is not tried: faults of a monitor are put into the features themselves")
        return None
    lean, rich, windows = (variants(course.table) for variants in (lean_variants, rich_variants, window_variants))
    # without each kind, then without one more each time
    earned, most = Earned(course, winner), max(0, 2 * len(lean) - 1) + len(rich) + len(windows)
    if not most:
        return None
    seconds = most * (each + (COUNTED if earned.target else 0.0))
    parts = {"without each kind of feature": lean, "with each other kind": rich, "with other windows and hops": windows}
    told = ", ".join(text for text, some in parts.items() if some)
    output.tell(f"trying it {told}: at most {most} trials, about {output.duration(seconds)}")
    try:
        return earned.all(lean, rich, windows)
    except KeyboardInterrupt:
        output.tell("interrupted: what features and windows earn is left out")
        return None


def told_in_spec(report: Mapping[str, Any], data: str) -> str:
    """Where the spec is from, and what to expect of it, as a comment."""
    winner, others = report["winner"], report["simple"]
    least = min(others, key=lambda name: others[name]["error"], default=None)
    lines = [f"Planned from {Path(data).name}, {output.counted(report)}; {report['measure']} over the last 30 %:"]
    lines += [f"{winner['model']} {shown(winner['learning'] or winner['frozen'])}"]
    lines[1] += f"; {least} {output.number(others[least]['error'])}" if least is not None else ""
    lines += [f"The same again: --trials {report['trials']} --seed {report['seed']}"]
    return "".join(f"# {visible(line)}\n" for line in lines) + "\n"


def spec_of_labels(base: Mapping[str, Any]) -> Spec:
    """A model for these columns and labels, whichever."""
    from pykernel.spec.model import make_spec

    return make_spec({key: base[key] for key in ("name", "input", "label", "precision") if key in base})


class _Watch:
    """Says when the best becomes better, that it did not for a while, and when the time is over."""

    def __init__(self, options: PlanOptions, show: Callable[[float, str], None]) -> None:
        self.options, self.show = options, show
        self.began, self.best, self.told = time.monotonic(), float("inf"), 0.0
        most = f"{options.time:g} s" if options.trials is None else f"{options.trials:,} trials"
        output.tell(f"trying models for {most}; Ctrl-C ends this sooner")

    def left(self, course: Search) -> int:
        """How many trials may follow."""
        from pykernel.tuning.plan import model_name

        most, tried = self.options.trials, len(course.trials)
        gone = time.monotonic() - self.began
        best = course.winner()
        state = f"{gone:5.0f} s  {tried:4} trials"
        if most is None:
            state += f", {max(0, self.options.time - gone):.0f} s left"
        if best is not None:
            state += f"  {shown(best.told)}  {model_name(best)}, {output.byte_count(best.bytes)}"
        better = best is not None and best.score < 0.999 * self.best
        if best is not None and better:
            self.best = best.score
        if better or gone - self.told > QUIET:
            self.told = gone
            output.tell(state)
        self.show(gone / self.options.time if most is None else tried / most, "trying models")
        if most is not None:
            return most - tried
        return sys.maxsize if gone < self.options.time else 0


def limits_of(options: PlanOptions) -> tuple[Limits, dict[str, Any]]:
    """The limits, and the [target] that the spec gets: what was given."""
    from pykernel.cli.work.search import counting_target
    from pykernel.tuning.plan import make_limits, parse_amount

    given = {
        "ram": parse_amount(options.ram, "--ram") if options.ram else None,
        "flash": parse_amount(options.flash, "--flash") if options.flash else None,
        "instructions": parse_amount(options.instructions, "--instructions", 1000) if options.instructions else None,
        "cycles": parse_amount(options.cycles, "--cycles", 1000) if options.cycles else None,
    }
    default = "cortex-m0plus" if given["cycles"] else "cortex-m4f" if given["flash"] or given["instructions"] else None
    wanted = options.target or default
    place = counting_target(wanted) if wanted is not None else None
    if wanted is not None and place is None:
        raise UserError("--target none cannot be planned for; see pykernel targets")
    limits = make_limits(place, **given)
    named = {"name": place} if place is not None else {}
    return limits, named | {key: value for key, value in given.items() if value is not None}


def shown(told: Mapping[str, Any] | None) -> str:
    if told is None:
        return ""
    return f"{output.number(told['error'])} ± {output.number(told['deviation'])}"


def findings(course: Search, winner: Trial, others: Mapping[str, Any]) -> dict[str, Any]:
    from pykernel.host.scores import verdict
    from pykernel.tuning.plan import model_name

    def row(trial: Trial) -> dict[str, Any]:
        parts = {key: trial.found.get(key) for key in ("frozen", "learning", "ram_bytes", "table_bytes", "detected")}
        content, tried = trial.content, {**trial.arm.own, **trial.values}
        values = {knob.name: content.get(knob.section, {}).get(knob.key, tried[knob.name]) for knob in trial.arm.knobs}
        named = {"model": model_name(trial), "rule": trial.arm.rule, "technique": trial.arm.made.technique}
        return named | {"size": trial.size, "values": values, "bytes": trial.bytes} | parts

    best = {arm.name: arm.best for arm in course.arms if arm.best is not None}
    kinds = {arm.name: arm.kind for arm in course.arms}
    ranked = sorted(best.values(), key=lambda trial: trial.score)
    return {
        "measure": measure(course),
        "rows": len(course.table.x),
        **course.table.raw_rows,
        "judged_rows": len(course.table.x) - course.table.split,
        "trials": len(course.trials),
        "seed": course.seed,
        "winner": row(winner),
        "table": [row(trial) for trial in ranked],
        "learner": row(learner) if (learner := course.winner(learning=True)) is not None else None,
        "small": row(small) if (small := course.smaller(winner)) is not None else None,
        "points": [[trial.bytes, trial.score, kinds[trial.arm.name], model_name(trial)] for trial in course.ranking()],
        "simple": dict(others),
        "verdict": verdict(winner.score, {name: row["error"] for name, row in others.items()}),
    }


def measure(course: Search) -> str:
    if course.table.y is None:
        return "faults missed"
    return "error rate" if course.table.y.dtype.kind in "iu" else "RMSE"


def write(report: dict[str, Any], specs: Mapping[str, Spec], out: Path, comment: str) -> dict[str, Any]:
    """The specs, the picture and all that was found, all or none; the report, with the picture."""
    from pykernel.files import all_or_none, whole_file

    with all_or_none(out):
        note = draw(report, out / "plan.png")
        report = report | {"plot": str(out / "plan.png") if note is None else None, "plot_note": note}
        for name, spec in specs.items():
            with whole_file(out / f"{name}.toml") as file:
                file.write(((comment if name == "planned" else "") + spec.to_toml()).encode())
        with whole_file(out / "plan.json") as file:
            file.write(json.dumps(output.finite(report), default=output.plain, indent=1).encode() + b"\n")
    return report


def draw(report: Mapping[str, Any], path: Path) -> str | None:
    """Error over bytes, with the simple predictors; why there is no picture, if there is none."""
    from pykernel.plots import SIMPLE, Panel, pareto_figure
    from pykernel.tuning.sweep import front

    points = [(max(1, p[0]), p[1], p[2], p[3]) for p in report["points"]]
    points += [(max(1, s["bytes"]), s["error"], SIMPLE, name) for name, s in report["simple"].items()]
    on = set(front([point[:2] for point in points]))
    marked = [(*point, i in on) for i, point in enumerate(points)]
    picked = {"planned": report["winner"], "smaller": report["small"]}
    chosen = {
        name: next(i for i, p in enumerate(points) if p[3] == row["model"] and p[0] == max(1, row["bytes"]))
        for name, row in picked.items()
        if row is not None
    }
    panel = Panel("bytes of RAM and tables", marked, chosen)
    try:
        pareto_figure(
            path,
            "plan: error against bytes",
            f"{report['measure']}, last 30 % of the {output.unit_of(report)}s",
            [panel],
        )
    except MissingExtra as missing:
        return str(missing)
    return None


def print_plan(report: Mapping[str, Any], options: PlanOptions) -> None:
    winner, kind = report["winner"], report["measure"]
    table = output.new_table("model", "frozen", "learning", "±", "RAM", "tables")
    for row in report["table"][:10]:
        told = row["learning"] or row["frozen"]
        cells = [output.number(row[part]["error"]) if row[part] else "" for part in ("frozen", "learning")]
        sizes = [
            output.byte_count(row["ram_bytes"]),
            output.byte_count(row["table_bytes"]) if row["table_bytes"] else "",
        ]
        table.add_row(row["model"], *cells, output.number(told["deviation"]), *sizes)
    for name, row in sorted(report["simple"].items(), key=lambda item: item[1]["error"]):
        cells = ["", output.number(row["error"]), output.number(row["deviation"]), output.byte_count(row["bytes"]), ""]
        table.add_row(name, *cells, style="dim")
    title = f"{output.counted(report)}, judged on the last {report['judged_rows']:,}; {report['trials']:,} trials"
    output.show_table(f"{title}; {kind} of the best", table)
    told = winner["learning"] or winner["frozen"]
    output.show(f"planned   {winner['model']}, {kind} {shown(told)}, {output.byte_count(winner['bytes'])}")
    if winner["values"]:
        output.show(f"values    {output.key_values(winner['values'])}")
    if (learner := report["learner"]) is not None and report["learning_spec"]:
        output.show(
            f"          it does not learn; the best that does: {learner['model']}, {shown(learner['learning'])}"
        )
    if (small := report["small"]) is not None:
        told = small["learning"] or small["frozen"]
        output.show(f"smaller   {small['model']}, {shown(told)}, {output.byte_count(small['bytes'])}")
    if (found := report["verdict"]) is not None:
        remedy = ""
        if found["winner"] != "model":
            remedy = "; take the simple one, or record other inputs"
            if found["simple"] == "last label":
                remedy = "; add a column with the latest known label to the table, and plan again"
        output.show(f"verdict   {output.verdict(found)}{remedy}")
    print_uses(report)
    if report["signal"] is not None:
        print_signal(report["signal"], kind, {name: report[f"{name}_spec"] for name in ("leaner", "better")})
    again = f"--trials {report['trials']} --seed {report['seed']}"
    output.show(f"again     {again} gives the same spec")
    for key, text in (
        ("spec", "spec"),
        ("learning_spec", ""),
        ("small_spec", ""),
        ("leaner_spec", ""),
        ("better_spec", ""),
        ("plot", "picture"),
        ("plot_note", "picture"),
    ):
        if report[key]:
            output.show(f"{text:8}  {report[key]}")
    spec = output.quoted(report["spec"])
    output.show(
        "", "next:", f"  pykernel simulate {spec} {output.quoted(str(options.data))}", f"  pykernel check {spec}"
    )
    output.show(f"  pykernel generate {spec} -o out/")


def print_uses(report: Mapping[str, Any]) -> None:
    """What the model takes on the target, where there is one."""
    from pykernel.tuning.plan import Limits, taken

    row = report["verified"]
    if row is None:
        return
    limits = Limits(**report["limits"])
    amounts, _ = taken(row, limits)
    table = output.new_table("limit", "takes", "allowed", "part")
    texts = {
        "ram": "RAM, struct and stack",
        "flash": "flash, all that is linked",
        "instructions": "instructions of a call",
        **({"cycles": "cycles of a call"} if "cycles" in amounts else {}),
    }
    for key, text in texts.items():
        unit, allowed = "" if key in ("instructions", "cycles") else " B", getattr(limits, key)
        part = f"{100 * report['uses'][key]:.0f} %" if key in report["uses"] else ""
        table.add_row(text, f"{amounts[key]:,}{unit}", "any" if allowed is None else f"{allowed:,}{unit}", part)
    output.show_table(f"on {limits.target}", table)
    output.show(f"verified  {row['samples']:,} samples on {limits.target}: the memory is equal to the simulation's")


def print_signal(found: Mapping[str, Any], kind: str, files: Mapping[str, str | None]) -> None:
    """What each kind of feature earns, and what others and other windows would.  files: of the specs that were written."""
    planned, place = found["planned"], f", instructions on {found['target']}" if found["target"] else ""

    def cells(row: Mapping[str, Any], *keys: str) -> list[str]:
        return ["" if row[key] is None else f"{row[key]:,.0f}" for key in keys]

    if found["features"] or found["added"]:
        table = output.new_table("features", "error", "change", "takes", "earns it")
        for word, rows in (("without", found["features"]), ("with", found["added"])):
            for row in rows:
                change = "" if row["change"] is None else f"{100 * row['change']:+.1f} %"
                earns = row["reason"] or ("yes" if row["earns"] else "no")
                told = [output.number(row["error"]), change, *cells(row, "costs"), earns]
                table.add_row(f"{word} {row['name']}", *told)
        output.show_table(
            f"what features earn: {kind} of the planned model without them or with others"
            f"{place and f'{place} in the worst call'}",
            table,
        )
    if found["windows"]:
        last = ["last label"] if planned["last_label"] is not None else []
        table = output.new_table("window", "hop", "error", "±", *last, "steps judged", "a raw sample")
        for row in (planned, *found["windows"]):
            told = [output.number(row.get(key)) for key in ("error", "deviation", *(["last_label"] if last else []))]
            judged = f"{row['judged']:,}" if not row["reason"] else row["reason"]
            style = "bold" if row is planned else ""
            table.add_row(*cells(row, "window", "hop"), *told, judged, *cells(row, "per_sample"), style=style)
        output.show_table(f"other windows and hops: {kind} of the planned model, for each step{place}", table)
    if found["note"]:
        output.show(found["note"])
    for name in ("leaner", "better"):
        if (row := found[name]) is not None:
            what = f"without {', '.join(row['dropped'])}" if name == "leaner" else row["name"]
            costs = ""
            if row["instructions"] is not None and planned["instructions"] is not None:
                costs = (
                    f", {row['instructions']:,} in place of {planned['instructions']:,} instructions in the worst call"
                )
            output.show(f"{name:8}  {what}: {shown(row)}{costs}; {files[name]}")
