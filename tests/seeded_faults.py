"""Are the tests worth their time?  Faults, put in one at a time: which of them does the suite notice?

    python -m tests.seeded_faults [--jobs 2] [--room NAME] [--only N …] [--tests PATH …] [-k WORDS] [--list]

Each fault is put into a copy of the tree, where the suite runs until its first failure (some minutes; hours for all).  First
the copy runs without a fault, and must pass.  Results are kept in build/faults/results.jsonl: the same command goes on
where it was interrupted, on the same tree and with the same tests.  Ends with 1 if a fault was not noticed.

A new fault: a place that a tired person could get wrong, in a module that has few, that parses, and that is not equivalent
to what was there.  ``tests/test_seeded_faults.py`` says when the code has moved on and a fault no longer matches.
"""

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

from tests.support import ROOT


class Fault(NamedTuple):
    what: str
    file: str
    old: str
    new: str
    room: str = ""  # whose tests should notice it, of ROOMS; "": the whole suite's

    def applied(self, text: str) -> str:
        """The text with the fault.  Raises ValueError if it is not there exactly once."""
        if text.count(self.old) != 1:
            raise ValueError(f"{self.file} has {text.count(self.old)} times, not once: {self.old!r} ({self.what})")
        return text.replace(self.old, self.new)


ONLINE = "pykernel/algorithms/online"
SUBSPACE = "pykernel/algorithms/subspace"
BASIS = "pykernel/algorithms/basis"
BATCH = "pykernel/algorithms/batch"
FAULTS = [
    # ---- int16
    Fault(
        "rates of a trained machine's weights are twice as large",
        "pykernel/algorithms/int16/weights.py",
        "clip(scale - coarse - 1 - m.weight_places, 0, 31)",
        "clip(scale - coarse - 2 - m.weight_places, 0, 31)",
    ),
    # ---- online
    Fault("the least likely class", "pykernel/algorithms/elementary.py", "if y[o] > y[best]:", "if y[o] < y[best]:"),
    Fault("novelty 1 - k, not 1 - k^2", f"{ONLINE}/budget.py", "real(1) - nearest * nearest", "real(1) - nearest"),
    Fault(
        *("a repeated vector keeps its age", f"{ONLINE}/budget.py"),
        "    if m.keeps_ages and close:\n        m.age[m.nearest[0]] = 0\n    return outcome",
        "    return outcome",
    ),
    Fault(
        "full one vector too early",
        f"{ONLINE}/budget.py",
        "full = not fills(m) and n == len(m.v)",
        "full = not fills(m) and n + 1 == len(m.v)",
    ),
    Fault("a full model loses no vector before", f"{ONLINE}/budget.py", "removed = remove_one(m)", "removed = 0"),
    Fault("alpha in place of alpha^2", f"{ONLINE}/candidates.py", "total = a * (a * part)", "total = a * part"),
    Fault(
        *("the sample does not count in overlaps", f"{ONLINE}/neighbours.py"),
        *("return m.overlap[i] + m.k[i] * m.k[i]", "return m.overlap[i]"),
    ),
    Fault("of equals the last", f"{ONLINE}/reduction.py", "if value < least or (value", "if value <= least or (value"),
    Fault(
        *("newest and oldest exchanged", f"{ONLINE}/reduction.py"),
        *("return age_of(m, i) < age_of(m, r)", "return age_of(m, i) > age_of(m, r)"),
    ),
    Fault(
        *("sign of a bordered inverse", f"{ONLINE}/inverse_gram.py"),
        *("as_element(m.inverse[row + j] + share * m.u[j])", "as_element(m.inverse[row + j] - share * m.u[j])"),
    ),
    Fault(
        *("u in place of u^2", f"{ONLINE}/inverse_gram.py"),
        *("m.score[j] += m.u[j] * m.u[j] * m.inverse_kappa[0]", "m.score[j] += m.u[j] * m.inverse_kappa[0]"),
    ),
    Fault(
        "sign of a rotation",
        "pykernel/algorithms/release.py",
        "t[row + j] = p * d - q * a",
        "t[row + j] = p * d + q * a",
    ),
    Fault(
        *("a new vector has no neighbour", f"{ONLINE}/neighbours.py"),
        *("m.neighbour[j] = m.distance[j]\n    m.neighbour[i] = nearest", "m.neighbour[j] = m.distance[j]"),
    ),
    Fault("overlaps are not kept up", f"{ONLINE}/neighbours.py", "            m.overlap[j] += squared\n", ""),
    Fault("conjugate lost", f"{ONLINE}/complex_inverse.py", "m.s_im[0] = -(im * scale)", "m.s_im[0] = im * scale"),
    Fault(
        *("multipliers do not decay", f"{ONLINE}/gradient.py"),
        *("m.beta[i, o] = kept(m, m.alpha[i, o])", "m.beta[i, o] = m.alpha[i, o]"),
    ),
    Fault(
        *("the variance's weight is not forgotten", f"{ONLINE}/krls_t.py"),
        *("m.weight[0] = m.forgetting * m.weight[0] + real(1)", "m.weight[0] = m.weight[0] + real(1)"),
    ),
    Fault(
        *("the prior does not come back", f"{ONLINE}/krls_t.py"),
        *("m.forgetting, inverse, m.forgotten, m.n[0])", "m.forgetting, inverse, real(0), m.n[0])"),
    ),
    Fault(
        "off by one", f"{ONLINE}/validity.py", "if i >= n and m.v[i, j] != real(0)", "if i > n and m.v[i, j] != real(0)"
    ),
    Fault(
        *("no upper bound of the power", f"{ONLINE}/krls_t.py"),
        *('between(Real, 0, "power_limit")', "between(Real, 0, LARGEST_ERROR)"),
    ),
    # ---- linear, standardiser, elementary functions, kernels
    Fault(
        *("no squares among the products", "pykernel/algorithms/linear.py"),
        "for j in range(i, len(x)):\n                m.phi[k] =",
        "for j in range(i + 1, len(x)):\n                m.phi[k] =",
    ),
    Fault(
        *("forgetting does not reach the factor", "pykernel/algorithms/linear.py"),
        *("narrow(m, remembered, growth)", "narrow(m, remembered, real(1))"),
    ),
    Fault(
        *("NaN is taken as a label", "pykernel/algorithms/frame.py"),
        *("return absolute(y) <= m.label_limit", "return not (absolute(y) > m.label_limit)"),
    ),
    Fault(
        *("brackets of a variance", "pykernel/algorithms/stages.py"),
        "rest * (m.variance[j] + rate * (difference * difference))",
        "rest * m.variance[j] + rate * (difference * difference)",
    ),
    Fault(
        *("NaN goes on", "pykernel/algorithms/elementary.py", "if not (x >= EXP_LOWEST):", "if x < EXP_LOWEST:"),
    ),
    Fault(
        *("a rounding error stays", "pykernel/algorithms/elementary.py"),
        *("return value - value * rest", "return value"),
    ),
    Fault(
        *("a term is lost", "pykernel/algorithms/kernels.py"),
        *("return e + (rest + rest * (r * THIRD))", "return e + rest * (r * THIRD)"),
    ),
    Fault(
        *("a cosine above 1", "pykernel/algorithms/kernels.py"),
        *("    if cosine > real(1):\n        return real(1)\n", ""),
    ),
    # ---- trained on the device, frozen
    Fault(
        *("sign of the bias's part", f"{BATCH}/krr.py"),
        *("m.spread[i] - m.sums[i] * m.half[i]", "m.spread[i] + m.sums[i] * m.half[i]"),
    ),
    Fault(
        *("the ring ends one too early", f"{BATCH}/krr.py"),
        *("if m.next[0] == len(m.inputs):", "if m.next[0] == len(m.inputs) - 1:"),
    ),
    Fault(
        *("a class's mean by the number of all", f"{BATCH}/kfd.py"),
        *("m.means[label, i] += own * (m.z[i]", "m.means[label, i] += part * (m.z[i]"),
    ),
    Fault(
        *("the wrong pair of classes", "pykernel/algorithms/frozen.py"),
        *("pair += len(m.weights[0]) - r - 1", "pair += len(m.weights[0]) - r"),
    ),
    # ---- bases
    Fault(
        *("coordinates in place of their squares", "pykernel/algorithms/vectors.py"),
        *("total = total - a[i] * b[i]", "total = total - a[i]"),
    ),
    Fault(
        *("a turn too many", f"{BASIS}/least_squares.py"),
        *(
            "turn + 1 if turn + 1 < len(m.coefficients) else 0",
            "turn + 1 if turn + 1 <= len(m.coefficients) else 0",
        ),
    ),
    Fault("of equals the last", f"{BASIS}/reservoir.py", "if loss <= least:", "if loss < least:"),
    # ---- subspaces
    Fault(
        "a new vector has an old claim", f"{SUBSPACE}/budget.py", "    if m.fades:\n        m.claim[i] = real(1)\n", ""
    ),
    Fault("a row without the step", f"{SUBSPACE}/update.py", "m.t[j] = mu * m.q[j]", "m.t[j] = m.q[j]"),
    Fault(
        *("the constant counts once for all outputs", f"{SUBSPACE}/head.py"),
        *("total = m.coefficients[last, o]", "total = m.coefficients[last, 0]"),
    ),
    # ---- the generator
    Fault(
        "brackets are left out",
        "pykernel/language/print_c.py",
        "right = self.operand(node.right, UNARY)",
        "right = self.operand(node.right, level)",
    ),
    Fault(
        "a turn too many", "pykernel/language/print_c.py", "{v} {'<' if up else '>'} ", "{v} {'<=' if up else '>='} "
    ),
    Fault(
        *("digits are lost", "pykernel/language/c_text.py"),
        *('np.format_float_positional(value, trim="0")', 'np.format_float_positional(value, precision=6, trim="0")'),
    ),
    Fault("<= is folded as <", "pykernel/language/specialise.py", '"<=": operator.le', '"<=": operator.lt'),
    Fault(
        *("x == x is true, of NaN too", "pykernel/language/specialise.py"),
        *(
            "if node.op in COMPARE and left.kind is Index and left == right:",
            "if node.op in COMPARE and left == right:",
        ),
    ),
    Fault(
        *("-0.0 becomes 0.0", "pykernel/language/specialise.py"),
        'return Unary(node.line, Real, "-", Literal(node.line, Real, 0.0))',
        "return Literal(node.line, Real, 0.0)",
    ),
    Fault("what callees write is forgotten", "pykernel/language/effects.py", "        fields |= below.fields\n", ""),
    Fault(
        *("one array passed twice is not refused", "pykernel/language/effects.py"),
        *("return arrays and (isinstance(a, Local) or isinstance(b, Local))", "return False"),
    ),
    Fault(
        *("a position in an array of one is not refused", "pykernel/language/expressions.py"),
        *("extent == 1 and written is None,", "extent == 0 and written is None,"),
    ),
    Fault(
        *("one beyond the end is not refused", "pykernel/language/expressions.py"),
        *("isinstance(shortest, int) and written >= shortest:", "isinstance(shortest, int) and written > shortest:"),
    ),
    Fault(
        *("working memory is in the state's hash", "pykernel/gen/project.py"),
        *("zlib.crc32(memory.bytes[: spec.program.hashed_bytes(memory.layout)])", "zlib.crc32(memory.bytes)"),
    ),
]

ROOMS = {
    "plan": ["tests/tuning/test_plan.py"],
    "prover": ["tests/gen/test_ranges.py", "tests/gen/test_ranges_at_edges.py"],
    "cycles": ["tests/targets/test_cycles.py", "tests/targets/test_bound.py"],
    "cache": ["tests/engine/test_compile_cache.py", "tests/engine/test_jitted.py"],
    "importers": ["tests/importers/test_importing.py"],
    "gate": [f"tests/gate/test_{name}.py" for name in ("relations", "faces")],
    "simulate": [f"tests/host/test_{name}.py" for name in ("streams", "host", "simple", "advice")],
}
"""Promises that are no formula, and the tests, as they run by default, that should keep them."""


def of_room(room: str, file: str, *faults: tuple[str, str, str]) -> list[Fault]:
    return [Fault(*fault[:1], file, *fault[1:], room) for fault in faults]


# ---- seams: where two parts meet
FAULTS += of_room(
    *("gate", "pykernel/algorithms/frame.py"),
    *(("a refused label's input is learned", "        return Status.REFUSED_LABEL\n    m.y[0] = y", "        if m.scales:\n            settle_inputs(m, x)\n        return Status.REFUSED_LABEL\n    m.y[0] = y"),),
    ("the expert is judged by its last answer", "    if m.mixes:\n        consult(m, x, False)\n", ""),
    ("the interval judges the last question", "    if m.covers:\n        answer_before(m, x)\n", ""),
    *(("inputs of a frozen model are learned", "        return stand_by(m, x)\n    if m.expects", "        if m.scales:\n            settle_inputs(m, x)\n        return stand_by(m, x)\n    if m.expects"),),
) + of_room(
    *("gate", "pykernel/algorithms/stages.py"),
    ("variances have a floor", "VARIANCE_LEAST = Constant(float32=2.0**-126, float64=2.0**-1022)", "VARIANCE_LEAST = Constant(2.0**-40)"),
) + of_room(
    *("gate", "pykernel/algorithms/expert.py"),
    ("the expert answers without the last input", "    for j in range(len(x)):\n        total += m.expert_weights", "    for j in range(len(x) - 1):\n        total += m.expert_weights"),
) + of_room(
    *("gate", "pykernel/algorithms/missing.py"),
    ("what was missing once stays so", "            m.absent[j] = 0\n", ""),
) + of_room(
    *("gate", "pykernel/spec/model.py"),
    ("a range is one name", "[each for name in names for each in in_range(name)]", "list(names)"),
) + of_room(
    *("gate", "pykernel/engine/executor.py"),
    ("threads share a question's memory", "        with self.memory.lock:\n            self._rows(", "        if True:\n            self._rows("),
) + of_room(
    *("gate", "pykernel/host/model.py"),
    ("labels come a row sooner", "                delay=delay,", "                delay=max(0, delay - 1),"),
)  # fmt: skip
FAULTS += of_room(
    *("plan", "pykernel/tuning/costs.py"),
    ("the stack is no RAM", 'int(costs["ram_bytes"] + costs["stack_bytes"])', 'int(costs["ram_bytes"])'),
    ("more instructions than there are", "HEADROOM = 0.96", "HEADROOM = 1.2"),
    *(("twice the limit fits", "return max(uses.values(), default=math.inf) <= 1", "return max(uses.values(), default=math.inf) <= 2"),),
    ("the bound is forgotten", "max(most or count for most, count in", "max(count for _, count in"),
    ("cycles of the cheapest call", 'max(bound["cycles"] for bound in bounds)', 'min(bound["cycles"] for bound in bounds)'),
)  # fmt: skip
FAULTS += of_room(
    *("plan", "pykernel/tuning/plan.py"),
    ("the farthest miss", "_, trial, uses = min(missed,", "_, trial, uses = max(missed,"),
)  # fmt: skip
FAULTS += of_room(
    *("plan", "pykernel/tuning/promises.py"),
    ("the smallest of all wins", "next(i for i in order if i == best or as_good(losses[i], losses[best]))", "order[0]"),
    ("the rows that choose judge", "chosen([each.of_blocks(~here) for each in losses], sizes)", "chosen(losses, sizes)"),
    ("a test that is not paired", "_root_sum(one.influence() - other.influence())", "_root_sum(one.influence())"),
)  # fmt: skip
FAULTS += of_room(
    *("plan", "pykernel/tuning/tables.py"),
    ("an empty cell is the first class", "places.get(cell, -1) for cell in cells", "places.get(cell, 0) for cell in cells"),
)  # fmt: skip
FAULTS += of_room(
    *("prover", "pykernel/language/ranges.py"),
    (">= is narrowed as >", 'np.maximum(mine.low, other.low + (op == ">"))', "np.maximum(mine.low, other.low + 1)"),
    ("<= is narrowed as <", 'np.minimum(mine.high, other.high - (op == "<"))', "np.minimum(mine.high, other.high - 1)"),
    ("!= of an interval takes its end away", "np.where(single & (mine.low == other.low), mine.low + 1, mine.low)", "np.where(mine.low == other.low, mine.low + 1, mine.low)"),
    ("not < is >", 'OPPOSITE = {"<": ">="', 'OPPOSITE = {"<": ">"'),
    ("a corner of a product", "a.low * b.low, a.low * b.high, a.high * b.low", "a.low * b.low, a.high * b.low"),
    ("ends of a difference", "Interval(left.low - right.high, left.high - right.low)", "Interval(left.low - right.low, left.high - right.high)"),
    ("what was written is still known", 'if fields is None or owner.removeprefix("s.") in fields or not owner.startswith("s."):', "if fields is None:"),
    ("not (a and b) is not a and not b", 'if (condition.op == "and") == truth:', 'if condition.op == "and":'),
    ("ends of a quotient", "return Interval(a.low // b.high, a.high // b.low)", "return Interval(a.low // b.high, a.high // b.high)"),
    ("a negative number is shifted the other way", "np.minimum(a.low >> low, a.low >> high)", "a.low >> high"),
)  # fmt: skip
FAULTS += of_room(
    *("cycles", "pykernel/targets/decode.py"),
    ("a return by pop is short", r'1 + _registers(operands) + (2 if re.search(r"\bpc\b", operands) else 0)', "1 + _registers(operands)"),
    ("a load takes one", """word in ("b", "bx") or operands.startswith("pc"):\n        return 2""", """word in ("b", "bx") or operands.startswith("pc"):\n        return 1"""),
    ("a call is short", 'return 3 if word in ("bl", "mrs", "msr", "dmb"', 'return 2 if word in ("bl", "mrs", "msr", "dmb"'),
    ("a branch that is taken costs nothing more", '"cortex-m0plus": (_m0plus, 1)', '"cortex-m0plus": (_m0plus, 0)'),
    ("a register of a list", '.count(",") + 1', '.count(",")'),
    ("AVR: a skip of two words is one cycle", "Way(after + skipped, skipped // 2)", "Way(after + skipped, 1)"),
    ("AVR: reading flash takes two", '("1001000_____01__", "lpm, elpm", 3)', '("1001000_____01__", "lpm, elpm", 2)'),
    ("AVR: a call is short", '("1001010_____111_", "call", 4)', '("1001010_____111_", "call", 3)'),
    ("AVR: a branch that is taken costs nothing more", 'Way(to, 1 if word == "br" else 0, branches', "Way(to, 0, branches"),
) + of_room(
    *("cycles", "pykernel/targets/bound.py"),
    ("one less than the bound", "return math.floor(-answer.fun * (1 + 1e-7) + 0.01)", "return math.floor(-answer.fun * (1 + 1e-7) + 0.01) - 1"),
)  # fmt: skip
FAULTS += of_room(
    *("cache", "pykernel/sealed.py"),
    ("another user's code is loaded", 'own = os.name == "nt" or os.fstat(file.fileno()).st_uid == os.getuid()', "own = True"),
    ("a seal fits everywhere", r'hashlib.sha256(f"{path.parent.name}/{path.name}\0".encode() + content)', "hashlib.sha256(content)"),
    ("a seal is not looked at", "if found[:32] == _seal(path, found[32:]):", "if len(found) >= 32:"),
    ("a month is a day", "time.time() - days * 86400", "time.time() - days * 3600"),
    ("anybody may look in", "folder.mkdir(mode=0o700", "folder.mkdir(mode=0o755"),
) + of_room(
    *("cache", "pykernel/engine/llvm.py"),
    ("one code for all choices", 'f"{precision} {choices} {[root.name for root in roots]}"', 'f"{precision} {[root.name for root in roots]}"'),
    ("sources do not count", '"".join([*MAKERS.values(), sources_digest(roots)])', '"".join(MAKERS.values())'),
    ("one machine code for all texts", r'hashlib.sha256(f"{processor}\0{text}".encode())', 'hashlib.sha256(f"{processor}".encode())'),
) + of_room(
    *("cache", "pykernel/engine/jitted.py"),
    ("Numba: constants do not count", "*source.texts.values(), repr(constants)]", "*source.texts.values()]"),
) + of_room(
    *("cache", "pykernel/engine/sources.py"),
    ("names of files are enough", r'path.name.encode() + b"\0" + path.read_bytes()', "path.name.encode()"),
)  # fmt: skip
FAULTS += of_room(
    *("importers", "pykernel/importers/steps.py"),
    ("the limit forgets the centre", "(machine.largest / np.abs(affine.scale) + np.abs(affine.center)).max()", "(machine.largest / np.abs(affine.scale)).max()"),
    ("two scalers", "center=self.center + center / self.scale", "center=self.center + center * self.scale"),
    ("a scaler behind a matrix", "offset=(self.offset - center) * scale)", "offset=self.offset - center)"),
    ("a selection behind a matrix", "matrix=self.matrix[kept], offset=offset[kept]", "matrix=self.matrix[kept], offset=offset[: len(kept)]"),
    ("MinMaxScaler's zero", 'array_of(step.min_, (dim,), where, "min_") / scale, scale)', 'array_of(step.min_, (dim,), where, "min_"), scale)'),
    ("whitened by the variance", "np.maximum(np.sqrt(variance),", "np.maximum(variance,"),
    ("a column is taken twice", "len(np.unique(taken)) == len(taken) and all(", "all("),
    ("a linear machine's slope", "bias = machine.bias + slope * machine.columns_of_weights().T @ (machine.vectors @ t)", "bias = machine.bias + machine.columns_of_weights().T @ (machine.vectors @ t)"),
    ("an offset is not moved", "shifted(machine, machine.vectors @ t)", "shifted(machine, 0 * (machine.vectors @ t))"),
    ("columns have no weight", "np.full(own.width, factor)", "np.ones(own.width)"),
)  # fmt: skip
FAULTS += of_room(
    *("simulate", "pykernel/host/run.py"),
    ("labels come at once", "np.concatenate([nothing, self._waiting_y, y])[: len(y)]", "np.concatenate([nothing, self._waiting_y, y])[-len(y) :]"),
    ("refreshed by batches", "start + self.refresh_every - self.rows % self.refresh_every", "start + self.refresh_every"),
    ("a streak is one longer", "int(np.diff(borders).max()) - 1)", "int(np.diff(borders).max()))"),
) + of_room(
    *("simulate", "pykernel/host/monitoring.py"),
    ("rows in alarm are those of a part", "self.alarms.take(self.rows + np.arange(len(which)),", "self.alarms.take(np.arange(len(which)),"),
) + of_room(
    *("simulate", "pykernel/host/alarms.py"),
    ("an alarm goes on over a pause", "order[i] == self._last + 1 or states[i, 2] > 1", "order[i] <= self._last + 2"),
) + of_room(
    *("simulate", "pykernel/host/simulation.py"),
    ("scored before a label is known", "return np.asarray(begun[:-1])", "return np.asarray(begun[1:])"),
) + of_room(
    *("simulate", "pykernel/host/simple.py"),
    ("the last label is the next one", "return last[:-1], sums[:-1]", "return last[1:], sums[:-1]"),
    ("the majority with the next one", "return last[:-1], counts[:-1].argmax(axis=1)", "return last[:-1], counts[1:].argmax(axis=1)"),
) + of_room(
    *("simulate", "pykernel/host/scores.py"),
    ("a tenth better is as good", "alike = more <= ALIKE * less", "alike = more <= 1.1 * less"),
    ("no root of the mean square", "each(np.sqrt(part[1 + k :] / n_or_1))", "each(part[1 + k :] / n_or_1)"),
)  # fmt: skip

BUILD = ROOT / "build" / "faults"
PATIENCE = 7200
"""Seconds after which a run counts as hung."""


def copy_tree(into: Path) -> str:
    """The tree as it is, new files included, where `import pykernel` finds all of it; its digest."""
    shutil.rmtree(into, ignore_errors=True)
    listed = subprocess.run(
        ["git", "ls-files", "-coz", "--exclude-standard"], cwd=ROOT, capture_output=True, check=True
    )
    whole = hashlib.sha256()
    for name in sorted(filter(None, listed.stdout.decode().split("\0"))):
        if (source := ROOT / name).is_file():
            target = into / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target)
            whole.update(f"{name} {hashlib.sha256(source.read_bytes()).hexdigest()}\n".encode())
    return whole.hexdigest()[:16]


def run(tree: Path, cache: Path, jobs: int, words: list[str]) -> tuple[bool, str]:
    """Whether the suite passes, and the first test that does not."""
    environment = os.environ | {"PYTHONPATH": str(tree), "XDG_CACHE_HOME": str(cache), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "pytest", "-x", "-p", "no:cacheprovider", *(["-n", str(jobs)] if jobs > 1 else [])]
    try:
        done = subprocess.run(
            [*command, *words], cwd=tree, env=environment, capture_output=True, text=True, timeout=PATIENCE
        )
    except subprocess.TimeoutExpired:
        return False, "hung"
    if done.returncode == 0:
        return True, ""
    found = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", done.stdout, re.MULTILINE)
    if not found and done.returncode > 0:
        sys.exit(f"pytest did not run:\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")
    return False, found[1] if found else "crashed"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--room", choices=ROOMS, help="its ten faults, against its tests alone")
    parser.add_argument("--jobs", type=int, default=1, help="processes of one run")
    parser.add_argument("--only", type=int, nargs="+", default=range(1, len(FAULTS) + 1), help="numbers of faults")
    parser.add_argument("--tests", nargs="+", default=[], help="run these alone")
    parser.add_argument("-k", help="as of pytest")
    parser.add_argument("--list", action="store_true", help="the faults, and nothing else")
    given = parser.parse_args()
    if given.list:
        for number, fault in enumerate(FAULTS, 1):
            print(f"{number:2} {fault.file}: {fault.what}")
        return
    if given.room:
        given.only = [number for number, fault in enumerate(FAULTS, 1) if fault.room == given.room]
    words = [*(given.tests or ROOMS.get(given.room, [])), *(["-k", given.k] if given.k else [])]
    tree, cache, results = BUILD / "tree", BUILD / "cache", BUILD / "results.jsonl"
    digest = copy_tree(tree)
    known = {}
    if results.is_file():
        for line in results.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            known[row["tree"], row["fault"], tuple(row["tests"])] = row
    caught = 0
    for number in (0, *given.only):
        fault = FAULTS[number - 1] if number else Fault("no fault", "", "", "")
        key = (digest, "/".join(fault[:4]), tuple(words))
        if key not in known:
            kept = set(cache.glob("pykernel/*/*"))
            path = tree / fault.file
            original = path.read_text(encoding="utf-8") if number else ""
            started = time.time()
            if number:
                path.write_text(fault.applied(original), encoding="utf-8")
            try:
                passed, test = run(tree, cache, given.jobs, words)
            finally:
                if number:
                    path.write_text(original, encoding="utf-8")
            for made in set(cache.glob("pykernel/*/*")) - kept if number else ():  # of this fault's sources
                shutil.rmtree(made, ignore_errors=True)
            row = {"tree": digest, "fault": key[1], "tests": words, "passed": passed, "test": test}
            known[key] = row | {"seconds": round(time.time() - started)}
            with results.open("a", encoding="utf-8") as file:
                file.write(json.dumps(known[key]) + "\n")
        row = known[key]
        if not number:
            if not row["passed"]:
                sys.exit(f"the suite fails without a fault: {row['test']}; that is to be mended first")
            continue
        caught += not row["passed"]
        verdict = "NOT NOTICED" if row["passed"] else f"noticed by {row['test']}"
        print(f"{number:2} {fault.file}: {fault.what}: {verdict} ({row['seconds']} s)", flush=True)
    count = len(list(given.only))
    print(f"{caught} of {count} faults were noticed")
    sys.exit(caught < count)


if __name__ == "__main__":
    main()
