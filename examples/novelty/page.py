"""What docs/guide/monitor-settings.md shows of this example: between ``<!-- spec -->`` and ``<!-- end -->``, and so on."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

HERE = Path(__file__).parent


def blocks(output: str) -> Mapping[str, str]:
    """Name -> text.  output: what run.py printed."""
    spec, firmware = ((HERE / name).read_text(encoding="utf-8") for name in ("monitor.toml", "firmware.c"))
    texts = {"spec": ("toml", spec), "firmware": ("c", firmware), "output": ("text", output)}
    return {name: f"\n```{language}\n{text.rstrip()}\n```\n\n" for name, (language, text) in texts.items()}


def filled(page: str, output: str) -> str:
    """The page with these blocks.  Raises ValueError if one has no place."""
    for name, text in blocks(output).items():
        pattern = rf"(?<=<!-- {name} -->\n).*?(?=<!-- end -->)"
        if not re.search(pattern, page, re.DOTALL):
            raise ValueError(f"the page has no place for {name!r}")
        page = re.sub(pattern, lambda _, text=text: text, page, count=1, flags=re.DOTALL)  # type: ignore[misc]
    return page
