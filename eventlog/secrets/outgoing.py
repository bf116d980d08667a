"""The gate for requests to providers: private memories and anything that looks like a key stay here.

The body of a request is an `Outgoing`, which only this module creates. Senders first ask which texts may be
sent, since a text does not show its context, such as a title that says "password", or the previous message.
"""

import hashlib
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

import msgspec

from memlog.eventlog.categories import PRIVATE_CATEGORIES
from memlog.eventlog.errors import LogError
from memlog.eventlog.files import disk, locks
from memlog.eventlog.files.file_io import closing_descriptor, open_regular_file, overwrite_all
from memlog.eventlog.log.layout import STORE_KEY
from memlog.eventlog.secrets.detection import (
    ends_like_secret,
    find_opaque_words,
    find_truncated_key,
    find_values_of_named_secrets,
    is_secret_name,
    rewrite_texts,
)
from memlog.eventlog.secrets.keys import find_keys_in_text

SPAN = 3
"""How many messages on each side may hold parts of a split key, since others may speak in between."""

_NAMED = "named-secret"
_PIECE = "unfinished-key"
_MASK = "[REDACTED:"

_LONGEST_NAME = 64
"""The most characters in a text that can count as the next text's name."""

_SHORTEST_VALUE = 4

_LEAD = 8
"""The most characters, such as quotes or emphasis, that may precede a value."""

_SHORTEST_REST = 8
"""The fewest characters at the start of a text that count as the rest of a key in the previous text."""


class Outgoing(msgspec.Struct, frozen=True):
    """The body of a request that may leave the process; see `encode_outgoing`."""

    content: bytes


def encode_outgoing(body: object) -> Outgoing:
    """Encode the body of a request, with every key in its text masked."""
    return Outgoing(msgspec.json.encode(rewrite_texts(body, mask_for_sending)))


class TextToCheck(NamedTuple):
    """A text to send, or one next to it. names: its title, topic and key. by: its speaker."""

    text: str
    names: Sequence[str] = ()
    by: str = ""


class _KeySpan(NamedTuple):
    start: int
    end: int
    kind: str


def is_private_category(category: str | None) -> bool:
    """Whether memories in this category must never leave the process."""
    return category is not None and category.strip().casefold() in PRIVATE_CATEGORIES


def mask_for_sending(text: str) -> str:
    """Replace each key in `text` with `[REDACTED:kind]`, under the stricter rules for sending."""
    return mask_parts([TextToCheck(text)])[0]


def mask_parts(parts: Sequence[TextToCheck]) -> list[str]:
    """Return the texts of `parts` with all keys masked, even those split across several parts."""
    found = _find_keys(parts)
    return [_mask_spans(part.text, spans) for part, spans in zip(parts, found, strict=True)]


def tell_which_parts_hold_keys(parts: Sequence[TextToCheck]) -> list[bool]:
    """Return, for each of `parts`, whether it contains a key or a piece of one."""
    return [bool(spans) for spans in _find_keys(parts)]


def text_has_key(text: str, names: Sequence[str] = ()) -> bool:
    """Whether `text` contains a key, taking its `names` into account."""
    return bool(list_kinds_of_keys(text, names))


def list_kinds_of_keys(text: str, names: Sequence[str] = ()) -> list[str]:
    """Return the kinds of keys in `text`, sorted, taking its `names` into account."""
    return sorted({span.kind for span in _find_keys([TextToCheck(text, names)])[0]})


def _mask_spans(text: str, spans: Iterable[_KeySpan]) -> str:
    clean, done = [], 0
    for span in sorted(spans):
        if span.end > done:
            if span.start >= done:
                clean.append(f"{text[done : span.start]}[REDACTED:{span.kind}]")
            done = span.end
    return "".join([*clean, text[done:]])


def _find_keys(parts: Sequence[TextToCheck]) -> list[set[_KeySpan]]:
    """Return the keys in each part, including its pieces of keys that are split across parts."""
    found = [{*_find_whole_keys(part.text)} for part in parts]
    everyone = range(len(parts))
    speakers = {part.by for part in parts}
    orders = [[*everyone]]
    if len(speakers) > 1:
        orders += [[number for number in everyone if parts[number].by == by] for by in speakers]
    for order in orders:
        texts = [parts[number].text for number in order]
        for place, span in _find_split_keys(texts, [found[number] for number in order]):
            found[order[place]].add(span)
    for number, part in enumerate(parts):
        for name in part.names:
            both = _find_split_keys(
                [name, part.text], [{*_find_whole_keys(name)}, found[number]], is_secret_name
            )
            found[number].update(span for place, span in both if place == 1)
    return found


def _find_whole_keys(text: str) -> Iterator[_KeySpan]:
    whole = [*find_keys_in_text(text)]
    yield from (_KeySpan(key.start, key.end, key.kind) for key in whole)
    yield from (_KeySpan(*place, _NAMED) for place in find_values_of_named_secrets(text))
    place = find_truncated_key(text)
    if place and not any(key.end > place[0] for key in whole):
        yield _KeySpan(*place, _PIECE)


def _find_split_keys(
    texts: Sequence[str], own: Sequence[set[_KeySpan]], is_name: Callable[[str], bool] = ends_like_secret
) -> list[tuple[int, _KeySpan]]:
    """Return the pieces of keys that are split across consecutive texts, each with its text's index.

    is_name: whether a text names the secret that follows it.
    """
    if len(texts) < 2:
        return []
    found = [
        (place + further, span)
        for place in range(len(texts) - 1)
        for between in ("", "\n")
        for further, span in _find_begun_keys(texts[place : place + 1 + SPAN], own[place], between)
    ]
    bare = [text.strip() for text in texts]
    names = [len(text) <= _LONGEST_NAME and is_name(text) for text in bare]
    for place, word in enumerate(bare):
        before = names[max(0, place - SPAN) : place]
        is_whole = len(word) >= _SHORTEST_VALUE and len(word.split()) == 1 and not word.startswith(_MASK)
        if before and before[-1] and is_whole:
            found.append((place, _KeySpan(0, len(texts[place]), _NAMED)))
        # "Password:", "one moment", "Fluffy2024". "Fluffy2024", "is my password". "sk-Ab1…", "and Cd2…".
        is_named_behind = place + 1 < len(bare) and names[place + 1] and not bare[place + 1].endswith("?")
        goes_on = place > 0 and any(span.kind == _PIECE for span in own[place - 1])
        if any(before) or is_named_behind or goes_on:
            found += ((place, _KeySpan(*span, _NAMED)) for span in find_opaque_words(texts[place]))
    return found


def _find_begun_keys(
    texts: Sequence[str], own: set[_KeySpan], between: str
) -> Iterator[tuple[int, _KeySpan]]:
    """Yield the pieces of keys that start in the first of several texts, or at the start of the second.

    own: the keys found in the first text by itself.
    """
    bare = [text.strip() for text in texts]
    margins = [len(text) - len(text.lstrip()) for text in texts]
    starts = [0, *accumulate(len(text) + len(between) for text in bare)]
    ends = {span.end - margins[0] for span in own if span.kind != _PIECE}
    for span in _find_whole_keys(between.join(bare)):
        if span.start > starts[1] + _LEAD:
            continue
        for place, text in enumerate(bare):
            start, end = max(span.start - starts[place], 0), min(span.end - starts[place], len(text))
            if end <= start:
                continue
            # A key that is complete in one text may only seem to continue: "sk-…", "Thanks".
            if (
                place
                and len(bare[0]) in ends
                and span.start < starts[1]
                and not _may_end_key(text[start:end])
            ):
                break
            yield place, _KeySpan(start + margins[place], end + margins[place], span.kind)


def _may_end_key(piece: str) -> bool:
    return len(piece) >= _SHORTEST_REST and any(map(str.isdigit, piece))


# A hash in the log outlives its text, and without a key anybody could guess the text. The key stays in its
# copy of the store. If it is lost, a new one is created, and earlier hashes match nothing.

_BYTES = 32
_LINE = re.compile(rb"[0-9a-f]{%d}\n" % (2 * _BYTES))
_HASH_BYTES = 16


def load_or_create_store_key(store: Path) -> bytes:
    """Return the store's key, creating it if missing. Raises Busy; LogError if it is not accessible."""
    try:
        return _read_key(store / STORE_KEY) or _create_key(store)
    except OSError as error:
        raise LogError(
            f"{STORE_KEY}: {error.strerror or error}", hint="make it readable, and its folder writable"
        ) from error


def compute_keyed_hash(key: bytes, text: str) -> str:
    """Return a 128-bit keyed hash of `text` in hex; runs of white space count as one space."""
    folded = " ".join(text.split()).encode()
    return hashlib.blake2b(folded, key=key, digest_size=_HASH_BYTES).hexdigest()


def _read_key(path: Path) -> bytes | None:
    """Read a key file; return None if it is missing, or incomplete because its writer was killed."""
    try:
        with closing_descriptor(open_regular_file(path, disk.READ)) as fd:
            line = disk.read(fd, 2 * _BYTES + 2, 0)
    except FileNotFoundError:
        return None
    return bytes.fromhex(line.decode()) if _LINE.fullmatch(line) else None


def _create_key(store: Path) -> bytes:
    path = store / STORE_KEY
    with closing_descriptor(disk.open(store, disk.FOLDER, follow=True)) as folder:
        locks.lock_file(folder, store.name, locks.TIMEOUT)
        # Another process may have been faster.
        if (known := _read_key(path)) is not None:
            return known
        key = os.urandom(_BYTES)
        with closing_descriptor(open_regular_file(path, disk.WRITE | disk.CREATE)) as fd:
            overwrite_all(fd, f"{key.hex()}\n".encode(), 0)
            disk.sync_data(fd)
        return key
