"""How ``--help`` looks: plain text that fits a screen of 80 columns and 40 lines, without boxes."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from typer.core import TyperCommand, TyperGroup

PAGE = "docs/commands.md"
"""Says more of every command, and describes the options that are only named here."""
RARE = "rare"
"""The panel of options that ``--help`` only names."""
NAMES_WIDTH = 27
"""Of the column with an option's names; longer ones have a line of their own."""


def paragraphs(text: str, width: int) -> Iterator[str]:
    """Text as lines: what is indented stays as it is, all else is wrapped.  Lists (lines with a colon) keep their lines."""
    for block in inspect.cleandoc(text).split("\n\n"):
        if block.startswith("    "):
            yield block
        else:
            yield textwrap.fill(" ".join(block.split()), width)


def first_sentence(text: str | None) -> str:
    """What a list of commands says of one."""
    return " ".join((text or "").split("\n\n")[0].split()).split(". ")[0].rstrip(".") + "."


def names_of(parameter: Any) -> str:
    """--name, -n VALUE"""
    if parameter.param_type_name == "argument":
        return str(parameter.metavar)
    names = ", ".join((*parameter.opts, *parameter.secondary_opts))
    return names if parameter.is_flag or not parameter.metavar else f"{names} {parameter.metavar}"


def sentence_of(parameter: Any) -> str:
    """What it means, and what holds without it."""
    text, default = parameter.help or "", parameter.default
    if isinstance(parameter.show_default, str):
        return f"{text} [{parameter.show_default}]"
    if parameter.param_type_name == "option" and parameter.required:
        return f"{text} [required]"
    shown = isinstance(default, str | int | float | Path) and not isinstance(default, bool)
    return f"{text} [{default}]" if shown and parameter.show_default else text


def listing(rows: Iterable[tuple[str, str]], width: int) -> Iterator[str]:
    """Two columns; the right one is wrapped."""
    for name, text in rows:
        lines = textwrap.wrap(text, width - NAMES_WIDTH - 2) or [""]
        if len(name) >= NAMES_WIDTH:
            yield f"  {name}"
        else:
            yield f"  {name:<{NAMES_WIDTH}}{lines.pop(0)}"
        yield from (" " * (NAMES_WIDTH + 2) + line for line in lines)


class Plain:
    """Writes the help of a command; its docstring first, then its arguments and options."""

    def format_help(self: Any, context: Any, formatter: Any) -> None:
        width = formatter.width
        usage = f"Usage: {context.command_path} {' '.join(self.collect_usage_pieces(context))}"
        blocks = [textwrap.fill(usage, width, subsequent_indent="    "), *paragraphs(self.help or "", width)]
        given = [each for each in self.get_params(context) if not getattr(each, "hidden", False)]
        rare = [each for each in given if getattr(each, "rich_help_panel", None) == RARE]
        shown = [(names_of(each), sentence_of(each)) for each in given if each not in rare]
        blocks.append("\n".join(["Options:", *listing(shown, width)]))
        commands = [(name, self.get_command(context, name)) for name in getattr(self, "commands", {})]
        if commands:
            rows = [(name, first_sentence(command.help)) for name, command in commands]
            blocks.append("\n".join(["Commands:", *listing(rows, width)]))
        if rare:
            names = ", ".join(name for each in rare for name in (*each.opts, *each.secondary_opts))
            text = f"More options, which {PAGE} describes: {names}"
            blocks.append(textwrap.fill(text, width, subsequent_indent="    ", break_on_hyphens=False))
        formatter.write("\n\n".join(blocks) + "\n")


class PlainCommand(Plain, TyperCommand):
    """A command whose help fits a screen."""


class PlainGroup(Plain, TyperGroup):
    """A group of commands whose help fits a screen."""
