"""The gate for what is sent to providers: no private memory, and nothing that looks like a key.

A request has an `Outgoing` for its body, which is made here alone. A sender asks first which texts may be
sent, since a text shows little of what stands beside it: a title that says "password", the message before.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from itertools import accumulate
from typing import NamedTuple

import msgspec

from memlog.eventlog.categories import PRIVATE_CATEGORIES
from memlog.eventlog.key_scan import keys_in
from memlog.eventlog.key_shapes import OPAQUE_WORD, TOLD
from memlog.eventlog.secrets import is_telling, is_telling_name, rewritten

SPAN = 3
"""Messages on each side of one over which a key may be split: people and agents answer in between."""

_NAMED = "named-secret"

_LONGEST_NAME = 64
"""Characters of a text that is read as the name of the text behind it."""

_SHORTEST_VALUE = 4

_LEAD = 8
"""Signs before a value: quotes, emphasis."""

_SHORTEST_REST = 8
"""Characters at the beginning of a text that are read as the rest of a key in the text before."""


class Outgoing(msgspec.Struct, frozen=True):
    """The body of a request, which may leave the process. `outgoing` makes it."""

    content: bytes


def outgoing(body: object) -> Outgoing:
    """Encode a body, with every key in its texts masked."""
    return Outgoing(msgspec.json.encode(rewritten(body, masked_for_sending)))


class SentText(NamedTuple):
    """A text that is sent, or stands beside one that is.

    names: what it is called: its title, its topic, its key. by: who says it.
    """

    text: str
    names: Sequence[str] = ()
    by: str = ""


class _KeySpan(NamedTuple):
    start: int
    end: int
    kind: str


def is_private(category: str | None) -> bool:
    """Whether memories of a category are sent to nobody."""
    return category is not None and category.strip().casefold() in PRIVATE_CATEGORIES


def masked_for_sending(text: str) -> str:
    """`text` with each key replaced by `[REDACTED:kind]`."""
    return masked_parts([SentText(text)])[0]


def masked_parts(parts: Sequence[SentText]) -> list[str]:
    """The texts of `parts` with each key masked, also one that is split over several."""
    found = _found(parts)
    return [_masked(part.text, spans) for part, spans in zip(parts, found, strict=True)]


def with_keys(parts: Sequence[SentText]) -> list[bool]:
    """Which of `parts` hold a key, or a piece of one."""
    return [bool(spans) for spans in _found(parts)]


def has_key(text: str, names: Sequence[str] = ()) -> bool:
    """Whether a text holds a key."""
    return with_keys([SentText(text, names)])[0]


def _masked(text: str, spans: Iterable[_KeySpan]) -> str:
    clean, done = [], 0
    for span in sorted(spans):
        if span.end > done:
            if span.start >= done:
                clean.append(f"{text[done : span.start]}[REDACTED:{span.kind}]")
            done = span.end
    return "".join([*clean, text[done:]])


def _found(parts: Sequence[SentText]) -> list[set[_KeySpan]]:
    """The keys of each part, and the pieces of those that several hold."""
    found = [{*_own(part.text)} for part in parts]
    everyone = range(len(parts))
    speakers = {part.by for part in parts}
    orders = [[*everyone]]
    if len(speakers) > 1:
        orders += [[number for number in everyone if parts[number].by == by] for by in speakers]
    for order in orders:
        texts = [parts[number].text for number in order]
        for place, span in _across(texts, [found[number] for number in order]):
            found[order[place]].add(span)
    for number, part in enumerate(parts):
        for name in part.names:
            both = _across([name, part.text], [{*_own(name)}, found[number]], is_telling_name)
            found[number].update(span for place, span in both if place == 1)
    return found


def _own(text: str) -> Iterator[_KeySpan]:
    for key in keys_in(text):
        yield _KeySpan(key.start, key.end, key.kind)
    for match in _told().finditer(text):
        yield _KeySpan(*match.span(1), _NAMED)


def _across(
    texts: Sequence[str], own: Sequence[set[_KeySpan]], is_name: Callable[[str], bool] = is_telling
) -> list[tuple[int, _KeySpan]]:
    """Return the pieces of keys that texts in a row hold together, each with the place of its text.

    is_name: whether a text names the secret behind it.
    """
    if len(texts) < 2:
        return []
    found = [
        (place + further, span)
        for place in range(len(texts) - 1)
        for between in ("", "\n")
        for further, span in _begun(texts[place : place + 1 + SPAN], own[place], between)
    ]
    names = [len(text.strip()) <= _LONGEST_NAME and is_name(text.strip()) for text in texts]
    for place, text in enumerate(texts[1:], start=1):
        word = text.strip()
        if names[place - 1] and len(word) >= _SHORTEST_VALUE and len(word.split()) == 1:
            found.append((place, _KeySpan(0, len(text), _NAMED)))
        # "Password:", "one moment", "Fluffy2024".
        if any(names[max(0, place - SPAN) : place]):
            opaque = _compiled(OPAQUE_WORD).finditer(text)
            found += ((place, _KeySpan(*match.span(1), _NAMED)) for match in opaque)
    return found


def _begun(texts: Sequence[str], own: set[_KeySpan], between: str) -> Iterator[tuple[int, _KeySpan]]:
    """The pieces of keys that begin in the first of several texts, or at the beginning of the second.

    own: the keys of the first text alone.
    """
    bare = [text.strip() for text in texts]
    margins = [len(text) - len(text.lstrip()) for text in texts]
    starts = [0, *accumulate(len(text) + len(between) for text in bare)]
    ends = {span.end - margins[0] for span in own}
    for span in _own(between.join(bare)):
        if span.start > starts[1] + _LEAD:
            continue
        for place, text in enumerate(bare):
            start, end = max(span.start - starts[place], 0), min(span.end - starts[place], len(text))
            if end <= start:
                continue
            # A key that is whole in one text may only seem to go on in the next one: "sk-…", "Thanks".
            if place and len(bare[0]) in ends and span.start < starts[1] and not _is_rest(text[start:end]):
                break
            yield place, _KeySpan(start + margins[place], end + margins[place], span.kind)


def _is_rest(piece: str) -> bool:
    return len(piece) >= _SHORTEST_REST and any(map(str.isdigit, piece))


@cache
def _told() -> re.Pattern[str]:
    return re.compile(TOLD, re.IGNORECASE)


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    """Compiled at first use: most processes send nothing."""
    return re.compile(pattern, re.ASCII)
