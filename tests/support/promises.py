"""tests/promises.json: what this version promises to later ones."""

import json

from tests.support import ROOT

FILE = ROOT / "tests" / "promises.json"


def keeps(pytestconfig, what, now):
    """Whether all that was promised is there as it was; now: name -> type, number or signature.  ``--update-golden`` adds what is new and
    changes nothing else."""
    promised = json.loads(FILE.read_text(encoding="utf-8"))
    if pytestconfig.getoption("--update-golden"):
        promised[what] = now | promised.get(what, {})
        text = json.dumps(promised, indent=1, sort_keys=True, ensure_ascii=False)
        FILE.write_text(text + "\n", encoding="utf-8")
    assert len(promised[what]) > 50
    assert {name: value for name, value in promised[what].items() if now.get(name) != value} == {}
