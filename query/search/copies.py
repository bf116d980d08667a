"""The cut of a side: the best of what it found, where one candidate stands for all copies of a text.

Copies have the same words and are of one kind, role and speaker. Without this, a question that was asked 45
times fills the candidates, and its answer is none of them.
"""

import re
from collections.abc import Callable, Collection, Hashable, Iterable
from typing import NamedTuple

from memlog.eventlog.text import nfc
from memlog.projector.rows import as_list
from memlog.projector.sqlite import Connection, required_row
from memlog.query.search.candidates import Candidate, Lists, Owner, Ref, in_order

_LONGEST = 100_000
"""Characters of a text that may have copies: to fold a longer one takes more than a query."""

_ENDS = ".,;:!?…。、，；：！？؟،؛।"
_BEHIND_LETTERS = re.compile(rf"(?<=[^\W\d_])[{_ENDS}]+(?=\s)")
_OPENS = "¿¡"

_TEXTS: dict[Owner, tuple[str, str, str]] = {
    "message": ("messages", "id", "o.role, o.name, o.content"),
    "memory": (
        "memories",
        "memory_id",
        "iif(instr(o.content, o.title) = 1, NULL, o.title), o.topic, o.content",
    ),
    "summary": ("summaries", "id", "NULL, NULL, o.content"),
    "daily_event": ("daily_events", "id", "NULL, NULL, o.summary"),
    "document": ("documents", "document_id", "NULL, NULL, o.content"),
}
"""The table `o` of each owner, its key, and what its copies have in common, the text last.

The title of a memory tells what the content is of, unless it is the beginning of the content. A fact is the
value of a key, and has no copies.
"""

_PASSAGES = (
    "SELECT a.key, NULL, NULL, o.content FROM json_each(?) a JOIN doc_chunks o ON o.chunk_no = a.value"
)


class Fetched(NamedTuple):
    """Candidates by falling score, perhaps several with one `ref`; whether there are no more."""

    candidates: list[Candidate]
    is_all: bool


def best(db: Connection, fetch: Callable[[int], Fetched], depth: int) -> list[Candidate]:
    """The first `depth` distinct texts, each by its newest copy with the best of all scores.

    Fetches past the cut until the score changes, and orders equal scores: the same question on the same log
    gives the same answer.
    """
    limit = depth + depth // 4 + 1
    says: dict[Ref, Hashable] = {}
    while True:
        candidates, is_all = fetch(limit)
        first: dict[Ref, Candidate] = {}
        for candidate in candidates:
            first.setdefault(candidate.ref, candidate)
        says |= what_they_say(db, [each for ref, each in first.items() if ref not in says])
        found = _newest(each._replace(says=says[ref]) for ref, each in first.items())
        scores = sorted(map(_score, found), reverse=True)
        if is_all or (len(scores) > depth and _score(candidates[-1]) < scores[depth - 1]):
            break
        limit *= 4
    return sorted(found, key=_score, reverse=True)[:depth]


def _newest(candidates: Iterable[Candidate]) -> list[Candidate]:
    """One candidate for each text, in their order."""
    by_text: dict[Hashable, Candidate] = {}
    for each in in_order(candidates):
        newest = by_text.setdefault(each.says, each)
        if newest is not each:
            score = max(_score(newest), _score(each))
            by_text[each.says] = newest._replace(score=score, copies=newest.copies + each.copies)
    return [*by_text.values()]


def _score(candidate: Candidate) -> float:
    return 0.0 if candidate.score is None else candidate.score


def same_in_all(sides: dict[str, Lists]) -> dict[str, Lists]:
    """`sides`, with one candidate for each text in all of them: one side may not know the newest copy."""
    newest: dict[Hashable, Candidate] = {}
    copies: dict[Hashable, int] = {}
    for each in in_order(each for lists in sides.values() for rows in lists for each in rows):
        newest.setdefault(each.says, each)
        copies[each.says] = max(copies.get(each.says, 1), each.copies)

    def shown(each: Candidate) -> Candidate:
        known = newest[each.says]
        # Of one message, each side knows its own passage.
        own = each if each.ref == known.ref else known._replace(score=each.score)
        return own._replace(copies=copies[each.says])

    return {side: [[*map(shown, rows)] for rows in lists] for side, lists in sides.items()}


def what_they_say(db: Connection, candidates: Collection[Candidate]) -> dict[Ref, Hashable]:
    """By candidate what its copies have in common; of a fact and a long text, what no other has."""
    by_query: dict[str, list[tuple[Candidate, object]]] = {}
    for each in candidates:
        if each.kind == "document":
            by_query.setdefault(_PASSAGES, []).append((each, each.chunk_no))
        elif each.owner in _TEXTS:
            by_query.setdefault(_query(*_TEXTS[each.owner]), []).append((each, each.key))
    says: dict[Ref, Hashable] = {each.ref: each.ref for each in candidates}
    for sql, asked in by_query.items():
        for place, role, speaker, text in db.execute(sql, (as_list([key for _, key in asked]),)):
            candidate, _ = asked[place]
            if len(text) <= _LONGEST:
                says[candidate.ref] = (candidate.kind, candidate.owner, role, speaker, words(text))
    return says


def what_it_says(db: Connection, message_no: int) -> Hashable:
    """The same of one message."""
    rows = db.execute("SELECT role, name, content FROM messages WHERE message_no = ?", (message_no,))
    role, speaker, text = required_row(rows)
    return ("message", "message", role, speaker, words(text)) if len(text) <= _LONGEST else message_no


def _query(table: str, key: str, columns: str) -> str:
    # CROSS JOIN: each is looked up, never all read.
    return (
        f"SELECT a.key, {columns} FROM json_each(?) a CROSS JOIN {table} o"
        f" WHERE o.stream = a.value ->> 0 AND o.{key} = a.value ->> 1"
    )


def words(text: str) -> str:
    """The case-folded words of `text`, without punctuation between them and at the end.

    Signs within a word and behind a number stay: they may be code, or part of the number.
    """
    said = " ".join(_BEHIND_LETTERS.sub("", nfc(text).casefold()).split())
    return said.lstrip(_OPENS).rstrip(f"{_ENDS} ") or said
