"""What a ranking knows of a candidate beside how well it matches: who said it, how long it is, and more."""

import json
import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, NamedTuple

from memlog.projector.sqlite import Connection
from memlog.query.candidates import Candidate, Name

_LONG = 240
_LENGTH_WEIGHT = 0.2
_SPEAKER_WEIGHT = 0.3
_ASKING_WEIGHT = 0.1
_ASKING = frozenset("?\uff1f\u061f")
_WORD = re.compile(r"[^\W_]+")


class Traits(NamedTuple):
    """What a candidate is like.

    length: of its text, or of its best passage's, in code points.
    closing: its last character that is no space.
    vividness: salience × importance of a memory; None of all else.
    """

    speaker: str | None
    length: int
    closing: str
    vividness: float | None

    def prior(self, asked: frozenset[str]) -> float:
        """How much more likely than others it is to answer any question, where scores go from 0 to 1.

        asked: the words of the question, in lower case.
        """
        length = _LENGTH_WEIGHT * min(self.length, _LONG) / _LONG
        named = (
            _SPEAKER_WEIGHT if self.speaker and not asked.isdisjoint(_words_of_speaker(self.speaker)) else 0.0
        )
        return length + named - (_ASKING_WEIGHT if self.closing in _ASKING else 0.0)

    @property
    def factor(self) -> float:
        """What a memory's score is multiplied by: 0.9 for one that has faded, 1 for a new one of importance
        0.5, 1.1 for the most important."""
        return 1.0 if self.vividness is None else 0.9 + 0.2 * self.vividness


def words_of(text: str) -> frozenset[str]:
    """The words of `text` in lower case."""
    return frozenset(_WORD.findall(text.casefold()))


# A few people say most of what is found; of questions none is kept.
_words_of_speaker = lru_cache(maxsize=256)(words_of)

_TEXT = "length(content), substr(rtrim(content), -1)"
_MESSAGES = f"SELECT message_no, name, {_TEXT}, NULL FROM messages WHERE message_no IN"
_MEMORIES = (
    f"SELECT chunk_no, NULL, {_TEXT.replace('content', 'c.content')}, y.salience * y.importance"
    " FROM memory_chunks c LEFT JOIN memories y ON y.memory_id = c.memory_id WHERE chunk_no IN"
)
_DOCUMENTS = f"SELECT chunk_no, NULL, {_TEXT}, NULL FROM doc_chunks WHERE chunk_no IN"


def traits_of(db: Connection, candidates: Iterable[Candidate]) -> dict[Name, Traits]:
    """What each candidate is like."""
    sources: dict[str, dict[int, Name]] = {_MESSAGES: {}, _MEMORIES: {}, _DOCUMENTS: {}}
    for found in candidates:
        if found.message_no is not None:
            sources[_MESSAGES][found.message_no] = found.name
        elif found.chunk_no is not None:
            sources[_DOCUMENTS if found.kind == "document" else _MEMORIES][found.chunk_no] = found.name
    return {
        names[number]: Traits(*values)
        for sql, names in sources.items()
        if names
        for number, *values in _rows(db, sql, names)
    }


def _rows(db: Connection, sql: str, numbers: Iterable[int]) -> Iterable[tuple[Any, ...]]:
    rows: Iterable[tuple[Any, ...]] = db.execute(
        f"{sql} (SELECT value FROM json_each(?))", (json.dumps(list(numbers)),)
    ).fetchall()
    return rows
