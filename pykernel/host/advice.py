"""Find out why a model is bad, and what to change in its spec.

Each test looks for the signs of one known problem in the statistics of a simulation.  The changes that a test proposes
can be tried on the rows of this simulation.
"""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from pykernel.errors import UserError
from pykernel.host.scores import Windows
from pykernel.host.simple import linear_specs
from pykernel.spec.defaults import width
from pykernel.spec.missing import WORDS, choice
from pykernel.spec.model import Spec, make_spec

LEAST_SLOPE = 0.8
"""Smallest acceptable slope of the regression of labels on predictions, after the labels' running mean has been
subtracted from the labels and from the predictions.

A smaller slope means that the predictions lie too far from the mean.
"""
MOST_CORRELATION = 0.3
"""Largest acceptable correlation between a row's error and the latest error that is known when the row is predicted.

If the correlation is larger, the known error could improve the prediction.
"""
FAR_LABELS = 1.0
"""Largest acceptable distance between the labels' mean and 0, in standard deviations."""
FAR_INPUTS = 3.0
"""Largest acceptable distance between an input's mean and 0, in standard deviations."""
UNLIKE = 10.0
"""Largest acceptable ratio between the standard deviations of two inputs."""
WORSE, CHANCE, BLOCKS = 1.02, 2.0, 20
"""A model is worse than a simple predictor if its error is more than WORSE times the predictor's error, and if the t
statistic of the difference between their mean squared errors, computed from up to BLOCKS blocks of rows, is above
CHANCE.
"""
KEPT = 64
"""Number of rows that ``Signs`` keeps: those whose labels are farthest from the running mean."""
OUTLYING, DECIDED = 10.0, 0.5
"""A label is an outlier if its distance from the running mean is more than OUTLYING times the root mean square distance
of the other labels. Outliers are reported if they cause at least the fraction DECIDED of the total squared error.
"""
WORTH = 0.95
"""A change is reported only if the error with it is at most this fraction of the error without it."""
FEW = 200
"""Minimum number of scored rows in the second half of the rows; if there are fewer, nothing is reported."""
FEW_LABELS, HALF = 20, 0.5
"""A class is missed if it has at least FEW_LABELS rows but fewer than HALF times the mean number of rows per class, and
if its recall is below HALF.
"""


class Signs:
    """The statistics of a stream that the tests need, in constant memory.

    These are sums of products of residuals, the first two moments of each column, and the rows with the most unusual
    labels.
    """

    def __init__(self, spec: Spec, delay: int) -> None:
        # r k, k k, e e', e e, r r, with r = label - mean, k = answer - mean, e = error, e' = latest known error
        self.sums = Windows(5)
        self.rows = 0
        self.first: np.ndarray | None = None
        self.moments = np.zeros((2, spec.dim + (0 if spec.label.classes else spec.outputs)))
        self._waiting = np.zeros((delay + 1, spec.outputs))
        self._taken = delay
        # columns: row, r r, e e, and the label and answer of the output with the most unusual label
        self.unusual = np.zeros((0, 5))

    def take(self, x: np.ndarray, truth: np.ndarray, errors: np.ndarray, mean: np.ndarray) -> None:
        """Take the next rows.

        x: the inputs. truth: the labels, with NaN where a label is not known.  errors: the model's errors.  mean: the
        labels' running mean.  All shapes are (rows, ...).
        """
        k = np.nan_to_num(errors + truth - mean)
        r = np.where(np.isfinite(errors), truth - mean, 0.0)
        k = np.where(np.isfinite(errors), k, 0.0)
        own = np.nan_to_num(errors)
        self._keep_unusual(r, own, truth)
        past = np.concatenate([self._waiting, own])
        pairs = ((r, k), (k, k), (own, past[: len(own)]), (own, own), (r, r))
        with np.errstate(over="ignore"):
            self.sums.add(np.column_stack([(a * b).sum(axis=1) for a, b in pairs]))
        self._waiting = past[len(own) :]
        self.take_columns(np.column_stack([x.astype(np.float64), truth]), np.isfinite(errors).all(axis=1))

    def take_columns(self, table: np.ndarray, answered: np.ndarray) -> None:
        """Take the next rows.

        table: inputs and numeric labels, (rows, columns).  answered: whether the model answered each row, (rows,).
        """
        # refused rows are left out, because the model does not learn from them
        table = table[np.isfinite(table).all(axis=1) & answered]
        if self.first is None and len(table):
            self.first = table[0].copy()
        if len(table):
            # subtract the first row, so that the sums of large numbers lose no digits
            table = table - self.first
            self.rows += len(table)
            self.moments += np.stack([table.sum(axis=0), (table * table).sum(axis=0)])

    def _keep_unusual(self, r: np.ndarray, errors: np.ndarray, truth: np.ndarray) -> None:
        with np.errstate(over="ignore"):
            away, squares = (r * r).sum(axis=1), (errors * errors).sum(axis=1)
        each, most = np.arange(len(r)), np.abs(r).argmax(axis=1)
        label = truth[each, most]
        rows = np.column_stack([each + self._taken, away, squares, label, label + errors[each, most]])
        rows = np.concatenate([self.unusual, rows])
        self.unusual = rows[np.argsort(-rows[:, 1], kind="stable")[:KEPT]]
        self._taken += len(r)

    def columns(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the mean and the standard deviation of each column: first the inputs, then the numeric labels."""
        mean, square = self.moments / max(1, self.rows)
        first = np.zeros(len(mean)) if self.first is None else self.first
        return mean + first, np.sqrt(np.maximum(square - mean * mean, 0))


Trial = Callable[[Spec], "float | None"]
"""A function that runs another spec over the same rows.  It returns the error over the second half of the rows, or None if
no row of that half was scored.
"""
Content = dict[str, Any]
Change = tuple[str, Content]
"""A change to a spec: its description, and the content of the changed spec."""


def advice(simulation: Any, trial: Trial | None = None) -> list[dict[str, Any]]:
    """Return a list of the problems that were found, each as {test, value, why, change}.

    Without ``trial``, changes are proposed untried, and the tests for too few digits and for missing inputs are left
    out.

    With ``trial``, each change is tried together with the changes reported before it.  A problem is then reported only
    if a change reduces the remaining error over the second half by at least 5 %.  There are two exceptions.  Outlying
    labels and missed classes are reported without a trial.  A better simple predictor is reported even if no change
    helps.
    """
    return _Adviser(simulation, trial).examine()


class _Adviser:
    def __init__(self, simulation: Any, trial: Trial | None) -> None:
        self.simulation, self.spec, self.trial = simulation, simulation.spec, trial
        self.half = simulation.rows // 2
        # r k, k k, e e', e e and r r, summed over the second half of the rows; ``Signs`` defines r, k, e and e'
        _, self.sums = simulation.signs.sums.since(self.half)
        self.kind = "error_rate" if simulation.classes else "rmse"
        second = simulation.summary(simulation.errors, self.half)
        self.scored, self.errors = second["scored"], second[self.kind]
        self.now: float = self.errors["model"] or 0.0
        self.content: Content = self.spec.model_dump(exclude_unset=True)
        self.findings: list[dict[str, Any]] = []

    def examine(self) -> list[dict[str, Any]]:
        if self.scored < FEW or not self.spec.program.learns or self.simulation.trains:
            return []
        self._diverged()
        self._digits()
        if not self.simulation.classes:
            self._units()
            self._outlying()
            self._slope()
            self._memory()
        # these two tests do not apply to a model with class weights, which accepts more errors for the sake of rare classes
        if not getattr(self.spec.config, "weights_classes", False):
            self._simple()
            self._rare()
        self._missing()
        return self.findings

    # ------------------------------------------------------------------------------------------------ the tests

    def _diverged(self) -> None:
        count = self.simulation.statuses.get(getattr(self.spec.program.status, "RESTARTED", None), 0)
        if count:
            why = f"the model began anew {count:,} times: learning diverged, or many labels had nothing to do with their inputs"
            self._propose("new beginnings", count, why, [*self._smaller_steps(), *self._recipes()])

    def _digits(self) -> None:
        """Measure how much rounding increases the error, by running the same model in float64.

        This is tried only if an input is far from 0, or if a simple predictor is better than the model.  Rules that
        multiply inputs lose the most digits, and no status reports the loss.
        """
        if self.trial is None or self.spec.precision != "float32":
            return
        away, _ = self._away()
        simple = [error for name, error in self.errors.items() if name != "model" and error is not None]
        if not (away > FAR_INPUTS or (simple and self.now > WORSE * min(simple))):
            return
        wide: Change = ('precision = "float64"', self._with("")[1] | {"precision": "float64"})
        try:
            exact = self.trial(make_spec(wide[1], custom=self.spec.custom))
        except UserError:  # this spec is not allowed in float64
            return
        if exact is None or exact > WORTH * self.now:
            return
        far = f", and an input's mean is {away:.3g} standard deviations from 0" if away > FAR_INPUTS else ""
        shown = self._shown(exact), self._shown(self.now)
        why = f"the same model has an error of {shown[0]} in float64, and of {shown[1]} in float32{far}"
        value, before = self.now / max(exact, 1e-300), len(self.findings)
        # tried first: with standardised inputs, float32 may have enough digits, and it needs half the memory of float64
        self._propose("too few digits", value, why, self._standardised())
        if len(self.findings) == before:
            self._propose("too few digits", value, why, [wide])

    def _standardised(self) -> list[Change]:
        """Return a list with the change that standardises the inputs.

        The list is empty if the rule does not support this, or if the inputs are already standardised or scaled.
        """
        if self.spec.standardises or self.spec.scaling != (None, None) or not self.spec.has("input", "standardise"):
            return []
        changed: dict[str, Content] = {"input": {"standardise": True}}
        told = "[input] standardise = true"
        if self.spec.kernel is not None and self.spec.kernel.function == "gaussian":
            sigma = width(self.spec.dim)
            changed["kernel"] = {"sigma": sigma, "gamma": None}
            told += f", [kernel] sigma = {sigma:g}"
        return [self._with(told, **changed)]

    def _units(self) -> None:
        away_inputs, away = self._away()
        if away > FAR_LABELS and not getattr(self.spec.label, "center", True):
            why = f"the labels' mean is {away:.3g} standard deviations from 0, but a kernel model starts with answers of 0"
            self._propose("labels far from 0", away, why, [self._with("[label] center = true", label={"center": True})])
        if not (changes := self._standardised()):
            return
        _, deviation = self.simulation.signs.columns()
        moving = deviation[: self.spec.dim][deviation[: self.spec.dim] > 0]
        unlike = float(np.divide(moving.max(), moving.min())) if len(moving) else 1.0
        if unlike > UNLIKE or away_inputs > FAR_INPUTS:
            why = f"the inputs' standard deviations differ by a factor of up to {unlike:.3g}" if unlike > UNLIKE else (
                f"an input's mean is {away_inputs:.3g} standard deviations from 0")  # fmt: skip
            self._propose("inputs of unlike size", max(unlike, away_inputs), why, changes)

    def _away(self) -> tuple[float, float]:
        """Return the largest distance of an input's mean from 0, and the largest distance of a label's mean from 0. The
        distances are in standard deviations.
        """
        mean, deviation = self.simulation.signs.columns()
        d = self.spec.dim
        return _largest(mean[:d], deviation[:d]), _largest(mean[d:], deviation[d:])

    def _outlying(self) -> None:
        e2, r2 = self.sums[3:]
        found = self.simulation.signs.unusual
        found = found[found[:, 0] >= self.half][: self.scored // 100]
        if not (len(found) and 0 < e2 < math.inf and r2 < math.inf):
            return
        # element i: the mean of r r over all scored rows except the first i + 1 rows of ``found``
        rest = np.maximum(r2 - np.cumsum(found[:, 1]), 0) / (self.scored - 1 - np.arange(len(found)))
        count = int(np.argmin(np.append(found[:, 1] > OUTLYING**2 * rest, False)))
        outlying = float(found[:count, 2].sum())
        if outlying < DECIDED * e2:
            return
        row, _, _, label, answer = found[0]
        others = math.sqrt(max(e2 - outlying, 0) / (self.scored - count))
        limited = getattr(self.spec.label, "clip", 0.0) is not None
        why = (
            f"{_rows(count)} of {self.scored:,} {'causes' if count == 1 else 'cause'} {100 * outlying / e2:.3g} % of the"
            f" squared error (row {int(row) + 1:,}: label {label:.6g}, answer {answer:.6g}); the error of the other rows is"
            f" {others:.4g}"
        )
        change = "look at these rows: if these labels are wrong, [label] max_abs can refuse them"
        if not limited:
            change += "; [label] clip = 5 keeps the model from following them"
        self._tell("outlying labels", count, why, change)

    def _slope(self) -> None:
        rk, kk = self.sums[:2]
        slope = float(rk / kk) if kk > 0 else 1.0
        if slope < LEAST_SLOPE:
            why = f"labels are on average {slope:.2g} times as far from their mean as the answers: the model follows the noise"
            gain = (
                [self._with("[label] gain = true", label={"gain": True})]
                if not getattr(self.spec.label, "gain", True)
                else []
            )
            self._propose("answers too large", slope, why, [*self._smaller_steps(), *gain])

    def _memory(self) -> None:
        ee, e2 = self.sums[2:4]
        correlation = float(ee / e2) if e2 > 0 else 0.0
        # if digits are lost, rounding alone may explain the correlation
        rounding = any(each["test"] == "too few digits" for each in self.findings)
        if correlation > MOST_CORRELATION and not rounding:
            why = (
                f"errors have a correlation of {correlation:.2f} with the latest known error: earlier labels contain "
                "information that the inputs lack"
            )
            self._propose("errors that follow each other", correlation, why, [*self._last_label(), *self._recipes()])

    def _simple(self) -> None:
        squares = self.simulation.errors.squares(BLOCKS, self.half)
        if len(squares) < BLOCKS // 2:
            return
        apart = {}
        for i, name in enumerate(self.simulation.errors.names[1:], 1):
            if self.errors[name] is None or not self.now > WORSE * self.errors[name]:
                continue
            differences = squares[:, 0] - squares[:, i]
            spread = float(differences.std(ddof=1)) / math.sqrt(len(differences))
            if differences.mean() > CHANCE * spread:
                apart[name] = self.now / max(self.errors[name], 1e-300)
        if not apart:
            return
        name = max(apart, key=lambda each: apart[each])
        model = "model" if self.now == self.errors["model"] else "model with the changes above"
        errs = f"the {name} has an error of {self._shown(self.errors[name])}, the {model} an error of {self._shown(self.now)}"
        why = f"{errs}, over the second half"
        last = self._last_label() if name == "last label" else []
        remedies = [*last, *self._recipes(), *self._expert(), *self._linear(name)]
        self._propose("a simple predictor is better", apart[name], why, remedies, always=True)

    def _rare(self) -> None:
        if not getattr(self.spec.config, "votes", False):
            return
        confusion = self.simulation.confusion
        labels, right = confusion.sum(axis=1), confusion.diagonal()
        missed = (labels >= FEW_LABELS) & (labels < HALF * labels.mean()) & (right < HALF * labels)
        if missed.any():
            worst = int(np.where(missed, right / np.maximum(labels, 1), 1).argmin())
            name, recall = self.simulation.classes[worst], right[worst] / labels[worst]
            why = (
                f"the model classifies {100 * recall:.3g} % of the {labels[worst]:,} rows of class {name!r} correctly: "
                "the class is rare"
            )
            change = (
                '[label] weights = "balanced": rare classes count more; probabilities do not change, and the error rate '
                "may rise"
            )
            self._tell("a class is missed", recall, why, change)

    def _missing(self) -> None:
        """Compare two treatments of missing inputs: impute the inputs, or refuse the row and repeat the last answer."""
        gaps = self.simulation.missing.sum()
        if self.trial is None or not gaps or not self.spec.has("input", "missing") or choice(self.spec) != "refuse":
            return
        standing = self.simulation.summary(self.simulation.standing, self.half)[self.kind]["model"]
        found = {}
        for told, content in self._possible(
            [self._with(f'[input] missing = "{way}"', input={"missing": way}) for way in WORDS]
        ):
            error = self.trial(make_spec(content, custom=self.spec.custom))
            if error is not None:
                found[error] = told
        if found and min(found) <= WORTH * standing:
            why = (
                f"{gaps:,} values of inputs are missing, and the model refuses rows with missing inputs: if the last answer "
                f"counts for these rows, the error is {self._shown(standing)}"
            )
            self._tell(
                "missing inputs",
                float(gaps),
                why,
                f"{found[min(found)]}: the error is {self._shown(min(found))}, with an answer to every row",
            )

    # ------------------------------------------------------------------------------------------------ the changes

    def _with(self, text: str, **changes: Content) -> Change:
        """Return a change that gives new values to some keys. The value None removes a key."""
        made: Content = {n: dict(part) if isinstance(part, Mapping) else part for n, part in self.content.items()}
        for section, keys in changes.items():
            made[section] = {k: v for k, v in {**made.get(section, {}), **keys}.items() if v is not None}
        return text, made

    def _last_label(self) -> list[Change]:
        """Return changes that make the latest known label an input of a linear expert, in this model or in the default model."""
        if self.simulation.classes or self.content.get("mixture", {}).get("last"):
            return []
        last = {"last": self.simulation.delay + 1}
        words = f"[mixture] last = {last['last']}: the latest known label is an input"
        defaults = [(f"{words}, and {told}", content | {"mixture": last}) for told, content in self._recipes()]
        return self._possible([self._with(words, mixture=last), *defaults])

    def _smaller_steps(self) -> list[Change]:
        learning = self.spec.learning
        if self.spec.has("learning", "eta"):
            eta = float(f"{0.4 * learning.eta:.2g}")
            return [self._with(f"[learning] eta = {eta:g}", learning={"eta": eta})]
        if self.spec.has("learning", "noise") and learning.noise != "auto":
            return [self._with('[learning] noise = "auto"', learning={"noise": "auto"})]
        return []

    def _recipes(self) -> list[Change]:
        """Return the changes that remove the rule, so that the spec gets a default model.

        The first change keeps the budget; the second change removes the budget too.
        """
        kinds = {"[kernel] and [learning]": self._default(budget=True)}
        if "reduction" in self.content:
            kinds["[kernel], [learning] and [reduction]"] = self._default()
        return [
            (f"leave {left} out: the default model learns from raw data", kept)
            for left, kept in kinds.items()
            if kept is not None and not self._is_own(kept)
        ]

    def _expert(self) -> list[Change]:
        """Return the change that adds a linear expert to the model, if the model can have one."""
        change = self._with("[mixture]: a linear expert beside the model", mixture={})
        return [] if "mixture" in self.content else self._possible([change])

    def _possible(self, changes: list[Change]) -> list[Change]:
        """Return the changes that give a valid spec."""
        found = []
        for change in changes:
            with contextlib.suppress(UserError):
                make_spec(change[1], custom=self.spec.custom)
                found.append(change)
        return found

    def _linear(self, name: str) -> list[Change]:
        """Return a list with the change that replaces the model with the linear model ``name``.

        The list is empty if no linear model has this name, or if the spec has precision int16.
        """
        made = linear_specs(self.spec).get(name)
        if made is None or self.spec.real.is_int16:
            return []
        content = made.model_dump(exclude_unset=True)
        given, known = self.content.get("input", {}), self.content.get("label", {})
        content |= {key: self.content[key] for key in ("name", "precision", "target") if key in self.content}
        content["input"] |= {key: given[key] for key in ("columns", "dim") if key in given}
        content["label"] |= {key: known[key] for key in ("column", "columns", "classes") if key in known}
        content["input"] = {
            k: v for k, v in content["input"].items() if k != "dim" or "columns" not in content["input"]
        }
        content["label"] = {
            k: v for k, v in content["label"].items() if k != "outputs" or not {"column", "columns"} & set(known)
        }
        written = ", ".join(f"{key} = {json.dumps(value)}" for key, value in content["learning"].items())
        stages = ", and [input] standardise and [label] center" if content["input"].get("standardise") else ""
        return [(f"a linear model alone, [learning] {written}{stages}", content)]

    def _is_own(self, content: Content) -> bool:
        """Return whether the content gives the same spec as ``self.content``."""
        return make_spec(content).model_dump() == make_spec(self.content, custom=self.spec.custom).model_dump()

    def _default(self, budget: bool = False) -> Content | None:
        """Return the content of a spec with the default model for the same columns, labels, precision and target, or None
        if the default model does not accept them.

        budget: whether to keep the budget.  With a budget, the default model stores vectors.
        """
        kept: Content = {name: self.content[name] for name in ("name", "precision") if name in self.content}
        kept["input"] = {k: v for k, v in self.content["input"].items() if k in ("columns", "dim", "max_abs")}
        label = self.content.get("label", {})
        kept["label"] = {k: v for k, v in label.items() if k not in ("center", "gain", "clip", "horizon")}
        if budget and "n_max" in self.content.get("reduction", {}):
            kept["reduction"] = {"n_max": self.content["reduction"]["n_max"]}
        if "target" in self.content:
            kept["target"] = self.content["target"]
        try:
            make_spec(kept)
        except UserError:
            return None
        return kept

    def _propose(self, test: str, value: float, why: str, changes: list[Change], always: bool = False) -> None:
        """Report a finding with the change that reduces the error most or, without trials, with all changes.

        If no change reduces the error enough, the finding is reported only if ``always`` is true.
        """
        if self.now == 0:  # if the error is 0, as for constant labels, no change can reduce it
            return
        if self.trial is None:
            if changes or always:
                self._tell(test, value, why, " or ".join(text for text, _ in changes) or "nothing is known to help")
            return
        best: tuple[float, Change] | None = None
        for change in changes:
            try:
                error = self.trial(make_spec(change[1], custom=self.spec.custom))
            except UserError:  # the changed keys cannot be combined
                continue
            if error is not None and (best is None or error < best[0]):
                best = (error, change)
        if best is not None and best[0] <= WORTH * self.now:
            error, (text, self.content) = best
            added = ", together with the above" if self.findings else ""
            text += f": the error is {self._shown(error)} instead of {self._shown(self.now)}{added}{self._beside()}"
            self._tell(test, value, why, text)
            self.now = error
        elif always:
            tried = f"; tried without success: {'; '.join(text for text, _ in changes)}" if changes else ""
            self._tell(test, value, why, f"take the simple predictor{tried}")

    def _tell(self, test: str, value: float, why: str, change: str) -> None:
        self.findings.append({"test": test, "value": float(value), "why": why, "change": change})

    def _beside(self) -> str:
        """Return a phrase with the best simple predictor and its error: even the changed model may be worse than it."""
        known = {name: error for name, error in self.errors.items() if name != "model" and error is not None}
        name = min(known, key=lambda each: known[each], default=None)
        return "" if name is None else f" ({name}: {self._shown(known[name])})"

    def _shown(self, error: float) -> str:
        return f"{100 * error:.3g} %" if self.kind == "error_rate" else f"{error:.4g}"


def _rows(count: int) -> str:
    return "1 row" if count == 1 else f"{count:,} rows"


def _largest(mean: np.ndarray, deviation: np.ndarray) -> float:
    """Return the largest distance of a column's mean from 0, in standard deviations.

    Constant columns are left out.
    """
    moving = deviation > 1e-9 * np.abs(mean)
    return float((np.abs(mean[moving]) / deviation[moving]).max()) if moving.any() else 0.0
