"""Every result in docs/data: the command that makes it, how long that takes, and what it measures.

    make stale                      # which are stale, and why
    make remeasure CLASS=seconds    # run what is stale and takes seconds; without CLASS: hours, minutes, seconds

"takes" is for one thread, with what Numba compiles kept from another run.  ``benchmarks/provenance.py`` says what counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal, get_args

from benchmarks.device.proof import FINITE, PROGRAMS
from benchmarks.device.signal_cost import ALONE, measured, with_features
from benchmarks.host.whole_subspace import GEARBOX
from benchmarks.provenance import ROOT, Result, Tree
from pykernel.algorithms.kernel_choice import KERNEL_RULES
from pykernel.algorithms.online.projections import PROJECTIONS
from pykernel.algorithms.online.techniques import TECHNIQUES
from pykernel.host.bikeshare import default_spec
from pykernel.spec.families.expansion import INT16_EXPANSION_MODELS
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


def covered() -> list[Spec]:
    """Models with intervals."""
    learning = [
        {"learning": {"rule": rule}} | (WIDTH if rule != "rls" else {})
        for rule in ("klms", "spectrum-ekf", "spectrum-nlms", "rls")
    ]
    return specs({"interval": {}} | content for content in [{}, {"target": {"ram": 1}}, *learning])


def alarms() -> list[Spec]:
    return specs([{"novelty": {}}])


def whole() -> list[Spec]:
    """Models of whole numbers."""
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


def whole_waves() -> list[Spec]:
    """Waves in whole numbers, vectors in whole numbers, and the same waves in float32."""
    staged = {"label": {"max_abs": 4.0, "center": True, "gain": True}, "linear": {}}
    rule, precision = WIDTH | {"learning": {"rule": "spectrum-nlms"}}, {"precision": "int16"}
    real = rule | staged | {"input": {"dim": 3, "standardise": True, "clip": 3.0}}
    vectors = precision | {"label": {"max_abs": 4.0}, "reduction": {}}
    return specs([precision | rule | staged, precision | CLASSES, vectors, vectors | CLASSES, real])


def whole_expansions() -> list[Spec]:
    """Trained machines of whole numbers that go on learning, and linear models, by each rule."""
    whole: dict[str, Any] = {"precision": "int16", "label": {"max_abs": 4.0}}
    trained = WIDTH | whole | {"expansion": WEIGHTED}
    lines = [each | {"learning": {"rule": rule}} for each in (whole, {}) for rule in ("nlms", "rls")]
    return specs([*lines, *(trained | {"learning": {"rule": rule}} for rule in INT16_EXPANSION_MODELS[0].rules)])


def signals() -> list[Spec]:
    return [with_features(ALONE), *(spec for _, spec in measured())]


def demo() -> list[Spec]:
    return [default_spec()]


def gearbox() -> list[Spec]:
    """The subspace whose numbers whole_subspace.py rounds."""
    return [make_spec(GEARBOX)]


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
        covered,
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
        whole,
        whole_waves,
        whole_expansions,
        signals,
        demo,
        gearbox,
        monitor,
        signal_examples,
        features,
        proved,
        finite,
    )
}

# ------------------------------------------------------------------------------------------------------ results

BASES, IMPORTERS = "pykernel.bases", "pykernel.importers.steps"
CLOSED_FORM, SELECTION = "pykernel.training.closed_form", "pykernel.training.selection"
REDUCED, BKFE = "pykernel.training.reduced", "pykernel.training.bkfe"
LOW_RANK, SUBSPACE = "pykernel.training.low_rank", "pykernel.training.subspace"
FITTED = ("techniques", "recursive", "linear")


def paper(
    name: str,
    code: tuple[str, ...],
    modules: tuple[str, ...],
    figures: str,
    takes: Literal["minutes", "hours"] = "hours",
    cost: bool = False,
) -> dict[str, Result]:
    """Numbers take long, what is drawn of them seconds."""
    command, tables = f"-m benchmarks.papers.{name.replace('-', '_')}", f"{name}/*.csv"
    return {
        name: Result(command, (tables,), takes, code, modules, cost=cost),
        f"{name}-figures": Result(f"{command} --show", (f"{name}/{figures}",), "seconds", reads=(tables,)),
    }


RESULTS: dict[str, Result] = {
    "accuracy": Result("-m benchmarks.host.accuracy_table", ("accuracy.*",), "hours", FITTED),
    "advice": Result(
        "-m benchmarks.host.advice_figures",
        ("advice/*.svg",),
        "seconds",
        ("default", "techniques"),
        ("pykernel.host.advice",),
    ),
    "alarm-plan": Result(
        "-m benchmarks.host.alarms.plan_truth",
        ("alarm-plan.csv",),
        "minutes",
        ("alarms",),
        ("pykernel.tuning.arms", "pykernel.tuning.faults", "pykernel.tuning.plan", "pykernel.tuning.trials"),
    ),
    "basis-table": Result("-m benchmarks.host.basis_table", ("basis-table.*",), "minutes", (), (BASES,)),
    "change": Result("-m benchmarks.host.change", ("change.csv",), "minutes", (*FITTED, "streaming", "subspaces")),
    "choosing-plan": Result(
        "-m benchmarks.host.choosing_figure",
        ("plan.png",),
        "minutes",
        FITTED,
        ("pykernel.tuning.arms", "pykernel.tuning.combinations", "pykernel.tuning.plan", "pykernel.tuning.trials"),
        cost=True,
    ),
    "bounds": Result("-m benchmarks.device.bounds", ("bounds.csv", "marks.csv"), "minutes", FITTED, cost=True),
    "avr-bounds": Result("-m benchmarks.device.avr_bounds", ("avr-bounds.csv",), "minutes", FITTED, cost=True),
    "proof": Result("-m benchmarks.device.proof", ("proof.csv",), "minutes", ("proved",), cost=True),
    "finite": Result("-m benchmarks.device.proof --finite", ("finite.csv",), "minutes", ("finite",), cost=True),
    "default-cost": Result(
        "-m benchmarks.device.default_cost", ("default-cost.csv",), "minutes", ("default",), cost=True
    ),
    "demo": Result("-m benchmarks.host.readme_demo", ("demo.png",), "minutes", ("demo", "linear"), cost=True),
    "distilled": Result(
        "-m benchmarks.host.distilled",
        ("distilled.csv", "distilled-rows.csv"),
        "minutes",
        (),
        ("pykernel.training.distilled", "pykernel.training.vectors"),
    ),
    "efvs-speed": Result("-m benchmarks.host.efvs_speed", ("efvs-speed.csv",), "minutes", (), (BASES,)),
    "alarms": Result(
        "-m benchmarks.host.alarms.run",
        ("alarms.csv", "alarms-rates.csv", "alarms-settings.csv"),
        "minutes",
        ("alarms",),
    ),
    # run once on machines that choose nothing: ``--held``
    "alarms-held": Result(
        "-m benchmarks.host.alarms.run --held",
        ("alarms-held.csv", "alarms-held-rates.csv"),
        "minutes",
        ("alarms",),
    ),
    "alarms-blame-held": Result(
        "-m benchmarks.host.alarms.blame --held", ("alarms-blame-held.csv",), "minutes", ("alarms",)
    ),
    "alarms-blame": Result(
        "-m benchmarks.host.alarms.blame",
        ("alarms-blame.csv",),
        "minutes",
        ("alarms",),
        ("benchmarks.host.alarms.plants", "benchmarks.host.alarms.held_plants"),
    ),
    "alarms-blame-recorded": Result(
        "-m benchmarks.host.alarms.blame --recorded recordings", ("alarms-blame-recorded.csv",), "minutes", ("alarms",)
    ),
    "alarms-fan": Result("-m benchmarks.host.alarms.fan", ("alarms-fan.csv",), "minutes", ("alarms",)),
    "alarms-whole": Result(
        "-m benchmarks.host.alarms.whole_numbers",
        ("alarms-whole.csv",),
        "minutes",
        ("alarms",),
        ("benchmarks.host.alarms.plants",),
    ),
    "alarms-ours": Result("-m benchmarks.host.alarms.ours", ("alarms-ours.csv",), "minutes", ("alarms",)),
    "alarms-lives": Result("-m benchmarks.host.alarms.lives", ("alarms-lives.csv",), "minutes", ("alarms",)),
    # data of others: whoever has them gives their folders
    "alarms-theirs": Result(
        "-m benchmarks.host.alarms.theirs",
        ("alarms-theirs.csv",),
        "minutes",
        ("alarms",),
        reads=("alarms-settings.csv",),
    ),
    "first-faults": Result("-m benchmarks.host.first_faults", ("first-faults.csv",), "seconds", ("default", "linear")),
    "first-results": Result(
        "-m benchmarks.host.first_results", ("first-results.csv",), "minutes", ("default", "linear"), cost=True
    ),
    # river's models, not ours: only another script or other streams make it stale
    "first-river": Result("-m benchmarks.host.first_results --river", ("first-river.csv",), "hours"),
    "flat-cost": Result("-m benchmarks.host.flat_cost", ("flat-cost.csv",), "minutes", (), (BASES,)),
    "fronts": Result(
        "-m benchmarks.device.fronts",
        ("fronts.csv",),
        "minutes",
        ("kernels", "whole"),
        ("pykernel.training.vectors", "pykernel.estimators.trained"),
        cost=True,
    ),
    "fronts-page": Result("-m benchmarks.device.fronts_page", ("fronts.svg",), "seconds", reads=("fronts.csv",)),
    "grid-search": Result(
        "-m benchmarks.host.grid_search", ("grid-search.*",), "minutes", (), (SELECTION, CLOSED_FORM)
    ),
    "held-back": Result(
        "-m benchmarks.host.held_back",
        ("held-back.csv",),
        "minutes",
        ("default", "linear", "waves", "class_waves", "recursive"),
    ),
    # river's models, not ours, like first-river
    "held-back-river": Result("-m benchmarks.host.held_back --river", ("held-back-river.csv",), "minutes"),
    "late-labels": Result(
        "-m benchmarks.host.late_labels",
        ("late-labels.csv",),
        "seconds",
        ("default", "linear", "waves", "class_waves", "recursive"),
    ),
    "column-order": Result(
        "-m benchmarks.host.column_order",
        ("column-order.csv", "chosen-seed.csv"),
        "seconds",
        ("default", "linear", "waves", "recursive"),
    ),
    "rare-classes": Result(
        "-m benchmarks.host.rare_classes",
        ("rare-classes.csv",),
        "seconds",
        ("default", "class_waves"),
    ),
    "rare-classes-trained": Result(
        "-m benchmarks.host.rare_classes --trained",
        ("rare-classes-trained.csv",),
        "minutes",
        ("training",),
    ),
    "import-errors": Result(
        "-m benchmarks.host.import_errors", ("import-errors.csv",), "seconds", ("kernels",), (IMPORTERS,)
    ),
    "imported-instructions": Result(
        "-m benchmarks.device.imported_instructions", ("imported-instructions.csv",), "minutes", ("kernels",), cost=True
    ),
    "kernel-costs": Result(
        "-m benchmarks.device.kernel_costs", ("kernel-costs.csv",), "seconds", ("kernels",), cost=True
    ),
    "limits": Result("-m benchmarks.device.limits", ("limits.csv",), "seconds", ("techniques", "recursive")),
    "long": Result(
        "-m benchmarks.host.long",
        ("long.csv",),
        "hours",
        ("techniques", "recursive", "linear", "waves", "expansions", "streaming", "subspaces", "default", "monitor"),
    ),
    "loo-digits": Result("-m benchmarks.host.loo_digits", ("loo-digits.csv",), "minutes", (), (CLOSED_FORM,)),
    "loo-speed": Result("-m benchmarks.host.loo_speed", ("loo-speed.*",), "minutes", (), (CLOSED_FORM,)),
    "million-rows": Result("-m benchmarks.host.million_rows", ("million-rows.csv",), "hours", (), (BASES,)),
    # data of others: whoever has them gives their folders
    "merging": Result(
        "-m benchmarks.host.merging",
        ("merging.csv",),
        "minutes",
        ("recursive", "linear"),
        ("pykernel.host.merging",),
    ),
    "personal": Result(
        "-m benchmarks.host.personal",
        ("personal.csv",),
        "minutes",
        ("recursive", "expansions", "default"),
        ("pykernel.host.merging", "pykernel.estimators.trained"),
    ),
    "plan-devices": Result(
        "-m benchmarks.host.plan_devices",
        ("plan-devices.csv",),
        "minutes",
        ("recursive", "linear", "waves", "techniques"),
        ("pykernel.tuning.plan", "pykernel.tuning.trials", "pykernel.tuning.promises"),
    ),
    "missing": Result(
        "-m benchmarks.host.missing",
        ("missing.csv",),
        "minutes",
        ("default", "waves"),
        ("pykernel.algorithms.missing",),
    ),
    "model-selection": Result(
        "-m benchmarks.host.model_selection",
        ("optimism.csv",),
        "minutes",
        (),
        (SELECTION, CLOSED_FORM),
    ),
    "novelty-tour": Result(
        "examples/novelty/run.py -o build/novelty --docs docs/data/novelty",
        ("novelty/alarms.svg", "novelty/output.txt"),
        *("minutes", ("monitor",)),
        cost=True,
    ),
    "pairs": Result("-m benchmarks.host.pairs", ("pairs.csv",), "minutes", ("techniques", "projections")),
    **paper("paper-000", (), (BASES,), "*.png"),
    **paper("paper-001", ("subspaces", "streaming"), (BKFE, SUBSPACE), "*.svg"),
    **paper("paper-001-more", ("subspaces",), (BKFE, SUBSPACE), "*.svg", "minutes"),
    **paper("paper-002", (), (BASES, REDUCED, LOW_RANK), "*.png"),
    "paper-003": Result(
        "-m benchmarks.papers.paper_003", ("paper-003/*",), "hours", ("techniques", "projections"), cost=True
    ),
    **paper("paper-003-changing", ("techniques", "projections"), (), "*.png", "minutes", cost=True),
    "paper-004": Result("-m benchmarks.papers.paper_004", ("paper-004/*",), "hours", (), (CLOSED_FORM,)),
    "peers": Result(
        "-m benchmarks.device.peers",
        ("peers.csv",),
        "minutes",
        ("default", "kernels", "whole"),
        ("pykernel.tuning.trials", "pykernel.training.vectors", "pykernel.estimators.trained"),
        cost=True,
    ),
    "plan-promises": Result(
        "-m benchmarks.host.plan_promises",
        ("plan-promises.csv",),
        "minutes",
        FITTED,
        tuple(f"pykernel.tuning.{name}" for name in ("arms", "combinations", "plan", "promises", "trials")),
    ),
    "preconditioner": Result(
        "-m benchmarks.host.preconditioner", ("preconditioner.csv",), "minutes", (), (BASES, REDUCED, LOW_RANK)
    ),
    "preset-instructions": Result(
        "-m benchmarks.device.preset_instructions", ("preset-instructions.csv",), "hours", FITTED, cost=True
    ),
    "searches": Result("-m benchmarks.host.searches", ("searches.csv",), "minutes", ("techniques",)),
    "report": Result(
        "-m benchmarks.report",
        ("report.svg",),
        "seconds",
        reads=(
            *("bounds.csv", "whole-numbers.csv", "first-results.csv", "first-river.csv"),
            *("peers.csv", "signal-cost.csv"),
        ),
    ),
    "signal-cost": Result(
        "-m benchmarks.device.signal_cost", ("signal-cost.csv", "signal-memory.csv"), "minutes", ("signals",), cost=True
    ),
    "river-accuracy": Result("-m benchmarks.host.river_accuracy", ("river-accuracy.csv",), "minutes", ("default",)),
    "river-overhead": Result(
        "-m benchmarks.host.river_overhead",
        ("river-overhead.csv",),
        "minutes",
        ("default",),
        ("pykernel.river", "pykernel.host.single"),
        cost=True,
    ),
    "signals": Result("-m examples.signals.study", ("signals/*.csv",), "minutes", ("signal_examples", "linear")),
    "signals-figures": Result("-m examples.signals.figures", ("signals/*.svg",), "seconds", ("features",)),
    "heads": Result(
        "-m benchmarks.host.heads", ("heads.csv", "head-costs.csv"), "minutes", ("default", "expansions"), cost=True
    ),
    "learned-vectors": Result(
        "-m benchmarks.host.learned_vectors", ("learned-vectors.csv",), "minutes", ("default", "expansions")
    ),
    "intervals": Result("-m benchmarks.host.intervals", ("intervals.csv",), "minutes", ("covered",)),
    "skfa": Result("-m benchmarks.host.skfa", ("skfa.csv", "skfa.png"), "minutes", (), (BASES, BKFE, SUBSPACE)),
    "svm": Result("-m benchmarks.host.svm", ("svm.csv",), "minutes", (), (BASES, LOW_RANK, "pykernel.training.svm")),
    "lp": Result(
        "-m benchmarks.host.lp",
        ("lp.csv", "lp-rounds.csv"),
        "minutes",
        (),
        (BASES, REDUCED, *(f"pykernel.training.{name}" for name in ("lp", "svm", "trained", "vectors"))),
    ),
    "swaps": Result("-m benchmarks.host.swaps", ("swaps.csv",), "minutes", (), (BASES,)),
    "rule-front": Result(
        "-m benchmarks.host.rule_front",
        ("rule-front.csv",),
        "minutes",
        ("default", "techniques", "recursive"),
        cost=True,
    ),
    "class-front": Result(
        "-m benchmarks.host.class_front", ("class-front.csv",), "minutes", ("default", "class_waves")
    ),
    "class-probability": Result(
        "-m benchmarks.host.class_probability", ("class-probability.csv",), "minutes", ("default", "class_waves")
    ),
    "spectrum-front": Result(
        "-m benchmarks.host.spectrum_front", ("spectrum-front.csv",), "minutes", ("default", "waves"), cost=True
    ),
    "spectrum-stability": Result(
        "-m benchmarks.host.spectrum_stability", ("spectrum-stability.csv",), "hours", ("waves", "class_waves")
    ),
    "spectrum-whole": Result(
        "-m benchmarks.host.spectrum_whole", ("spectrum-whole.csv",), "minutes", ("whole_waves",), cost=True
    ),
    "streaming-cost": Result(
        "-m benchmarks.device.streaming_cost", ("streaming-cost.csv",), "minutes", ("streaming",), cost=True
    ),
    "streaming-quality": Result(
        "-m benchmarks.host.streaming_quality", ("streaming-quality.csv",), "minutes", ("streaming",), (BASES,)
    ),
    "subspace-device": Result(
        "-m benchmarks.device.subspace_cost", ("subspace-device.csv",), "hours", ("subspaces",), cost=True
    ),
    "subspace-drift": Result("-m benchmarks.host.subspace_drift", ("subspace-drift.csv",), "minutes", ("subspaces",)),
    "subspace-baselines": Result(
        "-m benchmarks.host.subspace_baselines", ("subspace-baselines.csv",), "hours", ("subspaces",), (BKFE, SUBSPACE)
    ),
    "subspaces": Result(
        "-m benchmarks.host.subspace_guide",
        ("subspaces-*.csv",),
        "minutes",
        ("subspaces",),
        (BKFE, SUBSPACE),
        cost=True,
    ),
    "taken-cell": Result("-m benchmarks.host.taken_cell", ("taken-cell.csv",), "minutes", (), (SELECTION, CLOSED_FORM)),
    "training-cost": Result(
        "-m benchmarks.device.training_cost", ("training-cost.csv",), "minutes", ("training",), cost=True
    ),
    "training-limits": Result(
        "-m benchmarks.device.training_limits", ("training-limits.csv",), "seconds", ("training",)
    ),
    "update-cost": Result(
        "-m benchmarks.host.update_cost", ("update-cost.*",), "minutes", ("techniques", "recursive"), cost=True
    ),
    "trained-vectors": Result(
        "-m benchmarks.host.trained_vectors",
        ("trained-vectors.csv",),
        "hours",
        (),
        ("pykernel.training.vectors", "pykernel.estimators.trained"),
    ),
    "trained-vectors-goals": Result(
        "-m benchmarks.host.trained_vectors_goals",
        ("trained-vectors-goals.csv",),
        "hours",
        (),
        (
            "pykernel.training.vectors",
            "pykernel.estimators.trained",
            "pykernel.spec.families.int16",
            "pykernel.spec.families.int16_scales",
            "pykernel.spec.families.int16_errors",
        ),
    ),
    "trained-vectors-trials": Result(
        "-m benchmarks.host.trained_vectors_trials",
        ("trained-vectors-trials.csv",),
        "minutes",
        (),
        (
            "pykernel.training.vectors",
            "pykernel.estimators.trained",
            "pykernel.spec.families.int16",
            "pykernel.spec.families.int16_scales",
            "pykernel.spec.families.int16_errors",
        ),
    ),
    "trained-vectors-page": Result(
        "-m benchmarks.host.trained_vectors_page", (), "seconds", (), (), ("trained-vectors.csv",)
    ),
    "whole-numbers": Result(
        "-m benchmarks.device.whole_numbers",
        ("whole-numbers.csv",),
        "minutes",
        ("whole", "whole_waves"),
        (
            "pykernel.spec.families.int16",
            "pykernel.spec.families.int16_scales",
            "pykernel.spec.families.int16_errors",
            "pykernel.spec.families.int16_online",
        ),
        cost=True,
    ),
    "whole-expansion": Result(
        "-m benchmarks.host.whole_expansion",
        ("whole-expansion.csv",),
        "minutes",
        ("expansions", "whole_expansions"),
        ("pykernel.estimators.trained", "pykernel.training.vectors"),
        cost=True,
    ),
    "whole-subspace": Result("-m benchmarks.host.whole_subspace", ("whole-subspace.csv",), "seconds", ("gearbox",), ()),
    # pages that sum up what others measured
    "subspace-summary": Result(
        "-m benchmarks.host.subspace_summary",
        *((), "seconds", (), ()),
        tuple(f"subspace-{name}.csv" for name in ("device", "drift", "baselines")),
    ),
}
TREE = Tree(ROOT, RESULTS, MODELS)
