"""Three labels, one set of expansion vectors: Lorenz's system a step ahead, against three models of one label each.

    python examples/several_outputs.py

prints the errors and what each takes in bytes of state.
"""

import numpy as np

from pykernel import BudgetedKernelRegressor
from pykernel.gen.project import build


def lorenz(samples, step=0.05):
    """The system's path by Runge and Kutta's rule, each coordinate scaled to unit variance."""

    def slope(p):
        return np.array([10 * (p[1] - p[0]), p[0] * (28 - p[2]) - p[1], p[0] * p[1] - 8 / 3 * p[2]])

    path = [np.array([1.0, 1.0, 20.0])]
    for _ in range(samples):
        p = path[-1]
        for _ in range(5):
            h = step / 5
            a = slope(p)
            b = slope(p + h / 2 * a)
            c = slope(p + h / 2 * b)
            p = p + h / 6 * (a + 2 * b + 2 * c + slope(p + h * c))
        path.append(p)
    path = np.array(path[100:])
    return (path - path.mean(axis=0)) / path.std(axis=0)


def error(y, predictions):
    return float(np.sqrt(np.mean((y - predictions) ** 2)))


def state_bytes(model):
    return build(model.to_spec("lorenz")).figures["state_bytes"]


def main():
    path = lorenz(3000)
    x, y = path[:-1], path[1:] - path[:-1]
    learn, test = slice(0, 2000), slice(2000, None)

    together = BudgetedKernelRegressor(rule="krls-t", n_max=64, sigma=1.5, noise=1e-3).fit(x[learn], y[learn])
    alone = [model.fit(x[learn], y[learn, o]) for o, model in enumerate(singles(64))]
    smaller = [model.fit(x[learn], y[learn, o]) for o, model in enumerate(singles(32))]
    rows = [
        ("one model of 64 vectors", error(y[test], together.predict(x[test])), state_bytes(together)),
        ("three models of 64", *of_three(alone, x[test], y[test])),
        ("three models of 32", *of_three(smaller, x[test], y[test])),
        ("no change", error(y[test], 0 * y[test]), 0),
    ]
    for name, rms, size in rows:
        print(f"{name:24} rms error {rms:.4f} {size:9,} B")


def singles(n_max):
    return [BudgetedKernelRegressor(rule="krls-t", n_max=n_max, sigma=1.5, noise=1e-3) for _ in range(3)]


def of_three(models, x, y):
    return error(y, np.column_stack([model.predict(x) for model in models])), 3 * state_bytes(models[0])


if __name__ == "__main__":
    main()
