"""The generator and the targets know no algorithm: none of its names is written there, but for ordinary words."""

import re
from enum import IntEnum

from pykernel.algorithms import extents
from pykernel.algorithms.online.projections import PROJECTIONS
from pykernel.algorithms.online.techniques import TECHNIQUES
from pykernel.bases.select import METHODS
from pykernel.dialect import Extent
from pykernel.spec import kernel_settings
from pykernel.spec.families import nystrom, subspace
from pykernel.spec.model import FAMILIES
from tests.support import ROOT

ROOMS = ("pykernel/language", "pykernel/gen", "pykernel/targets", "gen", "targets")
ORDINARY = {
    # the dialect's own: docs/dialect.md, or Program, has each
    "predict": "the main question of every program with labels",
    "update": "the entry that learns a sample",
    "alarm": "the reading of a program that has alarms",
    "restart": "the action that forgets everything",
    # English, or another language's
    "at": "English; a technique is called so",
    "bounded": "English: 'in bounded time'",
    "constant": "English, and a type of the dialect; a step is called so",
    "drop": "English: fields that C drops",
    "expansion": "a section of specs: vectors that are given",
    "exact": "English: 'exact counts'",
    "frozen": "Python: a dataclass of which nothing changes",
    "freeze": "an instruction of LLVM",
    "given": "English; a method is called so",
    "identity": "English: whose a state is; a module is called so",
    "interval": "interval analysis: what an integer may be",
    "Interval": "the same",
    "linear": "linear programming",
    "ls": "a condition of ARM's instructions",
    "none": "English: a label's kind",
    "online": "English: 'online learning', a keyword of library.json",
    "custom": "English: a user's custom kernel",
    "stream": "English: samples in their order; a method is called so",
    # names of other things
    "auto": "CSS: a margin",
    "select": "HTML: a list to choose from",
    "ROWS": "print_llvm's loop over samples; an extent is called so, too",
}
"""Words that stay, and what they mean there."""


def vocabulary():
    """Every name that an algorithm, or a spec's key for one, brings: name -> what it is."""
    names = {name: "an extent" for name, value in vars(extents).items() if isinstance(value, Extent) and name.isupper()}
    for told in (TECHNIQUES, PROJECTIONS, kernel_settings.FUNCTIONS, METHODS):
        names |= dict.fromkeys(told, "a choice of the spec")
    for told in (nystrom.METHODS, subspace.UPDATES, subspace.STEPS, subspace.BUDGETS):
        names |= dict.fromkeys(told, "a choice of the spec")
    for family in FAMILIES:
        names |= dict.fromkeys(family.rules, "a rule")
        for program in family.programs.values():
            names |= {program.name: "a program"} | {entry.name: "an entry" for entry in program.entries}
            names |= {kind.__name__: "a struct or a config" for kind in (*program.structs, *program.configs)}
            for kind in program.parameters.values():
                if isinstance(kind, type) and issubclass(kind, IntEnum):
                    names |= {f"{kind.__name__}.{member.name}": "a choice" for member in kind}
    return names | {name.lower(): "an extent" for name, what in names.items() if what == "an extent" and "_" in name}


def texts():
    files = [path for room in ROOMS for path in sorted((ROOT / room).rglob("*"))]
    return {path: path.read_text(encoding="utf-8") for path in files if path.is_file() and path.suffix != ".pyc"}


def found_in(names, sources):
    """Each name that is a word of a text, and where: also as a part of a longer one, such as NAME_train."""
    found = {}
    for path, text in sources.items():
        words = set(re.findall(r"[A-Za-z][\w.-]*", text))
        parts = (
            words | {part for word in words for part in re.split(r"[_.]", word)} | set(re.findall(r"[A-Za-z]\w*", text))
        )
        parts |= {"_".join(word.split("_")[i:]) for word in parts for i in range(1, word.count("_") + 1)}
        for name in names & parts:
            found.setdefault(name, []).append(str(path.relative_to(ROOT)))
    return found


def test_no_name_of_an_algorithm_is_in_the_generator():
    names = vocabulary()
    # the lists are what they say
    assert {
        "klms",
        "krls-t",
        "mklms",
        "train",
        "classify",
        "N_MAX",
        "l_max",
        "gaussian",
        "okfeb",
        "Metric.KLMS",
    } <= set(names)
    sources = texts()
    assert len(sources) > 40 and ROOT / "gen" / "main.c" in sources
    found = found_in(set(names), sources)
    assert {name: (names[name], where) for name, where in found.items() if name not in ORDINARY} == {}
    # and none of the exceptions is one that nothing needs any more
    assert set(ORDINARY) <= set(found)


def test_names_are_found_wherever_they_are_written():
    written = {
        "here": "(void){{ name }}_train(&model); if x in ('N_MAX',) or technique == \"fb-krls\": Metric.KLMS  # NAME_L_MAX"
    }
    sources = {ROOT / key: text for key, text in written.items()}
    assert set(found_in(set(vocabulary()), sources)) == {"train", "N_MAX", "fb-krls", "Metric.KLMS", "L_MAX"}
