"""Models of every technique under the paper's rule and of the other kernel rules, and a stream that keeps them busy."""

from __future__ import annotations

from typing import Any

import numpy as np

from pykernel.algorithms.online.techniques import TECHNIQUES
from pykernel.spec.model import Spec, make_spec

DIM = 4
STREAM = 20_000
ETA, RHO = 0.5, 0.1
PRESETS: dict[str, dict[str, dict[str, Any]]] = {
    **{
        name: {"learning": {"rule": "klms", "eta": ETA, "rho": RHO}, "reduction": {"technique": name}}
        for name in TECHNIQUES
    },
    "qklms, nt": {"learning": {"rule": "qklms", "eta": ETA, "rho": RHO}, "reduction": {"technique": "nt"}},
    "krls-t, sup": {"learning": {"rule": "krls-t", "forgetting": 0.99}, "reduction": {"technique": "sup"}},
    "fb-krls, sup": {"learning": {"rule": "fb-krls"}, "reduction": {"technique": "sup"}},
    "sw-krls": {"learning": {"rule": "sw-krls"}, "reduction": {}},
    "ald-krls": {"learning": {"rule": "ald-krls"}, "reduction": {}},
    "knlms": {"learning": {"rule": "knlms", "eta": ETA}, "reduction": {}},
}

LINEAR: dict[str, dict[str, Any]] = {
    "nlms": {"rule": "nlms", "eta": 0.1},
    "rls": {"rule": "rls", "forgetting": 0.999},
    "quadratic-rls": {"rule": "quadratic-rls", "forgetting": 0.999},
    "rff-rls": {"rule": "rff-rls", "forgetting": 0.999},
}
"""The linear rules; of rff-rls, N is the number of features."""


def spec_of(preset: str, n_max: int, precision: str = "float32") -> Spec:
    content = PRESETS[preset]
    return make_spec(
        {
            "name": "busy",
            "precision": precision,
            "input": {"dim": DIM},
            "kernel": {"sigma": 1.0},
            "learning": content["learning"],
            "reduction": {**content["reduction"], "n_max": n_max},
        }
    )


def stream(n_max: int, count: int = STREAM) -> tuple[np.ndarray, np.ndarray]:
    """Inputs two widths apart in the mean if there are N of them, and noise; a longer stream begins with a shorter."""
    inputs, noise = np.random.default_rng(n_max), np.random.default_rng((n_max, 1))
    reach = float(n_max) ** (1 / DIM)
    return inputs.uniform(-reach, reach, (count, DIM)).astype(np.float32), noise.normal(size=count).astype(np.float32)


def filling(n_max: int) -> int:
    """Samples after which a budget is full and has been exchanged a few times."""
    return 4 * n_max + 200
