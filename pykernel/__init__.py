"""Kernel models that keep learning on a microcontroller.  The host runs the same source that is translated to C for the device."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pykernel.bases.basis import Basis as Basis
    from pykernel.bases.gram import MercerKernel as MercerKernel
    from pykernel.bases.select import select_basis as select_basis
    from pykernel.estimators.batch import KernelFisherClassifier as KernelFisherClassifier
    from pykernel.estimators.batch import KernelRidgeClassifier as KernelRidgeClassifier
    from pykernel.estimators.batch import KernelRidgeRegressor as KernelRidgeRegressor
    from pykernel.estimators.batch import LSSVMClassifier as LSSVMClassifier
    from pykernel.estimators.batch import LSSVMRegressor as LSSVMRegressor
    from pykernel.estimators.monitor import OnlineMonitor as OnlineMonitor
    from pykernel.estimators.online import BudgetedKernelClassifier as BudgetedKernelClassifier
    from pykernel.estimators.online import BudgetedKernelRegressor as BudgetedKernelRegressor
    from pykernel.estimators.signal import SignalFeatures as SignalFeatures
    from pykernel.estimators.svm import SupportVectorClassifier as SupportVectorClassifier
    from pykernel.estimators.svm import SupportVectorRegressor as SupportVectorRegressor
    from pykernel.estimators.trained import TrainedKernelClassifier as TrainedKernelClassifier
    from pykernel.estimators.trained import TrainedKernelRegressor as TrainedKernelRegressor
    from pykernel.host.model import HostModel as HostModel
    from pykernel.importers.importing import from_sklearn as from_sklearn
    from pykernel.importers.importing import load_model as load_model
    from pykernel.spec.model import Spec as Spec
    from pykernel.spec.model import load_spec as load_spec
    from pykernel.workflows.check import check as check
    from pykernel.workflows.fit import fit as fit
    from pykernel.workflows.generate import generate as generate
    from pykernel.workflows.plan import plan as plan
    from pykernel.workflows.prove import prove as prove
    from pykernel.workflows.simulate import simulate as simulate
    from pykernel.workflows.states import merge as merge

    __version__: str


__all__ = [
    "Basis",
    "BudgetedKernelClassifier",
    "BudgetedKernelRegressor",
    "HostModel",
    "KernelFisherClassifier",
    "KernelRidgeClassifier",
    "KernelRidgeRegressor",
    "LSSVMClassifier",
    "LSSVMRegressor",
    "MercerKernel",
    "OnlineMonitor",
    "SignalFeatures",
    "Spec",
    "SupportVectorClassifier",
    "SupportVectorRegressor",
    "TrainedKernelClassifier",
    "TrainedKernelRegressor",
    "__version__",
    "check",
    "fit",
    "from_sklearn",
    "generate",
    "load_model",
    "load_spec",
    "merge",
    "plan",
    "prove",
    "select_basis",
    "simulate",
]

# names are imported when first used, because importing Numba, pydantic and scikit-learn takes seconds, and scikit-learn is optional
_HOMES = {
    "Basis": "pykernel.bases.basis",
    "BudgetedKernelClassifier": "pykernel.estimators.online",
    "BudgetedKernelRegressor": "pykernel.estimators.online",
    "HostModel": "pykernel.host.model",
    "KernelFisherClassifier": "pykernel.estimators.batch",
    "KernelRidgeClassifier": "pykernel.estimators.batch",
    "KernelRidgeRegressor": "pykernel.estimators.batch",
    "LSSVMClassifier": "pykernel.estimators.batch",
    "LSSVMRegressor": "pykernel.estimators.batch",
    "MercerKernel": "pykernel.bases.gram",
    "OnlineMonitor": "pykernel.estimators.monitor",
    "SignalFeatures": "pykernel.estimators.signal",
    "Spec": "pykernel.spec.model",
    "SupportVectorClassifier": "pykernel.estimators.svm",
    "SupportVectorRegressor": "pykernel.estimators.svm",
    "TrainedKernelClassifier": "pykernel.estimators.trained",
    "TrainedKernelRegressor": "pykernel.estimators.trained",
    "check": "pykernel.workflows.check",
    "fit": "pykernel.workflows.fit",
    "from_sklearn": "pykernel.importers.importing",
    "generate": "pykernel.workflows.generate",
    "load_model": "pykernel.importers.importing",
    "load_spec": "pykernel.spec.model",
    "merge": "pykernel.workflows.states",
    "plan": "pykernel.workflows.plan",
    "prove": "pykernel.workflows.prove",
    "select_basis": "pykernel.bases.select",
    "simulate": "pykernel.workflows.simulate",
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
