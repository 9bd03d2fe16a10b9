"""What commands are given: files, lists of words and numbers, specs, packages that an extra brings."""

from __future__ import annotations

import contextlib
import importlib.util
import inspect
import math
import os
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from pykernel.cli import output
from pykernel.errors import MissingExtra, UserError, did_you_mean
from pykernel.files import clear, open_plain

if TYPE_CHECKING:
    from pykernel.spec.model import Spec


# ---------------------------------------------------------------------------------------------------------------- files


def open_data(data: str, stack: contextlib.ExitStack) -> tuple[str, BinaryIO, int | None]:
    """Name, file and size (if it is known) of the data."""
    if data == "-":
        return "standard input", sys.stdin.buffer, None
    try:
        file = stack.enter_context(open_plain(data, inherited=True))
    except FileNotFoundError:
        raise UserError(f"{data}: there is no such file; give a CSV file, or - for standard input") from None
    except (OSError, ValueError) as error:
        raise UserError(f"{data}: cannot be read: {getattr(error, 'strerror', None) or error}") from None
    return data, file, os.fstat(file.fileno()).st_size or None


def bytes_of(path: Path, most: int) -> bytes:
    """The first bytes of what a device has saved."""
    try:
        with open_plain(path) as file:
            return file.read(most)
    except (OSError, ValueError) as error:
        raise UserError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from None


def need_free(path: Path | None, data: str, force: bool) -> None:
    """Refuses a file to be written that is there, whose folder is not, or that is the data."""
    if path is not None and not path.absolute().parent.is_dir():
        raise UserError(f"{path}: cannot be written: there is no folder {path.parent}; make it, or give another name")
    need_not_data(path, data)
    if path is not None:
        with contextlib.suppress(OSError):  # a run that died may have written it, and not what belongs to it
            clear(path)
    if path is not None and not os.access(path.absolute().parent, os.W_OK):
        raise UserError(f"{path}: cannot be written: the folder {path.parent} is not writable; give another name")
    if path is None or not (path.exists() or path.is_symlink()):
        return
    if path.is_symlink() or not path.is_file():
        what = "a link" if path.is_symlink() else "no file"
        raise UserError(f"{path}: is {what}; give the path of a file to write")
    if not force:
        raise UserError(f"{path}: is there already; give another name, or --force to overwrite it")


def need_not_data(path: Path | None, data: str) -> None:
    """Refuses to write over what is read."""
    if path and data != "-" and path.exists() and Path(data).exists() and path.samefile(data):
        raise UserError(f"{path}: is the data itself; write to another file")


def need_different(paths: Iterable[Path | None]) -> None:
    """Refuses to write two things to one file."""
    given = [path.absolute() for path in paths if path is not None]
    for path in given:
        if given.count(path) > 1:
            raise UserError(f"{path}: is named for two files; give two names")


# ---------------------------------------------------------------------------------------------------------------- specs


def read_spec(spec_file: Path, trust: bool) -> Spec:
    """The spec; whose code, if it has any and is trusted, is executed, and that is said."""
    from pykernel.spec.model import load_spec

    return load_spec(spec_file, trust, lambda path: output.tell(f"executing {path}"))


def need_no_signal(spec: Spec, command: str) -> None:
    """Refuses a spec whose raw samples a command does not take."""
    if spec.signal is not None:
        raise UserError(f"{spec.name} has a [signal], which {command} does not take yet; pykernel simulate does")


def read_rows(spec: Spec, data: str) -> tuple[Any, Any]:
    """All rows of a file, (x, y); a label that is empty is no number, and a model refuses it."""
    import numpy as np

    from pykernel.host.simulate import require_columns, samples_of

    require_columns(spec)
    with contextlib.ExitStack() as stack:
        name, file, _ = open_data(data, stack)
        batches = list(samples_of(spec, file, name))
    if not batches:
        raise UserError(f"{data}: has no rows to learn; give a file with some")
    x, y = np.concatenate([batch.x for batch in batches]), np.concatenate([batch.y for batch in batches])
    return x, y if spec.program.label is not None else np.zeros((len(x), 0))


# ---------------------------------------------------------------------------------------------------- words and numbers


def words(given: str | None) -> list[str]:
    """Parts between commas, each once."""
    return list(dict.fromkeys(word.strip() for word in (given or "").split(",") if word.strip()))


def positive_numbers(text: str, option: str) -> list[float]:
    """Numbers above zero, with commas between."""
    numbers = []
    for word in words(text):
        try:
            numbers.append(float(word))
        except ValueError:
            raise UserError(f"{option} is {text!r}; it must be numbers with commas between, such as 0.5,1,2") from None
        if not 0 < numbers[-1] < math.inf:
            raise UserError(f"{option} holds {word}; each must be above zero")
        if option == "--sigma" and not 1e-150 < numbers[-1] < 1e150:
            raise UserError(f"{option} holds {word}; its square must not overflow: scale the data")
    if not numbers:
        raise UserError(f"{option} is {text!r}; give at least one number")
    return numbers


def whole_numbers(text: str, option: str) -> list[int]:
    """Whole numbers, with commas between."""
    numbers = []
    for word in words(text):
        if not word.isascii() or not word.isdigit():
            raise UserError(f"{option} is {text!r}; it must be whole numbers with commas between, such as 8,16,32")
        numbers.append(int(word))
    if not numbers:
        raise UserError(f"{option} is {text!r}; give at least one number")
    return numbers


def workers(text: str | None, default: int) -> int | str:
    """A number of processes, or the address of a Dask scheduler."""
    from pykernel.parallel import MOST_PROCESSES

    if text is None:
        return default
    if text.isascii() and text.isdigit() and 1 <= int(text) <= MOST_PROCESSES:
        return int(text)
    if "://" in text:
        return text
    raise UserError(
        f"--workers is {text!r}; it must be a number of processes from 1 to {MOST_PROCESSES:,}, or a Dask scheduler's address"
    )


def method_options(text: str | None, method: str) -> dict[str, Any]:
    """KEY=VALUE with commas between: options of a method of pykernel.bases (of auto those of any), epsilon and swaps."""
    from pykernel.bases.select import SELECTORS

    own = {"n_max", "seed", "candidates", "points", "tau"}  # options of the commands
    kinds = [SELECTORS[method]] if method in SELECTORS else list(SELECTORS.values())
    known: dict[str, str] = {}
    for kind in kinds:
        for name, parameter in list(inspect.signature(kind).parameters.items())[2:]:
            if name not in own:
                known.setdefault(name, str(parameter.annotation))
    known["swaps"] = "int"
    found: dict[str, Any] = {}
    for word in words(text):
        name, equals, value = word.partition("=")
        if not equals or name not in known:
            keys = f"it must be KEY=VALUE, of {method} with a key of {', '.join(known)}"
            remedy = did_you_mean(name, known, keys) if equals else keys
            raise UserError(f"--with holds {word!r}; {remedy}")
        found[name] = _value_as(known[name], value, f"--with {word}")
    return found


def _value_as(annotation: str, value: str, where: str) -> Any:
    """A word as an annotated parameter takes it."""
    if "Literal" in annotation:
        choices = re.findall(r"[\"']([^\"']+)[\"']", annotation)
        if value not in choices:
            remedy = did_you_mean(value, choices, f"it must be one of {', '.join(choices)}")
            raise UserError(f"{where}: {value!r} is not known; {remedy}")
        return value
    if "bool" in annotation and value in ("true", "false"):
        return value == "true"
    for kind, convert, what in (("int", int, "a whole number"), ("float", float, "a number")):
        if kind in annotation:
            try:
                return convert(value)
            except ValueError:
                raise UserError(f"{where}: {value!r} must be {what}") from None
    raise UserError(f"{where}: {value!r} must be true or false")


# ------------------------------------------------------------------------------------------------------------- packages


def need_package(module: str, what: str, extra: str) -> None:
    """Say so before the work, not after it."""
    if importlib.util.find_spec(module) is None:
        raise MissingExtra(what, extra)


def need_matplotlib() -> None:
    need_package("matplotlib", "--plot", "plot")
