"""What the sign of a status says, of every entry of every model: see ``Program.entries``; and what questions are called."""

import itertools

import numpy as np
import pytest

from pykernel.dialect import Index
from pykernel.host.model import HostModel
from pykernel.spec.model import make_spec
from tests.support.every_model import LABELS, MODELS, content_of
from tests.support.random_calls import Samples, random_calls, trace

ROUNDS, CALLS = 8, 30
"""Most rounds of random calls; after each, everything is asked.  They end when every question was answered once."""


def asked(model, samples):
    """Ask everything: name -> status.  An answer is written, all of it, if and only if the status is not below 0."""
    spec, found = model.spec, {}
    for entry in spec.program.entries_for(spec.config):
        if entry.kind not in ("question", "reading"):
            continue
        x = [np.asarray(samples.x(), spec.real.dtype)] if entry.kind == "question" else []
        before, told = state_of(model), []
        for filler in (7, 9):
            answer = spec.program.answers(entry.name, 1, model.memory)[0]
            answer[...] = filler
            status = int(model.executor.call(entry.kernel, *x, answer))
            told.append((status, answer.tolist()))
            assert status >= 0 or (answer == filler).all(), f"{entry.name}: {status}, and the answer {answer}"
        # what is not written differs: the fillers do
        assert status < 0 or repr(told[0]) == repr(told[1]), f"{entry.name}: {told}"
        assert state_of(model) == before, entry.name
        found[entry.name] = status
    return found


def state_of(model):
    return bytes(model.memory.bytes[: model.spec.program.state_bytes(model.memory.layout)])


def specs_of(rule, precision, stage):
    contents = [content_of(rule, precision, stage, kind) for kind in LABELS]
    return [make_spec(content) for content in contents if content is not None]


@pytest.mark.exhaustive
@pytest.mark.in_turn(36)
@pytest.mark.parametrize("model", MODELS, ids=" ".join)
def test_an_answer_is_written_or_the_status_is_below_0_and_a_refusal_changes_nothing(model):
    for spec in specs_of(*model):
        rng, program, answered = np.random.default_rng(3), spec.program, set()
        host, samples = HostModel(spec, engine="python", raw=True), Samples(spec, rng)
        for name, status in asked(host, samples).items():
            # of features that are not there yet
            assert status < 0 or name not in program.answering or name in program.questions, name
        for entry in program.entries_for(spec.config):
            if entry.kind == "label":
                given, before = samples.y(), state_of(host)
                assert host.executor.call(entry.kernel, given if np.ndim(given) else given[()]) < 0
                assert state_of(host) == before
        for _ in range(ROUNDS):
            for call in random_calls(spec, rng, CALLS):
                before = state_of(host)
                if call.kind not in ("save", "load", "reset"):
                    (result,) = trace(host, [call])
                    assert result.status >= 0 or state_of(host) == before, call
            found = asked(host, samples)
            answered |= {name for name, status in found.items() if status >= 0}
            if answered >= set(found) & set(program.answering):
                break
        else:
            raise AssertionError(f"{spec.name} answered only {answered}")
        learns = [
            call for call in random_calls(spec, rng, 20) if call.kind in ("learn", "ask", "act", "label", "gather")
        ]
        refuses_overwritten(host, list({call.name: call for call in learns}.values()))


def refuses_overwritten(host, calls):
    """Counts beyond their range: what refuses them changes nothing, but for the sample that a signal stage has taken before."""
    program, sound = host.spec.program, bytes(host.memory.bytes)
    ours = {struct.__name__ for struct in program.persistent}
    counts = [slot for slot in host.memory.layout.slots if slot.struct in ours and slot.array.scalar is Index]
    for slot, call in itertools.product(counts, calls):
        host.memory.bytes[:] = np.frombuffer(sound, np.uint8)
        host.memory.field(slot.name).reshape(-1)[0] = 2**20
        before = state_of(host)
        (result,) = trace(host, [call])
        taken = program.reads and call.name == program.learner and result.status == program.status.REFUSED_STATE
        assert result.status >= 0 or state_of(host) == before or taken, (slot.name, call)
    host.memory.bytes[:] = np.frombuffer(sound, np.uint8)


@pytest.mark.in_turn(4)
@pytest.mark.parametrize("model", [model for model in MODELS if model[2] not in ("plain", "staged")], ids=" ".join)
def test_a_question_about_the_newest_features_is_called_after_what_it_tells(model):
    """``forecast`` is in the names of what forecasts, and in no other; none is a question about an x."""
    for spec in specs_of(*model):
        told = {name: of for name, of in spec.program.answering.items() if name != of}
        assert not set(told) & set(spec.inner.program.questions)
        assert all(("forecast" in name) == spec.forecasts for name in told)
        assert all(of in name or (name, of) == ("forecast", "predict") for name, of in told.items())
