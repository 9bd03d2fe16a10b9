"""Descriptions of a spec in plain words, for headers, manifests and error messages."""

from __future__ import annotations

from pykernel.spec.base import Spec

REMEDIES = {
    "L_MAX": "lower [learning] samples",
    "P_MAX": "give fewer basis vectors",
    "N_MAX": "lower n_max, or choose a technique without a matrix",
    "COMPONENTS": "lower components, or use fewer inputs",
}
"""Extent of a model -> how to make the model smaller."""


def summary(spec: Spec) -> str:
    """Return one line that describes a model."""
    labels = len(spec.label.classes) if spec.label.classes else spec.outputs
    task = {
        "real": "regression",
        "reals": f"regression of {labels} labels",
        "class": f"classifier of {labels} classes",
        "none": "model without labels",
    }
    what, rule = task[spec.inner.program.label_kind], spec.learning.rule
    if spec.signal is not None:
        around = "forecast of a channel" if spec.forecasts else what
        count = len(spec.signal.channels)
        channels = f"{count} raw channel{'' if count == 1 else 's'}"
        return f"{summary(spec.inner).replace(what, around)}, on features of {channels}"
    kind = spec.family.rules[rule]
    if not spec.program.learns:
        return f"a {kind} {what} that was learned elsewhere ({rule})"
    if any(entry.kind == "training" for entry in spec.program.entries_for(spec.config)):
        return f"a {kind} {what} that is trained on the device ({rule})"
    if (regimes := spec.capacities.get("COMPONENTS")) is not None:
        rate = spec.novelty.false_alarm_rate
        return f"a monitor of {regimes} Gaussians ({rule}) with a false-alarm rate of {rate:g}"
    if "N_MAX" not in spec.capacities:
        return f"a {kind} {what} that learns online ({rule})"
    within = f"that learns within {spec.capacities['N_MAX']} expansion vectors"
    return f"an online {kind} {what} ({rule}) {within}" + (
        f" ({spec.reduction.technique})" if spec.has("reduction", "technique") else ""
    )


def less_memory(spec: Spec) -> str:
    """Return a phrase that says which keys to change so that the model takes less memory."""
    known = [remedy for capacity, remedy in REMEDIES.items() if capacity in spec.capacities]
    return known[0] if known else "use fewer inputs or features, or a rule without a matrix"
