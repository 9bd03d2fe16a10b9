"""Errors that a user can correct, and suggestions for misspelled words."""

from __future__ import annotations

import contextlib
import contextvars
import difflib
import importlib.util
from collections.abc import Iterable, Iterator, Mapping

EXTRAS = {
    "sklearn": ("scikit-learn and SciPy", 190),
    "zig": ("the zig wheel", 380),
    "emulate": ("the unicorn, wasmtime and capstone wheels, and SciPy", 230),
    "arrow": ("pyarrow", 180),
    "board": ("pyserial", 1),
    "import": ("scikit-learn and onnx", 220),
    "river": ("river and scikit-learn", 205),
}
"""For each extra: the packages that it installs, and their approximate size on disk (installed files, in MB)."""


def visible(text: object) -> str:
    """Return the text on one line.  Unprintable characters, which a hostile name could contain, become escapes."""
    return "".join(ch if ch.isprintable() else ascii(ch)[1:-1] for ch in str(text))


def install_hint(extra: str) -> str:
    """Return the command that installs an extra, and the extra's size.

    The command calls the pip of the running Python, and installs from the same source as this package.
    """
    import importlib.metadata
    import json
    import shutil
    import sys
    from pathlib import Path
    from urllib.parse import urlsplit
    from urllib.request import url2pathname

    wanted, editable = f"pykernel-mcu[{extra}]", ""
    with contextlib.suppress(importlib.metadata.PackageNotFoundError, ValueError):
        # PEP 610: direct_url.json names the URL or folder that was given to pip, unless the package came from an index
        origin = json.loads(importlib.metadata.distribution("pykernel-mcu").read_text("direct_url.json") or "{}")
        url = str(origin.get("url", ""))
        if url.startswith("file:"):
            path = Path(url2pathname(urlsplit(url).path))
            wanted = f"{'.' if path == Path.cwd() else path}[{extra}]"
            editable = "-e " if origin.get("dir_info", {}).get("editable") else ""
        elif url:
            wanted += f" @ {'+'.join(filter(None, [origin.get('vcs_info', {}).get('vcs'), url]))}"
    pip = shutil.which("pip")
    own = pip is not None and Path(pip).parent == Path(sys.executable).parent
    return f"{'pip' if own else f'{sys.executable} -m pip'} install {editable}'{wanted}' (about {EXTRAS[extra][1]} MB)"


class UserError(ValueError):
    """Bad input.  The message says in one sentence what is wrong, where, and how to correct it.  The exit code is 2."""


class UntrustedCode(UserError):
    """A spec names a file with code, and the user has not allowed pykernel to execute it."""


class MissingExtra(UserError, ImportError):
    """An optional dependency is not installed."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} needs {EXTRAS[extra][0]}; install with: {install_hint(extra)}")


_KEYS = contextvars.ContextVar[Mapping[str, str] | None]("_KEYS", default=None)
"""On the command line, a dict that maps each parameter that --set can set to its key in the spec.  In Python, None, so messages name the
functions' arguments."""


@contextlib.contextmanager
def on_command_line(keys: Mapping[str, str]) -> Iterator[None]:
    """Within the block, messages name parameters as options of the command line.  keys: see ``_KEYS``."""
    before = _KEYS.set(keys)
    try:
        yield
    finally:
        _KEYS.reset(before)


def shown_option(parameter: str, value: object = "") -> str:
    """Return a parameter and its value as a message shows them.

    In Python: "hold_out 0.3".  In the shell: "--hold-out 0.3" or "--set training.cv=5".
    """
    keys, after = _KEYS.get(), "" if value == "" else f" {value}"
    if keys is None:
        return parameter + after
    if parameter in keys:
        return f"--set {keys[parameter]}" + after.replace(" ", "=", 1)
    return "--" + parameter.strip("_").replace("_", "-") + after


def need_package(module: str, what: str, extra: str) -> None:
    """Raise MissingExtra if the module is not installed.  Call this function before any computation starts."""
    if importlib.util.find_spec(module) is None:
        raise MissingExtra(what, extra)


UNWRITTEN = "; no file was written"
"""The end of a message about an interrupt, in workflows that write all files at the end."""


class Interrupted(KeyboardInterrupt):
    """A workflow was interrupted.  kept: the end of the message, which says which results were kept."""

    def __init__(self, kept: str = UNWRITTEN) -> None:
        super().__init__(kept)


class CheckFailed(Exception):
    """A check failed: for example, the device's code computes other values than the host.  The exit code is 1."""


def nearest(word: str, known: Iterable[str]) -> str | None:
    """Return the known word with the most similar spelling, ignoring case; None if no known word is similar."""
    there = list(known)
    if word in there:
        return word
    cases: dict[str, str] = {}
    for each in there:
        cases.setdefault(each.casefold(), each)
    matches = difflib.get_close_matches(word.casefold(), cases, 1)
    return cases[matches[0]] if matches else None


def did_you_mean(word: str, known: Iterable[str], otherwise: str) -> str:
    """Return the end of a message about an unknown word: "did you mean …?" if a known word is similar, else ``otherwise``."""
    near = nearest(word, known)
    return otherwise if near is None else f"did you mean {near!r}?"
