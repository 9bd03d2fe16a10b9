"""A custom kernel, the user's: what is executed, when and for whom; the same bytes in C; one sentence for each thing that is wrong."""

from __future__ import annotations

import json
import pickle
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pykernel.algorithms.kernel_choice import custom_kernel
from pykernel.bases.gram import MercerKernel
from pykernel.cli.app import main
from pykernel.dialect import FLOAT32, FLOAT64, bind, reachable, substitute
from pykernel.errors import UntrustedCode, UserError
from pykernel.gen.project import build
from pykernel.host.model import HostModel
from pykernel.spec.model import FAMILIES, kernel_settings, load_spec, make_spec
from tests.support import custom_kernels
from tests.support.compilers import in_one_build
from tests.support.machines import expansion

SOURCE = Path(custom_kernels.__file__).read_text()
CUSTOM = {
    "function": "custom",
    "source": "custom_kernels.py",
    "kernel": "rational_quadratic",
    "gamma": 0.5,
    "max_value": 1.0,
}
FROZEN: dict[str, Any] = {"name": "flow", "input": {"dim": 3, "max_abs": 50.0}, "learning": {"rule": "frozen"}}
FROZEN |= {"expansion": expansion(5, 1), "kernel": CUSTOM}
HEAD = "from pykernel.dialect import DIM, Real, kernel, real, sqrt\nfrom pykernel.algorithms.kernel_choice import KernelConfig, kernel_value\n"
SIGNATURE = "(q: KernelConfig, a: Real[DIM], b: Real[DIM]) -> Real:\n    "


def written(folder: Path, text: str = SOURCE, **kernel: Any) -> Path:
    """A spec and its kernel's file."""
    folder.mkdir(exist_ok=True)
    made = FROZEN["kernel"] | kernel
    content = FROZEN | {"kernel": {key: value for key, value in made.items() if value is not None}}
    lines = [f"{key} = {json.dumps(value)}" for key, value in content.items() if not isinstance(value, dict)]
    for section, values in content.items():
        if isinstance(values, dict):
            lines += [f"[{section}]"] + [f"{key} = {json.dumps(value)}" for key, value in values.items()]
    (folder / "flow.toml").write_text("\n".join(lines))
    (folder / "custom_kernels.py").write_bytes(text.encode())
    return folder / "flow.toml"


# ------------------------------------------------------------------------------------------------------------ trust


def test_nothing_is_executed_before_it_is_trusted(tmp_path, capsys):
    mark = f"\nwith open({str(tmp_path / 'executed')!r}, 'a') as f:\n    f.write('x')\n"
    spec = written(tmp_path, SOURCE + mark)
    with pytest.raises(
        UntrustedCode, match=r"flow\.toml: \[kernel\] source names custom_kernels\.py, a file with Python code that"
    ):
        load_spec(spec)
    for command in (
        ["generate", str(spec), "-o", str(tmp_path / "out")],
        ["check", str(spec)],
        ["simulate", str(spec), "x.csv"],
        ["state", "replay", str(spec), "x.csv"],
        ["state", "show", str(spec), "x.bin"],
        ["plan", "x.csv", "--spec", str(spec), "--ram", "4k", "--flash", "16k", "--target", "cortex-m4f"],
    ):
        with pytest.raises(SystemExit) as end:
            main(command)
        told = capsys.readouterr().err
        assert end.value.code == 2 and "[kernel] source names" in told
    assert not (tmp_path / "executed").exists() and not (tmp_path / "out").exists()
    load_spec(spec, trust=True)
    load_spec(spec, trust=True)
    assert (tmp_path / "executed").read_text() == "x"  # once for each content


def test_what_is_wrong_with_the_spec_is_said_before_anything_is_executed(tmp_path):
    spec = written(tmp_path, SOURCE + "\nraise SystemExit('executed')\n", degree=99)
    with pytest.raises(UserError, match=r"\[kernel\] degree is 99"):
        load_spec(spec, trust=True)


def test_the_command_says_what_it_executes_and_the_project_holds_it(tmp_path, capsys):
    spec = written(tmp_path)
    with pytest.raises(SystemExit) as end:
        main(["generate", str(spec), "-o", str(tmp_path / "out"), "--trust-code"])
    assert not end.value.code and f"executing {tmp_path / 'custom_kernels.py'}" in capsys.readouterr().err
    assert (tmp_path / "out" / "custom_kernels.py").read_text() == SOURCE
    again = load_spec(tmp_path / "out" / "flow.toml", trust=True)
    assert build(again).files == build(load_spec(spec, trust=True)).files


def test_a_spec_without_its_code_is_refused():
    with pytest.raises(UserError, match=r"spec: \[kernel\] source names custom_kernels.py, whose code was not given"):
        make_spec(FROZEN)
    with pytest.raises(
        UserError,
        match="kernel is rational_quadratic, but the argument custom is the kernel products; the two names must be equal",
    ):
        make_spec(FROZEN, custom=custom_kernels.products)
    spec = make_spec(FROZEN, custom=custom_kernels.rational_quadratic)
    assert spec.custom is custom_kernels.rational_quadratic
    with pytest.raises(UserError, match="the custom kernel is missing"):
        _ = type(spec).model_validate(FROZEN).program


# ------------------------------------------------------------------------------------------------- the same bytes


@pytest.mark.parametrize(
    ("precision", "normalise"), [("float32", False), pytest.param("float64", True, marks=pytest.mark.exhaustive)]
)
def test_c_computes_the_hosts_bytes(precision, normalise, tmp_path):
    spec = load_spec(
        written(tmp_path, kernel="products", gamma=1.0, coef0=0.25, max_value=2e11, normalise=normalise), trust=True
    )
    spec = make_spec(spec.model_dump(exclude_unset=True) | {"precision": precision}, custom=spec.custom)
    assert spec.config.unit == normalise
    report = in_one_build(spec, samples=4000)
    assert report.ok, [row["first_difference"] for row in report.rows]
    rng = np.random.default_rng(0)
    x, kernel = rng.normal(size=(50, 3)), MercerKernel.of(spec)
    held = spec.expansion
    expected = kernel.gram(x, held.vectors) @ np.array(held.weights)[:, 0] + held.bias[0]
    size = 1.0 if normalise else 1000.0
    np.testing.assert_allclose(
        HostModel(spec).predict(x),
        expected,
        atol=size * 20 * np.finfo(precision).eps,
        rtol=100 * np.finfo(precision).eps,
    )


def test_every_program_that_compares_inputs_has_a_place_for_it():
    """In each, the placeholder is gone, and nothing else but what calls it has changed."""
    seen = set()
    for family in FAMILIES:
        for program in family.programs.values():
            roots = [entry.kernel for entry in program.entries]
            before = reachable(roots)
            with_own = program.with_kernel(custom_kernels.rational_quadratic)
            after = reachable([*(entry.kernel for entry in with_own.entries)])
            if custom_kernel not in before:
                assert with_own.entries == program.entries
                continue
            seen.add(next(iter(family.rules)))
            assert custom_kernel not in after and custom_kernels.rational_quadratic in after
            assert {k.name for k in before} - {"custom_kernel"} <= {k.name for k in after}
            assert program.with_kernel(custom_kernels.rational_quadratic) is with_own
    assert {"krr", "kfd", "frozen"} <= seen


def test_a_docstring_may_begin_with_a_reference(tmp_path):
    """Sentences of the project's kernels that begin so are printed where a choice was made; a user's are a comment."""
    body = '"""[Rasmussen] Eq. 4.19.  [not here] A product."""\n    return a[0] * b[0]\n'
    spec = load_spec(
        written(tmp_path, f"{HEAD}\n\n@kernel\ndef own{SIGNATURE}{body}", kernel="own", max_value=2501.0), trust=True
    )
    assert "/* [Rasmussen] Eq. 4.19.  [not here] A product. */" in build(spec).files["src/flow.c"]


def test_two_kernels_of_one_name_and_an_edited_file(tmp_path):
    """In one process, with Numba's cache on disk in between: nobody gets another's code."""
    texts = [SOURCE, SOURCE.replace("real(1) / (real(1) +", "real(1) / (real(2) +"), SOURCE + "# a comment\n"]
    specs = [load_spec(written(tmp_path / f"f{i}", text), trust=True) for i, text in enumerate(texts)]
    x = np.random.default_rng(1).normal(size=(20, 3))
    found = [HostModel(spec).predict(x) for spec in specs[:2]]
    assert (found[0] != found[1]).all()
    projects = [build(spec) for spec in specs]
    assert len({p.figures["config_hash"] for p in projects}) == 3  # of every byte
    code = [re.sub(r"_STAMP != \w+", "", p.files["src/flow.c"]) for p in projects]
    assert code[0] == code[2] != code[1]
    edited = load_spec(written(tmp_path / "f0", texts[1]), trust=True)
    assert (HostModel(edited).predict(x) == found[1]).all() and edited.custom is not specs[0].custom


def test_specs_and_kernels_are_pickled_with_their_code(tmp_path):
    spec = load_spec(written(tmp_path), trust=True)
    (tmp_path / "spec.pickle").write_bytes(pickle.dumps((spec, MercerKernel.of(spec))))
    assert pickle.loads((tmp_path / "spec.pickle").read_bytes())[0].custom is spec.custom
    (tmp_path / "custom_kernels.py").unlink()
    code = (
        "import pickle; spec, kernel = pickle.load(open('spec.pickle', 'rb'))\n"
        "print(spec.custom.name, kernel.gram([[1.0, 2, 3]], [[1.0, 2, 2]])[0, 0])"
    )
    run = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert run.stdout == "rational_quadratic 0.6666666666666666\n", run.stderr


# ------------------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    "source",
    ["/etc/passwd.py", "../custom_kernels.py", "a/../../b.py", "custom_kernels.txt", "a\\b.py", "C:b.py", "a b.py", "", ".py", "x\n.py", "~/x.py", "a//b.py", "./x.py", "ü.py", "a" * 300 + ".py", "..py"],
)  # fmt: skip
def test_hostile_paths(source, tmp_path):
    with pytest.raises(UserError, match=r"\[kernel\] source is .*; it must be a \.py file in the spec's folder"):
        load_spec(written(tmp_path, source=source), trust=True)


def test_links_out_of_the_folder_and_what_is_no_file(tmp_path):
    spec = written(tmp_path / "inner")
    (tmp_path / "custom_kernels.py").write_text(SOURCE)
    (tmp_path / "inner" / "custom_kernels.py").unlink()
    with pytest.raises(UserError, match="the spec's folder has no such file; copy the file into that folder"):
        load_spec(spec, trust=True)
    (tmp_path / "inner" / "custom_kernels.py").symlink_to(tmp_path / "custom_kernels.py")
    with pytest.raises(UserError, match="is outside the spec's folder"):
        load_spec(spec, trust=True)
    (tmp_path / "inner" / "custom_kernels.py").unlink()
    (tmp_path / "inner" / "custom_kernels.py").mkdir()
    with pytest.raises(UserError, match=r"cannot be read \(Is a directory\); give a plain \.py file"):
        load_spec(spec, trust=True)


RAISES = "def k" + SIGNATURE
K = HEAD + "@kernel\ndef k" + SIGNATURE


@pytest.mark.parametrize(
    ("text", "kernel", "message"),
    [
        (HEAD, {"kernel": "System"}, r"kernel is 'System'; it must be the name of a kernel"),
        (HEAD, {"kernel": "k; import os"}, r"kernel is 'k; import os'; it must be"),
        (HEAD, {"source": None}, r"\[kernel\] source is missing; a custom kernel must have source, kernel and max_value"),
        (HEAD, {"max_value": None}, r"\[kernel\] max_value is missing"),
        (HEAD, {"max_value": -1.0}, r"\[kernel\] max_value is -1"),
        (HEAD, {}, "there is no kernel k; no function is marked @kernel"),
        (SOURCE, {}, "there is no kernel k; the file has affinity, products, rational_quadratic"),
        (HEAD + "def k():\n  return (\n", {}, r"custom_kernels\.py:\d: is not Python: "),
        (HEAD + "x = 1 / 0\n", {}, r"custom_kernels\.py:3: raises ZeroDivisionError: division by zero when it is executed"),
        (HEAD + "import sys\nsys.exit(0)\n", {}, r"custom_kernels\.py:4: raises SystemExit: 0 when it is executed"),
        (HEAD + "import no_such_module\n", {}, "raises ModuleNotFoundError: No module named 'no_such_module'"),
        (HEAD + RAISES + "return real(1)\n", {}, "k is not a kernel of the dialect; write @kernel above def k"),
        (HEAD + "@kernel\ndef k(a: Real[DIM], b: Real[DIM]) -> Real:\n    return real(1)\n", {}, "k has the wrong signature; declare it as k"),
        (HEAD + "@kernel\ndef k(q: KernelConfig, a: Real, b: Real[DIM]) -> Real:\n    return real(1)\n", {}, "k has the wrong signature"),
        (K + "return a[0] ** b[0]\n", {}, r"custom_kernels\.py:5: \*\* differs between libraries; multiply"),
        (K + "return missing(a)\n", {}, r"custom_kernels\.py:5: "),
        (K + "a[0] = real(1)\n    return real(1)\n", {}, "k writes to an array; a kernel may only read"),
        (K + "return q.rate\n", {}, "k uses q.rate; a kernel may use only q.gamma, q.coef0, q.degree"),
        (K + "return kernel_value(q, a, b)\n", {}, "k calls kernel_value, which would call k"),
        (HEAD + "@kernel\ndef predict" + SIGNATURE + "return real(1)\n", {"kernel": "predict"}, "predict is also the name of a function in the frozen model"),
        (K + "return sqrt(-q.gamma)\n", {}, r"\[kernel\] k is nan if both inputs are"),
        (K + "return real(1) / (a[0] - b[0])\n", {}, r"\[kernel\] k is inf|\[kernel\] k is nan"),
        (K + "return -real(1)\n", {}, r"k is -1 if both inputs are \[.*\]; k\(x, x\) must not be negative"),
        (K + "return real(2)\n", {}, r"\[kernel\] max_value is 1, but k is 2 if .*; \|k\(a, b\)\| must not exceed max_value"),
        (K + "return real(0.5) if a[0] > b[0] else real(0.75)\n", {}, r"k is not symmetric: it is 0\.\d+ for inputs .*, and 0\.\d+ with the inputs swapped"),
        (K + "t = q.gamma * (a[0] * b[0] + a[1] * b[1])\n    return real(1) / (real(1) + t * t)\n", {}, r"k is not positive semidefinite: the .* Gram matrix of \d+ inputs has eigenvalues from -"),
    ],
)  # fmt: skip
def test_one_sentence_for_each_thing_that_is_wrong(text, kernel, message, tmp_path):
    with pytest.raises(UserError, match=message) as error:
        load_spec(written(tmp_path, text, **({"kernel": "k"} | kernel)), trust=True).program  # noqa: B018
    assert "\n" not in str(error.value) and len(str(error.value)) < 500


@pytest.mark.parametrize("name", ["GAMMA", "EXP_LOWEST", "DONE"])
def test_a_constant_of_a_name_that_the_model_has(name, tmp_path):
    text = (
        HEAD
        + f"from pykernel.dialect import Constant\nfrom pykernel.algorithms.elementary import exp_negative\n{name} = Constant(-0.5)\n"
    )
    text += f"@kernel\ndef k{SIGNATURE}return q.gamma + exp_negative({name})\n"
    with pytest.raises(
        UserError, match=rf"custom_kernels\.py:.* would be a second FLOW_{name} in C; choose another name"
    ):
        build(load_spec(written(tmp_path, text, kernel="k", max_value=2.0), trust=True))


def test_a_kernel_that_is_wrong_where_no_sample_was_harms_nothing(tmp_path):
    """NaN and too large values far from the sample: zero and the limit, in C as on the host, and no NaN in a model."""
    text = K + (
        "if a[0] == real(0.375) and b[0] != a[0]:\n        return sqrt(-real(1)) if a[1] > real(0) else real(100)\n"
        "    return real(1) if a[0] == b[0] else real(0)\n"
    )  # fmt: skip
    spec = load_spec(written(tmp_path, text, kernel="k"), trust=True)
    x = np.array([[0.375, 1, 0], [0.375, -1, 0]])
    model, (first, second) = HostModel(spec), (spec.expansion.bias[0], np.sum(spec.expansion.weights))
    # inputs are the second argument: swap
    assert np.isfinite(model.predict(x)).all() and np.isfinite([first, second]).all()
    value = substitute(kernel_value_of(), {custom_kernel: spec.custom})
    for precision in (FLOAT32, FLOAT64):
        config = make_spec(
            spec.model_dump(exclude_unset=True) | {"precision": str(precision)}, custom=spec.custom
        ).config
        args = [np.array(row, precision.dtype) for row in (x[0], x[1], [1.0, 1, 1])]
        run = bind(value, precision)
        view = config.views[next(iter(c for c in config.views if c.__name__ == "KernelConfig"))]
        assert run(view, args[0], args[2]) == 0 and run(view, args[1], args[2]) == 1


def kernel_value_of():
    from pykernel.algorithms.kernel_choice import kernel_value

    return kernel_value


def test_the_judgement_lets_true_kernels_pass_at_every_scale():
    for limit in (1e-9, 1.0, 1e4):
        content = FROZEN | {
            "input": {"dim": 3, "max_abs": limit},
            "expansion": {"vectors": [[0.0, 0.0, 0.0]], "weights": [[1.0]], "bias": [0.0]},
        }
        for name, most in (("rational_quadratic", 1.0), ("products", 2 * (limit**2 + 0.5) ** 3 + 3 * limit**2)):
            for precision in ("float32", "float64"):
                made = make_spec(
                    content
                    | {"precision": precision, "kernel": CUSTOM | {"kernel": name, "max_value": most, "gamma": 1.0}},
                    custom=getattr(custom_kernels, name),
                )
                assert kernel_settings.parameters(made)["max_value"] == most  # fmt: skip
