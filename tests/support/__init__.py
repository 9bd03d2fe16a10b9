from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
DATA = DOCS / "data"
