"""The command ``pykernel import``: a model that was trained elsewhere, as a frozen spec."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pykernel.errors import CheckFailed, UserError

if TYPE_CHECKING:
    import numpy as np

    from pykernel.spec.model import Spec

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object for machines, and nothing else.")]
CHECKED = 1000
"""Most rows that are compared with the source."""


def import_model(
    model: Annotated[
        Path, typer.Argument(metavar="MODEL", help="The model, a .skops or .onnx file.", show_default=False)
    ],
    out: Annotated[
        Path, typer.Option("--out", "--output", "-o", metavar="SPEC", help="The spec to write.", show_default=False)
    ],
    name: Annotated[
        str | None,
        typer.Option("--name", metavar="NAME", help="Prefix of every symbol in C.", show_default="the spec's file"),
    ] = None,
    precision: Annotated[
        str, typer.Option("--precision", metavar="float32|float64", help="What the device computes in.")
    ] = "float32",
    limit: Annotated[
        float | None,
        typer.Option("--limit", metavar="X", help="Largest magnitude of an input.", show_default="by the vectors"),
    ] = None,
    inputs: Annotated[
        str | None,
        typer.Option("--inputs", metavar="A,B", help="Names of the inputs.", show_default="as the model was fitted"),
    ] = None,
    classes: Annotated[
        str | None,
        typer.Option("--classes", metavar="A,B", help="Names of the classes, in order.", show_default="as text"),
    ] = None,
    distance: Annotated[
        str,
        typer.Option("--distance", metavar="auto|differences|products", help="Gaussian kernel: how it is computed."),
    ] = "auto",
    check: Annotated[
        str | None,
        typer.Option("--check", metavar="DATA", help="Compare with the model on this CSV file.", show_default=False),
    ] = None,
    trust: Annotated[
        list[str] | None,
        typer.Option("--trust", metavar="TYPE", help="Let a .skops file load this type, too.", show_default=False),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a spec that is there.")] = False,
    as_json: Json = False,
) -> None:
    """Take over a model that was trained elsewhere: scikit-learn's SVMs, kernel ridge and Gaussian process regression.

    The spec that is written holds all values of the model. Its C computes what decision_function and predict do, to
    rounding; nothing is trained anew. A .skops file is what skops.io.dump writes of an estimator, or of a pipeline of
    scalers and one; an .onnx file must hold an SVMClassifier or SVMRegressor, as skl2onnx writes them.

        pykernel import gate.skops -o gate.toml
        pykernel import gate.skops -o gate.toml --check held.csv
        pykernel import gate.onnx -o gate.toml --name gate --inputs temperature,pressure
        pykernel generate gate.toml -o out/

    Nothing in the file is executed, and types that models do not need are refused by name. Pickle and joblib files are
    refused: loading one runs whatever is in it.

    **Columns**: *vectors*, *functions* and *weights* are what is stored, *flash* what the tables take of it. With
    --check: *difference* is the largest of a decision value, *allowed* the largest that rounding explains; the class of
    *undecided* rows hangs on rounding. At most 1,000 rows are compared.

    **Exit codes**: 0 done, 1 the comparison failed, 2 bad input (nothing is written in either case).
    """
    from pykernel.cli import app as cli
    from pykernel.files import whole_file
    from pykernel.gen.project import build
    from pykernel.importers.importing import compare, read_file, spec_of_file

    if out.exists() and not force:
        raise UserError(f"{out}: is there already; give another file, or --force to replace it")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        machine, source = read_file(model, trust or ())
    said = [" ".join(str(warning.message).split()) for warning in caught]
    named = out.stem if name is None else name
    spec, told = spec_of_file(model, machine, named, precision, limit, _words(inputs), _words(classes), distance)
    report: dict[str, Any] = {
        "model": str(model),
        "source": machine.source,
        "name": spec.name,
        "kernel": _kernel(spec),
        "inputs": spec.dim,
        "limit": spec.input.limit,
        **_sizes(spec),
        "flash_bytes": build(spec).figures["const_bytes"],
        "spec": str(out),
        "notes": list(dict.fromkeys([*told, *said])),
    }
    if check is not None:
        x = _rows(spec, check)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the names of the columns are those of the spec
            report["check"] = compare(spec, machine, source, x)
    failed = check is not None and not report["check"]["ok"]
    if not failed:
        with whole_file(out) as file:
            file.write(spec.to_toml().encode())
    if as_json:
        cli._print_json(report | {"ok": not failed})
    else:
        _print_import(report, spec)
    if failed:
        found = report["check"]
        raise CheckFailed(
            f"{check}: the spec is not the model: decision values differ by {found['difference']:.3g}, "
            f"{found['classes_differ']:,} classes differ; nothing was written"
        )


def _words(given: str | None) -> list[str] | None:
    return None if given is None else [word.strip() for word in given.split(",")]


def _kernel(spec: Spec) -> dict[str, Any]:
    assert spec.kernel is not None
    return {key: value for key, value in spec.kernel.model_dump(exclude_unset=True).items() if value is not None}


def _sizes(spec: Spec) -> dict[str, Any]:
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


def _rows(spec: Spec, data: str) -> np.ndarray:
    """The inputs of the first rows of a table, (rows, DIM)."""
    import numpy as np

    from pykernel.cli import app as cli
    from pykernel.host.simulate import _numbers, read_cells

    columns = spec.input.columns
    if columns is None:
        raise UserError(f"{data}: the model does not name its inputs; add --inputs with their columns")
    wanted = columns if len(columns) > 1 else columns * 2
    with contextlib.ExitStack() as stack:
        name, file, _ = cli._open(data, stack)
        cells = next(iter(read_cells(file, name, lambda header: wanted, ",".join(columns), CHECKED)))
        return np.ascontiguousarray(_numbers(cells.rows, cells.lines, name, wanted, 0)[:, : len(columns)])


def _print_import(report: Mapping[str, Any], spec: Spec) -> None:
    from pykernel.cli import app as cli

    kernel = dict(report["kernel"])
    function = kernel.pop("function")
    shown = ", ".join([function, *(f"{key} {value:.6g}" for key, value in kernel.items())])
    kinds = {"pairs": "one for each pair of classes", "votes": "one for each pair of classes; votes are predicted"}
    table = cli._table("part", "what")
    table.columns[1].justify = "left"
    for part, what in (
        ("kernel", shown),
        ("inputs", f"{report['inputs']:,}, within {report['limit']:g}"),
        ("vectors", f"{report['vectors']:,}"),
        (
            "functions",
            ", ".join([f"{report['functions']:,}", *([kinds[k]] if (k := report["decision"]) in kinds else [])]),
        ),
        ("weights", f"{report['weights']:,}"),
        ("classes", ", ".join(map(cli._cell, report["classes"] or ()))),
        ("probabilities", "yes" if report["probabilities"] else ""),
        ("distances", report["distance"] if function == "gaussian" else ""),
        ("flash", cli._bytes(report["flash_bytes"])),
    ):
        if what:
            table.add_row(part, what)
    cli._print(f"{report['name']}: {report['source']}, {spec.precision}", table)
    if "check" in report:
        found = report["check"]
        compared = cli._table("rows", "refused", "undecided", "difference", "allowed", "classes differ")
        counts = [f"{found[key]:,}" for key in ("rows", "refused", "undecided")]
        errors = [f"{found[key]:.3g}" for key in ("difference", "allowed")]
        compared.add_row(*counts, *errors, f"{found['classes_differ']:,}" if report["classes"] else "-")
        cli._print("beside the model itself", compared)
    for note in report["notes"]:
        cli._warn(note)
    print(f"spec   {report['spec']}")
    print(f"\nnext:\n  pykernel generate {cli._quoted(report['spec'])} -o out/")
