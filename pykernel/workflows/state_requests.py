"""The requests about states that devices have saved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Annotated, ClassVar

from pykernel.request.kinds import File, Files
from pykernel.request.option import Arg, Opt
from pykernel.request.options import (
    OF_SPEC,
    THE_TABLE,
    AllJobs,
    Force,
    StateOut,
)
from pykernel.telling import QUIET
from pykernel.workflows.models import GivenModel, TheSpec, Watched


@dataclass(frozen=True, eq=False, repr=False)
class Show:
    """Show the values in a saved state, or where two states differ.

        pykernel state show spec.toml state.bin
        pykernel state show spec.toml monday.bin friday.bin

    A state is checked as the device checks it: format, kind of state, length, CRC-32, then every number. With --json all values are
    printed, under the names of the C struct's fields.

    Columns: "not zero" is the number of values that are not zero. Unused places are zero. The state's hash is the number
    that NAME_hash returns. For two states, the table shows for each field how many values differ, and the position and both values (in A and
    in B) of the first difference. The sequence number, which counts how often a state was saved, is not compared.

    Exit codes: 0 done, or equal, 1 not equal, 2 bad input, or a snapshot that the device would refuse.
    """

    model: Annotated[TheSpec, Arg("The model, a TOML file.", "SPEC", reads="spec", kind=Path)]
    files: Annotated[
        Sequence[File],
        Arg(
            "One snapshot, as written by NAME_save or NAME_store, or two snapshots to compare.",
            "FILE…",
            kind=list[Path],
        ),
    ]

    shell: ClassVar = ("trust_code", "json")


@dataclass(frozen=True, eq=False, repr=False)
class Migrate:
    """Convert a saved state for a changed spec.

    Parameters that only control further learning, such as a learning rate, a limit or a horizon, may differ; if nothing else
    differs, the device can load the state without conversion. A larger [reduction] n_max adds empty places, and every
    bit of the predictions stays the same. For a smaller n_max, the technique of OLD removes vectors. A different rule, kernel, scaling or
    input is refused.

        pykernel state migrate old.toml state.bin new.toml -o new-state.bin

    Columns: none. The command prints the changed keys and the number of vectors.

    Exit codes: 0 done, 2 bad input, or a state that cannot be converted (nothing is written then).
    """

    old: Annotated[TheSpec, Arg("The spec that the state was learned with.", "OLD", reads="spec", kind=Path)]
    state: Annotated[File, Arg("A snapshot, as written by NAME_save or NAME_store.", "STATE")]
    new: Annotated[TheSpec, Arg("The spec of the new firmware.", "NEW", reads="spec", kind=Path)]
    _: KW_ONLY
    output: StateOut
    force: Force = False

    shell: ClassVar = ("trust_code", "json")


@dataclass(frozen=True, eq=False, repr=False)
class Merge:
    """Merge the states of several devices into one state.

    The devices run the same spec, each on different samples. The merged state has the size of one device's state.
    NAME_restore and NAME_load load the merged state, and the device can continue to learn.
    Stored vectors are raw samples from the devices; anyone who has a state can read them.

        pykernel state merge spec.toml a.bin b.bin c.bin -o merged.bin

    The spec after --into may have a different n_max. docs/guide/many-devices.md describes how each kind of model is merged. To evaluate the
    merged state, run simulate --start merged.bin on rows that no device has learned.

    Columns: "deviation" is the root mean square difference between a device's answers and the joint answers of the other devices, in
    standard deviations of the answers, for inputs like those that this device has learned.

    Exit codes: 0 done, 2 bad input, or models that cannot be merged (nothing is written then).
    """

    spec: Annotated[TheSpec, Arg("The model, a TOML file.", "SPEC", reads="spec", kind=Path)]
    states: Annotated[
        Sequence[File | bytes],
        Arg(
            "Snapshots, one from each device; or a folder of .bin files.",
            "STATE",
            kind=list[Path],
            more="Or the snapshots' bytes.",
        ),
    ]
    _: KW_ONLY
    into: Annotated[
        TheSpec | None, Opt("The spec of the merged state.", "SPEC", reads="spec", kind=Path, without="the same")
    ] = None
    output: StateOut = None
    force: Force = False
    watch: Watched = QUIET

    shell: ClassVar = ("trust_code", "json")
    instead: ClassVar = OF_SPEC | {"--data": "to evaluate the merged state on a recording, use pykernel simulate"}


@dataclass(frozen=True, eq=False, repr=False)
class Replay:
    """Replay the log of a device, and name the first difference.

    The log is a table of text. Its first line names the columns, in any order: the inputs, the label, and, without
    --end, at least one of state_hash (NAME_hash after this row), status (what NAME_update returned) and prediction:

        x0,x1,label,state_hash

    An empty cell is a value that was not recorded. A row without a label was predicted, not learned. docs/guide/replay.md describes all
    columns, and logs of models without labels. The FILE of --start or --end is a snapshot from NAME_save, or the first
    NAME_STATE_BYTES bytes of the model. With --end, the command also names the fields that differ.

        pykernel state replay spec.toml log.csv --end end.bin
        pykernel state replay spec.toml logs/

    In a folder, or if several logs are given, each log belongs to one device. A table says which devices computed the expected values.

    Exit codes: 0 equal, 1 not equal, 2 bad input.
    """

    model: GivenModel
    data: Annotated[Files, Arg("A table (-: stdin); many devices: folder or tables.", "LOG…", kind=list[str])]
    _: KW_ONLY
    end: Annotated[File | None, Opt("The device's state at the end of the log.", "FILE")] = None
    start: Annotated[File | None, Opt("The device's state before the log.", "FILE")] = None
    jobs: AllJobs = None
    watch: Watched = QUIET

    shell: ClassVar = ("trust_code", "engine", "json")
    instead: ClassVar = OF_SPEC | {"--log": THE_TABLE["--data"]}
