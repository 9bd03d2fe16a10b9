"""What models in int16 cost and lose beside float32, side by side in one run.

    python -m benchmarks.device.int16 [-o docs]

predict   one prediction of an imported support vector regression with 64 vectors of 8 inputs: instructions on emulated
          Cortex-M and RISC-V, cycles of an ATmega1284P in simavr (GCC -O2, timer 1, 8 cycles a tick), bytes of flash of a program
          that only predicts (-Os, unused functions left out)
learn     one update of a model with 16 vectors of 4 inputs, after 400 updates: median, and the most that a search found
          in any state; bytes of RAM
rentals   bike rentals: mean absolute error over the second half of the year, over that of float32
data      public data sets: half of the rows trains in float64 with scikit-learn, the other half is predicted
uno       what fits in the 2 KB of RAM of an ATmega328P, with 512 bytes left for the rest of the firmware

Writes int16.csv to the output folder and the tables into docs/guide/int16.md.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.device.imported_instructions import estimators, samples
from benchmarks.tables import DATA, load, markdown, publish, save
from pykernel.gen.project import build
from pykernel.host.bikeshare import bikeshare
from pykernel.host.model import HostModel
from pykernel.importers.importing import from_sklearn
from pykernel.spec.defaults import width
from pykernel.spec.model import Spec, make_spec
from pykernel.targets.check import check_targets

COLUMNS = ("part", "model", "precision", "where", "what", "value")
TARGETS = (("cortex-m0plus", "gcc"), ("cortex-m3", "gcc"), ("rv32imac", "zig"), ("cortex-m4f", "gcc"))
KERNELS: dict[str, dict[str, Any]] = {
    "gaussian": {"gamma": 0.125},
    "laplacian": {"gamma": 0.25},
    "matern12": {"gamma": 0.5},
    "matern32": {"gamma": 0.8},
    "matern52": {"gamma": 1.0},
    "polynomial": {"gamma": 0.125, "coef0": 1.0, "degree": 3},
}
ROOM = 2048 - 512
"""Bytes of RAM of an ATmega328P for a model."""


def svr(precision: str, distance: str) -> Spec:
    """A regression with 64 support vectors of 8 inputs."""
    how: Any = {"distance": distance}
    if precision == "int16":
        how["max_abs"] = 1.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return from_sklearn(estimators()["SVR"], "model", precision=precision, **how)


def counted(spec: Spec, target: str, chain: str, x: np.ndarray, y: np.ndarray, tries: int = 0) -> dict[str, Any]:
    (row,) = check_targets(spec, [target], samples=len(x), chain=chain, stream=(x, y), tries=tries).rows
    assert row["equal"], row
    return row


def predictions() -> list[dict[str, Any]]:
    rows = []
    x = samples()[0][:200]
    for distance in ("differences", "products"):
        for precision in ("float32", "int16"):
            spec = svr(precision, distance)
            model = f"SVR 64 x 8, {distance}"
            for target, chain in TARGETS:
                found = counted(spec, target, chain, x, np.zeros(len(x)))["predict"]
                rows.append(row("predict", model, precision, f"{target}, {chain} -O2", "instructions", found["median"]))
            rows.append(row("predict", model, precision, "avr, gcc -O2", "cycles", avr_cycles(spec, x[:20])))
            rows.append(row("predict", model, precision, "cortex-m0plus, gcc -Os", "flash", predicting_flash(spec)))
            if precision == "int16":
                found = HostModel(spec).predict(x) - spec.family.functions(spec, spec.as_seen(x))[:, 0]
                bound = float(spec.family.error_bound(spec)[0])
                rows.append(row("predict", model, precision, "200 inputs", "error", float(np.abs(found).max())))
                rows.append(row("predict", model, precision, "all inputs", "bound", bound))
    return rows


def kernels() -> list[dict[str, Any]]:
    """The same vectors with other kernels, on a Cortex-M0+."""
    rows = []
    x = samples()[0][:200]
    for function, keys in KERNELS.items():
        for precision in ("float32", "int16"):
            content = svr(precision, "differences").model_dump(mode="json", exclude_unset=True)
            spec = make_spec(content | {"kernel": {"function": function} | keys})
            found = counted(spec, "cortex-m0plus", "gcc", x, np.zeros(len(x)))["predict"]
            rows.append(row("kernels", function, precision, "cortex-m0plus, gcc -O2", "instructions", found["median"]))
            if precision == "int16":
                host = HostModel(spec)
                error = spec.family.measured_error(spec, lambda z, host=host: host.predict(z).reshape(len(z), -1)).max()
                ratio = float(spec.family.error_bound(spec).max() / error)
                rows.append(row("kernels", function, precision, "made-up inputs", "bound / measured", ratio))
    return rows


def predicting_flash(spec: Spec) -> int:
    """Bytes of a program that only predicts, for a Cortex-M0+."""
    project, name = build(spec), spec.name
    with tempfile.TemporaryDirectory() as folder:
        for file, text in project.sources.items():
            (Path(folder) / file).write_text(text)
        numbers = "int16_t" if spec.real.is_int16 else "float"
        answer = "int32_t" if spec.real.is_int16 else "float"
        (Path(folder) / "main.c").write_text(
            f'#include "{name}.h"\n{name}_t model; {numbers} x[{name.upper()}_DIM]; {answer} y[1];\n'
            f"void _start(void) {{ {name}_init(&model); (void){name}_predict(&model, x, y); }}\n"
        )
        words = "arm-none-eabi-gcc -mthumb -mcpu=cortex-m0plus -Os -std=c99 -ffunction-sections -fdata-sections -nostartfiles"
        words += " -ffreestanding -Wl,--gc-sections -specs=nosys.specs"
        subprocess.run([*words.split(), f"{name}.c", "main.c", "-o", "a.elf"], cwd=folder, check=True)
        told = subprocess.run(["arm-none-eabi-size", "a.elf"], cwd=folder, check=True, capture_output=True, text=True)
    return int(told.stdout.splitlines()[1].split()[0])


AVR = """#include <avr/io.h>
#include <avr/interrupt.h>
#include <avr/sleep.h>
#include "model.h"
static const NUMBER xs[] = {ROWS};
static model_t model;
static void put(char c) { while (!(UCSR0A & (1 << UDRE0))) {} UDR0 = (uint8_t)c; }
int main(void)
{
    UCSR0B = (1 << TXEN0);
    TCCR1B = (1 << CS11); /* 8 cycles a tick */
    model_init(&model);
    for (int t = 0; t < COUNT; t++) {
        ANSWER y[1];
        TCNT1 = 0;
        (void)model_predict(&model, &xs[t * MODEL_DIM], y);
        uint16_t ticks = TCNT1;
        for (int shift = 12; shift >= 0; shift -= 4) put("0123456789abcdef"[(ticks >> shift) & 15]);
        put('\\n');
    }
    cli();
    sleep_enable();
    sleep_cpu();
}
"""


def avr_cycles(spec: Spec, x: np.ndarray) -> float | None:
    """Cycles of a prediction on an ATmega328P, the median; None without the tools."""
    if not (shutil.which("simavr") and shutil.which("avr-gcc")):
        return None
    project, whole = build(spec), spec.real.is_int16
    raw = spec.raw_inputs(x)
    numbers = ", ".join(str(v) if whole else f"{float(v)!r}f" for v in raw.reshape(-1).tolist())
    text = AVR.replace("ROWS", numbers).replace("COUNT", str(len(x)))
    text = text.replace("NUMBER", "int16_t" if whole else "float").replace("ANSWER", "int32_t" if whole else "float")
    with tempfile.TemporaryDirectory() as folder:
        for path in ("src/model.c", "src/model.h"):
            (Path(folder) / Path(path).name).write_text(project.files[path])
        (Path(folder) / "main.c").write_text(text)
        words = (
            "avr-gcc -mmcu=atmega1284p -DF_CPU=16000000 -O2 -std=gnu99 -ffp-contract=off model.c main.c -o a.elf -lm"
        )
        subprocess.run(words.split(), cwd=folder, check=True, capture_output=True)
        told = subprocess.run(
            ["simavr", "-m", "atmega1284p", "-f", "16000000", "a.elf"],
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=600,
        )
    ticks = re.findall(r"([0-9a-f]{4})\.", told.stdout + told.stderr)
    assert len(ticks) >= len(x), (told.stdout[-300:], told.stderr[-300:])
    return 8 * float(np.median([int(tick, 16) for tick in ticks[: len(x)]]))


def learner(precision: str, technique: str, projection: str | None = None) -> Spec:
    reduction = {"technique": technique, "n_max": 16, "force": True} | (
        {"projection": projection} if projection else {}
    )
    content = {"name": "model", "precision": precision, "input": {"dim": 4, "max_abs": 3.0}, "label": {"max_abs": 4.0}}
    return make_spec(
        content | {"kernel": {"sigma": 1.0}, "learning": {"rule": "klms", "eta": 0.5}, "reduction": reduction}
    )


def small(precision: str) -> Spec:
    """The default in int16 and in float32."""
    content: dict[str, Any] = {"name": "model", "precision": precision, "input": {"dim": 4, "max_abs": 3.0}}
    label: dict[str, Any] = {"max_abs": 4.0}
    if precision == "float32":
        content["input"] |= {"standardise": True}
        content |= {"linear": {"eta": 0.005}, "kernel": {"sigma": 1.4 * width(4)}, "learning": {"rule": "spectrum-ekf"}}
        label |= {"center": True, "gain": True}
    return make_spec(content | {"label": label})


def updates() -> list[dict[str, Any]]:
    rng = np.random.default_rng(0)
    x, y = rng.uniform(-2, 2, (400, 4)), np.clip(rng.normal(size=400), -4, 4)
    rows = []
    for name, made in {
        "fklms, published projection": lambda p: learner(p, "fklms", "fklms"),
        "fklms": lambda p: learner(p, "fklms"),
        "fmklms": lambda p: learner(p, "fmklms"),
        "nt": lambda p: learner(p, "nt"),
        "the default of int16": small,
    }.items():
        for precision in ("float32", "int16"):
            spec = made(precision)
            found = counted(spec, "cortex-m0plus", "gcc", x, y, tries=400 if precision == "float32" else 2000)
            figures = {
                "predict": found["predict"]["median"],
                "update, median": found["update"]["median"],
                "update, most": max(found["update"]["max"], found["update"]["worst"] or 0),
                "ram": found["ram_bytes"],
                "flash": found["flash_bytes"],
            }
            rows += [
                row("learn", name, precision, "cortex-m0plus, gcc -O2", key, value) for key, value in figures.items()
            ]
    return rows


def rentals() -> list[dict[str, Any]]:
    x, y, _ = bikeshare()
    half, rows = len(y) // 2, []
    reach = np.abs(x).max(0).tolist()
    for technique, n, eta, sigma, projection in (
        ("fklms", 16, 0.8, 1.0, "fklms"),
        ("fklms", 32, 0.6, 1.0, "fklms"),
        ("fklms", 64, 0.8, 0.7, "fklms"),
        ("nt", 16, 0.8, 1.0, "none"),
        ("nt", 32, 0.8, 1.0, "none"),
        ("nt", 64, 0.6, 1.0, "none"),
    ):
        for precision in ("float32", "int16"):
            content = {"name": "model", "precision": precision, "kernel": {"sigma": sigma}}
            content |= {"input": {"dim": 8, "max_abs": reach if precision == "int16" else 10.0}}
            content |= {"label": {"max_abs": 1000.0}, "learning": {"rule": "klms", "eta": eta}}
            content |= {"reduction": {"technique": technique, "n_max": n, "projection": projection, "force": True}}
            answers, _ = HostModel(make_spec(content)).prequential(x, y)
            error = float(np.abs(answers - y)[half:].mean())
            rows.append(row("rentals", f"{technique}, N = {n}", precision, "second half", "error", error))
    return rows


def data_sets() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Inputs and labels, by name: scikit-learn's and river's bundled ones, and the bike rentals."""
    from river import datasets as river_sets
    from sklearn import datasets

    found = {
        name: getattr(datasets, f"load_{name}")(return_X_y=True)
        for name in ("diabetes", "iris", "wine", "breast_cancer", "digits")
    }
    for name, label in (("Bananas", int), ("Phishing", int), ("ImageSegments", str), ("TrumpApproval", float)):
        rows = list(getattr(river_sets, name)())
        x = np.array([list(sample.values()) for sample, _ in rows], float)
        y = np.array([label(answer) for _, answer in rows])
        some = np.random.default_rng(0).permutation(len(x))[:2000]
        found[name.lower()] = x[some], y[some]
    x, y, _ = bikeshare()
    some = np.random.default_rng(0).permutation(len(x))[:2000]
    found["bike rentals"] = x[some], y[some]
    return found


def accuracies() -> list[dict[str, Any]]:
    from sklearn.metrics import r2_score
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC, SVR

    rows = []
    for name, (x, y) in data_sets().items():
        order = np.random.default_rng(1).permutation(len(x))
        train, test = order[::2], order[1::2]
        numbers = y.dtype.kind == "f" and len(np.unique(y)) > 20
        machine = SVR(C=10 * float(np.std(y))) if numbers else SVC()
        model = make_pipeline(StandardScaler(), machine).fit(x[train], y[train])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            spec = from_sklearn(model, "model", precision="int16")
        host, given = HostModel(spec), x[test]
        bound = float(spec.family.error_bound(spec).max())
        taken = spec.accepts(given)
        rows.append(row("data", name, "int16", "test rows", "refused", int((~taken).sum())))
        if numbers:
            found, exact = host.predict(given[taken]), model.predict(given[taken])
            loss = r2_score(y[test][taken], exact) - r2_score(y[test][taken], found)
            rows.append(row("data", name, "int16", "test rows", "R2 lost", float(loss)))
        else:
            found, exact = host.classify(given[taken]), model.predict(given[taken])
            names = list(model.classes_)
            changed = float(np.mean([names[i] != e for i, e in zip(found, exact, strict=True)]))
            rows.append(row("data", name, "int16", "test rows", "classes changed", changed))
        rows.append(row("data", name, "int16", "all inputs", "bound / measured", bound / measured(spec, model, given)))
        rows.append(row("data", name, "int16", "vectors", "vectors", len(spec.expansion.vectors)))
    return rows


def measured(spec: Spec, model: Any, x: np.ndarray) -> float:
    """The largest difference between the functions in int16 and in float64, on rows and on made-up inputs."""
    host = HostModel(spec)
    seen = spec.as_seen(x[spec.accepts(x)])
    differences = np.abs(host.predict(seen).reshape(len(seen), -1) - spec.family.functions(spec, seen)).max()
    made_up = spec.family.measured_error(spec, lambda z, host=host: host.predict(z).reshape(len(z), -1)).max()
    return float(max(differences, made_up))


def on_an_uno() -> list[dict[str, Any]]:
    """The most vectors of 8 inputs that fit into an ATmega328P's RAM; whether float32's fit at all."""
    rows = []
    for technique in ("nt", "fklms"):
        for precision in ("float32", "int16"):
            best, ram = 0, 0
            for n in range(1, 129):
                content = {"name": "model", "precision": precision, "input": {"dim": 8, "max_abs": 3.0}}
                content |= {"label": {"max_abs": 4.0}, "kernel": {"sigma": 1.0}, "learning": {"rule": "klms"}}
                spec = make_spec(content | {"reduction": {"technique": technique, "n_max": n}})
                taken = build(spec).figures["ram_bytes"]
                if taken > ROOM:
                    break
                best, ram = n, taken
            rows.append(row("uno", technique, precision, "8 inputs", "vectors", best))
            rows.append(row("uno", technique, precision, "8 inputs", "ram", ram))
    return rows


def row(part: str, model: str, precision: str, where: str, what: str, value: Any) -> dict[str, Any]:
    return dict(zip(COLUMNS, (part, model, precision, where, what, "" if value is None else value), strict=True))


def tables(rows: Sequence[dict[str, Any]]) -> dict[str, str]:
    """The page's tables."""
    found = {tuple(str(r[c]) for c in COLUMNS[:5]): r["value"] for r in rows}

    def number(*key: str, digits: int = 0) -> str:
        value = found.get(key, "")
        return "" if value == "" else f"{float(value):,.{digits}f}"

    keys = list(dict.fromkeys((r["model"], r["where"], r["what"]) for r in rows if r["part"] == "predict"))
    predict = [
        (
            model,
            where,
            what,
            number("predict", model, "float32", where, what),
            number("predict", model, "int16", where, what),
        )
        for model, where, what in keys
        if what in ("instructions", "cycles", "flash")
    ]
    kinds = [
        (
            kind,
            number("kernels", kind, "float32", "cortex-m0plus, gcc -O2", "instructions"),
            number("kernels", kind, "int16", "cortex-m0plus, gcc -O2", "instructions"),
            number("kernels", kind, "int16", "made-up inputs", "bound / measured", digits=1),
        )
        for kind in KERNELS
    ]
    models = list(dict.fromkeys(r["model"] for r in rows if r["part"] == "learn"))
    where = "cortex-m0plus, gcc -O2"
    learn = [
        (
            model,
            precision,
            *(
                number("learn", model, precision, where, what)
                for what in ("predict", "update, median", "update, most", "ram", "flash")
            ),
        )
        for model in models
        for precision in ("float32", "int16")
    ]
    names = list(dict.fromkeys(r["model"] for r in rows if r["part"] == "rentals"))
    bikes = [
        (
            name,
            number("rentals", name, "float32", "second half", "error", digits=2),
            number("rentals", name, "int16", "second half", "error", digits=2),
        )
        for name in names
    ]
    sets = list(dict.fromkeys(r["model"] for r in rows if r["part"] == "data"))
    data = []
    for name in sets:
        lost = found.get(("data", name, "int16", "test rows", "R2 lost"), "")
        changed = found.get(("data", name, "int16", "test rows", "classes changed"), "")
        told = f"R² {float(lost):+.5f}" if lost != "" else f"{float(changed):.2%} of classes"
        ratio = number("data", name, "int16", "all inputs", "bound / measured", digits=1)
        data.append((name, number("data", name, "int16", "vectors", "vectors"), told, ratio))
    uno = [
        (technique, *(number("uno", technique, precision, "8 inputs", "vectors") for precision in ("float32", "int16")))
        for technique in ("nt", "fklms")
    ]
    return {
        "predict": markdown(("model", "where", "what", "float32", "int16"), predict),
        "kernels": markdown(("kernel", "float32", "int16", "bound / measured"), kinds),
        "learn": markdown(("technique", "precision", "predict", "update, median", "most", "RAM", "flash"), learn),
        "rentals": markdown(("model", "float32", "int16"), bikes),
        "data": markdown(("data", "vectors", "lost against float64", "bound / measured"), data),
        "uno": markdown(("technique", "float32", "int16"), uno),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, default=DATA.parent, metavar="FOLDER")
    parser.add_argument("--parts", nargs="*", default=["predict", "kernels", "learn", "rentals", "data", "uno"])
    options = parser.parse_args(arguments)
    made = {
        "predict": predictions,
        "kernels": kernels,
        "learn": updates,
        "rentals": rentals,
        "data": accuracies,
        "uno": on_an_uno,
    }
    folder = options.output / "data" if (options.output / "data").is_dir() else options.output
    path = folder / "int16.csv"
    kept: dict[str, list[dict[str, Any]]] = {part: [] for part in made}
    for each in load(path) if path.is_file() else ():
        kept[each["part"]].append(dict(each))
    for part in options.parts:
        kept[part] = made[part]()
    rows = [each for part in made for each in kept[part]]
    save(path, rows)
    publish({f"int16-{name}": table for name, table in tables(rows).items()})
    return 0


if __name__ == "__main__":
    sys.exit(main())
