"""Deduplicates search candidates: a single candidate represents all copies of a text.

Copies have the same words, kind, role and speaker. Without this, a question sent 45 times would fill the
candidates and crowd out its answer.
"""

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

from memlog.eventlog.text import normalise_to_nfc
from memlog.projector.sqlite import Connection, to_json_list
from memlog.query.documents import FILE_PATH
from memlog.query.search.hits import NOWHERE, Candidate, Lists, Place, Ref, sort_candidates_with_equal_scores


def drop_copies_in_nested_sources(db: Connection, sides: Mapping[str, Lists]) -> dict[str, Lists]:
    """Keep only one document per file, memory files included."""
    outer = _copies_in_outer_sources(
        db, [each for lists in sides.values() for rows in lists for each in rows]
    )
    return {
        side: [[each for each in rows if each.ref not in outer] for rows in lists]
        for side, lists in sides.items()
    }


def _copies_in_outer_sources(db: Connection, candidates: Iterable[Candidate]) -> set[Ref]:
    """Return the documents that share a file with another candidate whose source has a longer root."""
    refs = {each.key[1]: each.ref for each in candidates if each.owner == "document"}
    if len(refs) < 2:
        return set()
    rows = db.execute(
        f"SELECT {FILE_PATH} AS path, d.document_id, s.writer, d.version"
        " FROM documents d JOIN sources s USING (source_id)"
        " WHERE s.root IS NOT NULL AND d.document_id IN (SELECT value FROM json_each(?))"
        " ORDER BY path, length(s.root) DESC, d.document_id",
        (to_json_list(sorted(refs)),),
    )
    twins: set[Ref] = set()
    for _, group in groupby(rows.fetchall(), itemgetter(0)):
        (_, _, writer, version), *others = group
        # The same path in a source that another copy of the store registered is another file.
        twins |= {refs[name] for _, name, by, other in others if by == writer or other == version}
    return twins


_LONGEST = 100_000
"""Texts with more characters than this have no copies: folding one takes longer than a query."""

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
"""For each passage owner, the query for the columns that copies share, with the text last.

The title of a memory counts unless the content begins with it. A fact is a key's value, and has no copies.
"""


class Fetched(NamedTuple):
    """Candidates by descending score, perhaps several per `ref`. is_all: whether there are no more."""

    candidates: list[Candidate]
    is_all: bool


def best_distinct_texts(db: Connection, fetch: Callable[[int], Fetched], depth: int) -> list[Candidate]:
    """Return the `depth` best distinct texts, each as its newest copy with the best score of any copy.

    To be deterministic, this fetches past the cut until the score changes, and sorts ties.
    """
    limit = depth + depth // 4 + 1
    text: dict[Ref, TextKey] = {}
    while True:
        candidates, is_all = fetch(limit)
        first: dict[Ref, Candidate] = {}
        for candidate in candidates:
            first.setdefault(candidate.ref, candidate)
        # Before copies are merged: of a file in nested folders, the innermost document stays.
        outer = _copies_in_outer_sources(db, first.values())
        first = {ref: each for ref, each in first.items() if ref not in outer}
        text |= find_text_keys(db, (each for ref, each in first.items() if ref not in text))
        scores: dict[Hashable, float] = {}
        for ref, candidate in first.items():
            text_key = text[ref].text_key
            scores[text_key] = max(candidate.score or 0.0, scores.get(text_key, -math.inf))
        if is_all:
            break
        if len(scores) > depth and (candidates[-1].score or 0.0) < sorted(scores.values())[-depth]:
            break
        limit *= 4
    copies = Counter(text[ref].text_key for ref in first)
    newest: dict[Hashable, Candidate] = {}
    for each in sort_candidates_with_equal_scores(first.values()):
        text_key, place = text[each.ref]
        known = newest.setdefault(text_key, each)
        if known.ts == each.ts and place > text[known.ref].place:
            newest[text_key] = each
    kept = sorted(newest.items(), key=lambda item: scores[item[0]], reverse=True)[:depth]
    return [
        each._replace(
            score=scores[text_key], text_key=text_key, place=text[each.ref].place, copies=copies[text_key]
        )
        for text_key, each in kept
    ]


def represent_copies_alike(sides: dict[str, Lists]) -> dict[str, Lists]:
    """Use the same candidate for a text on all sides, since one side may not have seen its newest copy."""
    newest: dict[Hashable, Candidate] = {}
    copies: dict[Hashable, int] = {}
    ordered = sort_candidates_with_equal_scores(
        each for lists in sides.values() for rows in lists for each in rows
    )
    for each in sorted(ordered, key=lambda each: (each.ts, each.place), reverse=True):
        newest.setdefault(each.text_key, each)
        copies[each.text_key] = max(copies.get(each.text_key, 1), each.copies)

    def to_shown_candidate(each: Candidate) -> Candidate:
        known = newest[each.text_key]
        # Each side found its own passage of a message.
        own = each if each.ref == known.ref else known._replace(score=each.score)
        return own._replace(copies=copies[each.text_key])

    return {side: [[*map(to_shown_candidate, rows)] for rows in lists] for side, lists in sides.items()}


class TextKey(NamedTuple):
    """A candidate's `text_key` and `place`."""

    text_key: Hashable
    place: Place = NOWHERE


def find_text_keys(db: Connection, candidates: Iterable[Candidate]) -> dict[Ref, TextKey]:
    """Return the key each candidate shares with its copies; a fact or very long text has its own."""
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
        for number, role, speaker, text, *place in db.execute(sql, (to_json_list([*by_number]),)):
            if len(text) <= _LONGEST:
                each = by_number[number]
                of_text = folded.get(text) or folded.setdefault(text, normalise_words(text))
                text_key = (each.kind, each.owner, role, speaker, of_text)
                own_texts[each.ref] = TextKey(text_key, tuple(place) or NOWHERE)
    return own_texts


def normalise_words(text: str) -> str:
    """Return the case-folded words of `text` without trailing punctuation.

    Other symbols are kept, since they may be part of code.
    """
    folded = [word.rstrip(_ENDS) or word for word in normalise_to_nfc(text).casefold().split()]
    joined = " ".join(folded)
    return joined.lstrip(_OPENS).rstrip(f"{_ENDS} ") or joined
