"""benchmarks/: what the scripts compute is right, and docs/benchmarks.md shows what they left."""

import re
import shutil
import threading

import pytest

from benchmarks import tables
from benchmarks.device import preset_instructions, presets
from benchmarks.results import TREE
from pykernel.errors import UserError
from pykernel.gen.project import build
from pykernel.spec.model import make_spec
from tests.support.pages import stand

ROWS = tables.load(tables.DATA / "preset-instructions.csv")


def test_the_pages_table_is_the_result():
    assert stand(preset_instructions.tables(ROWS))


def accepted(preset):
    try:
        presets.spec_of(preset, 8)
    except UserError:
        return False
    return True


def test_the_results_are_complete():
    """Nothing that a spec may ask for is missing, nothing is left of what has become refused."""
    counted = {(row["preset"], int(row["n"]), row["target"]) for row in ROWS}
    assert counted == {
        (preset, n, target)
        for preset in (*filter(accepted, presets.PRESETS), *preset_instructions.LINEAR)
        for n in preset_instructions.sizes_of(preset, preset_instructions.BUDGETS)
        for target in preset_instructions.TARGETS
    }


def test_bytes_are_those_of_the_models_now():
    if why := TREE.stale("preset-instructions"):
        pytest.skip(f"the results are to be measured again, as `make stale` says: {why[0]}")
    for row in ROWS[::36]:
        figures = build(preset_instructions.model_of(row["preset"], int(row["n"]))).figures
        assert (int(row["state_bytes"]), int(row["ram_bytes"])) == (figures["state_bytes"], figures["ram_bytes"]), row


@pytest.mark.exhaustive
def test_the_command_runs(tmp_path, one_build, capsys):
    pytest.importorskip("unicorn")
    words = ["--quick", "-o", str(tmp_path), *(() if shutil.which("arm-none-eabi-gcc") else ("--toolchain", "zig"))]
    page = (tables.DOCS / "benchmarks.md").read_bytes()
    preset_instructions.main(words)
    made = tables.load(tmp_path / "preset-instructions.csv")
    assert list(made[0]) == list(ROWS[0])
    shown = capsys.readouterr().out
    assert all(table in shown for table in preset_instructions.tables(made).values())
    assert (tables.DOCS / "benchmarks.md").read_bytes() == page


def test_long_tables_have_files_of_their_own(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "page_with", lambda name: page)
    long, short = (tables.markdown(["a", "b"], [[f"{i}", "word " * 5] for i in range(n)]) for n in (40, 4))
    text = f"# T\n<!-- x, y -->\n\n{long}\n<!-- end -->\nand\n<!-- table: z -->\n\n{short}\n<!-- end -->\n"
    page = tmp_path / "page.md"
    for _ in range(2):  # once more, from what is there
        tables.write(page, text)
        written = page.read_text()
        assert "[The table: 40 rows](tables/page-x-y.md)" in written and short in written and long not in written
        assert tables.read(page) == text
        tables.publish({"x, y": long})
    tables.publish({"x, y": short})
    assert tables.read(page) == text.replace(long, short) == page.read_text()


def test_a_tables_place_is_on_one_page_only():
    pages = [tables.ROOT / "README.md", *tables.DOCS.rglob("*.md")]
    names = [
        name
        for page in pages
        for name in re.findall(r"^<!-- (?!end|table:|keys)(.+?) -->$", page.read_text(), re.MULTILINE)
    ]
    assert len(names) == len(set(names)) > 40


def test_who_measures_alone_waits_for_the_others():
    def waits(beside_others):
        def enter():
            with tables.alone("test", beside_others):
                entered.set()

        entered = threading.Event()
        thread = threading.Thread(target=enter)
        thread.start()
        early = entered.wait(0.2)
        return thread, early

    with tables.alone("test", beside_others=True):
        beside, at_once = waits(True)
        alone, too_early = waits(False)
    beside.join(10), alone.join(10)
    assert at_once and not too_early and not alone.is_alive()


def test_each_long_table_is_shown_once():
    named = [
        link
        for page in tables.DOCS.rglob("*.md")
        for link in re.findall(r"\]\((?:\.\./)*(tables/[^)]+)\)", page.read_text())
    ]
    files = sorted(path.relative_to(tables.DOCS).as_posix() for path in (tables.DOCS / "tables").glob("*"))
    assert sorted(named) == files
    for page in tables.DOCS.rglob("*.md"):
        assert not re.search(r"\]\((\.\./)*tables/", tables.read(page))


def test_a_difference_from_the_host_is_noticed(monkeypatch):
    """The count is of the right computation: a device that goes elsewhere stops the benchmark."""
    pytest.importorskip("unicorn")
    chain = "gcc" if shutil.which("arm-none-eabi-gcc") else "zig"
    spec = presets.spec_of("nt", 4)
    project = build(spec)
    other = build(
        make_spec(spec.model_dump(exclude_unset=True) | {"learning": {"rule": "klms", "eta": 0.5, "rho": 0.2}})
    )
    monkeypatch.setattr(preset_instructions, "model_image", lambda p, target, c: REAL_IMAGE(other, target, c))
    with pytest.raises(RuntimeError, match="not the host's"):
        preset_instructions.row(project, "nt", 4, "cortex-m4f", chain, 10)


REAL_IMAGE = preset_instructions.model_image
