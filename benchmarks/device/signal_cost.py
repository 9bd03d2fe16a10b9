"""What [signal] costs, feature by feature, beside the same features by CMSIS-DSP's functions.

    pip download --no-deps --no-build-isolation --no-binary cmsisdsp cmsisdsp && tar xf cmsisdsp-*.tar.gz
    python -m benchmarks.device.signal_cost --cmsis cmsisdsp-1.10.3 [-o docs/data] [--show]

Windows of 256 samples; GCC -O2, instructions counted on emulated CPUs.  Ours is NAME_push of a model whose labels come from
elsewhere: the features alone, nothing is learned.  Its features are compared with the host's, byte for byte.

push      of each set of features, target and hop: instructions of a raw sample, the mean of a stream and the most, also of a
          stream of difficult samples; ours with its bound.  CMSIS-DSP: a firmware that gathers windows, calls the library's
          functions once a hop, and moves what is left; its loops are unrolled, as the library's own build does.  "contracted":
          with -ffp-contract=fast, GCC's default, where a product and a sum may become one instruction.  Both make the same
          features (std: n - 1 in place of n, as the library has it), but for rounding.
call      a spectrum of 256 samples: without the mean, times a Hann window, transformed, powers.  Ours: the largest push with a
          band of one frequency minus the one without.  CMSIS-DSP's functions by themselves; and Goertzel's algorithm by hand, one
          frequency of 256 samples, which are prepared.
feature   what a feature adds for each channel, to each raw sample and to each step: to a stage with the mean alone, and to a
          stage with all others.  Of the mean: all that such a stage takes.

signal-memory.csv: bytes of the stage and of its tables, which are formulas (``kept``, ``tables``), compared with the C's.

int16 is measured where a spec takes it.  Without --cmsis, its rows stay as they are.  Fills docs/signals-cost.md.
"""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.device.imported_instructions import DEFAULTS, array
from benchmarks.tables import DATA, Rows, load, markdown, publish, save
from pykernel.errors import UserError
from pykernel.gen.project import Project, build
from pykernel.gen.streams import raw_stream
from pykernel.host.model import HostModel
from pykernel.spec.model import Spec, make_spec
from pykernel.spec.signal import SPECTRAL, plan_of
from pykernel.targets.bound import call_bounds
from pykernel.targets.build import Image, model_image
from pykernel.targets.target import find_target
from pykernel.targets.unicorn_runner import MAILBOX, PAGE, EmulatedCpu, UnicornModel

WINDOW, HOPS, RATE, MOST = 256, (256, 128), 100.0, 16.0
TARGETS = ("cortex-m4f", "cortex-m0plus")
PRECISIONS = ("float32", "int16")
SAMPLES = 2048
COUNTED = 1024
"""The latest samples of the stream, of which the mean is taken: whole hops, and windows that are full."""
HANN = (0.5 - 0.5 * np.cos(2 * np.pi * np.arange(WINDOW) / WINDOW)).astype(np.float32)
CHANNELS = ("x", "y", "z")
SETS: dict[str, dict[str, Any]] = {
    "rms of one channel": {"channels": ["x"], "features": ["rms"]},
    "ten moments": {
        "features": {"x": ["mean", "std", "min", "max"], "y": ["mean", "std", "max"], "z": ["mean", "std", "max"]}
    },
    "ten with bands": {
        "features": {"x": ["mean", "std"], "y": ["mean"], "z": ["mean"]},
        "bands": [[1.0, 10.0], [10.0, 50.0]],
    },
    "ten of spectra": {
        "features": {
            "x": ["centroid", "dominant", "flatness"],
            "y": ["centroid", "dominant"],
            "z": ["centroid", "dominant"],
        },
        "bands": [[1.0, 10.0]],
    },
}
CONTRACTED, ONE = ", contracted", "one frequency"
ALONE = ("mean", "rms", "std", "min", "max", "range", "crest", "skewness", "kurtosis")
ALONE = (*ALONE, "crossings", "change", "slope", "correlation", "bands", "centroid", "dominant", "flatness")
COLUMNS = ("part", "what", "code", "precision", "target", "hop", "mean", "most", "bound", "ram", "flash")


def spec_of(precision: str, hop: int, features: Any, bands: Any = (), channels: Sequence[str] = CHANNELS) -> Spec:
    names = {name for each in (features.values() if isinstance(features, dict) else [features]) for name in each}
    signal = {"channels": list(channels), "window": WINDOW, "hop": hop, "max_abs": MOST, "features": features}
    if bands or names & set(SPECTRAL):
        signal |= {"rate": RATE, "bands": bands}
    label = {"column": "label"} | ({"max_abs": 4.0} if precision == "int16" else {})
    return make_spec(
        {"name": "stage", "precision": precision, "signal": signal, "label": label, "learning": {"rule": "nlms"}}
    )


def stream(channels: int) -> np.ndarray:
    t, rng = np.arange(SAMPLES)[:, None], np.random.default_rng(0)
    x = np.sin(t / np.array([3.0, 7.0, 20.0])) + 0.3 * rng.normal(size=(SAMPLES, 3)) + 1.0
    return x[:, :channels]


# ------------------------------------------------------------------------------------------------------------ ours


class Stage:
    """The features of a spec on a target, counted.  each: of the stream's pushes."""

    def __init__(self, spec: Spec, target: str = "cortex-m4f") -> None:
        assert spec.signal is not None
        self.spec, self.project, self.hop = spec, build(spec), spec.signal.step
        self.image = model_image(self.project, find_target(target), "gcc")
        self.model = UnicornModel(self.project, self.image)
        self.each = self._pushed(spec.raw_inputs(stream(spec.width)))
        self.most = int(max(*self.each, *self._pushed(raw_stream(spec, SAMPLES)[0])))
        self.mean = float(self.each[-COUNTED:].mean())
        self.sample = float(np.median(self.each[-COUNTED:]))
        self.step = float(self.each[-COUNTED:].reshape(-1, self.hop)[:, -1].mean()) - self.sample

    def _pushed(self, x: np.ndarray) -> np.ndarray:
        self.model.costs["push"] = []
        self.model.call("init")
        self.model.visit("push", x, np.zeros(len(x)))
        host = HostModel(self.spec, self.project.drop)
        for row in x:
            host.executor.call(self.spec.program.entry("push"), row)
        assert self.model.read("signal")[0].tobytes() == host.read("signal")[0].tobytes()
        return np.array(self.model.costs["push"])

    def features(self) -> np.ndarray:
        """After the latest raw sample of the stream."""
        self.model.call("init")
        self.model.visit("push", self.spec.raw_inputs(stream(self.spec.width)), np.zeros(SAMPLES))
        return self.model.read("signal")[0].astype(float)


def given(name: str) -> dict[str, Any]:
    return {"channels": CHANNELS, "bands": (), **SETS[name]}


def measured() -> Iterator[tuple[str, Spec]]:
    """Sets of features, for each hop, in each precision that takes them."""
    for precision in PRECISIONS:
        for name in SETS:
            for hop in HOPS:
                with contextlib.suppress(UserError):
                    yield name, spec_of(precision, hop, **given(name))


def pushes() -> Iterator[dict[str, Any]]:
    for name, spec in measured():
        for target in TARGETS:
            stage = Stage(spec, target)
            made = row("push", name, "pykernel", spec.precision, target, stage.hop, stage.mean, stage.most)
            bound = call_bounds(stage.project, stage.image)["push"].instructions
            yield made | {
                "bound": bound, "ram": stage_bytes(spec, stage.project), "flash": stage.image.flash_bytes,
            }  # fmt: skip


def spectra() -> Iterator[dict[str, Any]]:
    for precision in dict.fromkeys(spec.precision for _, spec in measured()):
        for target in TARGETS:
            bands = ((), [[RATE / WINDOW, 1.5 * RATE / WINDOW]])
            without, one = (Stage(spec_of(precision, WINDOW, ["mean"], each, ["x"]), target) for each in bands)
            yield row("call", "a spectrum", "pykernel", precision, target, WINDOW, one.step - without.step)


def row(part: str, what: str, code: str, precision: str, target: str, hop: Any, mean: float, most: Any = "") -> Any:
    values = (part, what, code, precision, target, hop, f"{mean:.1f}" if part == "push" else round(mean), most)
    return dict.fromkeys(COLUMNS, "") | dict(zip(COLUMNS, values, strict=False))


# ------------------------------------------------------------------------------------------------- a feature's share


def with_features(names: Sequence[str], precision: str = "float32") -> Spec:
    features = [name for name in names if name != "bands"]
    return spec_of(precision, HOPS[1], features, [[1.0, 10.0]] if "bands" in names else ())


def shares() -> Iterator[dict[str, Any]]:
    """Of each feature, for a channel: what it adds to each raw sample, and to each step."""
    everything, mean = Stage(with_features(ALONE)), Stage(with_features(["mean"]))
    for name in ALONE:
        alone = Stage(with_features(["mean", name])) if name != "mean" else mean
        others = Stage(with_features([other for other in ALONE if other != name]))
        for what, stage, base in (("alone", alone, mean if name != "mean" else None), ("last", everything, others)):
            per_sample = stage.sample - (base.sample if base else 0)
            per_step = stage.step - (base.step if base else 0)
            made = row("feature", name, what, "float32", "cortex-m4f", HOPS[1], per_step / len(CHANNELS))
            yield made | {"most": round(per_sample / len(CHANNELS))}


# ------------------------------------------------------------------------------------------------------------ bytes


def kept(spec: Spec) -> int:
    """Bytes that the stage keeps, and works with: numbers of four bytes."""
    signal = spec.signal
    assert signal is not None
    plan, c = plan_of(signal), len(signal.channels)
    names = {measure.kind for measure in plan.measures}
    blocks, pairs = c * (signal.window or 1) // signal.step, len(plan.pairs)
    rows = plan.oldest + 1 + (signal.ahead if spec.forecasts else 0)
    numbers = (2 if spec.forecasts else 1) * len(plan.features) + (rows + 1) * len(plan.measures) + blocks + 3 * c
    numbers += 7 if spec.forecasts else 8
    powers = 3 if "kurtosis" in names else 2 if "skewness" in names else 0
    powers = powers or bool({"rms", "std", "crest", "correlation"} & names)
    numbers += powers * (blocks + 2 * c) - c * ("kurtosis" in names and "skewness" not in names)
    numbers += 2 * blocks * bool({"min", "max", "range", "crest"} & names)
    numbers += 2 * blocks * ("change" in names) + 2 * blocks * ("crossings" in names) + blocks * ("slope" in names)
    numbers += c * bool({"change", "crossings"} & names)
    numbers += pairs * (blocks // c + 1)
    if set(SPECTRAL) & names:
        numbers += (signal.window or 1) * (c + 1) + 2
    return 4 * (numbers + len(set(signal.periods)))


def memory() -> Iterator[dict[str, Any]]:
    for name in ALONE:
        yield memory_of(with_features(["mean", name] if name != "mean" else ["mean"]), name)
    for name, spec in measured():
        yield memory_of(spec, name)


def stage_bytes(spec: Spec, project: Project) -> int:
    slots = spec.memory(project.drop).layout.slots
    return sum(slot.nbytes for slot in slots if slot.struct.removeprefix("Int16") in ("Signal", "SignalWork"))


def memory_of(spec: Spec, what: str) -> dict[str, Any]:
    stage, signal = Stage(spec), spec.signal
    ram, figures = stage_bytes(spec, stage.project), stage.project.figures
    assert signal is not None and (spec.program.is_int16 or ram == kept(spec)), (what, ram, kept(spec))
    return {
        "what": what,
        "precision": spec.precision,
        "hop": signal.step,
        "channels": len(signal.channels),
        "features": len(plan_of(signal).features),
        "ram": ram,
        "sizeof": figures["ram_bytes"],
        "tables": figures["const_bytes"],
        "code": stage.image.sizes["text_bytes"],
    }


# --------------------------------------------------------------------------------------------------------- CMSIS-DSP

LIBRARY = (
    *(f"StatisticsFunctions/arm_{name}_f32" for name in ("rms", "mean", "std", "var", "max", "min")),
    *(f"TransformFunctions/arm_{name}_f32" for name in ("rfft_fast", "rfft_fast_init", "cfft", "cfft_init")),
    *("TransformFunctions/arm_cfft_radix8_f32", "TransformFunctions/arm_bitreversal2"),
    *("CommonTables/arm_common_tables", "CommonTables/arm_const_structs", "FastMathFunctions/arm_vlog_f32"),
    *(f"BasicMathFunctions/arm_{name}_f32" for name in ("mult", "offset")),
    *("SupportFunctions/arm_copy_f32", "SupportFunctions/arm_weighted_average_f32"),
    "ComplexMathFunctions/arm_cmplx_mag_squared_f32",
)
# what arm_math.h includes; that one asks for CMSIS-Core, of which these functions need nothing
HEADERS = ("basic_math", "complex_math", "fast_math", "statistics", "support", "transform")

SPECTRUM = r"""
enum { HALF = W / 2 };
static float work[W], lines[W];
static arm_rfft_fast_instance_f32 fft;
void init(void);
void init(void) { arm_rfft_fast_init_256_f32(&fft); }
static void spectrum(const float *x) /* into work: powers of the frequencies from the first to W / 2 */
{
    float mean;
    arm_mean_f32(x, W, &mean);
    arm_offset_f32(x, -mean, work, W);
    arm_mult_f32(work, weights, work, W);
    arm_rfft_fast_f32(&fft, work, lines, 0);
    arm_cmplx_mag_squared_f32(lines + 2, work, HALF - 1);
    work[HALF - 1] = 0.5f * lines[1] * lines[1];
}
"""

CALLS = r"""
void call_spectrum(const float *x, float *y);
void call_spectrum(const float *x, float *y) { spectrum(x); *y = work[0]; }
void call_transform(const float *x, float *y);
void call_transform(const float *x, float *y) { arm_rfft_fast_f32(&fft, work, lines, 0); *y = *x; }
void call_rms(const float *x, float *y);
void call_rms(const float *x, float *y) { arm_rms_f32(x, W, y); }
void call_mean(const float *x, float *y);
void call_mean(const float *x, float *y) { arm_mean_f32(x, W, y); }
void call_std(const float *x, float *y);
void call_std(const float *x, float *y) { arm_std_f32(x, W, y); }
void call_max(const float *x, float *y);
void call_max(const float *x, float *y) { uint32_t at; arm_max_f32(x, W, y, &at); }
"""

GOERTZEL = r"""
void call_goertzel(const float *x, float *y);
void call_goertzel(const float *x, float *y) /* the power of one frequency; 2 cos(2 pi 5 / 256) */
{
    const float c = 1.98495300f;
    float one = 0.0f, two = 0.0f;
    for (int t = 0; t < W; t++) {
        const float now = x[t] + c * one - two;
        two = one;
        one = now;
    }
    *y = one * one + two * two - c * one * two;
}
void call_goertzel_q15(const int16_t *x, float *y);
void call_goertzel_q15(const int16_t *x, float *y)
{
    const int32_t c = 32521; /* 2^14 times the same; states of 32 bits, 7 of them left for a tone's growth */
    int32_t one = 0, two = 0;
    for (int t = 0; t < W; t++) {
        const int32_t now = x[t] + (int32_t)((int64_t)c * one >> 14) - two;
        two = one;
        one = now;
    }
    const int64_t power = (int64_t)one * one + (int64_t)two * two - ((int64_t)c * one >> 14) * two;
    *y = (float)power;
}
"""

# feature {f}, of channel {j}'s window
FEATURE = {
    "mean": "arm_mean_f32(raw[{j}], W, &y[{f}]);",
    "rms": "arm_rms_f32(raw[{j}], W, &y[{f}]);",
    "std": "arm_std_f32(raw[{j}], W, &y[{f}]);",
    "min": "arm_min_f32(raw[{j}], W, &y[{f}], &at);",
    "max": "arm_max_f32(raw[{j}], W, &y[{f}], &at);",
    "band": "sum = 0.0f; for (int i = {first}; i < {after}; i++) sum += work[i - 1]; y[{f}] = sqrtf({scale:.9g}f * sum);",
    "centroid": "y[{f}] = arm_weighted_average_f32(frequencies, work, HALF);",
    "dominant": "arm_max_f32(work, HALF, &sum, &at); y[{f}] = frequencies[at];",
    "flatness": "arm_mean_f32(work, HALF, &sum); arm_vlog_f32(work, lines, HALF); arm_mean_f32(lines, HALF, &level); y[{f}] = expf(level) / sum;",
}


def spectral() -> str:
    """With the tables in flash."""
    frequencies = np.arange(1, WINDOW // 2 + 1) * RATE / WINDOW
    return array("weights", HANN) + array("frequencies", frequencies) + SPECTRUM


def firmware(spec: Spec) -> str:
    """push(x, y): gathers windows, and writes features at the end of each hop, as somebody would write it."""
    signal = spec.signal
    assert signal is not None
    lines, rows, channels = list[str](), list(enumerate(plan_of(signal).measures)), range(len(signal.channels))
    for j in channels:
        mine = [(f, measure) for f, measure in rows if measure.of == j]
        if any(measure.kind in SPECTRAL for _, measure in mine):
            lines.append(f"spectrum(raw[{j}]);")
        for f, measure in mine:
            first, after = signal.bins(*signal.bands[measure.steps]) if measure.kind == "band" else (0, 0)
            scale = 2 / (WINDOW * WINDOW * 0.375)
            lines.append(FEATURE[measure.kind].format(j=j, f=f, first=first, after=after, scale=scale))
    store = " ".join(f"raw[{j}][gathered] = x[{j}];" for j in channels)
    move = " ".join(f"arm_copy_f32(raw[{j}] + HOP, raw[{j}], W - HOP);" for j in channels)
    body = "\n    ".join(lines)
    return f"""{spectral() if "spectrum(raw[0]);" in lines else ""}
enum {{ HOP = {signal.step} }};
static float raw[{len(channels)}][W];
static int gathered;
int push(const float *x, float *y);
int push(const float *x, float *y)
{{
    uint32_t at; float sum, level; (void)at; (void)sum; (void)level;
    {store}
    if (++gathered < W) return 0;
    {body}
    {move if signal.step < WINDOW else ""}
    gathered = W - HOP;
    return 1;
}}
"""


class Firmware:
    """C beside CMSIS-DSP, on a target."""

    def __init__(self, folder: Path | None, target: str, source: str, contraction: str = "off") -> None:
        source = f"#include <math.h>\n#include <stdint.h>\nenum {{ W = {WINDOW} }};\n{source}"
        flags, extra = ["-Wno-error", "-w", *DEFAULTS, f"-ffp-contract={contraction}"], dict[str, str]()
        if folder is not None:
            extra = {f"{Path(name).name}.c": f'#include "{folder}/Source/{name}.c"\n' for name in LIBRARY}
            source = "".join(f'#include "dsp/{name}_functions.h"\n' for name in HEADERS) + source
            flags += [f"-I{folder}/Include", f"-I{folder}/PrivateInclude", "-D__GNUC_PYTHON__", "-DARM_MATH_LOOPUNROLL"]
        self.image = Image(
            find_target(target), "gcc", {"peer.c": source}, "-O2", flags, extra, libraries=("-lm", "-lc")
        )
        self.machine = EmulatedCpu(self.image)

    def counted(self, name: str, x: np.ndarray) -> int:
        self.machine.uc.mem_write(MAILBOX, x.tobytes())
        before = self.machine.instructions
        self.machine.call(name, MAILBOX, MAILBOX + PAGE)
        return self.machine.instructions - before

    def answers(self, count: int) -> np.ndarray:
        return np.frombuffer(self.machine.uc.mem_read(MAILBOX + PAGE, 4 * count), np.float32).astype(float)


def contractions(target: str) -> tuple[tuple[str, str], ...]:
    """Names for the page, and what the compiler is told: where there is no FPU, there is nothing to contract."""
    return (("", "off"), (CONTRACTED, "fast")) if "f" in target.removeprefix("cortex") else (("", "off"),)


def peer_pushes(folder: Path, version: str) -> Iterator[dict[str, Any]]:
    for name, spec in measured():
        if spec.precision != "float32":
            continue
        stage = Stage(spec)
        known = stage.features()
        for target in TARGETS:
            for words, contraction in contractions(target):
                made = Firmware(folder, target, firmware(spec), contraction)
                if "init" in made.image.functions:
                    made.machine.call("init")
                each = np.array([made.counted("push", x) for x in stream(spec.width).astype(np.float32)])
                np.testing.assert_allclose(made.answers(len(known)), known, rtol=3e-3)
                found = row(
                    "push", name, version + words, "float32", target, stage.hop, each[-COUNTED:].mean(), max(each)
                )
                sizes = made.image.sizes
                yield found | {"ram": sizes["data_bytes"] + sizes["bss_bytes"], "flash": made.image.flash_bytes}


def peer_calls(folder: Path, version: str) -> Iterator[dict[str, Any]]:
    x = stream(1)[:WINDOW].astype(np.float32)
    names = {"spectrum": "a spectrum", "transform": "arm_rfft_fast_f32", "rms": "arm_rms_f32"}
    names |= {"mean": "arm_mean_f32", "std": "arm_std_f32", "max": "arm_max_f32"}
    for target in TARGETS:
        for words, contraction in contractions(target):
            made = Firmware(folder, target, spectral() + CALLS, contraction)
            made.machine.call("init")
            for name, what in names.items():
                yield row("call", what, version + words, "float32", target, "", made.counted(f"call_{name}", x))


def by_hand() -> Iterator[dict[str, Any]]:
    x = stream(1)[:WINDOW, 0]
    x = (x - x.mean()) * HANN
    wave = np.exp(-2j * np.pi * 5 * np.arange(WINDOW) / WINDOW)
    for target in TARGETS:
        for words, contraction in contractions(target):
            made = Firmware(None, target, GOERTZEL, contraction)
            for name, given_, precision in (
                ("", x.astype(np.float32), "float32"),
                ("_q15", np.rint(8192 * x), "int16"),
            ):
                taken = given_.astype(np.int16) if precision == "int16" else given_
                count = made.counted(f"call_goertzel{name}", taken)
                np.testing.assert_allclose(made.answers(1), abs((given_ * wave).sum()) ** 2, rtol=0.02)
                if precision == "float32" or not words:
                    code = "Goertzel by hand" + words
                    yield row("call", ONE, code, precision, target, "", count)


# ------------------------------------------------------------------------------------------------------------ pages


def tables(rows: Rows, bytes_: Rows) -> dict[str, str]:
    """For docs/guide/signals.md."""
    pushes_ = [row for row in rows if row["part"] == "push"]
    theirs = {
        (row["what"], row["hop"], row["target"]): row
        for row in pushes_
        if row["code"].startswith("CMSIS") and not row["code"].endswith(CONTRACTED)
    }
    mine = [row for row in pushes_ if row["code"] == "pykernel"]
    found = {f"signal pushes, {target}": table_of_pushes(mine, theirs, target) for target in TARGETS}
    return found | {
        "signal calls": table_of_calls([row for row in rows if row["part"] == "call"]),
        "signal memory": table_of_memory(mine, theirs, bytes_),
        "signal features": table_of_features([row for row in rows if row["part"] == "feature"]),
    }


def cells(*values: str) -> list[str]:
    return [f"{float(value):,.0f}" if value else "" for value in values]


def named(row: dict[str, str]) -> str:
    return row["what"] + (", int16" if row["precision"] == "int16" else "")


def table_of_pushes(mine: Rows, theirs: Any, target: str) -> str:
    lines = []
    for row in (row for row in mine if row["target"] == target):
        other = theirs[row["what"], row["hop"], target]
        ratio = f"{float(row['mean']) / float(other['mean']):.2f}"
        means, most = cells(row["mean"], other["mean"]), cells(row["most"], row["bound"], other["most"])
        lines.append([named(row), row["hop"], *means, ratio, *most])
    return markdown(["features", "hop", "mean", "CMSIS-DSP", "ratio", "most", "bound", "most, CMSIS-DSP"], lines)


def table_of_calls(rows: Rows) -> str:
    counts = {(r["what"], r["code"], r["precision"], r["target"]): r["mean"] for r in rows}
    lines = []
    for row in (r for r in rows if r["target"] == TARGETS[0] and not r["code"].endswith(CONTRACTED)):
        what, code, precision = row["what"], row["code"], row["precision"]
        fast = counts.get((what, code + CONTRACTED, precision, TARGETS[0]), "")
        lines.append([named(row), code, *cells(row["mean"], fast, counts[what, code, precision, TARGETS[1]])])
    return markdown(["of 256 samples", "code", TARGETS[0], "contracted", TARGETS[1]], lines)


def table_of_memory(mine: Rows, theirs: Any, bytes_: Rows) -> str:
    kept_ = {(row["what"], row["hop"], row["precision"]): row for row in bytes_}
    lines = []
    for row in (row for row in mine if row["target"] == TARGETS[0]):
        other = theirs[row["what"], row["hop"], TARGETS[0]]
        figures = kept_[row["what"], row["hop"], row["precision"]]
        shown = cells(row["ram"], other["ram"], figures["tables"], row["flash"], other["flash"])
        lines.append([named(row), row["hop"], *shown])
    return markdown(["features", "hop", "RAM", "CMSIS-DSP", "tables", "flash", "flash, CMSIS-DSP"], lines)


def table_of_features(rows: Rows) -> str:
    counts = {(row["what"], row["code"]): row for row in rows}
    lines = []
    for name in ALONE:
        alone, last = (counts[name, code] for code in ("alone", "last"))
        lines.append([f"`{name}`", *cells(alone["most"], alone["mean"], last["most"], last["mean"])])
    heads = [
        "feature",
        "a sample, after `mean`",
        "a step, after `mean`",
        "a sample, as the last",
        "a step, as the last",
    ]
    return markdown(heads, lines)


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cmsis", type=Path, help="unpacked source of the package cmsisdsp")
    parser.add_argument("-o", "--out", type=Path, default=DATA)
    parser.add_argument("--show", action="store_true", help="measure nothing: the tables from the CSV files")
    chosen = parser.parse_args(words)
    path, beside = chosen.out / "signal-cost.csv", chosen.out / "signal-memory.csv"
    if not chosen.show:
        found = [*pushes(), *spectra()]
        if chosen.cmsis:
            folder = chosen.cmsis.resolve()
            version = f"CMSIS-DSP {folder.name.rpartition('-')[2]}"
            found += [*peer_pushes(folder, version), *peer_calls(folder, version)]
        else:
            found += [each for each in load(path) if each["code"].startswith("CMSIS")] if path.is_file() else []
        save(path, [*found, *by_hand(), *shares()])
        save(beside, list(memory()))
    made = tables(load(path), load(beside))
    if chosen.out == DATA:
        publish(made)
    print("\n".join(made.values()))


if __name__ == "__main__":
    main()
