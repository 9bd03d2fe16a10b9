"""The request of each command: its options in the shell, its arguments in Python, and the checks of their values.

The functions that carry out the requests are in other modules, because those modules may be slow to import.
``pykernel.request.option.function`` combines a request and such a function into a Python function whose arguments are the request's fields.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pykernel.request.kinds import File, Files, Numbers
from pykernel.request.option import Arg, Opt, Py
from pykernel.request.options import (
    OF_SPEC,
    THE_TABLE,
    AllJobs,
    Delay,
    Folder,
    FolderReport,
    Force,
    Inputs,
    Name,
    OneTable,
    Only,
    Precision,
    Record,
    Report,
    Seed,
    Table,
    Targets,
)
from pykernel.telling import QUIET
from pykernel.workflows import models
from pykernel.workflows.fit_request import Fit
from pykernel.workflows.models import Data, GivenModel, Model, Start, State, Stream, Watched
from pykernel.workflows.state_requests import Merge, Migrate, Replay, Show


@dataclass(frozen=True, eq=False, repr=False)
class Demo:
    """Show every step from data to C, on a year of bike rentals.

    A model of a few kilobytes predicts the rentals of each hour, then learns them. The table compares the model with
    simple forecasts and linear models. Then pykernel generates the model's C code, compiles it and runs it on the same year.
    The memory of the C code must equal that of the simulation, byte for byte. If the extra emulate is installed, an emulated
    Cortex-M4F runs the C code, too. The demo takes less than a minute.

        pykernel demo -o my-demo

    Columns: "error" is the mean absolute error over the second half of the year, in rentals per hour. "state" is the
    memory that the predictor needs on the device.

    Exit codes: 0 done, 1 the C code differs from the simulation, 2 bad input.
    """

    _: KW_ONLY
    output: Folder = Path("pykernel-demo")
    watch: Watched = QUIET

    shell: ClassVar = ("engine", "json")
    instead: ClassVar = dict.fromkeys(("--n-max", "-n"), "the demo shows the default model, which stores no vectors")


@dataclass(frozen=True, eq=False, repr=False)
class Simulate:
    """Simulate how the device would predict and learn recorded data.

    With --delay K, row t is predicted, then row t - K is learned: a forecast never sees the future. The spec says which columns of the table the
    model uses ([input] columns, [label] column). A row with an empty label is predicted but not learned.

        pykernel simulate spec.toml data.csv --delay 24 --report report.html
        pykernel simulate spec.toml folder/

    Columns: "MAE" is the mean absolute error and "RMSE" the root mean square error, in the label's unit, over all rows and
    over their second half. The table compares the model with simple forecasts: the last label, the running mean and two
    linear models. If the model does not learn, these forecasts learn only from the first half of the rows. Advice names
    the model's problems, with remedies. For a file, most remedies were tried on its rows.
    For classes, "errors" is the fraction of rows with a wrong class. For a model without labels, the table shows the mean
    and the largest value of each output. The alarms with
    the highest ratios of level to threshold are listed, with their rows, ratio and, if known, kind and blamed inputs.

    Exit codes: 0 done, 2 bad input.
    """

    model: Annotated[Model, Arg("The model, a TOML file.", "SPEC", reads="columns", kind=Path, more=models.TAKES)]
    data: Annotated[
        Data,
        Arg(
            "A table (-: stdin); many devices: folder or tables.",
            "DATA…",
            kind=list[str],
            more="Or arrays: x (rows, D), and y (rows,) or (rows, labels), with NaN where there is no label; for classes, y holds the positions or "
            "the names of the spec's classes; a model without labels takes x alone, or None for y.",
        ),
    ]
    _: KW_ONLY
    delay: Delay = 0
    refresh_every: Annotated[int, Opt("Call the model's refresh after every N rows.", "N", without="never")] = 0
    train_every: Annotated[int, Opt("Call the model's train after every N labels.", "N", without="never")] = 0
    output: Annotated[File | None, Opt("Write each row's answer.", "CSV", short="-o")] = None
    report: Report = None
    save: Annotated[
        File | None, Opt("Write the learned state, for generate --start.", "STATE", more="For many devices, a folder.")
    ] = None
    start: Start = None
    jobs: AllJobs = None
    watch: Watched = QUIET

    shell: ClassVar = ("trust_code", "engine", "json")
    instead: ClassVar = OF_SPEC | THE_TABLE


@dataclass(frozen=True, eq=False, repr=False)
class Generate:
    """Generate a model's C project: plain C99, without allocation.

        pykernel generate spec.toml -o out/
        pykernel generate spec.toml --start recorded.csv -o out/
        pykernel generate spec.toml --start state.bin -o out/

    A spec says what the model sees and how it learns. Keys that this example omits have defaults:

        name = "flow"

        [input]
        columns = ["temperature", "humidity"]

        [kernel]
        sigma = 1.5

        [reduction]
        n_max = 32

    Columns: "state (RAM)" is the memory for what the model learned. "work (RAM)" is the memory for intermediate results.
    Both are in one struct that you allocate. "tables and trained values (flash)" are constants.

    Exit codes: 0 done, 2 bad input (nothing is written then).
    """

    model: GivenModel
    output: Annotated[File, Opt("Where the project goes.", "FOLDER", short="-o", needed=True)]
    _: KW_ONLY
    name: Annotated[str | None, Py("Prefix of every symbol and file; by default the spec's name.")] = None
    memory: Annotated[State | None, Py("A learned state to start from; by default, that of the estimator.")] = None
    start: Start = None
    force: Annotated[bool, Opt("Overwrite files that were changed by hand.")] = False
    for_: Annotated[
        str | None,
        Opt(
            "Add a recorder (docs/guide/replay.md), the firmware for check --board, or a module for MicroPython.",
            "recorder,check,micropython",
        ),
    ] = None
    watch: Watched = QUIET

    shell: ClassVar = ("trust_code", "json")
    instead: ClassVar = OF_SPEC


@dataclass(frozen=True, eq=False, repr=False)
class Check:
    """Check that the C code computes the same bytes as the host.

    Each compiler on this machine compiles the C code, with and without optimisation. The builds and two simulations (LLVM and, as the
    reference, Numba) learn the same samples. Their memories are compared.

        pykernel check spec.toml
        pykernel check spec.toml --target cortex-m4f --target rv32imac --record out/
        pykernel check spec.toml --board /dev/ttyACM0 --record out/

    A board needs the firmware from generate --for check (docs/guide/boards.md).

    Columns: "equal" says whether the bytes are equal. "code -Os" and "constants" are bytes of flash. For a target, "flash"
    is the whole program, "RAM" is the model, and "stack" is the deepest use. The second table counts instructions:
    "worst" is the largest number that a search found; "bound" is the proved limit (docs/guide/bounds.md).

    If [target] limits flash, instructions or cycles, its CPU runs the check, too.

    Exit codes: 0 equal, 1 not equal or over a limit of [target], 2 bad input (or no compiler, no board, or a model too large for a target's part).
    """

    model: GivenModel
    _: KW_ONLY
    target: Targets = None
    toolchain: Annotated[
        str | None, Opt("Toolchain for the target.", "zig|gcc", without="the first found", rare=True)
    ] = None
    emulator: Annotated[
        str | None, Opt("Emulator for the target.", "unicorn|qemu", without="the first found", rare=True)
    ] = None
    level: Annotated[
        Literal["-O0", "-O1", "-O2", "-O3", "-Os"], Opt("Optimisation for the target.", "-O2|-Os|…", rare=True)
    ] = "-O2"
    board: Annotated[str | None, Opt("Run on the board at this port.", "URL")] = None
    baud: Annotated[int, Opt("Speed of the board's line.", "N", least=1, rare=True)] = 115_200
    clock: Annotated[float | str | None, Opt("The processor's clock, such as 48M.", "HZ", rare=True)] = None
    rate: Annotated[
        float | str | None, Opt("Samples per second, to compute the load of the processor.", "HZ", rare=True)
    ] = None
    current: Annotated[
        float | str | None, Opt("Microamperes per MHz, to compute the charge per day.", "UA", rare=True)
    ] = None
    data: Annotated[
        Files | None,
        Opt("Rows to learn; each file gets a new model.", "DATA", without="random ones", kind=str),
    ] = None
    log: Annotated[File | None, Opt("Write the board's results, for pykernel state replay.", "CSV", rare=True)] = None
    samples: Annotated[
        int | None, Opt("Random samples to learn.", "N", least=1, without="12000; target or board: 1000")
    ] = None
    seed: Seed = 0
    record: Record = None
    report: Report = None
    memory: Annotated[State | None, Py("A learned state to start from; by default, that of the estimator.")] = None
    stream: Annotated[
        Stream | None,
        Py(
            "Arrays in place of random samples: inputs (rows, D), and labels (rows,) or (rows, labels); a model without labels takes inputs alone."
        ),
    ] = None
    levels: Annotated[Sequence[str] | None, Py("Optimisation levels for this machine's compilers.")] = None
    compilers: Annotated[Sequence[str] | None, Py("This machine's compilers; by default all that are found.")] = None
    engine: Annotated[str | None, Py("Simulate with this engine only: llvm, numba or python.")] = None
    watch: Watched = QUIET

    shell: ClassVar = ("trust_code", "engine", "json")
    instead: ClassVar = OF_SPEC


@dataclass(frozen=True, eq=False, repr=False)
class Prove:
    """Prove that the C code neither overflows nor accesses memory out of bounds.

    Frama-C analyses each public function once, for every state of the memory that NAME_load accepts and for every
    input. It proves that the declared ranges of the memory hold again after the call, so they hold after any number of calls.

        pykernel prove spec.toml
        pykernel prove spec.toml --call update --timeout 60

    The command needs Frama-C, Why3 and Z3: apt install frama-c-base why3 z3.

    Columns: "alarms" are places where the analysis could not exclude an error. "ranges" says how many declared ranges are
    proved to hold after the call. "reached" says how many statements of the called functions the analysis reached.
    docs/proof.md describes what the proof covers, and what it does not.

    Exit codes: 0 proved, 1 not proved, 2 bad input, or no Frama-C.
    """

    model: GivenModel
    _: KW_ONLY
    from_: Annotated[
        str | Sequence[str],
        Opt(
            "State of the memory before a call; may be repeated.",
            "state|snapshot|wild|finite",
            without="state and snapshot",
            kind=list[str],
            elsewhere=("--level",),
        ),
    ] = ("state", "snapshot")
    call: Annotated[
        str | Sequence[str] | None, Opt("Only this call, such as update; may be repeated.", "NAME", kind=list[str])
    ] = None
    timeout: Annotated[float, Opt("Seconds for the analysis of one call.", "S", above=0)] = 600.0
    output: Annotated[File | None, Opt("Keep annotated C, drivers and logs here.", "FOLDER", short="-o")] = None
    record: Record = None
    watch: Watched = QUIET

    shell: ClassVar = ("trust_code", "json")
    instead: ClassVar = OF_SPEC


@dataclass(frozen=True, eq=False, repr=False)
class Page:
    """Make a page in which the generated C code learns recorded data.

    The page is one file and needs no network. In the browser, the C code runs as WebAssembly: it predicts each row, then learns
    it. The page shows forecasts and true values, the errors of the model and of simple forecasts, a monitor's level and alarms,
    the stored vectors, and the state's hash, next to the one computed on this PC. It also has figures from simulate's report, such
    as the bytes of each part of the memory, and with --target the number of instructions of a call and its bound. Readers can drop
    another CSV file onto the page.

        pykernel page spec.toml data.csv -o page.html --target cortex-m4f

    Exit codes: 0 done, 1 the C code on an emulated CPU differs from the simulation, 2 bad input. The page is written only with
    exit code 0.
    """

    model: GivenModel
    data: OneTable
    _: KW_ONLY
    output: Annotated[File, Opt("The page to write.", "HTML", short="-o", needed=True)]
    target: Targets = None
    force: Force = False
    watch: Watched = QUIET

    shell: ClassVar = ("trust_code", "json")
    instead: ClassVar = OF_SPEC | THE_TABLE


@dataclass(frozen=True, eq=False, repr=False)
class Plan:
    """Find the best model for a table of data, within a device's limits.

    This command tries every kind of model, and varies the best ones until time runs out. Without a label it plans a
    monitor.

        pykernel plan data.csv --label y --ram 4k --target cortex-m0plus
        pykernel plan recordings/ --label y

    Errors are measured on the last 30 % of the rows, or on left-out devices; for a monitor, faults are put into these rows.
    A frozen model is trained only on the other rows; a learning model also learns each of these rows after predicting it.
    Without --labels, both kinds are planned.

    Exit codes: 0 done, 1 no model fits (the closest is named) or the C code differs, 2 bad input, 130
    interrupted before a model was tried.
    """

    data: Table
    _: KW_ONLY
    label: Annotated[str | None, Opt("The column to predict.", "Y", without="none: a monitor with alarms")] = None
    inputs: Inputs = None
    spec: Annotated[
        Model | None,
        Opt("Spec that names columns.", "SPEC", reads="plain", kind=Path, more="In Python, a Spec."),
    ] = None
    labels: Annotated[
        Literal["always", "never"] | None,
        Opt(
            "When the device gets labels: always or never.",
            "WHEN",
            without="both",
            hint="for late labels, give the delay",
        ),
    ] = None
    ram: Annotated[
        str | int | None,
        Opt("Limit for RAM, such as 4k; any: no limits at all.", "BYTES", without="the target's, or 16k"),
    ] = None
    flash: Annotated[
        str | int | None, Opt("Limit for code and constants.", "BYTES", without="the target's, or 64k")
    ] = None
    instructions: Annotated[str | int | None, Opt("Limit for one call, in the worst case.", "N", without="any")] = None
    cycles: Annotated[
        str | int | None,
        Opt(
            "Limit for the cycles of one call; only for cortex-m0plus, avr or atmega328p.",
            "N",
            without="any",
            rare=True,
        ),
    ] = None
    target: Annotated[str | None, Opt("The CPU, emulated.", "TARGET", without="any")] = None
    time: Annotated[float, Opt("Time for trials.", "SECONDS", least=1, most=10_000_000)] = 120.0
    trials: Annotated[int | None, Opt("Number of trials, however long they take.", "N", least=1, most=1_000_000)] = None
    seed: Seed = 0
    output: Folder = Path("pykernel-plan")
    report: FolderReport = None
    delay: Delay = 0
    only: Only = None
    jobs: AllJobs = None
    watch: Watched = QUIET

    shell: ClassVar = ("engine", "json")
    instead: ClassVar = {
        **THE_TABLE,
        **dict.fromkeys(("--n-max", "-n", "--vectors"), "plan chooses the size, within --ram and --flash"),
        "--classes": OF_SPEC["--classes"],
        "--name": OF_SPEC["--name"],
    }


@dataclass(frozen=True, eq=False, repr=False)
class TableOf:
    """Record a table from a port, or convert a table to .npy or to a numeric .csv.

        pykernel table /dev/ttyACM0 --output first.csv
        pykernel table year.csv --output year.npy
        pykernel table year.csv --label flow --output ready.csv

    From a port, the command records frames (generate --for recorder) or lines of numbers, until Ctrl-C (docs/guide/replay.md).

    Rows of a .npy file can be read in any order, so fit can choose a basis from a table larger than memory. For a .npy output,
    CSV rows that lack a cell are left out; Parquet, Arrow and .npy files with missing cells are refused.

    In a .csv output, a column with few different words becomes a column of 0 and 1 for each word, and a column of dates or times
    becomes phases of the day and the week. Cells are empty where a value is missing. Constant columns are left out. With --like ready.csv,
    a later table gets the same columns, even if it has other words or other constant columns.

    Columns: the command prints their names and, for .npy, their positions in the new file.

    Exit codes: 0 done, 2 bad input (nothing is written then), 130 interrupted.
    """

    data: Annotated[
        File,
        Arg(
            "A port, such as COM3 or /dev/ttyACM0@9600; a .csv, .parquet, .arrow or .npy file, a folder, or -.",
            "DATA",
            kind=str,
        ),
    ]
    _: KW_ONLY
    output: Annotated[File, Opt("The .npy or .csv file to write.", "FILE", short="-o", needed=True)]
    inputs: Inputs = None
    label: Annotated[str | None, Opt("For .csv: a column that is copied unchanged, as the last one.", "Y")] = None
    codes: Annotated[
        Numbers, Opt("For .csv: numbers that stand for a missing value; their cells become empty.", "V,V")
    ] = None
    like: Annotated[File | None, Opt("For .csv: make the columns of this earlier output.", "FIRST")] = None
    precision: Annotated[Literal["float32", "float64"], Opt("For .npy: float32 or float64.", "TYPE")] = "float32"
    force: Force = False
    watch: Watched = QUIET

    shell: ClassVar = ("json",)
    instead: ClassVar = THE_TABLE


@dataclass(frozen=True, eq=False, repr=False)
class Import:
    """Import a model that was trained elsewhere.

    Support vector machines, kernel ridge, Gaussian processes, linear models and networks with one hidden layer can be
    imported, with their preprocessing. With --vectors, a model with fewer vectors is trained to imitate the original, or
    the state of a device, on rows of --data or random rows. skl2onnx, PyTorch and tf2onnx write .onnx files. No code in
    a file is executed; pickles are refused.

        pykernel import gate.onnx -o gate.toml --data held.csv
        pykernel import flow.toml --start state.bin --vectors 16 -o small.toml

    Columns: "vectors", "functions" and "weights" count what the spec stores. "flash" is the size of the tables. "error" is
    how much --vectors changes the outputs, in standard deviations; "low" and "high" bound the error's 95 % interval. With
    --data, "difference" is the largest difference in a decision value; "allowed" is the largest that rounding can
    cause. Rounding may change the class of the "undecided" rows. At most 1,000 rows or steps are compared.

    Exit codes: 0 done, 1 the comparison failed, 2 bad input.
    """

    model: Annotated[Path, Arg("An .onnx file, or a spec.", "MODEL")]
    _: KW_ONLY
    output: Annotated[Path, Opt("The spec to write.", "SPEC", short="-o", needed=True)]
    name: Name = None
    precision: Precision = "float32"
    max_abs: Annotated[
        float | None,
        Opt(
            "Largest magnitude of an input; in int16, of its distance from the center.",
            "X",
            key="input.max_abs",
            without="from the vectors",
        ),
    ] = None
    inputs: Annotated[str | None, Opt("Names of the inputs.", "A,B", without="as the model was fitted")] = None
    label: Annotated[str | None, Opt("Column of true values, for simulate; A,B for several labels.", "Y")] = None
    classes: Annotated[
        str | None, Opt("Names of the classes, in order.", "A,B", key="label.classes", without="as text")
    ] = None
    distance: Annotated[
        str,
        Opt("How the distances of a Gaussian kernel are computed.", "auto|differences|products", key="kernel.distance"),
    ] = "auto"
    vectors: Annotated[
        int | None,
        Opt("Fewer vectors, trained anew.", "N", without="the model's", elsewhere=("--n-max", "-n")),
    ] = None
    start: Annotated[Path | None, Opt("If MODEL is a spec: the state of a device.", "FILE")] = None
    data: Annotated[str | None, Opt("CSV file: rows for a comparison, and for --vectors.", "DATA")] = None
    trust_code: Annotated[bool, Opt("Execute the Python file that [kernel] source names.", rare=True)] = False
    force: Force = False
    watch: Watched = QUIET

    shell: ClassVar = ("json",)


@dataclass(frozen=True, eq=False, repr=False)
class Info:
    """List the CPUs on which a model can be checked, or print a schema for editors.

        pykernel info
        pykernel info schema > spec.schema.json

    The table also says for which CPUs this machine can build, and which CPUs it can emulate. The schema lets an editor complete and check specs:
    names, types and ranges of each rule's keys. Editors with taplo (Even Better TOML) find the schema through a spec's first line:

        #:schema ./spec.schema.json

    pykernel info commands prints a schema of the arguments of each command.

    Columns: "part" is the microcontroller into whose RAM and flash a model must fit. "built by" names the
    toolchains, and "run by" the emulators. Names in brackets were not found on this machine. To install zig, unicorn and
    wasmtime, run pip install -e '.[emulate,zig]' in a clone of pykernel. Your system's package manager installs the other tools.

    Exit codes: 0 done.
    """

    about: Annotated[Literal["targets", "schema", "commands"], Arg("targets, schema or commands.", "WHAT")] = "targets"

    shell: ClassVar = ("json",)


COMMANDS: dict[str, Any] = {
    "demo": Demo,
    "plan": Plan,
    "fit": Fit,
    "simulate": Simulate,
    "generate": Generate,
    "check": Check,
    "prove": Prove,
    "page": Page,
    "import": Import,
    "state show": Show,
    "state migrate": Migrate,
    "state merge": Merge,
    "state replay": Replay,
    "table": TableOf,
    "info": Info,
}
