"""Every result in docs/data: the command that makes it, and what it measures.

    make stale        # which are stale, and why
    make remeasure    # measure these again

``benchmarks/provenance.py`` says what counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, get_args

from benchmarks.device.proof import FINITE, PROGRAMS
from benchmarks.device.signal_cost import ALONE, measured, with_features
from benchmarks.provenance import ROOT, Result, Tree
from pykernel.algorithms.kernel_choice import KERNEL_RULES
from pykernel.algorithms.online.projections import PROJECTIONS
from pykernel.algorithms.online.techniques import TECHNIQUES
from pykernel.host.bikeshare import default_spec
from pykernel.spec.families.expansion import RULES as EXPANSION_RULES
from pykernel.spec.families.linear import RULES as LINEAR_RULES
from pykernel.spec.families.nystrom import METHODS
from pykernel.spec.families.spectrum import RULES as SPECTRUM_RULES
from pykernel.spec.families.spectrum import SOFTMAX
from pykernel.spec.families.subspace import BUDGETS, UPDATES
from pykernel.spec.kernel_settings import FUNCTIONS
from pykernel.spec.model import Spec, load_spec, make_spec
from pykernel.spec.signal import FeatureName

# ------------------------------------------------------------------------------------------------------- models

VECTORS = {"vectors": [[0.1, 0.2, 0.3, 0.4], [0.4, 0.3, 0.2, 0.1]]}
WEIGHTED = VECTORS | {"weights": [[1.0], [-1.0]], "bias": [0.5]}
CLASSES = {"label": {"classes": ["no", "yes"]}}
WIDTH = {"kernel": {"sigma": 1.0}}


def specs(contents: Iterable[Mapping[str, Any]]) -> list[Spec]:
    """Models of four inputs in float32: in float64, nothing but the constants differs."""
    return [
        make_spec({"name": "measured", "input": {"dim": 4, "max_abs": 10.0}} | dict(content)) for content in contents
    ]


def reduced(rule: str, **reduction: Any) -> dict[str, Any]:
    return WIDTH | {"learning": {"rule": rule}, "reduction": {**reduction, "force": True}}


def techniques() -> list[Spec]:
    return specs([*(reduced("klms", technique=name) for name in TECHNIQUES), reduced("qklms", technique="nt")])


def projections() -> list[Spec]:
    published = reduced("klms", technique="fklms", projection="fklms")
    return specs([*(reduced("klms", technique="klms", projection=name) for name in PROJECTIONS), published])


def recursive() -> list[Spec]:
    found = [reduced(rule, technique=name) for rule in ("krls-t", "fb-krls") for name in ("sup", "mklms")]
    return specs([*found, WIDTH | {"learning": {"rule": "ald-krls"}}])


def linear() -> list[Spec]:
    return specs({"learning": {"rule": rule}} | (WIDTH if rule == "rff-rls" else {}) for rule in LINEAR_RULES)


def expansions() -> list[Spec]:
    """What was trained elsewhere and goes on learning."""
    return specs(
        WIDTH | {"learning": {"rule": rule}, "expansion": WEIGHTED} | (CLASSES if rule == "expansion-softmax" else {})
        for rule in EXPANSION_RULES
    )


def kernels() -> list[Spec]:
    given = [{"function": name} for name in FUNCTIONS if name != "custom"]
    given = [kernel | ({"gamma": 0.5} if "gamma" in KERNEL_RULES[kernel["function"]].keys else {}) for kernel in given]
    given += [{"function": "linear", "normalise": True}, {"function": "polynomial", "gamma": 0.5, "normalise": True}]
    return specs({"kernel": kernel, "learning": {"rule": "frozen"}, "expansion": WEIGHTED} for kernel in given)


def training() -> list[Spec]:
    kfd = {"learning": {"rule": "kfd"}, "expansion": VECTORS}
    return specs(
        [*(CLASSES | WIDTH | {"learning": {"rule": rule}} for rule in ("krr", "ls-svm")), CLASSES | WIDTH | kfd]
    )


def streaming() -> list[Spec]:
    chosen = [{"basis": {"method": name}} | ({"expansion": VECTORS} if name == "given" else {}) for name in METHODS]
    found = [WIDTH | {"learning": {"rule": "nystrom-rls"}} | content for content in chosen]
    return specs([*found, WIDTH | {"learning": {"rule": "nystrom"}, "expansion": WEIGHTED}])


def subspaces() -> list[Spec]:
    follows = {"learning": {"rule": "okfeb", "features": 4}}
    pairs = [{"subspace": {"update": update, "budget": budget}} for update in UPDATES for budget in BUDGETS]
    # rls needs the exact budget
    found = [WIDTH | follows | pair for pair in pairs if pair["subspace"] != {"update": "rls", "budget": "drop"}]
    return specs([*found, WIDTH | follows | {"label": {"outputs": 1}}])


def default() -> list[Spec]:
    """What a spec gets that names no rule."""
    return specs([{}, CLASSES, {"novelty": {}}])


def waves() -> list[Spec]:
    """Spectra whose frequencies learn, with the linear expert."""
    stages = {"input": {"dim": 3, "standardise": True}, "linear": {}, "mixture": {}}
    return specs(WIDTH | stages | {"learning": {"rule": rule}} for rule in SPECTRUM_RULES if rule != SOFTMAX)


def class_waves() -> list[Spec]:
    """Spectra for classes, with the linear expert."""
    stages = CLASSES | {"input": {"dim": 3, "standardise": True}, "mixture": {}}
    return specs(WIDTH | stages | {"learning": {"rule": rule}} for rule in SPECTRUM_RULES)


def alarms() -> list[Spec]:
    return specs([{"novelty": {}}])


def int16() -> list[Spec]:
    """Models in int16."""
    frozen = {"precision": "int16", "learning": {"rule": "frozen"}, "expansion": WEIGHTED}
    found: list[dict[str, Any]] = [frozen | {"kernel": {"function": "linear"}}]
    for distance in ("differences", "products"):
        found.append(frozen | WIDTH | {"expansion": WEIGHTED | {"distance": distance}})
    found.append(frozen | {"kernel": {"function": "laplacian", "gamma": 0.5}})
    learning = {"precision": "int16", "label": {"max_abs": 4.0}}
    found.append(learning | {"learning": {"rule": "nlms"}})
    found += [learning | reduced("klms", technique=name) for name in ("nt", "fklms", "fmklms")]
    return specs(
        [*found, learning | reduced("klms", technique="fklms", projection="fklms"), learning | {"reduction": {}}]
    )


def int16_waves() -> list[Spec]:
    """Waves and vectors in int16, and the same waves in float32."""
    staged = {"label": {"max_abs": 4.0, "center": True, "gain": True}, "linear": {}}
    rule, precision = WIDTH | {"learning": {"rule": "spectrum-nlms"}}, {"precision": "int16"}
    real = rule | staged | {"input": {"dim": 3, "standardise": True, "clip": 3.0}}
    vectors = precision | {"label": {"max_abs": 4.0}, "reduction": {}}
    return specs([precision | rule | staged, precision | CLASSES, vectors, vectors | CLASSES, real])


def signals() -> list[Spec]:
    return [with_features(ALONE), *(spec for _, spec in measured())]


def demo() -> list[Spec]:
    return [default_spec()]


def monitor() -> list[Spec]:
    return [load_spec(ROOT / "examples" / "novelty" / "monitor.toml")]


def signal_examples() -> list[Spec]:
    return [load_spec(path) for path in sorted((ROOT / "examples" / "signals").glob("*.toml"))]


def features() -> list[Spec]:
    """The stage with everything in it, as the figures have it piece by piece."""
    every = {"features": get_args(FeatureName), "bands": [[1, 10]], "lags": [1], "differences": [1], "averages": [2]}
    signal = {"channels": ["a", "b"], "window": 16, "hop": 8, "rate": 100.0, "periods": [24]} | every
    return [make_spec({"name": "measured", "signal": signal, "learning": {"rule": "rls"}, "label": {"column": "y"}})]


def proved() -> list[Spec]:
    """What Frama-C analyses."""
    return [make_spec({"name": "m", **content}) for content in PROGRAMS.values()]


def finite() -> list[Spec]:
    """What it analyses for numbers that stay finite."""
    return [make_spec({"name": "m", **content}) for content in FINITE.values()]


MODELS = {
    made.__name__: made
    for made in (
        techniques,
        waves,
        class_waves,
        projections,
        recursive,
        linear,
        kernels,
        training,
        streaming,
        expansions,
        subspaces,
        default,
        alarms,
        int16,
        int16_waves,
        signals,
        demo,
        monitor,
        signal_examples,
        features,
        proved,
        finite,
    )
}

# ------------------------------------------------------------------------------------------------------ results

BASES, IMPORTERS = "pykernel.bases", "pykernel.importers.steps"
CLOSED_FORM = "pykernel.training.closed_form"
REDUCED, BKFE = "pykernel.training.reduced", "pykernel.training.bkfe"
LOW_RANK, SUBSPACE = "pykernel.training.low_rank", "pykernel.training.subspace"
FITTED = ("techniques", "recursive", "linear")


def paper(
    name: str,
    code: tuple[str, ...],
    modules: tuple[str, ...],
    figures: str,
) -> dict[str, Result]:
    """Numbers take long, what is drawn of them seconds."""
    command, tables = f"-m benchmarks.papers.{name.replace('-', '_')}", f"{name}/*.csv"
    return {
        name: Result(command, (tables,), code, modules, timed=True),
        f"{name}-figures": Result(f"{command} --show", (f"{name}/{figures}",), reads=(tables,)),
    }


RESULTS: dict[str, Result] = {
    "advice": Result(
        "-m benchmarks.host.advice_figures",
        ("advice/*.svg",),
        ("default", "techniques"),
        ("pykernel.host.advice",),
    ),
    "blas-kernels": Result(
        "-m benchmarks.host.blas_kernels",
        ("blas-kernels.csv",),
        (),
        ("pykernel.tuning.trials", "pykernel.training.vectors", "pykernel.estimators.trained"),
    ),
    "choosing-plan": Result(
        "-m benchmarks.host.choosing_figure",
        ("plan.png",),
        FITTED,
        ("pykernel.tuning.arms", "pykernel.tuning.combinations", "pykernel.tuning.plan", "pykernel.tuning.trials"),
        cost=True,
    ),
    "bounds": Result("-m benchmarks.device.bounds", ("bounds.csv",), FITTED, cost=True),
    "avr-bounds": Result("-m benchmarks.device.avr_bounds", ("avr-bounds.csv",), FITTED, cost=True),
    "proof": Result("-m benchmarks.device.proof", ("proof.csv",), ("proved",), cost=True),
    "finite": Result("-m benchmarks.device.proof --finite", ("finite.csv",), ("finite",), cost=True),
    "default-cost": Result("-m benchmarks.device.default_cost", ("default-cost.csv",), ("default",), cost=True),
    "demo": Result("-m benchmarks.host.readme_demo", ("demo.png", "demo.txt"), ("demo", "linear"), cost=True),
    "alarms": Result("-m benchmarks.host.alarms", ("alarms-lives.csv", "alarms-rivals.csv"), ("alarms",)),
    "first-faults": Result("-m benchmarks.host.first_faults", ("first-faults.csv",), ("default", "linear")),
    "first-results": Result(
        "-m benchmarks.host.first_results", ("first-results.csv",), ("default", "linear"), cost=True
    ),
    "held-back": Result(
        "-m benchmarks.host.held_back",
        ("held-back.csv",),
        ("default", "linear", "waves", "class_waves", "recursive"),
    ),
    # river's models, not ours: only another script or other streams make it stale
    "held-back-river": Result("-m benchmarks.host.held_back --river", ("held-back-river.csv",)),
    "late-labels": Result(
        "-m benchmarks.host.late_labels",
        ("late-labels.csv",),
        ("default", "linear", "waves", "class_waves", "recursive"),
    ),
    "column-order": Result(
        "-m benchmarks.host.column_order",
        ("column-order.csv", "chosen-seed.csv"),
        ("default", "linear", "waves", "recursive"),
    ),
    "rare-classes": Result(
        "-m benchmarks.host.rare_classes",
        ("rare-classes.csv",),
        ("default", "class_waves"),
    ),
    "import-errors": Result("-m benchmarks.host.import_errors", ("import-errors.csv",), ("kernels",), (IMPORTERS,)),
    "imported-instructions": Result(
        "-m benchmarks.device.imported_instructions", ("imported-instructions.csv",), ("kernels",), cost=True
    ),
    "kernel-costs": Result("-m benchmarks.device.kernel_costs", ("kernel-costs.csv",), ("kernels",), cost=True),
    "limits": Result("-m benchmarks.device.limits", ("limits.csv",), ("techniques", "recursive")),
    "long": Result(
        "-m benchmarks.host.long",
        ("long.csv",),
        ("techniques", "recursive", "linear", "waves", "expansions", "streaming", "subspaces", "default", "monitor"),
    ),
    "missing": Result(
        "-m benchmarks.host.missing",
        ("missing.csv",),
        ("default", "waves"),
        ("pykernel.algorithms.missing",),
    ),
    "novelty-tour": Result(
        "examples/novelty/run.py -o build/novelty --docs docs/data/novelty",
        ("novelty/alarms.svg", "novelty/output.txt"),
        ("monitor",),
        cost=True,
    ),
    **paper("paper-000", (), (BASES,), "*.png"),
    **paper("paper-001", ("subspaces", "streaming"), (BKFE, SUBSPACE), "*.svg"),
    **paper("paper-002", (), (BASES, REDUCED, LOW_RANK), "*.png"),
    "paper-003": Result("-m benchmarks.papers.paper_003", ("paper-003/*",), ("techniques", "projections"), cost=True),
    "paper-004": Result("-m benchmarks.papers.paper_004", ("paper-004/*",), (), (CLOSED_FORM,), timed=True),
    "pairs": Result("-m benchmarks.host.pairs", ("pairs.csv",), ("techniques", "projections")),
    "peers": Result(
        "-m benchmarks.device.peers",
        ("peers.csv",),
        ("default", "kernels", "int16"),
        ("pykernel.tuning.trials", "pykernel.training.vectors", "pykernel.estimators.trained"),
        reads=("blas-kernels.csv",),
        cost=True,
    ),
    "pictures": Result(
        "-m benchmarks.host.pictures", ("pictures/*.svg",), ("default", "techniques"), reads=("plan-promises.csv",)
    ),
    "plan-promises": Result(
        "-m benchmarks.host.plan_promises",
        ("plan-promises.csv",),
        FITTED,
        tuple(f"pykernel.tuning.{name}" for name in ("arms", "combinations", "plan", "promises", "trials")),
    ),
    "preset-instructions": Result(
        "-m benchmarks.device.preset_instructions", ("preset-instructions.csv",), FITTED, cost=True
    ),
    "signal-cost": Result(
        "-m benchmarks.device.signal_cost", ("signal-cost.csv", "signal-memory.csv"), ("signals",), cost=True
    ),
    "river-accuracy": Result("-m benchmarks.host.river_accuracy", ("river-accuracy.csv",), ("default",)),
    "river-overhead": Result(
        "-m benchmarks.host.river_overhead",
        ("river-overhead.csv",),
        ("default",),
        ("pykernel.river", "pykernel.host.single"),
        cost=True,
        timed=True,
    ),
    "signals": Result("-m examples.signals.study", ("signals/*.csv",), ("signal_examples", "linear")),
    "signals-figures": Result("-m examples.signals.figures", ("signals/*.svg",), ("features",)),
    "heads": Result("-m benchmarks.host.heads", ("heads.csv", "head-costs.csv"), ("default", "expansions"), cost=True),
    "rule-front": Result(
        "-m benchmarks.host.rule_front",
        ("rule-front.csv",),
        ("default", "techniques", "recursive"),
        cost=True,
    ),
    "streaming-cost": Result("-m benchmarks.device.streaming_cost", ("streaming-cost.csv",), ("streaming",), cost=True),
    "training-cost": Result("-m benchmarks.device.training_cost", ("training-cost.csv",), ("training",), cost=True),
    "training-limits": Result("-m benchmarks.device.training_limits", ("training-limits.csv",), ("training",)),
    "int16": Result(
        "-m benchmarks.device.int16",
        ("int16.csv",),
        ("int16", "int16_waves"),
        (
            "pykernel.spec.families.int16",
            "pykernel.spec.families.int16_scales",
            "pykernel.spec.families.int16_errors",
            "pykernel.spec.families.int16_online",
        ),
        cost=True,
    ),
}
TREE = Tree(ROOT, RESULTS, MODELS)
