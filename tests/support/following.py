"""Specs from a few parameters, and runs of the product beside its slow twin."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from pykernel.algorithms.online import projections, techniques
from pykernel.algorithms.online.klms import KLMS
from pykernel.algorithms.online.state import SEARCHES
from pykernel.host import snapshot
from pykernel.host.model import HostModel
from pykernel.spec.families.online import RULES, ridge_of
from pykernel.spec.families.online_keys import GRADIENT, SELECTING, Reduction
from pykernel.spec.model import Spec, declared, keys_of, make_spec
from tests.support.naive import Disagreement, Twin, kernel_values
from tests.support.specs import named

Status: Any = KLMS["real"].status

TECHNIQUES = tuple(techniques.TECHNIQUES)
PROJECTIONS = tuple(projections.PROJECTIONS)
FIXED = tuple(rule for rule in RULES if rule not in SELECTING)
"""Rules that have no technique."""


def spec_of(technique: str = "mklms", n_max: int = 8, dim: int = 1, precision: str = "float64", **keys: Any) -> Spec:
    """Parameters by their names in the spec; ``max_abs``, ``outputs`` and ``classes`` (a number) are the label's.

    A technique, a ridge or an ald_threshold is left out if the rule has none.
    """
    label: dict[str, Any] = {key: keys.pop(key) for key in ("max_abs", "outputs", "low", "high") if key in keys}
    if "classes" in keys:
        label["classes"] = [f"class {i}" for i in range(keys.pop("classes"))]
    content: dict[str, Any] = {
        "name": "m",
        "precision": precision,
        "input": {"dim": dim, **keys.pop("input", {})},
        "label": label,
        "kernel": keys.pop("kernel", None) or {"sigma": keys.pop("sigma", 0.5)},
        "learning": {
            key: keys.pop(key) for key in list(keys) if key in keys_of("learning") and key not in Reduction.model_fields
        },
        "reduction": {"technique": technique, "n_max": n_max},
    }
    content["reduction"] |= {key: keys.pop(key) for key in list(keys) if key in Reduction.model_fields}
    for key in ("technique", "ridge", "ald_threshold"):
        if content["learning"].get("rule", "klms") not in declared("reduction", key):
            content["reduction"].pop(key, None)
    assert not keys, f"{list(keys)} are not keys of a spec"
    return make_spec(named(content))


def persistent(model: HostModel) -> bytes:
    """The model, without its working memory."""
    return bytes(model.memory.bytes[: model.spec.program.state_bytes(model.memory.layout)])


def undoubted(model: HostModel) -> bytes:
    """The model without what it knows of its errors."""
    return bytes(model.memory.bytes[: model.memory.layout.ends["Pending"]])


def in_use(model: HostModel, name: str) -> np.ndarray:
    """A field without the slots that are free, in float64."""
    n = int(model.memory.field("n")[0])
    field = model.memory.field(name)
    return field[:n].astype(float)


def is_valid(model: HostModel) -> bool:
    return snapshot.is_valid(model.spec, model.memory)


def kept(model: HostModel) -> dict[str, np.ndarray]:
    """What the model keeps of its Gram matrix: field -> its value by definition."""
    spec, c = model.spec, model.config
    k = normalised_gram(model)
    eye = np.eye(len(k))
    regular = k + ridge_of(spec) * eye
    fields: dict[str, np.ndarray] = {}
    if c.keeps_factor:
        fields["t"] = np.linalg.inv(regular)
    if c.keeps_inverse:
        fields["inverse"] = np.linalg.inv(regular)
    if c.keeps_squared:
        fields["squared"] = np.linalg.inv(regular @ regular)
    if c.keeps_complex:
        mu = spec.reduction.penalty * (spec.reduction.n_max + 1) / spec.reduction.n_max
        z = np.linalg.inv(regular + 1j * np.sqrt(mu) * eye)
        fields["z_re"], fields["z_im"] = z.real, z.imag
    if c.keeps_overlap:
        fields["overlap"] = np.sum(k**2, axis=1) - 1
    return fields


def held(model: HostModel, name: str) -> np.ndarray:
    """A field as it is compared with its definition: T as T'T."""
    if name == "t":
        factor = triangle_of(model, name)
        return factor.T @ factor
    return symmetric_of(model, name) if name in MATRICES else in_use(model, name)


def normalised_gram(model: HostModel) -> np.ndarray:
    """k(v_i, v_j) / sqrt(k(v_i, v_i) k(v_j, v_j)) in float64: what a model keeps is of that."""
    v = in_use(model, "v")
    k = kernel_values(model.spec, v, v)
    root = np.sqrt(np.diagonal(k))
    return np.asarray(k / np.outer(root, root))


def factor_error(model: HostModel) -> float:
    """max |(K + ridge I) m'm - I| in float64."""
    v = in_use(model, "v")
    k = normalised_gram(model) + ridge_of(model.spec) * np.eye(len(v))
    return float(np.abs(k @ held(model, "t") - np.eye(len(v))).max(initial=0.0))


MATRICES = ("t", "inverse", "squared", "z_re", "z_im", "root", "covariance")
"""Packed triangles, and symmetric matrices."""


def matrices(model: HostModel) -> list[str]:
    """Those of the matrices that the model's rule has."""
    return [name for name in MATRICES if any(slot.name == name for slot in model.memory.layout.slots)]


def assert_sound(model: HostModel) -> None:
    """Everything is finite, free slots are zero to the bit, and valid() agrees."""
    n = int(model.memory.field("n")[0])
    for name in ("v", "alpha", "diagonal", "overlap", "neighbour", "claim", "age", *matrices(model)):
        field, first = model.memory.field(name), n * (n + 1) // 2 if name in MATRICES else n
        assert np.isfinite(field).all(), name
        assert not np.ascontiguousarray(field[first:]).tobytes().strip(b"\0"), f"{name} beyond n"
        used = model.config.keeps_factor and not (name == "root" and model.config.forgets)
        if name in ("t", "root") and used:
            assert (triangle_of(model, name).diagonal() > 0).all(), name
    alpha = np.abs(model.memory.field("alpha"))
    assert ((alpha == 0) | (alpha >= 2.0**-100)).all() and (alpha <= model.config.alpha_limit).all()
    assert is_valid(model)


def follow(spec: Spec, x: np.ndarray, labels: np.ndarray, tolerance: float = 1e-6) -> HostModel:
    """Learn one sample at a time, the twin beside; everything that can be seen is compared after each.

    Ends early where a choice depends on more lost neighbours than the model searches for.
    """
    model, twin = HostModel(spec), Twin(spec)
    largest = twin.label_max_abs * 1e-6
    for t in range(len(x)):
        before = persistent(model)
        if labels.dtype.kind == "f":
            largest = max(largest, np.abs(labels[t]).max())
        allowed = tolerance * largest
        norm = np.sqrt(max(1.0, twin.power_of(x[t])))
        np.testing.assert_allclose(
            np.atleast_1d(model.predict(x[t])[0]),
            twin.predict(x[t]),
            rtol=0,
            atol=norm * spec.reduction.n_max * allowed,
        )
        lost = int((in_use(model, "neighbour") <= 0).sum()) if model.config.keeps_neighbours else 0
        (status,) = model.update(x[t], labels[t : t + 1])
        if status < 0:
            assert persistent(model) == before
        v = in_use(model, "v")
        age = in_use(model, "age") if model.config.keeps_ages else None
        try:
            twin.update(x[t], labels[t], int(status), (v, in_use(model, "alpha") / twin.norms(v)), age)
        except Disagreement:
            # the twin knows all neighbours; the model searches for few in one choice, and takes the best that it knows
            if lost > SEARCHES:
                return model
            raise
        alpha = twin.normalised(twin.model).alpha
        largest = max(largest, np.abs(alpha).max(initial=0.0))
        np.testing.assert_array_equal(v, twin.model.v)
        np.testing.assert_allclose(in_use(model, "alpha"), alpha, rtol=0, atol=tolerance * largest)
        if model.config.keeps_ages:
            np.testing.assert_array_equal(in_use(model, "age"), twin.model.age)
        if model.config.fades:
            np.testing.assert_allclose(in_use(model, "claim"), twin.model.claim, rtol=1e-9)
        assert_sound(model)
    compare_kept(model, twin, tolerance)
    probes = x[:10] + 0.1
    expected = [twin.novelty(probe) for probe in probes]
    np.testing.assert_allclose(model.novelty(probes), expected, rtol=0, atol=tolerance)
    if spec.learning.rule == "krls-t":
        np.testing.assert_allclose(model.variance(probes), [twin.variance(p) for p in probes], rtol=tolerance)
    return model


def posterior_of(model: HostModel) -> np.ndarray:
    """The covariance that krls-t and ald-krls keep, at the vectors: of z = T f they have a factor, or the covariance itself."""
    t = triangle_of(model, "t")
    if not model.config.forgets:
        factor = np.linalg.solve(t, triangle_of(model, "root"))
        return np.asarray(factor @ factor.T)
    inverse = np.linalg.inv(t)
    return np.asarray(inverse @ symmetric_of(model, "covariance") @ inverse.T)


def triangle_of(model: HostModel, name: str) -> np.ndarray:
    """A packed triangle without its free places, in float64."""
    n = int(model.memory.field("n")[0])
    factor = np.zeros((n, n))
    factor[np.tril_indices(n)] = model.memory.field(name)[: n * (n + 1) // 2]
    return factor


def symmetric_of(model: HostModel, name: str) -> np.ndarray:
    lower = triangle_of(model, name)
    return lower + np.tril(lower, -1).T


def compare_kept(model: HostModel, twin: Twin, tolerance: float) -> None:
    """What is kept of the Gram matrix, and by the rule, is what it is by definition."""
    for name, expected in kept(model).items():
        scale = np.abs(expected).max(initial=1.0)
        np.testing.assert_allclose(held(model, name), expected, rtol=0, atol=tolerance * scale, err_msg=name)
    if twin.rule == "krls-t":
        norms = twin.norms(twin.model.v)
        spread = twin.model.spread / (norms * norms.T)
        np.testing.assert_allclose(posterior_of(model), spread, rtol=0, atol=tolerance)
    if twin.rule == "ald-krls":
        norms = twin.norms(twin.model.v)
        np.testing.assert_allclose(posterior_of(model), twin.model.spread / (norms * norms.T), rtol=0, atol=tolerance)


def learned(statuses: np.ndarray) -> bool:
    """Whether nothing was refused."""
    return bool((statuses > 0).all() and (statuses <= Status.MERGED).all())


# ---------------------------------------------------------------------------------------- configurations and data


@st.composite
def specs(
    draw: st.DrawFn,
    rules: tuple[str, ...] = ("klms",),
    kinds: tuple[str, ...] = ("real",),
    strategies: bool = False,
    mixed: bool = True,
) -> Spec:
    """Specs in float64 of any technique; ``mixed``: with any projection; ``strategies``: not only a fixed budget."""
    rule, kind = draw(st.sampled_from(rules)), draw(st.sampled_from(kinds))
    technique = draw(st.sampled_from(TECHNIQUES))
    keys: dict[str, Any] = {"rule": rule, "sigma": draw(st.sampled_from([0.3, 0.5, 1.0, 3.0]))}
    if rule in (*GRADIENT, "fb-krls", "knlms"):
        keys["eta"] = draw(st.sampled_from([0.05, 0.3, 0.9]))
    if rule in GRADIENT:
        keys["rho"] = draw(st.sampled_from([0.0, 0.0, 0.02, 0.5]))
        if draw(st.integers(0, 3)) == 0:
            keys["step_limit"] = 0.1
    if rule == "fb-krls":
        keys["relabel"] = draw(st.booleans())
    if rule == "qklms":
        keys["quantisation"] = draw(st.sampled_from([0.1, 0.5, 1.0]))
    if rule == "knlms":
        keys |= {"coherence": draw(st.sampled_from([0.2, 0.7, 0.99])), "epsilon": draw(st.sampled_from([1e-4, 0.3]))}
    if rule == "krls-t":
        keys["forgetting"] = draw(st.sampled_from([1.0, 0.99, 0.8]))
        keys["noise"] = draw(st.sampled_from([0.01, 0.3]))
    if rule in ("krls-t", "fb-krls"):
        keys["projection"] = "klms"
    elif rule in GRADIENT and mixed and draw(st.booleans()):
        keys["projection"] = draw(st.sampled_from(PROJECTIONS))
    keys["ridge"] = draw(st.sampled_from([1e-3, 1e-2]))
    keys["ald_threshold"] = draw(st.sampled_from([2 * keys["ridge"], 0.05, 0.3]))
    if kind == "real":
        keys["max_abs"] = draw(st.sampled_from([1e6, 1e6, 1e6, 1e-5])) if rule in GRADIENT else 1e6
    else:
        keys["classes" if kind == "class" else "outputs"] = draw(st.integers(2, 4))
    if rule not in FIXED:
        keys["force"] = True
        if technique in ("lsreg", "lsridge") or keys.get("projection") == "lsridge":
            keys["penalty"] = draw(st.sampled_from([1e-4, 1e-2, 1.0]))
        if technique not in ("at", "afklms", "afmklms"):
            keys["fading"] = draw(st.sampled_from([1.0, 1.0, 0.9, 0.6]))
        if technique not in ("at", "klms", "lsreg", "lsridge"):
            keys["tie"] = draw(st.sampled_from(["smaller", "smaller", "newest", "oldest"]))
        if strategies:
            keys |= draw(strategy_keys(rule, technique))
    return spec_of(technique, draw(st.integers(1, 9)), draw(st.integers(1, 3)), **keys)


@st.composite
def strategy_keys(draw: st.DrawFn, rule: str, technique: str) -> dict[str, Any]:
    """Keys of [reduction] that say when vectors go."""
    keys: dict[str, Any] = {}
    if rule in GRADIENT and draw(st.integers(0, 3)) == 0:
        return {"when": "before"}
    if draw(st.booleans()):
        keys["candidates"] = "newest"
    if technique != "at" and draw(st.booleans()):
        keys["lambda_max"] = draw(st.sampled_from([1e-4, 3e-3, 0.1]))
    if rule in GRADIENT:
        if draw(st.integers(0, 2)) == 0:
            keys["truncate_below"] = draw(st.sampled_from([1e-3, 0.04]))
        if draw(st.integers(0, 2)) == 0:
            keys["truncate_age"] = draw(st.sampled_from([1, 4, 12]))
    if keys.keys() - {"candidates"}:
        keys["removals"] = draw(st.integers(1, 4))
    return keys


@st.composite
def problems(draw: st.DrawFn, /, **parameters: Any) -> tuple[Spec, np.ndarray, np.ndarray]:
    """A spec and samples for it: on a grid or not, with repeats, with labels that are zero."""
    spec = draw(specs(**parameters))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    count, dim = draw(st.integers(15, 45)), spec.dim
    x = rng.uniform(-2, 2, (count, dim))
    if draw(st.booleans()):
        x = np.round(4 * x) / 4  # equal distances, repeats
    repeats = rng.random(count) < draw(st.sampled_from([0.0, 0.3]))
    x[repeats] = x[rng.integers(0, count, int(repeats.sum()))]
    if spec.label.classes is not None:
        classes = len(spec.label.classes)
        return spec, x, np.clip((x.sum(1) + 2) / 4 * classes, 0, classes - 1).astype(int)
    scale = min(1.0, spec.label.max_abs) * draw(st.sampled_from([1.0, 1.0, 1e-3]))
    y = scale * np.sin(np.outer(x.sum(1), 3 - np.arange(spec.outputs))) * (rng.random((count, 1)) < 0.9)
    return spec, x, y[:, 0] if spec.label_kind == "real" else y
