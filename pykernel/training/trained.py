"""Make frozen specs of kernel machines that were trained elsewhere."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, get_args

import numpy as np

from pykernel.dialect import PRECISIONS
from pykernel.errors import UserError
from pykernel.spec import kernel_settings
from pykernel.spec.base import require_order
from pykernel.spec.defaults import label_limit
from pykernel.spec.families.int16_scales import in_eight_bits
from pykernel.spec.model import Spec, make_spec, shown_value, visible_name
from pykernel.spec.sections import SQUARED
from pykernel.training.machine import Machine, number_of, pairs

MARGIN = 0.5
"""The range of an input in training is extended on each side by this fraction of the range, because the device refuses
inputs outside the extended range.  In int16, doubling the range costs one of the 15 bits of a count.
"""
ALIKE = 4
"""Inputs without a scaler are treated as inputs of one kind if their joint range is at most this many times the median
of their ranges."""
Limits = float | Sequence[float] | None
"""Limits of the inputs: one number for all inputs, or one for each input."""
Distance = Literal["auto", "differences", "products"]

REACH = 1e6
"""Default limit of the inputs, as a multiple of the largest magnitude in the vectors, in the inputs' own units."""
PRODUCTS, PRODUCTS_DIM = 4.0, 128
""""auto" computes distances by products if gamma |v|^2 is at most PRODUCTS for every vector.  With more than
PRODUCTS_DIM inputs, this limit is divided by sqrt(inputs / PRODUCTS_DIM), because the rounding error also grows with the
number of inputs."""
BOUNDED = ("sigmoid", "fourier", "tanh", "logistic")
"""Functions of x'v whose magnitude is at most 1."""
FILE_LIMIT = 256 * 2**20
"""Maximum unpacked size of a model's file, in bytes.  Flash memories are far smaller."""
EIGHT_DIFFER, EIGHT_CLASSES = 0.01, 0.003
"""Weights of hidden units are rounded to 8 bits if this changes little.  Regression: the root mean square change of the
predictions is at most EIGHT_DIFFER times their standard deviation.  Classification: the predicted class changes for at
most the fraction EIGHT_CLASSES of the rows.
"""


def class_names(classes: Iterable[Any]) -> list[str]:
    """Return names for classes in a spec: the text of each class, or "class" and its position if the text cannot be a
    name.

    Repeated names get an apostrophe.
    """
    names: list[str] = []
    for position, value in enumerate(classes):
        try:
            name = visible_name(str(value))
        except ValueError:
            name = f"class {position}"
        while name in names:
            name += "'"
        names.append(name)
    return names


def to_spec(
    machine: Machine,
    name: str,
    precision: str = "float32",
    max_abs: Limits = None,
    inputs: Sequence[str] | None = None,
    classes: Sequence[str] | None = None,
    distance: Distance = "auto",
    seen: np.ndarray | None = None,
) -> Spec:
    """Return the spec of a frozen model that computes the machine's functions.  Raises UserError."""
    made = content(machine, name, precision, max_abs, inputs, classes, distance, seen)
    return make_spec(made, machine.source, machine.custom)


def content(
    machine: Machine,
    name: str,
    precision: str = "float32",
    max_abs: Limits = None,
    inputs: Sequence[str] | None = None,
    classes: Sequence[str] | None = None,
    distance: Distance = "auto",
    seen: np.ndarray | None = None,
) -> dict[str, Any]:
    """Return the content of the spec that ``to_spec`` makes: nested dictionaries, as in the TOML file.

    seen: rows of inputs, (rows, DIM), which give the range of each input for the precision int16 and for hidden units.
    None: ``machine.seen`` is used, or else the vectors, if these are inputs.
    """
    where = machine.source
    _need_choices(machine, precision, distance)
    signal, int16 = machine.signal, PRECISIONS[precision].is_int16
    if signal is not None:
        max_abs = _limit_of_features(machine, signal, precision, max_abs)
    largest = machine.reach
    if int16:
        machine, ranges = within_ranges(machine, _seen(machine) if seen is None else seen, max_abs)
        machine, distance = compact(machine), "differences" if distance == "auto" else distance
        machine = _rounded_as_good(machine, _seen(machine) if seen is None else seen)
    else:
        machine = rounded(compact(machine), precision)
    if machine.function == "gaussian" and distance == "auto":
        distance, machine = nearer(machine, precision)
    columns = machine.columns if inputs is None else tuple(inputs)
    width = machine.dim if signal is None else signal.width
    if columns is not None and len(columns) != width:
        raise UserError(f"{where}: takes {width} inputs, but {len(columns)} names are given for them")
    if not int16:
        # a network's predictions are arbitrary far from its training data, so the ranges come from the rows ``seen``
        if seen is not None and machine.function in kernel_settings.HIDDEN:
            machine = replace(machine, seen=seen)
        ranges = {"max_abs": _limits(machine, precision, largest, max_abs)}
    label = _label(machine, classes, None if int16 else _seen(machine) if seen is None else seen)
    own = {"inputs": machine.columns or (), "classes": class_names(machine.classes or ())}
    require_order(own, {"inputs": columns or (), "classes": classes or ()}, where, "the list given")
    return {
        "name": name,
        "precision": precision,
        **({} if signal is None else {"signal": _named_signal(signal, columns)}),
        "input": _inputs(machine, columns, ranges, int16, seen),
        **({} if label is None else {"label": label}),
        "kernel": machine.kernel.section(),
        "learning": {"rule": "frozen"},
        "expansion": _expansion(machine, int16) | ({"distance": distance} if distance == "products" else {}),
    }


def nearer_limit(max_abs: float | list[float], most: float, center: Sequence[float] | None) -> float | list[float]:
    """Return [input] max_abs, lowered so that no input beyond ``most`` is accepted."""
    if not isinstance(max_abs, list):
        return min(max_abs, most)
    middle = np.abs(center) if center is not None else np.zeros(len(max_abs))
    return [min(limit, most - c) if most > c else limit for limit, c in zip(max_abs, middle.tolist(), strict=True)]


def _need_choices(machine: Machine, precision: str, distance: str) -> None:
    where = machine.source
    if precision not in PRECISIONS:
        raise UserError(f"{where}: precision is {shown_value(precision)}; it must be one of {', '.join(PRECISIONS)}")
    if distance not in get_args(Distance):
        raise UserError(f"{where}: distance is {shown_value(distance)}; it must be auto, differences or products")
    if distance == "products" and machine.function != "gaussian":
        raise UserError(f"{where}: distance='products' is for Gaussian kernels; this kernel is {machine.function}")


def _inputs(
    machine: Machine, columns: Sequence[str] | None, ranges: dict[str, Any], int16: bool, seen: np.ndarray | None
) -> dict[str, Any]:
    """Return the section [input].  int16: whether the model computes with integers."""
    signal = machine.signal
    section: dict[str, Any] = {}
    if signal is None:
        section = ({"dim": machine.dim} if columns is None else {"columns": list(columns)}) | ranges
    elif int16:  # int16 models need a scale, which is 1 by default; the other keys follow from the signal
        section["scale"] = [1.0] * machine.dim
    section |= lists(center=machine.center, scale=machine.scale)
    if int16 and signal is not None and seen is not None:
        section["max_abs"] = _ranges_of_features(signal, section, seen)
    return section


def _expansion(machine: Machine, int16: bool) -> dict[str, Any]:
    """Return the section [expansion].  int16: whether the model computes with integers."""
    found = lists(
        vectors=machine.vectors,
        weights=machine.weights,
        bias=machine.bias,
        offsets=machine.offsets,
        support_class=machine.support_class,
        calibration=machine.calibration,
    )
    if machine.support_class is not None:
        # integers cannot hold the fractions in ovo_vote, so in int16 the functions are those of the pairs; the
        # predicted classes are the same
        found["decision"] = "ovo" if int16 and machine.decision == "ovo_vote" else machine.decision
        if machine.break_ties:
            found["break_ties"] = True
    return found


def lists(**arrays: np.ndarray | None) -> dict[str, Any]:
    """Return the arrays that are not None as lists for a TOML file."""
    return {name: values.tolist() for name, values in arrays.items() if values is not None}


def _label(machine: Machine, classes: Sequence[str] | None, seen: np.ndarray | None) -> dict[str, Any] | None:
    """Return the section [label], or None if it would be empty.  classes: names of the classes, if given.  seen: inputs for which
    the machine's predictions show how large labels are.
    """
    where = machine.source
    if machine.classes is None:
        if classes is not None:
            raise UserError(f"{where}: predicts numbers, so it has no classes to name; leave out the names")
        limit = {} if seen is None else label_limit(machine.functions(machine.scaled(seen)))
        return machine.label or {**({"outputs": len(machine.bias)} if len(machine.bias) > 1 else {}), **limit} or None
    if classes is not None and len(classes) != len(machine.classes):
        raise UserError(f"{where}: has {len(machine.classes)} classes, but {len(classes)} names are given for them")
    return {"classes": class_names(machine.classes) if classes is None else list(classes)}


def _limit_of_features(machine: Machine, signal: Spec, precision: str, max_abs: Limits) -> float:
    """Return the largest magnitude of a feature, which the signal determines.

    Raises UserError if ``max_abs`` is given, or if the precision differs from the signal's precision.
    """
    where = machine.source
    if precision != signal.precision:
        raise UserError(
            f"{where}: precision is {precision}, but its features are computed in {signal.precision}, and a spec has one "
            f"precision; choose {signal.precision}"
        )
    if max_abs is not None:
        raise UserError(
            f"{where}: takes raw samples, which are limited by max_abs of SignalFeatures or of the spec's [signal]; set max_abs there, "
            "and leave it out here"
        )
    return signal.input_max_abs


def _ranges_of_features(signal: Spec, inputs: Mapping[str, Any], seen: np.ndarray) -> list[float]:
    """Return, for each feature, twice the largest |x - center| in ``seen``, but at most the largest possible magnitude.

    The device clips features to their ranges.
    """
    most = np.array(signal.signal_inputs(inputs)["max_abs"])
    farthest = 2 * np.abs(seen - np.array(inputs.get("center", 0.0))).max(axis=0)
    return np.where(farthest > 0, np.minimum(farthest, most), most).tolist()  # type: ignore[no-any-return]


def _named_signal(signal: Spec, channels: Sequence[str] | None) -> dict[str, Any]:
    """Return the section [signal] with renamed channels."""
    assert signal.signal is not None
    section = signal.signal.model_dump(mode="json", exclude_unset=True)
    if channels is None:
        return section
    if isinstance(features := section.get("features"), dict):
        named = dict(zip(signal.signal.channels, channels, strict=True))
        section["features"] = {named[name]: kinds for name, kinds in features.items()}
    return section | {"channels": list(channels)}


def _rounded_as_good(machine: Machine, seen: np.ndarray | None) -> Machine:
    """Return a machine with 8-bit weights of hidden units if these hardly change the predictions for the rows ``seen``,
    otherwise the given machine.
    """
    if seen is None or machine.function not in kernel_settings.HIDDEN:
        return machine
    smaller = replace(machine, vectors=in_eight_bits(machine.vectors))
    before, after = (each.functions(machine.scaled(seen)) for each in (machine, smaller))
    if machine.classes is None:
        as_good = np.mean((after - before) ** 2) <= EIGHT_DIFFER**2 * np.mean((before - before.mean(axis=0)) ** 2)
    else:
        whole, rounded = (f.argmax(axis=1) if f.shape[1] > 1 else f[:, 0] > 0 for f in (before, after))
        as_good = np.mean(whole != rounded) <= EIGHT_CLASSES
    return smaller if as_good else machine


def _seen(machine: Machine) -> np.ndarray | None:
    """Return inputs that the machine was trained on, or the ranges of these inputs, or None if neither is known."""
    if machine.seen is not None:
        return machine.seen
    return None if machine.linear or machine.function in kernel_settings.HIDDEN else machine.inputs()


def within_ranges(machine: Machine, seen: np.ndarray | None, max_abs: Limits) -> tuple[Machine, dict[str, Any]]:
    """Return a machine with the same functions, whose inputs are centered at the middle of their ranges, and a dict with
    the keys of [input] that hold the ranges.

    Each range is extended by half of the range on each side.  If all values in ``seen`` are integers, as from an ADC,
    the counts are the inputs themselves.
    """
    if max_abs is None and (seen is None or not len(seen)):
        raise UserError(
            f"{machine.source}: int16 needs the range of each input, which this {machine.function} model does not "
            "contain; give max_abs (the largest |x - center| of each input), or rows of data"
        )
    center = machine.centers
    ranges: dict[str, Any] = {}
    if max_abs is None:
        assert seen is not None
        center, margin = _spread(machine, seen)
        if (np.abs(seen - np.rint(seen)) < 1e-6).all() and np.abs(seen).max() < 2**15 - 1:
            # the inputs are counts of 16 bits, so no larger value is possible
            center = np.rint(center)
            margin = np.clip(np.ceil(margin), 1.0, 2**15 - 1 - np.abs(center))
            ranges["resolution"] = 1.0
        else:
            # a range needs no more than three digits
            step = 10.0 ** (np.floor(np.log10(margin)) - 2)
            center = np.rint(center / step) * step
            margin = (np.ceil(margin / step) + 1) * step
        max_abs = [float(f"{value:.6g}") for value in margin]
        center = np.array([float(f"{value:.9g}") for value in center])
    ranges["max_abs"] = np.broadcast_to(np.array(max_abs, float), machine.dim).tolist()
    machine = moved(machine, center)
    if machine.function in kernel_settings.HIDDEN:  # hidden units allow any scale, so use all 16 bits for each input
        most = np.array(ranges["max_abs"])
        machine = replace(machine, vectors=machine.vectors * machine.scales * most, scale=1 / most)
    return machine, ranges


def _spread(machine: Machine, seen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the middle of each input's range, and the largest accepted distance from the middle: half the range, plus
    MARGIN times the range.
    """
    low, high = seen.min(axis=0), seen.max(axis=0)
    wide = (high - low)[high > low]
    if machine.scale is None and (not len(wide) or high.max() - low.min() <= ALIKE * np.median(wide)):
        # if all inputs are of the same kind, such as pixels, each may take any value that was seen in any of them
        low, high = np.full_like(low, low.min()), np.full_like(high, high.max())
    center = (low + high) / 2
    margin = np.maximum(high - low, 1e-6 * np.maximum(np.abs(center), 1.0)) * (0.5 + MARGIN)
    # an input that hardly changed may change more later, so its range is at least half of the largest range, in scaled
    # units
    scale = np.abs(machine.scales)
    least = 0.5 * (margin * scale).max() / scale
    if (
        machine.scale is None and machine.function in kernel_settings.HIDDEN
    ):  # without a scaler, inputs in different units have different ranges
        least = np.where(high > low, 0.0, least)
    return center, np.maximum(margin, least)


def _limits(machine: Machine, precision: str, largest: float, max_abs: Limits) -> float | list[float]:
    """Return [input] max_abs of a floating-point model: the given limits, or a range for each input.

    Far from its vectors, a kernel machine predicts its bias, and a polynomial predicts arbitrary values, so the device
    must refuse inputs that are far from the vectors.  Linear functions and machines without ``seen`` get one limit, far
    above the largest magnitude in the vectors.  Features of a signal have the given limit.
    """
    if isinstance(max_abs, Sequence):
        values = [number_of(value, machine.source, "max_abs") for value in max_abs]
        if len(values) != machine.dim or min(values) <= 0:
            raise UserError(
                f"{machine.source}: max_abs must be one number above 0, or {machine.dim} such numbers, one for each input"
            )
        input_max_abs(machine, precision, largest, float((np.array(values) + np.abs(machine.centers)).max()))
        return values
    most = input_max_abs(machine, precision, largest, max_abs)
    if max_abs is not None or machine.linear or machine.signal is not None or machine.seen is None:
        return most
    known = machine.seen[np.isfinite(machine.seen).all(axis=1)]
    if len(known) < 2:
        return most
    middle, margin = _spread(machine, known)
    limits = margin + np.abs(middle - machine.centers)
    step = 10.0 ** (np.floor(np.log10(limits)) - 2)
    limits = np.ceil(limits / step) * step
    return most if (limits + np.abs(machine.centers) > most).any() else [float(f"{each:.6g}") for each in limits]


def moved(machine: Machine, center: np.ndarray) -> Machine:
    """Return a machine with the same functions and another center of the inputs, or the given machine if its kernel does
    not allow this.
    """
    own, scale = machine.centers, machine.scales
    if machine.linear:
        machine = collapsed(machine)
        bias = machine.bias + machine.columns_of_weights().T @ (machine.vectors * scale) @ (center - own)
        return replace(machine, bias=bias, center=center)
    if machine.function in kernel_settings.UNIT:
        return replace(machine, vectors=machine.vectors - (center - own) * scale, center=center)
    if machine.function in kernel_settings.HIDDEN:
        return replace(machine, offsets=shifted(machine, (machine.vectors * scale) @ (center - own)), center=center)
    return machine


def centered(machine: Machine, x: np.ndarray) -> Machine:
    """Return a machine with the same functions and the mean of the rows of x as the center, so that the center can replace
    missing inputs.  If the machine already has a center, is linear, or has a kernel that does not allow this, it is
    returned unchanged.
    """
    return machine if machine.center is not None or machine.linear else moved(machine, x.mean(axis=0))


def compact(machine: Machine) -> Machine:
    """Return a machine with the same functions and fewer vectors.

    Linear kernels, and polynomials of degree 1, get one vector for each function. For other kernels, vectors of weight
    zero are removed, and equal vectors (of the same class, if there is a support_class) are merged.
    """
    if machine.linear:
        return collapsed(machine)
    support_class = machine.support_class if machine.support_class is not None else np.zeros(len(machine.vectors), int)
    rows, first, inverse = np.unique(
        np.column_stack([support_class, machine.shifts, machine.vectors + 0.0]),
        axis=0,
        return_index=True,
        return_inverse=True,
    )
    weights = np.zeros((len(rows), machine.weights.shape[1]))
    np.add.at(weights, inverse.ravel(), machine.weights)
    keep = np.flatnonzero(weights.any(axis=1))
    keep = keep[np.argsort(first[keep])]  # in their original order
    if not len(keep):  # the functions are constant; keep one vector, because a table cannot be empty
        return replace(
            machine,
            vectors=np.zeros((1, machine.dim)),
            weights=np.zeros((1, weights.shape[1])),
            support_class=None if machine.support_class is None else np.zeros(1, int),
            offsets=None,
        )
    first = first[keep]
    return replace(
        machine,
        vectors=machine.vectors[first],
        weights=weights[keep],
        support_class=None if machine.support_class is None else machine.support_class[first],
        offsets=None if machine.offsets is None else machine.offsets[first],
    )


def collapsed(machine: Machine) -> Machine:
    """Return a linear machine with one vector for each function: the function's weights for the inputs.

    In machines for pairs of classes, the vector of pair (i, j) belongs to class i, and has weight 0 in all other pairs.
    """
    columns = machine.columns_of_weights()
    slope, offset = (1.0, 0.0) if machine.function == "linear" else (machine.gamma, machine.coef0)
    vectors = slope * columns.T @ machine.vectors
    bias = machine.bias + offset * columns.sum(axis=0)
    weights, support_class = np.eye(len(bias)), None
    if machine.support_class is not None:
        count = machine.weights.shape[1] + 1
        support_class = np.array([i for i, _ in pairs(count)])
        weights = np.eye(count - 1)[[j - 1 for _, j in pairs(count)]]
    return replace(
        machine, function="linear", vectors=vectors, weights=weights, bias=bias, support_class=support_class,
        gamma=1.0, coef0=0.0, degree=1,
    )  # fmt: skip


def rounded(machine: Machine, precision: str) -> Machine:
    """Return a machine with the same functions, and with a center and a scale that the precision can represent.

    The rounding errors of center and scale are compensated in the vectors and the bias.  Without this compensation, the
    rounding error of the center would change every distance if inputs are far from zero.  For polynomial and sigmoid
    kernels, only the error of the scale can be compensated, and the center is not rounded.  For kernels of a distance,
    normalised kernels and custom kernels, the vectors are transformed in the same way as inputs.
    """
    if machine.center is None and machine.scale is None:
        return machine
    exact, exact_scale = machine.centers, machine.scales
    with np.errstate(over="ignore", under="ignore"):
        center, scale = (
            values.astype(PRECISIONS[precision].dtype).astype(np.float64) for values in (exact, exact_scale)
        )
    if not np.isfinite(center).all() or not (np.isfinite(scale) & (scale != 0)).all():
        raise UserError(
            f"{machine.source}: {precision} cannot represent the numbers by which the inputs are shifted or scaled; use float64"
        )
    lost = exact - center
    vectors, bias, offsets = machine.vectors * (exact_scale / scale), machine.bias, machine.offsets
    if machine.function in (*kernel_settings.UNIT, "custom") or machine.normalise:
        vectors = (machine.vectors / exact_scale + lost) * scale
    elif machine.function == "linear":
        bias = bias - machine.columns_of_weights().T @ (machine.vectors * scale) @ lost
    elif machine.function in kernel_settings.HIDDEN:
        offsets = shifted(machine, -(machine.vectors * exact_scale) @ lost)
    else:
        center = exact
    return replace(
        machine,
        vectors=vectors,
        bias=bias,
        offsets=offsets,
        center=center if center.any() else None,
        scale=scale if (scale != 1).any() else None,
    )


def shifted(machine: Machine, by: np.ndarray) -> np.ndarray:
    """Return the offsets of the hidden units plus ``by``.  The unit of "fourier" offsets is one turn, so these offsets are
    reduced modulo 1.
    """
    moved = machine.shifts + by
    return np.remainder(moved, 1.0) if machine.function == "fourier" else moved


def nearer(machine: Machine, precision: str) -> tuple[Distance, Machine]:
    """Choose how the device computes distances; return the choice, and the machine adapted to it.  Products are used if
    the rounding error is small enough.

    |x|^2 + |v|^2 - 2 x'v loses digits in proportion to gamma |v|^2.  If the vectors lie far from zero but near each
    other, the middle of their range becomes the center.
    """
    most = PRODUCTS / max(1.0, math.sqrt(machine.dim / PRODUCTS_DIM))

    def small(vectors: np.ndarray) -> bool:
        return bool(machine.gamma * np.square(vectors).sum(axis=1).max() <= most)

    if small(machine.vectors):
        return "products", machine
    center, scale = machine.centers, machine.scales
    middle = center + (machine.vectors.max(axis=0) + machine.vectors.min(axis=0)) / 2 / scale
    middle = middle.astype(PRECISIONS[precision].dtype).astype(np.float64)
    vectors = machine.vectors - (middle - center) * scale
    if small(vectors):
        return "products", replace(machine, vectors=vectors, center=middle)
    return "differences", machine


def input_max_abs(machine: Machine, precision: str, largest: float, limit: float | None) -> float:
    """Return a limit for the inputs that prevents overflow: the given limit, or a limit far above the largest magnitude
    in the vectors.
    """
    where = machine.source
    if machine.function == "custom" and limit is None:
        raise UserError(
            f"{where}: max_abs must be given with a custom kernel: max_value bounds the kernel only for inputs within max_abs"
        )
    room = kernel_settings.largest(precision)

    def fits(max_abs: float) -> bool:
        return _largest_step(machine, max_abs) <= room and max_abs <= SQUARED.ends(precision)[1]

    if limit is not None:
        max_abs = number_of(limit, where, "max_abs")
        if not max_abs > 0:
            raise UserError(f"{where}: max_abs is {max_abs:g}; it must be above 0")
        if fits(max_abs):
            return max_abs
    # the weights of hidden units say nothing about the size of the inputs
    usual = REACH if machine.function in kernel_settings.HIDDEN else largest or 1.0
    wanted = REACH * usual if limit is None else limit
    low, high = -300.0, math.log10(wanted)
    if not fits(10**high):
        if not fits(10**low):
            raise UserError(
                f"{where}: its parameters are so large that {precision} can overflow for any input; scale the data and fit the "
                "model again"
            )
        while high - low > 1e-3:
            middle = (low + high) / 2
            low, high = (middle, high) if fits(10**middle) else (low, middle)
        high = low
    # round down to two digits
    exponent = math.floor(high) - 1
    max_abs = float(f"{math.floor(10 ** (high - exponent) * (1 + 1e-12))}e{exponent}")
    if limit is not None:
        raise UserError(
            f"{where}: max_abs is {limit:g}, but {precision} can overflow for inputs of that size; choose max_abs of at most {max_abs:g}"
            + (", or use float64" if precision == "float32" else "")
        )
    if max_abs < largest:
        raise UserError(
            f"{where}: could overflow {precision} if every input were as large as {largest:g}, the largest expected magnitude; "
            f"{'use float64, or ' if precision == 'float32' else ''}scale the inputs to similar ranges before the model"
        )
    return max_abs


def _largest_step(machine: Machine, max_abs: float) -> float:
    """Return the largest magnitude of an intermediate result, for inputs up to max_abs."""
    center, scale = np.abs(machine.centers), np.abs(machine.scales)
    v, weights = np.abs(machine.vectors).max(axis=0), np.abs(machine.weights).sum(axis=0).max()
    # votes add up several functions, and a probability multiplies one of them
    several = len(machine.bias) * max(1.0, 0.0 if machine.calibration is None else np.abs(machine.calibration).max())
    with np.errstate(over="ignore", invalid="ignore"):
        reach, value = (max_abs + center) * scale, 1.0
        if machine.function in kernel_settings.UNIT:
            far = np.sum(reach + v if machine.function == "laplacian" else (reach + v) ** 2)
            factor = machine.gamma * (3 if machine.function in ("gaussian", "laplacian") else 1)
            # with products, the distance is doubled and divided by ln 2
            steps = [far, factor * (np.sqrt(far) if machine.function in kernel_settings.MATERN else far)]
        else:
            # normalised kernels also compute k(x, x) and k(v, v)
            far = np.sum(np.maximum(reach, v) ** 2 if machine.normalise else reach * v)
            argument = machine.gamma * far + abs(machine.coef0) + np.abs(machine.shifts).max(initial=0.0)
            if machine.function == "custom":
                value = machine.max_value or 1.0
            elif machine.function not in BOUNDED:
                value = np.float64(max(1.0, argument)) ** machine.degree
            steps = [far, argument, value]
            if machine.normalise:
                steps, value = [*steps, value * value], 1.0
        return float(max(*steps, several * (weights * value + np.abs(machine.bias).max())))
