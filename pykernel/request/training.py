"""Settings for training on a table: keys of ``--set``, arguments of ``pykernel.fit``, and the section ``[training]`` of a spec."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pykernel.request.kinds import Numbers
from pykernel.request.option import Opt


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Training:
    """The keys of ``[training]``."""

    model: Annotated[
        str | None,
        Opt(
            "Model: kfd, ls-svm, krr, svm, lp, trained or network; with a basis, krr or ls-svm.",
            "MODEL",
            key="training.model",
            without="kfd for classes, ls-svm for numbers, krr for a rule that learns",
        ),
    ] = None
    normalise: Annotated[
        bool,
        Opt(
            "Select a basis with the kernel k(a, b) / sqrt(k(a, a) k(b, b)); only for polynomial and linear.",
            "BOOL",
            key="training.normalise",
        ),
    ] = False
    ridge: Annotated[
        Numbers, Opt("Ridges to try; for svm and lp, 1/C.", "R,R", key="training.ridge", without="by the data")
    ] = None
    coding: Annotated[
        Literal["counts", "signs"] | None,
        Opt(
            "Targets for the classes: computed from the class counts, or +1 and -1.",
            "counts|signs",
            key="training.coding",
            without="counts for kfd, signs for the others",
        ),
    ] = None
    method: Annotated[
        str | None,
        Opt(
            "Method that selects the vectors: efvs, sgma, … (docs/bases.md).",
            "METHOD",
            key="training.method",
            without="auto",
        ),
    ] = None
    with_: Annotated[
        str | dict[str, Any] | None,
        Opt(
            "Options of the method, and epsilon and swaps (docs/bases.md).",
            "KEY=V,KEY=V",
            key="training.with",
            without="none",
        ),
    ] = None
    weights: Annotated[
        Numbers,
        Opt(
            'Weight for the rows of each class, in the order of the classes, or "balanced"; not for kfd.',
            "W,W",
            key="training.weights",
            without="all rows alike",
        ),
    ] = None
    cv: Annotated[
        str | int,
        Opt(
            "Cross-validation: leave-one-out or S folds; kept: with kfd, the row left out remains a vector.",
            "deleted|kept|S",
            key="training.cv",
        ),
    ] = "deleted"
    by: Annotated[
        Literal["error", "press"] | None,
        Opt(
            "Criterion by which width and ridge are chosen.",
            "error|press",
            key="training.by",
            without="error for classes, press for numbers",
        ),
    ] = None
    loss: Annotated[
        Literal["squared", "absolute"] | None,
        Opt(
            "trained: training loss, if labels are numbers.",
            "squared|absolute",
            key="training.loss",
            without="squared",
        ),
    ] = None
    features: Annotated[
        int | None,
        Opt(
            "Without a label: compute R features of a subspace (BKFE) instead of the coordinates.",
            "R",
            key="training.features",
            without="none",
        ),
    ] = None
    shrinkage: Annotated[
        float, Opt("With training.features: amount subtracted from each singular value.", "L", key="training.shrinkage")
    ] = 0.1
    candidates: Annotated[
        int,
        Opt(
            "efvs, sgma: number of candidate rows for each new vector; 0: all rows.",
            "K",
            key="training.candidates",
            least=0,
        ),
    ] = 59
    points: Annotated[
        int,
        Opt("efvs: number of rows on which the candidates are compared; 0: all.", "V", key="training.points", least=0),
    ] = 59
    tau: Annotated[
        float,
        Opt("Stop selecting vectors when they leave out at most the fraction T; 0: never.", "T", key="training.tau"),
    ] = 0.0
    confidence: Annotated[
        float | None,
        Opt(
            "Stop at training.tau=T only if, with probability P, at most T is left out.",
            "P",
            key="training.confidence",
            without="the estimated fraction decides",
        ),
    ] = None
    standardise: Annotated[
        bool | None,
        Opt(
            "Scale each input to mean 0 and standard deviation 1, on the device too.",
            "BOOL",
            key="training.standardise",
            without="if their scales differ",
        ),
    ] = None
