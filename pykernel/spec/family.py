"""What a family of models brings to a spec: its rules, its checks and the parameters of its kernels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

from pykernel.dialect.program import LabelKind, Program

if TYPE_CHECKING:
    from pykernel.spec.model import Spec

STATE_LIMIT = 64 * 2**20
"""Most bytes of one model; no microcontroller has more, and a typing error should not fill a PC's memory."""

Refuse = Callable[[str, str], NoReturn]
"""Called with where, such as "[learning] eta", and what is wrong there and would be right."""


class Family(Protocol):
    """Models that share a program."""

    rules: tuple[str, ...]
    programs: Mapping[LabelKind, Program]
    online: bool  # whether choose and plan compare them: models that learn sample by sample, from raw inputs

    def why_ignored(self, spec: Spec, section: str, key: str) -> str | None:
        """Why a key that was given means nothing for this model; None if it does mean something."""

    def validate(self, spec: Spec, refuse: Refuse) -> None:
        """Refuse what cannot be computed."""

    def capacities(self, spec: Spec) -> dict[str, int]:
        """Values of the extents."""

    def size_bound(self, spec: Spec) -> int:
        """About how many numbers the memory holds, from above."""

    def parameters(self, spec: Spec) -> dict[str, Any]:
        """Values of the config's fields, in float64."""


AT_ONCE = {
    "input": ("center", "scale"),
    "learning": ("ridge", "samples"),
    "expansion": ("vectors", "weights", "bias", "decision", "support_class", "break_ties", "calibration", "distance"),
}
"""Keys of models that are trained at once, on the device or elsewhere."""


def unused_online(rule: str, section: str, key: str) -> str | None:
    """Why a key means nothing for a rule that learns sample by sample."""
    if key in AT_ONCE.get(section, ()):
        return f"is of krr, ls-svm, kfd and frozen models; {rule} learns sample by sample: leave it out"
    return None
