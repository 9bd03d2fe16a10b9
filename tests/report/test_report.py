"""Reports: whole, safe and small files with the numbers of ``--json``, from each command; and the same in a notebook."""

from __future__ import annotations

import base64
import csv
import hashlib
import json
import re
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from pykernel import (
    BudgetedKernelRegressor,
    KernelRidgeRegressor,
    MercerKernel,
    check,
    fit,
    generate,
    plan,
    select_basis,
    simulate,
)
from pykernel.cli.app import main
from pykernel.errors import UserError
from pykernel.gen.compilers import find_compilers
from pykernel.host.samples import times_of
from pykernel.host.scores import Envelope, Ranges
from pykernel.report import figures
from pykernel.report.document import Document
from pykernel.report.figures import SIMPLE, Panel, time_ticks
from pykernel.report.page import SCRIPT
from pykernel.spec.model import load_spec, make_spec
from pykernel.telling import formatted_number, verdict_sentence
from pykernel.workflows.models import spec_and_memory
from pykernel.workflows.prove import Proved

HOSTILE = ("</td><script>alert(1)</script>", "\"onmouseover='x'", "a&lt;b", "<img src=http://x.test onerror=x>")
VOID = {"meta", "br"}


class Page(HTMLParser):
    """The tags, attributes and text of a file; raises AssertionError if tags do not close."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.scripts: list[str] = []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        assert len(dict(attrs)) == len(attrs)
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        (self.scripts if self.open and self.open[-1] == "script" else self.texts).append(data)

    @property
    def text(self) -> str:
        return "\n".join(self.texts)


def checked_page(text: str) -> Page:
    """A page that loads nothing, and runs only our script."""
    page = Page(text)
    assert page.scripts == [SCRIPT]
    for tag, attributes in page.tags:
        assert tag not in ("link", "img", "iframe", "object", "embed", "base", "form", "a")
        assert not {name for name in attributes if name.startswith("on") or name in ("src", "href", "srcset")}
        assert "url(" not in (attributes.get("style") or "")
    return page


def whole(path: Path) -> Page:
    text = path.read_text(encoding="utf-8")
    assert text.startswith("<!doctype html>") and len(text) < 300_000
    page = checked_page(text)
    (policy,) = [each["content"] for tag, each in page.tags if tag == "meta" and "http-equiv" in each]
    digest = base64.b64encode(hashlib.sha256(SCRIPT.encode()).digest()).decode()
    assert "default-src 'none'" in policy and f"script-src 'sha256-{digest}'" in policy
    assert "url(" not in text and "@import" not in text
    return page


def table(path: Path, rows: int, label: str = "y", classes: tuple[str, ...] = ()) -> Path:
    rng = np.random.default_rng(5)
    x = rng.normal(size=(rows, len(HOSTILE)))
    y = np.sin(x[:, 0]) + 0.5 * x[:, 1] + 0.05 * rng.normal(size=rows)
    cells = y.tolist() if not classes else [classes[int(each > 0)] for each in y]
    with path.open("w", newline="", encoding="utf-8") as file:
        lines = csv.writer(file)
        lines.writerow([*HOSTILE, label])
        lines.writerows([*row, cell] for row, cell in zip(x.tolist(), cells, strict=True))
    return path


def spec_of(**sections):
    cheap = {"learning": {"rule": "nlms"}} if "learning" not in sections else {}
    return make_spec({"name": "flow", "input": {"columns": list(HOSTILE)}, **cheap, **sections})


def run(capsys, *words):
    with pytest.raises(SystemExit) as ended:
        main([*map(str, words)])
    out, err = capsys.readouterr()
    return ended.value.code, out, err


def test_simulate_shows_what_json_has_and_escapes_names(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("s.toml").write_text(spec_of(label={"column": HOSTILE[0] + "y"}).to_toml(), encoding="utf-8")
    table(Path("d.csv"), 900, HOSTILE[0] + "y")
    code, out, err = run(capsys, "simulate", "s.toml", "d.csv", "--json", "--report", "r.HTML", "--delay", "2")
    assert code == 0, err
    report, page = json.loads(out), whole(Path("r.HTML"))
    assert report["report"] == "r.HTML"
    for name in HOSTILE:
        assert name in page.texts
    for part in ("all", "second_half"):
        for kind in ("mae", "rmse"):
            for predictor, error in report[part][kind].items():
                assert predictor in page.texts and formatted_number(error) in page.texts
    assert verdict_sentence(report["verdict"]) in page.text and f"{report['rows']:,} rows" in page.text


TOLD = {
    "an interval": spec_of(label={"column": "y"}, learning={"rule": "krls-t"}, kernel={"sigma": 1.0}, interval={}),
    "classes": spec_of(label={"column": "y", "classes": HOSTILE[::3]}),
    "many classes": spec_of(label={"column": "y", "classes": [*HOSTILE[::3], *"abcdefgh"]}),
    "a monitor": make_spec({"name": "m", "input": {"columns": list(HOSTILE)}, "novelty": {"warmup": 50}}),
    "a training": spec_of(label={"column": "y"}, learning={"rule": "krr"}, kernel={"sigma": 1.0}),
}


@pytest.mark.parametrize("kind", TOLD)
def test_the_page_of_a_simulation_has_every_word_of_the_terminal(kind, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "400")
    Path("s.toml").write_text(TOLD[kind].to_toml(), encoding="utf-8")
    table(Path("d.csv"), 600, classes=HOSTILE[::3] if "classes" in kind else ())
    train = ["--train-every", "100"] if kind == "a training" else []
    code, out, err = run(capsys, "simulate", "s.toml", "d.csv", "--report", "r.html", *train)
    told, page = (set(re.findall(r"\w[\w.,%]*", text)) for text in (out, whole(Path("r.html")).text))
    assert code == 0 and "What happened to the samples" in out and told <= page, (told - page, err)


def test_simulate_of_a_monitor(tmp_path):
    x = np.random.default_rng(0).normal(size=(1500, len(HOSTILE)))
    x[1200:1230] += 9
    monitor = make_spec({"name": "m", "input": {"columns": list(HOSTILE)}, "novelty": {"false_alarm_rate": 0.002}})
    found = simulate(monitor, (x, None), report=tmp_path / "m.html")
    page, warmup = whole(tmp_path / "m.html"), monitor.novelty.warmup
    assert found.report["alarms"]["count"] and f"after the warm-up of {warmup:,} rows" in page.text
    for alarm in found.report["alarms"]["listed"]:
        assert f"{alarm['first_row']:,}" in page.texts and alarm["input"] in page.texts
    (plot,) = [each for tag, each in page.tags if each.get("class") == "plot"]
    assert float(plot["data-x"].split()[0]) >= warmup
    assert checked_page(found._repr_html_()).texts[1:] and "Alarms" in found._repr_html_()


def test_the_hash_of_a_simulation_is_that_of_the_c(tmp_path):
    rows, spec = table(tmp_path / "d.csv", 300), spec_of(label={"column": "y"})
    how = {"compilers": [find_compilers()[0].name], "levels": ("-O0",)}
    done = check(spec, data=rows, report=tmp_path / "check.html", **how)
    page = whole(tmp_path / "check.html")
    assert done.equal and done.figures["config_hash"] in page.texts and done.rows[0]["state_hash"] in page.texts
    there = checked_page(simulate(spec, rows)._repr_html_())
    assert done.rows[0]["state_hash"] in there.texts and done.figures["config_hash"] in there.texts
    for size in (done.figures["state_bytes"], done.figures["work_bytes"]):
        assert f"{size:,} B" in there.texts and f"{size:,} B" in page.texts
    with pytest.raises(UserError, match=r"a report has figures, so it is an HTML file; give .*check\.html"):
        check(spec, report=tmp_path / "check.png")


def test_plan_fit_and_basis_write_one(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = table(Path("d.csv"), 240)
    planned = plan(rows, label="y", only="nlms", trials=2, jobs=1, output="p")
    page = whole(Path("p/report.html"))
    assert planned.report["report"] == str(Path("p/report.html"))
    assert formatted_number(planned.report["winner"]["learning"]["error"]) in page.texts
    for name, simple in planned.report["simple"].items():
        assert name in page.texts and formatted_number(simple["error"]) in page.texts
    fitted = fit(rows, label="y", model="ls-svm", sigma=(1, 2), ridge=(0.1, 1), report="f.html")
    page = whole(Path("f.html"))
    assert formatted_number(fitted.error) in page.texts and HOSTILE[1] in page.texts
    trained = fit(rows, label="y", model="svm", sigma=1, ridge=0.1, report="t.html")
    assert formatted_number(trained.error) in whole(Path("t.html")).texts
    code, out, err = run(
        capsys,
        "fit",
        rows,
        "-n",
        6,
        "--label",
        "y",
        "--set",
        "learning.rule=nystrom-rls",
        "-o",
        "b.toml",
        "--report",
        "b.html",
        "--json",
    )
    assert code == 0, err
    assert f"{100 * json.loads(out)['left_out'][-1]:.3g} %" in whole(Path("b.html")).text
    for found in (planned, fitted):
        assert found.page.body in found._repr_html_() and found.page.body in found.page.html()


def test_ten_thousand_rows_stay_small_and_no_peak_is_lost(tmp_path):
    rng = np.random.default_rng(1)
    x = rng.normal(size=(10_000, len(HOSTILE)))
    y = np.sin(x[:, 0]) + rng.normal(size=10_000)
    simulate(spec_of(label={"column": "y"}), (x, y), report=tmp_path / "r.html")
    whole(tmp_path / "r.html")
    # a peak of one row among 300,000
    peaks, envelope = rng.normal(size=(300_000, 1)), Envelope(["a"], 2000)
    peaks[123_456], peaks[222_222] = 60, -50
    for part in np.array_split(peaks, 70):
        envelope.add(part)
    at, high, low = envelope.lines()
    text = figures.Plot("", "row", "", [figures.Line("a", at, high[:, 0], "model", low[:, 0])]).html()
    (d,) = re.findall(r' d="([^"]*)"', text)
    steps = np.array(re.findall(r"-?\d+", d), int).reshape(-1, 2).cumsum(axis=0)
    (x_range, y_range) = (np.array(re.search(rf'data-{k}="([^"]*)"', text)[1].split(), float) for k in "xy")
    width = int(re.search(r'viewBox="0 0 (\d+)', text)[1])
    for place, value in ((123_456, 60), (222_222, -50)):
        i = (steps[:, 1].argmin if value > 0 else steps[:, 1].argmax)()
        found = y_range[1] - steps[i, 1] / figures.TALL * (y_range[1] - y_range[0])
        row = x_range[0] + steps[i, 0] / width * (x_range[1] - x_range[0])
        assert abs(found - value) < 0.2 and abs(row - place) < 300_000 / 1000
    assert len(text) < 60_000


def test_ranges_gaps_and_drift():
    rng = np.random.default_rng(2)
    x = np.column_stack([rng.normal(1e6, 2, 9000), np.linspace(0, 1, 9000), np.full(9000, 7.0)])
    x[100:150, 0] = np.nan
    ranges = Ranges(["a", "b", "c"])
    for part in np.array_split(x, 11):
        ranges.add(part)
    a, b, c = ranges.report()
    assert a["gaps"] == 50 and abs(a["drift"]) < 0.1 and a["least"] == np.nanmin(x[:, 0])
    np.testing.assert_allclose([a["mean"], a["deviation"]], [np.nanmean(x[:, 0]), np.nanstd(x[:, 0])], rtol=1e-9)
    assert b["largest"] == 1 and b["drift"] == pytest.approx((2 / 3) / np.std(x[:, 1]), rel=0.03)
    assert c["drift"] is None and c["deviation"] == 0


def test_the_front_has_each_group_and_the_chosen_model():
    points = [
        (10, 2.0, "a", "one", True),
        (100, 1.0, "b", HOSTILE[0], True),
        (50, 90.0, "far", "x", False),
        (4, 3.0, SIMPLE, "last", True),
    ]
    page = Page(f"<div>{figures.front('t', 'error', Panel('bytes', points, {'planned': 1}))}</div>")
    assert f"planned: {HOSTILE[0]}" in page.texts and "far" not in page.texts
    assert {"a", "b", SIMPLE, "one", "last"} <= set(page.texts)


@pytest.mark.parametrize("widths", [1, 3])
@pytest.mark.parametrize("last", [0.5, 0.7, np.inf])
def test_the_map_of_errors_rings_the_taken_cell_and_paints_it_darkest(widths, last):
    values = np.full((widths, 3), last)
    values[-1, 1] = 0.5
    html = figures.heat(np.arange(1.0, widths + 1), np.array([0.1, 1, 10]), values, (widths - 1, 1), "error", "sigma")
    cells = [(each.get("class"), each["style"]) for tag, each in Page(f"<div>{html}</div>").tags if tag == "td"]
    dark = [float(re.search(r"([\d.]+)\)", style)[1]) for _, style in cells]
    assert [kind for kind, _ in cells].index("strong ringed") == 3 * widths - 2 and len(cells) == 3 * widths
    assert max(dark) == dark[3 * widths - 2] == 0.75 and (last == 0.5 or sorted(dark)[-2] == 0)


def test_ticks_are_as_people_write_them():
    axis = figures.Axis(0, 8645, 100)
    assert [figures.axis_tick(value) for value in axis.ticks()] == ["0", "2,000", "4,000", "6,000", "8,000"]
    assert [figures.axis_tick(value) for value in figures.Axis(0.013, 900, 9, True).ticks()] == [
        "0.1",
        "1",
        "10",
        "100",
    ]
    assert (
        figures.axis_tick(0.25) == "0.25"
        and figures.axis_tick(-1500) == "-1,500"
        and figures.axis_tick(3e-7) == "3e-07"
    )


def dated(path: Path, rows: int, minutes: int, stamp="{:%Y-%m-%d %H:%M}") -> Path:
    values, begin = np.random.default_rng(3).normal(size=(rows, 2)), datetime(2026, 3, 1)
    values[1100:1130] += 9
    lines = [f"{stamp.format(begin + timedelta(minutes=minutes * i))},{a},{b}" for i, (a, b) in enumerate(values)]
    path.write_text("\n\n".join(["when,a,b", *lines]) + "\n", encoding="utf-8")
    return path


def test_times_of_rows(tmp_path):
    begin = datetime(2026, 3, 1, tzinfo=UTC).timestamp()
    np.testing.assert_array_equal(times_of(dated(tmp_path / "a.csv", 50, 10), 50), begin + 600 * np.arange(50))
    for stamp, shift in (("{:%Y-%m-%dT%H:%M:%S+01:00}", -3600), ("{:%Y-%m-%d %H:%M:%SZ}", 0)):
        np.testing.assert_array_equal(
            times_of(dated(tmp_path / "a.csv", 5, 1, stamp), 5), begin + shift + 60 * np.arange(5)
        )
    assert times_of(tmp_path / "a.csv", 6) is None and times_of(tmp_path / "none.csv", 6) is None
    assert times_of(dated(tmp_path / "a.csv", 50, -10), 50) is None
    assert times_of(dated(tmp_path / "a.csv", 50, 10, "{:%d.%m.%Y}"), 50) is None
    (tmp_path / "a.csv").write_text("when,a\n2026-03-01,1\nsoon,2\n")
    assert times_of(tmp_path / "a.csv", 2) is None


def test_ticks_of_times():
    def ticks(seconds, rows=101):
        begin = datetime(2025, 12, 30, 22, 7, tzinfo=UTC).timestamp()
        return time_ticks(begin + np.linspace(0, seconds, rows), np.arange(rows))

    assert [text for _, text in ticks(1000)] == ["12-30 22:10", "12-30 22:15", "12-30 22:20"]
    days = ticks(5 * 86400)
    assert [text for _, text in days] == ["2025-12-31", "2026-01-01", "2026-01-02", "2026-01-03", "2026-01-04"]
    assert days[0][0] == pytest.approx(100 * (113 * 60) / (5 * 86400))
    assert [text for _, text in ticks(300 * 86400)] == ["2026-01", "2026-03", "2026-05", "2026-07", "2026-09"]
    assert [text for _, text in ticks(8 * 365 * 86400)] == [f"{year}-01" for year in (2027, 2029, 2031, 2033)]


def test_dates_stand_at_the_axis_and_beside_alarms(tmp_path):
    rows = dated(tmp_path / "d.csv", 1300, 10)
    spec = make_spec({"name": "m", "input": {"columns": ["a", "b"]}, "novelty": {"false_alarm_rate": 0.01}})
    found = simulate(spec, rows, report=tmp_path / "m.html")
    page = whole(tmp_path / "m.html")
    assert "2026-03-06" in page.texts and "time" in page.texts and found.report["alarms"]["count"]
    first = found.report["alarms"]["listed"][0]["first_row"]
    assert f"{datetime(2026, 3, 1) + timedelta(minutes=10 * first):%Y-%m-%d %H:%M:%S}" in page.texts


def test_notebooks_show_specs_and_projects(tmp_path):
    spec = spec_of(label={"column": "y"})
    assert HOSTILE[0] in checked_page(spec._repr_html_()).text
    made = checked_page(generate(spec, tmp_path / "out")._repr_html_())
    assert str(tmp_path / "out" / "src" / "flow.c") in made.texts


def test_notebooks_show_bases_and_proofs():
    x = np.random.default_rng(0).normal(size=(60, 2))
    shown = select_basis(x, MercerKernel("gaussian", gamma=0.5), 5)._repr_html_()
    assert "basis of 5 vectors" in shown and "tr R / tr K" in shown
    known = {
        "level": "state",
        "alarms": 1,
        "ranges": 3,
        "proved_ranges": 2,
        "statements": 9,
        "reached": 8,
        "seconds": 1.5,
        "unreached": [],
    }
    rows = [
        known | {"call": call, "proved": not why, "why": why} for call, why in (("update", HOSTILE[0]), ("hash", ""))
    ]
    alarm = {"call": "update", "meaning": "may overflow", "condition": HOSTILE[3], "file": "flow.c", "line": 7}
    alarm |= {"level": "state", "code": "a + b", "stack": ["f", "update"]}
    found = Proved("flow", "00000001", "Frama-C", rows, [alarm], 0, 0, 3.0)
    page = checked_page(found._repr_html_())
    assert found.verdict in page.texts and HOSTILE[0] in page.texts and "NO" in page.texts and HOSTILE[3] in page.texts
    assert page.texts.count("2 of 3") == 2 and not found.page.good


def test_a_search_is_the_model_that_it_found():
    x = np.random.default_rng(0).normal(size=(40, 2))
    search = GridSearchCV(
        make_pipeline(StandardScaler(), KernelRidgeRegressor()), {"kernelridgeregressor__ridge": [0.1, 1.0]}, cv=2
    )
    with pytest.raises(UserError, match="GridSearchCV has no best estimator"):
        spec_and_memory(search)
    spec, memory = spec_and_memory(search.fit(x, x[:, 0]), "found")
    assert spec == spec_and_memory(search.best_estimator_, "found")[0] and memory is None
    online = GridSearchCV(BudgetedKernelRegressor(n_max=4), {"n_max": [4, 6]}, cv=2).fit(x, x[:, 0])
    assert spec_and_memory(online)[1] is online.best_estimator_.model_.memory


def test_a_report_without_a_verdict_has_no_empty_parts():
    page = checked_page(Document(HOSTILE[0], "", []).html())
    assert HOSTILE[0] in page.texts and "verdict" not in {each.get("class") for _, each in page.tags}


def test_what_is_loaded_from_a_file_is_shown(tmp_path):
    path = tmp_path / "flow.toml"
    path.write_text(spec_of(label={"column": "y"}).to_toml(), encoding="utf-8")
    assert "nlms" in checked_page(load_spec(path)._repr_html_()).text
