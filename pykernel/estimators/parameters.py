"""Each parameter of the estimators and River models is declared once, as a key of a spec or as a `Parameter`.

A class's signature, checks and docstring are derived from these declarations whenever they are accessed.  If a model
family is added after the class was defined, its keys become parameters, too.
"""

from __future__ import annotations

import functools
import inspect
import math
import operator
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MethodType, UnionType
from typing import Annotated, Any, ClassVar, Literal, Self, Union, get_args, get_origin

import numpy as np

from pykernel.errors import UserError, did_you_mean
from pykernel.spec import model
from pykernel.spec.family import Family
from pykernel.spec.schema import key_told
from pykernel.spec.sections import section_of

# -------------------------------------------------------------------------------------------------------- requirements


@dataclass(frozen=True)
class Must:
    """A requirement for a parameter, in words and as a function that checks a value."""

    be: str
    holds: Callable[[Any], bool]

    def __or__(self, other: Must) -> Must:
        return Must(f"{self.be} or {other.be}" if other.be else self.be, lambda v: self.holds(v) or other.holds(v))


def number(words: str, holds: Callable[[float], bool]) -> Must:
    return Must(f"a {words}", lambda v: type(v) in (int, float) and bool(holds(v)))


def one_of(*names: str) -> Must:
    return Must(" or ".join(f'"{name}"' for name in names), lambda v: isinstance(v, str) and v in names)


def whole(least: int, most: float = math.inf) -> Must:
    words = f"whole number from {least} to {most}" if most < math.inf else f"whole number of {least} or more"
    return Must(f"a {words}", lambda v: isinstance(v, int) and not isinstance(v, bool) and least <= v <= most)


POSITIVE = number("number above 0", lambda v: 0 < v < math.inf)
NOT_NEGATIVE = number("number of 0 or more", lambda v: 0 <= v < math.inf)
FINITE = number("finite number", math.isfinite)
SPLITS = Must(
    "a splitter or a list of pairs (train, test)",
    lambda v: isinstance(v, list | tuple) or (hasattr(v, "split") and not isinstance(v, str)),
)
FOLDS = whole(2) | SPLITS
LEFT_OUT = Must("", lambda v: v is None)
"""A requirement that only None meets.  Its text is empty, because error messages need not say that a parameter may be
left out."""


def plain(value: Any) -> Any:
    """Return the value.  A NumPy scalar, such as a value of a parameter grid, is converted to a Python object."""
    return value.item() if isinstance(value, np.generic) else value


def short(value: Any) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else text[:57] + "..."


# --------------------------------------------------------------------------------------------------------- declarations


@dataclass(frozen=True)
class Parameter:
    """A parameter of a family of estimators."""

    section: str | None = None  # the spec's section of this parameter ("": top level); None: not in the spec
    key: str = ""  # the key in the section, if it differs from the parameter's name
    default: Any = None
    kind: Any = Any  # the parameter's type, for signatures
    must: Must | None = None  # requirement that the spec does not check, or words differently
    text: str = ""  # description for docstrings; empty: the description in the spec's declaration


def of_keys(families: Iterable[Family], sections: Iterable[str]) -> dict[str, Parameter]:
    """Return a parameter for each key that a family declares in one of the sections, in the order of the declarations.

    If an earlier section has a key with the same name, the parameter is called ``section_key``.  Flags have their
    declared default; all other parameters are None by default, which means the spec's default.
    """
    made: dict[str, Parameter] = {}
    fields = [(section, family.spec.model_fields.get(section)) for section in sections for family in families]
    for section, field in fields:
        kind = None if field is None else section_of(field)
        for key, declaration in kind.model_fields.items() if kind is not None else ():
            name = f"{section}_{key}" if key in made and made[key].section != section else key
            default, type_ = None, _plain_type(declaration.annotation) | None
            if isinstance(declaration.default, bool):
                default, type_ = declaration.default, bool
            made.setdefault(name, Parameter(section, key, default, type_))
    return made


def _plain_type(annotation: Any) -> Any:
    """Return a declaration's type without its bounds or, for a Literal, the type of its values."""
    if get_origin(annotation) is Annotated:
        return _plain_type(get_args(annotation)[0])
    if get_origin(annotation) is Literal:
        return type(get_args(annotation)[0])
    if get_origin(annotation) in (Union, UnionType):
        return functools.reduce(operator.or_, map(_plain_type, get_args(annotation)))
    return annotation


def moved(parameters: Mapping[str, Parameter], behind: Mapping[str, str]) -> dict[str, Parameter]:
    """Return the parameters in another order.  behind: name of a parameter to move -> name of the parameter that it then follows."""
    names = list(parameters)
    for name, before in behind.items():
        names.remove(name)
        names.insert(names.index(before) + 1, name)
    return {name: parameters[name] for name in names}


class UnknownParameter(UserError, TypeError):
    """A class has no parameter with this name."""


class Declared:
    """Base of classes whose ``__init__`` and docstring are derived from the declarations of their parameters."""

    _family: ClassVar[Mapping[str, Parameter]] = {}
    """The parameters of a family of estimators.  Classes whose parameters come from the spec override ``_declared`` instead."""
    _positional: ClassVar[int] = 1
    """The number of parameters that may be given by position."""
    _without: ClassVar[Sequence[str]] = ()
    """The family's parameters that the class does not have."""
    _defaults: ClassVar[dict[str, Any]] = {}
    """Defaults of the class that differ from the family's defaults."""
    _attributes: ClassVar[dict[str, str]] = {}
    """The fitted attributes, with their descriptions for docstrings."""
    _words: ClassVar[dict[str, str]] = {}
    """Placeholder in the class's docstring, with its braces -> the text that replaces it."""

    @classmethod
    def _families(cls) -> Sequence[Family]:
        """Return the model families whose spec keys are parameters of this class."""
        return ()

    @classmethod
    def _declared(cls) -> Mapping[str, Parameter]:
        """Return the parameters of the family of estimators, in the order of signatures."""
        return cls._family

    @classmethod
    def _parameters(cls) -> Mapping[str, Parameter]:
        """Return the parameters of the class, in the order of its signature."""
        return _parameters_of(cls, model.FAMILIES)  # type: ignore[arg-type]  # mypy does not accept classes as keys of a cache

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "__init__" not in vars(cls):
            cls.__init__ = Initialiser(cls)  # type: ignore[misc, assignment]
        template = cls.__doc__ or ""
        if "{parameters}" in template or "{others}" in template:
            cls.__doc__ = Docstring(cls, template)


# the families are a part of the caches' keys, so that a family that is added later is included, too
@functools.cache
def _parameters_of(kind: type[Declared], families: tuple[Family, ...]) -> Mapping[str, Parameter]:
    declared, own = kind._declared(), kind._defaults
    kept = {name: each for name, each in declared.items() if name not in kind._without}
    return {name: replace(each, default=own[name]) if name in own else each for name, each in kept.items()}


@functools.cache
def _signature_of(kind: type[Declared], families: tuple[Family, ...]) -> inspect.Signature:
    made = [inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)]
    for at, (name, each) in enumerate(kind._parameters().items()):
        how = inspect.Parameter.POSITIONAL_OR_KEYWORD if at < kind._positional else inspect.Parameter.KEYWORD_ONLY
        made.append(inspect.Parameter(name, how, default=each.default, annotation=each.kind))
    return inspect.Signature(made, return_annotation=None)


class Initialiser:
    """An ``__init__`` that stores arguments unchanged under the parameters' names, as scikit-learn and River require."""

    __name__ = "__init__"

    def __init__(self, kind: type[Declared]) -> None:
        self._kind = kind

    @property
    def __signature__(self) -> inspect.Signature:
        return _signature_of(self._kind, model.FAMILIES)  # type: ignore[arg-type]

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    def __call__(self, instance: Any, *values: Any, **named: Any) -> None:
        known = self._kind._parameters()
        for name in named:
            if name not in known:
                meant = did_you_mean(name, known, f"the parameters are: {', '.join(known)}")
                raise UnknownParameter(f"{self._kind.__name__}: {name!r} is not a parameter; {meant}")
        bound = self.__signature__.bind(instance, *values, **named)
        bound.apply_defaults()
        for name in known:
            setattr(instance, name, bound.arguments[name])


# ----------------------------------------------------------------------------------------------------------- docstrings


class Docstring(str):
    """A class's docstring that is made anew when it is read, so that it lists the parameters that the class has then.

    As a string, without ``__get__``, it lists the parameters that the class had when it was defined.  `help` shows this
    older list if the class's metaclass has a docstring.
    """

    _template: str

    def __new__(cls, kind: type[Declared], template: str) -> Self:
        made = super().__new__(cls, _docstring_of(kind, template, model.FAMILIES))  # type: ignore[arg-type]
        made._template = template
        return made

    def __get__(self, instance: Any, owner: type[Declared]) -> str:
        return _docstring_of(owner, self._template, model.FAMILIES)  # type: ignore[arg-type]


@functools.cache
def _docstring_of(kind: type[Declared], template: str, families: tuple[Family, ...]) -> str:
    """Fill in the template of a class's docstring.

    ``{parameters}`` is replaced by the descriptions of all parameters, ``{others}`` by the names of the parameters that the
    template does not describe, and ``{attributes}`` by the descriptions of the attributes.  The placeholders in the
    class's ``_words`` are replaced, too.
    """
    # Python 3.13 removes the indentation of docstrings; earlier versions keep it
    text, parameters = inspect.cleandoc(template), kind._parameters()
    rules = [rule for family in kind._families() for rule in family.rules]
    filled = {
        "{parameters}": "\n".join(_told(name, each, rules) for name, each in parameters.items()),
        "{others}": ", ".join(name for name in parameters if f"\n{name} : " not in text),
        "{attributes}": "\n".join(_entry(name, *_parts(told)) for name, told in kind._attributes.items()),
    }
    for word, meaning in (filled | kind._words).items():
        text = text.replace(word, meaning)
    return text


def _told(name: str, parameter: Parameter, rules: Sequence[str]) -> str:
    """Return the entry of a parameter in a docstring."""
    default = parameter.default
    if parameter.text:
        first, said = _parts(parameter.text)
    else:
        first, said, usual = key_told(parameter.section or "", parameter.key or name, rules)
        default, said = usual if default is None else default, textwrap.fill(said, 112)
    shown = f'"{default}"' if isinstance(default, str) else default
    return _entry(name, first if "default=" in first else f"{first}, default={shown}", said)


def _parts(text: str) -> tuple[str, str]:
    """Split a description into its first line, which is a type, and the rest without its indentation."""
    first, _, said = inspect.cleandoc(text).partition("\n")
    return first, said


def _entry(name: str, first: str, said: str) -> str:
    return f"{name} : {first}\n{textwrap.indent(said, '    ')}"
