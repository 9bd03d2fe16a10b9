"""From a spec to C, and the proof that the C computes what the host does."""

from pykernel.gen.check import Report, check, mixed_stream
from pykernel.gen.ir import DialectError
from pykernel.gen.project import Generated, Project, build, generate

__all__ = ["DialectError", "Generated", "Project", "Report", "build", "check", "generate", "mixed_stream"]
