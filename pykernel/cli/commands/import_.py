"""The command ``pykernel import``: a model that was trained elsewhere, as a frozen spec."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pykernel.cli import output
from pykernel.cli.options import Json, Name, Precision, SpecOut, argument, option, prefix, takes
from pykernel.errors import CheckFailed, UserError
from pykernel.files import need_not_data, open_data

if TYPE_CHECKING:
    import numpy as np

    from pykernel.importers.learned import Answers
    from pykernel.spec.model import Spec
    from pykernel.training.distilled import Distilled
    from pykernel.training.trained import Machine

CHECKED = 1000
"""Most rows that are compared with the source."""
RAW = 2**17
"""Most raw samples for the comparison, in addition to the samples before the first features."""


@dataclass(frozen=True, kw_only=True)
class ImportOptions:
    model: Annotated[Path, argument("MODEL", "A .skops, .onnx or .safetensors file, or a spec.")]
    out: SpecOut
    name: Name = None
    precision: Precision = "float32"
    max_abs: Annotated[
        float | None,
        option(
            "--max-abs",
            value="X",
            text="Largest magnitude of an input; int16: from the center.",
            without="by the vectors",
        ),
    ] = None
    inputs: Annotated[
        str | None,
        option("--inputs", value="A,B", text="Names of the inputs.", without="as the model was fitted"),
    ] = None
    classes: Annotated[
        str | None, option("--classes", value="A,B", text="Names of the classes, in order.", without="as text")
    ] = None
    distance: Annotated[
        str,
        option("--distance", value="auto|differences|products", text="Gaussian kernel: how it is computed.", rare=True),
    ] = "auto"
    kernel: Annotated[
        str | None,
        option(
            "--kernel",
            value="NAME",
            text="GPyTorch: gaussian, matern12, matern32, matern52.",
        ),
    ] = None
    jitter: Annotated[
        float | None,
        option(
            "--jitter",
            value="X",
            text="Of a .safetensors file: what is added to the kernel matrix's diagonal.",
            without="as GPyTorch does",
            rare=True,
        ),
    ] = None
    vectors: Annotated[
        int | None,
        option("--vectors", value="N", text="Fewer vectors, trained anew.", without="the model's"),
    ] = None
    state: Annotated[
        Path | None,
        option("--state", value="FILE", text="Of a spec: what a device learned."),
    ] = None
    data: Annotated[
        str | None,
        option("--data", value="DATA", text="CSV file: compare there; train --vectors on it."),
    ] = None
    trust: Annotated[
        list[str] | None, option("--trust", value="TYPE", text="Let a .skops file load this type, too.")
    ] = None
    trust_code: Annotated[
        bool, option("--trust-code", text="Execute the Python file in the spec's [kernel] source.", rare=True)
    ] = False
    force: Annotated[bool, option("--force", text="Replace a spec that is there.")] = False
    as_json: Json = False


@takes(ImportOptions)
def import_model(options: ImportOptions) -> None:
    """Import a model that scikit-learn or GPyTorch trained.

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
    from pykernel.files import whole_file

    for given in (options.model, options.state, options.data):
        if given is not None:
            need_not_data(options.out, str(given))
    if options.out.exists() and not options.force:
        raise UserError(f"{options.out}: is there already; give another file, or --force to replace it")
    spec, report = imported(options)
    failed = options.data is not None and not report["check"]["ok"]
    if not failed:
        with whole_file(options.out) as file:
            file.write(spec.to_toml().encode())
    if options.as_json:
        output.print_json(report | {"ok": not failed})
    else:
        print_import(report, spec)
    if failed:
        found = report["check"]
        raise CheckFailed(
            f"{options.data}: the spec is not the model: decision values differ by {found['difference']:.3g}, "
            f"{found['classes_differ']:,} classes differ; nothing was written"
        )


def imported(options: ImportOptions) -> tuple[Spec, dict[str, Any]]:
    """The spec, and a report: the spec's contents and, with --data, the comparison with the model."""
    from pykernel.gen.project import build
    from pykernel.importers.importing import (
        compare,
        compare_smaller,
        inputs_of,
        ranging,
        spec_of_file,
        told_of_file,
    )
    from pykernel.parallel import working
    from pykernel.training.distilled import distil

    machine, source, answers, said = read(options)
    name = prefix(options.out, options.name)
    names, classes = all_words(options.inputs), all_words(options.classes)
    columns = machine.columns if names is None else tuple(names)
    rows = rows_compared(machine) if options.vectors is None else rows_trained(machine)
    x = None if options.data is None else rows_of(columns, options.data, rows)
    how = (name, options.precision, options.max_abs, names, classes, options.distance)
    with told_of_file(options.model):
        seen = None if x is None else inputs_of(machine, x)
        ranges = ranging(machine, seen)
    found, before = None, None
    if options.vectors is not None:
        if answers is None:  # with answers, the machine is only a part of the model and has no spec
            before = bytes_of(options.model, machine, *how, ranges)
        with told_of_file(options.model), working("training"):
            found = distil(machine, options.vectors, seen, answers=answers)
        machine = found.machine
    spec, told = spec_of_file(options.model, machine, *how, ranges)
    figures = build(spec).figures
    report: dict[str, Any] = {
        "model": str(options.model),
        "source": machine.source,
        "name": spec.name,
        "kernel": kernel_of(spec),
        "inputs": spec.dim,
        "max_abs": spec.input.max_abs,
        **sizes(spec),
        "flash_bytes": figures["const_bytes"],
        **{key: figures[key] for key in ("error_bound", "error_measured") if key in figures},
        "spec": str(options.out),
        "notes": list(dict.fromkeys([*told, *said])),
    }
    if found is not None:
        report["smaller"] = lost(found, before)
        if x is not None and seen is not None:
            report["check"] = compare_smaller(spec, machine, seen[:CHECKED])
    elif x is not None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # warnings about column names: the columns are selected by the spec's names
            report["check"] = compare(spec, machine, source, x)
    return spec, report


def read(options: ImportOptions) -> tuple[Machine, Any, Answers | None, list[str]]:
    """The machine; its source, with which it is compared; the whole model's answers, if it is a part of one; and
    notes.
    """
    from pykernel.importers.importing import read_device, read_file

    if options.state is not None:
        how = (options.model, options.state, options.vectors, options.trust_code)
        machine, answers = read_device(*how, lambda path: output.tell(f"executing {path}"))
        return machine, None, answers, []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        machine, source = read_file(options.model, options.trust or (), options.kernel, options.jitter)
    return machine, source, None, [" ".join(str(warning.message).split()) for warning in caught]


def all_words(given: str | None) -> list[str] | None:
    """All words between commas, also empty and repeated ones, so that an error message can name these."""
    return None if given is None else [word.strip() for word in given.split(",")]


def kernel_of(spec: Spec) -> dict[str, Any]:
    assert spec.kernel is not None
    return {key: value for key, value in spec.kernel.model_dump(exclude_unset=True).items() if value is not None}


def sizes(spec: Spec) -> dict[str, Any]:
    expansion = spec.expansion
    assert expansion is not None and expansion.weights is not None and expansion.bias is not None
    return {
        "vectors": len(expansion.vectors),
        "weights": sum(map(len, expansion.weights)),
        "functions": len(expansion.bias),
        "classes": list(spec.label.classes) if spec.label.classes else None,
        "decision": expansion.decision,
        "distance": expansion.distance,
        "probabilities": expansion.calibration is not None,
    }


def rows_compared(machine: Machine) -> int:
    """How many rows of a table are compared; for raw samples, the number that gives as many steps."""
    if machine.signal is None or (signal := machine.signal.signal) is None:
        return CHECKED
    from pykernel.spec.signal import raw_samples_needed

    return raw_samples_needed(signal) + min((CHECKED - 1) * signal.step, RAW)


def rows_trained(machine: Machine) -> int:
    """How many rows of a table --vectors trains on; for raw samples, the number that gives as many steps."""
    from pykernel.training.distilled import MANY

    return MANY if machine.signal is None else RAW


def bytes_of(path: Path, machine: Machine, *how: Any) -> int | None:
    """Bytes of the tables of the model's own spec; None if it cannot have a spec."""
    from pykernel.gen.project import build
    from pykernel.importers.importing import spec_of_file

    try:
        return int(build(spec_of_file(path, machine, *how)[0]).figures["const_bytes"])
    except UserError:
        return None


def lost(found: Distilled, before: int | None) -> dict[str, Any]:
    """The loss of a smaller machine, as plain values for the report."""
    return {
        "vectors_before": found.vectors_before,
        "flash_bytes_before": before,
        "rows": found.rows,
        "made_up": found.made_up,
        "error": None if found.error is None else asdict(found.error),
        "classes_differ": None if found.classes_differ is None else asdict(found.classes_differ),
        "steps": found.steps,
    }


def rows_of(columns: tuple[str, ...] | None, data: str, rows: int) -> np.ndarray:
    """The inputs, or the raw samples, of the first rows of a table, (rows, DIM)."""
    import numpy as np

    from pykernel.host.samples import read_cells, read_numbers

    if columns is None:
        raise UserError(f"{data}: the model does not name its inputs; add --inputs with their columns")
    wanted = columns if len(columns) > 1 else columns * 2
    with contextlib.ExitStack() as stack:
        name, file, _ = open_data(data, stack)
        cells = next(iter(read_cells(file, name, lambda header: wanted, ",".join(columns), rows)))
        return np.ascontiguousarray(read_numbers(cells.rows, cells.lines, name, wanted, 0)[:, : len(columns)])


def print_import(report: Mapping[str, Any], spec: Spec) -> None:
    kernel = dict(report["kernel"])
    function = kernel.pop("function")
    shown = ", ".join([function, *(f"{key} {value:.6g}" for key, value in kernel.items())])
    kinds = {"ovo": "one for each pair of classes", "ovo_vote": "one for each pair of classes; votes are predicted"}
    table = output.new_table("part", "what", words=(0, 1))
    for part, what in (
        ("kernel", shown),
        ("inputs", f"{report['inputs']:,}, within {spec.input_max_abs:g}{' of the center' * spec.real.is_integer}"),
        ("vectors", f"{report['vectors']:,}"),
        (
            "functions",
            ", ".join([f"{report['functions']:,}", *([kinds[k]] if (k := report["decision"]) in kinds else [])]),
        ),
        ("weights", f"{report['weights']:,}"),
        ("classes", ", ".join(report["classes"] or ())),
        ("probabilities", "yes" if report["probabilities"] else ""),
        ("distances", report["distance"] if function == "gaussian" else ""),
        ("flash", output.byte_count(report["flash_bytes"])),
        ("rounding", _rounding(report)),
    ):
        if what:
            table.add_row(part, what)
    output.show_table(f"{report['name']}: {report['source']}, {spec.precision}", table)
    if "smaller" in report:
        print_lost(report)
    if "check" in report:
        print_comparison(report)
    for note in report["notes"]:
        output.warn(note)
    output.show(f"spec   {report['spec']}")
    output.print_next(report["spec"])


def _rounding(report: Mapping[str, Any]) -> str:
    """Words for the error of int16."""
    if "error_bound" not in report:
        return ""
    return f"at most {report['error_bound']:.2g}; {report['error_measured']:.2g} at 2,000 made-up inputs"


def print_lost(report: Mapping[str, Any]) -> None:
    found = report["smaller"]
    table = output.new_table("", "error", "low", "high", "projected", "weighed", "moved", words=(0,))
    for key, what, size, unit in (
        ("error", "of the function", 1.0, ""),
        ("classes_differ", "of the classes", 100.0, " %"),
    ):
        if (value := found[key]) is None:
            continue
        own = key == "error" or found["error"] is None
        steps = [found["steps"][step] if own else None for step in ("projected", "weighed", "moved")]
        shown = ["-" if each is None else f"{size * each:.3g}{unit}" for each in (*value.values(), *steps)]
        table.add_row(what, *shown)
    which = "made-up rows" if found["made_up"] else "rows left out"
    output.show_table(f"what {found['vectors_before']} vectors answer otherwise, on {found['rows']:,} {which}", table)
    if found["flash_bytes_before"] is not None:
        before, after = (output.byte_count(n) for n in (found["flash_bytes_before"], report["flash_bytes"]))
        output.show(f"flash  {before} before, {after} now")


def print_comparison(report: Mapping[str, Any]) -> None:
    found = report["check"]
    compared = output.new_table("rows", "refused", "undecided", "difference", "allowed", "classes differ")
    counts = [f"{found[key]:,}" for key in ("rows", "refused", "undecided")]
    errors = [f"{found[key]:.3g}" for key in ("difference", "allowed")]
    compared.add_row(*counts, *errors, f"{found['classes_differ']:,}" if report["classes"] else "-")
    which = "smaller" if "smaller" in report else "original"
    output.show_table(f"comparison with the {which} model", compared)
