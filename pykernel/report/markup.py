"""HTML that is safe by its type: text becomes ``Html`` only by ``escaped``, or by a function of this package."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from html import escape

from pykernel.errors import visible


class Html(str):
    """Text that is HTML.  All other text is a stranger's: it is escaped where it is put in."""


def escaped(text: object) -> Html:
    """Text as it stands in HTML, also within quotes; without control characters."""
    return text if isinstance(text, Html) else Html(escape(visible(text)))


def element(tag: str, *content: object, **attributes: object) -> Html:
    """An element.  An attribute that is None is left out; ``class_`` stands for class, and data_x for data-x."""
    names = {name: name.rstrip("_").replace("_", "-") for name in attributes}
    told = "".join(f' {names[name]}="{escaped(value)}"' for name, value in attributes.items() if value is not None)
    return Html(f"<{tag}{told}>{''.join(map(escaped, content))}</{tag}>")


def sentence(text: object) -> Html:
    return element("p", text)


def facts(pairs: Iterable[tuple[str, object]]) -> Html:
    """Names and what there is to say of each; a fact without a text is left out."""
    told = [Html(element("dt", name) + element("dd", text)) for name, text in pairs if text not in (None, "")]
    return element("dl", Html("".join(told))) if told else Html("")


def table(
    columns: Sequence[str], rows: Iterable[Sequence[object]], words: Container[int] = (0,), strong: Container[int] = ()
) -> Html:
    """A table.  words: columns that are aligned to the left; the others have numbers.  strong: positions of bold rows."""

    def cell(tag: str, i: int, text: object) -> Html:
        return element(tag, text, class_="w" if i in words else None)

    head = element("tr", *(cell("th", i, name) for i, name in enumerate(columns)))
    body = [
        element("tr", *(cell("td", i, text) for i, text in enumerate(row)), class_="strong" if n in strong else None)
        for n, row in enumerate(rows)
    ]
    whole = element("table", element("thead", head), element("tbody", *body))
    return element("div", whole, class_="wide") if body else Html("")


def bar(text: object, part: float) -> Html:
    """A number with a bar, whose length is a part of the column's width."""
    drawn = element("span", "", class_="bar", style=f"width:{max(0.0, min(1.0, part)) * 8:.2f}em")
    return Html(drawn + escaped(text))
