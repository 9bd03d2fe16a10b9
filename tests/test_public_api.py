"""What ``import pykernel`` offers and what it costs."""

import importlib.metadata
import subprocess
import sys

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline

import pykernel
from pykernel import BudgetedKernelRegressor
from pykernel.errors import MissingExtra, UserError


def run(code):
    return subprocess.run(
        [sys.executable, "-c", code],
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_import_is_light_and_names_are_lazy():
    done = run(
        "import sys, pykernel\n"
        "heavy = {'numba', 'sklearn', 'pydantic', 'numpy', 'cffi'}\n"
        "assert set(pykernel.__all__) <= set(dir(pykernel))\n"
        "pykernel.generate, pykernel.check, pykernel.__version__\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
        "pykernel.Spec, pykernel.load_spec, pykernel.HostModel\n"
        "assert 'pydantic' in sys.modules and not {'numba', 'sklearn'} & set(sys.modules)\n"
        "from pykernel import BudgetedKernelRegressor\n"
        "assert BudgetedKernelRegressor is pykernel.BudgetedKernelRegressor and 'sklearn' in sys.modules\n"
    )
    assert done.returncode == 0, done.stderr


def test_every_name_is_there():
    assert all(getattr(pykernel, name) is not None for name in pykernel.__all__)
    assert pykernel.__version__ == importlib.metadata.version("pykernel-mcu")
    with pytest.raises(AttributeError, match="module 'pykernel' has no attribute 'Regressor'"):
        pykernel.Regressor  # noqa: B018
    with pytest.raises(ImportError):
        from pykernel import Regressor  # noqa: F401


def test_without_scikit_learn_a_sentence_says_what_to_install():
    done = run(
        "import sys\n"
        "class Absent:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.partition('.')[0] == 'sklearn':\n"
        "            raise ModuleNotFoundError(f'No module named {name!r}', name=name)\n"
        "sys.meta_path.insert(0, Absent())\n"
        "import pykernel\n"
        "from pykernel import HostModel, Spec, check, generate, load_spec\n"
        "from pykernel.errors import MissingExtra\n"
        "for attempt in (lambda: pykernel.BudgetedKernelRegressor(), lambda: __import__('pykernel.estimators')):\n"
        "    try:\n"
        "        attempt()\n"
        "    except MissingExtra as error:\n"
        "        print(error)\n"
    )
    sentence = (
        "BudgetedKernelRegressor needs an optional package; install it with: pip install 'pykernel-mcu[sklearn]'\n"
    )
    assert done.stdout == 2 * sentence, done.stderr
    assert issubclass(MissingExtra, ImportError) and issubclass(MissingExtra, UserError)


@pytest.mark.parametrize("use", [lambda model: pykernel.generate(model, "never-written"), pykernel.check])
@pytest.mark.parametrize(
    "model, sentence",
    [
        (
            BudgetedKernelRegressor(),
            "the BudgetedKernelRegressor has learned nothing yet; call its fit or partial_fit first",
        ),
        (
            make_pipeline(BudgetedKernelRegressor()),
            "a Pipeline is not a model; .* .of a pipeline, the last step",
        ),
        (Ridge().fit([[0.0]], [0.0]), "a Ridge is not a model; "),
        (
            "flow.toml",
            "a str is not a model; give a Spec .load_spec reads one from a file",
        ),
        (None, "a NoneType is not a model; "),
    ],
)
def test_only_models_are_taken(use, model, sentence, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=sentence):
        use(model)
    assert not any(tmp_path.iterdir())


def test_a_wrong_name_is_refused_before_anything_is_written(tmp_path):
    x = np.arange(6.0).reshape(3, 2)
    model = BudgetedKernelRegressor().fit(x, x[:, 0])
    with pytest.raises(UserError, match="name is '../x'"):
        pykernel.generate(model, tmp_path / "out", name="../x")
    assert not any(tmp_path.iterdir())
