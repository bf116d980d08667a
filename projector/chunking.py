"""Markdown-aware chunks: the passages that are embedded and searched.

A text of at most `window` tokens is one chunk. In a longer one, paragraphs are windowed and broken at
sentences, each window beginning with the last tokens of the one before; an element (fenced block, list
item, table) that the embedding model can take at once is never broken.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

from memlog.eventlog.errors import BadInput
from memlog.projector.tokens import Ruler, surely_within

VERSION = 1
"""Changes with any change to how this module cuts a text; part of the projection id."""

ELEMENT_TOKENS = 510
"""What the model's 512 positions leave beside the marks of beginning and end."""

_SMALLEST_WINDOW = 64

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_HEADING = re.compile(r" {0,3}(#{1,6})[ \t]+(.*?)[ \t]*#*[ \t]*$")
_LIST_ITEM = re.compile(r"\s*(?:[-*+]|\d{1,9}[.)])\s+\S")
_SENTENCE_END = re.compile(r"(?:[.!?…]+[\"'”’»)\]]*\s+|[。！？]+[”’」』）]*\s*|\n)")


@dataclass(frozen=True)
class ChunkSizes:
    """In tokens of the shipped vocabulary; part of the projection id.

    Raises:
        BadInput: the window is not from 64 to what the model takes at once, or the overlap is no part of it.
    """

    window: int = 400
    overlap: int = 80

    def __post_init__(self) -> None:
        if not _SMALLEST_WINDOW <= self.window <= ELEMENT_TOKENS:
            raise BadInput(
                f"passages of {self.window} tokens: {_SMALLEST_WINDOW} to {ELEMENT_TOKENS} are possible",
                hint="chunk_tokens sets their size",
            )
        if not 0 <= self.overlap < self.window:
            raise BadInput(
                f"passages of {self.window} tokens cannot overlap by {self.overlap}",
                hint="set chunk_overlap to less than chunk_tokens",
            )


class Chunk(NamedTuple):
    """A passage: its headings joined by ` > `, and where it stands in its text, in code points."""

    section: str | None
    start: int
    end: int


class _Unit(NamedTuple):
    """What is not broken: an element, a heading, a sentence, or a part of one that was too long."""

    kind: Literal["element", "heading", "sentence"]
    section: str | None
    start: int
    end: int


def chunks(text: str, sizes: ChunkSizes) -> list[Chunk]:
    """The chunks of `text`, in order; none where it is blank."""
    if not text.strip():
        return []
    if surely_within(text, sizes.window):
        return [Chunk(_first_section(text), 0, len(text))]
    ruler = Ruler(text)
    if ruler.count(0, len(text)) <= sizes.window:
        return [Chunk(_first_section(text), 0, len(text))]
    return list(_packed(list(_units(text, ruler, sizes)), ruler, sizes))


def _first_section(text: str) -> str | None:
    heading = _HEADING.match(text.lstrip("\n").partition("\n")[0])
    return heading[2] if heading else None


def _packed(units: list[_Unit], ruler: Ruler, sizes: ChunkSizes) -> Iterator[Chunk]:
    """As many units in each chunk as its window holds."""
    start, section, held = units[0].start, units[0].section, [units[0]]
    for unit in units[1:]:
        if ruler.count(start, unit.end) <= sizes.window:
            held.append(unit)
            continue
        kept = held[:-1] if held[-1].kind == "heading" and len(held) > 1 else held
        yield Chunk(section, start, kept[-1].end)
        start = _next_start(kept, held[len(kept) :], unit, ruler, sizes)
        section, held = unit.section, [unit]
    yield Chunk(section, start, held[-1].end)


def _next_start(
    kept: list[_Unit], headings: list[_Unit], unit: _Unit, ruler: Ruler, sizes: ChunkSizes
) -> int:
    """Where the chunk that adds `unit` begins: at its heading, or with the overlap of a paragraph."""
    if headings:
        return headings[0].start if ruler.count(headings[0].start, unit.end) <= ELEMENT_TOKENS else unit.start
    if kept[-1].kind != "sentence" or unit.kind != "sentence":
        return unit.start
    room = min(sizes.overlap, sizes.window - ruler.count(unit.start, unit.end))
    earliest = ruler.back(unit.start, room) if room > 0 else unit.start
    sentences = [sentence.start for sentence in kept if sentence.start >= earliest]
    return sentences[0] if sentences else earliest


def _units(text: str, ruler: Ruler, sizes: ChunkSizes) -> Iterator[_Unit]:
    for unit in _blocks(text):
        if unit.kind == "sentence":
            yield from _sentences(unit, text, ruler, sizes)
        elif ruler.count(unit.start, unit.end) <= ELEMENT_TOKENS:
            yield unit
        else:
            yield from _lines(unit, text, ruler, sizes)


def _sentences(paragraph: _Unit, text: str, ruler: Ruler, sizes: ChunkSizes) -> Iterator[_Unit]:
    start = paragraph.start
    ends = [match.end() for match in _SENTENCE_END.finditer(text, paragraph.start, paragraph.end)]
    for end in [*ends, paragraph.end]:
        # One that no window holds goes in steps of the overlap, so that its windows overlap as others do.
        step = max(1, sizes.overlap) if ruler.count(start, end) > sizes.window else sizes.window
        while start < end:
            cut = min(ruler.forward(start, step), end)
            yield paragraph._replace(start=start, end=cut)
            start = cut


def _lines(element: _Unit, text: str, ruler: Ruler, sizes: ChunkSizes) -> Iterator[_Unit]:
    """A long element at its line ends, a longer line at tokens."""
    start = element.start
    while start < element.end:
        limit = min(ruler.forward(start, sizes.window), element.end)
        line_end = text.rfind("\n", start, limit) + 1
        end = limit if limit == element.end or line_end <= start else line_end
        yield element._replace(start=start, end=end)
        start = end


def _blocks(text: str) -> Iterator[_Unit]:
    """The Markdown blocks of `text`: elements, headings, and paragraphs (as one sentence each)."""
    headings: list[tuple[int, str]] = []
    lines = list(_numbered(text))
    index = 0
    while index < len(lines):
        start, line = lines[index]
        heading = _HEADING.match(line)
        if not line.strip():
            index += 1
            continue
        if heading:
            level = len(heading[1])
            headings = [*(above for above in headings if above[0] < level), (level, heading[2])]
        kind, index = _block_end(lines, index)
        end = lines[index][0] if index < len(lines) else len(text)
        section = " > ".join(title for _, title in headings) or None
        yield _Unit(kind, section, start, end)


def _numbered(text: str) -> Iterator[tuple[int, str]]:
    start = 0
    for line in text.split("\n"):
        yield start, line
        start += len(line) + 1


def _block_end(
    lines: list[tuple[int, str]], index: int
) -> tuple[Literal["element", "heading", "sentence"], int]:
    """The kind of the block that begins at line `index`, and the index of the line behind it."""
    line = lines[index][1]
    fence = _FENCE.match(line)
    following = range(index + 1, len(lines))
    if _HEADING.match(line):
        return "heading", index + 1
    if fence:
        closing = (at for at in following if lines[at][1].strip().startswith(fence[1]))
        return "element", next(closing, len(lines) - 1) + 1
    if line.lstrip().startswith("|"):
        others = (at for at in following if not lines[at][1].lstrip().startswith("|"))
        return "element", next(others, len(lines))
    others = (at for at in following if _begins_block(lines[at][1]))
    return ("element" if _LIST_ITEM.match(line) else "sentence"), next(others, len(lines))


def _begins_block(line: str) -> bool:
    starts = _FENCE.match(line) or _HEADING.match(line) or _LIST_ITEM.match(line)
    return not line.strip() or starts is not None or line.lstrip().startswith("|")
