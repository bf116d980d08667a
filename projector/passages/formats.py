"""Chooses how a text is cut by its type: as Markdown, as reStructuredText, or as source code."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from memlog.projector.passages import markdown
from memlog.projector.passages.markdown import Block


class Form(NamedTuple):
    """How a text is cut.

    blocks: those of a text, in order; at least one where it is not blank.
    title: the title that a text begins with, if any.
    line_end: what ends a line, by which an editor counts; of a PDF a page.
    """

    blocks: Callable[[str], Iterator[Block]]
    title: Callable[[str], str | None]
    line_end: str = "\n"


MARKDOWN = Form(markdown.blocks, markdown.first_title)
"""For all texts but documents of the types below."""

CODE_TYPES = (
    "c cpp csharp css dart elixir erlang go haskell java javascript julia kotlin lua ocaml perl php python r"
    " ruby rust scala shell sql swift toml typescript vue yaml zig"
).split()
"""The types that are cut as source code."""


def form_of(filetype: str | None) -> Form:
    """Return the form of a document, by its `filetype`."""
    # Imported here: most processes cut no documents, and each module compiles its expressions.
    if filetype == "rst":
        from memlog.projector.passages import restructured_text

        return Form(restructured_text.blocks, restructured_text.first_title)
    if filetype in CODE_TYPES:
        from memlog.projector.passages import source_code

        # What code begins with is not what all of it is about.
        return Form(source_code.blocks, lambda _: None)
    return MARKDOWN._replace(line_end="\f") if filetype == "pdf" else MARKDOWN
