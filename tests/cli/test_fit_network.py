"""pykernel fit --set training.model=network: what is written is what was trained, and its head learns."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pykernel.errors import UserError
from pykernel.gen.project import build
from pykernel.host.model import HostModel
from pykernel.spec.model import load_spec
from pykernel.training.network import trained_network
from pykernel.workflows.network import functions
from tests.cli.test_fit import NAMES, write_both
from tests.support.reports import without

NETWORK = ("--set", "training.model=network", "--json")


@pytest.mark.exhaustive
@pytest.mark.in_turn(9)
@pytest.mark.parametrize("precision", ["float32", "int16"])
@pytest.mark.parametrize("kind", ["flow", "kinds"])
def test_the_spec_errs_as_the_report_says(
    kind: str, precision: str, run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, y, words = write_both(tmp_path, 200)
    monkeypatch.chdir(tmp_path)
    how = ("--label", "y", "-o", "net.toml", "--hold-out", "0.25", "--set", f"precision={precision}")
    code, out, err = run("fit", f"{kind}.csv", *how, "--flash", "700", *NETWORK)
    assert code == 0, err
    report, spec = json.loads(out), load_spec("net.toml")
    assert spec.kernel.function == "relu" and spec.precision == precision
    assert build(spec).figures["const_bytes"] == report["flash_bytes"] <= 700
    errors, model = report["errors"], HostModel(spec)
    assert errors["cross_validated"] < 0.6 * without(report) and errors["held_out"] < 0.7 * without(report)
    if kind == "flow":
        assert np.sqrt(np.square(model.predict(x).ravel() - y).mean()) < 0.5 * y.std()
    else:
        assert np.mean(np.array(spec.label.classes)[model.classify(x)] == np.array(NAMES)[words]) > 0.8
    # by one line its head learns
    rule = "expansion-nlms" if kind == "flow" or precision == "int16" else "expansion-softmax"
    text = Path("net.toml").read_text(encoding="utf-8").replace('rule = "frozen"', f'rule = "{rule}"')
    Path("head.toml").write_text(text.replace("[label]", "[label]\nmax_abs = 100.0") if kind == "flow" else text)
    head = HostModel(load_spec("head.toml"))
    if kind == "flow" and precision == "int16":  # answers in the units of [label] max_abs, not of the frozen weights
        np.testing.assert_allclose(head.predict(x), model.predict(x), atol=report["rounding"]["allowed"])
    else:
        np.testing.assert_array_equal(head.predict(x), model.predict(x))


@pytest.mark.parametrize("option", ["training.ridge=1", "training.weights=balanced", "training.loss=absolute"])
def test_what_a_network_has_not_is_refused(
    option: str, run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_both(tmp_path, 60)
    monkeypatch.chdir(tmp_path)
    code, _, err = run("fit", "kinds.csv", "--label", "y", "-o", "net.toml", *NETWORK, "--set", option)
    assert code == 2 and not Path("net.toml").exists()
    assert "does not apply to --set training.model=network; leave" in err, err


@pytest.mark.parametrize("rows", [2, 3, 5, 8])
def test_few_rows_are_enough(rows: int, run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    lines = [f"{i % 3}.5,{i * i},{0.5 * i}" for i in range(rows)]
    Path("few.csv").write_text("\n".join(["a,b,y", *lines]), encoding="utf-8")
    code, out, err = run("fit", "few.csv", "--label", "y", "-o", "net.toml", "-n", "2", *NETWORK)
    assert code == 0, err
    assert json.loads(out)["cv"] == min(5, rows)


def test_folds_are_as_many_as_were_asked_for(run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_both(tmp_path, 60)
    monkeypatch.chdir(tmp_path)
    how = ("fit", "flow.csv", "--label", "y", "-n", "3", "--force", "-o", "net.toml", *NETWORK)
    three, five = (json.loads(run(*how, "--set", f"training.cv={cv}")[1]) for cv in (3, 5))
    assert three["cv"] == 3 and five["cv"] == 5 and three["errors"] != five["errors"]


def test_a_class_that_a_fold_has_not_moves_no_other() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(40, 2))
    y = np.where(x[:, 0] > 0, 3, 1)
    told = functions(trained_network(x, y, 3, True)[0], x, 4)
    assert told.shape == (40, 4) and np.mean(told.argmax(1) == y) > 0.9
    alone = functions(trained_network(x, np.ones(40, int), 3, True)[0], x, 2)
    assert alone.shape == (40, 1) and (alone > 0).all()


@pytest.mark.exhaustive
def test_who_names_no_model_gets_the_network_where_it_is_surely_better(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Labels that a few folds in the inputs make: of as many vectors, trained or chosen, none is as good."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=(400, 6))
    y = np.maximum(x @ rng.normal(size=(6, 4)), 0).sum(axis=1) + 0.05 * rng.normal(size=400)
    monkeypatch.chdir(tmp_path)
    np.savetxt("folds.csv", np.column_stack([x, y]), delimiter=",", header="a,b,c,d,e,f,y", comments="")
    code, out, err = run("fit", "folds.csv", "--label", "y", "-n", "8", "-o", "m.toml", "--json")
    report = json.loads(out)
    assert code == 0, err
    assert (report["model"], report["vectors"], load_spec("m.toml").kernel.function) == ("network", 8, "relu")
    assert {each["model"] for each in report["instead"]} == {"ls-svm", "trained"}
    assert all(
        each["better"] < -2 and each["error"] > report["errors"]["cross_validated"] for each in report["instead"]
    )


@pytest.mark.exhaustive
@pytest.mark.parametrize("failure", [UserError("t: it cannot be held"), KeyboardInterrupt()])
def test_where_the_network_fails_the_others_are_there(
    failure: BaseException, run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_both(tmp_path, 80)
    monkeypatch.chdir(tmp_path)

    def fails(*_: Any) -> None:
        raise failure

    monkeypatch.setattr("pykernel.workflows.beside.NetworkJob.run", fails)
    code, out, err = run("fit", "flow.csv", "--label", "y", "-n", "4", "-o", "m.toml", "--json")
    report = json.loads(out)
    assert Path("m.toml").exists() and report.get("interrupted", False) == isinstance(failure, KeyboardInterrupt), err
    assert code == (130 if report.get("interrupted") else 0) and len(report["instead"]) == 1
