"""Generate a model as a user C module of MicroPython."""

from __future__ import annotations

import keyword
import sys
from collections.abc import Callable, Mapping
from typing import Any

from pykernel.errors import UserError

TEMPLATES = {
    "micropython.mk": "micropython.mk",
    "micropython.cmake": "micropython.cmake",
    "micropython/mod_{name}.c": "mod_model.c",
    "micropython/Makefile": "micropython_Makefile",
}
CODES = {"float": "f", "double": "d", "int16_t": "h", "int32_t": "i"}
"""C type -> its type code in Python's module ``array``."""
NAMES = frozenset(
    """aioble bluetooth btree cryptolib deflate dht esp esp32 espnow ffi framebuf js jsffi lwip machine micropython mimxrt mip
    mp neopixel network ntptime onewire openamp pyb qstr requests rp2 samd stm tls uctypes umqtt vfs webrepl websocket
    zephyr zsensor""".split()
)
"""Names that a model must not have: modules of MicroPython that CPython lacks, and prefixes in MicroPython's C."""


def micropython_files(
    sources: list[str], context: Mapping[str, Any], render: Callable[[str, Mapping[str, Any]], str]
) -> dict[str, str]:
    """Return the module's C code, and the files for MicroPython's builds with make and CMake: path -> text.

    NAME_store and NAME_restore are left out, because an exception in a callback would stop NAME_restore halfway.  The
    template has its own code for NAME_save and NAME_load.
    sources: paths of the model's C files.
    """
    name = context["name"]
    if name in NAMES or keyword.iskeyword(name) or name in sys.stdlib_module_names:
        raise UserError(f"{name} already has another meaning in MicroPython; give the model another name")
    methods = {
        short: call for short, call in context["calls"].items() if short not in ("save", "load", "store", "restore")
    }
    arguments = [argument for call in methods.values() for argument in call.arguments[1:]]
    rooms = {argument.name: argument for argument in arguments if argument.size and not argument.written}
    written = {argument.type for argument in arguments if argument.written}
    taken = {argument.type for argument in arguments if not argument.written}
    own = {
        "methods": methods,
        "rooms": list(rooms.values()),
        "arrays": {argument.type for argument in rooms.values()},
        "scalars": {argument.type for argument in arguments if not argument.size},
        "wholes": bool(taken & {"int16_t", "int32_t"}),
        "floats": bool((written | taken) & {"float", "double"}),
        "told": written,
        "codes": CODES,
        "sources": sources,
    }
    return {path.format(name=name): render(template, {**context, **own}) for path, template in TEMPLATES.items()}
