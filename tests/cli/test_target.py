"""``check`` holds what a spec's [target] allows."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pykernel.gen.project import build
from pykernel.spec.model import Spec, make_spec
from pykernel.workflows import check as check_workflow
from pykernel.workflows.requests import Check


def spec_of(target: dict[str, Any]) -> Spec:
    base = {"name": "m", "input": {"dim": 1}, "kernel": {"sigma": 1.0}, "reduction": {"n_max": 4}}
    return make_spec(base | {"label": {"outputs": 1}, "learning": {"rule": "klms"}, "target": target})


@pytest.mark.exhaustive
def test_check_fails_where_a_model_has_outgrown_its_target(run, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)

    def checked(**target: Any) -> tuple[int, Any, str]:
        Path("m.toml").write_text(spec_of(target).to_toml())
        code, out, err = run("check", "m.toml", "--samples", "50", "--target", "cortex-m4f", "--json")
        return code, json.loads(out), err

    figures = build(spec_of({})).figures
    ram = figures["state_bytes"] + figures["work_bytes"]
    code, report, err = checked(name="cortex-m4f", ram=ram - 1, flash=1000, instructions=50)
    (row,) = report["check"]
    update, predict = row["update"], row["predict"]
    # of GCC's code there is a bound
    most = update["bound"] or max(update["max"], update["worst"])
    asked = predict["bound"] or predict["worst"]
    up_to = "up to " if update["bound"] else ""
    assert code == 1 and not report["ok"] and row["equal"] and report["exceeded"][0] in err
    assert report["exceeded"] == [
        f"m takes {ram} bytes of RAM; [target] ram is {ram - 1}",
        f"m takes {row['flash_bytes']:,} bytes of flash on cortex-m4f; [target] flash is 1,000",
        f"m_update takes {up_to}{most:,} instructions on cortex-m4f; [target] instructions is 50",
        f"m_predict takes {up_to}{asked:,} instructions on cortex-m4f; [target] instructions is 50",
    ]
    code, report, _ = checked(name="cortex-m4f", ram=ram, flash=row["flash_bytes"], instructions=most)
    assert code == 0 and report["ok"] and report["exceeded"] == []


@pytest.mark.parametrize(
    ("limits", "given", "runs"),
    [
        ({"name": "cortex-m4f", "flash": 1}, None, True),
        ({"name": "cortex-m4f", "instructions": 1}, ["avr"], True),
        ({"name": "cortex-m4f", "instructions": 1}, ["all"], False),
        ({"name": "cortex-m4f", "instructions": 1}, ["avr", "cortex-m4f"], False),
        ({"name": "cortex-m4f", "ram": 100_000}, None, False),
        ({"ram": 100_000}, None, False),
    ],
)
def test_limits_of_a_cpu_run_the_model_there(limits: dict, given: list | None, runs: bool, monkeypatch) -> None:
    asked: list[Any] = []

    def recorded(spec: Any, given: Any) -> Any:
        asked.append(given.target)
        return SimpleNamespace(rows=["row"])

    monkeypatch.setattr(check_workflow, "compared", recorded)
    rows = check_workflow.check_own_target(spec_of(limits), Check(spec_of(limits), target=given))
    assert (rows, asked) == ((["row"], [["cortex-m4f"]]) if runs else ([], []))
