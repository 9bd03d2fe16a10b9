"""docs/guide/heads.md: the examples run, the head does what the page says, the firmware compiles."""

import re
import subprocess
import sys

import numpy as np
import pytest

import pykernel
from benchmarks.host import heads
from benchmarks.tables import load
from pykernel import HostModel, load_spec
from pykernel.spec.model import make_spec
from tests.support import ROOT

EXAMPLE, PAGE = ROOT / "examples" / "head", ROOT / "docs" / "guide/heads.md"


def made(script, folder):
    subprocess.run([sys.executable, EXAMPLE / script], cwd=folder, check=True, capture_output=True)


@pytest.mark.exhaustive
def test_the_head_of_the_laboratory_learns_the_field(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made("lab.py", tmp_path)
    found = pykernel.simulate(load_spec("head.toml"), "field.csv")
    assert found.error < 0.25 * min(found.simple.values())
    spec, rows = load_spec("head.toml"), np.loadtxt("field.csv", delimiter=",", skiprows=1)
    content = spec.model_dump(exclude_unset=True)
    frozen = {key: value for key, value in content.items() if key not in ("label", "mixture")}
    first = HostModel(make_spec(frozen | {"learning": {"rule": "frozen"}})).predict(rows[:, :5])
    assert HostModel(spec).predict(rows[:, :5]).tobytes() == first.tobytes()
    assert found.error < 0.25 * np.sqrt(np.mean((first.ravel() - rows[:, 5]) ** 2))


@pytest.mark.exhaustive
def test_the_last_layer_behind_another_runtime_is_the_networks(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made("last_layer.py", tmp_path)
    monkeypatch.syspath_prepend(EXAMPLE)
    import last_layer
    from sklearn.datasets import load_digits
    from sklearn.neural_network import MLPClassifier

    x, y = load_digits(return_X_y=True)
    network = MLPClassifier(hidden_layer_sizes=(32, 16), max_iter=1000, random_state=0).fit(x[:1200] / 16, y[:1200])
    head, z = HostModel(load_spec("last.toml")), last_layer.embedding(network, x[1200:] / 16)
    assert (head.classify(z) == network.predict(x[1200:] / 16)).all()
    # a class that came in the field
    smudged = np.random.default_rng(0).permuted(z, axis=1)
    for t in range(200):
        head.update(z[t : t + 1], y[1200 + t : 1201 + t].astype(np.int32))
        head.update(smudged[t : t + 1], np.array([10], np.int32))
    assert np.mean(head.classify(smudged[200:]) == 10) > 0.7 and np.mean(head.classify(z[200:]) == y[1400:]) > 0.85

    pykernel.generate(load_spec("last.toml"), "last/")
    for compiler in (["cc"], ["arm-none-eabi-gcc", "-mcpu=cortex-m4", "-mthumb"]):
        flags = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-Ilast/src", "-c", "-o", "firmware.o"]
        try:
            subprocess.run([*compiler, *flags, EXAMPLE / "firmware.c"], check=True)
        except FileNotFoundError:
            continue


def test_the_tables_are_the_results():
    page = PAGE.read_text(encoding="utf-8")
    assert heads.table(load(heads.DATA / "heads.csv")) in page
    assert heads.cost_table(load(heads.DATA / "head-costs.csv")) in page


@pytest.mark.parametrize("rule", ["expansion-rls", "expansion-softmax"])
def test_the_page_names_rules_that_there_are(rule):
    assert f'"{rule}"' in PAGE.read_text(encoding="utf-8")
    assert re.search(rf"^\| `{rule}` ", (ROOT / "docs" / "reference/spec.md").read_text(encoding="utf-8"), re.MULTILINE)
