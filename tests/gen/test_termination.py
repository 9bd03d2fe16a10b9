"""Every call comes to an end, and calls do not nest without end: on the typed functions of all models, and on the C around them."""

import graphlib
import re

from pykernel.gen.effects import root
from pykernel.gen.ir import Assign, Call, Field, For, Local, walk
from pykernel.gen.model import model_code
from pykernel.gen.primitives import unmarked
from pykernel.gen.project import build
from pykernel.spec.model import make_spec
from tests.support.every_model import MODELS, content_of

LARGEST = "spectra", "windows", "staged", "plain"
"""Stages, the one with the most code first."""
WHILE = ("m_sqrt", "m_snapshot_sqrt"), "while ((fraction & 0x00800000u) == 0u) {"
"""The only loop without a counter: it shifts a fraction that is not zero until bit 23 is set."""


def specs():
    """Of each rule in each precision of its own, the model with the most code."""
    for rule, precision in dict.fromkeys((rule, precision) for rule, precision, _ in MODELS if precision != "float64"):
        contents = (content_of(rule, precision, stage) for stage in LARGEST)
        yield make_spec(next(content for content in contents if content is not None))


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
    found = re.findall(r"^[a-z][^;{}#()]*?\b(\w+)\([^;{}]*\)\n(\{\n.*?^\})", text, flags=re.MULTILINE | re.DOTALL)
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


def test_every_loop_ends_and_no_function_calls_itself():
    counted = 0
    for spec in specs():
        code = model_code(spec)
        for f in code.functions.values():
            for loop in (node for node in walk(f.body) if isinstance(node, For)):
                fixed = {(Local, loop.variable), *(named(n) for n in walk(loop.stop) if isinstance(n, (Local, Field)))}
                moved = changed(loop.body, code.functions, code.printer.known)
                assert loop.step != 0 and not fixed & moved, (f.name, loop.line)
                assert not any(isinstance(node, Call) for node in walk(loop.stop)), (f.name, loop.line)
                counted += 1
        sources = [unmarked(re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)) for text in build(spec).sources.values()]
        for text in sources:
            functions = in_c(text)
            calls = {name: set(re.findall(r"\b(\w+)\(", body)) & functions.keys() for name, body in functions.items()}
            graphlib.TopologicalSorter(calls).prepare()  # raises CycleError
            for name, body in functions.items():
                for head, inner in loops(body):
                    match = re.fullmatch(
                        r"for \(u?int32_t (\w+) = [^;]+; (?:\(.*\) && )?\(?(?:\1|\(\1 \+ 1\)) ([<>]) ([^;]+?)\)?(?: && \(.*\))?; \1(\+\+|--| [+-]= \w+)\) \{",
                        " ".join(head.split()),
                    )
                    if match is None:
                        assert name in WHILE[0] and head == WHILE[1], (name, head)
                        continue
                    v, sign, _, step = match.groups()
                    assert (sign == "<") == ("+" in step), head
                    assert not re.search(rf"\b{v} (?:[-+*/|&^]|<<|>>)?= |\b{v}(?:\+\+|--)|&{v}\b", inner), (name, head)
    assert counted > 1000
