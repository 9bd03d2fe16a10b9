"""The command ``pykernel import``: a model that was trained elsewhere, as a frozen spec."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pykernel.cli import output
from pykernel.cli.options import JSON, NAME, PRECISION, SPEC_OUT, argument, command, option
from pykernel.errors import CheckFailed, UserError
from pykernel.files import need_not_data
from pykernel.telling import byte_count
from pykernel.workflows.given import write_file

if TYPE_CHECKING:
    from pykernel.spec.model import Spec


@command(
    model=argument("MODEL", "A .skops or .onnx file, or a spec.", kind=Path),
    out=SPEC_OUT,
    name=NAME,
    precision=PRECISION,
    max_abs=option(
        "--max-abs",
        value="X",
        text="Largest magnitude of an input; int16: from the center.",
        kind=float,
        without="by the vectors",
    ),
    inputs=option("--inputs", value="A,B", text="Names of the inputs.", without="as the model was fitted"),
    classes=option("--classes", value="A,B", text="Names of the classes, in order.", without="as text"),
    distance=option(
        "--distance",
        value="auto|differences|products",
        text="Gaussian kernel: how it is computed.",
        default="auto",
        rare=True,
    ),
    vectors=option("--vectors", value="N", text="Fewer vectors, trained anew.", kind=int, without="the model's"),
    state=option("--state", value="FILE", text="Of a spec: what a device learned.", kind=Path),
    data=option("--data", value="DATA", text="CSV file: compare there; train --vectors on it."),
    trust=option("--trust", value="TYPE", text="Let a .skops file load this type, too.", kind=list[str]),
    trust_code=option(
        "--trust-code",
        text="Execute the Python file in the spec's [kernel] source.",
        kind=bool,
        default=False,
        rare=True,
    ),
    force=option("--force", text="Replace a spec that is there.", kind=bool, default=False),
    as_json=JSON,
)
def import_model(
    model: Path, out: Path, state: Path | None, data: str | None, force: bool, as_json: bool, **given: Any
) -> None:
    """Import a model that scikit-learn trained.

    Support vector machines, kernel ridge, Gaussian processes and linear models can be imported, with the steps before
    them; with --vectors also what a device learned. --vectors trains fewer vectors, to give the model's answers on rows of
    --data or made-up ones. skops.io.dump writes .skops files, skl2onnx .onnx files. No code in a file is executed, and
    pickles are refused.

        pykernel import gate.skops -o gate.toml --data held.csv
        pykernel import flow.toml --state state.bin --vectors 16 -o small.toml

    Columns: vectors, functions and weights are numbers of stored values. Flash is the size of the tables. Error is what
    --vectors changes, in standard deviations; low and high hold in 95 of 100 cases. With --data, difference is the largest
    of a decision value. Allowed is what rounding can cause; it decides the class of undecided rows. At most 1,000 rows or
    steps are compared.

    Exit codes: 0 done, 1 the comparison failed, 2 bad input.
    """
    from pykernel.cli.work.imported import run_import

    for path in (model, state, data):
        if path is not None:
            need_not_data(out, str(path))
    if out.exists() and not force:
        raise UserError(f"{out}: is there already; give another file, or --force to replace it")
    spec, report = run_import(model, out, state=state, data=data, **given)
    output.Printing(as_json).data(report.get("data"))
    failed = data is not None and not report["rounding"]["ok"]
    if not failed:
        write_file(out, spec.to_toml())
    output.print_report(report | {"ok": not failed}, as_json, partial(print_import, spec=spec))
    if failed:
        found = report["rounding"]
        raise CheckFailed(
            f"{data}: the spec is not the model: decision values differ by {found['difference']:.3g}, "
            f"{found['classes_differ']:,} classes differ; nothing was written"
        )


def print_import(report: Mapping[str, Any], spec: Spec) -> None:
    kernel = dict(report["kernel"])
    function = kernel.pop("function")
    shown = ", ".join([function, *(f"{key} {value:.6g}" for key, value in kernel.items())])
    kinds = {"ovo": "one for each pair of classes", "ovo_vote": "one for each pair of classes; votes are predicted"}
    decided = [f"{report['functions']:,}", *([kinds[k]] if (k := report["decision"]) in kinds else [])]
    rounded = "at most {error_bound:.2g}; {error_measured:.2g} at 2,000 made-up inputs"
    parts = {
        "kernel": shown,
        "inputs": f"{len(report['inputs']):,}, within {spec.input_max_abs:g}{' of the center' * spec.real.is_integer}",
        "vectors": f"{report['vectors']:,}",
        "functions": ", ".join(decided),
        "weights": f"{report['weights']:,}",
        "classes": ", ".join(report["classes"] or ()),
        "probabilities": "yes" if report["probabilities"] else "",
        "distances": report["distance"] if function == "gaussian" else "",
        "flash": byte_count(report["flash_bytes"]),
        "rounding": rounded.format_map(report) if "error_bound" in report else "",
    }
    rows = [(part, what) for part, what in parts.items() if what]
    output.show_table(f"{report['name']}: {report['source']}, {spec.precision}", ("part", "what"), rows, words=(0, 1))
    if "lost" in report:
        print_lost(report)
    if "rounding" in report:
        print_comparison(report)
    output.warn(*report["warnings"])
    output.show(f"spec   {report['spec']}")
    output.print_next(report["spec"])


def print_lost(report: Mapping[str, Any]) -> None:
    found = report["lost"]
    rows = []
    for key, what, size, unit in (
        ("error", "of the function", 1.0, ""),
        ("classes_differ", "of the classes", 100.0, " %"),
    ):
        if (value := found[key]) is None:
            continue
        own = key == "error" or found["error"] is None
        steps = [found["steps"][step] if own else None for step in ("projected", "weighed", "moved")]
        shown = ["-" if each is None else f"{size * each:.3g}{unit}" for each in (*value.values(), *steps)]
        rows.append((what, *shown))
    which = "made-up rows" if found["made_up"] else "rows left out"
    title = f"what {found['vectors_before']} vectors answer otherwise, on {found['rows']:,} {which}"
    output.show_table(title, ("", "error", "low", "high", "projected", "weighed", "moved"), rows)
    if found["flash_bytes_before"] is not None:
        before, after = (byte_count(n) for n in (found["flash_bytes_before"], report["flash_bytes"]))
        output.show(f"flash  {before} before, {after} now")


def print_comparison(report: Mapping[str, Any]) -> None:
    found = report["rounding"]
    counts = [f"{found[key]:,}" for key in ("rows", "refused", "undecided")]
    errors = [f"{found[key]:.3g}" for key in ("difference", "allowed")]
    differ = f"{found['classes_differ']:,}" if report["classes"] else "-"
    which = "smaller" if "lost" in report else "original"
    columns = ("rows", "refused", "undecided", "difference", "allowed", "classes differ")
    output.show_table(f"comparison with the {which} model", columns, [[*counts, *errors, differ]])
