"""Whose a state is: a corpus of specs with their states' bits, and the revisions of the algorithms that computed these.

The corpus, ``corpus.json``, holds specs as they were written, which each later version must read; for each of them the
bits after one stream; and what identifies its states, parameters and all, as far as it differs from the entry before.
Where bits change, an algorithm's revision must rise (``pykernel/algorithms/revisions.py``), and it must not where none
changes.  After a deliberate change: pytest tests/host/test_identity.py --update-golden.
"""

import functools
import hashlib
import itertools
import json
import tomllib
import typing
from pathlib import Path

import pytest

from benchmarks.bits import bits_of
from pykernel.algorithms import revisions
from pykernel.algorithms.revisions import RAISED, Revision, revision_of
from pykernel.dialect import PRECISIONS, Config
from pykernel.engine.engines import choices_of
from pykernel.errors import UserError
from pykernel.host.identity import identity, specialised
from pykernel.spec.kernel_settings import HIDDEN
from pykernel.spec.model import declared, load_spec, make_spec, rules
from pykernel.spec.sections import KernelFunctionName, fields_of, limits_of, section_of
from tests.conftest import commit
from tests.support.every_model import LABELS, MODELS, accepted, content_of, family_of

CORPUS = Path(__file__).with_name("corpus.json")
SAMPLES = 48
FEW = 16
"""Of models as large as they are by default, which fill their memory later than any stream here ends."""
FUNCTIONS = tuple(name for name in typing.get_args(KernelFunctionName) if name not in ("gaussian", "custom", *HIDDEN))
UNNAMED = {
    "number": {"label": {"column": "y"}},
    "classes": {"label": {"classes": ["a", "b", "c"]}},
    "monitor": {"novelty": {}},
}
"""What says which default model is meant."""
ASIDE = {"": {}, " with a budget": {"reduction": {"n_max": 8}}, " in 700 bytes": {"target": {"ram": 700}}}
"""What makes another model the default."""


VECTORS = [[-0.75, 0.5], [0.0, -0.5], [0.75, 0.25], [-0.25, -0.75]]
TABLES = ({"expansion": {"vectors": VECTORS}},)
PAIRS = {
    "vectors": VECTORS,
    "weights": [[0.5, 0.25], [0.25, -0.5], [-0.5, 0.75], [0.125, 0.25]],
    "bias": [0.25] * 3,
    "support_class": [0, 0, 1, 2],
}
"""What words of other models need."""


def merged(content, section, key, value):
    return content | {section: content.get(section, {}) | {key: value}}


def by_default(content):
    """The content without the keys that may be left out."""
    for section, keys in content.items():
        for key in keys if isinstance(keys, dict) else ():
            less = content | {section: {k: value for k, value in content[section].items() if k != key}}
            content = less if key != "rule" and accepted(less) is not None else content
    return content


DEAD = ", a dead input"
LOST, LONG = ", labels of others", 2400
"""A third of this many labels belongs to other samples: the model begins anew."""
NUMBERS = (True, False, 0.75, 0.999, 0.25, 1, 2, 17, 1e-3)


def values_of(field):
    """Values that a key may have: its words, and numbers of which one may be accepted."""
    words = [word for part in typing.get_args(field.annotation) for word in (part, *typing.get_args(part))]
    return [*(word for word in words if isinstance(word, str)), *NUMBERS, *limits_of(field)]


def keys_of(spec):
    """The keys of a spec's rule: (section, key, field)."""
    found = fields_of(type(spec), spec.learning.rule)
    return [each for each in found if each[1] not in (None, "rule") and each[0] != "target"]


def turned(spec):
    """What is chosen before the compilation."""
    return {(type(spec), *choice) for choice in choices_of(spec.config)}


def with_word(rule, section, key, word):
    """The first content that has the word: of some label, allowed by force, or of other sections."""
    labels = [each for kind in LABELS if (each := content_of(rule, "float32", "plain", kind)) is not None]
    made = [*labels, *(merged(each, "reduction", "force", True) for each in labels)]
    made += [
        {k: v for k, v in labels[0].items() if k != "reduction"} | {"learning": {"rule": rule}} | more
        for more in TABLES
    ]
    made += [each | {"expansion": PAIRS} for each in labels]
    return next((each for content in made if accepted(each := merged(content, section, key, word)) is not None), None)


def contents():
    """Every rule in every precision, alone and staged; signals; every word that a key can have; every kernel; and what
    leaves all to the defaults."""
    found, models = {}, set()

    def add(name, content):
        spec = accepted(content) if content is not None else None
        if spec is None:
            return
        facts = identity(spec).meaning | identity(spec).rest
        computed = frozenset((name, fact) for name, fact in facts.items() if not name.startswith("names of "))
        if computed not in models:
            models.add(computed)
            found[name] = content

    for rule, precision, stage in MODELS:
        if stage in ("plain", "staged") or rule == "klms":
            add(f"{rule} {precision} {stage}", content_of(rule, precision, stage))
            if precision != "float64" and (stage == "plain" or rule == "klms"):
                add(f"{rule} {precision} {stage}, by default", by_default(content_of(rule, precision, stage) or {}))
    for precision, (kind, label), (more, keys) in itertools.product(PRECISIONS, UNNAMED.items(), ASIDE.items()):
        inputs = {"dim": 2, "max_abs": 10.0} if precision == "int16" else {"dim": 2}
        whole = {"label": label["label"] | {"max_abs": 5.0}} if precision == "int16" and kind == "number" else {}
        add(
            f"default {precision} {kind}{more}",
            {"name": "m", "precision": precision, "input": inputs} | label | whole | keys,
        )
    seen = set()
    for rule in rules():
        base, kind_of = content_of(rule, "float32", "plain"), family_of(rule, "float32").spec
        for section, key, field in fields_of(kind_of, rule):
            for word in typing.get_args(field.annotation) if key is not None and section != "target" else ():
                for each in [word] if isinstance(word, str) else typing.get_args(word):
                    if isinstance(each, str) and (kind_of, section, key, each) not in seen:
                        seen.add((kind_of, section, key, each))
                        add(f"{rule} float32 {section}.{key} = {each}", with_word(rule, section, key, each))
            if key is None and section_of(field) not in (None, *seen) and section not in base:
                seen.add(section_of(field))
                for stage in ("plain", "staged"):
                    add(
                        f"{rule} float32 {stage} [{section}]",
                        (content_of(rule, "float32", stage) or base) | {section: {}},
                    )
        for kind in LABELS if kind_of not in seen else ():
            add(f"{rule} float32 label {kind}", content_of(rule, "float32", "plain", kind))
        seen.add(kind_of)
    for rule, precision in itertools.product(("klms", "spectrum-ekf"), ("float32", "float64")):
        # what a plain content refuses, for it needs the standardiser
        base = content_of(rule, precision, "staged", "several")
        add(f"{rule} {precision} mixture", base | {"mixture": {}})
        # what is forgotten sooner than inputs excite it meets the bounds of the expert
        wide = merged(base, "input", "dim", 8) | {"mixture": {"forgetting": 0.9}}
        add(f"{rule} {precision} mixture, forgetting much", wide)
        add(f"{rule} {precision} interval", base | {"mixture": {}, "interval": {}})
        add(f"{rule} {precision} mixture, last labels", base | {"mixture": {"last": 2}})
        add(f"{rule} {precision} held", merged(base, "input", "outliers", "hold"))
        for word in ("mean", "hold"):
            add(f"{rule} {precision} missing, {word}", merged(base, "input", "missing", word))
    for rule in ("klms", "spectrum-softmax"):
        classes = content_of(rule, "float32", "staged", "classes") | {"mixture": {}}
        add(f"{rule} float32 mixture of classes", classes)
        add(f"{rule} float32 balanced classes", merged(classes, "label", "weights", "balanced"))
    for rule, precision, label in (
        ("quadratic-rls", "float32", "one"),
        ("klms", "int16", "one"),
        ("klms", "int16", "classes"),
    ):
        found[f"{rule} {precision} {label}{LOST}"] = content_of(rule, precision, "plain", label)
    # a sensor that never moves
    found[f"gmm float32 plain{DEAD}"] = content_of("gmm", "float32", "plain")
    for rule in declared("reduction", "technique"):
        # vectors far from all others tie
        apart = merged(content_of(rule, "float32", "plain"), "kernel", "sigma", 0.001)
        add(
            f"{rule} float32 plain, apart",
            merged(merged(apart, "reduction", "technique", "klms"), "reduction", "ridge", 0.01),
        )
    # kernel values below one unit of the answer
    add("frozen int16 narrow kernel", merged(content_of("frozen", "int16", "plain"), "kernel", "sigma", 0.25))
    for rule, precision, function in (
        *(("klms", precision, function) for precision in ("float32", "float64", "int16") for function in FUNCTIONS),
        ("frozen", "float32", "sigmoid"),
        *(("frozen", "float32", function) for function in HIDDEN),
    ):
        base = content_of(rule, precision, "plain")
        own = {"offsets": [0.25, 0.5, 0.75, 0.125]} if function in HIDDEN else {}
        for kernel, max_abs in itertools.product(({"gamma": 0.5}, {"sigma": 1.0}, {}), (10.0, 2.0)):
            if f"{rule} {precision} {function} kernel" not in found:
                made = base | {"kernel": kernel | {"function": function}, "input": base["input"] | {"max_abs": max_abs}}
                made |= {"expansion": base["expansion"] | own} if own else {}
                add(f"{rule} {precision} {function} kernel", made)
    # whatever one key turns on or off, and no word above does
    chosen = set().union(*(turned(make_spec(content)) for content in found.values()))
    for rule, stage in itertools.product(rules(), ("plain", "staged")):
        base = content_of(rule, "float32", stage)
        for section, key, field in keys_of(make_spec(base)) if base else ():
            for value in values_of(field):
                spec = accepted(merged(base, section, key, value))
                if spec is not None and not turned(spec) <= chosen:
                    chosen |= turned(spec)
                    add(f"{rule} float32 {stage} {section}.{key}: {value}", merged(base, section, key, value))
    return found


def entry_of(name, content):
    """What the corpus says of a spec."""
    spec = make_spec(content)
    samples, lost = (
        LONG if name.endswith(LOST) else FEW if name.endswith(", by default") else SAMPLES,
        name.endswith(LOST),
    )
    whose, used = identity(spec), {name: revision_of(name) for name in spec.algorithms}
    facts = {name: told for name, told in {**whose.meaning, **whose.rest}.items() if " of " not in name}
    return {
        "spec": content,
        "revisions": {name: [revision.bits, revision.meaning] for name, revision in used.items()},
        "config_hash": f"{whose.config_hash:08x}",
        "state_kind": f"{whose.state_kind:08x}",
        "bits": bits_of(spec, samples, name.endswith(DEAD), lost),
        "facts": facts,
    }


def readable(told):
    return f"{float.fromhex(told):g}" if told is not None and "0x" in told else told


def told_apart(kept, now):
    """What identifies a state, and is another: "; forgetting was 0.998, is 0.997"."""
    names = sorted(name for name in {*kept, *now} if kept.get(name) != now.get(name))
    return "".join(f"; {name} was {readable(kept.get(name))}, is {readable(now.get(name))}" for name in names)


def suspects(changed, unchanged):
    """The functions that all changed entries run, and the fewest of the others: names, or, if there are many, files.  Both:
    sets of (file, function)."""
    common = set.intersection(*changed)
    others = {each: sum(each in entry for entry in unchanged) for each in common}
    found = sorted(each for each in common if others[each] == min(others.values()))
    return (
        ", ".join(" ".join(each) for each in found)
        if len(found) <= 12
        else ", ".join(sorted({file for file, _ in found}))
    )


def run_by(entry):
    code = specialised(make_spec(entry["spec"])).functions.values()
    return {(Path(each.file).name, each.name) for each in code}


def complaints(kept, now):
    """What is wrong with the revisions: sentences.  kept, now: entries of the corpus, by name."""
    raised = {
        (name, each)
        for name in kept
        for each, pair in now[name]["revisions"].items()
        if pair != kept[name]["revisions"].get(each)
    }
    found = []
    for name, entry in kept.items():
        whose = ", ".join(entry["revisions"])
        if now[name]["bits"] != entry["bits"] and not any(of == name for of, _ in raised):
            apart = told_apart(entry["facts"], now[name]["facts"])
            found.append(f"{name}: its bits have changed; raise the revision of {whose} in {revisions.__file__}{apart}")
        if any(
            was > is_
            for each, pair in entry["revisions"].items()
            for was, is_ in zip(pair, now[name]["revisions"][each], strict=True)
        ):
            found.append(f"{name}: a revision of {whose} has become lower")
        if now[name]["bits"] == entry["bits"] and not any(of == name for of, _ in raised):
            for which in ("config_hash", "state_kind"):
                if now[name][which] != entry[which]:
                    found.append(
                        f"{name}: no bit has changed, but its {which}, which makes the states of devices foreign"
                        + told_apart(entry["facts"], now[name]["facts"])
                    )
    for algorithm in {each for _, each in raised}:
        users = [name for name in kept if algorithm in now[name]["revisions"]]
        if all(now[name]["bits"] == kept[name]["bits"] for name in users):
            found.append(f"{algorithm}: its revision was raised, but no bit has changed; lower the revision")
    return found


@functools.cache
def corpus():
    found, facts = json.loads(CORPUS.read_text(encoding="utf-8")), {}
    for entry in found.values():
        facts = {name: told for name, told in (facts | entry["facts"]).items() if told is not None}
        entry["facts"] = facts
    return found


def write_corpus(entries):
    lines, facts = [], {}
    for name, entry in entries.items():
        new = {each: entry["facts"].get(each) for each in facts | entry["facts"]}
        changed = {each: told for each, told in new.items() if facts.get(each) != told}
        lines.append(f"{json.dumps(name)}: {json.dumps(entry | {'facts': changed})}")
        facts = entry["facts"]
    CORPUS.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    corpus.cache_clear()


def daily():
    """The entries whose bits are computed in every run of the suite: a third of them, drawn by the commit; of each model one, and
    no float64 that is a float32's twin with the same keys."""
    models = {}
    for name, entry in corpus().items():
        twin = name.replace(" float64 ", " float32 ")
        if twin == name or twin not in corpus() or name.endswith(" plain"):
            models.setdefault((entry["config_hash"], entry["state_kind"], entry["bits"]), name)
    return {name for name in models.values() if hashlib.sha256(f"{commit()} {name}".encode()).digest()[0] % 3 == 0}


def usual(name):
    """Whether a spec is written and read in every run of the suite: all algorithms are, with stages if they may."""
    if " plain" in name and name.replace(" plain", " staged") in corpus():
        return False
    return any(
        f" {precision} {stage}" in name
        for precision in ("float32", "int16")
        for stage in ("plain", "staged", "windows")
    )


def test_bits_change_with_the_revisions_and_only_with_them(pytestconfig, exhaustive):
    update = pytestconfig.getoption("--update-golden")
    chosen = corpus() if exhaustive or update else daily()
    kept = {name: entry for name, entry in corpus().items() if name in chosen}
    now = {name: entry_of(name, entry["spec"]) for name, entry in kept.items()}
    wrong = complaints(kept, now)
    if update:  # until the first published version a hash alone may change: the diff shows it
        wrong = [each for each in wrong if "no bit has changed, but" not in each]
    changed = [run_by(kept[name]) for name in kept if now[name]["bits"] != kept[name]["bits"]]
    if changed and wrong:
        unchanged = [run_by(kept[name]) for name in kept if now[name]["bits"] == kept[name]["bits"]]
        wrong.insert(0, f"what all changed entries run, and others least: {suspects(changed, unchanged)}")
    assert not wrong, "\n".join(wrong)
    if update:
        new = {name: entry_of(name, content) for name, content in contents().items() if name not in kept}
        write_corpus(now | new)
        return
    stale = [name for name in kept if now[name] != kept[name]]
    assert not stale, f"{stale[0]}: a revision was raised; run pytest tests/host/test_identity.py --update-golden"


def test_the_corpus_has_every_rule_precision_and_kernel():
    used = {each for entry in corpus().values() for each in entry["revisions"]}
    for rule, precision, stage in MODELS:
        if stage in ("plain", "staged") and content_of(rule, precision, stage) is not None:
            assert f"{rule} {precision} {stage}" in corpus(), "run pytest tests/host/test_identity.py --update-golden"
    assert {f"{function} kernel" for function in (*FUNCTIONS, *HIDDEN, "gaussian")} <= used
    assert {"signal", "signal int16", "stages", "gaussian kernel int16"} <= used
    assert set(RAISED) <= used, "an algorithm of this name is in no spec of the corpus"


@pytest.mark.exhaustive
def test_every_default_is_left_to_an_entry_that_it_makes_another_model():
    """Then a changed default changes bits or a hash.  Of every key of every section, once where it is declared."""
    left, written = {}, {}
    for name, spec in ((name, make_spec(entry["spec"])) for name, entry in corpus().items()):
        for section, key, field in keys_of(spec):
            held = getattr(spec, section, None)
            if key in corpus()[name]["spec"].get(section, {}):
                written.setdefault((section, key), []).append(corpus()[name]["spec"][section][key])
            elif held is not None and field.default not in (None, ()) and spec.has(section, key):
                (where, *_) = (each for each in type(held).__mro__ if key in vars(each).get("__annotations__", ()))
                left.setdefault((where.__name__, key), []).append((name, spec, section, field))

    def changes(name, spec, section, key, field):
        more = [field.default + 1] if isinstance(field.default, int) else []
        for value in (*written.get((section, key), ())[:3], *values_of(field), *more):
            other = accepted(merged(corpus()[name]["spec"], section, key, value))
            if other is not None and identity(other).config_hash != identity(spec).config_hash:
                return True
        return False

    unguarded = {
        f"{where}.{key}": [name for name, *_ in users]
        for (where, key), users in left.items()
        if not any(changes(name, spec, section, key, field) for name, spec, section, field in users)
    }
    assert set(unguarded) <= set(ALONE), unguarded


def entry(bits="a", config_hash="1", **given):
    return {
        "facts": {"forgetting": "0x1.0p-1", "eta": "1"},
        "revisions": {name: list(pair) for name, pair in given.items()},
        "config_hash": config_hash,
        "state_kind": "2",
        "bits": bits,
    }


def test_what_is_said_of_revisions():
    """The rules of ``complaints``, each broken once."""
    kept = {"p": entry(klms=(1, 1), gauss=(1, 1)), "q": entry(rls=(1, 1))}

    def told(**changed):
        return complaints(kept, kept | changed)

    assert told() == []
    assert "raise the revision of klms, gauss" in told(p=entry("b", klms=(1, 1), gauss=(1, 1)))[0]
    assert told(p=entry("b", "9", klms=(2, 1), gauss=(1, 1))) == []
    assert "klms: its revision was raised, but no bit" in told(p=entry(klms=(2, 1), gauss=(1, 1)))[0]
    assert "has become lower" in told(p=entry("b", klms=(0, 1), gauss=(2, 1)))[0]
    assert "its config_hash, which makes" in told(p=entry("a", "3", klms=(1, 1), gauss=(1, 1)))[0]
    assert "raise the revision of rls" in told(p=entry("b", klms=(2, 1), gauss=(1, 1)), q=entry("c", rls=(1, 1)))[0]
    other = entry("b", klms=(1, 1), gauss=(1, 1)) | {"facts": {"forgetting": "0x1.8p-1", "rounds": "true"}}
    assert told(p=other)[0].endswith("; eta was 1, is None; forgetting was 0.5, is 0.75; rounds was None, is true")
    a, b, c = ("a.py", "update"), ("b.py", "learn"), ("b.py", "refresh")
    assert suspects([{a, b, c}, {a, b}], [{a}, {a, c}]) == "b.py learn"
    assert suspects([{("c.py", str(i)) for i in range(13)}], []) == "c.py"


def test_a_revision_counts_in_the_hash_and_its_meaning_in_the_kind(monkeypatch):
    spec = make_spec(content_of("klms", "float32", "plain"))
    first = identity(spec)
    monkeypatch.setitem(RAISED, "gaussian kernel", Revision(bits=2))
    other = identity(spec)
    assert other.state_kind == first.state_kind and other.config_hash != first.config_hash
    monkeypatch.setitem(RAISED, "gaussian kernel", Revision(bits=2, meaning=2))
    assert identity(spec).state_kind != first.state_kind
    monkeypatch.setitem(RAISED, "gaussian kernel", Revision())
    monkeypatch.setitem(RAISED, "rls", Revision(bits=2))
    assert identity(spec) == first


def test_the_source_s_text_does_not_count(tmp_path, monkeypatch):
    """A local variable of another name is the same algorithm: the same numbers, and states that stay their own."""
    import importlib.util

    from pykernel.algorithms.online import klms
    from pykernel.gen.model import model_code

    source = Path(klms.__file__).read_text(encoding="utf-8")
    renamed = tmp_path / "klms_again.py"
    renamed.write_text(
        source.replace(
            "    return gaussian(m.gamma, m.nearest_distance[0])",
            "    how_far = m.nearest_distance[0]\n    return gaussian(m.gamma, how_far)",
        ),
        encoding="utf-8",
    )
    assert renamed.read_text() != source
    found = importlib.util.spec_from_file_location("klms_again", renamed)
    module = importlib.util.module_from_spec(found)
    monkeypatch.setitem(__import__("sys").modules, "klms_again", module)
    found.loader.exec_module(module)
    content = content_of("klms", "float32", "plain")
    before = model_code(make_spec(content))
    family = make_spec(content).family
    monkeypatch.setattr(family, "programs", module.KLMS)
    after = model_code(make_spec(content))
    assert after.printed != before.printed
    assert after.whose == before.whose


def test_every_tunable_parameter_is_one():
    with pytest.raises(TypeError, match="speed is listed in 'tunable', but is not a parameter"):
        type("Wrong", (Config,), {"__annotations__": {}, "tunable": frozenset({"speed"})})
    with pytest.raises(TypeError, match="speed is listed in 'unseen', but is not a parameter"):
        type("Wrong", (Config,), {"__annotations__": {}, "unseen": frozenset({"speed"})})


ABSENT = {
    "input": "columns dim formulas center scale resolution offset sensors",
    "label": "column columns outputs classes low high clip weights",
    "kernel": "sigma gamma source kernel max_value",
    "learning": "step_limit",
    "reduction": "lambda_max truncate_below truncate_age",
    "expansion": "weights bias calibration offsets prior_variance label_variance support_class noise trained",
    "signal": "window rate features resolution",
    "target": "name ram flash instructions cycles",
}
"""Keys that say something by not being there: there is none of it.  What follows from other keys is written."""
ALONE = {
    **dict.fromkeys(("Reduction.force", "Int16Reduction.force", "SubspaceReduction.force"), "allows what is refused"),
    "FrozenInput.missing": "the only word",
    "Tables.label_variance": "counts beside a prior variance",
    "KernelSection.function": "others have other keys",
    "Expansion.decision": "another word has other tables",
    "Expansion.break_ties": "another word has other tables",
}
"""Keys of which no other value goes with what an entry says, or makes another model."""


@pytest.mark.exhaustive
def test_a_written_spec_has_every_key_and_is_the_same_model(tmp_path, exhaustive):
    """Then no default of a later version changes it."""
    for name, kept in corpus().items():
        if not exhaustive and (not usual(name) or "windows" in name):
            continue
        spec = make_spec(kept["spec"])
        text = spec.to_toml(complete=True)
        (tmp_path / "m.toml").write_text(text, encoding="utf-8")
        again, said = load_spec(tmp_path / "m.toml"), tomllib.loads(text)
        assert "format = 1\n" in text and again.to_toml(complete=True) == text, name
        assert identity(again) == identity(spec), name
        for section, key, _ in fields_of(type(spec), spec.learning.rule):
            if key is None or section not in said or not spec.has(section, key):
                continue
            follows = spec.signal is not None and section == "input"  # from the signal
            follows |= key == "hop" and spec.signal.window is None  # there is none without windows
            assert key in said[section] or key in ABSENT.get(section, "").split() or follows, f"{name}: {section}.{key}"


def test_a_spec_of_another_format_is_refused():
    """Whatever else there is: its keys, words and sections may be of that format."""
    content = content_of("klms", "float32", "plain")
    later = {"precision": "int8", "learning": {"rule": "newrule"}, "signal": {"new": 1}, "new": {"key": 1}}
    for number, remedy in (
        (2, "install a newer version"),
        *((each, "write format = 1") for each in (0, -1, True, "1", 1.0, None, [1])),
    ):
        for other in ({}, later, {"name": None}):
            with pytest.raises(
                UserError, match=rf"^spec: format is [^;]+; this version of pykernel reads format 1: {remedy}$"
            ):
                make_spec(content | other | {"format": number})
