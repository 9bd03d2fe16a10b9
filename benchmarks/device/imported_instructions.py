"""One prediction of an imported support vector machine on an emulated Cortex-M4F: 64 support vectors of 8 inputs.

    python -m benchmarks.device.imported_instructions [--cmsis FOLDER] [-o docs]

A regression (SVR) and a classifier of two classes (SVC) with RBF kernels are trained by scikit-learn on as many rows as
leave 64 support vectors, imported, and generated; beside them what other generators make of the same estimators, and a
plain loop in float32 around the C library's expf.  Each is built for the part by GCC (-O2, -Os) and, if it needs no C
library, by zig; each predicts the same 200 inputs, and every instruction is counted from the call to its return.

contraction    whether a product and a sum may become one instruction: "fast", GCC's default, or "off", as in ISO C and ours

text, rodata   bytes of the object; ours has the reset and the self-test in it as well
runs           bytes of all functions that a prediction ran through, the C library's and the float library's included
error          largest distance from scikit-learn's decision values, in 2^-23 sum |w|; where a program says the class
               only, the part of the inputs whose class it gets wrong

Baselines that are not installed are left out and named.  m2cgen and micromlgen come from PyPI; emlearn has no support vector
machines; of CMSIS-DSP, which PyPI has as the source of the package cmsisdsp, give the unpacked folder with --cmsis.
Writes imported-instructions.csv to the output folder and the table into docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import itertools
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.tables import DATA, Rows, markdown, publish, save
from pykernel.errors import UserError
from pykernel.gen.project import build
from pykernel.host.model import HostModel
from pykernel.importers.importing import from_sklearn
from pykernel.targets.build import Image, Toolchain, model_image, undefined_symbols
from pykernel.targets.target import find_target
from pykernel.targets.unicorn_runner import MAILBOX, PAGE, EmulatedCpu, UnicornModel

VECTORS, INPUTS, CALLS = 64, 8, 200
GAMMA = 0.5
GOAL = 3400
TARGET = find_target("cortex-m4f")
DEFAULTS = ("-fhosted", "-fbuiltin", "-ftree-loop-distribute-patterns")
"""What the compiler does where nothing is said, for baselines."""
BUILDS: tuple[tuple[Toolchain, str], ...] = (("gcc", "-O2"), ("gcc", "-Os"), ("zig", "-O2"), ("zig", "-Os"))
ANSWER = MAILBOX + PAGE

COLUMNS = ("estimator", "code", "compiler", "level", "instructions", "most", "text", "rodata", "runs", "stack")
COLUMNS = (*COLUMNS, "double", "library", "error", "wrong")


def estimators() -> dict[str, Any]:
    """Fitted, each with 64 support vectors."""
    from sklearn.svm import SVC, SVR

    x, value = samples()
    svr = SVR(gamma=GAMMA, epsilon=0.0, C=1e6).fit(x[:VECTORS], value[:VECTORS])
    label = (value > 0).astype(int)
    for rows in range(VECTORS, len(x)):
        svc = SVC(gamma=GAMMA, C=10.0).fit(x[:rows], label[:rows])
        if len(svc.support_) == VECTORS:
            break
    assert len(svr.support_) == len(svc.support_) == VECTORS
    return {"SVR": svr, "SVC": svc}


def samples() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (400, INPUTS)).astype(np.float32)
    return x, np.sin(x.sum(1)).astype(np.float32)


def decisions(estimator: Any, x: np.ndarray) -> np.ndarray:
    values = estimator.decision_function(x) if hasattr(estimator, "decision_function") else estimator.predict(x)
    return np.asarray(values, float)


def row(
    name: str,
    code: str,
    image: Image,
    machine: EmulatedCpu,
    each: Sequence[int],
    found: np.ndarray,
    contraction: str = "off",
) -> dict[str, Any]:
    """found: decision values, or classes if they are whole numbers."""
    estimator = ESTIMATORS[name]
    known = decisions(estimator, samples()[0][:CALLS])
    size = float(np.abs(estimator.dual_coef_).sum())
    says_values = found.dtype.kind == "f"
    ran = {
        f.start: f.size
        for f in image.functions.values()
        if any(f.start <= a < f.start + f.size for a in machine.executed())
    }
    linked = set(image.functions)
    needed = {symbol for file in image.objects for symbol in undefined_symbols(file)}
    return {
        "estimator": name,
        "code": code,
        "compiler": image.chain,
        "level": image.flags[0],
        "contraction": contraction,
        "instructions": round(float(np.mean(each))),
        "most": max(each),
        "text": image.sizes["text_bytes"],
        "rodata": image.sizes["rodata_bytes"],
        "runs": sum(ran.values()),
        "stack": machine.stack_used(),
        "double": "yes" if any(s.startswith("__aeabi_d") or s in ("exp", "pow") for s in linked) else "no",
        "library": " ".join(sorted(needed & {"exp", "expf", "pow", "powf"})) or "none",
        "error": f"{np.abs(found - known).max() / (2.0**-23 * size):.2f}" if says_values else "",
        "wrong": f"{np.mean((found if not says_values else found > 0) != (known > 0)):.3f}" if name == "SVC" else "",
    }


# ---------------------------------------------------------------------------------------------- ours


def ours(name: str) -> Iterator[dict[str, Any]]:
    x = samples()[0][:CALLS]
    for distance in ("differences", "products"):
        spec = from_sklearn(ESTIMATORS[name], "model", distance=distance)
        project = build(spec)
        known = HostModel(spec, project.drop).predict(x)
        for chain, level in BUILDS:
            try:
                image = model_image(project, TARGET, chain, level=level)
            except UserError as missing:
                print(f"({missing})", file=sys.stderr)
                continue
            model = UnicornModel(project, image)
            model.machine.counts[1:] = 0
            model.paint_stack()
            each, found = [], []
            for sample in x:
                call, status = model.measure("predict", b"", sample, None)
                assert status == 0
                each.append(call.instructions)
                found.append(model.answered("predict")[0])
            assert np.array(found).tobytes() == known.tobytes()
            yield row(name, f"pykernel, {distance}", image, model.machine, each, np.array(found, float))


# --------------------------------------------------------------------------------------------- baselines


def run(image: Image, real: type, whole: bool) -> tuple[EmulatedCpu, list[int], np.ndarray]:
    """Call ``score`` for each input; it takes (input, answer)."""
    machine = EmulatedCpu(image)
    machine.counts[1:] = 0
    machine.paint_stack(machine.free)
    kind = np.dtype(np.int32 if whole else real)
    each, found = [], []
    for sample in samples()[0][:CALLS].astype(real):
        machine.uc.mem_write(MAILBOX, sample.tobytes())
        before = machine.instructions
        machine.call("score", MAILBOX, ANSWER)
        each.append(machine.instructions - before)
        found.append(np.frombuffer(machine.uc.mem_read(ANSWER, kind.itemsize), kind)[0])
    return machine, each, np.array(found)


def baseline(
    name: str, code: str, source: str, real: type = np.float32, whole: bool = False, flags: Sequence[str] = ()
) -> Any:
    """Rows of C that has ``void score(const real *input, answer *y)``; with newlib, so by GCC alone."""
    for (chain, level), contraction in itertools.product(BUILDS[:2], ("fast", "off")):
        # generated code is not warning-free
        given = ("-Wno-error", "-w", *DEFAULTS, f"-ffp-contract={contraction}", *flags)
        image = Image(TARGET, chain, {"score.c": source}, level, given, libraries=("-lm", "-lc"))
        machine, each, found = run(image, real, whole)
        yield row(name, code, image, machine, each, found, contraction)


def m2cgen(name: str) -> Iterator[dict[str, Any]]:
    import m2cgen

    code = m2cgen.export_to_c(ESTIMATORS[name]).replace(
        "double score(double * input)", "static double value(double * input)"
    )
    source = f"void score(double *input, double *y);\n{code}\nvoid score(double *input, double *y) {{ *y = value(input); }}\n"
    yield from baseline(name, f"m2cgen {m2cgen.__version__}", source, np.float64)


def micromlgen(name: str) -> Iterator[dict[str, Any]]:
    """Its class's functions, as C: the bodies are as they come."""
    if name != "SVC":
        return
    import importlib.metadata

    from micromlgen import port  # type: ignore[import-not-found]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        code = port(ESTIMATORS[name])
    predict = re.search(r"int predict\(float \*x\) \{.*?(?=/\*\*|protected:)", code, re.DOTALL)
    kernel = re.search(r"float compute_kernel\(float \*x, \.\.\.\) \{.*?return [^;]*;\s*\}", code, re.DOTALL)
    assert predict is not None and kernel is not None
    source = (
        "#include <stdarg.h>\n#include <stdint.h>\n#include <math.h>\nvoid score(float *x, int32_t *y);\n"
        f"static {kernel[0]}\nstatic {predict[0]}\nvoid score(float *x, int32_t *y) {{ *y = predict(x); }}\n"
    )
    yield from baseline(name, f"micromlgen {importlib.metadata.version('micromlgen')}", source, whole=True)


def array(name: str, values: Any) -> str:
    flat = np.ravel(np.asarray(values, np.float32))
    return f"static const float {name}[] = {{{', '.join(f'{v:.9g}f' if v % 1 else f'{v:.1f}f' for v in flat)}}};\n"


def tables_of(name: str) -> str:
    estimator = ESTIMATORS[name]
    return array("vectors", estimator.support_vectors_) + array("weights", estimator.dual_coef_)


def plain(name: str) -> Iterator[dict[str, Any]]:
    source = (
        "#include <math.h>\n"
        f"{tables_of(name)}"
        f"""void score(const float *x, float *y);
void score(const float *x, float *y)
{{
    float sum = {float(np.float32(ESTIMATORS[name].intercept_[0])):.9g}f;
    for (int i = 0; i < {VECTORS}; i++) {{
        float distance = 0.0f;
        for (int j = 0; j < {INPUTS}; j++) {{
            const float difference = x[j] - vectors[i * {INPUTS} + j];
            distance += difference * difference;
        }}
        sum += weights[i] * expf(-{GAMMA}f * distance);
    }}
    *y = sum;
}}
"""
    )
    yield from baseline(name, "a plain loop, newlib's expf", source)


def cmsis(folder: Path) -> Callable[[str], Iterator[dict[str, Any]]]:
    version = re.search(r"[\d.]+$", folder.resolve().name)

    def rows(name: str) -> Iterator[dict[str, Any]]:
        if name != "SVC":  # it has no regression
            return
        intercept = float(np.float32(ESTIMATORS[name].intercept_[0]))
        source = (
            f'#include "{folder}/Source/SVMFunctions/arm_svm_rbf_predict_f32.c"\n{tables_of(name)}'
            f"""static const int32_t classes[2] = {{0, 1}};
static const arm_svm_rbf_instance_f32 model = {{{VECTORS}, {INPUTS}, {intercept:.9g}f, weights, vectors, classes, {GAMMA}f}};
void score(const float *x, int32_t *y);
void score(const float *x, int32_t *y) {{ arm_svm_rbf_predict_f32(&model, x, y); }}
"""
        )
        # without CMSIS-Core, of which this function needs nothing
        flags = (f"-I{folder}/Include", f"-I{folder}/PrivateInclude", "-D__GNUC_PYTHON__")
        yield from baseline(name, f"CMSIS-DSP {version[0] if version else ''}".strip(), source, whole=True, flags=flags)

    return rows


# -------------------------------------------------------------------------------------------- report


def tables(rows: Rows) -> dict[str, str]:
    """For docs/benchmarks.md."""
    heads = (
        "estimator",
        "code",
        "compiler",
        "contraction",
        "instructions",
        "most",
        ".text",
        ".rodata",
        "runs",
        "stack",
        "double, library",
    )
    lines = []
    for r in rows:
        needs = ", ".join(
            v for v in ("double" if r["double"] == "yes" else "", r["library"].replace(" ", ", ")) if v != "none" and v
        )
        error = r["error"] and f"{float(r['error']):,.1f}"
        wrong = r["wrong"] and f"{float(r['wrong']):.1%} wrong"
        lines.append(
            [
                *(r["estimator"], r["code"], f"{r['compiler']} {r['level']}", r["contraction"]),
                *(f"{int(r[key]):,}" for key in ("instructions", "most", "text", "rodata", "runs", "stack")),
                *(needs or "none", error or wrong),
            ]
        )
    return {"imported instructions": markdown((*heads, "error"), lines), "imported instructions, in words": words(rows)}


def words(rows: Rows) -> str:
    """What the table says, for each estimator."""
    goals: dict[str, list[str]] = {}
    ratios: dict[str, list[str]] = {}
    for name in dict.fromkeys(r["estimator"] for r in rows):
        mine = {
            (r["compiler"], r["level"]): r for r in rows if r["estimator"] == name and r["code"].endswith("products")
        }
        others = [r for r in rows if r["estimator"] == name and not r["code"].startswith("pykernel")]
        fast = mine["gcc", "-O2"]
        within = [" ".join(build) for build, r in mine.items() if int(r["most"]) <= GOAL]
        met = f"{', '.join(within) or 'no build'}; with GCC -O2 a prediction takes {int(fast['most']):,} at most"
        goals.setdefault(met, []).append(name)
        for code in dict.fromkeys(r["code"] for r in others):
            counts = {
                r["contraction"]: int(r["instructions"]) for r in others if (r["code"], r["level"]) == (code, "-O2")
            }
            more, off = (f"{counts[how] / int(fast['instructions']):,.1f}" for how in ("fast", "off"))
            ratios.setdefault(f"{code}: {more} ({off})", []).append(name)
    lines = [
        f"- {', '.join(names)}: the goal of {GOAL:,} instructions is met by {met}.\n" for met, names in goals.items()
    ]
    told = "; ".join(f"{what}, {' and '.join(names)}" for what, names in ratios.items())
    return "".join([*lines, f"- Instructions at -O2 (without contraction), divided by ours: {told}.\n"])


ESTIMATORS: dict[str, Any] = {}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cmsis", type=Path, help="unpacked source of the package cmsisdsp")
    parser.add_argument("-o", "--output", type=Path, default=DATA)
    options = parser.parse_args()
    ESTIMATORS.update(estimators())
    makers = [ours, plain, m2cgen, micromlgen, *([cmsis(options.cmsis.resolve())] if options.cmsis else [])]
    found: list[dict[str, Any]] = []
    for name in ESTIMATORS:
        for maker in makers:
            try:
                for measured in maker(name):
                    print(*measured.values(), flush=True)
                    found.append(measured)
            except (UserError, ImportError) as missing:
                print(f"({maker.__name__}: {missing})", file=sys.stderr)
    if not options.cmsis:
        print("(CMSIS-DSP: give its folder with --cmsis)", file=sys.stderr)
    rows = save(options.output / "imported-instructions.csv", found)
    if options.output == DATA:
        publish(tables(rows))
    best = min(int(r["instructions"]) for r in rows if r["code"].startswith("pykernel"))
    print(f"\nfewest: {best:,}; goal: {GOAL:,}")


if __name__ == "__main__":
    main()
