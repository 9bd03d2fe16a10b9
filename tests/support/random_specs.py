"""Random specs over the whole language: every rule, every key, and values near every limit.

A spec begins as a rule's least one.  Keys are then changed one after the other, to any value that their declaration
allows; what ``make_spec`` refuses is pushed towards what it accepts, so that many values are the last accepted ones.
Which keys there are is read off the declarations: a new key is tried without a change here.
"""

from __future__ import annotations

import copy
import functools
import math
import types
from collections.abc import Callable, Iterator
from typing import Any, Literal, Union, get_args, get_origin

import numpy as np

from pykernel.algorithms.online.techniques import TECHNIQUES
from pykernel.errors import UserError
from pykernel.spec.families import nystrom
from pykernel.spec.families.expansion import EXPANSION_MODELS
from pykernel.spec.kernel_settings import HIDDEN
from pykernel.spec.model import Spec, declared, int16_rules, make_spec, rules
from pykernel.spec.sections import KernelFunctionName, fields_of

Content = dict[str, Any]

RULES: tuple[str, ...] = tuple(rules())
INT16_RULES: tuple[str, ...] = tuple(int16_rules())
"""Those of precision int16."""
CONTINUED: tuple[str, ...] = tuple(rule for family in EXPANSION_MODELS for rule in family.rules)
FUNCTIONS = tuple(name for name in get_args(KernelFunctionName) if name != "custom")
LARGEST = 12
"""Most expansion vectors, rows and features: what is small is quick, and full soon."""
SHAPES = {
    "columns",
    "column",
    "outputs",
    "classes",
    "dim",
    "vectors",
    "weights",
    "bias",
    "support_class",
    "calibration",
    "offsets",
}
"""Keys that say how much there is; they belong together, and ``_least`` chooses them."""
ELSEWHERE = {"rule", "function", "source", "kernel", "max_value", "decision", "method"}
COUNTS = {
    "n_max": LARGEST,
    "components": LARGEST // 2,
    "samples": 2 * LARGEST,
    "features": LARGEST,
    "warmup": 40,
    "horizon": 100,
}


def random_spec(
    rng: np.random.Generator, rule: str | None = None, changes: int | None = None, precision: str | None = None
) -> Spec:
    """One spec that is accepted; precision: a random one of reals, if not given."""
    spec = _accepted(random_content(rng, rule, changes, precision))
    assert spec is not None
    return spec


def random_content(
    rng: np.random.Generator, rule: str | None = None, changes: int | None = None, precision: str | None = None
) -> Content:
    """The content of ``random_spec``, as a person would write it."""
    while True:
        content = _least(rng, rule or str(rng.choice(RULES)))
        if precision is not None:
            content["precision"] = precision
        if precision == "int16":  # so that it may have a center
            content["input"]["max_abs"] = np.broadcast_to(content["input"]["max_abs"], content["input"]["dim"]).tolist()
        if _accepted(content) is not None:
            break
    return accepted_changes(rng, content, int(rng.integers(0, 10)) if changes is None else changes)


def accepted_changes(rng: np.random.Generator, content: Content, wanted: int) -> Content:
    """The content with so many changes that ``make_spec`` takes."""
    for _ in range(4 * wanted):
        if wanted == 0:
            break
        changed = _changed(rng, content)
        wanted -= changed != content
        content = changed
    return content


def with_many_keys(rng: np.random.Generator, content: Content, wanted: int) -> Content:
    """The content with so many keys more, if ``make_spec`` takes them; those that need another are tried again."""
    known = keys(content.get("learning", {}).get("rule"), content.get("precision") == "int16")
    for _ in range(2):
        for i in rng.permutation(len(known)):
            if wanted == 0:
                return content
            if known[i][1] in content.get(known[i][0], {}):
                continue
            changed = changed_at(rng, content, *known[i])
            wanted -= changed != content
            content = changed
    return content


def content_of(spec: Spec) -> Content:
    """What a file would hold of a spec."""
    return spec.model_dump(exclude_unset=True)


def _accepted(content: Content) -> Spec | None:
    try:
        return make_spec(content)
    except UserError:
        return None


# ------------------------------------------------------------------------------------------------ where it begins


def _least(rng: np.random.Generator, rule: str) -> Content:
    dim = int(rng.choice([1, 1, 2, 3, 3, 5, 8]))
    content: Content = {
        "name": "m",
        "precision": str(rng.choice(["float32", "float32", "float64"])),
        "input": {"dim": dim, "max_abs": rng.uniform(1, 10, dim).tolist() if rng.random() < 0.3 else 10.0},
        "learning": {"rule": rule},
    }
    label, functions, classes = _label(rng, rule)
    if label:
        content["label"] = label
    if rule in declared("kernel"):
        content["kernel"] = _kernel(rng, rule)
    if rule in declared("reduction", "n_max"):
        content["reduction"] = {"n_max": int(rng.integers(1, LARGEST + 1))}
    if rule in declared("reduction", "technique"):
        content["reduction"] |= {"technique": str(rng.choice(list(TECHNIQUES))), "force": True}
        if rule in ("krls-t", "fb-krls"):
            content["reduction"]["projection"] = "klms"
    if rule == "okfeb":
        content["learning"]["features"] = int(rng.integers(1, content["reduction"]["n_max"] + 1))
    if rule == "gmm":
        content["learning"]["components"] = int(rng.integers(2, 6))
        content["novelty"] = {"warmup": int(rng.integers(2, 40)), "relearn_after": int(rng.integers(2, 30))}
        life = str(rng.choice(["known", "fixed", "changing"]))
        content["novelty"] |= {"life": life} | ({} if life == "changing" else {"commissioning": int(rng.integers(30))})
    if rule in ("krr", "ls-svm"):
        content["learning"]["samples"] = int(rng.integers(2, 2 * LARGEST))
    method = str(rng.choice(list(nystrom.METHODS))) if rule == "nystrom-rls" else None
    if method is not None:
        content["basis"] = {"method": method}
        content["learning"]["samples"] = int(rng.integers(2, 4) * content["reduction"]["n_max"] + 2)
        if method == "given":
            del content["reduction"], content["learning"]["samples"]
    if rule in ("frozen", "nystrom", "kfd", *CONTINUED) or method == "given":
        content["expansion"] = _expansion(rng, rule, dim, functions, classes)
        if rule == "nystrom" and "weights" not in content["expansion"]:
            content["label"] = {"outputs": len(content["expansion"]["vectors"])}
    return _staged(rng, rule, content) if label and not classes and rng.random() < 0.4 else content


def _staged(rng: np.random.Generator, rule: str, content: Content) -> Content:
    """The content with some of the stages that the rule can have; one key at a time seldom leads to several."""
    for key in ("center", "gain"):
        if rule in declared("label", key) and rng.random() < 0.6:
            content["label"] |= {key: True}
    if rule in declared("input", "standardise"):
        content["input"] |= {"standardise": True, "warmup": int(rng.integers(1, 20))}
    if rule in declared("linear") and rng.random() < 0.6:
        content["linear"] = {}
    return content


def _label(rng: np.random.Generator, rule: str) -> tuple[Content, int, int]:
    """A label section, how many functions it takes, and how many classes there are."""
    if rule == "gmm":
        return {}, 1, 0
    kind = str(rng.choice(["one", "several", "two classes", "classes"]))
    if rule == "okfeb" and rng.random() < 0.5:
        return {}, 1, 0
    if rule in ("kfd", "spectrum-softmax", "expansion-softmax") and "classes" not in kind:
        kind = "classes"
    if kind == "one":
        return {"column": "y", "max_abs": 5.0}, 1, 0
    if kind == "several":
        outputs = int(rng.integers(2, 4))
        return {"outputs": outputs, "max_abs": 5.0}, outputs, 0
    classes = 2 if kind == "two classes" else int(rng.integers(3, 5))
    return {"classes": [f"c{i}" for i in range(classes)]}, 1 if classes == 2 else classes, classes


def _kernel(rng: np.random.Generator, rule: str) -> Content:
    known = [name for name in FUNCTIONS if name not in HIDDEN or rule in ("frozen", *CONTINUED)]
    function = str(rng.choice(known)) if rng.random() < 0.6 else "gaussian"
    kernel: Content = {"function": function}
    if function == "gaussian" and rng.random() < 0.7:
        kernel["sigma"] = float(rng.uniform(0.3, 3))
    elif function not in ("linear", *HIDDEN):
        kernel["gamma"] = float(rng.uniform(0.02, 0.5))
    if function in ("polynomial", "linear") and rng.random() < 0.4:
        kernel["normalise"] = True
    return kernel


def _expansion(rng: np.random.Generator, rule: str, dim: int, functions: int, classes: int) -> Content:
    count = int(rng.integers(1, LARGEST))
    made: Content = {"vectors": rng.normal(size=(count, dim)).tolist()}
    bare = (rule == "nystrom" and not classes) or rule in CONTINUED
    if rule not in ("frozen", "nystrom", *CONTINUED) or (bare and rng.random() < 0.3):
        return made
    decision = str(rng.choice(["functions", "ovo", "ovo_vote"])) if rule == "frozen" and classes > 2 else "functions"
    pairs = decision != "functions"
    made["weights"] = rng.normal(size=(count, classes - 1 if pairs else functions)).tolist()
    made["bias"] = rng.normal(size=classes * (classes - 1) // 2 if pairs else functions).tolist()
    if pairs:
        made |= {"decision": decision, "support_class": sorted(rng.integers(0, classes, count).tolist())}
    elif classes and rule != "nystrom" and rng.random() < 0.5:
        made["calibration"] = rng.normal(size=(functions, 2)).tolist()
    return made


# --------------------------------------------------------------------------------------------------- one change


@functools.cache
def keys(rule: str | None, whole: bool) -> list[tuple[str, str, Any]]:
    """Every key that a change may set, of one rule or of all: section, name, declaration."""
    families = int16_rules() if whole else rules()
    named = [rule] if rule is not None else list(families)
    found = {
        (section, name): field
        for each in named
        for section, name, field in fields_of(families[each].spec, each)
        if name is not None and (name not in SHAPES | ELSEWHERE or (section == "label" and name == "weights"))
    }
    return [(section, name, field) for (section, name), field in found.items()]


def _changed(rng: np.random.Generator, content: Content) -> Content:
    """The content with one more key, or the key at another value; unchanged if nothing was accepted."""
    known = keys(content.get("learning", {}).get("rule"), content.get("precision") == "int16")
    return changed_at(rng, content, *known[int(rng.integers(len(known)))])


def changed_at(rng: np.random.Generator, content: Content, section: str, name: str, field: Any) -> Content:
    """The content with this key at a random value; unchanged if nothing was accepted."""
    for value in _values(rng, name, field, content["input"]["dim"]):
        changed = _with(content, section, name, value)
        if _accepted(changed) is not None:
            return changed
        before = content.get(section, {}).get(name, field.default)
        if isinstance(value, float) and isinstance(before, (int, float)) and not isinstance(before, bool):
            nearer = _last_accepted(lambda v: _with(content, section, name, v), float(before), value)
            if nearer is not None:
                return nearer
    return content


def _with(content: Content, section: str, name: str, value: Any) -> Content:
    changed = copy.deepcopy(content)
    changed.setdefault(section, {})[name] = value
    return changed


def _last_accepted(make: Callable[[float], Content], good: float, bad: float) -> Content | None:
    """The content with the last value that is accepted on the way, in logarithms, from one that is to one that is not."""
    if good <= 0 or bad <= 0 or _accepted(make(good)) is None:
        return None
    low, high = math.log(good), math.log(bad)
    for _ in range(24):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if _accepted(make(math.exp(middle))) is not None else (low, middle)
    return make(math.exp(low)) if _accepted(make(math.exp(low))) is not None else None


def _values(rng: np.random.Generator, name: str, field: Any, dim: int) -> Iterator[Any]:
    """Values to try, one after the other."""
    kinds, low, high = _declared(field)
    if name in ("center", "scale"):
        scale = 10.0 ** rng.uniform(-3, 3)
        yield (rng.normal(size=dim) * scale).tolist()
    elif name == "weights":
        yield from ["balanced"] * int(rng.integers(2))
        yield from (rng.uniform(0.001, 1000, classes).tolist() for classes in (2, 3, 4))
    elif bool in kinds:
        yield bool(rng.random() < 0.5)
    elif any(get_origin(kind) is Literal for kind in kinds):
        choices = [choice for kind in kinds for choice in get_args(kind)]
        yield choices[int(rng.integers(len(choices)))]
    elif int in kinds:
        least, most = int(low or 0), int(min(high if high is not None else 100, COUNTS.get(name, 10**9)))
        yield int(rng.choice([least, min(least + 1, most), most, int(rng.integers(least, most + 1))]))
        yield int(rng.integers(least, min(most, least + 20) + 1))
    elif float in kinds:
        yield _real(rng, low, high)
        yield _real(rng, low, high)


def _real(rng: np.random.Generator, low: float | None, high: float | None) -> float:
    """Most often far out: what is refused is pushed back to where it is accepted."""
    how = rng.random()
    if low is not None and high is not None and how < 0.3:
        return float(rng.uniform(low, high))
    if low is not None and how < 0.4:
        return float(np.nextafter(low, np.inf)) if low else 1e-300
    if high is not None and how < 0.6:
        return float(np.nextafter(high, -np.inf))
    least = math.log10(low) if low else -40.0
    most = math.log10(high) if high else 40.0
    value = 10.0 ** float(rng.uniform(least, most))
    return -value if low is None and rng.random() < 0.3 else value


def _declared(field: Any) -> tuple[set[Any], float | None, float | None]:
    """Types of a key's values, and their bounds."""
    kinds: set[Any] = set()
    bounds: dict[str, float] = {}

    def visit(kind: Any) -> None:
        if get_origin(kind) in (Union, types.UnionType):
            for part in get_args(kind):
                visit(part)
        elif hasattr(kind, "__metadata__"):
            note(kind.__metadata__)
            visit(get_args(kind)[0])
        else:
            kinds.add(kind)

    def note(metadata: Any) -> None:
        for each in metadata:
            for key in ("ge", "gt", "le", "lt"):
                if getattr(each, key, None) is not None:
                    bounds[key] = float(getattr(each, key))
            note(getattr(each, "metadata", ()))

    visit(field.annotation)
    note(field.metadata)
    return kinds, bounds.get("ge", bounds.get("gt")), bounds.get("le", bounds.get("lt"))


# ---------------------------------------------------------------------------------------------------- shrinking


def shrunk(content: Content, fails: Callable[[Content], bool]) -> Content:
    """The least content that still fails: keys go, counts fall, numbers become round, while the failure stays."""

    def still(candidate: Content) -> bool:
        return _accepted(candidate) is not None and fails(candidate)

    while True:
        for candidate in _simpler(content):
            if still(candidate):
                content = candidate
                break
        else:
            return content


def _simpler(content: Content) -> Iterator[Content]:
    for section, given in content.items():
        if isinstance(given, dict) and section not in ("input", "learning"):
            yield {key: value for key, value in content.items() if key != section}
    for section, given in content.items():
        for key, value in given.items() if isinstance(given, dict) else ():
            changed = copy.deepcopy(content)
            del changed[section][key]
            yield changed
            if isinstance(value, int) and not isinstance(value, bool) and value > 1:
                for less in {1, value // 2, value - 1}:
                    yield _with(content, section, key, less)
            if isinstance(value, float) and value != float(f"{value:.1g}"):
                yield _with(content, section, key, float(f"{value:.1g}"))
            if isinstance(value, float) and value != 1.0 and abs(math.log10(abs(value) or 1.0)) > 0.5:
                yield _with(content, section, key, float(f"{math.copysign(math.sqrt(abs(value)), value):.1g}"))
    if content.get("precision") == "float64":
        yield content | {"precision": "float32"}
