"""Read a spec.  The rule is read first, then the sections that the rule's family declares.

If a key that only other rules have is given a value other than its default, the spec is refused, and the message names
the rules that have the key.
"""

from __future__ import annotations

import functools
import math
import re
import tomllib
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, TypeGuard, get_args

import numpy as np
from pydantic import ValidationError
from pydantic.fields import FieldInfo

from pykernel.algorithms.kernel_choice import KernelConfig
from pykernel.dialect import PRECISIONS, Kernel
from pykernel.errors import UntrustedCode, UserError, did_you_mean
from pykernel.files import read_plain
from pykernel.spec import kernel_settings
from pykernel.spec import signal as signals
from pykernel.spec import signal_int16 as signals_int16
from pykernel.spec.base import NotComputed, Spec
from pykernel.spec.custom_kernel import judge_source, judge_values
from pykernel.spec.custom_kernel import load as load_kernel
from pykernel.spec.defaults import Chosen, chosen, completed, scales_by_range
from pykernel.spec.families.batch import BATCH_MODELS, FISHER_MODELS
from pykernel.spec.families.expansion import EXPANSION_MODELS, INT16_EXPANSION_MODELS
from pykernel.spec.families.frozen import FROZEN_MODELS
from pykernel.spec.families.gmm import GMM_MODELS
from pykernel.spec.families.int16 import INT16_FROZEN_MODELS, Int16Family, Int16Spec
from pykernel.spec.families.int16_linear import INT16_LINEAR_MODELS
from pykernel.spec.families.int16_online import INT16_ONLINE_MODELS
from pykernel.spec.families.int16_spectrum import INT16_FILTER_MODELS, INT16_SPECTRUM_MODELS
from pykernel.spec.families.linear import LINEAR_MODELS
from pykernel.spec.families.nystrom import NYSTROM_LEARNERS, NYSTROM_MODELS
from pykernel.spec.families.online import KERNEL_MODELS
from pykernel.spec.families.online_keys import N_MAX_LIMIT
from pykernel.spec.families.spectrum import SPECTRUM_MODELS
from pykernel.spec.families.subspace import SUBSPACE_MODELS
from pykernel.spec.family import STATE_LIMIT, Family
from pykernel.spec.keys import FORMAT
from pykernel.spec.sections import (
    DIM_LIMIT,
    OUTPUTS_LIMIT,
    Rate,
    Section,
    StandardisedInput,
    fields_of,
    in_range,
    section_of,
    shown_value,
    takes_ranges,
    visible_name,
)
from pykernel.spec.signal import SignalSection
from pykernel.spec.suggestions import word_meant

__all__ = ["DIM_LIMIT", "N_MAX_LIMIT", "OUTPUTS_LIMIT", "Spec", "load_spec", "make_spec", "shown_value", "visible_name"]

SPEC_LIMIT = 8 * STATE_LIMIT
"""Largest size of a spec's text, in bytes.  It is a multiple of ``STATE_LIMIT``, because a number takes more bytes as
text than in the model's memory."""

FAMILIES: tuple[Family, ...] = (
    *KERNEL_MODELS,
    LINEAR_MODELS,
    *EXPANSION_MODELS,
    *SPECTRUM_MODELS,
    BATCH_MODELS,
    FISHER_MODELS,
    FROZEN_MODELS,
    NYSTROM_MODELS,
    NYSTROM_LEARNERS,
    GMM_MODELS,
    SUBSPACE_MODELS,
    INT16_ONLINE_MODELS,
    INT16_LINEAR_MODELS,
    *INT16_EXPANSION_MODELS,
    INT16_SPECTRUM_MODELS,
    INT16_FILTER_MODELS,
    INT16_FROZEN_MODELS,
)
"""All families.  Families whose specs are subclasses of ``Int16Spec`` compute the rules of other families in integers."""


def rules() -> dict[str, Family]:
    """Return rule -> family, for all rules; the family computes in floating point."""
    return {rule: family for family in FAMILIES if not _is_int16(family) for rule in family.rules}


def int16_rules() -> dict[str, Int16Family]:
    """Return rule -> family of integer models, for the rules that are available with the precision int16."""
    return {rule: family for family in FAMILIES if _is_int16(family) for rule in family.rules}


def _is_int16(family: Family) -> TypeGuard[Int16Family]:
    return issubclass(family.spec, Int16Spec)


def declared(section: str, key: str | None = None) -> dict[str, FieldInfo]:
    """Return rule -> declaration in the rule's floating-point family, for all rules that have this section or, if
    ``key`` is given, this key.
    """
    return _declarations(FAMILIES).get((section, key), {})


@functools.cache
def _declarations(families: tuple[Family, ...]) -> dict[tuple[str, str | None], dict[str, FieldInfo]]:
    found: dict[tuple[str, str | None], dict[str, FieldInfo]] = {}
    for family in families:
        for rule in () if _is_int16(family) else family.rules:
            for section, key, field in fields_of(family.spec, rule):
                found.setdefault((section, key), {})[rule] = field
    return found


def rate_of(rule: str | None) -> str | None:
    """Return the key of [learning] that is a rule's learning rate.

    Return None for an unknown rule, for a rule without a learning rate, and for the rules in ``Rate.but``.
    """
    family = rules().get(rule) if isinstance(rule, str) else None
    keys = fields_of(family.spec, str(rule)) if family is not None else ()
    marks = ((key, mark) for _, key, field in keys for mark in field.metadata if isinstance(mark, Rate))
    return next((key for key, mark in marks if rule not in mark.but), None)


def keys_of(section: str) -> list[str]:
    """Return all keys that a section has in any floating-point family."""
    kinds = (section_of(field) for field in declared(section).values())
    return list(dict.fromkeys(key for kind in kinds if kind is not None for key in kind.model_fields))


def key_with(word: str) -> str | None:
    """Return a key that can have ``word`` as its value, in the form "[section] key", or None if there is no such key."""
    if word in rules():
        return "[learning] rule"
    fields = (field for rule, family in rules().items() for field in fields_of(family.spec, rule))
    return next((f"[{section}] {key}" for section, key, field in fields if word in _words(field.annotation)), None)


def _words(annotation: Any) -> set[str]:
    """Return the words that a ``Literal`` type lists."""
    return {annotation} if isinstance(annotation, str) else set().union(*map(_words, get_args(annotation)))


def meant(word: str, known: Collection[str], otherwise: str, of: str = "") -> str:
    """Return the end of a message about a word that is not a value of the key ``of``.

    The end names another key with this value, or else the known word that was probably meant.  If there is neither, the
    end is ``otherwise``.
    """
    key = None if word in known else key_with(word)
    return word_meant(word, known, otherwise) if key in (None, of) else f"{otherwise} ({word!r} is a value of {key})"


def sections() -> list[str]:
    """Return the sections that any family has."""
    fields = (item for family in FAMILIES for item in family.spec.model_fields.items())
    return list(dict.fromkeys(name for name, field in fields if section_of(field) is not None))


def load_spec(path: str | Path, trust: bool = False, announce: Callable[[str], None] | None = None) -> Spec:
    """Read a spec from a TOML file.  Raises UserError with a one-sentence message if there is any error in the spec.

    A spec whose [kernel] names a source contains code: the source is a Python file that is executed.  Such a spec is
    refused unless ``trust`` is true.  announce: called with the source's path before the file is executed.
    """
    where = str(path) if str(path).isprintable() else shown_value(str(path))
    help_ = "see `pykernel generate --help` for an example"
    try:
        content = tomllib.loads(read_plain(path, SPEC_LIMIT).decode())
    except FileNotFoundError:
        raise UserError(
            f"{where}: there is no such file; give the path of a TOML file (`pykernel generate --help` shows an example)"
        ) from None
    except UnicodeDecodeError as error:
        raise UserError(f"{where}: byte {error.start} (from 0) is not UTF-8; save the file as UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"{where}: is not TOML: {error}; {help_}") from None
    except OSError as error:
        raise UserError(f"{where}: cannot be read ({error.strerror}); give the path of a TOML file") from None
    except (ValueError, RecursionError):  # thousands of digits or of brackets, or NUL in the path
        raise UserError(f"{where}: is not a spec; {help_}") from None
    spec = _validated(content, where, written=True)
    if (named := _custom_names(spec, where)) is None:
        return spec
    source, name = named
    if not trust:
        raise UntrustedCode(
            f"{where}: [kernel] source names {source}, a file with Python code that would be executed; read the file, then allow it "
            "with --trust-code (in Python: load_spec(path, trust=True))"
        )
    return _with_custom(spec, load_kernel(Path(path).parent, source, name, announce, where), where)


def make_spec(content: Mapping[str, Any], where: str = "spec", custom: Kernel | None = None) -> Spec:
    """Make a spec from nested dictionaries.

    where: the beginning of error messages.  custom: the user's kernel, if the spec names a custom kernel.
    """
    spec = _validated(content, where)
    if (named := _custom_names(spec, where)) is None:
        return spec
    source, name = named
    if custom is None:
        raise UserError(
            f"{where}: [kernel] source names {source}, whose code was not given; load the spec from its file, or give "
            "the kernel: make_spec(content, custom=kernel)"
        )
    if custom.name != name:
        raise UserError(
            f"{where}: [kernel] kernel is {name}, but the argument custom is the kernel {custom.name}; the two names must be equal"
        )
    return _with_custom(spec, custom, where)


def _validated(content: Mapping[str, Any], where: str, written: bool = False) -> Spec:
    """Return the validated spec.

    written: whether a person wrote the content.  If not, it may have the keys that follow from its [signal], as a dumped spec does.
    """
    try:
        return _judged(content, written)
    except _Refused as error:
        sentence = str(error)
    except NotComputed as error:
        sentence = (
            _to_blame(content, written)
            or f"{error}; choose limits, scales and weights nearer to 1, or precision float64"
        )
    raise UserError(f"{where}: {sentence}")


def _judged(content: Any, written: bool) -> Spec:
    """Return the spec.  Raises _Refused or NotComputed."""
    kind: type[Spec] | None = None
    rule = ""
    named = content
    try:
        with np.errstate(over="raise", divide="raise", invalid="raise"):
            _need_format(content)
            content = _with_names(content) if isinstance(content, Mapping) else content
            content = named = _with_features(content, written)
            content = completed(content) if isinstance(content, Mapping) else content
            rule, family = _family(content)
            kind = family.spec
            seconds = {"rows_a_second": signals.rows_a_second(content.get("signal"))}
            spec = kind.model_validate(_own(content, kind, rule), context=seconds)
            if content is not named:
                spec._chosen = Chosen(chosen(named))
            return spec
    except ValidationError as error:
        sentence = _sentence(error, kind or Spec)
    except _Refused as error:
        sentence = str(error)
    except ArithmeticError as error:
        raise NotComputed from error
    why = f"[novelty] selects {rule}" if isinstance(named, Mapping) and "novelty" in named else f"the default is {rule}"
    taken = f" (no rule is named, and {why})" if content is not named and rule and rule in sentence else ""
    raise _Refused(f"{sentence}{taken}")


def _need_format(content: Any) -> None:
    """Refuse a spec in another format before checking anything else, because its keys may have other meanings."""
    number = content.get("format", FORMAT) if isinstance(content, Mapping) else FORMAT
    if type(number) is int and number == FORMAT:
        return
    newer = "install a newer version" if type(number) is int and number > FORMAT else f"write format = {FORMAT}"
    raise _Refused(f"format is {shown_value(number)}; this version of pykernel reads format {FORMAT}: {newer}")


def _to_blame(content: Mapping[str, Any], written: bool) -> str | None:
    """Return a message about the number that makes the model impossible to compute, or None if no single number is the cause.

    Each number is allowed by itself.  A number is the cause if the spec is accepted with another value for it.
    If there are several such numbers, the message names the number farthest from 1, and the nearest value that is
    accepted.
    """
    keys = [(s, key, value) for s, own in content.items() if isinstance(own, Mapping) for key, value in own.items()]
    numbers = [(s, key, value, max(_octaves(value), key=abs, default=0.0)) for s, key, value in keys]

    def accepted(section: str, key: str, value: Any, octaves: float) -> bool:
        try:
            _judged({**content, section: {**content[section], key: _nearer(value, octaves)}}, written)
        except (_Refused, NotComputed):
            return False
        return True

    for section, key, value, bad in sorted(numbers, key=lambda number: -abs(number[3])):
        good = 0.0
        if not accepted(section, key, value, math.copysign(good, bad)):
            continue
        far = 2.0**bad
        while abs(bad - good) > 0.01:
            middle = 0.5 * (good + bad)
            good, bad = (middle, bad) if accepted(section, key, value, middle) else (good, middle)
        said, most = "holds" if isinstance(value, (list, tuple)) else "is", "at most" if bad > 0 else "at least"
        return (
            f"[{section}] {key} {said} {far:g}, with which no model can be computed in {content.get('precision', 'float32')}; "
            f"if the other numbers stay as they are, this number must be {most} {2.0**good:.3g}"
        )
    return None


def _octaves(value: Any) -> list[float]:
    """Return log2 of the magnitudes of a key's numbers."""
    if isinstance(value, (list, tuple)):
        return [octaves for each in value for octaves in _octaves(each)]
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        return []
    return [math.log2(abs(value)) if value else -1074.0]


def _nearer(value: Any, octaves: float) -> Any:
    """Return the value with the magnitudes of its numbers clipped to at most 2^octaves if the sign of octaves is
    positive, and to at least 2^octaves otherwise.  The signs of 0.0 and -0.0 count, too.
    """
    if isinstance(value, (list, tuple)):
        return [_nearer(each, octaves) for each in value]
    beyond = any(own > octaves if math.copysign(1, octaves) > 0 else own < octaves for own in _octaves(value))
    return type(value)(math.copysign(2.0**octaves, value)) if beyond else value


def _with_names(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return the content with each range of names replaced by the names, in every key that allows ranges."""
    made = dict(content)
    for section, keys in content.items():
        for key, names in keys.items() if isinstance(keys, Mapping) else ():
            if isinstance(names, (list, tuple)) and any(map(takes_ranges, declared(section, key).values())):
                try:
                    made[section] = {**made[section], key: [each for name in names for each in in_range(name)]}
                except ValueError as error:
                    raise _Refused(f"[{section}] {key} {error}") from None
    return made


def _with_features(content: Any, written: bool) -> Any:
    """Return the content with the inputs that follow from its [signal], if there is one."""
    if not isinstance(content, Mapping) or content.get("signal") is None:
        return content
    try:
        section = SignalSection.model_validate(content["signal"])
    except ValidationError as error:
        raise _Refused(_sentence(error, _OnlySignal, "signal")) from None
    family, inputs = _family(completed(content))[1], content.get("input", {})
    inputs = inputs if isinstance(inputs, Mapping) else {}
    try:
        own = signals.inputs_of(section)
        if content.get("precision") == "int16":
            signals_int16.complain(section)
            own = signals_int16.inputs_of(section, inputs)
            if scales_by_range(content):
                own.pop("scale", None)
        else:
            signals.complain_of_reals(section, content.get("precision"))
            # if the user gives a center or a scale, the inputs are not standardised in addition
            learns_scale = issubclass(section_of(family.spec.model_fields["input"]) or Section, StandardisedInput)
            if learns_scale and not {"standardise", "center", "scale"} & set(inputs):
                own["standardise"] = True
        learns = any(each.learns for each in family.programs.values())
        return signals.completed(content, section, own, learns, written)
    except ValueError as error:
        text = str(error)
        raise _Refused(text if text.startswith("[") else f"[signal] {text}") from None


class _OnlySignal(Section):
    """A spec with only [signal], which is validated before the other sections."""

    signal: SignalSection


class _Refused(Exception):
    """A refused spec.  The text is the message without its beginning, ``where``."""


def _family(content: Any) -> tuple[str, Family]:
    """Return the rule that the content names after defaults were added, and the rule's family."""
    learning = content.get("learning") if isinstance(content, Mapping) else None
    rule = learning.get("rule") if isinstance(learning, Mapping) else "krls-t"
    known = rules()
    if not isinstance(rule, str) or rule not in known:
        *others, last = map(repr, known)
        one = f"{', '.join(others)} or {last}" if others else last
        remedy = meant(rule if isinstance(rule, str) else "", known, f"it must be {one}")
        raise _Refused(f"[learning] rule is {shown_value(rule)}; {remedy}")
    precision = content.get("precision", "float32") if isinstance(content, Mapping) else "float32"
    if isinstance(precision, str) and precision not in PRECISIONS:
        remedy = meant(precision, PRECISIONS, f"it must be one of {', '.join(PRECISIONS)}")
        raise _Refused(f"precision is {shown_value(precision)}; {remedy}")
    if not isinstance(precision, str) or precision != "int16":
        return rule, known[rule]
    int16 = int16_rules()
    if rule not in int16:
        raise _Refused(
            f'precision is "int16", which only {", ".join(int16)} can have; for {rule}, choose "float32" or "float64"'
        )
    return rule, int16[rule]


def _own(content: Any, kind: type[Spec], rule: str) -> Any:
    """Return the content without the keys that only other rules have.  Refuses a spec in which one of these keys has
    a value other than its default.
    """
    if not isinstance(content, Mapping):
        return content
    mine = {(section, key) for section, key, _ in fields_of(kind, rule)}
    kept: dict[str, Any] = {}
    for section, table in content.items():
        keys, own = table if isinstance(table, Mapping) else {}, (section, None) in mine
        others = {} if own else declared(section)
        if (not own and not others) or (own and not isinstance(table, Mapping)):
            kept[section] = table  # pydantic refuses it later with a clear message
            continue
        if section == "novelty" and table is not None and not own:
            raise _Refused(
                f"[novelty] is for monitors, whose rule is {' or '.join(others)}; {rule} raises no alarms: leave out "
                "[learning] rule, or [novelty]"
            )
        # an optional section has an effect even without keys
        optional = any(field.default is None for field in others.values())
        if table is not None and not own and (optional or not isinstance(table, Mapping)):
            raise _Refused(f"[{section}] {_owned(others, rule)}")
        left = {key: value for key, value in keys.items() if _matters(kind, rule, mine, section, key, value)}
        if own:
            kept[section] = left
        elif left:
            raise _Refused(f"[{section}] {_unknown(next(iter(left)), keys_of(section), [])}")
    return kept


def _matters(
    kind: type[Spec], rule: str, mine: Collection[tuple[str, str | None]], section: str, key: str, value: Any
) -> bool:
    """Return whether a key must be kept.  It can be left out if only other rules have it and its value is the default.
    Refuses another rule's key with a value other than its default.

    mine: the sections and keys of the rule.
    """
    having = {} if (section, key) in mine else declared(section, key)
    if not having:
        return True
    if not any(_same(value, field.default) for field in (*having.values(), *_beside(kind, section, key))):
        raise _Refused(f"[{section}] {key} {_owned(having, rule)}")
    return False


def _beside(kind: type[Spec], section: str, key: str) -> list[FieldInfo]:
    """Return a list with the declaration of a key in this spec class, or an empty list if the class does not have the key."""
    own = section_of(kind.model_fields[section]) if section in kind.model_fields else None
    return [] if own is None or key not in own.model_fields else [own.model_fields[key]]


def _owned(owners: Mapping[str, FieldInfo], rule: str) -> str:
    *others, last = owners
    who = f"{rule} in int16" if rule in owners else rule
    return f"belongs to {', '.join(others)}{' and ' * bool(others)}{last}; {who} does not have it: leave it out"


def _same(value: Any, default: Any) -> bool:
    return value is default or (isinstance(value, (bool, int, float, str)) and value == default)


def _unknown(key: Any, known: list[str], more: list[str]) -> str:
    """Return a sentence that suggests the key that was probably meant: a key of this model or, if none is similar, of another model."""
    remedy = did_you_mean(str(key), known, did_you_mean(str(key), more, f"the keys are: {', '.join(known)}"))
    return f"{shown_value(key)} is not a key of a spec; {remedy}"


def _custom_names(spec: Spec, where: str) -> tuple[str, str] | None:
    """Return the source and the name of a custom kernel, or None for a built-in kernel.  Raises UserError if
    source, kernel or max_value is missing.
    """
    kernel = spec.kernel
    if kernel is None or kernel.function != "custom":
        return None
    for key in ("source", "kernel", "max_value"):
        if getattr(kernel, key) is None:
            raise UserError(
                f"{where}: [kernel] {key} is missing; a custom kernel must have source, kernel and max_value"
            )
    return str(kernel.source), str(kernel.kernel)


def _with_custom(spec: Spec, custom: Kernel, where: str) -> Spec:
    """Check the user's kernel, and return the spec with this kernel."""
    spec._custom = custom
    try:
        reach = kernel_settings.reach(spec)
        judge_source(custom)
        judge_values(custom, spec.config.views[KernelConfig], spec.real, reach)
    except UserError as error:
        raise UserError(f"{where}: {error}" if str(error).startswith("[") else str(error)) from None
    return spec


SAID = {
    "Input should be": "it must be",
    "a valid": "a",
    "a integer": "a whole number",
    "a tuple": "a list",
    "a dictionary": "a table",
}
"""Phrase in pydantic's messages -> the phrase that replaces it."""


def _sentence(error: ValidationError, kind: type[Section], within: str = "") -> str:
    """Return a sentence about the first error: where it is, what is wrong, and what would be right.

    within: the section, if it was validated alone.
    """
    first, *others = error.errors(include_url=False)
    location = [*([within] if within else []), *(str(part) for part in first["loc"])]
    section = f"[{location[0]}] " if len(location) > 1 else ""
    key = location[1 if section else 0] if location else ""
    shown = shown_value(first["input"])
    model = section_of(kind.model_fields[location[0]]) if section else kind
    known = list(model.model_fields if model is not None else kind.model_fields)
    if model is not None and len(location) > 2 and (table := section_of(model.model_fields[key])) is not None:
        if first["type"] == "extra_forbidden":
            return f"{section}{key}: {_unknown(location[2], list(table.model_fields), [])}"
        key = f"{key}.{location[2]}"
    match first["type"]:
        case "extra_forbidden":
            return f"{section}{_unknown(key, known, keys_of(location[0]) if section else sections())}"
        case "missing":
            return f"{section}{key} is missing" if section or key == "name" else f"[{key}] is missing"
        case "value_error":
            where = f"[{within}]" if within and not section else f"{section}{key}"
            return f"{where} {first['ctx']['error']}".strip()
        case "model_type":
            if section:
                return f"{section}{key} is {shown}; it must be a table with keys of its own"
            return f"{key or 'it'} is {shown}; it must be a section, [{key or 'input'}], with keys of its own"
        case "too_short":
            least = first["ctx"]["min_length"]
            return f"{section}{key} holds {first['ctx']['actual_length']} values; it must hold {least} or more"
    return f"{section}{key} is {shown}; {_expected(first, others, nested=len(location) > 2)}"


def _expected(first: Any, others: list[Any], nested: bool) -> str:
    """Return the part of the sentence that says which values are allowed.  It is made from the text of the first error.
    nested: whether the error is about a value within a key's value.
    """
    message = first["msg"]
    for pydantic, ours in SAID.items():
        message = message.replace(pydantic, ours)
    words = [other["ctx"]["expected"] for other in others if other["type"] == "literal_error" and nested]
    more = [word for word in dict.fromkeys(words) if word not in message]
    message = " or ".join([message[0].lower() + message[1:], *more])
    if not isinstance(first["input"], str):
        return message
    section, key = (*map(str, first["loc"]), "", "")[:2]
    return meant(first["input"], re.findall(r"'([^']*)'", message), message, f"[{section}] {key}")
