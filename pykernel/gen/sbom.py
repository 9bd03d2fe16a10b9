"""Write the bill of materials of a generated folder, as CycloneDX: the firmware's files, their hashes, and their licences."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from pykernel.gen.packages import semantic_version

LICENCE = [{"license": {"id": "0BSD"}}]


def sbom(files: Mapping[str, str], context: Mapping[str, Any], hashes: Mapping[str, str]) -> str:
    """Return JSON that depends only on the arguments: it has no time and no serial number.

    files: the folder's files.  Only those in src/ are listed, because a firmware contains only these.
    hashes: numbers that identify the model.
    """
    name = context["name"]
    model = {
        "type": "library",
        "bom-ref": name,
        "name": f"pykernel_{name}",
        "version": semantic_version(context["version"]),
        "description": f"{name}: {context['summary']}",
        "licenses": LICENCE,
        "properties": [{"name": f"pykernel:{what}", "value": value} for what, value in hashes.items()],
    }
    parts = [
        {
            "type": "file",
            "bom-ref": path,
            "name": path,
            "hashes": [{"alg": "SHA-256", "content": hashlib.sha256(text.encode()).hexdigest()}],
            "licenses": LICENCE,
        }
        for path, text in files.items()
        if path.startswith("src/")
    ]
    generator = {"type": "application", "name": "pykernel-mcu", "version": context["version"]}
    document = {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "lifecycles": [{"phase": "pre-build"}],
            "tools": {"components": [generator]},
            "component": model,
        },
        "components": parts,
        "dependencies": [{"ref": name, "dependsOn": [part["name"] for part in parts]}],
        "compositions": [{"aggregate": "complete", "dependencies": [name]}],  # the model has no other dependencies
    }
    return json.dumps(document, indent=2, ensure_ascii=True) + "\n"
