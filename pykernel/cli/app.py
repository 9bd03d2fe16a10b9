"""The program ``pykernel``: it assembles the commands and handles their errors.

Modules that are slow to import are imported only by the commands that need them.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import typer

from pykernel.cli.commands import show
from pykernel.cli.face import command
from pykernel.cli.help import PlainCommand, PlainGroup
from pykernel.cli.output import BAD_INPUT, FAILED, INTERRUPTED, OK, UNREAD, say
from pykernel.errors import UNWRITTEN, CheckFailed, UserError
from pykernel.parallel import collect_seldom
from pykernel.request.option import hint_for
from pykernel.workflows.requests import COMMANDS

UsageError = typer.BadParameter.__base__  # click's UsageError, or typer's copy of it

app = typer.Typer(
    cls=PlainGroup,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback(invoke_without_command=True)
def pykernel(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.", is_eager=True)] = False,
) -> None:
    """Kernel models that keep learning on a microcontroller, in fixed memory.

    A spec, a small TOML file, describes a model. Try the model on recorded data, generate its C code, and check that this
    code computes the same bytes as the simulation:

        pykernel simulate spec.toml data.csv
        pykernel generate spec.toml -o out/
        pykernel check spec.toml

    Exit codes: 0 done, 1 the check failed, 2 bad input (see the message on standard error).
    """
    if version:
        from importlib.metadata import version as installed

        print(f"pykernel {installed('pykernel-mcu')}")
    elif context.invoked_subcommand is None:
        print(context.get_help(), end="")


state_app = typer.Typer(cls=PlainGroup, context_settings={"help_option_names": ["-h", "--help"]})


@state_app.callback()
def state() -> None:
    """Show, convert or merge learned states that devices have saved, or replay a device's log.

    A snapshot is a state that NAME_save has written to a buffer, or NAME_store to a slot. A snapshot has
    NAME_SNAPSHOT_BYTES bytes.

        pykernel state show spec.toml state.bin
    """


groups = {"": app, "state": state_app}
app.add_typer(state_app, name="state")
for called, kind in COMMANDS.items():
    group, _, name = called.rpartition(" ")
    groups[group].command(name, cls=PlainCommand)(command(kind, functools.partial(show, called)))


@functools.cache
def assembled() -> Any:
    """Return the program with all its commands and options.  A process that runs several commands assembles the program
    only once."""
    return typer.main.get_command(app)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command, and exit with 0, 1 (check failed), 2 (bad input), 130 (interrupted) or 141 (output not read)."""
    if arguments is None:  # this process runs only this command
        collect_seldom()
    sys.exit(
        run(
            lambda: assembled()(
                args=None if arguments is None else list(arguments), prog_name="pykernel", standalone_mode=False
            )
        )
    )


def meant(context: Any, option: str | None, message: str) -> str:
    """Return the message about an unknown option or command.

    If another command has this option, or the command is a subcommand, the message says what to use instead.
    """
    if option is None:
        whole = next(
            (name for name in COMMANDS if message.startswith(f"No such command '{name.partition(' ')[2]}'")), None
        )
        return f"{message.split('. ')[0]}; it is {whole}" if whole else message
    kind = COMMANDS.get(context.command_path.partition(" ")[2])
    said = kind and hint_for(kind, option)
    return f"No such option: {option}; {said}" if said else message


def run(command: Callable[[], Any]) -> int:
    try:
        code = command() or OK
        sys.stdout.flush()
        return code
    except (UserError, CheckFailed) as error:
        say("error", str(error))
        return FAILED if isinstance(error, CheckFailed) else BAD_INPUT
    except UsageError as error:  # type: ignore[misc]
        context = getattr(error, "ctx", None)
        where = context.command_path if context else "pykernel"
        message = error.format_message().rstrip(".")
        if context is not None:
            message = meant(context, getattr(error, "option_name", None), message)
        say("error", f"{message}{' See' if message.endswith('?') else '; see'} {where} --help")
        return BAD_INPUT
    except (KeyboardInterrupt, typer.Abort) as error:
        if isinstance(error.__cause__, EOFError):  # typer treats EOFError as the end of typed input
            say("error", f"a file ends too early: {error.__cause__ or 'it holds less than its header says'}")
            return BAD_INPUT
        say("error", f"interrupted{UNWRITTEN}")
        return INTERRUPTED
    except (BrokenPipeError, SystemExit):  # the reader of our output has ended; rich and typer raise SystemExit then
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return UNREAD
    except OSError as error:
        say("error", f"{error.filename or 'the system'}: {error.strerror or error}")
        return BAD_INPUT
