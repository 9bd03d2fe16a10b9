"""Every call comes to an end, and calls do not nest without end: on the typed functions of all models, and on the C around them."""

import graphlib
import re

from pykernel.gen.project import build
from pykernel.host.identity import made_up_number
from pykernel.language.effects import effects, root
from pykernel.language.functions import checked_functions
from pykernel.language.ir import Assign, Call, Field, For, Local, walk
from pykernel.language.primitives import unmarked
from pykernel.spec.model import make_spec
from tests.support.every_model import MODELS, content_of

WHILE = "m_sqrt", "while ((fraction & 0x00800000u) == 0u) {"
"""The only loop without a counter: it shifts a fraction that is not zero until bit 23 is set."""


def specs():
    """Of each rule the plain model, in each precision of its own; and each kind of signals with one rule."""
    signals = set()
    for rule, precision, stage in MODELS:
        content = content_of(rule, precision, stage) if precision != "float64" and stage != "staged" else None
        if content is not None and (stage == "plain" or (precision, stage) not in signals):
            signals.add((precision, stage))
            yield make_spec(content)


COUNTS = re.compile(
    r"for \(u?int32_t (\w+) = [^;]+; (?:\(.*\) && )?\(?(?:\1|\(\1 \+ 1\)) ([<>]) [^;]+?\)?(?: && \(.*\))?; "
    r"\1(\+\+|--| [+-]= \w+)\) \{"
)
"""A loop's head in C that counts up or down to a bound."""


def named(node):
    return (type(node), node.name)


def changed(body, functions, known):
    """The locals and fields that statements change, themselves or in what they call."""
    names = set()
    for node in walk(body):
        if isinstance(node, Assign):
            names.add(named(root(node.target)))
        elif isinstance(node, For):
            names.add((Local, node.variable))
        elif isinstance(node, Call) and node.callee.name in known:
            names |= {(Field, name) for name in known[node.callee.name].fields}
            for (param, _), argument in zip(functions[node.callee.name].params, node.args, strict=True):
                if param in known[node.callee.name].params:
                    names.add(named(root(argument)))
    return names


def in_c(text):
    """C function -> its body, with its braces."""
    found = re.findall(r"^[A-Za-z][^;{}#()]*?\b(\w+)\([^;{}]*\)\n(\{\n.*?^\})", text, flags=re.MULTILINE | re.DOTALL)
    assert len(found) == len(re.findall(r"^\{$", text, flags=re.MULTILINE))
    return dict(found)


def loops(body):
    """Heads and bodies of a C function's loops."""
    for head in re.finditer(r"\b(?:for|while|do)\b[^;{]*(?:;[^{]*)?\{", body):
        depth, end = 1, head.end()
        while depth:
            depth += {"{": 1, "}": -1}.get(body[end], 0)
            end += 1
        yield head[0], body[head.end() : end]


def test_every_loop_counts_to_a_bound_that_it_leaves_alone():
    """All branches of all kernels, before choices are made: what is printed is a part of them."""
    seen = {}
    for spec in specs():
        functions = checked_functions((*(entry.kernel for entry in spec.program.entries), made_up_number(spec)))
        known = effects(functions)
        graphlib.TopologicalSorter({name: f.called & functions.keys() for name, f in functions.items()}).prepare()
        for f in functions.values():
            for loop in () if id(f) in seen else (node for node in walk(f.body) if isinstance(node, For)):
                fixed = {(Local, loop.variable), *(named(n) for n in walk(loop.stop) if isinstance(n, (Local, Field)))}
                assert loop.step != 0 and not fixed & changed(loop.body, functions, known), (f.name, loop.line)
                assert not any(isinstance(node, Call) for node in walk(loop.stop)), (f.name, loop.line)
            seen[id(f)] = f
    assert len(seen) > 1000


def test_the_c_has_no_other_loops_and_no_recursion():
    """With the C that is written by hand: square root, checksum, snapshots."""
    others = set()
    for precision in ("float32", "int16"):
        for text in build(make_spec(content_of("klms", precision, "plain"))).sources.values():
            functions = in_c(unmarked(re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)))
            calls = {name: set(re.findall(r"\b(\w+)\(", body)) & functions.keys() for name, body in functions.items()}
            graphlib.TopologicalSorter(calls).prepare()  # raises CycleError
            for name, body in functions.items():
                for head, inner in loops(body):
                    found = COUNTS.fullmatch(" ".join(head.split()))
                    if found is None:
                        others.add((name, head))
                    else:
                        v, sign, step = found.groups()
                        assert (sign == "<") == ("+" in step), head
                        assert not re.search(rf"\b{v} (?:[-+*/|&^]|<<|>>)?= |\b{v}(?:\+\+|--)|&{v}\b", inner), (
                            name,
                            head,
                        )
    assert others == {WHILE}
