"""Names of the headers of systems that generated code is built in: the header of a model with such a name would hide the system's.

Each argument is a text file with one system's paths, one a line, as ``git ls-tree -r --name-only HEAD`` in a clone, ``dpkg -L`` or ``dpkg -c`` list
them.  Taken are headers that are included without a folder; in small letters, because some file systems do not tell capitals
apart.  The names in ``pykernel/dialect/reserved.py`` came, in November 2026, from FreeRTOS-Kernel 4269c69a, ArduinoCore-avr 11b9130, esp-idf 10212290,
the folder ``newlib`` of newlib 9dc06b7e; from Zephyr's folders ``kernel``, ``arch``, ``lib/libc`` and ``include/zephyr/posix`` over its history; and from Debian 12's packages
libc6-dev, libgcc-12-dev, avr-libc and picolibc-arm-none-eabi, and from ``lib/include`` of ziglang:

    python -m tests.support.header_names LIST … >names
"""

from __future__ import annotations

import re
import sys
import textwrap
from collections.abc import Iterable
from pathlib import Path

from pykernel.spec.keys import is_prefix

INCLUDED = re.compile(
    r"(?:.*/)?(?:include|zephyr/posix|cores/arduino|libraries/\w+/src|variants/\w+)/([^/]+)\.h(?:pp)?$"
)
"""A path that is included by its last part."""
OTHERS = re.compile(
    r"/(test\w*|examples|host_test|bt/(host|common))/|^(examples|tools|winsup|libgloss|newlib/libc/(sys|machine))/"
)
"""What no firmware has among the folders of its headers."""


def header_names(paths: Iterable[str]) -> set[str]:
    """The headers' names, without those that could not be a model's."""
    found = (match[1].lower() for path in paths if not OTHERS.search(path) and (match := INCLUDED.match(path)))
    return {name for name in found if is_prefix(name)}


if __name__ == "__main__":
    lists = [Path(name).read_text().splitlines() for name in sys.argv[1:]]
    print(textwrap.fill(" ".join(sorted(set().union(*map(header_names, lists)))), 120))
