"""How a text of which type is cut: as Markdown, as reStructuredText, or as source code."""

from collections.abc import Callable, Iterator
from functools import cache
from typing import NamedTuple

from memlog.projector.passages import markdown
from memlog.projector.passages.markdown import Block


class Form(NamedTuple):
    """How a text is cut.

    blocks: those of a text, in order; at least one where it is not blank.
    title: what a text begins with, where that says what it is about.
    line_end: what ends a line, by which an editor counts; of a PDF a page.
    """

    blocks: Callable[[str], Iterator[Block]]
    title: Callable[[str], str | None]
    line_end: str = "\n"


MARKDOWN = Form(markdown.blocks, markdown.first_title)
"""Of messages, memories and all that is no document, and of documents of other types than below."""

_PAGES = MARKDOWN._replace(line_end="\f")

CODE_TYPES = (
    "c cpp csharp css dart elixir erlang go haskell java javascript julia kotlin lua ocaml perl php python r"
    " ruby rust scala shell sql swift toml typescript vue yaml zig"
).split()
"""The types that are cut as source code."""


# Imported when a document is cut: most processes cut none, and each compiles its expressions.


@cache
def _restructured() -> Form:
    from memlog.projector.passages import restructured_text

    return Form(restructured_text.blocks, restructured_text.first_title)


@cache
def _code() -> Form:
    from memlog.projector.passages import source_code

    return Form(source_code.blocks, lambda _: None)


_FORMS: dict[str, Callable[[], Form]] = {
    "rst": _restructured,
    "pdf": lambda: _PAGES,
    **dict.fromkeys(CODE_TYPES, _code),
}


def form_of(filetype: str | None) -> Form:
    """The form of a document, by its `filetype`."""
    make = _FORMS.get(filetype or "")
    return MARKDOWN if make is None else make()
