"""What pyproject.toml cannot say: packages found below mapped folders, and a README whose links work on an index's page."""

import re
import tomllib
from pathlib import Path
from urllib.parse import urljoin

from setuptools import find_namespace_packages, setup

ROOT = Path(__file__).parent
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
FOLDERS: dict[str, str] = SETTINGS["tool"]["setuptools"]["package-dir"]
LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?:|#)([^)\s]+)\)")
"""A link, or a picture, whose target is a file of the project."""


def packages() -> list[str]:
    """All packages below the mapped folders, and folders of data, which setuptools takes for packages."""
    found = set()
    for package, folder in FOLDERS.items():
        below = find_namespace_packages(str(ROOT / folder), exclude=["golden*", "*__pycache__*"])
        found |= {package, *(f"{package}.{name}" for name in below)}
    return sorted(found)


def page(text: str, source: str | None) -> str:
    """The README for an index, which has none of the project's files: links lead to ``source``, the repository's folder of
    files on the web.  Without one, the texts of links stay, and pictures are left out."""

    def linked(found: re.Match[str]) -> str:
        mark, words, file = found.groups()
        if source is not None:
            return f"{mark}[{words}]({urljoin(source.rstrip('/') + '/', file)})"
        return "" if mark else words

    return LINK.sub(linked, text)


if __name__ == "__main__":
    setup(
        packages=packages(),
        long_description=page(
            (ROOT / "README.md").read_text(encoding="utf-8"), SETTINGS["project"].get("urls", {}).get("Files")
        ),
        long_description_content_type="text/markdown",
    )
