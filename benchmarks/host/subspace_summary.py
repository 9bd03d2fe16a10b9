"""Fill docs/benchmarks.md, "Kernel feature extraction", from the CSV files: measures nothing.

    python -m benchmarks.host.subspace_summary

Tables of subspace_baselines.py, subspace_cost.py and subspace_drift.py, and what they come to in words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from benchmarks.device import subspace_cost
from benchmarks.host import subspace_baselines, subspace_drift
from benchmarks.tables import DATA, PAGE, Rows, load, publish, read

FILES: dict[str, Callable[[Rows], dict[str, str]]] = {
    "subspace-baselines": subspace_baselines.tables,
    "subspace-device": subspace_cost.tables,
    "subspace-drift": subspace_drift.tables,
}


def bullets(sentences: Iterable[str]) -> str:
    return "".join(f"- {sentence}\n" for sentence in sentences)


def between(values: Iterable[float], form: str = ".2f") -> str:
    """The least and the largest."""
    found = sorted(values)
    least, most = format(found[0], form), format(found[-1], form)
    return least if least == most else f"{least} to {most}"


# ------------------------------------------------------------------------------------------------------------ baselines


def cells(rows: Rows, memory: str) -> dict[tuple[str, str], dict[str, Mapping[str, str]]]:
    """(data, r) -> method -> row."""
    found: dict[tuple[str, str], dict[str, Mapping[str, str]]] = {}
    for row in rows:
        if row["memory"] == memory:
            found.setdefault((row["data"], row["features"]), {})[row["method"]] = row
    return found


def ratios(rows: Rows, memory: str, one: str, other: str, key: str = "held_out") -> list[float]:
    """What a method has, divided by what another has, in each cell."""
    return [float(there[one][key]) / float(there[other][key]) for there in cells(rows, memory).values()]


PCA, NYSTROEM_PCA = subspace_baselines.PCA, subspace_baselines.NYSTROEM_PCA


def baselines_in_words(rows: Rows) -> str:
    same, equal = "equal features", "equal bytes"
    precision = {
        name: max(
            abs(float(there[name][key]) / float(there[f"{name}, float64"][key]) - 1)
            for there in cells(rows, same).values()
            for key in ("held_in", "held_out", "residual")
        )
        for name in ("OKFEB exact", "OKFEB drop")
    }

    def against(method: str) -> str:
        """What a baseline of equal bytes has, in parts of what OKFEB exact has."""
        ours = cells(rows, same)
        return between(
            float(there[method]["held_out"]) / float(ours[cell]["OKFEB exact"]["held_out"])
            for cell, there in cells(rows, equal).items()
            if method in there
        )

    made = [int(there["Nystroem"]["made"]) / int(cell[1]) for cell, there in cells(rows, equal).items()]
    return bullets(
        [
            f"At equal features, the exact budget's error held out is {between(ratios(rows, same, 'OKFEB exact', 'Nystroem'))} "
            f"times that of Nystroem with r rows (without shrinkage {between(projected(rows, same, 'Nystroem'))}), and "
            f"{between(ratios(rows, same, 'OKFEB exact', PCA))} times that of IncrementalPCA on {subspace_baselines.MANY:,} "
            f"random features, which keep {between(ratios(rows, same, PCA, 'OKFEB exact', 'bytes_learn'), '.0f')} times the "
            "bytes.",
            f"It is {between(ratios(rows, same, 'OKFEB exact', 'BKFE, batch'))} times that of batch BKFE, which keeps all rows; "
            f"drop's is {between(ratios(rows, same, 'OKFEB drop', 'OKFEB exact'))} times exact's.",
            f"At equal bytes Nystroem has {between(made, '.1f')} times the features, and {against('Nystroem')} times the error: "
            "take it where nothing changes and the number of features does not matter.",
            f"At equal bytes and r features, IncrementalPCA has {against(NYSTROEM_PCA)} times the error on Nystroem, "
            f"{against(PCA)} times on random features; OKFEB drop, with more vectors, {against('OKFEB drop')} times.",
            f"Float32's and float64's errors differ by at most {precision['OKFEB exact']:.1%} with exact, whose ald_thresholds "
            f"differ, and {precision['OKFEB drop']:.1%} with drop.",
            f"OKFEB exact learns a row in {between(times(rows, 'OKFEB exact', 'learn_us'), '.0f')} µs and transforms it in "
            f"{between(times(rows, 'OKFEB exact', 'transform_us'), '.0f')} µs; IncrementalPCA on random features, "
            f"{subspace_baselines.BATCH} rows at a time, takes {between(ratios(rows, same, PCA, 'OKFEB exact', 'learn_us'), '.0f')} "
            "times as long to learn.",
        ]
    )


def projected(rows: Rows, memory: str, other: str) -> list[float]:
    return [
        float(there["OKFEB exact"]["projected"]) / float(there[other]["held_out"])
        for there in cells(rows, memory).values()
    ]


def times(rows: Rows, method: str, key: str) -> list[float]:
    return [float(there[method][key]) for there in cells(rows, "equal features").values()]


# ------------------------------------------------------------------------------------------------------------- cost


def cost_in_words(rows: Rows) -> str:
    def exponents(variant: str, series: str, call: str) -> list[float]:
        found = []
        for target in dict.fromkeys(row["target"] for row in rows):
            costs = {
                int(row[series]): float(row[call])
                for row in rows
                if (row["target"], row["series"], row["variant"]) == (target, series, variant) and row[call]
            }
            if len(costs) > 1:
                found.append(subspace_cost.exponent(dict(sorted(costs.items())[-2:])))
        return found

    grows = []
    for variant, call in (("drop", "update"), ("exact", "update"), ("exact", "novelty"), ("exact", "features")):
        name = f"{variant}'s {call}" if call == "update" else call
        grows.append(
            f"{name} N^{between(exponents(variant, 'n', call))}, r^{between(exponents(variant, 'rank', call))}"
        )
    return f"Growth over the last doubling: {'; '.join(grows)}.\n"


# ------------------------------------------------------------------------------------------------------------ drift


def drift_in_words(rows: Rows) -> str:
    main = [row for row in rows if row["update"] == "parametric" and row["refresh"] == "0"]
    drop = [row for row in main if row["budget"] == "drop"]
    exact = [row for row in main if row["budget"] == "exact" and row["defaults"] == "1"]
    floor = [row for row in main if row["ald_threshold"] == "0.01" and row["budget"] == "exact"]
    below = [row for row in main if row["ald_threshold"] == "0.001"]

    def worst(some: Rows, key: str) -> str:
        return subspace_drift.short(subspace_drift.worst(some, lambda row: subspace_drift.number(row, key)))

    def off(some: Rows) -> str:
        return subspace_drift.percent(subspace_drift.worst(some, subspace_drift.off))

    broken = [row for row in below if not subspace_drift.off(row) < 0.5]
    unfinished = [row for row in exact if int(row["n_float32"]) < subspace_drift.RANK]
    sentences = [
        f"Exact in float32, default ald_threshold {float(exact[0]['ald_threshold']):g}: after {int(exact[0]['samples']):,} "
        f"samples without any refresh G is off by at most {worst(exact, 'drift_g_float32')}, PK − I by "
        f"{worst(exact, 'drift_p_float32')}, a score by {off(exact)}.",
        f"With 0.01, the least that a spec may say: {worst(floor, 'drift_g_float32')}, {worst(floor, 'drift_p_float32')}, "
        f"{off(floor)}. With 0.001, which is refused: {worst(below, 'drift_g_float32')}, {worst(below, 'drift_p_float32')}, and "
        f"scores off by more than half in {len(broken)} of {len(below)} runs.",
        "The hardest kernel is the one where the budget just fills. With wider ones next to nothing passes the ald_threshold.",
        f"Drop in float32: G by {worst(drop, 'drift_g_float32')}. Exact in float64, default ald_threshold 1e-6: PK − I by "
        f"{worst(exact, 'drift_p_float64')}, G by {worst(exact, 'drift_g_float64')}.",
    ]
    if unfinished:
        times = [float(row["error_float32"]) / float(row["error_float64"]) for row in unfinished]
        wide = sorted({int(row["width"]) for row in unfinished})
        sentences.append(
            f"With kernels {', '.join(f'{width:,}' for width in wide)} times wider fewer than r samples pass float32's "
            f"ald_threshold: the error is {between(times, '.0f')} times float64's; take fewer features or a narrower kernel."
        )
    lost = [row for row in drop if subspace_drift.number(row, "drift_g_float64") > 1e-3]
    if lost:
        wide = sorted({int(row["width"]) for row in lost})
        sentences.append(
            f"Drop in float64 came apart in {len(lost)} of {len(drop)} streams, with a kernel {', '.join(map(str, wide))} times wider: its first "
            "vectors are so nearly dependent that rows of A cancel, and one was left out."
        )
    return bullets(sentences)


WORDS: dict[str, Callable[[Rows], str]] = {
    "subspace-baselines": baselines_in_words,
    "subspace-device": cost_in_words,
    "subspace-drift": drift_in_words,
}


def tables(page: str) -> dict[str, str]:
    """Of the places that the page has, and the files that are there."""
    made: dict[str, str] = {}
    for name, show in FILES.items():
        path = DATA / f"{name}.csv"
        if path.is_file():
            rows = load(path)
            made |= show(rows) | {f"{name}, in words": WORDS[name](rows)}
    return {place: table for place, table in made.items() if f"<!-- {place} -->" in page}


if __name__ == "__main__":
    publish(tables(read(PAGE)))
