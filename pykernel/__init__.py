"""Kernel models that keep learning on a microcontroller: one source for the host and for C on the device."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Protocol

    from pykernel.bases.basis import Basis as Basis
    from pykernel.bases.gram import MercerKernel as MercerKernel
    from pykernel.bases.select import select_basis as select_basis
    from pykernel.dialect import Memory
    from pykernel.estimators.basis import KernelBasis as KernelBasis
    from pykernel.estimators.batch import KernelFisherClassifier as KernelFisherClassifier
    from pykernel.estimators.batch import KernelRidgeClassifier as KernelRidgeClassifier
    from pykernel.estimators.batch import KernelRidgeRegressor as KernelRidgeRegressor
    from pykernel.estimators.batch import LSSVMClassifier as LSSVMClassifier
    from pykernel.estimators.batch import LSSVMRegressor as LSSVMRegressor
    from pykernel.estimators.online import BudgetedKernelClassifier as BudgetedKernelClassifier
    from pykernel.estimators.online import BudgetedKernelRegressor as BudgetedKernelRegressor
    from pykernel.estimators.signal import SignalFeatures as SignalFeatures
    from pykernel.estimators.subspace import KernelSubspace as KernelSubspace
    from pykernel.estimators.subspace import OnlineKernelSubspace as OnlineKernelSubspace
    from pykernel.estimators.subspace import OnlineSubspaceClassifier as OnlineSubspaceClassifier
    from pykernel.estimators.subspace import OnlineSubspaceRegressor as OnlineSubspaceRegressor
    from pykernel.estimators.trained import TrainedKernelClassifier as TrainedKernelClassifier
    from pykernel.estimators.trained import TrainedKernelRegressor as TrainedKernelRegressor
    from pykernel.gen.check import Report
    from pykernel.gen.project import Generated
    from pykernel.host.model import HostModel as HostModel
    from pykernel.spec.model import Spec as Spec
    from pykernel.spec.model import load_spec as load_spec

    __version__: str

    class Fitted(Protocol):
        """With ``model_``, a HostModel, if it goes on learning."""

        @property
        def spec_(self) -> Spec: ...


__all__ = [
    "Basis",
    "BudgetedKernelClassifier",
    "BudgetedKernelRegressor",
    "HostModel",
    "KernelBasis",
    "KernelFisherClassifier",
    "KernelRidgeClassifier",
    "KernelRidgeRegressor",
    "KernelSubspace",
    "LSSVMClassifier",
    "LSSVMRegressor",
    "MercerKernel",
    "OnlineKernelSubspace",
    "OnlineSubspaceClassifier",
    "OnlineSubspaceRegressor",
    "SignalFeatures",
    "Spec",
    "TrainedKernelClassifier",
    "TrainedKernelRegressor",
    "__version__",
    "check",
    "from_gpytorch",
    "from_sklearn",
    "generate",
    "load_model",
    "load_spec",
    "select_basis",
]

# imported when first used: Numba, pydantic and scikit-learn take seconds, and the last is optional
_HOMES = {
    "Basis": "pykernel.bases.basis",
    "BudgetedKernelClassifier": "pykernel.estimators.online",
    "BudgetedKernelRegressor": "pykernel.estimators.online",
    "HostModel": "pykernel.host.model",
    "KernelBasis": "pykernel.estimators.basis",
    "KernelFisherClassifier": "pykernel.estimators.batch",
    "KernelRidgeClassifier": "pykernel.estimators.batch",
    "KernelRidgeRegressor": "pykernel.estimators.batch",
    "KernelSubspace": "pykernel.estimators.subspace",
    "LSSVMClassifier": "pykernel.estimators.batch",
    "LSSVMRegressor": "pykernel.estimators.batch",
    "MercerKernel": "pykernel.bases.gram",
    "OnlineKernelSubspace": "pykernel.estimators.subspace",
    "OnlineSubspaceClassifier": "pykernel.estimators.subspace",
    "OnlineSubspaceRegressor": "pykernel.estimators.subspace",
    "SignalFeatures": "pykernel.estimators.signal",
    "Spec": "pykernel.spec.model",
    "TrainedKernelClassifier": "pykernel.estimators.trained",
    "TrainedKernelRegressor": "pykernel.estimators.trained",
    "from_gpytorch": "pykernel.importers.importing",
    "from_sklearn": "pykernel.importers.importing",
    "load_model": "pykernel.importers.importing",
    "load_spec": "pykernel.spec.model",
    "select_basis": "pykernel.bases.select",
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        value: Any = version("pykernel-mcu")
    elif name in _HOMES:
        value = getattr(importlib.import_module(_HOMES[name]), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def generate(
    model: Spec | Fitted,
    out: str | Path,
    *,
    name: str | None = None,
    memory: Memory | None = None,
    force: bool = False,
) -> Generated:
    """Write a model as a C project.

    Parameters
    ----------
    model : Spec or fitted estimator
        With an estimator, or a model of ``pykernel.river``, the device starts from what it has learned.
    out : path
        The project's folder.
    name : str, optional
        Prefix of every symbol and file, for example "flow". By default, the name in the spec.
    memory : Memory, optional
        A learned state to start from. By default, that of the estimator.
    force : bool
        Whether to replace files in ``out`` that were changed by hand or are not of pykernel.

    Raises
    ------
    UserError
        One sentence says what was wrong. Nothing is written then.
    """
    spec, learned = _spec_and_memory(model, name)
    from pykernel.gen.project import generate

    return generate(spec, out, memory=learned if memory is None else memory, force=force)


def check(
    model: Spec | Fitted,
    *,
    memory: Memory | None = None,
    samples: int = 100_000,
    **options: Any,
) -> Report:
    """Compile a model's C and compare it with the host, byte for byte, over random samples.

    Parameters
    ----------
    model : Spec or fitted estimator
        With an estimator, or a model of ``pykernel.river``, host and C start from what it has learned.
    memory : Memory, optional
        A learned state to start from. By default, that of the estimator.
    samples : int
        Length of the random stream.
    **options
        Options of ``pykernel.gen.check.check``.
    """
    spec, learned = _spec_and_memory(model)
    from pykernel.gen.check import check

    return check(spec, memory=learned if memory is None else memory, samples=samples, **options)


def _spec_and_memory(model: Any, name: str | None = None) -> tuple[Spec, Memory | None]:
    from pykernel.errors import UserError
    from pykernel.spec.model import Spec, make_spec

    try:
        found = model if isinstance(model, Spec) else model.spec_
    except AttributeError as error:
        if isinstance(error, UserError):  # fitted, and says why there is none
            raise
        found = None
    if isinstance(model, Spec):
        spec, memory = model, None
    elif hasattr(model, "steps"):
        return _pipeline(model, "model" if name is None else name)
    elif found is not None:  # what is frozen has no state
        spec, memory = found, model.model_.memory if hasattr(model, "model_") else None
    elif hasattr(model, "to_spec"):
        learn = (
            "fit or partial_fit" if hasattr(model, "partial_fit") else "fit" if hasattr(model, "fit") else "learn_one"
        )
        raise UserError(f"the {type(model).__name__} has learned nothing yet; call its {learn} first")
    else:
        raise UserError(
            f"a {type(model).__name__} is not a model; give a Spec (load_spec reads one from a file, "
            "pykernel.importers.importing.from_sklearn makes one of scikit-learn's models) or a fitted estimator of pykernel, such "
            "as a BudgetedKernelRegressor, alone or behind scalers in a pipeline"
        )
    if name is not None:
        spec = make_spec({**spec.model_dump(exclude_unset=True), "name": name}, custom=spec.custom)
    return spec, memory


def _pipeline(pipeline: Any, name: str) -> tuple[Spec, Memory | None]:
    """What a fitted pipeline computes, for inputs as they come to it; with its state, if its model goes on learning."""
    from sklearn.pipeline import Pipeline  # type: ignore[import-untyped]

    from pykernel.importers.importing import from_sklearn
    from pykernel.importers.sklearn import LEARNS
    from pykernel.importers.steps import steps_of

    if isinstance(pipeline.steps, dict):  # River's
        from pykernel.errors import UserError

        raise UserError(
            "a Pipeline of River has steps that change as they learn, which the C does not have; give a model of pykernel.river that "
            "learned the raw inputs: without a rule it standardises them itself, by running means and deviations"
        )
    *before, (_, model) = steps_of(pipeline)
    if not hasattr(type(model), LEARNS):
        return from_sklearn(pipeline, name), None
    if not hasattr(model, "model_"):
        from pykernel.errors import UserError

        raise UserError(f"the {type(model).__name__} has learned nothing yet; call its fit or partial_fit first")
    if not before:
        return model.to_spec(name), model.model_.memory
    spec, memory = getattr(model, LEARNS)(name, Pipeline(before))
    return spec, memory
