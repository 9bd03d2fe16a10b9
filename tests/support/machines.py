"""Specs of models that are trained at once, or on a basis, on the device or elsewhere: every kernel, every decision, every kind of label."""

from __future__ import annotations

from typing import Any

import numpy as np

from pykernel.spec.model import Spec, make_spec

KERNELS: dict[str, dict[str, Any]] = {
    "gaussian": {"gamma": 0.5},
    "laplacian": {"function": "laplacian", "gamma": 0.5},
    "polynomial": {"function": "polynomial", "gamma": 0.25, "coef0": 1.0, "degree": 3},
    "linear": {"function": "linear"},
    "sigmoid": {"function": "sigmoid", "gamma": 0.05, "coef0": 0.1},
    "matern32": {"function": "matern32", "gamma": 0.75},
    "matern52": {"function": "matern52", "gamma": 1.0},
    "matern12": {"function": "matern12", "gamma": 0.5},
    "rational-quadratic": {"function": "rational-quadratic", "gamma": 0.5, "alpha": 0.75},
    "fourier": {"function": "fourier"},
    "relu": {"function": "relu"},
    "tanh": {"function": "tanh"},
    "logistic": {"function": "logistic"},
    "identity": {"function": "identity"},
}
CLASSES = {"classes": ["rest", "tap", "shake"]}
TWO = {"classes": ["rest", "tap"]}
TURNS = [0.0, 0.1, 0.3, -0.5, 0.7, 0.9, 1.0]
SCALED = {"center": [0.5, -2.0, 10.0], "scale": [1.0, 0.25, -2.0]}


def expansion(vectors: int, functions: int, pairs: bool = False, **more: Any) -> dict[str, Any]:
    rng = np.random.default_rng([vectors, functions])
    weights = rng.normal(size=(vectors, functions))
    made = {"vectors": rng.normal(size=(vectors, 3)).tolist(), "weights": weights.tolist()}
    if pairs:
        count = functions + 1
        return (
            made
            | {
                "bias": rng.normal(size=count * functions // 2).tolist(),
                "support_class": _support_class(vectors, count),
            }
            | more
        )
    return made | {"bias": rng.normal(size=functions).tolist()} | more


def _support_class(vectors: int, classes: int) -> list[int]:
    return sorted(i % classes for i in range(vectors))


def _frozen(kernel: str, vectors: int, functions: int = 1, **sections: Any) -> dict[str, Any]:
    made: dict[str, Any] = {"learning": {"rule": "frozen"}, "kernel": KERNELS[kernel]}
    return made | {"expansion": expansion(vectors, functions)} | sections


MACHINES: dict[str, dict[str, Any]] = {
    "svr": _frozen("gaussian", 9),
    "products": _frozen("gaussian", 9, expansion=expansion(9, 1, distance="products")),
    "products-votes": _frozen(
        "gaussian", 8, label=CLASSES, expansion=expansion(8, 2, True, decision="ovo_vote", distance="products")
    ),
    "votes": _frozen(
        "laplacian", 7, label=CLASSES, expansion=expansion(7, 2, True, decision="ovo_vote", break_ties=True)
    ),
    "pairs": _frozen("sigmoid", 7, label=CLASSES, expansion=expansion(7, 2, True, decision="ovo")),
    "calibrated": _frozen(
        "polynomial",
        5,
        3,
        label=CLASSES,
        input={"max_abs": 100.0},
        expansion=expansion(5, 3, calibration=[[-1.0, 0.1], [-2.0, 0.0], [-0.5, -0.3]]),
    ),
    "two": _frozen("linear", 1, label=TWO, input=SCALED, expansion=expansion(1, 1, calibration=[[-1.5, 0.25]])),
    "outputs": _frozen("gaussian", 6, 2, label={"outputs": 2, "low": -1.0, "high": 1.0}, input=SCALED),
    "fourier": _frozen(
        "fourier",
        7,
        2,
        label={"outputs": 2},
        input=SCALED | {"max_abs": 100.0},
        expansion=expansion(7, 2, offsets=TURNS),
    ),
    "network": _frozen(
        "relu", 7, 2, label={"outputs": 2}, input=SCALED | {"max_abs": 100.0}, expansion=expansion(7, 2, offsets=TURNS)
    ),
    "network-classes": _frozen(
        "tanh", 7, 3, label=CLASSES, input={"max_abs": 100.0}, expansion=expansion(7, 3, offsets=TURNS)
    ),
    "network-two": _frozen(
        "logistic", 7, label=TWO, expansion=expansion(7, 1, offsets=TURNS, calibration=[[-1.0, 0.0]])
    ),
    "network-line": _frozen("identity", 7, input={"max_abs": 100.0}, expansion=expansion(7, 1, offsets=TURNS)),
    "fourier-votes": _frozen(
        "fourier", 7, label=CLASSES, expansion=expansion(7, 2, True, decision="ovo_vote", offsets=[0.25] * 7)
    ),
    "krr": {"learning": {"rule": "krr", "ridge": 0.5, "samples": 12}, "kernel": KERNELS["matern12"]},
    "krr-poly": {
        "learning": {"rule": "krr", "ridge": 2.0, "samples": 8},
        "kernel": KERNELS["polynomial"],
        "input": {"max_abs": 10.0},
        "label": {"outputs": 2, "max_abs": 10.0},
    },
    "ls-svm": {
        "learning": {"rule": "ls-svm", "ridge": 0.1, "samples": 16},
        "kernel": KERNELS["gaussian"],
        "input": SCALED,
    },
    "ls-svm-classes": {
        "learning": {"rule": "ls-svm", "ridge": 0.2, "samples": 15},
        "kernel": KERNELS["rational-quadratic"],
        "label": CLASSES,
    },
    "kfd": {
        "learning": {"rule": "kfd", "ridge": 5.0},
        "kernel": KERNELS["gaussian"],
        "label": TWO,
        "expansion": {"vectors": expansion(6, 1)["vectors"]},
    },
    "kfd-classes": {
        "learning": {"rule": "kfd", "ridge": 5.0},
        "kernel": KERNELS["laplacian"],
        "label": CLASSES,
        "input": SCALED,
        "expansion": {"vectors": expansion(9, 1)["vectors"]},
    },
}


def _given(**sections: Any) -> dict[str, Any]:
    """Learned on a basis in flash."""
    made: dict[str, Any] = {"learning": {"rule": "nystrom-rls", "ridge": 0.25}, "basis": {"method": "given"}}
    return made | {"kernel": KERNELS["gaussian"], "expansion": {"vectors": expansion(6, 1)["vectors"]}} | sections


def _chosen(kernel: dict[str, Any], n: int, rows: int, basis: dict[str, Any], **sections: Any) -> dict[str, Any]:
    """Learned on a basis that is chosen on the device."""
    learning = {"rule": "nystrom-rls", "ridge": 0.25, "samples": rows, "seed": 7} | sections.pop("learning", {})
    made: dict[str, Any] = {"learning": learning, "kernel": kernel, "reduction": {"n_max": n, "ald_threshold": 0.01}}
    return made | {"basis": basis, "input": {"max_abs": 10.0}, "label": {"max_abs": 10.0}} | sections


COSINE = {"function": "polynomial", "gamma": 0.5, "coef0": 1.0, "degree": 2, "normalise": True}

BASES: dict[str, dict[str, Any]] = {
    "map": {"learning": {"rule": "nystrom"}, "kernel": KERNELS["matern52"], "expansion": expansion(7, 1)},
    "map-variance": {
        "learning": {"rule": "nystrom"},
        "kernel": KERNELS["gaussian"],
        "input": SCALED,
        "expansion": expansion(6, 1) | {"noise": 0.25, "prior_variance": 2.0, "label_variance": 0.5},
    },
    "map-coordinates": {
        "learning": {"rule": "nystrom"},
        "kernel": KERNELS["gaussian"],
        "label": {"outputs": 5},
        "input": SCALED,
        "expansion": {"vectors": expansion(5, 1)["vectors"]},
    },
    "map-classes": {
        "learning": {"rule": "nystrom"},
        "kernel": COSINE,
        "label": CLASSES,
        "input": {"max_abs": 100.0},
        "expansion": expansion(4, 3),
    },
    "map-clamped": {
        "learning": {"rule": "nystrom"},
        "kernel": KERNELS["polynomial"],
        "label": {"outputs": 2, "low": -1.0, "high": 2.0},
        "input": {"max_abs": 10.0},
        "expansion": expansion(6, 2),
    },
    "given": _given(),
    "given-classes": _given(
        kernel=KERNELS["laplacian"], label=CLASSES, learning={"rule": "nystrom-rls", "ridge": 1.0, "forgetting": 0.98}
    ),
    "stream": _chosen(KERNELS["gaussian"], 8, 24, {"method": "stream"}),
    "stream-uncached": _chosen(
        KERNELS["matern32"],
        6,
        15,
        {"method": "stream", "cache": False, "horizon": 200},
        label={"outputs": 2, "max_abs": 10.0},
    ),
    "stream-polynomial": _chosen(
        KERNELS["polynomial"],
        7,
        21,
        {"method": "stream"},
        learning={"ridge": 20.0, "forgetting": 0.99},
        label={"max_abs": 5.0, "low": -2.0, "high": 2.0},
    ),
    "stream-linear": _chosen(
        KERNELS["linear"], 2, 6, {"method": "stream", "horizon": 50}, label=TWO, input=SCALED | {"max_abs": 20.0}
    ),
    "efvs": _chosen(KERNELS["laplacian"], 6, 20, {"method": "efvs", "candidates": 7, "points": 9}, label=CLASSES),
    "efvs-all": _chosen(
        COSINE, 5, 12, {"method": "efvs", "tau": 0.05, "horizon": 60}, label={"outputs": 2, "max_abs": 10.0}
    ),
    "sgma": _chosen(KERNELS["gaussian"], 8, 30, {"method": "sgma", "candidates": 5}, learning={"forgetting": 0.995}),
    "sgma-polynomial": _chosen(
        KERNELS["polynomial"], 6, 16, {"method": "sgma", "tau": 0.01}, learning={"ridge": 20.0}, label=TWO
    ),
}
"""Models on a basis, frozen and learning."""
MACHINES |= BASES


def _subspace(kernel: dict[str, Any], r: int, n: int, **sections: Any) -> dict[str, Any]:
    """A subspace that follows the stream."""
    learning = {"rule": "okfeb", "features": r} | sections.pop("learning", {})
    reduction = {"n_max": n} | sections.pop("reduction", {})
    made: dict[str, Any] = {"learning": learning, "kernel": kernel, "reduction": reduction}
    return made | {"input": {"max_abs": 10.0}} | sections


SUBSPACES: dict[str, dict[str, Any]] = {
    "subspace": _subspace(KERNELS["gaussian"], 4, 12, reduction={"ald_threshold": 0.01}, subspace={"fading": 0.98}),
    "subspace-drop": _subspace(
        KERNELS["laplacian"],
        5,
        14,
        subspace={"budget": "drop", "step": "averaged", "window": 200, "fading": 0.99},
        input=SCALED | {"max_abs": 30.0},
    ),
    "subspace-nonparametric": _subspace(
        KERNELS["matern32"],
        3,
        9,
        label={"column": "y", "max_abs": 10.0, "low": -2.0, "high": 2.0},
        learning={"forgetting": 0.98, "ridge": 0.5},
        subspace={"update": "nonparametric", "step": "normalised", "fading": 0.95, "insensitivity": 0.01},
    ),
    "subspace-hybrid": _subspace(
        KERNELS["polynomial"],
        4,
        10,
        reduction={"ald_threshold": 0.02},
        label={"outputs": 2, "max_abs": 10.0},
        subspace={"update": "hybrid", "step": "decreasing", "censoring": 0.4, "window": 0, "fading": 0.97},
        input={"max_abs": 5.0},
    ),
    "subspace-rls": _subspace(
        KERNELS["gaussian"],
        4,
        16,
        label=TWO,
        subspace={"update": "rls", "forgetting": 0.98, "fading": 0.95, "head": "logistic"},
    ),
    "subspace-rls-drop": _subspace(
        COSINE,
        4,
        8,
        label=TWO,
        subspace={"update": "rls", "budget": "drop", "forgetting": 0.99, "censoring": 0.2},
        reduction={"n_max": 8, "force": True},
        learning={"ridge": 1.0},
    ),
    "subspace-classes": _subspace(
        KERNELS["matern52"],
        6,
        11,
        label=CLASSES,
        subspace={"head": "logistic", "step": "normalised", "fading": 0.9, "window": 100},
        learning={"ridge": 0.01, "eta": 0.3},
    ),
    "subspace-classes-hybrid": _subspace(
        KERNELS["linear"],
        3,
        7,
        label=CLASSES,
        subspace={"update": "hybrid", "budget": "drop", "shrinkage": 0.5, "fading": 0.95},
        learning={"forgetting": 0.99, "ridge": 1.0},
    ),
}
"""Feature extraction on a budget: every update, step, budget, head and kind of label."""
MACHINES |= SUBSPACES

MONITORS: dict[str, dict[str, Any]] = {
    "monitor": {
        "learning": {"rule": "gmm", "components": 3},
        "input": {"max_abs": 30.0, "missing": "hold"},
        "novelty": {"false_alarm_rate": 0.02, "warmup": 60, "relearn_after": 8, "life": "known", "commissioning": 60},
    },
}
"""A bank of Gaussians that is soon full."""
MACHINES |= MONITORS


SIGNALS: dict[str, dict[str, Any]] = {
    "signal-windows": {
        "signal": {
            "channels": ["a", "b"],
            "max_abs": 30.0,
            "rate": 100.0,
            "window": 16,
            "hop": 4,
            "features": [
                *("mean", "rms", "std", "min", "max", "crest", "skewness", "kurtosis"),
                *("crossings", "change", "slope", "correlation", "centroid"),
            ],
            "lags": [0, 1],
        },
        "label": {"column": "y"} | CLASSES,
        "learning": {"rule": "nlms"},
    },
    "signal-forecast": {
        "signal": {"channels": ["a", "b"], "max_abs": 30.0, "lags": [0, 1, 3], "differences": [1], "periods": [6, 42]},
        "label": {"column": "a"},
        "learning": {"rule": "krls-t"},
        "kernel": KERNELS["gaussian"],
        "reduction": {"n_max": 6},
    },
    "signal-alone": {
        "signal": {"channels": ["a"], "max_abs": 30.0, "window": 8, "hop": 8, "features": ["min", "range"]},
        "label": {"column": "y", "max_abs": 10.0},
        "learning": {"rule": "rls"},
    },
}
"""Models behind a signal stage: labels from elsewhere, forecasts."""


def machine(name: str, precision: str = "float32", model: str = "flow") -> Spec:
    content = (MACHINES | SIGNALS)[name]
    inputs = {} if name in SIGNALS else {"input": {"dim": 3} | content.get("input", {})}
    return make_spec(content | {"name": model, "precision": precision} | inputs)
