"""How far the errors of what is trained on the PC depend on the machine: one training for each kernel of OpenBLAS.

    python -m benchmarks.host.blas_kernels    # docs/data/blas-kernels.csv, and the table in docs/benchmarks.md

OpenBLAS chooses its kernels by the processor, and sums in another order with each.  Data and models are those of
``benchmarks.device.peers``: so many trained vectors, and scikit-learn's network.  Needs a processor with AVX2, which has all KERNELS.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from benchmarks.device import others
from benchmarks.tables import DATA, ROOT, Rows, markdown, publish, save
from pykernel.estimators.trained import TrainedKernelClassifier, TrainedKernelRegressor
from pykernel.parallel import one_thread

KERNELS = ("Prescott", "Nehalem", "Sandybridge", "Haswell")
"""Of processors from 2004 to today."""
VECTORS = HIDDEN = 16
FILE = DATA / "blas-kernels.csv"


def errors() -> list[dict[str, Any]]:
    """With the kernel of this process."""
    found = []
    with one_thread, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a linear model that is as good: it is not asked for here
        for data in others.sets():
            kind = TrainedKernelClassifier if data.classes else TrainedKernelRegressor
            trained = {
                f"{VECTORS} trained vectors": kind(VECTORS).fit(*data.train),
                f"network, {HIDDEN} hidden units": others.network_of(data, HIDDEN),
            }
            for model, each in trained.items():
                answers = each.predict(data.x[data.judged].astype(float))
                found.append({"data": data.name, "model": model, "error": f"{data.error(answers):.4g}"})
    return found


def with_kernel(kernel: str) -> list[dict[str, Any]]:
    env = os.environ | {"OPENBLAS_CORETYPE": kernel}
    done = subprocess.run([sys.executable, "-m", __spec__.name, "--here"], cwd=ROOT, env=env, stdout=-1, check=True)
    return [{"kernel": kernel} | row for row in json.loads(done.stdout)]


def spreads(rows: Rows) -> dict[tuple[str, str], tuple[float, float]]:
    """By data and model: the least error and the largest."""
    found: dict[tuple[str, str], list[float]] = {}
    for row in rows:
        found.setdefault((row["data"], row["model"]), []).append(float(row["error"]))
    return {key: (min(each), max(each)) for key, each in found.items()}


def shown(error: float) -> str:
    return f"{error:.1%}" if error < 1 else f"{error:.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--here", action="store_true", help="only print the errors of this process")
    if parser.parse_args().here:
        print(json.dumps(errors()))
        return
    with ThreadPoolExecutor(2) as threads:
        rows = save(FILE, [row for found in threads.map(with_kernel, KERNELS) for row in found])
    lines = [[*key, *map(shown, each)] for key, each in spreads(rows).items()]
    publish({"blas": markdown(["data", "model", "smallest error", "largest error"], lines)})


if __name__ == "__main__":
    main()
