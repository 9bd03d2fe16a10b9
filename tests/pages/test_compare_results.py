"""benchmarks.compare: the same bytes again, what is written, and what is refused in one sentence."""

import csv
import json

import numpy as np
import pytest

from benchmarks.compare.__main__ import main

FILES = ("curves.csv", "table.csv", "table.tex", "used.bib")


@pytest.fixture
def run(capsys):
    def run(*arguments):
        with pytest.raises(SystemExit) as stopped:
            main(arguments)
        captured = capsys.readouterr()
        return stopped.value.code, captured.out, captured.err

    return run


@pytest.mark.exhaustive
def test_the_same_command_writes_the_same_bytes(run, tmp_path):
    arguments = ["--task", "sinc,recursion", "--rule", "klms,knlms,rls", "--technique", "nt,mklms", "--n-max", "8"]
    arguments += ["--seeds", "3", "--rows", "300", "--set", "eta=0.25", "--set", "knlms.coherence=0.7"]
    for name, jobs in (("a", "1"), ("b", "2")):
        code, out, err = run(*arguments, "--jobs", jobs, "--json", "--output", str(tmp_path / name))
        assert code == 0 and err == "8 contenders, 3 streams each: 24 runs\n"
    for file in FILES:
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()
    report = json.loads(out)
    with (tmp_path / "b" / "table.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["mse_db"] for row in rows] == [f"{row['mse_db']:.4f}" for row in report["table"]]
    knlms = next(row for row in rows if row["rule"] == "knlms" and row["task"] == "recursion")
    assert "coherence=0.7 (given)" in knlms["settings"] and "epsilon=0.03 (task)" in knlms["settings"]
    with (tmp_path / "b" / "curves.csv").open() as file:
        curve = [row for row in csv.DictReader(file) if row["rule"] == "klms" and row["technique"] == "nt"]
    assert len(curve) == 2 * 50 and curve[-1]["sample"] == "300" and float(curve[-1]["se_db"]) > 0
    used = (tmp_path / "b" / "used.bib").read_text()
    assert "{richard2009," in used and "{mitchinson2003," in used and "{engel2004," not in used
    tex = (tmp_path / "b" / "table.tex").read_text()
    assert tex.count(r"\\") == 9 and r"\cite{richard2009}" in tex
    assert (tmp_path / "b" / "curves.png").read_bytes().startswith(b"\x89PNG")


def test_a_stream_of_ones_own(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    x = np.random.default_rng(0).uniform(-2, 2, (400, 2))
    y = np.sin(2 * x[:, 0]) + x[:, 1]
    rows = "".join(f"{a},{b},{c}\n" for (a, b), c in zip(x, y, strict=True))
    (tmp_path / "mine.csv").write_text("a,b,y\n" + rows)
    (tmp_path / "mine.toml").write_text(
        'name = "mine"\n[input]\ncolumns = ["a", "b"]\n[label]\ncolumn = "y"\n[kernel]\nsigma = 0.8\n'
    )
    code, out, _ = run("--data", "mine.csv", "--spec", "mine.toml", "--rule", "krls-t,nlms", "--jobs", "1")
    assert code == 0 and "mine: 400 samples, seeds: 1" in out
    with (tmp_path / "compared" / "table.csv").open() as file:
        krls_t, nlms = csv.DictReader(file)
    assert krls_t["se_db"] == "" and float(krls_t["mse_db"]) < float(nlms["mse_db"]) - 10


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--task", "lorentz"], "--task lorentz is not known; did you mean 'lorenz'?"),
        (["--rule", "krr"], "--rule krr is not known"),
        (["--technique", "mk"], "--technique mk is not known"),
        (["--seeds", "0"], "--seeds is 0; it must be from 1"),
        (["--rows", "5"], "--rows is 5; it must be from 100"),
        (["--set", "eta"], "--set is 'eta'; it must be KEY=VALUE"),
        (["--set", "quantisation=1", "--rule", "klms"], "--set quantisation: none of these rules has such a key"),
        (["--data", "x.csv"], "--data and --spec belong together"),
        (["--rule", "krls-t", "--technique", "nt", "--task", "sinc"], "nothing is left to compare: krls-t nt: "),
    ],
)
def test_what_cannot_be_compared_is_told_in_a_sentence(run, tmp_path, monkeypatch, arguments, says):
    monkeypatch.chdir(tmp_path)
    code, out, err = run(*arguments)
    assert code == 2 and out == "" and err.startswith(f"error: {says}") and err.count("\n") == 1
    assert not list(tmp_path.iterdir())
