"""What pyproject.toml cannot say: a README whose links work on an index's page, and the wheel's bill of materials."""

import json
import re
import tomllib
from pathlib import Path
from urllib.parse import urljoin

from setuptools import find_packages, setup
from setuptools.command.bdist_wheel import bdist_wheel

ROOT = Path(__file__).parent
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
DATA: dict[str, str] = SETTINGS["tool"]["setuptools"]["package-dir"]
"""Packages without Python -> their folders."""
LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?:|#)([^)\s]+)\)")
"""A link, or a picture, whose target is a file of the project."""


def page(text: str, source: str | None) -> str:
    """The README for an index, which has none of the project's files: links lead to ``source``, the repository's folder of
    files on the web.  Without one, the texts of links stay, and pictures are left out."""

    def linked(found: re.Match[str]) -> str:
        mark, words, file = found.groups()
        if source is not None:
            return f"{mark}[{words}]({urljoin(source.rstrip('/') + '/', file)})"
        return "" if mark else words

    return LINK.sub(linked, text)


def sbom() -> str:
    """What the wheel holds and needs, as CycloneDX: without time or serial number, so that a tree always gives the same wheel."""
    project = SETTINGS["project"]
    own = f"pkg:pypi/{project['name']}@{project['version']}"
    extras = {
        extra: needs for extra, needs in project["optional-dependencies"].items() if extra not in ("test", "docs")
    }
    optional = sorted({need for needs in extras.values() for need in needs if not need.startswith(project["name"])})
    needed = [
        {
            "type": "library",
            "bom-ref": f"pkg:pypi/{name}",
            "name": name,
            "purl": f"pkg:pypi/{name}",
            "scope": scope,
            "properties": [{"name": "pykernel:requires", "value": need}],
        }
        for scope, needs in (("required", project["dependencies"]), ("optional", optional))
        for need, (name, *_) in ((need, re.split(r"[\[<>=]", need)) for need in needs)
    ]
    data = {
        "type": "data",
        "bom-ref": "pykernel/data/bikeshare.csv",
        "name": "pykernel/data/bikeshare.csv",
        "licenses": [{"license": {"id": "CC-BY-4.0"}}],
    }
    told = {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "lifecycles": [{"phase": "build"}],
            "component": {
                "type": "application",
                "bom-ref": own,
                "name": project["name"],
                "version": project["version"],
                "description": project["description"],
                "licenses": [{"expression": project["license"]}],
                "purl": own,
            },
        },
        "components": [data, *needed],
        "dependencies": [{"ref": own, "dependsOn": [each["bom-ref"] for each in (data, *needed)]}],
    }
    return json.dumps(told, indent=2) + "\n"


class Wheel(bdist_wheel):
    """A wheel with its bill of materials, where PEP 770 wants it."""

    def write_wheelfile(self, wheelfile_base: str, *args: str) -> None:
        super().write_wheelfile(wheelfile_base, *args)
        folder = Path(wheelfile_base, "sboms")
        folder.mkdir()
        (folder / "pykernel-mcu.cdx.json").write_text(sbom(), encoding="utf-8")


if __name__ == "__main__":
    setup(
        cmdclass={"bdist_wheel": Wheel},
        packages=[*find_packages(include=["pykernel*"]), *DATA, "pykernel.data.targets.routines"],
        long_description=page(
            (ROOT / "README.md").read_text(encoding="utf-8"), SETTINGS["project"].get("urls", {}).get("Files")
        ),
        long_description_content_type="text/markdown",
    )
