"""A fitted model that several threads ask at once answers what it answers one thread, to the byte."""

import copy
import functools
import inspect
import pickle
import sys
import threading
import warnings

import joblib
import numpy as np
import pytest

import pykernel
from pykernel.estimators import base

THREADS = 8
ROWS = 1600
ALL = [
    kind
    for kind in (getattr(pykernel, name) for name in pykernel.__all__)
    if isinstance(kind, type) and issubclass(kind, base.KernelEstimator)
]


@pytest.fixture(autouse=True)
def _often():
    """Threads take turns as often as they can."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


def wrong(ask, parts, times=2):
    """How many of the answers that all threads get at once differ from those that one thread gets."""
    alone, differ = [as_bytes(ask(part)) for part in parts], []
    start = threading.Barrier(len(parts))

    def work(at):
        start.wait()
        differ.extend(as_bytes(ask(parts[at])) != alone[at] for _ in range(times))

    threads = [threading.Thread(target=work, args=(at,)) for at in range(len(parts))]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len(differ) == times * len(parts)
    return sum(differ)


def as_bytes(answer):
    return tuple(map(as_bytes, answer)) if isinstance(answer, tuple) else np.asarray(answer).tobytes()


def fitted(kind):
    """With a rule that answers more questions than the default, where there is a choice."""
    x = np.random.default_rng(0).normal(size=(160, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return kind(**{"rule": "krls-t"} if "rule" in kind._parameters() else {}).fit(
            x, np.digitize(x[:, 0], [-0.3, 0.3])
        )


def questions_of(model, *taught):
    """The methods that take samples alone, and teach the model nothing."""
    for name, method in inspect.getmembers(model, inspect.ismethod):
        needed = [each.name for each in inspect.signature(method).parameters.values() if each.default is each.empty]
        if needed in (["X"], ["x"]) and not name.startswith(("_", "fit", "partial_fit", "monitor", "learn", *taught)):
            yield name, method


@pytest.mark.in_turn(9)
@pytest.mark.parametrize("kind", ALL)
def test_every_question_of_an_estimator_also_in_threads_of_joblib(kind):
    model, x = fitted(kind), np.random.default_rng(1).normal(size=(ROWS, 3))
    parts, found = np.split(x, THREADS), {}
    for name, ask in questions_of(model):
        found[name] = wrong(ask, parts)
        for other in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
            found[name] += as_bytes(getattr(other, name)(x)) != as_bytes(ask(x))
        jobs = joblib.Parallel(n_jobs=THREADS, prefer="threads")(joblib.delayed(ask)(part) for part in parts)
        found[name] += [*map(as_bytes, jobs)] != [as_bytes(ask(part)) for part in parts]
    assert found == dict.fromkeys(found, 0) and found


def test_every_question_of_rivers_faces():
    pandas, faces = pytest.importorskip("pandas"), pytest.importorskip("pykernel.river")
    x = np.random.default_rng(0).normal(size=(ROWS, 3))
    samples = [dict(zip("abc", row, strict=True)) for row in x.tolist()]

    def said(asked, ask, at):
        if not asked.endswith("_one"):
            return ask(pandas.DataFrame(x[at], columns=list("abc")))
        return np.array([str(ask(samples[i])) for i in at[:100]])

    for name in faces.__all__:
        model, found = getattr(faces, name)(), {}
        for sample in samples[:400]:
            model.learn_one(sample, *([sample["a"] > 0] if model._supervised else []))
        for each in (model, pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
            for asked, ask in questions_of(each, "debug_one", "novelty"):  # the default knows no novelty
                many = functools.partial(said, asked, ask)
                found[asked] = found.get(asked, 0) + wrong(many, np.split(np.arange(ROWS), THREADS), times=1)
        assert found == dict.fromkeys(found, 0) and found
