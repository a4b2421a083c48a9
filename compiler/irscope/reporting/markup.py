"""Elements of HTML, in which every text is escaped: names come from scripts, traces and stores."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence

from irscope.vocabulary.visible import visible


class Markup(str):
    """What is markup already."""


def text_of(content: str) -> Markup:
    """A text, escaped; what has no shape or turns the direction is written out."""
    return content if isinstance(content, Markup) else Markup(html.escape(visible(content)))


def element(tag: str, *content: str, **attributes: str) -> Markup:
    """An element.  ``class_`` is the attribute ``class``; one with an empty value is left out, except of ``alt``."""
    shown = "".join(
        f' {name.rstrip("_")}="{html.escape(visible(value))}"'
        for name, value in attributes.items()
        if value or name == "alt"
    )
    inside = "".join(text_of(one) for one in content)
    return Markup(f"<{tag}{shown}>" + ("" if tag in ("img", "meta", "source") else f"{inside}</{tag}>"))


def link(url: str, label: str) -> Markup:
    """A link to a page on the web; any other address is shown as text."""
    if not re.fullmatch(r"https://[\w./#?=&%~+-]+", url):
        return text_of(label)
    return element("a", label, href=url, rel="noreferrer")


def grid(head: Sequence[str], rows: Sequence[Sequence[str]], texts: int) -> Markup:
    """A table whose columns after the first ``texts`` are numbers."""

    def line(tag: str, cells: Sequence[str]) -> Markup:
        return element(
            "tr", *(element(tag, cell, class_="number" if at >= texts else "") for at, cell in enumerate(cells))
        )

    lines = ([line("th", head)] if head else []) + [line("td", row) for row in rows]
    return element("div", element("table", *lines), class_="table")
