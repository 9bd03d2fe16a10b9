"""The three engines, which compute the same bits.

    executor = make_executor(roots, memory, config)
    executor.rows(x, statuses, ask=predict, answers=answers, learn=update, y=y)
    status = executor.call(refresh)

"llvm" is the default, because it starts within a second.  "numba" is the reference of ``pykernel check``.  "python"
executes the Python source, and raises an error for operations that are undefined in C, such as an index outside an
array.
"""

from __future__ import annotations

from collections.abc import Sequence

from pykernel.dialect import Kernel, Memory, is_choice
from pykernel.dialect.program import Program, Settings
from pykernel.engine.choice import Engine, chosen_engine
from pykernel.engine.executor import Choices, Executor
from pykernel.engine.jitted import Jitted
from pykernel.engine.llvm import Compiled, compiled
from pykernel.engine.plain import Plain


def make_executor(roots: Sequence[Kernel], memory: Memory, config: Settings, engine: Engine | None = None) -> Executor:
    """Return an executor for these kernels.

    Code is compiled once for each set of choices and each precision, and stored for this user.  The same code runs
    models of all sizes and with all parameters.  engine: None means ``chosen_engine()``.  Raises DialectError for a
    kernel that the dialect does not allow; the engine "python" does not check this.
    """
    engine = engine or chosen_engine()
    if engine == "python":
        return Plain(memory, config)
    if engine == "numba":
        return Jitted(tuple(roots), choices_of(config), memory, config)
    return Compiled(compiled(tuple(roots), choices_of(config), memory.precision), memory, config)


def program_executor(program: Program, memory: Memory, config: Settings, engine: Engine | None = None) -> Executor:
    """Return an executor for all entries that the configuration has, and for the program's kernel ``valid``."""
    entries = [entry.kernel for entry in program.entries_for(config)]
    return make_executor([*entries, *([program.valid] if program.valid else [])], memory, config, engine)


def choices_of(config: Settings) -> Choices:
    """Return the name and value of each choice of the configuration."""
    kinds = {name: kind for each in config.views for name, kind in each.fields.items()}
    return tuple((name, int(getattr(config, name))) for name, kind in kinds.items() if is_choice(kind))
