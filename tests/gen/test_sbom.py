"""The bill of materials in a generated folder: valid, of the bytes that are there, and the same each time."""

import hashlib
import json

import pytest

from pykernel.gen.check import check
from pykernel.gen.project import build, generate
from pykernel.gen.record import record
from pykernel.spec.model import make_spec
from tests.gen.test_project import learned, spec_of
from tests.support.every_model import content_of

MODELS = {
    "fresh": lambda: (spec_of(), None),
    "learned": lambda: (spec_of(), learned(spec_of())),
    "int16": lambda: (make_spec(content_of("klms", "int16", "plain")), None),
    "frozen": lambda: (make_spec(content_of("frozen", "float32", "plain")), None),
}


def misfit(text):
    """The official schema's complaint; None if there is none."""
    from cyclonedx.schema import SchemaVersion  # three seconds, which collection need not take
    from cyclonedx.validation.json import JsonStrictValidator

    return JsonStrictValidator(SchemaVersion.V1_6).validate_str(text)


def digests(told):
    return {part["name"]: part["hashes"][0]["content"] for part in told["components"]}


@pytest.mark.parametrize("model", MODELS)
def test_it_is_valid_and_lists_every_file_of_the_firmware(model):
    spec, memory = MODELS[model]()
    project = build(spec, memory)
    text = project.files[f"{spec.name}.cdx.json"]
    assert misfit(text) is None
    assert misfit(text.replace('"0BSD"', '"of no list"')) and misfit(text.replace('"file"', '"heap"'))
    told = json.loads(text)
    sources = {path: body for path, body in project.files.items() if path.startswith("src/")}
    assert digests(told) == {path: hashlib.sha256(body.encode()).hexdigest() for path, body in sources.items()}
    properties = {each["name"]: each["value"] for each in told["metadata"]["component"]["properties"]}
    assert properties["pykernel:config_hash"] == project.figures["config_hash"]
    assert ("pykernel:state_kind" in properties) == bool(spec.program.persistent)
    assert "timestamp" not in text and "serialNumber" not in text


@pytest.mark.exhaustive
def test_it_follows_the_header_into_which_a_check_writes(tmp_path, one_build):
    spec = spec_of()
    generate(spec, tmp_path)
    before = (tmp_path / "flow.cdx.json").read_text()
    report = check(spec, samples=50, levels=("-O0",))
    report.rows[0]["bounds"] = {"update": {"instructions": 1000}}
    record(tmp_path, spec, report)
    after = (tmp_path / "flow.cdx.json").read_text()
    assert after != before and misfit(after) is None
    for path, digest in digests(json.loads(after)).items():
        assert hashlib.sha256((tmp_path / path).read_bytes()).hexdigest() == digest, path
