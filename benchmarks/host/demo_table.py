"""The demo's accuracy table: mean absolute error and bytes of state of each technique and budget, as Markdown.

The settings (learning rate eta and width sigma; forgetting lambda of the linear models) are those of a grid with the
least error over the first half of the year.  The table shows the error over the second half, which had no part in the
choice.

    python -m benchmarks.host.demo_table [--n-max 16 32 64]
"""

import argparse
from collections.abc import Callable, Iterable
from itertools import product
from typing import Any

import numpy as np

from pykernel.gen.project import build
from pykernel.host.bikeshare import DAY, bikeshare, bikeshare_spec, lagged, mean_error, running_mean
from pykernel.host.model import HostModel
from pykernel.workflows.demo import linear

ETAS = (0.1, 0.2, 0.4, 0.6, 0.8)
SIGMAS = (0.7, 1.0, 1.5, 2.0, 3.0)
LAMBDAS = (1.0, 0.9999, 0.9995, 0.999, 0.998, 0.995, 0.99, 0.98)


def choose(candidates: Iterable[Any], forecast: Callable[[Any], np.ndarray], y: np.ndarray) -> tuple[Any, np.ndarray]:
    """The candidate with the least error over the first half, and its forecasts."""
    half = len(y) // 2
    tried = [(candidate, forecast(candidate)) for candidate in candidates]
    return min(tried, key=lambda pair: float(np.abs(pair[1] - y)[:half].mean()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n-max", type=int, nargs="+", default=[16, 32, 64])
    budgets = parser.parse_args().n_max
    x, y, _ = bikeshare()

    def row(name: str, settings: str, forecasts: np.ndarray, state: int) -> None:
        print(f"| {name} | {settings} | {mean_error(forecasts, y):.1f} | {state:,} |")

    print("| predictor | settings | error (rentals) | state (bytes) |")
    print("|---|---|---|---|")
    row("last hour", "", lagged(y, 1), 4)
    row("same hour yesterday", "", lagged(y, DAY), 4 * DAY)
    row("running mean", "", running_mean(y), 8)
    for name, rule in (("linear RLS", "rls"), ("quadratic RLS", "quadratic-rls")):
        forgetting, forecasts = choose(LAMBDAS, lambda value: linear(x, y, rule, value)[0], y)  # noqa: B023
        row(name, f"λ {forgetting}", forecasts, linear(x, y, rule)[1])
    for n_max in budgets:
        for technique in ("nt", "fklms", "mklms"):
            specs = [
                bikeshare_spec(technique=technique, n_max=n_max, eta=eta, sigma=sigma)
                for eta, sigma in product(ETAS, SIGMAS)
            ]
            spec, forecasts = choose(specs, lambda spec: HostModel(spec).prequential(x, y)[0], y)
            settings = f"η {spec.learning.eta}, σ {spec.kernel.sigma}"
            row(f"{technique}, {n_max} vectors", settings, forecasts, build(spec).figures["state_bytes"])


if __name__ == "__main__":
    main()
