"""C declarations of calls, from which the header, its wrappers and the declarations of the binding are printed."""

from __future__ import annotations

from dataclasses import dataclass

LONGEST = 120  # longest line of C code, except for lines that cannot be broken


@dataclass(frozen=True)
class Argument:
    """A parameter of a call.

    size: "" for a number or a callback, the length as C text for an array, and "*" for any other pointer.
    written: whether the call writes to the argument.  values: the number of values, or 0 if this number is not known.
    """

    name: str
    type: str
    size: str = ""
    written: bool = False
    values: int = 0

    def __str__(self) -> str:
        whole = f"{self.type} *{self.name}" if self.size == "*" else f"{self.type} {self.name}"
        whole += f"[{self.size}]" if self.size not in ("", "*") else ""
        return whole if self.written or not self.size else f"const {whole}"


@dataclass(frozen=True)
class Signature:
    """A call's declaration."""

    returns: str
    name: str
    arguments: tuple[Argument, ...] = ()

    def __str__(self) -> str:
        return f"{self.returns} {self.name}({', '.join(map(str, self.arguments)) or 'void'})"


def shared_calls(name: str, persists: bool) -> dict[str, Signature]:
    """Return the calls that do not depend on the kind of model: short name -> declaration.  persists: whether the model
    learns; only such models have the calls that reset, save, restore and wipe a state.
    """
    kept, changed = (Argument("s", f"{name}_t", "*", written) for written in (False, True))
    bytes_of = (Argument("buffer", "uint8_t", f"{name.upper()}_SNAPSHOT_BYTES", written) for written in (True, False))
    write, read = Argument("write", f"{name}_write_fn"), Argument("read", f"{name}_read_fn")
    context = Argument("context", "void", "*", written=True)
    calls: dict[str, tuple[str, tuple[Argument, ...]]] = {"init": ("void", (changed,))}
    calls |= {"reset": ("void", (changed,))} if persists else {}
    calls |= {"hash": ("uint32_t", (kept,)), "selftest": ("int32_t", (changed,))}
    if persists:
        calls |= {"save": ("int32_t", (kept, next(bytes_of))), "load": ("int32_t", (changed, next(bytes_of)))}
        calls |= {"store": ("int32_t", (kept, write, read, context)), "restore": ("int32_t", (changed, read, context))}
        calls |= {"wipe": ("void", (changed,))}
    return {short: Signature(returns, f"{name}_{short}", arguments) for short, (returns, arguments) in calls.items()}


def in_cpp(short: str, call: Signature, macro: str) -> str:
    """Return the text of a C++ method that makes the call for the class's member ``memory_``.

    Arrays, and single numbers that the method writes, are passed by reference.
    """
    model, *others = call.arguments
    taken, passed = list[str](), ["&memory_"]
    for each in others:
        kind = f"{'' if each.written else 'const '}{each.type}"
        alone, array = each.written and each.values == 1, each.size not in ("", "*")
        taken.append(f"{kind} &{each.name}" if alone else f"{kind} (&{each.name})[{each.size}]" if array else str(each))
        passed.append(f"&{each.name}" if alone else each.name)
    head = f"{call.returns} {short}({', '.join(taken)}){'' if model.written else ' const'} {macro}_NOEXCEPT"
    body = f"{'' if call.returns == 'void' else 'return '}{call.name}({', '.join(passed)});"
    line = f"    {head} {{ {body} }}"
    return line if len(line) <= LONGEST else f"    {head}\n    {{\n        {body}\n    }}"
