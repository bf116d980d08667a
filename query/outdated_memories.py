"""Finds memories that a later one may have changed: "lives in Helsinki", then "lives in Oulu now".

The rules are heuristic, so nothing is dropped: the newer memory moves up and the older one is marked. Of the
21 pairs found in labelled stores and LoCoMo, 17 were right; LoCoMo has hardly any changes.
"""

import re
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import NamedTuple

from memlog.projector.passages import index, vectors
from memlog.projector.sqlite import Connection, to_json_list
from memlog.projector.text import language_files, phrases
from memlog.query.context.floor import weight_of_rarity
from memlog.query.filters import Filters
from memlog.query.search import fulltext, nearest
from memlog.query.search.hits import Hit
from memlog.query.search.request import parse_query

_ENDING = 2
"""The most final letters in which two forms of a word may differ."""


def are_word_forms(one: str, other: str) -> bool:
    """Whether two words look like forms of the same word."""
    shorter = min(len(one), len(other))
    return one == other or (shorter > _ENDING and one[: shorter - _ENDING] == other[: shorter - _ENDING])


_LEAST_COVER = 0.33
"""The least share of the newer text's words found in the older one, weighted by rarity, times √(number of
words). With it, all 15 marked pairs of fixtures/told are right."""

_READ = 1000
_FOUND = 4
"""The number of nearest memories to read, since a memory may be found more than once."""

_MEMORIES = Filters(kinds=frozenset(["memory"]))


class _DatedText(NamedTuple):
    """The columns used to compare memories. when: the time of the memory's last change."""

    memory_id: str
    content: str
    topic: str | None
    category: str
    when: str


def put_newer_first_and_mark_older(db: Connection, hits: Sequence[Hit]) -> list[Hit]:
    """Move each memory ahead of an older one it may change, and set `changed_by` on the older one.

    Hits that trade places also trade scores, so scores stay in descending order.

    Raises:
        sqlite3.Error: the read model cannot be read.
    """
    newer = OutdatedMemoryFinder(db).map_outdated_to_newer_memories(
        [hit.id for hit in hits if hit.kind == "memory"]
    )
    for hit in hits:
        hit.changed_by = newer.get(hit.id)
    return swap_changed_with_newer(hits)


def swap_changed_with_newer(hits: Sequence[Hit]) -> list[Hit]:
    """Swap each hit, including its score, with its `changed_by` hit if that comes later."""
    ordered = list(hits)
    for hit in hits:
        places = {each.id: place for place, each in enumerate(ordered)}
        first, second = places[hit.id], places.get(hit.changed_by or "", -1)
        if first < second:
            ordered[first], ordered[second] = ordered[second], ordered[first]
            one, other = ordered[first], ordered[second]
            one.score, other.score = other.score, one.score
    return ordered


class OutdatedMemoryFinder:
    """Finds changes between memories in one state of the read model, caching every lookup."""

    def __init__(self, db: Connection) -> None:
        self._db = db
        self._says_change = cache(text_says_that_something_changed)
        self._nearest = cache(partial(_nearest_memory, db))
        self._may_change = cache(partial(_may_newer_change_older, db, self._nearest))

    def map_outdated_to_newer_memories(self, memory_ids: Sequence[str]) -> dict[str, str]:
        """Map each of `memory_ids` that may be outdated to the newer memory, which is also among them.

        The newer one must say that something changed. Both must have the same topic (or category, if either
        has no topic), the older one must contain enough of the newer one's words, and each must be the
        other's nearest memory.
        """
        rows = self._db.execute(
            "SELECT memory_id, content, topic, category, updated_at FROM memories"
            " WHERE archived_at IS NULL AND memory_id IN (SELECT value FROM json_each(?))",
            (to_json_list([*memory_ids]),),
        ).fetchall()
        by_id = {row[0]: _DatedText(*row) for row in rows}
        found = {}
        for newer in by_id.values():
            if self._says_change(newer.content):
                older = by_id.get(self._nearest(newer) or "")
                if older is not None and older.when < newer.when and self._may_change(newer, older):
                    found[older.memory_id] = newer.memory_id
        return found


def text_says_that_something_changed(text: str) -> bool:
    """Whether `text` says that something changed: "no longer", "moved".

    "now" counts too, unless it is about something with several values: "now likes tennis".
    """
    return _text_has_phrase_of_table("cues", text) or (
        _text_has_phrase_of_table("present", text) and not _text_has_phrase_of_table("several", text)
    )


def _text_has_phrase_of_table(member: str, text: str) -> bool:
    words = phrases.WORD.findall(phrases.put_spaces_around_chinese(phrases.fold_phrase(text[:_READ])))
    known = _load_phrases(member)
    return any(known.length_of_phrase_at(words, place) for place in known.possible_places(words))


def _may_newer_change_older(
    db: Connection, nearest: Callable[[_DatedText], str | None], newer: _DatedText, older: _DatedText
) -> bool:
    if newer.topic is not None and older.topic is not None:
        if phrases.fold_phrase(newer.topic) != phrases.fold_phrase(older.topic):
            return False
    elif newer.category != older.category:
        return False
    words, subject = parse_query(_strip_quotes(newer.content)), _search_words(older.content)[:1]
    # "Nina's husband" is not Nina. "Now in the drawer" may be the keys: without a cue, the subject recurs.
    is_of_another = any(
        re.search(rf"\b{re.escape(word)}['’]s\b", newer.content, re.IGNORECASE) for word in subject
    )
    has_subject = any(are_word_forms(word, other) for word in subject for other in words.words)
    return (
        does_newer_keep_health_words(newer.content, older.content)
        and not is_of_another
        and (has_subject or _text_has_phrase_of_table("cues", newer.content))
        and _weighted_cover(db, words.terms, older.memory_id) >= _LEAST_COVER
        and nearest(older) == newer.memory_id
    )


def does_newer_keep_health_words(newer: str, older: str) -> bool:
    """Whether `newer` repeats every word, numbers aside, of an `older` text about health.

    If it doesn't, "allergic" may mean another substance. True if `older` is not about health.
    """
    if not phrases.reasons_to_always_tell_text(older) & phrases.Holds.HEALTH:
        return True
    words = [word for word in _search_words(older) if not re.search(r"\d", word)]
    known = _search_words(newer)
    return all(any(are_word_forms(word, other) for other in known) for word in words)


@cache
def _load_phrases(member: str) -> phrases.Phrases:
    tables = (
        getattr(each.changes, member) for each in language_files.load_languages_with_table("changes").values()
    )
    return phrases.Phrases(
        phrase
        for table in tables
        for phrase in language_files.split_phrases(phrases.put_spaces_around_chinese(table))
    )


def _search_words(text: str) -> tuple[str, ...]:
    return parse_query(_strip_quotes(text)).words


def _strip_quotes(text: str) -> str:
    return text[:_READ].replace('"', " ")


def _weighted_cover(db: Connection, terms: Sequence[str], older: str) -> float:
    """Return the share of `terms` in the memory `older`, weighted by rarity, times √(number of terms)."""
    (rows,) = db.execute("SELECT count(*) FROM memory_chunks_fts").fetchone()
    whole = had = 0.0
    for term in terms:
        count, is_there = db.execute(
            "SELECT count(*), coalesce(max(c.memory_id = ?2), 0) FROM memory_chunks_fts f"
            " CROSS JOIN memory_chunks c WHERE memory_chunks_fts MATCH ?1 AND c.chunk_no = f.rowid",
            (term, older),
        ).fetchone()
        weight = weight_of_rarity(rows, count)
        whole += weight
        had += weight if is_there else 0.0
    return had / whole * len(terms) ** 0.5 if whole else 0.0


def _nearest_memory(db: Connection, memory: _DatedText) -> str | None:
    """Return the id of the nearest other memory, by meaning or else by words, or None."""
    found = _nearest_by_meaning(db, memory) or _nearest_by_words(db, memory)
    return next((name for name in found if name != memory.memory_id), None)


def _nearest_by_meaning(db: Connection, memory: _DatedText) -> list[str]:
    for of in reversed(vectors.SETS):
        if not vectors.list_vector_tables(db, of) or (
            of is vectors.FIRST and not nearest.is_english(memory.content)
        ):
            continue
        shelf = index.passage_tables(of)[0]
        row = db.execute(
            f"SELECT v.embedding FROM {shelf.chunks} c CROSS JOIN {shelf.vectors} v"
            " WHERE c.memory_id = ? AND c.chunk_index = 0 AND v.rowid = c.chunk_no",
            (memory.memory_id,),
        ).fetchone()
        if row is not None:
            found = nearest.nearest_candidates(db, row[0], _MEMORIES, _FOUND, of=of)
            return [each.key[1] for each in found if each.owner == "memory"]
    return []


def _nearest_by_words(db: Connection, memory: _DatedText) -> list[str]:
    expression = parse_query(_strip_quotes(memory.content)).expression
    if expression is None:
        return []
    lists = fulltext.find_best_matches(db, expression, _MEMORIES, _FOUND)
    return [each.key[1] for found in lists for each in found if each.owner == "memory"]
