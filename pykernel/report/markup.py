"""HTML that is safe by its type: text becomes ``Html`` only by ``escaped``, or by a function of this package."""

from __future__ import annotations

from html import escape

from pykernel.errors import visible


class Html(str):
    """Text that is HTML.  All other text is untrusted, and is escaped where it is inserted."""


def escaped(text: object) -> Html:
    """Text escaped for HTML, also within quotes, and without control characters."""
    return text if isinstance(text, Html) else Html(escape(visible(text)))


def element(tag: str, *content: object, **attributes: object) -> Html:
    """An element.  An attribute that is None is left out; ``class_`` stands for class, and data_x for data-x."""
    names = {name: name.rstrip("_").replace("_", "-") for name in attributes}
    told = "".join(f' {names[name]}="{escaped(value)}"' for name, value in attributes.items() if value is not None)
    return Html(f"<{tag}{told}>{''.join(map(escaped, content))}</{tag}>")
