"""Checks of the workflows' arguments: known words, options of methods, and names of files."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from pykernel.errors import UserError, did_you_mean, shown_option
from pykernel.files import open_data, whole_file
from pykernel.progress import Show
from pykernel.request.kinds import File, Numbers, words
from pykernel.telling import Watch

if TYPE_CHECKING:
    from pykernel.spec.model import Spec
    from pykernel.workflows.fit_request import Fit

LARGE = 16 * 1024
"""If all rows are vectors, and the model needs more bytes of flash than this, smaller models are tried as well, unless
the user gave a flash limit."""
BASIS_MODELS = ("krr", "ls-svm")
COMPARED_ROWS = 1000
"""Largest number of rows on which the written spec is compared with the trained model."""
COARSE = 0.05
"""If rounding changes a prediction by more than this fraction of a typical error, a warning says so."""
TRAINED = "trained"
"""The method that trains vectors; other methods choose rows as vectors."""


def need_known(word: str, known: Sequence[str], name: str, where: str = "") -> None:
    """Raise UserError for an unknown value of an argument.  name: the argument's name.  where: words for the message, such as " here"."""
    if word not in known:
        from pykernel.spec.model import meant

        remedy = meant(word, known, f"there are: {', '.join(known)}")
        raise UserError(f"{shown_option(name, word)} is not known{where}; {remedy}")


def need_unweighted(spec: Spec) -> None:
    """Raise UserError for a spec whose classes have weights."""
    if getattr(spec.label, "weights", None) is not None:
        raise UserError(
            "[label] weights changes which class is predicted, but here models are compared by their unweighted errors; leave this key out, and add it to the new spec if the new model learns on the device"
        )


def method_options(options: str | Mapping[str, Any] | None, method: str) -> dict[str, Any]:
    """Return a dict of options for a method of pykernel.bases: name -> value.  "auto" takes the options of all methods; every method
    takes epsilon and swaps.

    options: a dict, or text such as "KEY=VALUE,KEY=VALUE".
    """
    from pykernel.bases.select import SELECTORS, keywords

    own = {"n_max", "seed", "candidates", "points", "tau"}  # arguments of the workflows
    kinds = [SELECTORS[method]] if method in SELECTORS else list(SELECTORS.values())
    known: dict[str, str] = {}
    for kind in kinds:
        for name, annotation in keywords(kind).items():
            if name not in own:
                known.setdefault(name, annotation)
    known["swaps"] = "int"
    text = (
        words(options)
        if not isinstance(options, Mapping)
        else [f"{key}={str(value).lower() if isinstance(value, bool) else value}" for key, value in options.items()]
    )
    values: dict[str, Any] = {}
    for word in text:
        name, equals, value = word.partition("=")
        if not equals or name not in known:
            keys = f"give KEY=VALUE; keys for {method}: {', '.join(known)}"
            remedy = did_you_mean(name, known, keys) if equals else keys
            raise UserError(f"{shown_option('with_')} holds {word!r}; {remedy}")
        values[name] = _value_as(known[name], value, shown_option("with_", word))
    return values


def _value_as(annotation: str, value: str, where: str) -> Any:
    """Convert a word to the type of an annotated parameter."""
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
                raise UserError(f"{where}: {value!r} is not {what}") from None
    raise UserError(f"{where}: {value!r} is neither true nor false")


@contextlib.contextmanager
def opened(data: str, watch: Watch) -> Iterator[tuple[str, BinaryIO, Show]]:
    """Open the data, and show progress.  Yields the data's name, its file, and the function that shows the progress."""
    with contextlib.ExitStack() as stack:
        name, file, size = open_data(data, stack)
        yield name, file, stack.enter_context(watch.progress(size))


def need_report(path: File | None) -> None:
    """Raise UserError unless the file's name is valid for a report."""
    if path is not None and Path(path).suffix.lower() != ".html":
        raise UserError(
            f"{shown_option('report')} {path}: a report has figures, so it is an HTML file; give {Path(path).with_suffix('.html')}"
        )


def called(request: Fit) -> str:
    """Return the model's name in C."""
    return request.name or ("model" if request.output is None else prefix(Path(request.output)))


def trained_by(request: Fit, spec: Spec) -> Spec:
    """Return the spec with a section [training], which says how the model was trained."""
    from pykernel.request.option import declared, stated
    from pykernel.spec.model import make_spec

    said, training, kind = stated(request), dict[str, Any](), cast(Any, type(request))
    for each in declared(kind):
        section, _, key = (each.opt.key or "").rpartition(".")
        if section == "training" and each.name in said:
            training[key] = said[each.name]
    content = spec.model_dump(exclude_unset=True)
    return make_spec(content | {"training": training}, custom=spec.custom) if training else spec


def prefix(out: Path) -> str:
    """Return the prefix of all names in the C code, made from the name of the spec's file."""
    from pykernel.spec.keys import checked_name

    try:
        return checked_name(out.stem)
    except ValueError as error:
        raise UserError(f"{out}: the model's name {error}; give another file name, or {shown_option('name')}") from None


def need_unset(request: Fit, names: Sequence[str], trained: str) -> None:
    """Raise UserError if one of the arguments ``names`` was given.

    trained: name of the argument whose value makes these arguments useless.
    """
    named = str(getattr(request, trained))
    why = ", which trains vectors and widths" if named == TRAINED else ""
    for name in names:
        if getattr(request, name) != getattr(type(request), name):
            option = shown_option(name.strip("_"))
            raise UserError(f"{option} does not apply to {shown_option(trained, named)}{why}; leave {option} out")


def width(request: Fit, known: Sequence[str], where: str = "") -> tuple[str | None, Numbers]:
    """Return the name of the kernel's width (None if the kernel has none), and the width that was given.

    known: the kernels.  where: words for the message, such as " here".  Raises UserError for an unknown kernel, and for
    a width that this kernel does not have.
    """
    need_known(request.kernel, known, "kernel", where)
    widths = {"sigma": request.sigma, "gamma": request.gamma}
    own = {"gaussian": "sigma", "linear": None}.get(request.kernel, "gamma")
    remedy = f"this kernel has {shown_option(own)}" if own else "this kernel has no width"
    for name, value in widths.items():
        if value is not None and name != own:
            raise UserError(f"{shown_option(name)} does not apply to the {request.kernel} kernel; {remedy}")
    return own, widths.get(own or "")


def write_file(path: Path, content: str | bytes) -> None:
    """Write a file, completely or not at all."""
    with whole_file(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)
