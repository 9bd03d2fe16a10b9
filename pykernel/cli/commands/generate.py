"""The command ``pykernel generate``: a model as C."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pykernel.cli import inputs, output
from pykernel.cli.options import Json, SpecFile, TrustCode, option, takes


@dataclass(frozen=True, kw_only=True)
class GenerateOptions:
    spec_file: SpecFile
    out: Annotated[Path, option("--output", "-o", value="FOLDER", text="Where the project goes.")]
    force: Annotated[bool, option("--force", text="Overwrite files that were changed by hand.")] = False
    with_check: Annotated[
        bool, option("--with-check", text="Also the firmware with which pykernel check --board tests a board.")
    ] = False
    trust: TrustCode = False
    as_json: Json = False


@takes(GenerateOptions)
def generate(options: GenerateOptions) -> None:
    """Generate a model's C project: plain C99, without allocation.

        pykernel generate spec.toml -o out/

    A spec says what the model sees and how it learns. Everything else has a default:

        name = "flow"

        [input]
        columns = ["temperature", "humidity"]

        [kernel]
        sigma = 1.5

        [reduction]
        n_max = 32

    Columns: state is the memory for what the model learned. Work is the memory for intermediate results. Both are in one
    struct that you own. Constants are in flash.

    Exit codes: 0 done, 2 bad input (nothing is written then).
    """
    from pykernel.workflows.generate import generate as run

    spec = inputs.read_spec(options.spec_file, options.trust)
    made = run(spec, options.out, force=options.force, with_check=options.with_check)
    if options.as_json:
        files = [str(file) for file in made.files]
        output.print_json({"project": str(made.folder), "files": files, "sizes": made.figures})
        return
    output.print_sizes(made.figures)
    for file in made.files:
        output.show(file)
