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
from pykernel.errors import UserError
from pykernel.host.model import HostModel
from pykernel.spec.model import make_spec
from tests.support.interrupts import PATIENCE


def run(code):
    return subprocess.run(
        [sys.executable, "-c", code],
        check=False,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
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


def test_generating_loads_no_package_that_it_does_not_need(tmp_path):
    """They take seconds.  A check needs Numba, the reference, but no other of them by itself."""
    spec = tmp_path / "flow.toml"
    spec.write_text('name = "flow"\n[input]\ndim = 2\n[kernel]\nsigma = 1.0\n')
    done = run(
        "import sys\n"
        "from pykernel import check, generate, load_spec\n"
        f"generate(load_spec({str(spec)!r}), {str(tmp_path / 'out')!r})\n"
        "heavy = {'numba', 'scipy', 'sklearn', 'pandas', 'matplotlib', 'pyarrow', 'unicorn', 'rich', 'typer'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
        "import pykernel.gen.check, pykernel.targets.check\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
    )
    assert done.returncode == 0, done.stderr


def test_a_basis_is_chosen_without_numba_or_scikit_learn():
    done = run(
        "import sys, numpy\n"
        "from pykernel import Basis, MercerKernel, select_basis\n"
        "basis = select_basis(numpy.arange(12.0).reshape(6, 2), MercerKernel('gaussian', gamma=0.1), 3)\n"
        "assert isinstance(basis, Basis) and len(basis) == 3\n"
        "assert not {'numba', 'sklearn', 'pyarrow'} & set(sys.modules)\n"
    )
    assert done.returncode == 0, done.stderr


def test_every_name_is_there():
    assert all(getattr(pykernel, name) is not None for name in pykernel.__all__)
    assert pykernel.__version__ == importlib.metadata.version("pykernel-mcu")
    with pytest.raises(AttributeError, match="module 'pykernel' has no attribute 'Regressor'"):
        pykernel.Regressor  # noqa: B018
    with pytest.raises(ImportError):
        from pykernel import Regressor  # noqa: F401


def test_what_learns_on_the_device_is_planned_without_scipy():
    """The commands that train nothing on the PC need no extra."""
    done = run(
        "import sys\n"
        "sys.modules['scipy'] = sys.modules['sklearn'] = None\n"
        "from pykernel.workflows import check, devices, generate, page, plan, replay, simulate\n"
        "print('loaded')\n"
    )
    assert done.stdout == "loaded\n", done.stderr


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
            "the BudgetedKernelRegressor has learned nothing yet; call its fit",
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
    with pytest.raises(UserError, match=r"name is '\.\./x'"):
        pykernel.generate(model, tmp_path / "out", name="../x")
    assert not any(tmp_path.iterdir())


def samples(count, seed, case="one number"):
    x = np.random.default_rng(seed).normal(size=(count, 2))
    y = np.sin(2 * x[:, 0]) + x[:, 1]
    if "two outputs" in case:
        return x, np.column_stack([y, -2 * x[:, 0]])
    if "two classes" in case:
        return x, np.where(y > 0, "wet", "dry")
    return x, np.digitize(y, [-0.5, 0.5]) + 7 if "three classes" in case else y


@pytest.mark.in_turn(18)
@pytest.mark.parametrize(
    ("content", "labels"),
    [
        ({"label": {"column": "y"}}, lambda x: x[:, 0] * x[:, 1]),
        ({"label": {"column": "y", "classes": ["a", "b"]}}, lambda x: (x[:, 0] > 0).astype(np.int32)),
        ({"novelty": {}}, lambda x: None),
        (
            {"label": {"column": "y"}, "learning": {"rule": "krr", "samples": 60}, "kernel": {"sigma": 1.0}},
            lambda x: x[:, 0],
        ),
    ],
    ids=["number", "class", "monitor", "krr"],
)
def test_the_device_starts_from_a_recording(tmp_path, content, labels):
    """By generate(start=...): from what the model learns of its rows, in order."""
    x = np.random.default_rng(0).normal(size=(150, 2)).astype(np.float32)
    y, spec = labels(x), make_spec({"name": "flow", "input": {"columns": ["p", "q"]}, **content})
    model = HostModel(spec)
    model.update(x) if y is None else model.update(x, y)
    if model.exists("train"):
        model.train()
    pykernel.generate(spec, tmp_path / "a", start=(x, y))
    pykernel.generate(spec, tmp_path / "b", memory=model.memory)
    pykernel.generate(spec, tmp_path / "c")
    source = {folder: (tmp_path / folder / "src" / "flow.c").read_bytes() for folder in "abc"}
    assert source["a"] == source["b"] != source["c"]
    with pytest.raises(UserError, match="leave the argument out"):
        pykernel.generate(spec, tmp_path / "d", start=(x, y), memory=model.memory)
    with pytest.raises(UserError, match="learned none of the recording's 150 rows"):
        pykernel.generate(spec, tmp_path / "d", start=(np.full_like(x, np.inf), y))
    assert not (tmp_path / "d").exists()
