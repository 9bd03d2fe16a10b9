"""tests/promises.json: what this version promises to later ones."""

import json

from packaging.version import Version

from tests.release_check import VERSION
from tests.support import ROOT

FILE = ROOT / "tests" / "promises.json"


def keeps(pytestconfig, what, now):
    """Whether what is there is what was promised; now: name -> type, number or signature.  ``--update-golden`` writes it down;
    once a version has been published, it only adds."""
    promised = json.loads(FILE.read_text(encoding="utf-8"))
    if pytestconfig.getoption("--update-golden"):
        promised[what] = now | ({} if Version(VERSION).is_prerelease else promised.get(what, {}))
        text = json.dumps(promised, indent=1, sort_keys=True, ensure_ascii=False)
        FILE.write_text(text + "\n", encoding="utf-8")
    assert len(promised[what]) > 25
    assert promised[what] == now, f"{what}: run pytest tests/test_promises.py --update-golden, and read the diff"
