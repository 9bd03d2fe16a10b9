"""Programs that predict one row on an emulated Cortex-M4F: ours, and what other generators make of other models.

All have ``void score(const T *x, R *y)``, are built by one compiler with GCC -O2, and are counted in the same way:

flash          all that is linked into a program that does nothing else, the C library's functions included
RAM            static data, and the stack that was used
instructions   of one call, the mean

The others get what their friends would give them: contraction of products and sums, GCC's other defaults, standardisation
within the first layer of a network, weights with all of their digits (emlearn 0.23 writes six decimals), and for trees
inputs that are even numbers (emlearn 0.23 cuts off the fraction of a threshold).
"""

from __future__ import annotations

import contextlib
import copy
import re
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from benchmarks.device.imported_instructions import ANSWER, BUILDS, DEFAULTS, TARGET
from benchmarks.tables import gcc_version
from pykernel.gen.compilers import Compiler
from pykernel.gen.project import build
from pykernel.host.bikeshare import bikeshare
from pykernel.host.model import HostModel
from pykernel.spec.model import Spec
from pykernel.targets.build import Image, model_files, model_image
from pykernel.targets.unicorn_runner import MAILBOX, EmulatedCpu

CHAIN, LEVEL = BUILDS[0]
JUDGED, HELD = 300, 0.3
COMPARED = 100
"""Rows on which our C is run, and compared byte for byte with the host."""
WIDEST = 32_000
"""Counts of inputs for trees are even numbers up to this one."""


class Network:
    """A perceptron of one hidden layer on standardised inputs: solver, penalty and steps by five folds, then the best of three seeds by its loss."""

    CHOICES: ClassVar[list[dict[str, Any]]] = [
        *({"solver": "lbfgs", "alpha": a, "max_iter": steps} for a in (1e-3, 1e-1, 1.0, 10.0) for steps in (50, 300)),
        *(
            {"solver": "adam", "alpha": a, "max_iter": 400, "early_stopping": True, "learning_rate_init": 1e-2}
            for a in (1e-4, 1e-1)
        ),
    ]

    def __init__(self, classes: int, hidden: int, seed: int) -> None:
        self.classes, self.hidden, self.seed = classes, hidden, seed

    def made(self, choice: dict[str, Any], seed: int) -> Any:
        from sklearn.neural_network import MLPClassifier, MLPRegressor

        kind = MLPClassifier if self.classes else MLPRegressor
        return kind(hidden_layer_sizes=(self.hidden,), random_state=seed, **choice)

    def fit(self, x: np.ndarray, y: np.ndarray) -> Network:
        from sklearn.model_selection import KFold, StratifiedKFold

        self.center, deviation = x.mean(axis=0), x.std(axis=0)
        self.scale = 1 / np.where(deviation > 0, deviation, 1.0)
        z = (x - self.center) * self.scale
        if not self.classes:
            self.middle, self.deviation = y.mean(), y.std()
            y = (y - self.middle) / self.deviation
        rows = np.random.default_rng(self.seed).permutation(len(z))[:2000]
        folds = (StratifiedKFold if self.classes else KFold)(5, shuffle=True, random_state=self.seed)
        found = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # steps that were limited on purpose
            for choice in self.CHOICES:
                loss = 0.0
                for a, b in folds.split(z[rows], y[rows] if self.classes else None):
                    model = self.made(choice, self.seed).fit(z[rows][a], y[rows][a])
                    if self.classes:
                        p = model.predict_proba(z[rows][b])[
                            np.arange(len(b)), np.searchsorted(model.classes_, y[rows][b])
                        ]
                        loss -= float(np.log(np.maximum(p, 1e-12)).mean())
                    else:
                        loss += float(np.square(model.predict(z[rows][b]) - y[rows][b]).mean())
                found.append(loss)
            choice = self.CHOICES[int(np.argmin(found))]
            fits = [self.made(choice, self.seed + k).fit(z, y) for k in range(3)]
        self.model = min(fits, key=lambda m: m.loss_)
        return self

    def predict(self, x: np.ndarray) -> Any:
        found = self.model.predict((x - self.center) * self.scale)
        return found if self.classes else self.middle + self.deviation * found


@dataclass(frozen=True)
class Set:
    """Rows in the order in which they come; y: numbers, or positions of classes; of the last rows so many are judged."""

    name: str
    x: np.ndarray
    y: np.ndarray
    classes: int = 0
    judged_rows: int | None = JUDGED

    @property
    def split(self) -> int:
        return len(self.x) - round(HELD * len(self.x))

    @property
    def judged(self) -> np.ndarray:
        """Which of the last rows count, evenly spread."""
        if self.judged_rows is None:
            return np.arange(self.split, len(self.x))
        return np.unique(np.linspace(self.split, len(self.x) - 1, self.judged_rows).astype(int))

    @property
    def train(self) -> tuple[np.ndarray, np.ndarray]:
        """Rows in float64, and their labels."""
        return self.x[: self.split].astype(float), self.y[: self.split]

    def error(self, answers: np.ndarray) -> float:
        """Of answers to the judged rows."""
        known = self.y[self.judged]
        if self.classes:
            return float(np.mean(answers != known))
        return float(np.sqrt(np.mean(np.square(answers - known))))

    @property
    def base(self) -> dict[str, Any]:
        names = [f"c{i}" for i in range(self.classes)]
        label = {"classes": names} if self.classes else {"outputs": 1}
        return {"name": "model", "input": {"dim": self.x.shape[1]}, "label": label}

    @property
    def question(self) -> str:
        return "classify" if self.classes else "predict"


def sets(number: int = 0, judged_rows: int | None = JUDGED) -> list[Set]:
    """The three tables; number: of the split.  Bike rentals stay in their order."""
    from sklearn.datasets import load_breast_cancer, load_digits

    found = []
    for name, load in (("breast cancer", load_breast_cancer), ("digits", load_digits)):
        x, y = load(return_X_y=True)
        order = np.random.default_rng(number).permutation(len(x))
        found.append(Set(name, x[order].astype(np.float32), y[order].astype(np.int32), int(y.max()) + 1, judged_rows))
    x, y, _ = bikeshare()
    return [*found, Set("bike rentals", x.astype(np.float32), y.astype(np.float32), 0, judged_rows)]


def named(compiler: Compiler) -> str:
    """For a table."""
    return f"{CHAIN} {gcc_version(compiler.version)} {LEVEL}"


@dataclass(frozen=True)
class Code:
    """C with ``score``; inputs of all rows, as it takes them; kind of the answer."""

    source: str
    inputs: np.ndarray
    kind: type
    flags: tuple[str, ...] = ()


@dataclass(frozen=True)
class Ran:
    """What a program costs; answers to the rows that it was given.  Too large for the part: flash alone."""

    compiler: str
    flash: int
    ram: int | None = None
    predict: int | None = None
    answers: np.ndarray = field(default_factory=lambda: np.zeros(0))

    @property
    def costs(self) -> dict[str, Any]:
        return {"flash": self.flash, "ram": shown(self.ram), "predict": shown(self.predict)}


def shown(number: int | None) -> int | str:
    return "" if number is None else number


def run(code: Code, rows: np.ndarray, ours: Mapping[str, str] | None = None, begin: str | None = None) -> Ran:
    """On some rows.  ours: the files of one of our models; others are built as their authors expect.  begin: called first."""
    # not -ftree-loop-distribute-patterns: it makes the runtime's memset call itself
    given = code.flags if ours is not None else ("-Wno-error", "-w", *DEFAULTS[:2], "-ffp-contract=fast", *code.flags)
    libraries = () if ours is not None else ("-lm", "-lc")
    image = Image(TARGET, CHAIN, {"score.c": code.source}, LEVEL, given, extra=ours, libraries=libraries)
    if image.flash_bytes > TARGET.part.flash.bytes:
        return Ran(named(image.compiler), image.flash_bytes)
    machine = EmulatedCpu(image)
    machine.paint_stack(machine.free)
    if begin is not None:
        machine.call(begin)
    before, answers, size = machine.instructions, [], np.dtype(code.kind).itemsize
    for row in np.ascontiguousarray(code.inputs[rows]):
        machine.uc.mem_write(MAILBOX, row.tobytes())
        machine.call("score", MAILBOX, ANSWER)
        answers.append(np.frombuffer(machine.uc.mem_read(ANSWER, size), code.kind)[0])
    predict = round((machine.instructions - before) / len(answers))
    return Ran(
        named(image.compiler), image.flash_bytes, image.data_bytes + machine.stack_used(), predict, np.array(answers)
    )


# ----------------------------------------------------------------------------------------------------------------- ours


def alone(spec: Spec, question: str, inputs: np.ndarray) -> tuple[Code, dict[str, str]]:
    """A program that only predicts, and the model's files."""
    files, _ = model_files(build(spec))
    whole = spec.real.is_int16
    kinds = ("int16_t", "int32_t") if whole else ("float", "int32_t" if question == "classify" else "float")
    source = (
        '#include "model.h"\nstatic model_t model;\nvoid begin(void);\n'
        f"void score(const {kinds[0]} *x, {kinds[1]} *y);\nvoid begin(void) {{ model_init(&model); }}\n"
        f"void score(const {kinds[0]} *x, {kinds[1]} *y) {{ if (model_{question}(&model, x, y) < 0) *y = -1; }}\n"
    )
    return Code(source, spec.raw_inputs(inputs), np.int32 if kinds[1] == "int32_t" else np.float32), files


def ours(data: Set, spec: Spec, inputs: np.ndarray | None = None) -> tuple[Ran, float, int]:
    """A frozen model: what its program costs, its error, and the flash with all of its functions linked.

    The error is of the host's answers; the C's are the same bytes on the rows that are compared.  A row that the model
    refuses, as models of whole numbers do far beyond what they were trained on, is a wrong class, or the labels' mean.
    """
    x = (data.x if inputs is None else inputs).astype(float)
    code, files = alone(spec, data.question, x)
    rows = data.judged[:: -(-len(data.judged) // COMPARED)]
    found = run(code, rows, files, "begin")
    known, statuses = HostModel(spec, raw=True).ask(data.question, code.inputs[rows])
    taken = statuses >= 0
    assert found.answers[taken].tobytes() == known.reshape(-1)[taken].tobytes()
    answers, statuses = HostModel(spec).ask(data.question, x[data.judged])
    answers = np.where(statuses >= 0, answers.reshape(-1), -1 if data.classes else data.train[1].mean())
    return found, data.error(answers), model_image(build(spec), TARGET, CHAIN, level=LEVEL).flash_bytes


# ------------------------------------------------------------------------------------------------------------ networks


def network_of(data: Set, hidden: int, seed: int = 0) -> Any:
    """A validated network that takes inputs as they are: standardisation is within its first layer, of labels in its last."""
    x, y = data.train
    found = Network(data.classes, hidden, seed).fit(x, y)
    model = copy.deepcopy(found.model)
    first, second = model.coefs_
    model.intercepts_[0] = model.intercepts_[0] - (found.center * found.scale) @ first
    model.coefs_[0] = first * found.scale[:, None]
    if not data.classes:
        model.coefs_[1], model.intercepts_[1] = (
            second * found.deviation,
            model.intercepts_[1] * found.deviation + found.middle,
        )
    model.standard_ = found
    return model


@contextlib.contextmanager
def all_digits() -> Iterator[None]:
    """emlearn, with floats written so that they are read again as they were: 0.23.2 writes six decimals."""
    from emlearn import cgen  # type: ignore[import-not-found]

    original = cgen.constant

    def constant(value: Any, dtype: str = "float") -> str:
        return f"{np.float32(value):.9e}f" if dtype == "float" else str(original(value, dtype))

    cgen.constant = constant
    try:
        yield
    finally:
        cgen.constant = original


def answer_of(data: Set) -> tuple[str, type]:
    return ("int32_t", np.int32) if data.classes else ("float", np.float32)


def emlearn_network(data: Set, model: Any) -> Code:
    """By its strategy "loadable": "inline" fails for networks in 0.23.2, and mended it took more bytes and instructions."""
    import emlearn as peer

    model = copy.copy(model)
    if data.classes > 2:  # the largest function is the class with the largest probability
        model.out_activation_ = "identity"
    with all_digits(), tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):  # it leaves files
        header = peer.convert(model, method="loadable").save(name="model")
    np.seterr(all="warn")  # which it changes
    answer, kind = answer_of(data)
    function = "model_predict" if data.classes else "model_regress1"
    source = (
        f"#include <stdint.h>\nvoid score(const float *x, {answer} *y);\n{header}\n"
        f"void score(const float *x, {answer} *y) {{ *y = {function}(x, {data.x.shape[1]}); }}\n"
    )
    return Code(source, data.x, kind, (f"-I{peer.includedir}",))


def table(kind: str, name: str, values: Any) -> str:
    flat = np.ravel(values)
    if kind == "float":
        texts = [f"{float(v):.9e}f" for v in np.asarray(flat, np.float32)]
    else:
        texts = [str(int(v)) for v in flat]
    return f"static const {kind} {name}[{len(texts)}] = {{{', '.join(texts)}}};\n"


LAST = """    int best = 0;
    for (int o = 1; o < OUTPUTS; o++) if (f[o] > f[best]) best = o;
    *y = OUTPUTS == 1 ? f[0] > 0.0f : best;
"""


def network_by_hand(data: Set, model: Any) -> Code:
    """Two loops, as a careful programmer writes them: no softmax where only the largest function counts."""
    first, second = model.coefs_
    answer, kind = answer_of(data)
    source = (
        f"#include <stdint.h>\nenum {{ INPUTS = {len(first)}, HIDDEN = {len(second)}, OUTPUTS = {second.shape[1]} }};\n"
        + table("float", "first", first.T)
        + table("float", "first_bias", model.intercepts_[0])
        + table("float", "second", second.T)
        + table("float", "second_bias", model.intercepts_[1])
        + f"""void score(const float *x, {answer} *y);
void score(const float *x, {answer} *y)
{{
    float h[HIDDEN], f[OUTPUTS];
    const float *w = first;
    for (int i = 0; i < HIDDEN; i++, w += INPUTS) {{
        float sum = first_bias[i];
#pragma GCC unroll 4
        for (int j = 0; j < INPUTS; j++) sum += w[j] * x[j];
        h[i] = sum > 0.0f ? sum : 0.0f;
    }}
    w = second;
    for (int o = 0; o < OUTPUTS; o++, w += HIDDEN) {{
        f[o] = second_bias[o];
#pragma GCC unroll 4
        for (int i = 0; i < HIDDEN; i++) f[o] += w[i] * h[i];
    }}
{LAST if data.classes else "    *y = f[0];"}
}}
"""
    )
    return Code(source, data.x, kind)


STEPS = 256
"""Units of a standardised input in whole numbers."""


def network_in_int8(data: Set, model: Any) -> Code:
    """The same by hand with weights in int8, a scale for each unit, and whole numbers in the first layer."""
    found, (_, second) = model.standard_, model.coefs_
    weights = found.model.coefs_[0].T  # (units, inputs), of standardised inputs
    answer, kind = answer_of(data)

    def rounded(w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        unit = np.maximum(np.abs(w).max(axis=1), 1e-30) / 127
        return np.rint(w / unit[:, None]), unit

    (first, first_unit), (last, last_unit) = rounded(weights), rounded(second.T)
    limit = 2**15 - 1
    assert limit * 127 * weights.shape[1] < 2**31
    source = (
        f"#include <stdint.h>\nenum {{ INPUTS = {len(found.scale)}, HIDDEN = {len(second)}, OUTPUTS = {second.shape[1]} }};\n"
        + table("float", "center", found.center)
        + table("float", "scale", found.scale * STEPS)
        + table("int8_t", "first", first)
        + table("float", "first_unit", first_unit / STEPS)
        + table("float", "first_bias", found.model.intercepts_[0])
        + table("int8_t", "second", last)
        + table("float", "second_unit", last_unit)
        + table("float", "second_bias", model.intercepts_[1])
        + f"""void score(const float *x, {answer} *y);
void score(const float *x, {answer} *y)
{{
    int16_t z[INPUTS];
    float h[HIDDEN], f[OUTPUTS];
    const int8_t *w = first;
    for (int j = 0; j < INPUTS; j++) {{
        float v = (x[j] - center[j]) * scale[j];
        v = v > {limit}.0f ? {limit}.0f : v < -{limit}.0f ? -{limit}.0f : v;
        z[j] = (int16_t)v;
    }}
    for (int i = 0; i < HIDDEN; i++, w += INPUTS) {{
        int32_t sum = 0;
#pragma GCC unroll 4
        for (int j = 0; j < INPUTS; j++) sum += w[j] * z[j];
        const float v = first_bias[i] + first_unit[i] * (float)sum;
        h[i] = v > 0.0f ? v : 0.0f;
    }}
    w = second;
    for (int o = 0; o < OUTPUTS; o++, w += HIDDEN) {{
        float sum = 0.0f;
#pragma GCC unroll 4
        for (int i = 0; i < HIDDEN; i++) sum += (float)w[i] * h[i];
        f[o] = second_bias[o] + second_unit[o] * sum;
    }}
{LAST if data.classes else "    *y = f[0];"}
}}
"""
    )
    return Code(source, data.x, kind)


# --------------------------------------------------------------------------------------------------------------- trees


def counts(data: Set) -> np.ndarray:
    """Inputs as even whole numbers, as a sensor would give them; digits are whole numbers as they are."""
    x = data.x[: data.split].astype(float)
    if (data.x == np.rint(data.x)).all() and np.abs(x).max() <= WIDEST / 2:
        return (2 * data.x).astype(np.int16)
    low, high = x.min(axis=0), x.max(axis=0)
    scale = WIDEST / np.where(high > low, high - low, 1.0)
    return (2 * np.rint(np.clip((data.x - low) * scale - WIDEST / 2, -WIDEST / 2, WIDEST / 2))).astype(np.int16)


def forest_of(data: Set, trees: int, leaves: int, inputs: np.ndarray, seed: int = 0) -> Any:
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

    kind = RandomForestClassifier if data.classes else RandomForestRegressor
    model = kind(trees, max_leaf_nodes=leaves, random_state=seed)
    return model.fit(inputs[: data.split], data.y[: data.split])


def emlearn_forest(data: Set, model: Any, inputs: np.ndarray) -> dict[str, Code]:
    """By "inline", which takes fewer instructions, and by "loadable", which takes fewer bytes if trees are large."""
    import emlearn as peer

    # a class for each leaf in place of the classes' parts makes more errors
    how = {"leaf_bits": 8} if data.classes else {}
    answer, kind = answer_of(data)
    found = {}
    made = peer.convert(model, dtype="int16_t", method="inline", **how)
    for method in ("inline", "loadable"):
        made.method = method
        header = made.save(name="model", include_proba=False)
        source = (
            f"#include <stdint.h>\nvoid score(const int16_t *x, {answer} *y);\n{header}\n"
            f"void score(const int16_t *x, {answer} *y) {{ *y = model_predict(x, {data.x.shape[1]}); }}\n"
        )
        found[method] = Code(source, inputs, kind, (f"-I{peer.includedir}",))
    np.seterr(all="warn")  # which it changes
    return found


def m2cgen_code(data: Set, model: Any, inputs: np.ndarray) -> Code:
    import m2cgen as peer

    text = peer.export_to_c(model)
    several = "double * output" in text
    head = "void score(double * input, double * output)" if several else "double score(double * input)"
    assert head in text
    text = text.replace(head, "static " + head.replace("score", "value"))
    outputs = max(data.classes, 2)
    if several:
        body = f"double v[{outputs}]; value(x, v); int b = 0; for (int i = 1; i < {outputs}; i++) if (v[i] > v[b]) b = i; *y = b;"
    else:
        body = "*y = value(x) > 0;" if data.classes else "*y = value(x);"
    answer = "int" if data.classes else "double"
    source = f"void score(double *x, {answer} *y);\n{text}\nvoid score(double *x, {answer} *y) {{ {body} }}\n"
    return Code(source, inputs.astype(float), np.int32 if data.classes else np.float64)


def micromlgen_code(data: Set, model: Any, inputs: np.ndarray) -> Code:
    """The bodies of its class's functions, as C."""
    from micromlgen import port  # type: ignore[import-not-found]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        text = port(model)
    predict = re.search(r"int predict\(float \*x\) \{.*?(?=/\*\*|protected:)", text, re.DOTALL)
    kernel = re.search(r"float compute_kernel\(float \*x, \.\.\.\) \{.*?return [^;]*;\s*\}", text, re.DOTALL)
    assert predict is not None
    source = (
        "#include <stdarg.h>\n#include <stdint.h>\n#include <math.h>\nvoid score(float *x, int32_t *y);\n"
        f"{f'static {kernel[0]}' if kernel else ''}\nstatic {predict[0]}\nvoid score(float *x, int32_t *y) {{ *y = predict(x); }}\n"
    )
    return Code(source, inputs, np.int32)
