"""What a comparison is asked for."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Annotated, ClassVar

from pykernel.request.kinds import File, Words
from pykernel.request.option import Opt
from pykernel.request.options import AllJobs


@dataclass(frozen=True)
class Compare:
    """Compare rules on the field's tasks: curves, a table, BibTeX.

    Each rule predicts each sample, then learns it. Errors are squared, in dB: the mean over the seeds, and its
    standard error. All rules get the same streams, the same budget and the task's kernel. The table says which
    parameters are the task's, which are defaults, and which were given. The same command writes the same CSV.

        python -m benchmarks.compare --task lorenz --rule klms,krls-t --technique nt,mklms

    Columns: MSE of the last quarter, NMSE in parts of the label's variance, stored vectors, RAM of the model.

    Exit codes: 0 done, 2 bad input, 130 interrupted.
    """

    _: KW_ONLY
    task: Annotated[
        Words,
        Opt(
            "channel, lorenz, mackey-glass, recursion, sinc, switching; or several: a,b.",
            "TASK",
            without="all of them",
            kind=list[str],
        ),
    ] = None
    data: Annotated[str | None, Opt("Your own stream instead; needs --spec.", "CSV")] = None
    spec: Annotated[File | None, Opt("Spec with the columns, the label and the kernel of --data.", "SPEC")] = None
    rule: Annotated[Words, Opt("Compare this, or these: a,b.", "RULE", without="all", kind=list[str])] = None
    technique: Annotated[
        Words, Opt("With this, or each of these.", "TECHNIQUE", without="each rule's default", kind=list[str])
    ] = None
    n_max: Annotated[int, Opt("Budget: vectors, or random features.", "N", short="-n")] = 32
    seeds: Annotated[int, Opt("Number of streams of each task.", "S")] = 10
    rows: Annotated[int | None, Opt("Length of a stream.", "N", without="the task's")] = None
    set_: Annotated[
        Words,
        Opt("A key of all rules that have it, or of one.", "[RULE.]KEY=V", without="the task's", kind=list[str]),
    ] = None
    precision: Annotated[str, Opt("float32 or float64.", "TYPE")] = "float32"
    jobs: AllJobs = None
    output: Annotated[File, Opt("Folder for the results.", "FOLDER", short="-o")] = Path("compared")

    shell: ClassVar = ("engine", "json")
