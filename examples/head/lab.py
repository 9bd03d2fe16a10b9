"""A network that was trained in the laboratory, and rows from a machine in the field that differs: writes head.toml and field.csv.

python examples/head/lab.py
pykernel simulate head.toml field.csv
"""

import csv

import numpy as np
from sklearn.compose import TransformedTargetRegressor
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from pykernel import from_sklearn

COLUMNS = ["speed", "load", "angle", "flow", "heat"]
HEAD = """
[label]
column = "torque"

[mixture]
"""


def torque(x: np.ndarray, flow: float) -> np.ndarray:
    """Friedman's function, with a term that differs from machine to machine."""
    return 10 * np.sin(np.pi * x[:, 0] * x[:, 1]) + 20 * (x[:, 2] - 0.5) ** 2 + flow * x[:, 3] + 5 * x[:, 4]


def main() -> None:
    rng = np.random.default_rng(0)
    lab, field = rng.uniform(size=(3000, 5)), rng.uniform(size=(1200, 5))
    network = MLPRegressor(
        hidden_layer_sizes=(16,), activation="tanh", solver="lbfgs", alpha=0.1, max_iter=5000, random_state=0
    )
    model = TransformedTargetRegressor(make_pipeline(StandardScaler(), network), transformer=StandardScaler())
    model.fit(lab, torque(lab, 10) + rng.normal(0, 0.5, len(lab)))

    spec = from_sklearn(model, "head", inputs=COLUMNS, data=lab)
    with open("head.toml", "w", encoding="utf-8") as file:
        file.write(spec.to_toml().replace('rule = "frozen"', 'rule = "expansion-rls"') + HEAD)

    measured = 1.25 * torque(field, 4) - 3 + rng.normal(0, 0.5, len(field))
    with open("field.csv", "w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        rows.writerow([*COLUMNS, "torque"])
        rows.writerows([f"{value:.6g}" for value in (*x, y)] for x, y in zip(field, measured, strict=True))


if __name__ == "__main__":
    main()
