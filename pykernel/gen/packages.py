"""Make the build files and manifests that turn the folder of a model's C code into a package for several toolchains."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

BOARD = "the board "
"""Text before a board's name in the results of checks."""

TEMPLATES = {
    # plain C and CMake; the same CMakeLists.txt also builds an ESP-IDF component
    "CMakeLists.txt": "CMakeLists.txt",
    "examples/main.c": "main.c",
    "VALIDITY.md": "VALIDITY.md",
    # Arduino and PlatformIO
    "library.properties": "library.properties",
    "library.json": "library.json",
    "examples/{name}/{name}.ino": "sketch.ino",
    # Zephyr; the dash in zephyr-app keeps this folder apart from the Arduino sketch's folder, which has the model's name
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
    """Return build files, manifests and examples for the C files among ``sources``.

    From the spec, these files have the model's name, which is a C identifier, and the summary.
    checks: results for VALIDITY.md (see gen.record).
    """
    packaged = {
        "sources": [path for path in sources if path.endswith(".c")],
        "headers": [path for path in sources if path.endswith((".h", ".hpp"))],
        "semver": semantic_version(context["version"]),
        "checks": [
            {**row, "bounds": ", ".join(f"`{name}` {int(most):,}" for name, most in bounds_of(row))} for row in checks
        ],
        "boards": any(row["target"].startswith(BOARD) for row in checks),
        "app": "example",
        "beside": [],
    }
    return {
        path.format(name=context["name"]): render(template, {**context, **packaged})
        for path, template in TEMPLATES.items()
    }


def bound_macros(row: Mapping[str, str], prefix: str) -> dict[str, str]:
    """Return the instruction bounds of a check's result: name in a comment of the header -> bound."""
    target = re.sub(r"\W", "_", row["target"].split()[0]).upper()
    return {f"{prefix}_{name.upper()}_MAX_INSTRUCTIONS_{target}": most for name, most in bounds_of(row)}


def bounds_of(row: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return (name, bound) for each function; the bound is the largest number of instructions that a call executes."""
    return re.findall(r"(\w+) (\d+)", row["bounds"])


def semantic_version(version: str) -> str:
    """Convert a Python version such as 1.2.dev3 to one with three numbers, which all manifests require."""
    numbers = [str(int(part)) for part in re.match(r"\d+(\.\d+)*", version)[0].split(".")]  # type: ignore[index]
    return ".".join([*numbers, "0", "0"][:3])
