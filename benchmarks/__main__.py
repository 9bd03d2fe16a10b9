"""Results in docs/data.

python -m benchmarks                  # what is stale, and why; ends with 1 if that takes a minute at most
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
        print(f"{seconds[name] or '?':>5} s  {name}: {'; '.join(why)}")
    adopted = str(TREE.recorded()).count("adopted")
    print(f"{len(found)} of {len(TREE.results)} results are stale; {adopted} are older than their digests.")
    unknown = list(seconds.values()).count(0)
    print(f"All of them took {sum(seconds.values()) / 60:.0f} minutes of a core; of {unknown} nobody knows.")
    # who changes what such a result measures measures it again
    sys.exit(any(0 < seconds[name] <= 60 for name in found))


if __name__ == "__main__":
    main()
