"""The files around a model's C: one folder that is a package for each of several toolchains."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

BOARD = "the board "
"""Before the name of a board, in results."""

TEMPLATES = {
    # plain C and CMake; the same CMakeLists.txt is an ESP-IDF component
    "CMakeLists.txt": "CMakeLists.txt",
    "examples/main.c": "main.c",
    "VALIDITY.md": "VALIDITY.md",
    # Arduino, PlatformIO
    "library.properties": "library.properties",
    "library.json": "library.json",
    "examples/{name}/{name}.ino": "sketch.ino",
    # Zephyr; a dash in a folder's name keeps it apart from the sketch's, which is the model's
    "zephyr/module.yml": "module.yml",
    "zephyr/CMakeLists.txt": "zephyr_CMakeLists.txt",
    "zephyr/Kconfig": "Kconfig",
    "examples/zephyr-app/CMakeLists.txt": "zephyr_app_CMakeLists.txt",
    "examples/zephyr-app/prj.conf": "zephyr_app_prj.conf",
    "examples/zephyr-app/sample.yaml": "zephyr_app_sample.yaml",
    "examples/zephyr-app/src/main.c": "zephyr_main.c",
    # ESP-IDF
    "idf_component.yml": "idf_component.yml",
    "examples/esp-idf/CMakeLists.txt": "idf_app_CMakeLists.txt",
    "examples/esp-idf/main/CMakeLists.txt": "idf_app_main_CMakeLists.txt",
    "examples/esp-idf/main/main.c": "idf_main.c",
}


def package_files(
    sources: Mapping[str, str],
    context: Mapping[str, Any],
    render: Callable[[str, Mapping[str, Any]], str],
    checks: Sequence[Mapping[str, str]] = (),
) -> dict[str, str]:
    """Build files, manifests and examples for the C files among ``sources``.

    checks: results for VALIDITY.md, see gen.record.  Of the spec's text only the model's name gets into them, which is a C identifier; column names do not.
    """
    packaged = {
        "sources": [path for path in sources if path.endswith(".c")],
        "headers": [path for path in sources if path.endswith(".h")],
        "semver": semantic_version(context["version"]),
        "checks": [{**row, "bounds": shown_bounds(row)} for row in checks],
        "boards": any(row["target"].startswith(BOARD) for row in checks),
        "app": "example",
        "beside": [],
    }
    return {
        path.format(name=context["name"]): render(template, {**context, **packaged})
        for path, template in TEMPLATES.items()
    }


def shown_bounds(row: Mapping[str, str]) -> str:
    """The bounds of a row, as VALIDITY.md has them."""
    return ", ".join(f"`{name}` {int(most):,}" for name, most in bounds_of(row))


def bound_macros(row: Mapping[str, str], prefix: str) -> dict[str, str]:
    """The bounds of a row, by the names that the header gives them."""
    target = re.sub(r"\W", "_", row["target"].split()[0]).upper()
    return {f"{prefix}_{name.upper()}_MAX_INSTRUCTIONS_{target}": most for name, most in bounds_of(row)}


def bounds_of(row: Mapping[str, str]) -> list[tuple[str, str]]:
    """Of each function: its name, and the most instructions that a call takes."""
    pairs = [part.split(" ") for part in row["bounds"].split(", ") if part]
    return [(name, most) for name, most in pairs]


def semantic_version(version: str) -> str:
    """Three numbers, as all manifests demand, of a Python version such as 1.2.dev3."""
    numbers = [str(int(part)) for part in re.match(r"\d+(\.\d+)*", version)[0].split(".")]  # type: ignore[index]
    return ".".join([*numbers, "0", "0"][:3])
