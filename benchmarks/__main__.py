"""Results in docs/data.

python -m benchmarks                  # what is stale, and why; ends with 1 if anything is
python -m benchmarks --record NAME …  # these were measured just now, by hand: with peers, say
"""

import argparse
import sys

from benchmarks.results import TREE


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record", nargs="+", choices=TREE.results, metavar="NAME", default=[])
    if names := parser.parse_args().record:
        for name in names:
            TREE.record(name)
        return
    found = {name: why for name in TREE.results if (why := TREE.stale(name))}
    seconds = {name: TREE.seconds(name) for name in TREE.results}
    for name, why in sorted(found.items(), key=lambda item: (seconds[item[0]], item[0])):
        print(f"{seconds[name]:>5} s  {name}: {'; '.join(why)}")
    print(f"{len(found)} of {len(TREE.results)} results are stale: `make remeasure` measures them again.")
    again = sum(seconds[name] for name in found)
    print(
        f"They took {again / 60:.0f} minutes, one after the other; all results took {sum(seconds.values()) / 60:.0f}."
    )
    sys.exit(bool(found))  # who changes what a result measures measures it again


if __name__ == "__main__":
    main()
