"""Chooses how to split a document, based on its type: as Markdown, reStructuredText or source code."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from memlog.projector.passages import markdown
from memlog.projector.passages.markdown import Block


class Form(NamedTuple):
    """How to split a text.

    blocks: yields the blocks of a text; at least one, unless it is blank.
    title: returns the title at the start of a text, if any.
    line_end: the character that ends a line as counted by editors; for PDFs, the one that ends a page.
    """

    blocks: Callable[[str], Iterator[Block]]
    title: Callable[[str], str | None]
    line_end: str = "\n"


MARKDOWN = Form(markdown.split_into_blocks, markdown.find_first_title)
"""For all texts except documents of the types below."""

CODE_TYPES = (
    "c cpp csharp css dart elixir erlang go haskell java javascript julia kotlin lua ocaml perl php python r"
    " ruby rust scala shell sql swift toml typescript vue yaml zig"
).split()
"""The file types to split as source code."""


def choose_form_for_filetype(filetype: str | None) -> Form:
    """Return the form for splitting a document of this type; Markdown by default."""
    # Imported here: most processes split no documents, and each module compiles patterns.
    if filetype == "rst":
        from memlog.projector.passages import restructured_text

        return Form(restructured_text.split_into_blocks, restructured_text.find_first_title)
    if filetype in CODE_TYPES:
        from memlog.projector.passages import source_code

        # The first definition is not the subject of the whole file.
        return Form(source_code.split_into_blocks, lambda _: None)
    return MARKDOWN._replace(line_end="\f") if filetype == "pdf" else MARKDOWN
