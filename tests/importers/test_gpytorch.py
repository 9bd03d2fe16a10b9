"""Sparse Gaussian processes of GPyTorch: their predictions, written by GPyTorch itself, and what is refused."""

import json
import re
import struct
import warnings
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from pykernel import from_gpytorch, load_model
from pykernel.dialect import PRECISIONS
from pykernel.errors import UserError
from pykernel.gen.project import build
from pykernel.host.model import HostModel
from pykernel.importers.gpytorch import EXCEEDS, KERNELS, LEAST_TOLD, POINTS_LIMIT, VARIATIONAL_JITTER, read_state
from pykernel.importers.importing import compare, read_file
from pykernel.importers.safetensors import ARRAYS, read_safetensors
from pykernel.spec.model import load_spec, make_spec
from pykernel.training.rounding import device_bound
from tests.support import ROOT
from tests.support.compilers import in_one_build

FOLDER = Path(__file__).parent / "data"
"""tests/support/gpytorch_states.py wrote what is there."""


def cases():
    found = defaultdict(dict)
    for name, array in read_safetensors((FOLDER / "gpytorch.safetensors").read_bytes()).items():
        case, kernel, key = name.split("|")
        found[case, kernel][key] = array
    return {
        case: (kernel, *(state.pop(key) for key in ("x", "mean", "variance")), state)
        for (case, kernel), state in found.items()
    }


CASES = cases()
EXCEEDING = ("rbf one input", "matern12 one input")
"""Trained too short for a variance."""


def exactness(state):
    """What GPyTorch's own precision may move a prediction by: these models' numbers are from 1 to 5."""
    narrow = next(array for name, array in state.items() if "inducing_points" in name).dtype == np.float32
    return 1e-5 if narrow else 1e-11


# ------------------------------------------------------------------------------------------------------ predictions


@pytest.mark.parametrize("case", CASES)
def test_mean_and_variance_are_those_of_gpytorch(case):
    kernel, x, mean, variance, state = CASES[case]
    process = read_state(state, kernel)
    machine = process.machine()
    most = exactness(state)
    assert np.abs(machine.functions(machine.scaled(x.astype(float)))[:, 0] - mean).max() <= most
    assert np.abs(process.functions(x)[:, 0] - mean).max() <= most
    assert np.abs(process.variances(x) - variance).max() <= most
    assert np.ptp(mean) > 0.3 and np.ptp(variance) > 0.03  # or this says nothing


@pytest.mark.in_turn
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("case", ["rbf constant", "matern32", "unwhitened rbf constant narrow", "data rbf"])
def test_the_device_computes_the_mean_in_every_precision(case, precision):
    kernel, x, _, _, state = CASES[case]
    spec = from_gpytorch(state, "m", kernel=kernel, precision=precision, max_abs=4.0)
    taken = spec.as_seen(x.astype(spec.real.dtype if not spec.real.is_integer else float))
    found = np.asarray(HostModel(spec).predict(taken), float).reshape(-1)
    mean = read_state(state, kernel).functions(taken)[:, 0]  # GPyTorch's, as the test above says
    # 1e-13: the solve's own rounding
    assert (np.abs(found - mean) <= device_bound(spec, taken.astype(float))[:, 0] + 1e-13).all()


@pytest.mark.in_turn(2)
@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("case", [case for case in CASES if case not in EXCEEDING])
def test_the_device_computes_the_variance(case, precision):
    kernel, x, mean, variance, state = CASES[case]
    spec = from_gpytorch(state, "m", kernel=kernel, precision=precision, variance=True)
    device = HostModel(spec)
    means, variances = (
        device.ask(question, x.astype(spec.real.dtype))[0].reshape(-1) for question in ("predict", "variance")
    )
    most = exactness(state) + (1e-5 if precision == "float32" else 0.0)
    assert np.abs(means - mean).max() <= most and np.abs(variances - variance).max() <= most


def test_without_a_likelihood_the_variance_is_that_of_the_function():
    kernel, x, _, variance, state = CASES["rbf bounded"]
    noise = read_state(state, kernel).noise
    alone = {name: array for name, array in state.items() if "noise" not in name}
    spec = from_gpytorch(alone, "m", kernel=kernel, precision="float64", variance=True)
    found = HostModel(spec).ask("variance", x)[0].reshape(-1)
    assert noise > 0.01 and np.abs(found + noise - variance).max() <= 1e-11


@pytest.mark.in_turn(2)
@pytest.mark.parametrize("variance", [False, True])
def test_the_c_is_the_same(variance):
    kernel, *_, state = CASES["matern52"]
    spec = from_gpytorch(state, "m", kernel=kernel, variance=variance)
    report = in_one_build(spec, samples=500)
    assert report.ok, report.rows
    assert any("m_variance(" in text for text in build(spec).files.values()) == variance


@pytest.mark.parametrize("variance", [False, True])
def test_a_scaler_before_the_model_is_folded_in(variance):
    kernel, x, mean, predicted, state = CASES["rbf constant"]
    raw = x * [10.0, 0.1, 3.0] + [5.0, -2.0, 100.0]
    scaler = make_pipeline(StandardScaler(), MinMaxScaler()).fit(raw)
    # raw inputs whose scaled ones are x
    spec = from_gpytorch(state, "m", kernel=kernel, precision="float64", scaler=scaler, variance=variance)
    device = HostModel(spec)
    given = scaler.inverse_transform(x)
    assert np.abs(device.predict(given).reshape(-1) - mean).max() <= 1e-10
    if variance:
        assert np.abs(device.ask("variance", given)[0].reshape(-1) - predicted).max() <= 1e-10
    with pytest.raises(UserError, match="takes 3 inputs, but the step before it gives 2"):
        from_gpytorch(state, "m", kernel=kernel, scaler=StandardScaler().fit(x[:, :2]))


class Tensor:
    """What a tensor of torch answers."""

    def __init__(self, array, dtype):
        self.array, self.dtype = array, dtype

    def __array__(self, *args, **kwargs):
        raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.")

    def detach(self):
        return self

    cpu = detach

    def double(self):
        return Tensor(self.array.astype(float), "torch.float64")

    def numpy(self):
        return self.array


@pytest.mark.parametrize("case", ["rbf constant narrow", "data rbf"])
def test_tensors_are_read_as_arrays_are(case):
    kernel, *_, state = CASES[case]
    tensors = {name: Tensor(array, f"torch.{array.dtype}") for name, array in state.items()}
    if "train_inputs" in tensors:  # as an ExactGP has them
        tensors["train_inputs"] = (tensors["train_inputs"],)
    assert from_gpytorch(tensors, "m", kernel=kernel) == from_gpytorch(state, "m", kernel=kernel)


def test_names_before_the_parameters_do_not_count():
    """A state of a model within a module, and a likelihood beside it."""
    kernel, *_, state = CASES["unwhitened matern32"]
    inside = {name if name.startswith("noise") else f"gp.{name}": array for name, array in state.items()}
    assert from_gpytorch(inside, "m", kernel=kernel) == from_gpytorch(state, "m", kernel=kernel)


def test_parameters_of_before_the_whitening_count_as_unwhitened():
    """GPyTorch whitens such a state when it is first called: a flag is there, and not set."""
    kernel, x, mean, _, state = CASES["unwhitened rbf constant"]
    old = state | {"variational_strategy.updated_strategy": np.array(False)}
    found = read_state(old, kernel)
    assert found.source == "UnwhitenedVariationalStrategy" and np.abs(found.functions(x)[:, 0] - mean).max() <= 1e-11


def test_priors_are_no_part_of_a_model_and_an_older_name_of_the_mean_is_known():
    kernel, *_, state = CASES["rbf constant"]
    more = {"covar_module.base_kernel.lengthscale_prior.rate": np.array(6.0)}
    more |= {"mean_module.constant" if name == "mean_module.raw_constant" else name: a for name, a in state.items()}
    assert from_gpytorch(more, "m", kernel=kernel) == from_gpytorch(state, "m", kernel=kernel)


def test_rounding_that_is_coarse_is_told_with_a_variance_too():
    """Many points along one input: weights that cancel out."""
    x = np.linspace(-2, 2, 200)[:, None]
    state = {
        "covar_module.inducing_points": np.linspace(-2, 2, 10)[:, None],
        "covar_module.base_kernel.raw_lengthscale": np.array([[1.25]]),
        "likelihood.noise_covar.raw_noise": np.array([-6.9]),
        "train_inputs": x,
        "train_targets": np.sin(6 * x[:, 0]),
    }
    for variance in (False, True):
        with pytest.warns(UserWarning, match="float32 may move its values by up to"):
            from_gpytorch(state, "m", kernel="gaussian", variance=variance)


def test_jitter_is_what_is_added():
    kernel, x, mean, _, state = CASES["rbf constant"]
    found = {jitter: read_state(state, kernel, jitter).functions(x)[:, 0] for jitter in (1e-6, 1e-2)}
    assert np.abs(found[1e-6] - mean).max() <= 1e-11 and np.abs(found[1e-2] - mean).max() > 1e-4


def test_equal_inducing_points_are_told_where_gpytorch_adds_to_their_matrix():
    kernel, *_, state = CASES["data rbf"]
    points = state["covar_module.inducing_points"].copy()
    points[1] = points[0]
    with pytest.warns(UserWarning, match="so alike that 1e-08 was added"):
        from_gpytorch(state | {"covar_module.inducing_points": points}, "m", kernel=kernel, precision="float64")


# ------------------------------------------------------------------------------------------------------------ files


def test_a_file_is_imported_by_command_and_compared(tmp_path, monkeypatch, run):
    monkeypatch.chdir(tmp_path)
    path = FOLDER / "gp.safetensors"
    _, x, *_ = CASES["rbf constant narrow"]
    rows = "\n".join(",".join(f"{value:.9g}" for value in row) for row in x)
    (tmp_path / "held.csv").write_text(f"a,b,c\n{rows}\n")
    words = ["import", str(path), "-o", "gp.toml", "--inputs", "a,b,c", "--data", "held.csv", "--json"]
    code, out, err = run(*words, "--kernel", "gaussian")
    report = json.loads(out)
    assert code == 0 and report["ok"] and report["source"] == "VariationalStrategy" and report["vectors"] == 5
    assert 0 < report["rounding"]["difference"] <= report["rounding"]["allowed"] < 1e-4
    assert load_spec("gp.toml") == load_model(path, "gp", kernel="gaussian", inputs=["a", "b", "c"])
    code, out, err = run(*words, "--force")
    assert code == 2 and err.count("\n") == 1 and "does not tell its kernel; give kernel" in err
    (tmp_path / "x.skops").write_bytes(b"")
    code, out, err = run("import", "x.skops", "-o", "x.toml", "--kernel", "gaussian")
    assert code == 2 and "kernel and jitter are for .safetensors files" in err


def test_the_comparison_sees_another_kernel():
    _, process = read_file(FOLDER / "gp.safetensors", kernel="gaussian")
    machine, _ = read_file(FOLDER / "gp.safetensors", kernel="matern52")
    spec = load_model(FOLDER / "gp.safetensors", kernel="matern52")
    assert not compare(spec, machine, process, CASES["rbf constant narrow"][1])["ok"]


@pytest.mark.parametrize("suffix", [".pt", ".pth", ".ckpt"])
def test_files_of_torch_are_refused_with_how_to_save(tmp_path, suffix):
    (tmp_path / f"gp{suffix}").write_bytes(b"PK\3\4")
    with pytest.raises(UserError, match=r"save it with safetensors\.torch\.save_file\(") as refusal:
        load_model(tmp_path / f"gp{suffix}", kernel="gaussian")
    assert "\n" not in str(refusal.value)


def packed(header, numbers=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + numbers


def entry(dtype="F32", shape=(2,), offsets=(0, 8)):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "is not a whole file"),
        (b"\xff" * 8, "is not a whole file"),
        (struct.pack("<Q", 2**21) + bytes(2**21), "header of more than"),
        (packed(b"\xff\xfe"), "header that is not JSON"),
        (packed(b'{"a": 1' + b"1" * 5000 + b"}"), "header that is not JSON"),
        (packed(b'{"a": {}, "a": {}}'), "header that is not JSON"),
        (packed([1]), "names no arrays"),
        (packed({str(i): 0 for i in range(10_001)}), "more than 10,000 arrays"),
        (packed({"a": 3}), "of what type 'a' is"),
        (packed({"a": entry("F8_E4M3")}, bytes(8)), "of type 'F8_E4M3'"),
        (packed({"a": entry(shape=(-2,))}, bytes(8)), "which numbers 'a' has"),
        (packed({"a": entry(shape=(True, 2))}, bytes(8)), "which numbers 'a' has"),
        (packed({"a": entry(offsets=(0,))}, bytes(8)), "which numbers 'a' has"),
        (packed({"a": entry(shape=(1,) * 9)}, bytes(8)), "which numbers 'a' has"),
        (packed({"a": entry(shape=(3,))}, bytes(8)), "not that of its bytes"),
        (packed({"a": entry(offsets=(8, 16))}, bytes(8)), "not that of its bytes"),
        (packed({"a": entry(offsets=(8, 0))}, bytes(8)), "not that of its bytes"),
        (packed({"a": entry(shape=(0, 2**62), offsets=(0, 0))}), "not that of its bytes"),
        (packed({"a": entry(), "b": entry()}, bytes(8)), "overlap"),
        (packed({"a": entry(), "b": entry(offsets=(4, 12))}, bytes(16)), "overlap"),
        (packed({"a": entry()}, bytes(12)), "overlap, or bytes that belong to none"),
        (packed(b"[" * 100_000), "nested too deeply"),
        (packed({"a": entry()}, bytes(8)), "no part of a model"),
        (packed({}), "has no inducing_points"),
    ],
)
def test_a_hostile_file_gets_one_sentence(tmp_path, data, says):
    path = tmp_path / "m.safetensors"
    path.write_bytes(data)
    with pytest.raises(UserError, match=says) as refusal:
        load_model(path, kernel="gaussian")
    assert "\n" not in str(refusal.value) and str(path) in str(refusal.value)


@given(st.data())
def test_a_file_with_other_bytes_is_read_or_refused(data):
    whole = bytearray((FOLDER / "gp.safetensors").read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    end = data.draw(st.integers(0, len(whole)))
    for content in (bytes(whole), bytes(whole[:end])):
        try:
            read_state(read_safetensors(content), "gaussian").machine()
        except UserError as error:
            assert "\n" not in str(error)


def test_half_precision_numbers_are_read():
    values = np.array([1.5, -2.0], np.float32)
    halves = (values.view(np.uint32) >> 16).astype("<u2").tobytes()
    found = read_safetensors(packed({"a": entry("BF16", offsets=(0, 4)), "__metadata__": {"format": "pt"}}, halves))
    assert np.array_equal(found["a"], values) and found["a"].dtype == np.float32


def test_the_page_says_what_is_so(tmp_path):
    text = " ".join((ROOT / "docs" / "importing.md").read_text(encoding="utf-8").split())
    (tmp_path / "gp.pt").write_bytes(b"")
    with pytest.raises(UserError) as refusal:
        read_file(tmp_path / "gp.pt")
    assert re.search(r"safetensors\.torch\.save_file\(.*\)", str(refusal.value))[0] in text
    for name in KERNELS:
        assert f"`{name}`" in text
    for said in (
        f"at most {POINTS_LIMIT:,}",
        f"and {ARRAYS:,} arrays",
        f"GPyTorch 1.15 ({len(CASES)} models of 5 inducing points)",
        f"More than {100 * EXCEEDS:g} % is refused",
    ):
        assert said in text
    jitters = [VARIATIONAL_JITTER[np.dtype(precision)] for precision in ("float32", "float64")]
    assert jitters == [1e-4, 1e-6] and "10⁻⁴ for float32 and 10⁻⁶ for float64" in text


# --------------------------------------------------------------------------------------------------------- refusals


def changed(case, **arrays):
    """A state with other arrays, by the last part of their names; None: without."""
    state = dict(CASES[case][-1])
    for key, value in arrays.items():
        names = [name for name in state if name.rpartition(".")[2] == key]
        for name in names or [key.replace("__", ".")]:
            state.pop(name, None)
            if value is not None:
                state[name] = value
    return state


@pytest.mark.parametrize(
    ("state", "says"),
    [
        (7, "a int is not a state dictionary"),
        ({}, "has no inducing_points"),
        (changed("rbf constant", raw_lengthscale=None), "has no raw_lengthscale"),
        (changed("rbf constant", raw_lengthscale=np.zeros((1, 2))), r"raw_lengthscale has shape \(1, 2\)"),
        (changed("rbf constant", raw_lengthscale=np.full((1, 3), np.nan)), "not finite"),
        (changed("rbf constant", raw_lengthscale=np.full((1, 3), -1e3)), "length scale or the outputscale is not above 0"),
        (changed("rbf constant", raw_outputscale=np.zeros(2)), "as of several outputs"),
        (changed("rbf constant", inducing_points=np.zeros((2, 5, 3))), "a model of one output"),
        (changed("rbf constant", inducing_points=np.zeros((1025, 3))), "has 1,025 inducing points"),
        (changed("rbf constant", variational_mean=np.zeros((2, 5))), "variational_mean has shape"),
        (changed("rbf constant", variational_mean=np.zeros(4)), "variational_mean has shape"),
        (changed("rbf constant", variational_params_initialized=np.array(0)), "never initialized"),
        (changed("rbf constant", chol_variational_covar=np.zeros((5, 4))), "chol_variational_covar has shape"),
        (changed("natural", updated_strategy=None), "has natural parameters"),
        (changed("natural", natural_mat=np.zeros((5, 5))), "natural parameters are singular"),
        (changed("natural", natural_mat=None), "natural_vec without natural_mat"),
        (changed("rbf constant", mean_module__weights=np.zeros((3, 1))), "'mean_module.weights', which is no part"),
        (changed("rbf constant", covar_module__active_dims=np.arange(3)), "active_dims', which is no part"),
        (changed("rbf constant", covar_module__kernels__0__raw_lengthscale=np.zeros((1, 3))), "kernels.0.raw_lengthscale', which is no part"),
        (changed("rbf constant", feature_extractor__raw_outputscale=np.zeros(())), "holds raw_outputscale in 'covar_module' and in 'feature_extractor'"),
        (
            {name.replace("covar_module.base", "covar_module.base_kernel.base"): a for name, a in CASES["rbf constant"][-1].items()},
            "another kernel is around",
        ),
        (
            {name.replace("covar_module.base_kernel", "covar_module"): a for name, a in CASES["data rbf"][-1].items()},
            "another kernel is around",
        ),
        (changed("rbf bounded", lower_bound=np.array(9.0), upper_bound=np.array(1.0)), "must have two numbers, the lower"),
        (changed("data rbf", train_inputs=None), "train_inputs missing"),
        (changed("data rbf", train_inputs=None, train_targets=None, raw_noise=None), "train_inputs and train_targets and raw_noise"),
        (changed("data rbf", train_targets=np.zeros(39)), r"train_targets \(39,\)"),
        (changed("data rbf", train_targets="words"), "not numbers"),
    ],
)  # fmt: skip
def test_what_cannot_be_imported_is_refused_in_one_sentence(state, says):
    with pytest.raises(UserError, match=says) as refusal:
        from_gpytorch(state, "m", kernel="gaussian")
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"kernel": "rbf"}, "kernel is 'rbf'; it must be one of gaussian"),
        ({"kernel": "gaussian", "jitter": -1.0}, "jitter is -1"),
        ({"kernel": "gaussian", "variance": True, "precision": "int16"}, "int16 computes no variance"),
        ({"kernel": "gaussian", "variance": True, "distance": "products"}, "does not go with variance"),
    ],
)
def test_options_are_refused_in_one_sentence(options, says):
    with pytest.raises(UserError, match=says):
        from_gpytorch(CASES["rbf constant"][-1], "m", **options)


@pytest.mark.parametrize("case", EXCEEDING)
def test_a_covariance_beyond_the_prior_has_no_variance_in_c(case):
    kernel, *_, state = CASES[case]
    most = np.linalg.eigvalsh(read_state(state, kernel).whitened_covariance).max() - 1
    assert most > EXCEEDS
    with pytest.raises(UserError, match="exceeds the prior's"):
        from_gpytorch(state, "m", kernel=kernel, variance=True)


@pytest.mark.parametrize(("root", "warns"), [(1.0, False), (1.0001, False), (1.01, True)])
def test_a_covariance_a_little_beyond_the_prior_is_cut_off_and_told(root, warns):
    kernel, x, _, _, state = CASES["rbf constant"]
    name = "variational_strategy._variational_distribution.chol_variational_covar"
    state = state | {name: np.diag([0.5, root, 0.5, 0.5, 0.5])}
    process = read_state(state, kernel)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        spec = from_gpytorch(state, "m", kernel=kernel, variance=True, precision="float64")
    assert [f"{root**2 - 1:.1%} of the prior" in str(warning.message) for warning in caught] == [True] * warns
    lacks = process.variances(x) - HostModel(spec).ask("variance", x)[0].reshape(-1)
    assert (lacks <= (root**2 - 1 + LEAST_TOLD) * process.size).all() and (lacks >= -1e-9).all()


def test_alike_inducing_points_have_a_variance_in_float64_alone():
    kernel, x, _, _, state = CASES["delta"]
    points = state["variational_strategy.inducing_points"].copy()
    points[1] = points[0] + 1e-4
    state = state | {"variational_strategy.inducing_points": points}
    with pytest.raises(UserError, match="so alike that float32 cannot tell"):
        from_gpytorch(state, "m", kernel=kernel, jitter=1e-8, variance=True)
    spec = from_gpytorch(state, "m", kernel=kernel, jitter=1e-8, variance=True, precision="float64")
    found = HostModel(spec).ask("variance", x)[0].reshape(-1)
    assert np.abs(found - read_state(state, kernel, 1e-8).variances(x)).max() <= 1e-9


@pytest.mark.parametrize(
    ("factor", "says"),
    [
        ([[1.0]] * 4, "has 4 rows; it must have 5"),
        ([[1.0]] * 5, "has 1 numbers in row 1; it must have 2"),
        ([[-1.0]], "a last one that is not above 0"),
        ([[1e10]], "too large"),
        ([[1.0], [1001.0, 1.0]], "too little for float32"),
        (3.0, "must be a list"),
    ],
)
def test_a_factor_of_a_spec_is_checked(factor, says):
    kernel, *_, state = CASES["rbf constant"]
    made = from_gpytorch(state, "m", kernel=kernel, variance=True).model_dump(exclude_unset=True)
    honest = [list(row) for row in made["expansion"]["factor"]]
    made["expansion"]["factor"] = (
        factor if not isinstance(factor, list) or len(factor) > 2 else factor + honest[len(factor) :]
    )
    with pytest.raises(UserError, match=says) as refusal:
        make_spec(made)
    assert "[expansion] factor" in str(refusal.value)
    made["expansion"] |= {"factor": honest, "noise": 0.5}
    with pytest.raises(UserError, match="leave noise out"):
        make_spec(made)
