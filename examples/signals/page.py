"""The tables of docs/signals-examples.md, from what study.py left."""

from __future__ import annotations

from pathlib import Path

from benchmarks.tables import DATA, Rows, load, markdown, publish

FAULTS = ("outer race, same load", "outer race, other loads", "inner race, other loads")
PREDICTORS = {
    "model": "`bicycles.toml`",
    "linear model, raw inputs": "linear model of the same features (RLS), forgetting 0.999",
    "linear model": "the same, features in running deviations, no forgetting",
    "last value": "last value",
    "same hour yesterday": "same hour of the day before",
    "same hour last week": "same hour of the week before",
}
METHODS = {"model": "`exercises.toml`", "linear model (rls)": "linear model (RLS), features in running deviations"}
SCORES = {"model": "`bearing.toml`"}


def results(folder: Path = DATA / "signals") -> dict[str, Rows]:
    return {name: load(folder / f"{name}.csv") for name in ("forecast", "exercises", "bearing", "cost")}


def forecast_table(rows: Rows) -> str:
    heads = ["predictor", "an hour ahead: MAE", "RMSE", "MAE, second half", "a day ahead: MAE", "RMSE", "MAE, second half"]  # fmt: skip
    of = {(row["predictor"], row["ahead"]): row for row in rows}
    keys = ("mae", "rmse", "mae_second_half")
    return markdown(
        heads, [[text, *(of[name, ahead][key] for ahead in ("1", "24") for key in keys)] for name, text in PREDICTORS.items()]
    )  # fmt: skip


def exercises_table(rows: Rows) -> str:
    heads = ["errors, %", "people 1 to 5", "people 6 to 10", "worst of these", "their second halves", "first halves learned"]  # fmt: skip
    keys = ("chosen_on", "new", "worst", "second_halves", "own_learned")
    return markdown(heads, [[METHODS.get(row["method"], row["method"]), *(row[key] for key in keys)] for row in rows])


def bearing_table(rows: Rows) -> str:
    heads = ["score", "bytes", "false alarms, %", *(f"{group}: AUC, seen %" for group in FAULTS)]
    return markdown(
        heads,
        [
            [SCORES.get(row["score"], row["score"]).replace("|", "\\|"), f"{int(row['bytes']):,}", row["false"]]
            + [f"{row[f'auc, {group}']}, {row[f'seen, {group}']}" for group in FAULTS]
            for row in rows
        ],
    )


def cost_table(rows: Rows) -> str:
    heads = ["", "target", "flash", "RAM", "stack", "usual sample", "mean", "most counted", "bound"]
    keys = ("flash_bytes", "ram_bytes", "stack_bytes", "median", "mean", "counted", "bound")
    return markdown(
        heads, [[f"`{row['example']}`", row["target"], *(f"{int(row[key]):,}" for key in keys)] for row in rows]
    )


TABLES = {"forecast": forecast_table, "exercises": exercises_table, "bearing": bearing_table, "cost": cost_table}


def show() -> None:
    publish({name: TABLES[name](rows) for name, rows in results().items()})
