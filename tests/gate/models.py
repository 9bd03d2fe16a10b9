"""The models that the gate walks: every rule in every precision and stage, and draws that cover pairs and triples of features.

A feature is a key that a content gives, with its value where that is a word: it is read off the content, so a new key, rule
or stage is a feature without a change here.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.support.every_model import MODELS, accepted, content_of
from tests.support.random_specs import INT16_RULES, RULES, random_content, with_many_keys

Content = dict[str, Any]
Tuple = tuple[str, ...]
RECIPES: dict[str, Content] = {
    "a number": {"label": {"column": "y"}},
    "a number with an interval": {"label": {"column": "y"}, "interval": {}},
    "a number after the last one": {"label": {"column": "y"}, "mixture": {"last": 2}},
    "a number with gaps": {"label": {"column": "y"}, "input": {"missing": "hold"}},
    "several numbers": {"label": {"columns": ["y", "z"]}},
    "two classes": {"label": {"column": "y", "classes": ["a", "b"]}},
    "classes": {"label": {"column": "y", "classes": ["a", "b", "c"]}},
    "rare classes": {"label": {"column": "y", "classes": ["a", "b", "c"], "weights": "balanced"}},
    "a monitor": {"novelty": {}},
}
"""What a spec without a rule is told of its task."""


@dataclass(frozen=True)
class Drawn:
    name: str
    content: Content

    def __str__(self) -> str:
        return self.name


def features(content: Content) -> frozenset[str]:
    """What is in a content, each in a word."""
    found = {f"precision={content.get('precision', 'float32')}"}
    for section, given in content.items():
        for key, value in given.items() if isinstance(given, dict) else ():
            told = f"={value}" if isinstance(value, (str, bool)) and key != "column" else ""
            found.add(f"{section}.{key}{told}")
        if given == {}:
            found.add(section)
    return frozenset(found)


def tuples(content: Content, size: int) -> Iterator[Tuple]:
    return itertools.combinations(sorted(features(content)), size)


@functools.cache
def declared_models() -> dict[tuple[str, str, str], Content]:
    """Every rule, precision and stage, and every recipe: numbers far from every limit."""
    found = {
        (rule, precision, stage): content
        for rule, precision, stage in MODELS
        if (content := content_of(rule, precision, stage)) is not None
    }
    for (rule, precision, _), content in [each for each in found.items() if each[0][2] == "plain"]:
        if accepted(covered := content | {"interval": {}}) is not None:
            found[rule, precision, "interval"] = covered
    for (task, sections), precision in itertools.product(RECIPES.items(), ("float32", "float64", "int16")):
        if precision == "int16" and (sections.keys() != {"label"} or "weights" in sections["label"]):
            continue
        limits: Content = {"max_abs": [10.0, 10.0, 10.0]} if precision == "int16" else {}
        content = {"name": "m", "precision": precision, **sections}
        content["input"] = {"columns": ["a", "b", "c"], **limits, **sections.get("input", {})}
        if precision == "int16" and "classes" not in sections["label"]:
            content = content | {"label": content["label"] | {"max_abs": 5.0}}
        found[task, precision, "by default"] = content
    return found


class Covering:
    """Random models, each the one of a few that brings most pairs and triples of features that none before had."""

    TRIES = 2

    def __init__(self, seed: int) -> None:
        self.seed, self.pairs, self.triples = seed, set[Tuple](), set[Tuple]()

    def draw(self, index: int) -> Drawn:
        rng = np.random.default_rng([self.seed, index])
        found = [self._candidate(rng, index) for _ in range(self.TRIES)]
        best = max(found, key=lambda each: (len(set(tuples(each, 2)) - self.pairs), -len(each)))
        self.pairs.update(tuples(best, 2))
        self.triples.update(tuples(best, 3))
        return Drawn(f"draw {self.seed}/{index}", best)

    def _candidate(self, rng: np.random.Generator, index: int) -> Content:
        whole = len(RULES) + len(INT16_RULES)
        turn, wanted = index % (whole + len(RECIPES)), int(rng.choice([5, 15, 99]))
        if turn < whole:
            rule, precision = [*RULES, *INT16_RULES][turn], None if turn < len(RULES) else "int16"
            return with_many_keys(rng, random_content(rng, rule, 0, precision), wanted)
        content = {"name": "m", "precision": str(rng.choice(["float32", "float64"]))}
        content |= list(RECIPES.values())[turn - whole]
        content["input"] = {"dim": int(rng.choice([1, 2, 3, 5])), **content.get("input", {})}
        return with_many_keys(rng, content, wanted)


__all__ = ["RECIPES", "Covering", "Drawn", "declared_models", "features", "tuples"]
