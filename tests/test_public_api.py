"""What ``import pykernel`` offers and what it costs."""

import ctypes
import importlib.metadata
import subprocess
import sys

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline

import pykernel
from pykernel import BudgetedKernelRegressor, gen
from pykernel.errors import MissingExtra, UserError
from pykernel.expansion import Expansion

pytestmark = pytest.mark.usefixtures("compiled")


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
    with pytest.raises(UserError, match=r"name is '\.\./x'"):
        pykernel.generate(model, tmp_path / "out", name="../x")
    assert not any(tmp_path.iterdir())


LEARNERS = [
    {"technique": "mklms", "n_max": 8},
    {"technique": "mklms", "n_max": 8, "rho": 0.01, "precision": "float64"},
    {"technique": "fklms", "n_max": 8, "sigma": 0.5},
    {"technique": "nt", "n_max": 8, "precision": "float64"},
]


def samples(count, seed):
    x = np.random.default_rng(seed).normal(size=(count, 2))
    return x, np.sin(2 * x[:, 0]) + x[:, 1]


@pytest.mark.parametrize("parameters", LEARNERS)
def test_the_device_goes_on_from_what_the_estimator_learned(parameters, tmp_path):
    model = BudgetedKernelRegressor(**parameters).fit(*samples(200, seed=0))
    generated = pykernel.generate(model, tmp_path / "flow", name="flow")
    assert generated.figures["learned"]
    library = tmp_path / "flow.so"
    sources = sorted((generated.folder / "src").glob("*.c"))
    gen.compilers.compile_c(gen.compilers.find_compilers()[0], sources, library, ["-O2"])
    device, spec = ctypes.CDLL(str(library)), model.to_spec("flow")
    memory, real = spec.memory(gen.build(spec).drop), ctypes.c_float if spec.precision == "float32" else ctypes.c_double
    state = ctypes.c_void_p(memory.buffer.ctypes.data)
    device.flow_update.argtypes = [ctypes.c_void_p, ctypes.c_void_p, real]

    def predict(x):
        y = np.zeros((len(x), 1), spec.real.dtype)
        for row, out in zip(x.astype(spec.real.dtype), y, strict=True):
            assert device.flow_predict(state, ctypes.c_void_p(row.ctypes.data), ctypes.c_void_p(out.ctypes.data)) == 0
        return y

    device.flow_init(state)
    x, y = samples(300, seed=1)
    assert predict(x).tobytes() == model.predict(x).tobytes()
    model.partial_fit(x, y)
    for row, label in zip(x.astype(spec.real.dtype), y, strict=True):
        assert device.flow_update(state, row.ctypes.data, label) > 0
    assert predict(x).tobytes() == model.predict(x).tobytes()
    for name in Expansion.fields:
        assert memory.field(name).tobytes() == model.model_.memory.field(name).tobytes(), name


@pytest.mark.parametrize("parameters", LEARNERS)
def test_a_fitted_estimator_is_checked_from_what_it_learned(parameters):
    model = BudgetedKernelRegressor(**parameters).fit(*samples(200, seed=0))
    quick = {"samples": 3000, "levels": ["-O1"], "compilers": [gen.compilers.find_compilers()[0].name]}
    report = pykernel.check(model, **quick)
    assert report.ok and report.figures["learned"]
    fresh = pykernel.check(model.spec_, **quick)
    assert fresh.ok and not fresh.figures["learned"]
    assert report.figures["state_hash"] != fresh.figures["state_hash"]


def test_a_learned_state_can_be_given_with_a_spec(tmp_path):
    model = BudgetedKernelRegressor(n_max=4).fit(*samples(50, seed=0))
    pykernel.generate(model, tmp_path / "a", name="flow")
    pykernel.generate(model.to_spec("flow"), tmp_path / "b", memory=model.model_.memory)
    pykernel.generate(model.to_spec("flow"), tmp_path / "c")
    source = {folder: (tmp_path / folder / "src" / "flow.c").read_bytes() for folder in "abc"}
    assert source["a"] == source["b"] != source["c"]
