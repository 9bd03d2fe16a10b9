"""The command ``pykernel plan``: from a table to the model of smallest error that keeps a device's limits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pykernel.cli.options import (
    DELAY,
    ENGINE,
    FOLDER_PLOT,
    JOBS,
    JSON,
    MANY,
    NAME,
    RESULTS,
    RULES,
    TECHNIQUES,
    command,
    option,
    plain_spec,
)
from pykernel.cli.output import (
    Printing,
    print_json,
    print_report,
    show_document,
)


@command(
    data=MANY,
    label=option("--label", value="Y", text="The column to predict.", without="none: a monitor with alarms"),
    inputs=option("--inputs", value="A,B", text="The input columns.", without="all numbers but the label"),
    spec_file=option("--spec", value="SPEC", text="Spec that names columns.", kind=Path),
    labels=option(
        "--labels",
        value="WHEN",
        text="always or never: do true labels follow?",
        without="both",
    ),
    ram=option("--ram", value="BYTES", text="Limit, such as 4k.", without="the target's; 16k"),
    flash=option("--flash", value="BYTES", text="Limit for code and constants.", without="the target's; 64k"),
    instructions=option("--instructions", value="N", text="Limit for one call, in the worst case.", without="any"),
    cycles=option(
        "--cycles", value="N", text="The same in cycles, for a CPU whose cycles are known.", without="any", rare=True
    ),
    target=option("--target", value="TARGET", text="The CPU, emulated.", without="any"),
    no_limits=option("--no-limits", text="Models of any size.", kind=bool, default=False, rare=True),
    time=option("--time", value="SECONDS", text="Time for trials.", kind=float, default=120.0),
    trials=option("--trials", value="N", text="Make so many trials, however long they take.", kind=int),
    seed=option("--seed", value="S", text="Seed of the trials.", kind=int, default=0, rare=True),
    name=NAME,
    output=option(
        "--output", "-o", value="FOLDER", text="Folder for the spec.", kind=Path, default=Path("pykernel-plan")
    ),
    plot=FOLDER_PLOT,
    delay=DELAY,
    rule=RULES,
    technique=TECHNIQUES,
    jobs=JOBS,
    results=RESULTS,
    engine=ENGINE,
    as_json=JSON,
)
def plan(data: str | list[str], spec_file: Path | None, as_json: bool, **given: Any) -> None:
    """Find the best model for a table of data, within a device's limits.

    This command tries every kind of model, and changes the best ones until the time is over. Without a label it plans a
    monitor.

        pykernel plan data.csv --label y --ram 4k --target cortex-m0plus
        pykernel plan recordings/ --label y

    Errors are of the last 30 % of the rows, or of devices left out; for a monitor, faults are put into these. Frozen:
    the model learned the others only. Learning: it goes on, if labels come. Without --labels both are planned.

    Exit codes: 0 done, 1 no model fits (the closest one is named) or the C computes other bytes, 2 bad input, 130
    interrupted before a model was tried.
    """
    from pykernel.tuning.plan import NothingFits
    from pykernel.workflows.plan import plan as run

    spec = None if spec_file is None else plain_spec(spec_file)
    try:
        found = run(data, spec=spec, **given, watch=Printing(as_json))
    except NothingFits as error:
        if as_json and error.report is not None:
            print_json(error.report)
        raise
    print_report(found.report, as_json, lambda _: show_document(found.page, verdict=False))
