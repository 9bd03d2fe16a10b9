"""pykernel fit: what it prints is what was computed, what it writes is what was trained, and bad input leaves nothing."""

import json
from pathlib import Path

import numpy as np
import pytest

from pykernel.bases.gram import MercerKernel
from pykernel.estimators.batch import LSSVMRegressor
from pykernel.host.model import HostModel
from pykernel.spec.model import load_spec
from pykernel.training.coding import Targets, error_rate, press
from pykernel.training.reduced import ReducedProblem, basis_of
from pykernel.training.selection import select
from pykernel.tuning.tables import LabelledTable
from pykernel.workflows import chosen as cli_fit
from tests.support.reports import without

pytest.importorskip("sklearn")

NAMES = ["low", "middle", "high"]
QUICK = ["--label", "y", "--set", "kernel.sigma=0.5,1,2", "--set", "training.ridge=0.01,0.1,1"]


def samples(rows=90, seed=0):
    """Two inputs of very different scales, a number, and a class of three that follows from it."""
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(2, rows))
    y = np.sin(a) + b + 0.1 * rng.normal(size=rows)
    return np.column_stack([a, 1000 * b + 5000]), y, np.digitize(y, [-0.5, 0.5])


def write(path, x, labels, header="a,b,y"):
    lines = [",".join([*map(repr, row), str(label)]) for row, label in zip(x.tolist(), labels, strict=True)]
    path.write_text("\n".join([header, *lines]) + "\n")


def write_both(folder, rows=90):
    """flow.csv, with a number as label, and kinds.csv, with a class; they hold what ``samples`` gives."""
    x, y, kinds = samples(rows)
    write(folder / "flow.csv", x, y)
    write(folder / "kinds.csv", x, [NAMES[k] for k in kinds])
    return x, y, kinds


@pytest.fixture
def folder(tmp_path, monkeypatch):
    x, y, kinds = write_both(tmp_path)
    write(tmp_path / "digits.csv", x, kinds * 5)  # 0, 5, 10
    write(tmp_path / "two.csv", x, ["yes" if value > 0 else "no" for value in y])
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def fit(run):
    """The report of a run that ends well, with standard error."""

    def fit(*arguments):
        code, out, err = run("fit", *arguments, "--json")
        assert code == 0, err
        return json.loads(out), err

    return fit


def row_of(report, which):
    """The row of the table that is the best or the taken one."""
    wanted = report[which]
    (row,) = [row for row in report["table"] if (row["width"], row["ridge"]) == (wanted["sigma"], wanted["ridge"])]
    return row


def scaled(x):
    return (x - x.mean(axis=0)) / x.std(axis=0)


# ---------------------------------------------------------------------------------------------- what is trained, and told


def test_many_rows_get_as_many_vectors_as_a_minute_allows(folder, fit, monkeypatch):
    """Which does not depend on the machine; -n gives another number, and that of all rows every row."""
    given = ("kinds.csv", "--set", "training.model=kfd", *QUICK, "--force")
    every, err = fit(*given, "--output", "every.toml")
    assert every["vectors"] == 90 and every["basis"] is None and "about a minute" not in err
    monkeypatch.setattr(cli_fit, "EVERY", 3 * 89**3)
    monkeypatch.setattr(cli_fit, "MINUTE", 3 * 90 * 16)
    monkeypatch.setattr(cli_fit, "FEW", 4)
    few, _ = fit(*given, "--output", "few.toml")
    assert 8 < few["vectors"] <= 16 and few["basis"] is not None
    assert "16 of 90 rows are vectors, so that training takes about a minute" in "; ".join(few["assumed"])
    fit(*given, "-n", "16", "--output", "same.toml")
    assert Path("same.toml").read_text() == Path("few.toml").read_text().replace('"few"', '"same"')
    fit(*given, "-n", "90", "--output", "all.toml")
    assert Path("all.toml").read_text() == Path("every.toml").read_text().replace('"every"', '"all"')


@pytest.mark.in_turn
@pytest.mark.parametrize("model, coding", [("kfd", "counts"), ("ls-svm", "signs"), ("krr", "signs")])
@pytest.mark.parametrize("cv", ["deleted", "kept", "5"])
def test_classes(folder, fit, model, coding, cv):
    report, _ = fit(
        "kinds.csv",
        "--set",
        f"training.model={model}",
        "--set",
        f"training.cv={cv}",
        "--seed",
        "3",
        *QUICK,
        "--output",
        "kinds.toml",
    )
    x, _, kinds = samples()
    # classes are sorted: high, low, middle
    positions = np.array([sorted(NAMES).index(NAMES[k]) for k in kinds])
    targets = Targets.of_classes(positions, 3, coding)
    way = int(cv) if cv.isdigit() else cv
    assert report["classes"] == sorted(NAMES) and report["model"] == model and report["measure"] == "error_rate"
    assert len(report["table"]) == 9 and {row["width"] for row in report["table"]} == {0.5, 1.0, 2.0}
    direct = select(model, scaled(x), targets, "gaussian", [0.5, 1, 2], [0.01, 0.1, 1], cv=way)
    if cv != "5":  # of folds, the estimator's seed is its own
        for cell, expected in zip(report["table"], direct.table, strict=True):
            assert cell == pytest.approx(expected, rel=1e-6)
    best, taken = row_of(report, "best"), row_of(report, "chosen")
    assert best == report["table"][0] and best["error"] == min(row["error"] for row in report["table"])
    assert report["errors"]["cross_validated"] == taken["error"] <= 1.01 * best["error"]
    assert report["errors"]["corrected"] == pytest.approx(taken["error"] + report["optimism"])
    assert without(report) == pytest.approx(1 - np.bincount(kinds).max() / 90)
    assert report["errors"]["cross_validated"] < 0.2 < without(report)

    spec = load_spec("kinds.toml")
    assert spec.name == "kinds" and spec.label.column == "y" and spec.label.classes == tuple(sorted(NAMES))
    assert spec.input.columns == ("a", "b") and spec.input.center == pytest.approx(x.mean(axis=0))
    assert (HostModel(spec).classify(x) != positions).mean() < 0.15


@pytest.mark.parametrize("model", ["ls-svm", "krr"])
def test_numbers(folder, fit, model):
    report, _ = fit(
        "flow.csv",
        "--label",
        "y",
        "--set",
        f"training.model={model}",
        *QUICK,
        "--hold-out",
        "0.3",
        "--output",
        "flow.toml",
    )
    assert (report["rows"], report["held_out_rows"], report["measure"]) == (63, 27, "rmse")
    x, y, _ = samples()
    labels = LabelledTable("flow", ["a", "b"], "y", None, model, x, y, [])
    train, test = cli_fit.held_out(labels, 0.3, 0)
    spec = load_spec("flow.toml")
    assert spec.input.center == pytest.approx(x[train].mean(axis=0))  # nothing is known of what is held out
    errors = HostModel(spec).predict(x[test]) - y[test]
    assert report["errors"]["held_out"] == pytest.approx(np.sqrt(np.mean(np.square(errors))), rel=1e-5)
    assert 0 < report["errors"]["held_out_deviation"] < report["errors"]["held_out"]
    best, taken = row_of(report, "best"), row_of(report, "chosen")
    assert best == report["table"][0] and best["press"] <= taken["press"] <= 1.01**2 * best["press"]
    assert report["errors"]["cross_validated"] == pytest.approx(np.sqrt(taken["press"]))
    assert report["errors"]["corrected"] == pytest.approx(np.sqrt(taken["press"] + report["optimism"]))
    left = [y[train][i] - np.delete(y[train], i).mean() for i in range(63)]
    assert without(report) == pytest.approx(np.sqrt(np.mean(np.square(left))))
    assert report["errors"]["held_out"] < 0.5 * without(report)


@pytest.mark.parametrize("model", ["ls-svm", "krr", "svm"])
def test_a_class_of_weight_three_is_one_of_which_each_row_is_there_three_times(folder, fit, model):
    """Weights have the mean 1 over the rows, so as many times more rows take so much more ridge."""
    x, _, kinds = samples(60)
    x, kinds = scaled(x), np.minimum(kinds, 1)
    times = np.where(kinds == 0, 3, 1)
    write(folder / "once.csv", x, [NAMES[k] for k in kinds])
    write(folder / "often.csv", np.repeat(x, times, axis=0), [NAMES[k] for k in np.repeat(kinds, times)])

    def trained(name, ridge, *more):
        sets = {"training.model": model, "kernel.sigma": 1, "training.ridge": ridge, "precision": "float64"}
        sets["training.standardise"] = "false"
        given = [part for key, value in sets.items() for part in ("--set", f"{key}={value}")]
        report, _ = fit(f"{name}.csv", "--label", "y", "-o", f"{name}.toml", "--force", *given, *more)
        return report, np.ravel(HostModel(load_spec(f"{name}.toml")).predict(x))

    report, found = trained("once", 0.1, "--set", "training.weights=3,1")
    assert 'weights = "3,1"' in Path("once.toml").read_text()
    told = f"training and errors are weighted by class: low {3 / times.mean():.3g}, middle {1 / times.mean():.3g}"
    assert told in report["assumed"]
    repeated, expected = trained("often", 0.1 * times.mean())
    np.testing.assert_allclose(found, expected, atol=2e-3 if model == "svm" else 1e-6)
    assert without(report) == pytest.approx(without(repeated))
    assert abs(found - trained("once", 0.1)[1]).max() > 0.05


@pytest.mark.in_turn(9)
@pytest.mark.parametrize(
    "kernel, more",
    [
        ("laplacian", ["--set", "kernel.gamma=0.1,0.5"]),
        ("polynomial", ["--set", "kernel.degree=2", "--set", "kernel.coef0=0.5"]),
        ("linear", []),
        ("sigmoid", ["--set", "kernel.gamma=0.1"]),
    ],
)
def test_other_kernels(folder, fit, kernel, more):
    report, _ = fit(
        "two.csv",
        "--label",
        "y",
        "--set",
        f"kernel.function={kernel}",
        *more,
        "--set",
        "training.ridge=0.1,10",
        "--output",
        "k.toml",
    )
    assert report["kernel"]["function"] == kernel and report["errors"]["cross_validated"] < 0.2
    assert load_spec("k.toml").kernel.function == kernel
    if kernel == "linear":
        assert report["vectors"] == 1 and report["best"] == {"ridge": report["table"][0]["ridge"]}
    if kernel == "polynomial":
        assert (report["kernel"]["degree"], report["kernel"]["coef0"]) == (2, 0.5) and len(report["table"]) == 18


def test_numbers_are_classes_for_kfd_in_their_order(folder, fit):
    report, _ = fit("digits.csv", "--set", "training.model=kfd", *QUICK, "--output", "d.toml")
    assert report["classes"] == ["0", "5", "10"]
    report, _ = fit(
        "digits.csv", "--set", "label.classes=10,0,5", "--set", "training.model=ls-svm", *QUICK, "--output", "e.toml"
    )
    assert report["classes"] == ["10", "0", "5"] and report["measure"] == "error_rate"
    report, _ = fit("digits.csv", *QUICK, "--output", "f.toml")
    assert report["classes"] is None and report["model"] == "ls-svm" and report["measure"] == "rmse"


def test_the_second_class_is_the_positive_one(folder, fit):
    x, _, _ = samples()
    one_cell = [
        "--label",
        "y",
        "--set",
        "training.model=ls-svm",
        "--set",
        "kernel.sigma=1",
        "--set",
        "training.ridge=0.1",
    ]
    for order, name in (("no,yes", "up"), ("yes,no", "down")):
        fit("two.csv", "--label", "y", "--set", f"label.classes={order}", *one_cell, "--output", f"{name}.toml")
    one, other = (HostModel(load_spec(f"{name}.toml")).predict(x) for name in ("up", "down"))
    assert one == pytest.approx(-other, abs=1e-4) and np.abs(one).max() > 0.5


def test_what_is_assumed_is_told(folder, fit, run):
    x, _, kinds = samples(30)
    rows = [f"{a},{b},7,red,{NAMES[k]}" for (a, b), k in zip(x, kinds, strict=True)]
    rows[3] = rows[3].rpartition(",")[0] + ","  # no label
    rows[5] = "," + rows[5].partition(",")[2]  # no input
    rows[6] = "nan," + rows[6].partition(",")[2]
    Path("odd.csv").write_text("\n".join(["a,b,same,colour,kind", *rows]) + "\n")
    report, _ = fit("odd.csv", *QUICK, "--label", "kind", "--output", "odd.toml")
    told = "; ".join(report["assumed"])
    for text in (
        "3 classes, high, low, middle, so kfd is trained",
        "inputs standardised",
    ):
        assert text in told
    data = report["data"]
    assert report["rows"] == 27 and data["rows"] == 30 and data["inputs"] == ["a", "b"]
    assert [(each["column"], each["why"]) for each in data["left_out"]] == [
        ("same", "constant"),
        ("colour", "constant"),
    ]
    assert data["missing"] == {"rows": 2, "then": "left out"} and data["unlabelled"] == 1
    report, _ = fit(
        "odd.csv",
        "--inputs",
        "b,a",
        "--set",
        "training.standardise=false",
        *QUICK,
        "--label",
        "kind",
        "--output",
        "odd2.toml",
    )
    assert report["inputs"] == ["b", "a"] and load_spec("odd2.toml").input.center is None
    rows[3] = rows[4]
    Path("odd.csv").write_text("\n".join(["a,b,same,colour,kind", *rows]) + "\n")
    report, _ = fit("odd.csv", *QUICK, "--set", "training.model=krr", "--label", "kind", "--output", "odd4.toml")
    told = "; ".join(report["assumed"])
    assert told.startswith("3 classes, high, low, middle;") and "so the model" not in told
    code, out, _ = run("fit", "odd.csv", *QUICK, "--label", "kind", "--output", "odd3.toml")
    assert code == 0 and out.startswith("data     30 rows; 2 inputs: a, b\n")


def test_for_people(folder, run):
    code, out, err = run("fit", "kinds.csv", "--output", "k.toml", *QUICK, "--hold-out", "0.2", "--report", "k.html")
    assert code == 0 and "warning" not in err.replace("warning: the best", "")
    for text in (
        "kfd, gaussian kernel, 72 rows, 2 inputs: 9 cells by leave-one-out",
        "corrected for the choice",
        "always the most frequent class",
        "18 rows held out",
        "PRESS",
        "bytes of flash",
        "pykernel generate k.toml",
    ):
        assert text in out
    assert "ringed" in Path("k.html").read_text()
    code, out, _ = run(
        "fit",
        "flow.csv",
        "--label",
        "y",
        "--output",
        "f.toml",
        "--set",
        "kernel.sigma=1",
        "--set",
        "training.ridge=0.1",
    )
    assert code == 0 and "RMSE" in out and "always the mean" in out and "corrected" not in out


def test_the_specs_bits_do_not_depend_on_the_threads_of_linear_algebra(folder, fit):
    from threadpoolctl import threadpool_limits

    x, _, kinds = samples(150)
    write(Path("more.csv"), x, [NAMES[k] for k in kinds])
    for threads in (1, 2):
        with threadpool_limits(threads):
            fit("more.csv", "--output", f"t{threads}.toml", "--set", "name=m")
    assert Path("t1.toml").read_bytes() == Path("t2.toml").read_bytes()


def test_in_float32_the_grid_ends_where_weights_cancel(folder, fit):
    for model, precision, count in (
        ("ls-svm", "float32", 13),
        ("krr", "float32", 13),
        ("krr", "float64", 17),
    ):
        how = ["--set", f"training.model={model}", "--set", "kernel.sigma=1", "--set", f"precision={precision}"]
        report, _ = fit("flow.csv", "--label", "y", *how, "--output", f"{precision}.toml", "--force")
        ridges = sorted(row["ridge"] for row in report["table"])
        assert len(ridges) == count and ridges[-1] == 90
        assert precision == "float64" or ridges[0] == pytest.approx(90e-6, rel=0.01)
    report, _ = fit(
        "two.csv", "--label", "y", "--set", "training.model=kfd", "--set", "kernel.sigma=1", "--output", "kfd.toml"
    )
    assert len(report["table"]) == 25


# ------------------------------------------------------------------------------------------------------------- warnings


def test_a_best_cell_on_the_border_is_a_warning(folder, fit):
    report, err = fit(
        "flow.csv",
        "--label",
        "y",
        "--set",
        "kernel.sigma=0.01,0.02",
        "--set",
        "training.ridge=0.001,0.1,10",
        "--output",
        "n.toml",
    )
    assert "warning" not in err and report["warnings"][0].startswith(
        "the best cell is on the border of the grid: sigma 0.02 is the largest"
    )


# ------------------------------------------------------------------------------------------------- rows and vectors apart


def test_rows_are_held_out_of_each_class_its_part():
    y = np.repeat([0, 1, 2], [60, 30, 1])
    table = LabelledTable("t", ["a"], "y", NAMES, "kfd", np.zeros((91, 1)), y, [])
    train, test = cli_fit.held_out(table, 0.3, 1)
    assert sorted([*train, *test]) == list(range(91))
    assert np.bincount(y[test], minlength=3).tolist() == [18, 9, 0]  # the last class keeps its only row
    assert set(test) != set(cli_fit.held_out(table, 0.3, 2)[1])
    assert len(cli_fit.held_out(table, 0.0, 1)[1]) == 0


# ---------------------------------------------------------------------------------------------------------- fewer vectors


@pytest.mark.parametrize(
    "data, model", [("kinds.csv", "kfd"), ("two.csv", "krr"), ("flow.csv", "ls-svm"), ("flow.csv", "krr")]
)
@pytest.mark.parametrize("method", ["efvs", "sgma", "auto"])
@pytest.mark.in_turn
def test_a_basis_is_chosen_for_every_model(folder, fit, data, model, method):
    """As by hand: the estimator with so many vectors of that method; and its leave-one-out is that of the reduced model."""
    how = ["--set", f"training.method={method}"] if method != "auto" else []
    report, _ = fit(
        data,
        "--label",
        "y",
        "--set",
        f"training.model={model}",
        "--n-max",
        "14",
        *how,
        *QUICK,
        "--seed",
        "2",
        "--output",
        "b.toml",
    )
    assert report["vectors"] == 14 and (report["basis"]["method"] == method or method == "auto")
    x, y, kinds = samples()
    if data == "flow.csv":
        targets = Targets.of_values(y)
    else:
        positions = (
            (y > 0).astype(int) if data == "two.csv" else np.array([sorted(NAMES).index(NAMES[k]) for k in kinds])
        )
        targets = Targets.of_classes(
            positions, 3 if data == "kinds.csv" else 2, "counts" if model == "kfd" else "signs"
        )
    spec = load_spec("b.toml")
    vectors = np.array(spec.expansion.vectors)
    assert np.abs(vectors[:, None] - scaled(x)).max(axis=2).min(axis=1).max() < 1e-6  # rows
    basis = basis_of(vectors, MercerKernel("gaussian", 0.5 / report["chosen"]["sigma"] ** 2))
    machine = ReducedProblem(model, basis, scaled(x), targets)
    left_out = machine.leave_one_out(report["chosen"]["ridge"])
    measure = np.sqrt(press(targets, left_out)) if data == "flow.csv" else error_rate(targets, left_out)
    assert report["errors"]["cross_validated"] == pytest.approx(measure) and measure < without(report) / 2
    predicted = HostModel(spec).classify(x) if spec.label.classes else HostModel(spec).predict(x)
    expected = machine.solve(report["chosen"]["ridge"]).predict(scaled(x))
    assert predicted == pytest.approx(targets.classify(expected) if spec.label.classes else expected[:, 0], abs=1e-3)


@pytest.mark.parametrize("method, given", [("sgma", "view=column,rule=4.3"), ("efvs", "lazy=true,epsilon=0.01")])
def test_options_of_a_method_are_handed_on(folder, fit, method, given):
    grid = [
        "--label",
        "y",
        "--set",
        "kernel.sigma=1",
        "--set",
        "training.ridge=0.1",
        "--set",
        f"training.method={method}",
        "--n-max",
        "14",
    ]
    fit("flow.csv", *grid, "--set", f"training.with={given}", "--output", "w.toml")
    options = {"view": "column", "rule": "4.3"} if method == "sgma" else {"lazy": True, "epsilon": 0.01}
    x, y, _ = samples()
    machine = LSSVMRegressor(
        sigma=1.0, ridge=0.1, basis=14, basis_params={"method": method, "epsilon": 1e-3} | options
    ).fit(scaled(x), y)
    assert np.array(load_spec("w.toml").expansion.vectors) == pytest.approx(machine.basis_, abs=1e-6)


@pytest.mark.in_turn
@pytest.mark.parametrize("bytes_", [300, 620, 100_000])
def test_flash_is_not_exceeded_and_used(folder, fit, bytes_):
    grid = ["--label", "y", "--set", "kernel.sigma=0.5", "--set", "training.ridge=0.1"]
    report, _ = fit("flow.csv", "--flash", str(bytes_), *grid, "--output", "f.toml")
    assert report["flash_bytes"] <= bytes_
    told = any(f"because --flash is {bytes_:,} bytes" in each for each in report["assumed"])
    if bytes_ == 100_000:
        assert report["vectors"] == 90 and report["basis"] is None and not told
    else:
        assert told and bytes_ - report["flash_bytes"] < 4 * (2 + 1)  # two inputs and the weight
    assert report["warnings"] == []
    fewer, _ = fit("flow.csv", "--flash", str(bytes_), "--n-max", "5", *grid, "--output", "n.toml")
    assert fewer["vectors"] == 5 and fewer["flash_bytes"] < report["flash_bytes"]


# ----------------------------------------------------------------------------------------------------------- bad input


def test_nothing_is_overwritten_unasked(folder, run):
    Path("k.toml").write_text("mine")
    Path("k.html").write_text("mine, too")
    data = Path("kinds.csv").read_bytes()
    for arguments, says in (
        (["--output", "k.toml"], "k.toml: already exists; give another name, or --force"),
        (["--output", "kinds.csv", "--force"], "kinds.csv: is the data itself"),
        (["--output", "made.toml", "--report", "./kinds.csv", "--force"], "is the data itself"),
        (["--output", "same.toml", "--report", "same.toml"], "is given for both the spec and the report"),
    ):
        code, out, err = run("fit", "kinds.csv", *QUICK, *arguments)
        assert code == 2 and out == "" and err.startswith("error: ") and says in err
    assert Path("k.toml").read_text() == "mine" and Path("k.html").read_text() == "mine, too"
    assert Path("kinds.csv").read_bytes() == data and not Path("made.toml").exists()
    assert run("fit", "kinds.csv", *QUICK, "--output", "k.toml", "--report", "k.html", "--force")[0] == 0
    assert load_spec("k.toml").name == "k" and "ringed" in Path("k.html").read_text()


def test_what_cannot_be_written_is_told_before_the_work(folder, run, monkeypatch):
    Path("folder.toml").mkdir()
    Path("link.toml").symlink_to("elsewhere")
    monkeypatch.setattr("pykernel.workflows.fit.read_table", None)  # the work would fail
    for path, says in (("folder.toml", "is a folder"), ("link.toml", "is a link")):
        code, out, err = run("fit", "kinds.csv", *QUICK, "--output", path, "--force")
        assert code == 2 and out == "" and err.startswith(f"error: {path}: {says}") and err.count("\n") == 1
    monkeypatch.setattr("os.access", lambda path, how: False)
    code, out, err = run("fit", "kinds.csv", *QUICK, "--output", "k.toml")
    assert (
        code == 2
        and out == ""
        and err == "error: k.toml: cannot be written: the folder . is not writable; give another name\n"
    )


@pytest.mark.parametrize(
    "arguments, says",
    [
        (["absent.csv"], "absent.csv: there is no such file"),
        (["kinds.csv", "--label", "z"], "names no column 'z'; it names 'a', 'b', 'y'"),
        (["kinds.csv", "--inputs", "a,z"], "names no column 'z'"),
        (["kinds.csv", "--label", ""], "the name of the label's column is empty"),
        (["kinds.csv", "--inputs", "a,y"], "column 'y' is the label; leave it out of --inputs"),
        (["kinds.csv", "--label", "a", "--inputs", "y"], "90 of 90 cells are words"),
        (["kinds.csv", "--set", "training.model=lssvm"], "--set training.model=lssvm is not known; did you mean 'ls-svm'?"),
        (["flow.csv", "--set", "training.model=kfd"], "90 different labels; at most 64 classes are possible: take --set training.model=ls-svm"),
        (["kinds.csv", "--set", "label.classes=low,high"], "holds 'middle', which is missing from --set label.classes"),
        (["two.csv", "--set", "label.classes=no,yes,maybe"], "is never 'maybe'; leave this class out of --set label.classes"),
        (["one.csv"], "column 'y' is always low; at least two classes are needed"),
        (["gap.csv"], "every row of class 'high' lacks an input"),
        (["alike.csv", "--set", "training.model=kfd"], "holds '1' and '1.0', which are the same number; write each class the same way"),
        (["still.csv"], "has no column of varying numbers other than the label 'y'"),
        (["short.csv"], "has 1 rows with a label and all inputs; at least 2 are needed"),
        (["kinds.csv", "--set", "kernel.function=rbf"], "--set kernel.function=rbf is not known; did you mean 'gaussian'?"),
        (["kinds.csv", "--set", "kernel.gamma=1"], "--set kernel.gamma does not apply to the gaussian kernel; this kernel has --set kernel.sigma"),
        (["kinds.csv", "--set", "kernel.function=linear", "--set", "kernel.sigma=1"], "--set kernel.sigma does not apply to the linear kernel; this kernel has no width"),
        (["kinds.csv", "--set", "kernel.sigma=1,x"], "--set kernel.sigma is '1,x'; it must be numbers separated by commas"),
        (["kinds.csv", "--set", "training.ridge=0"], "--set training.ridge holds 0; all numbers must be above zero"),
        (["kinds.csv", "--set", "training.ridge=,"], "give at least one number"),
        (["kinds.csv", "--set", "kernel.function=polynomial", "--set", "kernel.degree=0"], "degree is 0; it must be"),
        (["kinds.csv", "--set", "training.cv=1"], "--set training.cv is '1'; it must be deleted, kept, or a number of folds, 2 or more"),
        (["kinds.csv", "--set", "training.cv=91"], "cv is 91; the number of folds must be from 2 to 90"),
        (["kinds.csv", "--set", "training.by=auc"], "--set training.by is 'auc'; it must be error or press"),
        (["flow.csv", "--set", "training.by=error"], "--set training.by=error is for classes, but y holds numbers"),
        (["flow.csv", "--set", "training.coding=signs"], "--set training.coding=signs is for classes"),
        (["kinds.csv", "--set", "training.coding=gray"], "coding is 'gray'"),
        (["flow.csv", "--set", "training.weights=balanced"], "--set training.weights=balanced is for classes, but y holds numbers"),
        (["kinds.csv", "--set", "training.model=kfd", "--set", "training.weights=1,2,3"], "does not apply to kfd; leave it out, or give --set training.model=ls-svm"),
        (["kinds.csv", "--set", "training.model=svm", "--set", "training.weights=1,2"], "give balanced, or 3 numbers, one for each class"),
        (["kinds.csv", "--set", "training.model=svm", "--set", "training.weights=1,0,2"], "--set training.weights holds 0; all numbers must be above zero"),
        (["kinds.csv", "--n-max", "0"], "--n-max is 0; it must be from 1 to 90"),
        (["kinds.csv", "--n-max", "50", "--hold-out", "0.5"], "it must be from 1 to 45"),
        (["kinds.csv", "--set", "training.method=efvs"], "but every row is a vector; give --n-max or --flash, too"),
        (["kinds.csv", "--set", "training.method=9", "--n-max", "9"], "--set training.method=9 is not known; there are: auto, fvs, efvs, sgma"),
        (["kinds.csv", "--set", "training.method=9"], "pivoted-cholesky; for 9 vectors give --n-max 9"),
        (["kinds.csv", "--set", "kernel.function=sigmoid", "--n-max", "9"], "the sigmoid kernel is not positive definite"),
        (["kinds.csv", "--set", "training.with=pool=3"], "but every row is a vector; give --n-max or --flash, too"),
        (["kinds.csv", "--n-max", "9", "--set", "training.with=depth=3"], "--set training.with holds 'depth=3'; give KEY=VALUE; keys for auto: "),
        (["kinds.csv", "--n-max", "9", "--set", "training.method=sgma", "--set", "training.with=pool=x"], "--set training.with=pool=x: 'x' is not a whole number"),
        (["kinds.csv", "--n-max", "9", "--set", "training.method=sgma", "--set", "training.with=view=rows"], "--set training.with=view=rows: 'rows' is not known; it must be one of function"),
        (["kinds.csv", "--n-max", "9", "--set", "training.method=efvs", "--set", "training.with=lazy=2"], "--set training.with=lazy=2: '2' is neither true nor false"),
        (["kinds.csv", "--flash", "40"], "--flash is 40 bytes, but a model with one vector of 2 inputs takes"),
        (["kinds.csv", "--flash", "much"], "--flash is 'much'; it must be a number such as 4k"),
        (["kinds.csv", "--hold-out", "1"], "--hold-out is 1; give a fraction from 0 to below 1"),
        (["kinds.csv", "--hold-out", "0.001"], "--hold-out 0.001 holds out none of 90 rows"),
        (["kinds.csv", "--seed", "-1"], "seed is -1; it must be 0 or more"),
        (["kinds.csv", "--jobs", "0"], "--jobs is '0'; it must be a number of processes from 1"),
        (["kinds.csv", "--jobs", "fast"], "--jobs is 'fast'"),
        (["kinds.csv", "--set", "precision=float16"], "precision"),
        (["kinds.csv", "--set", "name=2nd"], "name"),
        (["kinds.csv", "--output", "a.b.toml"], "a.b.toml: the model's name is 'a.b'; it must have 1 to 31 characters (a-z, 0-9, single '_')"),
        (["kinds.csv", "--output", "queue.toml"], "queue.toml: the model's name is 'queue', and queue.h would be mistaken for another"),
        (["kinds.csv", "--set", "kernel.sigma=1e-300"], "--set kernel.sigma holds 1e-300; its square must neither overflow"),
        (["kinds.csv", "--seed", str(2**32)], "seed is 4294967296; it must be at most 4294967295"),
        (["kinds.csv", "--jobs", "9" * 20], "it must be a number of processes from 1 to 1,024"),
        (["kinds.csv", "--report", "p.png"], "--report p.png: a report has figures, so it is an HTML file; give p.html"),
        (["kinds.csv", "--output", "absent/k.toml"], "absent/k.toml: cannot be written"),
    ],
)  # fmt: skip
def test_bad_input_is_one_sentence_and_leaves_nothing(folder, run, arguments, says):
    Path("one.csv").write_text("a,y\n1,low\n2,low\n")
    Path("gap.csv").write_text("a,y\n1,low\n2,low\n,high\n")
    Path("alike.csv").write_text("a,y\n1,1\n2,1.0\n3,2\n")
    Path("still.csv").write_text("a,y\n1,low\n1,high\n")
    Path("short.csv").write_text("a,y\n1,2\n3,\n")
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    own = any(each.startswith(("kernel.", "training.ridge")) for each in arguments)
    out = [] if "--output" in arguments else ["--output", "made.toml"]
    code, printed, err = run("fit", "--label", "y", *([] if own else QUICK), *arguments, *out, "--json")
    assert code == 2 and printed == "", (printed, err)
    assert says in err.splitlines()[-1] and err.splitlines()[-1].startswith("error: ") and "Traceback" not in err
    assert err.count("\n") == 1
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_an_interrupt_says_so_and_writes_nothing(folder, run, monkeypatch):
    from pykernel.estimators import kernel_machine

    def interrupted(*arguments, **keys):
        raise KeyboardInterrupt

    monkeypatch.setattr(kernel_machine.selection, "select", interrupted)
    code, _, err = run("fit", "kinds.csv", *QUICK, "--output", "k.toml")
    assert code == 130 and err == "error: interrupted; no file was written\n" and not Path("k.toml").exists()


# --------------------------------------------------------------------------------------------------------- raw signals

RAW = """
name = "gauge"
[signal]
channels = ["ax"]
window = 8
features = ["mean", "rms"]
[label]
column = "state"
classes = ["quiet", "loud"]
"""


def test_raw_rows_are_trained_on_step_by_step_and_the_spec_takes_raw_rows(tmp_path, monkeypatch, run):
    """Each step has the label of its last row; of a forecast, the measure of a later step."""
    monkeypatch.chdir(tmp_path)
    rng, t = np.random.default_rng(0), np.arange(960)
    loud = rng.random(960 // 8).repeat(8) < 0.4
    x = np.where(loud, 2.0, 1.0) * np.sin(t) + np.sin(t / 60) + 0.1 * rng.normal(size=960)
    names = [("loud" if kind else "quiet") if i % 8 == 7 else "" for i, kind in enumerate(loud)]
    Path("raw.csv").write_text("ax,state\n" + "".join(f"{a:.5f},{b}\n" for a, b in zip(x, names, strict=True)))
    Path("raw.toml").write_text(RAW)
    small = ["--set", "kernel.sigma=1,2", "--set", "training.ridge=0.01", "--set", "training.model=ls-svm", "--json"]
    code, out, err = run("fit", "raw.csv", "--spec", "raw.toml", "--output", "kind.toml", *small)
    assert code == 0, err
    found, spec = json.loads(out), load_spec("kind.toml")
    assert found["rows"] == 120 and found["classes"] == ["quiet", "loud"] and found["inputs"] == ["mean ax", "rms ax"]
    assert spec.signal == load_spec("raw.toml").signal and spec.label.classes == ("quiet", "loud")
    code, out, err = run("simulate", "kind.toml", "raw.csv", "--json")
    assert code == 0, err
    told = json.loads(out)
    features = np.column_stack([x.reshape(120, 8).mean(1), np.sqrt((x.reshape(120, 8) ** 2).mean(1))])
    expected = np.mean(HostModel(spec.inner).classify(features) != loud[7::8])
    assert told["rows"] == 120 and abs(told["all"]["error_rate"]["model"] - expected) < 0.02 and expected < 0.1

    Path("whole.toml").write_text(RAW.replace("[signal]", 'precision = "int16"\n[signal]\nmax_abs = 8.0'))
    code, out, err = run(
        "fit", "raw.csv", "--spec", "whole.toml", "--set", "precision=int16", "--output", "i.toml", *small
    )
    assert code == 0, err
    counted, whole = json.loads(out), load_spec("i.toml")
    assert whole.program.is_int16 and whole.signal is not None and counted["rounding"]["classes_differ"] <= 1
    code, out, err = run("simulate", "i.toml", "raw.csv", "--json")
    assert code == 0 and json.loads(out)["all"]["error_rate"]["model"] <= expected + 0.02, err

    forecast = ["--spec", "raw.toml", "--label", "ax", "--output", "next.toml", *small[:-3], "--json"]
    Path("alone.csv").write_text("ax\n" + "".join(f"{a:.5f}\n" for a in x))
    code, out, err = run("fit", "alone.csv", *forecast)
    assert code == 0, err
    found, spec = json.loads(out), load_spec("next.toml")
    # the last step has no truth
    assert spec.forecasts and found["rows"] == 119 and without(found) > found["errors"]["cross_validated"]
    told = json.loads(run("simulate", "next.toml", "raw.csv", "--json")[1])
    assert told["all"]["rmse"]["model"] < found["errors"]["cross_validated"] * 1.05

    for words, says in (
        (
            ["--spec", "raw.toml", "--inputs", "ax"],
            "--inputs names columns, but the spec's [signal] already names its channels",
        ),
        (["--spec", "raw.toml", "--set", "precision=int16"], "[signal] max_abs is missing; int16 needs"),
        (
            ["--spec", "raw.toml", "--label", "ax", "--set", "label.classes=u,v"],
            "[label] classes cannot be used for a forecast",
        ),
        (
            ["--spec", "raw.toml", "--label", "ax", "--set", "training.model=kfd"],
            "is a channel, so its numbers are forecast",
        ),
    ):
        code, out, err = run("fit", "raw.csv", *words, "--output", "no.toml")
        assert code == 2 and says in err and not Path("no.toml").exists(), err


def drifting(folder, shuffled):
    """A plant whose gain falls; its rows in their order, or not."""
    rng = np.random.default_rng(0)
    n = 300
    x = np.column_stack([np.sin(np.arange(n) / 9), np.cumsum(rng.normal(size=n)) / 9])
    y = (1 - 0.8 * np.arange(n) / n) * np.sin(2 * x[:, 0]) + 0.05 * rng.normal(size=n)
    order = rng.permutation(n) if shuffled else np.arange(n)
    np.savetxt(folder / "rows.csv", np.column_stack([x, y])[order], delimiter=",", header="a,b,y", comments="")


@pytest.mark.in_turn(9)
@pytest.mark.parametrize("model", ["ls-svm", "network", "svm", "krr", "lp", "trained"])
def test_the_last_rows_judge_where_errors_follow_each_other(model, run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = (
        "fit",
        "rows.csv",
        "--label",
        "y",
        "-n",
        "8",
        "-o",
        "m.toml",
        "--force",
        "--set",
        f"training.model={model}",
        "--json",
    )
    found = {}
    for shuffled, ways in ((False, ("0.3", "0.3,last", "0.3,random")), (True, ("0.3", "0.3,random"))):
        drifting(tmp_path, shuffled)
        for how in ways:
            code, out, err = run(*words, "--hold-out", how)
            assert code == 0, err
            found[shuffled, how] = json.loads(out)
    assert [each["in_time"] for each in found.values()] == [True, True, False, False, False]
    in_time, drawn = found[False, "0.3"], found[False, "0.3,random"]
    assert (
        in_time["errors"] == found[False, "0.3,last"]["errors"]
        and found[True, "0.3"]["errors"] == found[True, "0.3,random"]["errors"]
    )
    assert in_time["errors"]["held_out"] > 1.4 * drawn["errors"]["held_out"]
    assert any(
        "the last 30 % of the rows are held out, and folds are blocks of rows; --hold-out 0.3,random" in each
        for each in in_time["assumed"]
    )
    assert any("expect" in each and "on future rows" in each for each in in_time["warnings"])
    assert not any("on future rows" in each for each in drawn["warnings"])
    assert drawn["errors"]["held_out"] == pytest.approx(drawn["errors"]["cross_validated"], rel=0.3)


@pytest.mark.exhaustive
def test_rows_sorted_by_class_are_drawn(run, tmp_path, monkeypatch):
    from sklearn.datasets import load_iris

    monkeypatch.chdir(tmp_path)
    x, y = load_iris(return_X_y=True)
    lines = [",".join([*map(str, row), f"c{kind}"]) for row, kind in zip(x.tolist(), y.tolist(), strict=True)]
    Path("iris.csv").write_text("\n".join(["a,b,c,d,y", *lines]))
    code, out, err = run("fit", "iris.csv", "--label", "y", "-n", "6", "--hold-out", "0.3", "-o", "m.toml", "--json")
    report = json.loads(out)
    assert code == 0 and not report["in_time"] and report["errors"]["held_out"] < 0.12, err


def test_what_last_rows_cannot_be_is_said(run, tmp_path, monkeypatch):
    """Of devices whole ones are held out; and the rows before the last ones must have all classes."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    Path("logs").mkdir()
    for name in ("one", "two", "three"):
        np.savetxt(f"logs/{name}.csv", rng.normal(size=(30, 2)), delimiter=",", header="a,y", comments="")
    lines = [f"{x},{'late' if i > 50 else 'early'}" for i, x in enumerate(rng.normal(size=60))]
    Path("kinds.csv").write_text("\n".join(["a,y", *lines]))
    for data, sentence in (
        ("logs", 'but whole devices are held out; leave out ",last"'),
        ("kinds.csv", "but the rows before the held-out rows lack a class"),
    ):
        code, _, err = run("fit", data, "--label", "y", "-n", "2", "--hold-out", "0.3,last", "-o", "m.toml")
        assert code == 2 and f"--hold-out is 0.3,last, {sentence}" in err and not Path("m.toml").exists()
