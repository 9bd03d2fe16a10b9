"""Make safe HTML: text becomes ``Html`` only through ``escaped`` or another function of this package."""

from __future__ import annotations

from html import escape

from pykernel.errors import visible


class Html(str):
    """Text that is HTML.  All other text is untrusted, and is escaped where it is inserted."""


def escaped(text: object) -> Html:
    """Escape text for HTML, also within quotes, and drop control characters."""
    return text if isinstance(text, Html) else Html(escape(visible(text)))


def element(tag: str, *content: object, **attributes: object) -> Html:
    """Return an element.  An attribute that is None is left out; ``class_`` stands for class, and data_x for data-x."""
    names = {name: name.rstrip("_").replace("_", "-") for name in attributes}
    attributes_text = "".join(
        f' {names[name]}="{escaped(value)}"' for name, value in attributes.items() if value is not None
    )
    return Html(f"<{tag}{attributes_text}>{''.join(map(escaped, content))}</{tag}>")
