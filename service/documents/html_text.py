"""Extracts the text of an HTML page, keeping each word on its line.

Uses lxml, from the `documents` extra, which takes linear time for any input and knows each element's line.
Python's own parser takes minutes for 200 kB of `<!--`.
"""

import re
from collections.abc import Iterator

from lxml import etree

_UNSEEN = frozenset({"script", "style", "template", "noscript", "svg"})
_APART = frozenset(
    "address article aside blockquote br dd div dl dt fieldset figcaption figure footer form header hr main"
    " nav ol p pre section table td th tr ul".split()
)
_MARKS = {f"h{level}": "#" * level + " " for level in range(1, 7)} | {"title": "# ", "li": "- "}
_SPACES = re.compile(r"[ \t\r\f\v\xa0]+")


def extract_text(page: bytes) -> str:
    """Return the text of a page, with headings as in Markdown and a dash before each list item.

    Raises:
        ValueError: the page is nested too deeply.
    """
    lines: dict[int, list[str]] = {}
    for text, first in _texts_with_lines(page):
        for number, line in enumerate(text.split("\n"), start=first):
            lines.setdefault(number, []).append(line)
    whole = ("".join(lines.get(number, ())) for number in range(1, max(lines, default=0) + 1))
    return "\n".join(_SPACES.sub(" ", line).strip() for line in whole)


def _texts_with_lines(page: bytes) -> Iterator[tuple[str, int]]:
    """Yield the texts of a page in order, each with the number of its first line.

    A text outside all elements begins on the line where the previous text ends.
    """
    parser = etree.HTMLParser(encoding="utf-8", huge_tree=True)
    root = etree.fromstring(page, parser) if page.strip() else None
    for error in parser.error_log.filter_from_fatals():
        raise ValueError(error.message)
    line, unseen = 1, 0
    for event, node in () if root is None else etree.iterwalk(root, ("start", "end", "comment", "pi")):
        is_element = event in ("start", "end")
        if not is_element:
            line += (node.text or "").count("\n")
        if event != "end":
            # libxml2 gives line numbers up to 65,535; beyond that, newlines are counted.
            line = max(line, node.sourceline or 0)
        if is_element and node.tag in _UNSEEN:
            unseen += 1 if event == "start" else -1
        text = (node.text if event == "start" else node.tail) or ""
        if not unseen:
            mark = _markdown_mark(node.tag, event) if is_element else ""
            # A mark stands before the text of an element, or after its end.
            yield mark + text, line
        line += text.count("\n")


def _markdown_mark(tag: str, event: str) -> str:
    if event == "start" and tag in _MARKS:
        return _MARKS[tag]
    return " " if tag in _APART or tag in _MARKS else ""
