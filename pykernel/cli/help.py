"""Lay out ``--help`` as plain text without boxes, so that it fits a screen of 80 columns and 40 lines."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from typer.core import TyperCommand, TyperGroup

from pykernel.cli import output

PAGE = "docs/reference/commands.md"
"""The page that describes every command, with the options that ``--help`` only names."""
RARE = "rare"
"""The panel of options that ``--help`` only names."""
NAMES_WIDTH = 24
"""Width of the column with an option's names and value; longer names get a separate line."""


def paragraphs(text: str, width: int) -> Iterator[str]:
    """Yield the paragraphs of a text.  Indented paragraphs stay unchanged; other paragraphs are wrapped."""
    for block in inspect.cleandoc(text).split("\n\n"):
        if block.startswith("    "):
            yield block
        else:
            yield textwrap.fill(" ".join(block.split()), width)


def first_sentence(text: str | None) -> str:
    """Return the first sentence of a help text, which describes the command in the list of commands."""
    return " ".join((text or "").split("\n\n")[0].split()).split(". ")[0].rstrip(".") + "."


def names_of(parameter: Any) -> str:
    """Return the names of a parameter and its value, such as "--name, -n VALUE"."""
    if parameter.param_type_name == "argument":
        return str(parameter.metavar)
    # long names first: the library does not keep the order of --help and -h
    names = ", ".join(sorted((*parameter.opts, *parameter.secondary_opts), key=lambda name: not name.startswith("--")))
    return names if parameter.is_flag or not parameter.metavar else f"{names} {parameter.metavar}"


def sentence_of(parameter: Any) -> str:
    """Return a sentence about a parameter: its meaning and its default."""
    text, default = parameter.help or "", parameter.default
    if isinstance(parameter.show_default, str):
        return f"{text} [{parameter.show_default}]"
    if parameter.param_type_name == "option" and parameter.required:
        return f"{text} [required]"
    shown = isinstance(default, str | int | float | Path) and not isinstance(default, bool)
    return f"{text} [{default}]" if shown and parameter.show_default else text


def wrapped(text: str, width: int) -> list[str]:
    """Return text as lines.  A default in brackets at the end is kept on one line."""
    start = text.rfind(" [") if text.endswith("]") else len(text)
    whole = text[: start + 1] + text[start + 1 :].replace(" ", "\0")
    return [line.replace("\0", " ") for line in textwrap.wrap(whole, width, break_on_hyphens=False)] or [""]


def listing(rows: Sequence[tuple[str, str]], width: int) -> Iterator[str]:
    """Lay out rows in two columns; the right column is wrapped."""
    left = 2 + max((len(name) for name, _ in rows if len(name) <= NAMES_WIDTH), default=0) + 2
    for name, text in rows:
        lines = wrapped(text, width - left)
        yield f"  {name}" if len(name) > NAMES_WIDTH else f"  {name}".ljust(left) + lines.pop(0)
        yield from (" " * left + line for line in lines)


class Plain:
    """Writes the help of a command: its docstring, then its arguments and options."""

    def format_help(self: Any, context: Any, formatter: Any) -> None:
        width = formatter.width
        parameters = self.get_params(context)
        commands = [(name, self.get_command(context, name)) for name in getattr(self, "commands", {})]
        words = ["COMMAND"] if commands else [each.metavar for each in parameters if each.param_type_name == "argument"]
        usage = " ".join(["Usage:", context.command_path, *words, "[OPTIONS]"])
        blocks = [textwrap.fill(usage, width), *paragraphs(self.help or "", width)]
        rare = [each for each in parameters if getattr(each, "rich_help_panel", None) == RARE]
        parameters.sort(key=lambda each: each.param_type_name != "argument")
        shown = [(names_of(each), sentence_of(each)) for each in parameters if each not in rare]
        blocks.append("\n".join(["Options:", *listing(shown, width)]))
        if commands:
            rows = [(name, first_sentence(command.help)) for name, command in commands]
            blocks.append("\n".join(["Commands:", *listing(rows, width)]))
        if rare:
            names = ", ".join(name for each in rare for name in (*each.opts, *each.secondary_opts))
            text = f"More options, described in {PAGE}: {names}"
            blocks.append(textwrap.fill(text, width, subsequent_indent="    ", break_on_hyphens=False))
        formatter.write("\n\n".join(blocks) + "\n")


class PlainCommand(Plain, TyperCommand):
    """A command whose help fits a screen.  If the command is interrupted, a message says that no file was written."""

    def invoke(self, context: Any) -> Any:
        try:
            return super().invoke(context)
        except KeyboardInterrupt:
            raise output.interrupted() from None


class PlainGroup(Plain, TyperGroup):
    """A group of commands whose help fits a screen."""
