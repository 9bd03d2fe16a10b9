"""What the site has beside docs/: pages from elsewhere in the repository, what code says of itself, the living page, and the
notebooks of docs/, which are executed here.
"""

from __future__ import annotations

import json
import posixpath
import re
import tempfile
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

import pykernel
from benchmarks import tables

ROOT = Path(__file__).parents[1]
OUTSIDE = {
    "README.md": "overview.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security.md",
    "examples/signals/README.md": "signals-data.md",
    "pykernel/data/README.md": "bikeshare-data.md",
}
"""Files of the repository -> pages of the site.  Links lead there; a link to any other file outside docs/ becomes text."""
ASSETS = ("site.css", "sort.js", "tablesort.min.js", "iframe-worker.js")
SHIM = "https://unpkg.com/iframe-worker/shim"
WIDE = """
<style>
.md-typeset td:nth-child(2):nth-last-child(5) { min-width: 6rem; }
.md-typeset td:nth-child(5):nth-last-child(2) { min-width: 4.5rem; }
.md-typeset :is(td:nth-child(2):nth-last-child(5), td:nth-child(5):nth-last-child(2)) code { overflow-wrap: anywhere; }
.md-typeset td:first-child:nth-last-child(6) { min-width: 8rem; }
.md-typeset td:nth-child(6):last-child { min-width: 6rem; }
.md-typeset table:not([class]) :is(th, td):first-child:nth-last-child(6) ~ * { padding: .4em; }
</style>
"""
"""Of the tables of papers, which have six columns: long names break, so that all columns are seen."""
SPEC = """
<style>
.md-typeset td:nth-child(5) { min-width: 14rem; }
@media (max-width: 50rem) {
  .md-typeset tr:has(th:nth-child(5)), .md-typeset tr:has(td:nth-child(5)) td:empty { display: none; }
  .md-typeset tr:has(td:nth-child(5)) td { display: block; border-top: 0; padding: .1em .8em; min-width: 0; }
  .md-typeset tr:has(td:nth-child(5)) td:first-child { border-top: .05rem solid var(--md-typeset-table-color); }
  .md-typeset tr:has(td:nth-child(5)) td:nth-child(2)::before { content: "rules: "; }
  .md-typeset tr:has(td:nth-child(5)) td:nth-child(3)::before { content: "default: "; }
  .md-typeset tr:has(td:nth-child(5)) td:nth-child(4)::before { content: "range: "; }
}
</style>
"""
"""On a phone a key of a spec is a paragraph, not a row: its meaning is seen."""
LINK = re.compile(r"(!?)\[((?:`[^`]*`|[^][`])*)\]\(([^()#:\s]*)(#[^()\s]*)?\)")


def on_config(config: Any) -> Any:
    config.copyright = f'pykernel {version("pykernel-mcu")}: <a href="changelog.html">what is new</a>'
    (reference,) = [part["Reference"] for part in config.nav if "Reference" in part]
    reference.append({"Python": [{name: page} for name, page in PYTHON.items()]})
    return config


def on_files(files: Any, config: Any) -> Any:
    def add(name: str, **what: Any) -> None:
        files.append(File.generated(config, name, **what))

    for source, page in OUTSIDE.items():
        add(page, abs_src_path=str(ROOT / source))
    for name in ASSETS:
        add(name, abs_src_path=str(ROOT / "website" / name))
    with ThreadPoolExecutor() as pool:  # each runs a process of its own
        pages = pool.map(executed, NOTEBOOKS)
        add("live.html", content=front_page())
    for path, (markdown, outputs) in zip(NOTEBOOKS, pages, strict=True):
        OUTPUTS[f"{path.stem}.md"] = outputs
        add(f"{path.stem}.md", content=markdown)
    add("spec.schema.json", content=schema())
    for name, page in PYTHON.items():
        add(page, content=f"::: {pykernel._HOMES.get(name, 'pykernel')}.{name}\n")
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    name = page.file.src_uri
    markdown = tables.whole(markdown)
    if name == "README.md":
        markdown = front() + markdown.partition("\n")[2]
    if name.startswith("paper-"):
        markdown += WIDE
    if name == "reference/spec.md":
        markdown += SPEC
        markdown += "\n## For editors\n\n[The JSON Schema](../spec.schema.json) of all keys; `pykernel info schema` prints it.\n"
    if name == "reference/commands.md":
        markdown = with_help(markdown)
    # in a table GitHub wants a bar in code escaped, Python-Markdown does not
    markdown = re.sub(
        r"^\|.*", lambda row: re.sub(r"`[^`]+`", lambda m: m[0].replace("\\|", "|"), row[0]), markdown, flags=re.M
    )
    parts = re.split(r"(^```.*?^```$)", markdown, flags=re.DOTALL | re.MULTILINE)
    markdown = "".join(part if i % 2 else LINK.sub(lambda m: moved(m, name), part) for i, part in enumerate(parts))
    if page.ancestors and page.ancestors[-1].title == "Research and internals":
        page.meta["search"] = {"exclude": True}
    return markdown


def on_page_content(content: str, page: Any, **_: Any) -> str:
    for place, output in OUTPUTS.get(page.file.src_uri, {}).items():
        content = content.replace(place, output)
    return content


def on_post_page(output: str, **_: Any) -> str:
    return output.replace(SHIM, "iframe-worker.js")


def on_post_template(output_content: str, **_: Any) -> str:
    return output_content.replace(SHIM, "iframe-worker.js")


def moved(found: re.Match[str], page: str) -> str:
    """A link of the repository as one of the site."""
    mark, text, target, anchor = found.groups(default="")
    source = source_of(page)
    path = posixpath.normpath(posixpath.join(posixpath.dirname(source), target)) if target else source
    if (ROOT / path).is_dir():
        return text
    if path in OUTSIDE or path.startswith("docs/"):
        to = OUTSIDE.get(path) or path.removeprefix("docs/")
        if (shown := to.removesuffix(".ipynb") + ".md") in OUTPUTS and shown != page:
            to = shown
        if text.endswith(".md"):  # a file's name says little on a site
            text = posixpath.basename(text).removesuffix(".md").replace("-", " ")
        return f"{mark}[{text}]({posixpath.relpath(to, posixpath.dirname(page) or '.')}{anchor})"
    return text if (ROOT / path).exists() else found[0]


def source_of(page: str) -> str:
    return next((source for source, to in OUTSIDE.items() if to == page), f"docs/{page}")


# ------------------------------------------------------------------------------------------------------ notebooks


NOTEBOOKS = sorted((ROOT / "docs").glob("*.ipynb"))
OUTPUTS: dict[str, dict[str, str]] = {}
"""Page -> a place in its HTML -> the output there, which no Markdown may change."""


def executed(path: Path) -> tuple[str, dict[str, str]]:
    """A notebook as a page: Markdown with a place for each output that is HTML; and those outputs.  A cell that fails ends the build."""
    import nbformat
    from nbclient import NotebookClient
    from traitlets.config import Config

    notebook = nbformat.read(path, 4)
    with tempfile.TemporaryDirectory(prefix="pykernel-") as folder:
        sockets = Config(ConnectionFileMixin={"transport": "ipc", "ip": f"{folder}/kernel"})
        where = {"metadata": {"path": folder}}
        NotebookClient(notebook, kernel_name="python3", timeout=600, config=sockets, resources=where).execute()
    parts, outputs = [], {}
    for cell in notebook.cells:
        parts.append(f"```python\n{cell.source}\n```" if cell.cell_type == "code" else cell.source)
        for output in cell.get("outputs", ()):
            shown = output.get("data", {"text/plain": output.get("text")})
            if html := shown.get("text/html"):
                place = f'<div class="output" id="output-{len(outputs)}"></div>'
                outputs[place] = f'<div class="output">{html}</div>'
                parts.append(place)
            elif shown["text/plain"]:  # a bar that has gone is empty
                parts.append(f"```text\n{shown['text/plain'].rstrip()}\n```")
    title, first, rest = "\n\n".join(parts).split("\n\n", 2)
    download = (
        f"[Download the notebook]({path.name}). It shows here what it showed on the machine that built this site."
    )
    return "\n\n".join((title, first, download, rest)), outputs


# ------------------------------------------------------------------------------------------------- what code says


def front_page() -> str:
    """The generated C of the demo's model, which learns the shipped year in a browser."""
    from pykernel.host.bikeshare import bikeshare, default_spec
    from pykernel.workflows.page import living_page

    return living_page(default_spec(), *bikeshare()[:2], beside=answers())[0]


def front() -> str:
    """Above docs/README.md: the living page, and what stands for it where it cannot run."""
    text = (ROOT / "website" / "front.md").read_text(encoding="utf-8")
    return text.replace("@hash@", answers()["an emulated Cortex-M4F"])


def answers() -> dict[str, str]:
    """The hashes that other machines computed: website/answers.json, which tests/pages/test_site.py compares."""
    found: dict[str, str] = json.loads((ROOT / "website" / "answers.json").read_text(encoding="utf-8"))
    return found


def schema() -> str:
    from pykernel.spec.schema import spec_schema

    return json.dumps(spec_schema(), indent=1)


PYTHON = {name: f"reference/python/{name}.md" for name in pykernel.__all__ if name != "__version__"}
"""What `import pykernel` has -> its page."""


def with_help(markdown: str) -> str:
    """Each command's section begins with what its ``--help`` prints."""
    import typer

    from pykernel.cli.app import app

    root = typer.main.get_command(app)

    def section(found: re.Match[str]) -> str:
        command: Any = root
        for word in (words := found[1].split()):
            command = getattr(command, "commands", {}).get(word)
            if command is None:
                return found[0]
        context = command.make_context("pykernel " + " ".join(words), [], resilient_parsing=True)
        return f"{found[0]}\n```text\n{command.get_help(context).rstrip()}\n```\n"

    return re.sub(r"^## (.*)\n", section, markdown, flags=re.MULTILINE)
