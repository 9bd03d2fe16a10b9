"""Pages of the papers: tables, numbers in the text and figures are the results; every command refuses alike."""

import importlib

import pytest

pytest.importorskip("sklearn")
pytest.importorskip("threadpoolctl")
pytest.importorskip("matplotlib")
pytest.importorskip("unicorn")

from benchmarks import tables
from benchmarks.papers import (
    paper_000,
    paper_001,
    paper_002,
    paper_003,
    paper_003_figures,
    paper_004,
)
from tests.support import DATA, DOCS

COMMANDS = {each.__name__.rpartition(".")[2]: each for each in (paper_000, paper_001, paper_002, paper_003, paper_004)}
PAGES = {name: importlib.import_module(f"benchmarks.papers.{name}_page") for name in COMMANDS}
TEXTS = {name: tables.read(DOCS / f"{name[:9].replace('_', '-')}.md") for name in COMMANDS}
FOLDERS = {name: DATA / name.replace("_", "-") for name in COMMANDS}
RESULTS = {name: ({path.stem: tables.load(path) for path in folder.glob("*.csv")},) for name, folder in FOLDERS.items()}
RESULTS["paper_003"] = tuple(paper_003.read_table(FOLDERS["paper_003"] / f"{name}.csv") for name in ("results", "cost"))
FIGURES = {name: getattr(page, "FIGURES", ()) for name, page in PAGES.items()}
FIGURES["paper_003"] = tuple(f"figure-{name}" for name in paper_003_figures.FIGURES)


@pytest.mark.parametrize("paper", COMMANDS)
def test_the_pages_tables_are_the_results(paper):
    text, made = TEXTS[paper], PAGES[paper].TABLES
    assert tables.fill(text, made, *RESULTS[paper]) == text
    assert text.count("<!-- table: ") == len(made)


@pytest.mark.parametrize("paper", ["paper_001"])
def test_every_result_is_linked(paper):
    for path in FOLDERS[paper].glob("*.csv"):
        assert f"(data/{FOLDERS[paper].name}/{path.name})" in TEXTS[paper]


@pytest.mark.parametrize(("paper", "name"), [(paper, name) for paper, page in PAGES.items() for name in page.FACTS])
def test_the_texts_numbers_are_the_results(paper, name):
    """Each fact is a phrase of the page, made from the results; it fails to be made where what it says is not so."""
    fact = PAGES[paper].FACTS[name](*RESULTS[paper])
    assert fact in " ".join(TEXTS[paper].split()), fact


@pytest.mark.parametrize("paper", COMMANDS)
def test_every_figure_is_shown(paper):
    folder, text = FOLDERS[paper], TEXTS[paper]
    shown = {path.stem: path for path in folder.glob("*.*g")}
    assert set(shown) == set(FIGURES[paper])
    for path in shown.values():
        assert f"(data/{folder.name}/{path.name})" in text
        assert path.suffix == ".png" or path.read_text(encoding="utf-8").rstrip().endswith("</svg>")


@pytest.mark.parametrize("paper", COMMANDS)
def test_bad_arguments_are_one_sentence(paper, capsys):
    wrong = {"paper_003": ["--figures", "1,99", "-o", "nowhere"]}.get(paper, ["--quick"])
    with pytest.raises(SystemExit) as stopped:
        COMMANDS[paper].main(wrong)
    assert stopped.value.code == 2
    assert ("there is no figure '99'" if paper == "paper_003" else "--quick needs -o FOLDER") in capsys.readouterr().err
