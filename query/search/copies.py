"""Selects the best candidates of one side of a search; one candidate represents all copies of a text.

Copies have the same words and are of one kind, role and speaker. Without this, a question that was sent 45
times fills the candidates, and its answer is none of them.
"""

import math
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from itertools import groupby
from typing import NamedTuple

from memlog.eventlog.text import nfc
from memlog.projector.sqlite import Connection, as_list
from memlog.query.documents import FILE_PATH
from memlog.query.search.hits import NOWHERE, Candidate, Lists, Place, Ref, in_order


class _Twin(NamedTuple):
    """A document, and what tells whether another one is of the same file.

    writer: of the copy of the store that registered its source: a path of another machine is another file.
    """

    path: str
    document_id: str
    writer: str
    version: str


def without_twins(db: Connection, sides: Mapping[str, Lists]) -> dict[str, Lists]:
    """Return the candidates of a search, with one document for each file.

    Notes of a workspace are memories, too.
    """
    every = (each for lists in sides.values() for rows in lists for each in rows)
    outer = outer_twins(db, {each.key[1] for each in every if each.owner == "document"})
    return {
        side: [[each for each in rows if not (outer and is_one_of(each, outer))] for rows in lists]
        for side, lists in sides.items()
    }


def is_one_of(candidate: Candidate, document_ids: Collection[str]) -> bool:
    """Whether a candidate is of one of these documents."""
    return candidate.owner == "document" and candidate.key[1] in document_ids


def outer_twins(db: Connection, document_ids: Collection[str]) -> set[str]:
    """Return the documents whose file another one of them has, too, in a source further in."""
    if len(document_ids) < 2:
        return set()
    rows = db.execute(
        f"SELECT {FILE_PATH} AS path, d.document_id, s.writer, d.version"
        " FROM documents d JOIN sources s USING (source_id)"
        " WHERE s.root IS NOT NULL AND d.document_id IN (SELECT value FROM json_each(?))"
        " ORDER BY path, length(s.root) DESC, d.document_id",
        (as_list(sorted(document_ids)),),
    )
    twins: set[str] = set()
    for _, group in groupby(map(_Twin._make, rows.fetchall()), lambda twin: twin.path):
        innermost, *others = group
        twins |= {
            each.document_id
            for each in others
            if each.writer == innermost.writer or each.version == innermost.version
        }
    return twins


_LONGEST = 100_000
"""Characters of a text that may have copies: to fold a longer one takes more than a query."""

_ENDS = ".,;:!?…。、，；：！？؟،؛।"
_OPENS = "¿¡"

_AMONG = "WHERE {} IN (SELECT value FROM json_each(?))"
_MESSAGES = (
    "SELECT message_no, role, name, content, day, number, writer, offset"
    f" FROM messages {_AMONG.format('message_no')}"
)
_PASSAGES = f"SELECT chunk_no, NULL, NULL, content FROM doc_chunks {_AMONG.format('chunk_no')}"
_OWN_KEY = "o.stream = c.stream AND o.id = c"
_WHOLE_TEXTS = {
    owner: f"SELECT c.chunk_no, {columns} FROM memory_chunks c JOIN {table} o ON {condition}"
    f" {_AMONG.format('c.chunk_no')}"
    for owner, table, condition, columns in (
        (
            *("memory", "memories", "o.memory_id = c.memory_id"),
            "iif(instr(o.content, o.title) = 1, NULL, o.title), o.topic, o.content",
        ),
        ("summary", "summaries", f"{_OWN_KEY}.summary_id", "NULL, NULL, o.content"),
        ("daily_event", "daily_events", f"{_OWN_KEY}.daily_event_id", "NULL, NULL, o.summary"),
        ("document", "documents", "o.document_id = c.document_id", "NULL, NULL, o.content"),
    )
}
"""By owner of a passage what its copies have in common, the text last.

The title of a memory tells what the content is of, unless it is the beginning of the content. A fact is the
value of a key, and has no copies.
"""


class Fetched(NamedTuple):
    """Candidates by falling score, perhaps several with one `ref`; whether there are no more."""

    candidates: list[Candidate]
    is_all: bool


def best(db: Connection, fetch: Callable[[int], Fetched], depth: int) -> list[Candidate]:
    """Return the first `depth` distinct texts, each by its newest copy with the best of all scores.

    Fetches past the cut until the score changes, and orders equal scores: the same question on the same log
    gives the same answer.
    """
    limit = depth + depth // 4 + 1
    text: dict[Ref, TextKey] = {}
    while True:
        candidates, is_all = fetch(limit)
        first: dict[Ref, Candidate] = {}
        for candidate in candidates:
            first.setdefault(candidate.ref, candidate)
        # Of one file of nested folders, the innermost stays, before its copies are taken for one.
        outer = outer_twins(db, {each.key[1] for each in first.values() if each.owner == "document"})
        first = {ref: each for ref, each in first.items() if not is_one_of(each, outer)}
        text |= text_keys(db, (each for ref, each in first.items() if ref not in text))
        scores: dict[Hashable, float] = {}
        for ref, candidate in first.items():
            says = text[ref].says
            scores[says] = max(_score(candidate), scores.get(says, -math.inf))
        if is_all or (len(scores) > depth and _score(candidates[-1]) < sorted(scores.values())[-depth]):
            break
        limit *= 4
    copies = Counter(text[ref].says for ref in first)
    newest: dict[Hashable, Candidate] = {}
    for each in in_order(first.values()):
        says, place = text[each.ref]
        known = newest.setdefault(says, each)
        if known.ts == each.ts and place > text[known.ref].place:
            newest[says] = each
    kept = sorted(newest.items(), key=lambda item: scores[item[0]], reverse=True)[:depth]
    return [
        each._replace(score=scores[says], says=says, place=text[each.ref].place, copies=copies[says])
        for says, each in kept
    ]


def _newest_first(candidates: Iterable[Candidate]) -> list[Candidate]:
    return sorted(in_order(candidates), key=lambda each: (each.ts, each.place), reverse=True)


def _score(candidate: Candidate) -> float:
    return 0.0 if candidate.score is None else candidate.score


def same_in_all(sides: dict[str, Lists]) -> dict[str, Lists]:
    """Return `sides`, with one candidate for each text in all of them.

    One side may not know the newest copy.
    """
    newest: dict[Hashable, Candidate] = {}
    copies: dict[Hashable, int] = {}
    for each in _newest_first(each for lists in sides.values() for rows in lists for each in rows):
        newest.setdefault(each.says, each)
        copies[each.says] = max(copies.get(each.says, 1), each.copies)

    def shown(each: Candidate) -> Candidate:
        known = newest[each.says]
        # Of one message, each side knows its own passage.
        own = each if each.ref == known.ref else known._replace(score=each.score)
        return own._replace(copies=copies[each.says])

    return {side: [[*map(shown, rows)] for rows in lists] for side, lists in sides.items()}


class TextKey(NamedTuple):
    """`says` and `place` of a candidate."""

    says: Hashable
    place: Place = NOWHERE


def text_keys(db: Connection, candidates: Iterable[Candidate]) -> dict[Ref, TextKey]:
    """Return, by candidate, what its copies have in common; a fact or a long text has no copies."""
    own_texts: dict[Ref, TextKey] = {}
    by_query: dict[str, dict[object, Candidate]] = {}
    for each in candidates:
        own_texts[each.ref] = TextKey(each.ref)
        if each.message_no is not None:
            by_query.setdefault(_MESSAGES, {})[each.message_no] = each
        elif each.owner != "fact":
            sql = _PASSAGES if each.kind == "document" else _WHOLE_TEXTS[each.owner]
            by_query.setdefault(sql, {})[each.chunk_no] = each
    folded: dict[str, str] = {}
    for sql, by_number in by_query.items():
        for number, role, speaker, text, *place in db.execute(sql, (as_list([*by_number]),)):
            if len(text) <= _LONGEST:
                each = by_number[number]
                of_text = folded.get(text) or folded.setdefault(text, words(text))
                says = (each.kind, each.owner, role, speaker, of_text)
                own_texts[each.ref] = TextKey(says, tuple(place) or NOWHERE)
    return own_texts


def words(text: str) -> str:
    """Return the case-folded words of `text`, without the punctuation behind them.

    Signs within a word and before it stay, and signs that stand alone: they may be code.
    """
    folded = [word.rstrip(_ENDS) or word for word in nfc(text).casefold().split()]
    joined = " ".join(folded)
    return joined.lstrip(_OPENS).rstrip(f"{_ENDS} ") or joined
