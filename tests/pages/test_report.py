"""docs/report.md: its tables are the results, and its sentences about them hold."""

from benchmarks import report
from benchmarks.tables import DATA, load, read

TEXT = read(report.PAGE)


def test_the_tables_are_the_results():
    assert report.page(TEXT) == TEXT


def test_what_the_page_says_holds():
    found = report.bounds()
    assert all((each >= 1).all() for each in found.values()) and len(found) == 3
    ratios = [real / whole for _, real, whole in report.whole_rows()]
    assert f"from {min(ratios):.0f} to {max(ratios):.0f}" in TEXT
    assert all((each < 1).mean() > 0.5 for each in report.defaults().values())
    rows = load(DATA / "peers.csv")
    assert not any(row["learns"] == "yes" for row in rows if row["code"] != "pykernel")
    for data in {row["data"] for row in rows}:
        taken = [(row["model"], int(row["predict"])) for row in rows if row["data"] == data and row["predict"]]
        trees = [count for model, count in taken if "trees" in model]
        assert min(trees) < min(count for model, count in taken if "vectors" in model or "krls" in model)
