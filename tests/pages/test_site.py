"""The site: it needs no network, and the first page's machines computed one state."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import ROOT
from tests.targets.test_page import CHROMIUM, content_of, in_browser

pytest.importorskip("mkdocs", reason="needs mkdocs; would show that the site's pages are those of docs")
sys.path.insert(0, str(ROOT / "website"))

import hooks

sys.path.remove(str(ROOT / "website"))


def test_the_pc_computes_the_known_answer():
    pytest.importorskip("ziglang")
    page = hooks.front_page()
    assert set(hooks.answers().values()) == {content_of(page)["hash"]}
    assert len(page.encode()) < 500_000


@pytest.mark.exhaustive("minutes")
def test_the_emulated_cpu_computes_the_known_answer():
    pytest.importorskip("unicorn")
    from pykernel.gen.project import build, state_hash
    from pykernel.host.bikeshare import bikeshare, default_spec
    from pykernel.targets.build import model_image
    from pykernel.targets.target import find_target
    from pykernel.targets.unicorn_runner import UnicornModel

    project = build(default_spec())
    target = find_target("cortex-m4f")
    model = UnicornModel(project, model_image(project, target, target.toolchains[-1]))
    model.prequential(*bikeshare()[:2])
    assert f"{state_hash(project.spec, model.memory):08x}" == hooks.answers()["an emulated Cortex-M4F"]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built as `make site` does, at a place of its own."""
    folder = tmp_path_factory.mktemp("site")
    words = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-f", "website/mkdocs.yml"]
    words += ["--site-dir", str(folder)]
    subprocess.run(words, cwd=ROOT, check=True)
    return folder


@pytest.mark.exhaustive("minutes")
def test_the_site_needs_no_network(site):
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        assert not re.findall(r"<(?:script|link|img|iframe)[^>]*(?:src|href)=\"?https?:[^>]*", text), page.name
        assert '<html lang="en"' in text or "<html lang=en" in text, page.name
        assert not re.findall(r"<img(?![^>]*alt=\"[^\"]+\")[^>]*>", text), page.name


@pytest.mark.exhaustive("minutes")
def test_each_estimator_shows_what_users_call(site):
    """Inherited methods, too."""
    import pykernel

    for name, home in pykernel._HOMES.items():
        page = (site / "reference" / "python" / f"{name}.html").read_text(encoding="utf-8")
        shown = set(re.findall(r'id="?(pykernel[\w.]+)', page))
        found = getattr(pykernel, name)
        for method in ("fit", "partial_fit", "predict", "predict_proba", "transform", "to_spec"):
            ours = next((k.__module__ for k in getattr(found, "__mro__", ()) if method in vars(k)), "")
            if ours.startswith("pykernel"):
                assert f"{home}.{name}.{method}" in shown, (name, method)


@pytest.mark.skipif(not CHROMIUM, reason="needs chromium; would show what the first page's reader sees")
@pytest.mark.exhaustive("minutes")
def test_the_readers_browser_computes_the_known_answer_or_shows_a_picture(site, tmp_path):
    hashed = hooks.answers()["an emulated Cortex-M4F"]
    learned = in_browser(f"file://{site / 'live.html'}#all", tmp_path)
    assert 'data-done="equal"' in learned
    assert f"hash is {hashed}, equal to what the PC and an emulated Cortex-M4F computed" in learned
    assert '<iframe src="live.html#start"' in in_browser(f"file://{site / 'index.html'}", tmp_path)
    without = in_browser(f"file://{site / 'index.html'}", tmp_path, "--js-flags=--jitless")
    assert "<iframe src" not in without and f"<code>{hashed}</code>" in without and 'src="data/demo.png"' in without
    assert "This browser does not run WebAssembly" in in_browser(
        f"file://{site / 'live.html'}", tmp_path, "--js-flags=--jitless"
    )
