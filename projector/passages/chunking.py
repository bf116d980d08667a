"""Splits texts by format into passages, which are embedded and searched.

A text of at most `window` tokens is one passage. In longer texts, paragraphs and lists are split at sentences
and items into windows, each starting with the end of the previous one; an element (fenced block, list item,
table) that fits the embedding model is never split. The parts of a longer element are self-contained: each
repeats the fence or the table's header. Other passages repeat the heading of their section.
"""

import re
from collections.abc import Iterator
from itertools import takewhile
from typing import NamedTuple

import msgspec

from memlog.eventlog.errors import BadInput
from memlog.eventlog.fields import Checked
from memlog.eventlog.settings import DEFAULTS, PASSAGE, ChunkOverlap, ChunkTokens
from memlog.eventlog.text import find_break_before
from memlog.projector.limits import are_short_enough_to_structure
from memlog.projector.passages.formats import MARKDOWN, Form
from memlog.projector.passages.markdown import Block, Frame, Span
from memlog.projector.text.tokens import Ruler, has_surely_few_tokens

VERSION = 5
"""Increment whenever this module or a format splits texts differently; part of the projection id."""

_PLAIN_BYTES_PER_TOKEN = 3
"""Bytes of UTF-8 per token: 4.3 on average in English, 3 in code, 3 in Chinese."""

_LONGEST_REPEATED = 2_000
"""The most characters repeated in each part, since a word of any length may be one token, and spaces take
no tokens.
"""

# Only at the start of a run of marks: otherwise a long run without a space after it costs quadratic time.
_SENTENCE_END = r"(?:(?<![.!?…])[.!?…]++[\"'”’»)\]]*+\s++|[。！？]++[”’」』）]*+\s*+|\n)"


class ChunkSizes(Checked, frozen=True):
    """Passage sizes in tokens of the bundled vocabulary; part of the projection id.

    Raises BadInput if the window is out of bounds or the overlap is not smaller than the window.
    """

    window: ChunkTokens = DEFAULTS.chunk_tokens
    overlap: ChunkOverlap = DEFAULTS.chunk_overlap

    def __post_init__(self) -> None:
        """Reject an overlap as large as the window."""
        super().__post_init__()
        if self.overlap >= self.window:
            raise BadInput(
                f"passages of {self.window} tokens cannot overlap by {self.overlap}",
                hint="set ChunkSizes.overlap to less than ChunkSizes.window",
            )


class Chunk(msgspec.Struct, frozen=True, gc=False):
    """A passage.

    section: its headings, joined by ` > `. start, end: its position in the text, in code points.
    content: the text at that position, with any repeated text around it.
    """

    section: str | None
    start: int
    end: int
    content: str


class _Repeated(NamedTuple):
    """Text that is repeated, and its number of tokens."""

    text: str = ""
    tokens: int = 0


_NOTHING = _Repeated()


class _Unit(NamedTuple):
    """A unit that is not split: an element, a heading, a sentence, or part of one that was too long.

    before, after: text to repeat before a passage that starts, or after one that ends, with this unit.
    is_part: whether it is part of a split element.
    """

    block: Block
    start: int
    end: int
    before: _Repeated = _NOTHING
    after: _Repeated = _NOTHING
    is_part: bool = False

    @property
    def is_sentence(self) -> bool:
        """Whether the unit is a sentence, or part of one, whose end the next window may repeat."""
        return self.block.kind == "paragraph"

    @property
    def may_overlap(self) -> bool:
        """Whether the next window may repeat the unit: a sentence, or a whole list item."""
        return self.is_sentence or (self.block.kind == "item" and not self.is_part)


def split_into_chunks(text: str, sizes: ChunkSizes, form: Form = MARKDOWN) -> list[Chunk]:
    """Split `text` into passages, in order; return [] if it is blank."""
    if not text.strip() or has_surely_few_tokens(text, sizes.window):
        return as_single_chunk(text, form)
    if not are_short_enough_to_structure(text):
        return list(split_plainly(text, sizes))
    ruler = Ruler(text)
    if ruler.count_tokens(0, len(text)) <= sizes.window:
        return as_single_chunk(text, form)
    return list(_Splitter(text, ruler, sizes).split_into_passages(form))


def as_single_chunk(text: str, form: Form = MARKDOWN) -> list[Chunk]:
    """Return `text` as a single passage; [] if it is blank."""
    return [Chunk(form.title(text), 0, len(text), text)] if text.strip() else []


def split_plainly(text: str, sizes: ChunkSizes) -> Iterator[Chunk]:
    """Split plain text into windows at spaces, ignoring its format and tokens."""
    size = sizes.window * _PLAIN_BYTES_PER_TOKEN
    start = 0
    while start < len(text):
        # Most scripts have several bytes per character.
        limit = start + len(text[start : start + size].encode()[:size].decode(errors="ignore"))
        end = limit if limit == len(text) else find_break_before(text, start, limit)
        content = text[start:end]
        if content.strip():
            yield Chunk(None, start, end, content)
        start = end


class _Opening(NamedTuple):
    """How a passage starts."""

    section: str | None
    start: int
    before: _Repeated


class _Splitter:
    """Splits one text into passages."""

    def __init__(self, text: str, ruler: Ruler, sizes: ChunkSizes) -> None:
        self._text = text
        self._ruler = ruler
        self._sizes = sizes
        self._newline = "\r\n" if "\r\n" in text else "\n"

    def split_into_passages(self, form: Form) -> Iterator[Chunk]:
        """Yield the passages, filling each window with as many units as fit."""
        units = self._split_into_units(form)
        held = [next(units)]
        opening = _Opening(held[0].block.section, held[0].start, held[0].before)
        for unit in units:
            tokens = (
                opening.before.tokens + self._ruler.count_tokens(opening.start, unit.end) + unit.after.tokens
            )
            if tokens <= self._sizes.window:
                held.append(unit)
                continue
            kept = self._drop_trailing_headings(held, unit)
            yield self._make_chunk(opening, kept[-1])
            opening = self._opening_of_next_passage(kept, held[len(kept) :], unit)
            held = [unit]
        yield self._make_chunk(opening, held[-1])

    def _make_chunk(self, opening: _Opening, last: _Unit) -> Chunk:
        content = opening.before.text + self._text[opening.start : last.end] + last.after.text
        return Chunk(opening.section, opening.start, last.end, content)

    def _drop_trailing_headings(self, held: list[_Unit], unit: _Unit) -> list[_Unit]:
        """Return `held` without its trailing headings, if they fit into one passage with `unit`."""
        last = max((number for number, each in enumerate(held) if each.block.kind != "heading"), default=None)
        if last is None or last == len(held) - 1:
            return held
        room = self._sizes.window if unit.is_sentence or unit.is_part else PASSAGE
        fits = self._ruler.count_tokens(held[last + 1].start, unit.end) + unit.after.tokens <= room
        return held[: last + 1] if fits else held

    def _opening_of_next_passage(self, kept: list[_Unit], headings: list[_Unit], unit: _Unit) -> _Opening:
        """Return the start of the passage with `unit`: its headings, an overlap, or `unit` itself."""
        block, ruler, sizes = unit.block, self._ruler, self._sizes
        if headings:
            return _Opening(block.section, headings[0].start, _NOTHING)
        if not (kept[-1].may_overlap and unit.may_overlap):
            return _Opening(block.section, unit.start, unit.before)
        room = min(
            sizes.overlap, sizes.window - unit.before.tokens - ruler.count_tokens(unit.start, unit.end)
        )
        earliest = ruler.boundary_before(unit.start, room) if room > 0 else unit.start
        earliest = max(earliest, block.heading.end if block.heading else 0)
        # Behind the last unit that must not be repeated, such as a table.
        behind = list(takewhile(lambda each: each.may_overlap, reversed(kept)))
        starts = (each.start for each in reversed(behind) if each.start >= earliest)
        partly = earliest if kept[-1].is_sentence else unit.start
        return _Opening(block.section, next(starts, partly), unit.before)

    def _split_into_units(self, form: Form) -> Iterator[_Unit]:
        for block in form.blocks(self._text):
            heading = _NOTHING if block.heading is None else self._text_to_repeat(block.heading)
            tokens = self._ruler.count_tokens(block.start, block.end)
            if block.kind == "paragraph":
                yield from self._split_sentences(block, heading)
            elif tokens <= PASSAGE:
                fits = heading.tokens + tokens <= PASSAGE
                yield _Unit(block, block.start, block.end, heading if fits else _NOTHING)
            elif block.frame is None:
                yield from self._split_block(block, heading, heading, _NOTHING)
            else:
                yield from self._split_block(block, _NOTHING, *self._frame_texts(block, block.frame))

    def _split_sentences(self, paragraph: Block, heading: _Repeated) -> Iterator[_Unit]:
        start, room = paragraph.start, self._sizes.window - heading.tokens
        ends = [match.end() for match in re.compile(_SENTENCE_END).finditer(self._text, start, paragraph.end)]
        for end in [*ends, paragraph.end]:
            # An overlong sentence advances in steps of the overlap, so that its windows overlap like others.
            step = max(1, self._sizes.overlap) if self._ruler.count_tokens(start, end) > room else room
            while start < end:
                cut = min(self._ruler.boundary_after(start, step), end)
                yield _Unit(paragraph, start, cut, heading)
                start = cut

    def _split_block(
        self, block: Block, before: _Repeated, head: _Repeated, closing: _Repeated
    ) -> Iterator[_Unit]:
        """Yield the parts of a long element, split at line ends, or at tokens within overlong lines.

        before: precedes the first part. head: precedes the others. closing: follows the parts that the block
        does not close itself.
        """
        is_closed = block.frame is not None and block.frame.body_end < block.end
        body_end = block.frame.body_end if block.frame and closing.text else block.end
        start = block.start
        while start < block.end:
            cut = self._find_split_position(
                start, body_end, self._sizes.window - before.tokens - closing.tokens
            )
            end = block.end if cut == body_end else cut
            after = _NOTHING if end == block.end and is_closed else self._closing_text_at(end, closing)
            yield _Unit(block, start, end, before, after, is_part=True)
            start, before = end, head

    def _find_split_position(self, start: int, end: int, tokens: int) -> int:
        """Return the end of the last line within `tokens` of `start`, or a position inside a longer line."""
        limit = min(self._ruler.boundary_after(start, max(1, tokens)), end)
        line_end = self._text.rfind("\n", start, limit) + 1
        return limit if limit == end or line_end <= start else line_end

    def _frame_texts(self, block: Block, frame: Frame) -> tuple[_Repeated, _Repeated]:
        """Return the text to repeat before and after each part; empty if it would leave too little room."""
        marks = self._text_to_repeat(frame.marks)
        written = self._ruler.count_tokens(frame.body_end, block.end)
        closing = marks._replace(tokens=max(marks.tokens, written)) if marks.text else _NOTHING
        room = self._sizes.window // 2 - closing.tokens
        heads = (self._text_to_repeat(span) for span in frame.heads)
        fitting = next((head for head in heads if head.text and head.tokens <= room), None)
        return (_NOTHING, _NOTHING) if fitting is None else (fitting, closing)

    def _text_to_repeat(self, span: Span) -> _Repeated:
        """Return the lines at `span` as text to repeat; empty if they would fill half a window."""
        tokens = self._ruler.count_tokens(*span)
        length = span.end - span.start
        if not 0 < length <= _LONGEST_REPEATED or tokens > self._sizes.window // 2:
            return _NOTHING
        return _Repeated(self._text[slice(*span)].rstrip("\r\n") + self._newline, tokens)

    def _closing_text_at(self, end: int, closing: _Repeated) -> _Repeated:
        """Return the text that closes a part ending at `end`, on its own line."""
        begun = closing.text and not self._text.endswith("\n", 0, end)
        return closing._replace(text=self._newline + closing.text) if begun else closing
