"""Results in docs/data.

python -m benchmarks                  # what is stale, and why; ends with 1 if that takes seconds only
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
    for name, why in sorted(found.items(), key=lambda item: (TREE.results[item[0]].takes, item[0])):
        print(f"{TREE.results[name].takes:8} {name}: {'; '.join(why)}")
    adopted = [name for name, old in TREE.recorded().items() if "adopted" in old]
    print(f"{len(found)} of {len(TREE.results)} results are stale; {len(adopted)} are older than their digests.")
    sys.exit(any(TREE.results[name].takes == "seconds" for name in found))


if __name__ == "__main__":
    main()
