"""What models take of emulated microcontrollers: bytes and instructions of each technique and budget, as Markdown.

The stream is some of the demo's (8 inputs, float32), spread over the year; each row's state is compared with the host's.

    python -m benchmarks.device.device_table [--target cortex-m4f …] [--n-max 8 16 32 64] [--toolchain zig] [--level -O2]
"""

import argparse
import sys

from pykernel.errors import UserError
from pykernel.host.bikeshare import bikeshare, bikeshare_spec
from pykernel.targets.check import check_targets
from pykernel.targets.target import all_targets

SAMPLES = 250


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", nargs="+", default=[t.name for t in all_targets().values() if t.unicorn])
    parser.add_argument("--n-max", type=int, nargs="+", default=[8, 16, 32, 64])
    parser.add_argument("--toolchain", default="zig")
    parser.add_argument("--level", default="-O2")
    chosen = parser.parse_args()
    x, y, _ = bikeshare()
    every = len(y) // SAMPLES
    stream = x[::every][:SAMPLES], y[::every][:SAMPLES]
    version = ""
    print("| target | technique | N | state | flash | stack | predict | update, median | max |")
    print("|---|---|---|---|---|---|---|---|---|")
    for target in chosen.target:
        for technique in ("nt", "fklms", "mklms"):
            for n_max in chosen.n_max:
                spec = bikeshare_spec(technique=technique, n_max=n_max)
                how = {"chain": chosen.toolchain, "emulator": "unicorn", "level": chosen.level, "tries": 0}
                try:
                    report = check_targets(spec, [target], stream=stream, **how)
                except UserError as refused:
                    print(f"| {target} | {technique} | {n_max} | does not fit | | | | | |")
                    print(refused, file=sys.stderr)
                    continue
                (row,) = report.rows
                if not report.ok:
                    sys.exit(f"{target} {technique} {n_max}: {row['first_difference']}")
                sizes = [f"{row[f'{part}_bytes']:,}" for part in ("state", "flash", "stack")]
                calls = [row["predict"]["max"], row["update"]["median"], row["update"]["max"]]
                cells = [target, technique, str(n_max), *sizes, *(f"{count:,.0f}" for count in calls)]
                print("|", " | ".join(cells), "|", flush=True)
                version = row["version"]
    print(f"\nBytes and instructions per call; {chosen.toolchain} ({version}) {chosen.level}, {SAMPLES} samples.")


if __name__ == "__main__":
    main()
