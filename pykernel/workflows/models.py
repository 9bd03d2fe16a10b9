"""Convert the models that a workflow accepts (a spec, an estimator or a pipeline) to a spec and the learned state."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Protocol

from pykernel.errors import UserError
from pykernel.request.option import Arg, Opt, Py
from pykernel.telling import Watch

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from pykernel.dialect import Memory
    from pykernel.host.recording import Recording
    from pykernel.spec.model import Spec


class Fitted(Protocol):
    """A fitted estimator.  An estimator that learns sample by sample also has ``model_``, a HostModel."""

    @property
    def spec_(self) -> Spec: ...


if TYPE_CHECKING:
    Model = Spec | Fitted
    TheSpec = Spec
    Rows = str | Path | tuple[ArrayLike, ArrayLike]
    Data = Recording | Sequence[str | Path]
    State = Memory
    Stream = Any
else:  # these are Any at run time, because importing a request's types would be slow
    Model = TheSpec = Rows = Recording = Data = State = Stream = Any

TAKES = "Or a Spec, or a fitted estimator: the device starts from what the estimator has learned."
GivenModel = Annotated[Model, Arg("The model, a TOML file.", "SPEC", reads="spec", kind=Path, more=TAKES)]
Start = Annotated[
    Recording | None,
    Opt(
        "Start from this state, or learn these rows first.",
        "FILE",
        kind=Path,
        elsewhere=("--data",),
        more="Or arrays (x, y).",
    ),
]
Watched = Annotated[Watch, Py("Object that receives progress and messages.")]


def spec_and_memory(model: Any, name: str | None = None) -> tuple[Spec, Memory | None]:
    """Return a model's spec (with the given name, if any) and the model's learned state (None if there is none)."""
    from pykernel.spec.model import Spec, make_spec

    if type(model).__module__.startswith("sklearn.model_selection."):  # a search for parameters
        if not hasattr(model, "best_estimator_"):
            raise UserError(
                f"the {type(model).__name__} has no best estimator; make it with refit=True, which is the default, and call its fit first"
            )
        return spec_and_memory(model.best_estimator_, name)
    try:
        spec = model if isinstance(model, Spec) else model.spec_
    except AttributeError as error:
        if isinstance(error, UserError):  # a fitted estimator's message says why it has no spec
            raise
        spec = None
    if not isinstance(model, Spec) and hasattr(model, "steps"):
        return _pipeline(model, "model" if name is None else name)
    if spec is None and hasattr(model, "to_spec"):
        ways = [name for name in ("learn_one", "fit", "partial_fit") if hasattr(model, name)]
        raise UserError(f"the {type(model).__name__} has learned nothing yet; call its {' or '.join(ways)} first")
    if spec is None:
        raise UserError(
            f"a {type(model).__name__} is not a model; give a Spec (load_spec reads one from a file, "
            "from_sklearn makes one from a scikit-learn model) or a fitted pykernel estimator, such "
            "as a BudgetedKernelRegressor, alone or after scalers in a pipeline"
        )
    if name is not None:
        named = make_spec({**spec.model_dump(exclude_unset=True), "name": name}, custom=spec.custom)
        spec = spec.model_copy(update={"name": named.name})
    return spec, model.model_.memory if hasattr(model, "model_") else None  # a spec, or a frozen model, has no state


def need_ram(spec: Spec) -> None:
    """Raise UserError for a model that needs more RAM than the spec's [target] allows."""
    if spec.target is not None:
        from pykernel.spec.summary import less_memory
        from pykernel.targets.check import exceeded
        from pykernel.tuning.costs import memory_bytes

        for sentence in exceeded(spec, memory_bytes(spec)):
            raise UserError(f"{sentence}: allow more, or {less_memory(spec)}")


def _pipeline(pipeline: Any, name: str) -> tuple[Spec, Memory | None]:
    """Return a spec that takes a fitted pipeline's inputs, and the learned state (None unless the model learns sample by sample)."""
    from sklearn.pipeline import Pipeline  # type: ignore[import-untyped]

    from pykernel.importers import importing, steps
    from pykernel.importers.sklearn import LEARNS

    if isinstance(pipeline.steps, dict):  # a River pipeline
        raise UserError(
            "a River Pipeline has steps that learn, which cannot be translated to C; give a model of pykernel.river that "
            "was trained on raw inputs; unless the parameter rule is given, it standardises them by running means and standard deviations"
        )
    *before, (_, model) = steps.steps_of(pipeline)
    if not hasattr(type(model), LEARNS):
        return importing.from_sklearn(pipeline, name), None
    if not hasattr(model, "model_"):
        raise UserError(f"the {type(model).__name__} has learned nothing yet; call its fit or partial_fit first")
    if not before:
        return model.to_spec(name), model.model_.memory
    spec, memory = getattr(model, LEARNS)(name, Pipeline(before))
    return spec, memory
