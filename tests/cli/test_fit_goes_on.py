"""What ``fit`` wrote goes on learning when another rule is named in the file: the whole way of a user."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.tools import needs

KINDS = {"numbers": ("y", "expansion-nlms"), "classes": ("kind", "expansion-rls")}


def tables(folder: Path, column: str) -> None:
    """A recording, and what comes after it: another offset of the label, or another border between the classes."""
    rng = np.random.default_rng(3)
    for name, later in (("recorded", 0.0), ("later", 1.0)):
        x = rng.uniform(-2, 2, (160, 2))
        y = np.sin(2 * x[:, 0]) + 0.3 * x[:, 1] + later
        shown = [f"{value:.5f}" for value in y] if column == "y" else np.where(y > 0.2, "high", "low")
        lines = [f"{a:.5f},{b:.5f},{value}\n" for (a, b), value in zip(x, shown, strict=True)]
        (folder / f"{name}.csv").write_text(f"a,b,{column}\n" + "".join(lines))


@pytest.mark.exhaustive
@needs("gcc")
@pytest.mark.parametrize("precision", ["int16", "float32"])
@pytest.mark.parametrize("kind", KINDS)
def test_one_line_of_the_file_lets_a_trained_model_learn(
    kind: str, precision: str, tmp_path: Path, run: Any, one_build: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    column, rule = KINDS[kind]
    monkeypatch.chdir(tmp_path)
    tables(tmp_path, column)

    def told(*words: str) -> Any:
        code, out, err = run(*words, "--json")
        assert code == 0, err
        return json.loads(out)

    words = "--set", "training.model=trained", "-n", "4", "--set", f"precision={precision}", "--output", "flow.toml"
    told("fit", "recorded.csv", "--label", column, *words)
    text = Path("flow.toml").read_text()
    assert text.count('rule = "frozen"') == 1 and f'column = "{column}"' in text
    text = text.replace('rule = "frozen"', f'rule = "{rule}"')
    if precision == "int16" and kind == "numbers":  # whole numbers need the range of the labels
        text = text.replace(f'column = "{column}"', f'column = "{column}"\nmax_abs = 4.0')
    Path("learning.toml").write_text(text)
    by = "rmse" if kind == "numbers" else "error_rate"
    frozen, learning = (told("simulate", f"{name}.toml", "later.csv") for name in ("flow", "learning"))
    errors = [found["second_half"][by]["model"] for found in (frozen, learning)]
    assert errors[1] < 0.7 * errors[0] and errors[0] > 0.1
    assert told("check", "learning.toml")["ok"]
    told("generate", "learning.toml", "-o", "out")
    told("generate", "learning.toml", "--start", "later.csv", "-o", "started")
    assert list(Path("out/src").glob("*.c")) and list(Path("started/src").glob("*.c"))
