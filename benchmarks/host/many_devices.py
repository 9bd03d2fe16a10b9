"""A thousand recordings on a cluster of two workers, of which one is killed; writes docs/data/many-devices.csv.

    python -m benchmarks.host.many_devices [--devices N … --rows N] [--show]

Each recording is a pump of docs/many-devices.md with rows of its own; the spec has no rule.  Of each number of devices: seconds of the
clock for all, the most megabytes that this process had and that a worker had, and how many of the devices have another
result than alone in this process (of 20 that are drawn).  In the largest run a worker is killed after some seconds; its nanny starts another one.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.tables import DATA, DOCS, load, markdown, publish, save
from pykernel import simulate
from pykernel.spec.model import make_spec

PATH, PAGE = DATA / "many-devices.csv", DOCS / "many-devices.md"
DEVICES, ROWS, LOOKED_AT = (10, 100, 1000), 100_000, 20
SPEC = make_spec({"name": "flow", "input": {"columns": ["valve", "pressure"]}, "label": {"column": "flow"}})


def record(folder: Path, device: int, rows: int) -> None:
    rng = np.random.default_rng(device)
    valve, pressure = rng.uniform(0, 1, (2, rows))
    flow = np.sin((2 + 0.1 * (device % 8)) * valve) * pressure + 0.02 * rng.normal(size=rows)
    lines = [
        f"{a:.4f},{b:.4f},{c:.4f}" for a, b, c in zip(valve.tolist(), pressure.tolist(), flow.tolist(), strict=True)
    ]
    (folder / f"d{device:04}.csv").write_text("\n".join(["valve,pressure,flow", *lines, ""]))


def megabytes(pid: int | str) -> float:
    """The most that a process has had."""
    try:
        told = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1024 for line in told.splitlines() if line.startswith("VmHWM")), 0.0)


class Watched:
    """The most megabytes of the workers, in a thread; kills one of them after ``kill`` seconds."""

    def __init__(self, client: Any, kill: float | None) -> None:
        self.client, self.kill, self.most, self.killed = client, kill, 0.0, 0
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def _watch(self) -> None:
        began = time.monotonic()
        while not self._end.wait(0.5):
            pids = list(self.client.run(os.getpid, on_error="ignore").values())
            self.most = max([self.most, *(megabytes(pid) for pid in pids)])
            if self.kill is not None and not self.killed and pids and time.monotonic() - began > self.kill:
                os.kill(pids[0], signal.SIGKILL)
                self.killed = 1

    def __enter__(self) -> Watched:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()


def measured(counts: list[int], rows: int) -> list[dict[str, Any]]:
    from distributed import Client, LocalCluster  # type: ignore[import-not-found]

    found = []
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place, "pumps")
        folder.mkdir()
        there = 0
        for count in sorted(counts):
            for device in range(there, count):
                record(folder, device, rows)
            there = count
            with (
                LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
                Client(cluster) as client,
                Watched(client, 20.0 if count == max(counts) else None) as watched,
            ):
                began = time.monotonic()
                devices = simulate(SPEC, folder, jobs=cluster.scheduler_address).report["devices"]
                seconds = time.monotonic() - began
            drawn = np.random.default_rng(count).choice(count, min(LOOKED_AT, count), replace=False).tolist()
            differ = sum(
                simulate(SPEC, devices[i]["path"]).report["second_half"]["rmse"]["model"] != devices[i]["error"]
                for i in drawn
            )
            row = {"devices": count, "rows": rows, "seconds": f"{seconds:.0f}", "mb_here": f"{megabytes('self'):.0f}"}
            row |= {
                "mb_worker": f"{watched.most:.0f}",
                "killed": watched.killed,
                "compared": len(drawn),
                "differ": differ,
            }
            found.append(row)
            print(row, flush=True)
    return found


def show() -> None:
    columns = ("devices", "rows of each", "seconds", "MB here", "MB of a worker", "killed", "compared", "differ")
    rows = [[f"{int(value):,}" for value in row.values()] for row in load(PATH)]
    publish({"a thousand recordings": markdown(columns, rows)}, PAGE)


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--devices", type=int, nargs="+", default=list(DEVICES), metavar="N")
    parser.add_argument("--rows", type=int, default=ROWS, metavar="N")
    parser.add_argument("--show", action="store_true", help="print from the file, without measuring")
    asked = parser.parse_args(arguments)
    if not asked.show:
        save(PATH, measured(asked.devices, asked.rows))
    show()


if __name__ == "__main__":
    main(sys.argv[1:])
