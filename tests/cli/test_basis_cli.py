"""pykernel basis and convert: what is printed is what was computed, what is written is what was chosen, and bad input leaves
nothing."""

import io
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from pykernel.bases.basis import Basis
from pykernel.bases.gram import MercerKernel
from pykernel.bases.select import select_basis
from pykernel.host.model import HostModel
from pykernel.spec.model import load_spec
from pykernel.training.coding import Targets
from pykernel.training.reduced import ReducedProblem, select_reduced
from pykernel.training.subspace import HostSubspace
from pykernel.training.vectors import train
from pykernel.workflows import basis_job as cli_basis
from pykernel.workflows import fit as workflow
from tests.support import DOCS, interrupts
from tests.support.reports import without

pa = pytest.importorskip("pyarrow")
import pyarrow.parquet as pq  # noqa: E402

ROWS = 400
NAMES = ["a", "b", "y"]


def samples(seed=0):
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(2, ROWS))
    y = np.sin(2 * a) + 0.5 * b * b + 0.1 * rng.normal(size=ROWS)
    return np.column_stack([a, 2 * b]), y


X, Y = samples()
KINDS = np.digitize(Y, [0.0, 1.0])  # three
WORDS = ["low", "middle", "high"]


def write_csv(path, header, columns):
    rows = "".join(",".join(str(cell) for cell in row) + "\n" for row in zip(*columns, strict=True))
    path.write_text(f"{header}\n{rows}")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    table = np.column_stack([X, Y])
    write_csv(folder / "flow.csv", "a,b,y", table.T.tolist())
    write_csv(folder / "kinds.csv", "a,b,y", [*X.T.tolist(), [WORDS[k] for k in KINDS]])
    np.save(folder / "flow.npy", table)
    np.save(folder / "kinds.npy", np.column_stack([X, KINDS * 10]))
    content = pa.table({name: table[:, j] for j, name in enumerate(NAMES)})
    pq.write_table(content, folder / "flow.parquet", row_group_size=90)
    with pa.ipc.new_file(folder / "flow.arrow", content.schema) as file:
        file.write_table(content, max_chunksize=100)
    (folder / "parts").mkdir()
    for i in range(4):
        part = content.slice(100 * i, 100).append_column("word", pa.array(["w"] * 100))
        pq.write_table(part, folder / "parts" / f"{i}.parquet")
    return folder


@pytest.fixture
def folder(files, tmp_path, monkeypatch):
    for each in files.iterdir():
        (tmp_path / each.name).symlink_to(each)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def basis(run, monkeypatch):
    """The report of a run that ends well.  --save beside --output: the basis of the spec is kept, as Python keeps it."""
    found, fit = [], workflow.run
    monkeypatch.setattr(workflow, "run", lambda given: found.append(fit(given)) or found[-1])

    def basis(*arguments):
        words, kept = list(map(str, arguments)), None
        if "--save" in words and "--output" in words:
            at = words.index("--save")
            kept, words = words[at + 1], words[:at] + words[at + 2 :]
        words = ["--output" if word == "--save" else word for word in words]
        code, out, err = run("fit", *words, "--json")
        assert code == 0, err
        if kept is not None:
            found[-1].basis.save(Path(kept))
        return json.loads(out) | {"stderr": err}

    return basis


def error(kernel, vectors, x):
    """tr R / tr K from its definition."""
    k = kernel.gram(x, vectors)
    inverse = np.linalg.pinv(kernel.gram(vectors, vectors), rcond=1e-13, hermitian=True)
    return 1 - np.einsum("ij,jk,ik->", k, inverse, k) / kernel.diagonal(x).sum()


# -------------------------------------------------------------------------------------------------- what is chosen


def test_the_basis_is_that_of_select_basis_and_what_is_told_is_what_it_leaves_out(folder, basis):
    report = basis(
        "flow.npy",
        "--inputs",
        "0,1",
        "--n-max",
        12,
        "--set",
        "kernel.sigma=0.9",
        "--save",
        "b.npz",
        "--report",
        "c.html",
    )
    kernel = MercerKernel("gaussian", gamma=0.5 / 0.81)
    expected = select_basis(X, kernel, 12)
    found = Basis.load("b.npz")
    for name in ("vectors", "indices", "factor", "trace"):
        assert np.array_equal(getattr(found, name), getattr(expected, name))
    assert report["kernel"] == kernel.section() and report["method"] == "exhaustive" and "fits into" in report["reason"]
    assert report["left_out"] == found.trace.tolist() and report["exact"] and report["vectors"] == 12
    values = np.linalg.eigvalsh(kernel.gram(X, X))[::-1]
    for n in (1, 6, 12):
        assert report["left_out"][n] == pytest.approx(error(kernel, X[found.indices[:n]], X), rel=1e-6)
        assert report["limit"][n] == pytest.approx(values[n:].sum() / ROWS, rel=1e-9)
        assert report["limit"][n] < report["left_out"][n]
    assert report["kernel_values"] == expected.evaluations == ROWS**2
    assert "at best" in Path("c.html").read_text() and report["spec"] is None


@pytest.mark.in_turn
@pytest.mark.parametrize(
    "arguments, expected",
    [
        (["--set", "training.method=efvs", "--set", "training.candidates=7", "--set", "training.points=20", "--seed", "3"], {"method": "efvs", "candidates": 7, "points": 20, "seed": 3}),
        (["--set", "training.method=sgma", "--set", "training.candidates=0"], {"method": "sgma", "candidates": None}),
        (["--set", "training.method=efvs", "--set", "training.points=0"], {"method": "efvs", "points": None}),
        (["--set", "training.method=rpcholesky", "--seed", "5"], {"method": "rpcholesky", "seed": 5}),
        (["--set", "training.method=pivoted-cholesky"], {"method": "pivoted-cholesky"}),
        (["--set", "training.tau=0.3"], {"tau": 0.3}),
        (["--set", "training.method=sgma", "--set", "training.with=view=column,rule=4.3,epsilon=0.3"], {"method": "sgma", "view": "column", "rule": "4.3", "epsilon": 0.3}),
        (["--set", "training.method=sgma", "--set", "training.with=pool=9,swaps=2"], {"method": "sgma", "pool": 9, "swaps": 2}),
        (["--set", "training.method=efvs", "--set", "training.with=lazy=true", "--set", "training.tau=0.5", "--set", "training.confidence=0.6"], {"method": "efvs", "lazy": True, "tau": 0.5, "confidence": 0.6}),
    ],
)  # fmt: skip
def test_options_reach_the_selection(folder, basis, arguments, expected):
    report = basis("flow.npy", "--inputs", "0,1", "-n", 15, "--set", "kernel.sigma=0.9", "--save", "b.npz", *arguments)
    direct = select_basis(X, MercerKernel("gaussian", gamma=0.5 / 0.81), 15, **expected)
    found = Basis.load("b.npz")
    assert np.array_equal(found.vectors, direct.vectors) and np.array_equal(found.trace, direct.trace)
    assert report["stopped"] == direct.stopped and report["kernel_values"] == direct.evaluations
    assert report["bound"] == direct.bound and (
        direct.bound == 0.5 if "confidence" in expected else direct.bound is None
    )
    if "tau" in expected:
        tau, left = expected["tau"], report["left_out"]
        assert report["stopped"] == "tau" and left[-1] <= tau and ("confidence" in expected or left[-2] > tau)


def test_widths_are_those_of_the_data(folder, basis):
    for kernel, width in [
        ("gaussian", "sigma"),
        ("laplacian", "gamma"),
        ("matern12", "gamma"),
        ("matern32", "gamma"),
        ("matern52", "gamma"),
        ("polynomial", "gamma"),
    ]:
        report = basis(
            "flow.npy", "--inputs", "0,1", "-n", 15, "--set", f"kernel.function={kernel}", "--save", "b.npz", "--force"
        )
        assert any(each.startswith(f"{width} {report['chosen'][width]:g}") for each in report["assumed"])
        assert report["left_out"][-1] / (1 if kernel != "polynomial" else 0.001) > 0.01 or kernel == "polynomial"
        # neither so wide that all rows are alike, nor so narrow that none are
        gram = Basis.load("b.npz").kernel.gram(X, X)
        assert 0.05 < np.median(np.abs(gram[np.triu_indices(ROWS, 1)])) / np.median(gram.diagonal()) < 0.9


def test_every_source_gives_the_same_basis_and_the_same_spec(folder, basis):
    arguments = [
        "--label",
        "y",
        "--set",
        "learning.rule=nystrom-rls",
        "--n-max",
        "10",
        "--set",
        "kernel.sigma=0.8,1.2",
        "--set",
        "training.ridge=0.01,0.1",
        "--set",
        "name=flow",
        "--force",
    ]
    specs = {}
    for source in ("flow.csv", "flow.parquet", "flow.arrow", "parts", "flow.npy"):
        label = ["--label", "2"] if source == "flow.npy" else []
        report = basis(source, *arguments, *label, "--output", "s.toml", "--save", "b.npz")
        specs[source] = Path("s.toml").read_text()
        assert np.array_equal(Basis.load("b.npz").vectors, X[Basis.load("b.npz").indices])
        assert report["inputs"] == (["0", "1"] if source == "flow.npy" else ["a", "b"])
        left = [each["column"] for each in report["data"]["left_out"]]
        assert left == (["word"] if source == "parts" else []) and report["data"]["rows"] == ROWS
    assert len({specs[source] for source in ("flow.csv", "flow.parquet", "flow.arrow", "parts")}) == 1
    assert (
        specs["flow.npy"].replace("dim = 2", 'columns = ["a", "b"]').split("[expansion]")[1]
        == specs["flow.csv"].split("[expansion]")[1]
    )
    basis("flow.csv", *arguments, "--inputs", "b,a", "--output", "s.toml")
    assert load_spec("s.toml").input.columns == ("b", "a")


# -------------------------------------------------------------------------------------------- what is written with it


@pytest.mark.in_turn(9)
@pytest.mark.parametrize("model", ["krr", "ls-svm"])
@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_numbers(folder, basis, model, precision):
    report = basis("flow.npy", "--label", "2", "-n", 25, "--set", f"training.model={model}", "--set", "kernel.sigma=0.7,1,1.4", "--set", "training.ridge=1e-3,1e-2,0.1",
                   "--output", "flow.toml", "--save", "b.npz", "--set", f"precision={precision}", "--set", "training.standardise=false")  # fmt: skip
    epsilon = 1.01 * (1e-3 if precision == "float32" else 1e-9)
    kernel, targets = MercerKernel("gaussian"), Targets.of_values(Y)
    direct = select_reduced(model, X, targets, kernel, [0.7, 1, 1.4], [1e-3, 1e-2, 0.1], basis=25, epsilon=epsilon)
    assert report["chosen"] == {"sigma": direct.width, "ridge": direct.ridge}
    assert report["errors"]["cross_validated"] == pytest.approx(np.sqrt(direct.value), rel=1e-6)
    found = Basis.load("b.npz")
    machine = ReducedProblem(model, found, X, targets).solve(direct.ridge)
    spec = load_spec("flow.toml")
    assert spec.learning.rule == "nystrom" and spec.precision == precision
    assert np.allclose(np.array(spec.expansion.weights), machine.w, rtol=1e-9) and len(spec.expansion.vectors) == len(
        found
    )
    predicted = HostModel(spec).predict(X).ravel()
    assert np.abs(predicted - machine.predict(X).ravel()).max() == pytest.approx(
        report["rounding"]["difference"], rel=0.2, abs=1e-12
    )
    assert report["rounding"]["difference"] < (1e-3 if precision == "float32" else 1e-10)
    trained = np.sqrt(np.mean((predicted - Y) ** 2))
    assert trained < report["errors"]["cross_validated"] < 0.4 * without(report)
    assert report["warnings"] == []


def test_rounding_that_counts_is_told(folder, basis, monkeypatch):
    monkeypatch.setattr(cli_basis, "COARSE", 0.02)  # which bases in float32 keep well below what is worth a warning
    np.save("exact.npy", np.column_stack([X, X.sum(axis=1)]))
    arguments = [
        "exact.npy",
        "--label",
        "2",
        "-n",
        "40",
        "--set",
        "kernel.sigma=5",
        "--set",
        "training.ridge=1e-9",
        "--output",
        "exact.toml",
    ]
    report = basis(*arguments)
    assert report["rounding"]["difference"] > 0.02 * report["errors"]["cross_validated"]
    assert (
        report["warnings"][0].startswith("in float32, predictions differ by up to")
        and "warning" not in report["stderr"]
    )


@pytest.mark.parametrize("source", ["kinds.csv", "kinds.npy"])
def test_classes(folder, basis, source):
    named = (
        ["--label", "y", "--set", "label.classes=low,middle,high"]
        if source == "kinds.csv"
        else ["--label", "2", "--set", "label.classes=0,10,20"]
    )
    report = basis(
        source, *named, "-n", 30, "--set", "kernel.sigma=1", "--set", "training.ridge=0.1", "--output", "kinds.toml"
    )
    spec = load_spec("kinds.toml")
    assert spec.label.classes == (tuple(WORDS) if source == "kinds.csv" else ("0", "10", "20"))
    wrong = (HostModel(spec).classify(X) != KINDS).mean()
    assert wrong <= report["errors"]["cross_validated"] < 0.5 * without(report)
    assert without(report) == pytest.approx(1 - np.bincount(KINDS).max() / ROWS)


@pytest.mark.in_turn(9)
@pytest.mark.parametrize("of_classes", [False, True])
def test_trained_vectors_are_a_basis_whose_weights_are_learned_on_the_device(tmp_path, monkeypatch, basis, of_classes):
    """Of four inputs two mean nothing, which no choice among rows can know."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(cli_basis, "train", lambda *a, **k: train(*a, **k, ridges=(1e-3,), steps=60))
    x = np.random.default_rng(0).uniform(-2, 2, (ROWS, 4))
    y = np.sin(2 * x[:, 0]) + x[:, 1]
    if of_classes:
        y = (y > 0).astype(np.int64)
    write_csv(Path("t.csv"), "a,b,c,d,y", [*x.T.tolist(), [("no", "yes")[k] for k in y] if of_classes else y])
    words = [
        "t.csv",
        "--label",
        "y",
        "-n",
        8,
        "--set",
        "learning.rule=nystrom-rls",
        *(["--set", "label.classes=no,yes"] if of_classes else []),
    ]
    report = basis(*words, "--set", "training.method=trained", "--output", "t.toml", "--save", "t.npz")
    spec, kept = load_spec("t.toml"), Basis.load("t.npz")
    assert report["rule"] == spec.learning.rule == "nystrom-rls" and spec.basis.method == "given"
    assert report["method"] == kept.method == "trained" and report["vectors"] == len(kept) <= 8 and not report["exact"]
    assert np.array(spec.expansion.vectors) == pytest.approx(kept.vectors, abs=1e-6)
    center, scale = spec.scaling  # a width for each input
    assert report["left_out"][-1] == pytest.approx(kept.residual((x - center) * scale).mean(), abs=1e-6)
    basis(*words, "--output", "c.toml")
    wrong = {}
    for name in ("t.toml", "c.toml"):
        model = HostModel(load_spec(name))
        model.update(x[:300], y[:300])
        asked = model.classify(x[300:]) if of_classes else np.asarray(model.predict(x[300:])).ravel()
        wrong[name] = (asked != y[300:]).mean() if of_classes else np.square(asked - y[300:]).mean()
    assert wrong["t.toml"] < 0.6 * wrong["c.toml"]
    # the vectors were trained beside a bias
    assert spec.label.center is (not of_classes)


def test_learning_on_the_device_starts_from_the_basis_and_learns(folder, basis):
    report = basis(
        "flow.csv",
        "--label",
        "y",
        "-n",
        25,
        "--set",
        "learning.rule=nystrom-rls",
        "--output",
        "flow.toml",
        "--save",
        "b.npz",
    )
    spec = load_spec("flow.toml")
    assert report["rule"] == spec.learning.rule == "nystrom-rls" and spec.basis.method == "given"
    assert (
        spec.learning.ridge == report["chosen"]["ridge"]
        and 2 * np.abs(Y).max() <= spec.label.max_abs <= 5 * np.abs(Y).max()
    )
    model = HostModel(spec)
    model.update(X, Y) if hasattr(model, "update") else model.prequential(X, Y)
    learned = np.asarray(model.predict(X)).ravel()
    machine = ReducedProblem("krr", Basis.load("b.npz"), X, Targets.of_values(Y)).solve(spec.learning.ridge)
    # as solved at once
    assert np.abs(learned - machine.predict(X).ravel()).max() < 0.02


def test_a_basis_for_the_discriminant_that_trains_on_the_device(folder, basis):
    report = basis(
        "kinds.csv",
        "--label",
        "y",
        "--set",
        "learning.rule=kfd",
        "-n",
        30,
        "--set",
        "kernel.sigma=1",
        "--output",
        "kinds.toml",
    )
    spec = load_spec("kinds.toml")
    assert report["rule"] == spec.learning.rule == "kfd" and spec.label.classes == ("high", "low", "middle")
    direct = select_reduced("kfd", X, Targets.of_classes(np.array([1, 2, 0])[KINDS], 3, "counts"), MercerKernel("gaussian"), [1.0],
                            basis=30, epsilon=1.01e-3)  # fmt: skip
    assert spec.learning.ridge == report["chosen"]["ridge"] == direct.ridge
    numbers = basis(
        "kinds.npy",
        "--label",
        "2",
        "--set",
        "learning.rule=kfd",
        "-n",
        30,
        "--set",
        "kernel.sigma=1",
        "--output",
        "numbers.toml",
    )
    assert numbers["classes"] == ["0", "10", "20"]


def test_without_a_label_the_coordinates_are_what_is_predicted(folder, basis):
    basis(
        "flow.npy",
        "--inputs",
        "0,1",
        "-n",
        8,
        "--output",
        "z.toml",
        "--save",
        "b.npz",
        "--set",
        "training.standardise=true",
    )
    spec, found = load_spec("z.toml"), Basis.load("b.npz")
    assert spec.name == "z" and spec.outputs == len(found) == 8
    scaled = (X - X.mean(axis=0)) / X.std(axis=0)
    assert spec.input.center == pytest.approx(X.mean(axis=0)) and np.allclose(found.vectors, scaled[found.indices])
    assert np.allclose(HostModel(spec).predict(X), found.features(scaled), atol=1e-4)


def test_features_of_a_subspace_are_what_is_predicted(folder, basis, run):
    """Batch BKFE within the basis: HostSubspace's features, but for order and signs."""
    told = [
        "flow.npy",
        "--inputs",
        "0,1",
        "-n",
        20,
        "--set",
        "kernel.sigma=0.9",
        "--set",
        "training.standardise=true",
        "--set",
        "training.features=6",
        "--set",
        "training.shrinkage=3",
    ]
    report = basis(*told, "--output", "f.toml", "--save", "b.npz")
    spec, found = load_spec("f.toml"), Basis.load("b.npz")
    scaled = (X - X.mean(axis=0)) / X.std(axis=0)
    expected = HostSubspace.fit(scaled, found.kernel, 6, 3.0, basis=found)
    order = np.argsort(-expected.gram.diagonal())[: expected.kept]
    z = np.asarray(HostModel(spec).predict(X), np.float64)
    assert spec.outputs == report["features"]["count"] == expected.kept <= 6
    assert np.abs(z) == pytest.approx(np.abs(expected.features(scaled)[:, order]), abs=1e-4)
    values = np.sqrt(np.linalg.eigvalsh(found.features(scaled).T @ found.features(scaled)))[::-1][: expected.kept]
    assert report["features"]["singular_values"] == pytest.approx(values)
    assert report["features"]["left_out"] == pytest.approx(1 - np.square(z).sum() / ROWS, abs=1e-4)
    code, out, _ = run("fit", *map(str, told), "--output", "f.toml", "--force")
    assert code == 0 and f"features  {expected.kept}; " in out
    few = basis(*told[:-1], "training.shrinkage=10", "--output", "few.toml")
    assert few["features"]["count"] < expected.kept


def test_a_bound_is_told(folder, run):
    told = [
        "fit",
        "flow.npy",
        "--inputs",
        "0,1",
        "-n",
        "40",
        "--set",
        "kernel.sigma=0.9",
        "--set",
        "training.tau=0.5",
        "--set",
        "training.confidence=0.6",
    ]
    code, out, _ = run(*told, "--set", "training.method=efvs", "--set", "training.with=lazy=true", "--output", "b.npz")
    assert code == 0 and "bound     at most 50 % is left out, with 60 % confidence\n" in out
    code, out, _ = run(*told, "--output", "c.npz")
    assert code == 0 and re.search(r"bound     at most [34]\d(\.\d)? % is left out, computed from all rows\n", out), out


def test_uneven_inputs_are_standardised_unless_that_is_not_wanted(folder, basis):
    write_csv(Path("uneven.csv"), "a,b,y", [X[:, 0], 1000 * X[:, 1] + 5000, Y])
    report = basis("uneven.csv", "--label", "y", "-n", 10, "--set", "kernel.sigma=1", "--output", "u.toml")
    assert any(each.startswith("inputs standardised") for each in report["assumed"])
    assert load_spec("u.toml").input.scale == pytest.approx([1 / X[:, 0].std(), 1e-3 / X[:, 1].std()])
    report = basis(
        "uneven.csv",
        "--label",
        "y",
        "-n",
        10,
        "--set",
        "kernel.sigma=1",
        "--output",
        "v.toml",
        "--set",
        "training.standardise=false",
    )
    assert load_spec("v.toml").input.center is None


def test_many_rows_are_tuned_on_some_of_them_and_all_count_for_the_weights(folder, basis, monkeypatch):
    monkeypatch.setattr(cli_basis, "TUNED_ROWS", 150)
    monkeypatch.setattr(cli_basis, "LIMIT_ROWS", 100)
    report = basis(
        "flow.npy",
        "--label",
        "2",
        "-n",
        12,
        "--set",
        "kernel.sigma=0.7,1,1.4",
        "--output",
        "flow.toml",
        "--save",
        "b.npz",
    )
    assert "the width was chosen on 150 of 400 rows" in report["assumed"] and report["limit"] is None
    machine = ReducedProblem("ls-svm", Basis.load("b.npz"), X, Targets.of_values(Y)).solve(report["chosen"]["ridge"])
    assert np.allclose(np.array(load_spec("flow.toml").expansion.weights), machine.w, rtol=1e-9)


# ------------------------------------------------------------------------------------------------ printed, interrupted


def test_what_is_printed_is_what_is_reported(folder, run, basis):
    arguments = [
        "flow.npy",
        "--label",
        "2",
        "-n",
        "16",
        "--set",
        "kernel.sigma=1",
        "--set",
        "training.ridge=0.1",
        "--output",
        "flow.toml",
        "--force",
    ]
    report = basis(*arguments)
    code, out, err = run("fit", *arguments)
    assert code == 0 and err == ""
    for n in (2, 4, 8, 16):
        assert (
            f"  {n} " in out
            and f"{100 * report['left_out'][n]:.3g} %" in out
            and f"{100 * report['limit'][n]:.3g} %" in out
        )
    assert (
        f"{report['kernel_values']:,} kernel values" in out and f"{report['flash_bytes']:,} bytes, rule nystrom" in out
    )
    assert "pykernel generate flow.toml" in out and f"\n{ROWS:,} rows of 2 inputs" in out
    code, out, _ = run(
        "fit",
        "flow.npy",
        "-n",
        "5",
        "--set",
        "kernel.sigma=1",
        "--set",
        "training.method=efvs",
        "--set",
        "training.candidates=5",
        "--output",
        "b.npz",
    )
    assert code == 0 and "next:" not in out


SCRIPT = """
import sys
import pykernel.bases.select
from pykernel.cli.app import main
from tests.support.interrupts import pause

make, folder = pykernel.bases.select.make_selector, sys.argv[1]

def made(*arguments, **options):
    selector = make(*arguments, **options)
    step, calls = selector.step, []

    def paused():
        calls.append(None)
        if len(calls) == 6 and folder:
            pause(folder)
        return step()

    selector.step = paused
    return selector

pykernel.bases.select.make_selector = made
main(sys.argv[2:])
"""
ARGUMENTS = ["fit", "flow.npy", "-n", "60", "--set", "kernel.sigma=0.5", "--set", "training.method=sgma"]


def begun(pauses="", **options):
    return interrupts.start(
        "-c",
        SCRIPT,
        pauses,
        *ARGUMENTS,
        "--output",
        "b.npz",
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        **options,
    )


@pytest.mark.skipif(os.name == "nt", reason="signals")
@pytest.mark.in_turn(13)
@pytest.mark.exhaustive
def test_interrupted_nothing_is_written(folder):
    process = begun(".")
    interrupts.signalled(process, signal.SIGINT, ".")
    _, err = process.communicate(timeout=interrupts.PATIENCE)
    assert process.returncode == 130 and not Path("b.npz").exists(), err
    assert b"error: interrupted; " in err and err.count(b"\n") == 1


# ------------------------------------------------------------------------------------------------------------ refusals


@pytest.mark.parametrize(
    "arguments, what",
    [
        ("flow.npy", "Missing option '--output'"),
        ("logs --output a.toml", "is a folder of several tables, but without --label, fit chooses a basis"),
        ("flow.npy --output flow.npy", "is the data itself"),
        ("flow.npy --output b.npz --report b.npz", "is given for two outputs"),
        ("flow.npy --output b.toml -n 65", "give --label, or --n-max 64"),
        ("flow.npy --output b.toml --set kernel=gaussian", "with one of the keys kernel.function, kernel.sigma"),
        ("flow.npy --output b.toml --set training.model=krr", "is trained on labels; name their column with --label"),
        ("flow.npy --output there.npz", "already exists"),
        ("flow.npy --output no/b.npz", "there is no folder"),
        ("flow.npy --output b.npz --set learning.rule=nystrom-rls", "--set learning.rule=nystrom-rls needs a spec; give --output SPEC"),
        ("flow.npy --output a.toml --set learning.rule=kfd", "name their column with --label"),
        ("flow.npy --output b.npz --set label.classes=1,2", "--set label.classes needs a label"),
        ("flow.npy --output b.npz --set training.model=best", "--set training.model=best is not known"),
        ("kinds.npy --output a.toml --label 2 --set learning.rule=kfd --set training.model=krr", "does not go with --set learning.rule=kfd"),
        ("flow.npy --output a.toml --label 2 --set learning.rule=nystrom-rls --set training.model=ls-svm", "has a bias"),
        ("flow.npy --output a.toml --label 2 --set training.method=trained", "give --set learning.rule=nystrom-rls and --label"),
        ("flow.npy --output a.toml --set learning.rule=nystrom-rls --set training.method=trained", "give --set learning.rule=nystrom-rls and --label"),
        ("flow.npy --output a.toml --label 2 --set learning.rule=nystrom-rls --set training.method=trained --set kernel.sigma=1", "--set kernel.sigma does not apply to --set training.method=trained"),
        ("flow.npy --output a.toml --label 2 --set learning.rule=nystrom-rls --set training.method=trained --set training.tau=.1", "--set training.tau does not apply to --set training.method=trained"),
        ("flow.npy --output a.toml --label 2 --set learning.rule=nystrom-rls --set training.method=trained -n 500", "at most 400, the number of rows"),
        ("flow.npy --output b.npz --set training.tau=2", "tau is 2"),
        ("flow.npy --output b.npz --set training.confidence=0.9", "trace that the basis may leave out, such as --set training.tau=0.01"),
        ("flow.npy --output b.npz --set training.confidence=2 --set training.tau=0.1", "confidence is 2"),
        ("flow.npy --output b.npz --set training.method=sgma --set training.with=vew=column", "--set training.with holds 'vew=column'; did you mean 'view'?"),
        ("flow.npy --output b.npz --set training.method=sgma --set training.with=view=colum", "--set training.with=view=colum: 'colum' is not known; did you mean 'column'?"),
        ("flow.npy --output b.npz --set training.method=sgma --set training.with=rule=5", "must be one of 4.1, 4.2, 4.3"),
        ("flow.npy --output b.npz --set training.with=swaps=some", "--set training.with=swaps=some: 'some' is not a whole number"),
        ("flow.npy --output b.npz --set training.with=epsilon=2", "epsilon is 2"),
        ("flow.npy --output b.npz --set training.features=3", "--set training.features needs a spec; give --output SPEC"),
        ("flow.npy --output a.toml --set training.features=3 --label 2", "--set training.features does not go with a label or a rule"),
        ("flow.npy --output a.toml --set training.features=3 --set learning.rule=nystrom-rls", "--set training.features does not go with a label or a rule"),
        ("flow.npy --output a.toml --set training.features=30 -n 20", "--set training.features is 30; it must be from 1 to --n-max, which is 20"),
        ("flow.npy --output a.toml --set training.features=3 --set training.shrinkage=0", "--set training.shrinkage is 0; it must be above 0"),
        ("flow.npy --output a.toml --set training.features=3 --set training.shrinkage=1e6 --set kernel.sigma=1", "shrinkage is 1e+06, and the largest singular value"),
        ("flow.npy --output b.npz --set training.candidates=-1", "--set training.candidates is '-1'"),
        ("flow.npy --output b.npz --set training.points=-1", "--set training.points is '-1'"),
        ("flow.npy --output b.npz -n 0", "n_max is 0"),
        ("flow.npy --output b.npz --seed -1", "seed is -1"),
        ("kinds.npy --output a.toml --label 2 --seed -1", "--seed is -1"),
        ("kinds.npy --output a.toml --label 2 --set kernel.sigma=1e300", "--set kernel.sigma holds 1e300; its square must neither overflow"),
        ("kinds.npy --output a.b.toml --label 2", "or --set name"),
        ("flow.npy --output b.npz --set training.method=best", "there is no method 'best'"),
        ("flow.npy --output b.npz --set kernel.function=sigmoid", "--set kernel.function=sigmoid is not known here"),
        ("flow.npy --output b.npz --set kernel.gamma=1", "this kernel has --set kernel.sigma"),
        ("flow.npy --output b.npz --set kernel.function=linear --set kernel.gamma=1", "this kernel has no width"),
        ("flow.npy --output b.npz --set kernel.sigma=0", "must be above zero"),
        ("flow.npy --output b.npz --set kernel.sigma=1,2", "without a label, fit cannot choose among them"),
        ("flow.npy --output b.npz --set training.ridge=1,2", "without a label, fit cannot choose among them"),
        ("flow.npy --output b.npz --set training.normalise=true", "normalise does not go with a gaussian kernel"),
        ("flow.npy --output b.npz --set kernel.function=polynomial --set kernel.degree=12", "degree is 12"),
        ("flow.npy --output a.toml --set precision=float16", "precision"),
        ("flow.npy --output a.toml --set name=7up", "name"),
        ("flow.npy --output b.npz --inputs a", "give positions from 0 to 2"),
        ("flow.npy --output b.npz --inputs 5", "has 3 columns"),
        ("flow.npy --output b.npz --label 1 --inputs 0,1", "is the label"),
        ("flow.npy --output a.toml --label 2 --set learning.rule=kfd", "different numbers; at most 64 classes"),
        ("kinds.npy --output a.toml --label 2 --set label.classes=0,10", "holds 20, which is missing from --set label.classes"),
        ("kinds.npy --output a.toml --label 2 --set label.classes=0,10,20,30", "is never 30"),
        ("kinds.npy --output a.toml --label 2 --set label.classes=a,b", "holds numbers"),
        ("one.npy --output a.toml --label 1 --set learning.rule=kfd", "is always 3"),
        ("narrow.npy --output a.toml --label 0", "only the label's column"),
        ("single.npy --output b.npz", "at least 2 are needed"),
        ("nan.npy --output b.npz", r"row 7 (from 0): column 1 is nan"),
        ("null.parquet --output b.npz", "row 2 (from 0): column 'a' is null"),
        ("words.parquet --output b.npz", "no column with numbers"),
        ("flow.parquet --output b.npz --inputs a,c", "has no column 'c'"),
        ("flow.csv --output b.npz --inputs a,c", "names no column 'c'"),
        ("kinds.csv --output b.npz --inputs a,y", "cells are words, but at most 5 % may be: correct them, or name another column"),
        ("words.csv --output b.npz", "no column of varying numbers"),
        ("short.csv --output b.npz", "has 1 rows without a missing input"),
        ("nothing.csv --output b.npz", "no such file"),
        ("nothing.npy --output b.npz", "no such file"),
        ("flow.txt --output b.npz", "cannot be read in parts"),
        ("zeros.npy --output b.npz --set kernel.function=linear", "no row can be chosen"),
        ("flow.npy --output a.toml --label 2 --set training.ridge=0", "must be above zero"),
    ],
)  # fmt: skip
def test_bad_input_is_one_sentence_and_leaves_nothing(folder, run, arguments, what):
    Path("there.npz").write_text("mine")
    Path("logs").mkdir()
    Path("logs/a.csv").write_text("a,b\n1,2\n")
    Path("flow.txt").write_text("1 2")
    np.save("one.npy", np.column_stack([X[:, 0], np.full(ROWS, 3.0)]))
    np.save("narrow.npy", X[:, :1])
    np.save("single.npy", X[:1])
    np.save("zeros.npy", np.zeros((9, 2)))
    holed = X.copy()
    holed[7, 1] = np.nan
    np.save("nan.npy", holed)
    pq.write_table(pa.table({"a": [1.0, 2.0, None]}), "null.parquet")
    pq.write_table(pa.table({"a": ["x", "y"]}), "words.parquet")
    Path("words.csv").write_text("a,b\nx,y\nz,w\n")
    Path("short.csv").write_text("a,b\n1,2\n,3\n4,\n")
    before = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
    code, out, err = run("fit", *arguments.split())
    assert code == 2 and out == "" and err.startswith("error: ") and err.count("\n") == 1 and "Traceback" not in err
    assert what in err, err
    assert {path.name: path.stat().st_mtime_ns for path in folder.iterdir()} == before


def test_standard_input_is_a_csv_file(folder, basis, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(Path("flow.csv").read_bytes())))
    assert basis("-", "-n", 5, "--set", "kernel.sigma=1", "--inputs", "a,b", "--save", "b.npz")["rows"] == ROWS
    assert np.array_equal(Basis.load("b.npz").vectors, select_basis(X, MercerKernel("gaussian", gamma=0.5), 5).vectors)


# ------------------------------------------------------------------------------------------------------------ convert


@pytest.mark.parametrize("source", ["flow.csv", "flow.parquet", "flow.arrow", "parts", "flow.npy"])
def test_a_table_becomes_an_array(folder, run, source):
    for precision, columns in [("float64", None), ("float32", "y,a" if source != "flow.npy" else "2,0")]:
        given = ["--inputs", columns] if columns else []
        code, out, err = run(
            "table", source, "--output", "x.npy", "--precision", precision, "--force", "--json", *given
        )
        assert code == 0, err
        expected = np.column_stack([X, Y])[:, [2, 0] if columns else [0, 1, 2]].astype(precision)
        found = np.load("x.npy")
        assert found.dtype == precision and np.array_equal(found, expected)
        report = json.loads(out)
        names = (columns or ("a,b,y" if source != "flow.npy" else "0,1,2")).split(",")
        assert report.pop("data")["inputs"] == names
        assert report == {"output": "x.npy", "rows": ROWS, "columns": names, "precision": precision}
    assert run("table", source, "--output", "z.npy")[1].startswith("columns   0: ")


def test_rows_of_csv_without_a_cell_are_left_out_and_words_are(folder, run):
    Path("holes.csv").write_text("a,word,b\n1,x,2\n3,y,\n ,z,4\n5,w,6\n")
    code, out, _ = run("table", "holes.csv", "--output", "x.npy")
    assert code == 0 and np.array_equal(np.load("x.npy"), [[1, 2], [5, 6]])
    assert (
        "left out, not numbers: word\n         2 rows with a missing input: left out" in out
        and "columns   0: a, 1: b" in out
    )
    code, out, _ = run("table", "holes.csv", "--inputs", "a", "--output", "y.npy")
    assert code == 0 and np.array_equal(np.load("y.npy"), [[1], [3], [5]])


@pytest.mark.parametrize(
    "arguments, what",
    [
        ("flow.csv --output flow.csv", "is the data itself"),
        ("flow.csv --output there.npy", "already exists"),
        ("flow.csv --output a.npy --precision float16", "--precision is 'float16'"),
        ("flow.csv --output a.npy --inputs a,c", "names no column 'c'"),
        ("flow.parquet --output a.npy --inputs a,c", "has no column 'c'"),
        ("bad.csv --output a.npy", "line 5002: column 'a' is 'x', not a number; 300 of 5,300 cells are words"),
        ("inf.csv --output a.npy", "line of, row 3"),
        ("big.csv --output a.npy", "as float32"),
        ("words.csv --output a.npy", "no column with numbers"),
        ("empty.csv --output a.npy", "every row lacks a cell"),
        ("null.parquet --output a.npy", "is null"),
        ("nothing.csv --output a.npy", "no such file"),
    ],
)
def test_what_cannot_be_converted_leaves_nothing(folder, run, arguments, what):
    Path("there.npy").write_text("mine")
    Path("bad.csv").write_text("a,b\n" + "1,2\n" * 5000 + "x,2\n" * 300)
    Path("inf.csv").write_text("a,b\n1,2\n-inf,2\n")
    Path("big.csv").write_text("a,b\n1,2\n1e300,2\n")
    Path("words.csv").write_text("a,b\nx,y\n")
    Path("empty.csv").write_text("a,b\n1,\n,2\n")
    pq.write_table(pa.table({"a": [1.0, 2.0, None]}), "null.parquet")
    before = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
    code, out, err = run("table", *arguments.split())
    assert code == 2 and out == "" and err.startswith("error: ") and err.count("\n") == 1
    assert what in err, err
    assert {path.name: path.stat().st_mtime_ns for path in folder.iterdir()} == before


# --------------------------------------------------------------------------------------------------- docs/bases.md


@pytest.mark.exhaustive
def test_the_guides_command_prints_what_it_says(run, tmp_path, monkeypatch):
    load_digits = pytest.importorskip("sklearn.datasets").load_digits
    monkeypatch.chdir(tmp_path)
    np.save("digits.npy", np.column_stack([load_digits().data / 16, load_digits().target]).astype(np.float32))
    section = (DOCS / "bases.md").read_text(encoding="utf-8").split("## From the command line")[1]
    command, said = re.findall(r"^```\w+\n(.*?)^```", section, re.DOTALL | re.MULTILINE)[:2]
    code, out, err = run(*command.split()[1:])
    assert code == 0, err
    # numbers within a tenth, since versions of libraries differ
    told, found = ([line.split() for line in text.splitlines() if line.strip()] for text in (said, out))
    assert len(told) == len(found), out
    for wanted, got in zip(told, found, strict=True):
        if wanted[0] in ("cost", "rounding", "error"):
            wanted, got = wanted[:1], got[:1]
        for a, b in zip(wanted, got, strict=True):
            if all(re.fullmatch(r"[\d.,]*\d", word) for word in (a, b)):
                x, y = (float(word.replace(",", "")) for word in (a, b))
                assert abs(x - y) <= 0.1 * abs(x), out
            else:
                assert a.strip("─") == b.strip("─"), out
