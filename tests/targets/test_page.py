"""The page: its module gives the host's hash, and a browser shows that."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("ziglang", reason="needs ziglang; would show a page whose module gives the host's hash")

from pykernel.algorithms.signal.state import SignalStatus
from pykernel.errors import UserError
from pykernel.gen.check import Reference
from pykernel.gen.compilers import find_compilers
from pykernel.gen.project import build
from pykernel.gen.streams import as_taken
from pykernel.host.model import HostModel
from pykernel.spec.model import Spec, make_spec
from pykernel.targets import page
from pykernel.workflows.page import FIGURES, living_page
from pykernel.workflows.simulate import simulate
from tests.support.interrupts import PATIENCE
from tests.targets.test_boards import SPECS

COLUMNS = {
    "number": {"column": "y"},
    "class": {"column": "y", "classes": ["a", "b", "c"]},
    "double": {"column": "y"},
    "whole": {"column": "y", "max_abs": 4.0},
    "numbers": {"columns": ["u", "v"]},
    "none": None,
    "signal": {"column": "y"},
    "signal classes": {"column": "y", "classes": ["a", "b", "c"]},
    "signal monitor": None,
    "frozen": {"column": "y"},
    "frozen int16": {"column": "y"},
    "frozen signal": None,
}
RAW = {"channels": ["p", "q", "r"], "features": ["mean", "rms"], "window": 8, "hop": 4}
FROZEN: dict[str, Any] = {
    "kernel": {"sigma": 2.0},
    "learning": {"rule": "frozen"},
    "expansion": {"vectors": [[0.5, -0.25, 0.0], [-1.0, 0.75, 0.5]], "weights": [[1.0], [-0.5]], "bias": [0.25]},
}
WIDE = {"vectors": [[0.5] * 6, [-0.25] * 6]}
MORE: dict[str, dict[str, Any]] = {
    "frozen": FROZEN,
    "frozen int16": FROZEN | {"precision": "int16", "input": {"dim": 3, "max_abs": 4.0}},
    "frozen signal": FROZEN | {"signal": RAW, "expansion": FROZEN["expansion"] | WIDE},
    "signal": {"signal": RAW},
    "signal classes": {"signal": RAW},
    "signal monitor": {"signal": RAW, "novelty": {"warmup": 20}},
}
POLICY = re.compile(r'<meta http-equiv="Content-Security-Policy" content="(.*?)">')
CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")


def made(kind: str, rows: int = 400) -> tuple[Spec, np.ndarray, np.ndarray]:
    spec, x, y = given(kind, rows)
    return spec, *as_taken(spec, x, y)


def given(kind: str, rows: int = 400) -> tuple[Spec, np.ndarray, Any]:
    """As a user has rows and labels; None without labels."""
    content: dict[str, Any] = {"name": "m"} | (SPECS | MORE)[kind]
    if "signal" not in content:
        content["input"] = content.get("input", {"dim": 3}) | {"columns": ["p", "q", "r"]}
    if COLUMNS[kind] is not None:
        content["label"] = COLUMNS[kind]
    spec = make_spec(content)
    x = np.random.default_rng(0).normal(size=(rows, 3)).clip(-3, 3)
    y: Any = np.sin(x.sum(axis=1))
    if kind == "numbers":
        y = np.column_stack([y, x[:, 0]])
    elif "class" in kind:
        y = np.digitize(y, [-0.5, 0.5])
    return spec, x, None if COLUMNS[kind] is None else y


def content_of(text: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="content">(.*?)</script>', text, re.DOTALL)
    assert found is not None
    return json.loads(found[1])  # type: ignore[no-any-return]


def forecasts(spec: Spec, x: np.ndarray, y: np.ndarray) -> dict[int, np.ndarray]:
    """Row -> the forecast of its label, or its class, before it is learned; of a signal, of the rows that end a step."""
    question, model = spec.program.forecasts(spec.config), HostModel(spec, raw=True)
    if spec.signal is None or spec.program.label_kind == "none":
        answers, _ = model.prequential(x, y, question=question)
        return dict(enumerate(answers.reshape(len(x), -1)))
    found = {}
    for t in range(len(x)):
        answers, statuses = model.gather(x[t : t + 1], question)
        if statuses[0] == SignalStatus.READY:
            found[t] = answers.reshape(-1)
        model.call("label", y[t])
    return found


@pytest.mark.exhaustive
@pytest.mark.parametrize("kind", COLUMNS)
@pytest.mark.in_turn(9)
def test_the_pages_module_gives_the_hosts_hash(kind: str) -> None:
    """And the hash of ``pykernel check --data`` with these rows, though the check calls other functions, too."""
    wasmtime = pytest.importorskip("wasmtime", reason="needs wasmtime; would show the hash of the page's module")
    spec, *stream = made(kind)
    text = page.make_page(spec, *stream)
    assert "http" not in text.replace("http-equiv", "") and "$" + "{" not in text
    content = content_of(text)
    store = wasmtime.Store()
    code = wasmtime.Module(store.engine, base64.b64decode(content["code"]))
    exports = wasmtime.Instance(store, code, []).exports(store)
    exports["page_init"](store)
    x, y = (base64.b64decode(content[key]) for key in ("x", "y"))
    wide, tall = len(x) // content["rows"], len(y) // content["rows"]
    expected = forecasts(spec, *stream)
    kind_of = np.int32 if content["answer"] == "position" else spec.number
    told: dict[int, np.ndarray] = {}
    for t in range(content["rows"]):
        exports["memory"].write(store, x[t * wide : (t + 1) * wide], exports["page_x"](store))
        asked = exports["page_ask"](store)
        if asked >= 0 and asked not in content["between"]:
            place = exports[f"page_{content['answer']}"](store)
            told[t] = np.frombuffer(exports["memory"].read(store, place, place + expected[t].nbytes), kind_of)
        if tall:
            exports["memory"].write(store, y[t * tall : (t + 1) * tall], exports["page_label"](store))
        exports["page_learn"](store)
    assert f"{exports['page_hash'](store) & 0xFFFFFFFF:08x}" == content["hash"]
    if kind != "signal monitor":  # of which the page shows the level
        assert all((told[t] == expected[t]).all() for t in told)
        # what is expected of a frozen model of a signal repeats the newest answer until there is another
        assert list(told) == list(range(7, 400, 4) if kind == "frozen signal" else expected)
    row = Reference(build(spec), None, *stream, engine="llvm").compare(find_compilers()[0], "-O1")
    assert row["equal"] and row["state_hash"] == content["hash"]


@pytest.mark.exhaustive
@pytest.mark.parametrize("kind", COLUMNS)
def test_the_reports_figures_stand_beside(kind: str) -> None:
    """Those of ``simulate``, of the same rows; they change no other part of the page."""
    spec, x, y = given(kind)
    if kind == "frozen signal":  # takes no labels here, so nothing judges it
        assert "The PC wrote this report" not in living_page(spec, x, y)[0]
        return
    text, figures = living_page(spec, x, y)[0], simulate(spec, (x, y)).page.figures(*FIGURES)
    assert len(figures) == 2 and all(figure in text for figure in figures)
    first = "Errors" if COLUMNS[kind] else "Level and alarms" if spec.program.alarms else "Answers"
    assert re.findall("<h2>([^<]*)</h2>", "".join(figures)) == [first, "Bytes by part"]
    assert content_of(text) == content_of(page.make_page(*made(kind))) and "Error over time" not in page.make_page(
        *made(kind)
    )


def test_names_are_no_code() -> None:
    spec, x, y = made("number", 20)
    hostile = make_spec(spec.model_dump(exclude_unset=True) | {"input": {"columns": ["</script><b>", "q", "r"]}})
    text = page.make_page(hostile, x, y)
    assert "</script><b>" not in living_page(hostile, *given("number", 20)[1:])[0]
    assert "</script><b>" not in text and content_of(text)["inputs"][0] == "</script><b>"


def test_the_page_runs_its_own_scripts_alone_and_loads_nothing() -> None:
    text = page.make_page(*made("number", 20))
    allowed = POLICY.search(text)[1]  # type: ignore[index]
    scripts = re.findall(r"(?s)<script>(.*?)</script>", text)
    digests = {base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts}
    assert len(scripts) == 2 and set(re.findall(r"'sha256-(\S+)'", allowed)) == digests
    assert allowed.startswith("default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-")
    assert text.index("<meta http-equiv") < text.index("<style") and "'unsafe-eval'" not in allowed
    assert not re.search(r"\son\w+=|javascript:|\b(src|href)=", text.split('<script type="application/json"')[0])


@pytest.mark.skipif(not CHROMIUM, reason="needs chromium; would show that a browser keeps the page's policy")
@pytest.mark.exhaustive
def test_a_browser_runs_no_script_that_is_not_the_pages(tmp_path: Path) -> None:
    text = page.make_page(*made("number", 20))
    strange = (
        "<script>document.body.dataset.strange = 1</script><img src=x onerror='document.body.dataset.strange = 1'>"
    )
    shown = {}
    for name, changed in (("with", text), ("without", POLICY.sub("", text))):
        (tmp_path / f"{name}.html").write_text(changed.replace("</body>", f"{strange}</body>"))
        shown[name] = in_browser(f"file://{tmp_path / f'{name}.html'}#all", tmp_path)
    assert all('data-done="equal"' in each for each in shown.values())
    assert 'data-strange="1"' in shown["without"] and 'data-strange="1"' not in shown["with"]


def test_what_makes_no_page_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    spec, x, y = made("number", 20)
    monkeypatch.setattr(page, "MOST_BYTES", 160)
    with pytest.raises(UserError, match="20 rows are too many for a page; give at most 10"):
        page.make_page(spec, x, y)


@pytest.mark.skipif(not CHROMIUM, reason="needs chromium; would show the hash, errors and alarms in a browser")
@pytest.mark.exhaustive
@pytest.mark.parametrize("kind", COLUMNS)
def test_a_browser_shows_that_the_bytes_are_equal(kind: str, tmp_path: Path, run: Any) -> None:
    spec, x, y = made(kind)
    (tmp_path / "page.html").write_text(page.make_page(spec, x, y))
    shown = in_browser(f"file://{tmp_path / 'page.html'}#all", tmp_path)
    assert (
        'data-done="equal"' in shown
        and f"400 rows are {'learned' if spec.inner.program.learns else 'predicted'}" in shown
        and "equal to what the PC computed" in shown
    )
    labelled = COLUMNS[kind] is not None
    said = re.search('id="status"[^>]*>([^<]*)<', shown)[1]  # type: ignore[index]
    assert ("the model</td>" in shown) == ("The model errs" in said or "not worth its memory" in said) == labelled
    assert (">rows with an alarm</td>" in shown) == bool(spec.program.alarms)
    if kind == "number":
        answers, _ = HostModel(spec).prequential(x, y)
        assert f"<td>{np.abs(answers.astype(float) - y).mean():.5g}</td>" in shown


@pytest.mark.skipif(not CHROMIUM, reason="needs chromium; would show a reader's own rows learned")
@pytest.mark.exhaustive
def test_a_readers_own_rows(tmp_path: Path) -> None:
    """A file that is given to the page: the hash is the host's on these rows; a file without a column is a sentence."""
    from pykernel.gen.project import build, state_hash

    spec, x, y = made("number")
    rows = "\\n".join(["r;y;q;p", *(f"{i / 8};{i % 3};{-i / 4};0,5" for i in range(30))])
    drop = "<script>setTimeout(async () => {{ await take(new File(['{}'], 'own.csv')); if (own) advance(rows); }}, 300)</script>"
    text = page.make_page(spec, x, y)
    text = text.replace(POLICY.search(text)[0], "")  # which would let no script of this test run
    (tmp_path / "own.html").write_text(text + drop.format(rows))
    (tmp_path / "wrong.html").write_text(text + drop.format("p,q,y\\n1,2,3"))
    host = HostModel(spec, build(spec).drop)
    i = np.arange(30.0)
    host.prequential(np.column_stack([np.full(30, 0.5), -i / 4, i / 8]), i % 3)
    shown = in_browser(f"file://{tmp_path / 'own.html'}", tmp_path)
    assert "30 rows are learned" in shown and f"Its hash is {state_hash(spec, host.memory):08x}." in shown
    assert "the file has no column r; its columns are: p, q, y" in in_browser(
        f"file://{tmp_path / 'wrong.html'}", tmp_path
    )


def in_browser(url: str, folder: Path, *more: str) -> str:
    """The document after its scripts have run."""
    words = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder / 'browser'}"]
    done = subprocess.run(
        [*words, *more, "--virtual-time-budget=30000", "--dump-dom", url],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    return done.stdout


def test_the_command(tmp_path: Path, run: Any) -> None:
    spec, _, _ = made("number")
    (tmp_path / "m.toml").write_text(spec.to_toml())
    lines = ["p,q,r,y", *(f"{i / 7:.3f},{-i / 9:.3f},0.5,{i % 3}" for i in range(30))]
    (tmp_path / "d.csv").write_text("\n".join(lines))
    words = ["page", str(tmp_path / "m.toml"), str(tmp_path / "d.csv"), "-o", str(tmp_path / "p.html")]
    code, said, _ = run(*words)
    assert code == 0 and "30 rows" in said and content_of((tmp_path / "p.html").read_text())["rows"] == 30
    code, _, complaint = run(*words)
    assert code == 2 and "already exists" in complaint
    assert run(*words, "--force", "--target", "cortex-m5")[0] == 2


@pytest.mark.exhaustive
@pytest.mark.usefixtures("one_build")
def test_a_target_gives_its_hash_and_its_instructions() -> None:
    pytest.importorskip("unicorn")
    spec, x, y = given("number", 40)
    text, _ = living_page(spec, x, y, ["cortex-m4f"])
    content = content_of(text)
    assert content["beside"] == {"an emulated cortex-m4f": content["hash"]}
    assert "<h2>Instructions of one call</h2>" in text and ">bound</th>" in text
