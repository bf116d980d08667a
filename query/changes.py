"""Memories that a later one may change: "lives in Helsinki", and later "lives in Oulu now".

No rule tells this for certain, so nothing is left out: the newer one comes first, the older one is marked.
Of 21 pairs that the rule found in labelled stores and LoCoMo, 17 were right; LoCoMo has hardly any change.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from typing import NamedTuple

from memlog.projector.passages import index, vectors
from memlog.projector.sqlite import Connection, as_list
from memlog.projector.text import language_files
from memlog.projector.text.phrases import WORD, Holds, Phrases, by_words, folded, spaced
from memlog.query.context.floor import rarity
from memlog.query.filters import Filters
from memlog.query.search import fulltext, nearest
from memlog.query.search.hits import Hit
from memlog.query.search.request import parse

_ENDING = 2
"""Letters by which forms of a word may differ at the end."""


def are_forms(one: str, other: str) -> bool:
    """Whether two words are probably forms of one."""
    shorter = min(len(one), len(other))
    return one == other or (shorter > _ENDING and one[: shorter - _ENDING] == other[: shorter - _ENDING])


_LEAST_COVER = 0.33
"""Of the newer text's words by the older one, by their rarity, times the root of their number: at it 15 of 15
marked pairs of fixtures/told are right."""

_READ = 1000
_FOUND = 4
"""The nearest memories that are looked at: a memory may be found twice."""

_MEMORIES = Filters(kinds=frozenset(["memory"]))


class _DatedText(NamedTuple):
    """What is compared of a memory. when: its last change."""

    memory_id: str
    content: str
    topic: str | None
    category: str
    when: str


def later_first(db: Connection, hits: Sequence[Hit]) -> list[Hit]:
    """Return the hits, the newer memory of each pair before the one that it may change.

    The older one is marked by `changed_by`. Scores stay where they are.

    Raises:
        sqlite3.Error (of the binding): the read model cannot be read.
    """
    newer = Changes(db).among([hit.id for hit in hits if hit.kind == "memory"])
    for hit in hits:
        hit.changed_by = newer.get(hit.id)
    return swapped(hits)


def swapped(hits: Sequence[Hit]) -> list[Hit]:
    """Return the hits, each marked one swapped with the later one if that one comes after it."""
    ordered = list(hits)
    for hit in hits:
        places = {each.id: place for place, each in enumerate(ordered)}
        first, second = places[hit.id], places.get(hit.changed_by or "", -1)
        if first < second:
            ordered[first], ordered[second] = ordered[second], ordered[first]
            one, other = ordered[first], ordered[second]
            one.score, other.score = other.score, one.score
    return ordered


class Changes:
    """Which memories may change which, in one state of the read model. Each is looked up once."""

    def __init__(self, db: Connection) -> None:
        self._db = db
        self._says_change = cache(says_change)
        self._nearest = cache(partial(_nearest, db))
        self._may_change = cache(partial(_may_change, db, self._nearest))

    def among(self, memory_ids: Sequence[str]) -> dict[str, str]:
        """Return for some memories the newer one among them that may change each.

        The newer says that something changes; both have one topic, or one category where one has no topic;
        the older has enough of its words; and of all memories each is the nearest to the other.
        """
        by_id = {each.memory_id: each for each in _memories(self._db, memory_ids)}
        found = {}
        for newer in by_id.values():
            if self._says_change(newer.content):
                older = by_id.get(self._nearest(newer) or "")
                if older is not None and older.when < newer.when and self._may_change(newer, older):
                    found[older.memory_id] = newer.memory_id
        return found


def says_change(text: str) -> bool:
    """Whether a text says that something is no longer as it was: "no longer", "moved".

    Also "now", unless it is about something that may have several values: "now likes tennis".
    """
    return _has("cues", text) or (_has("present", text) and not _has("several", text))


def _has(member: str, text: str) -> bool:
    words, phrases = WORD.findall(spaced(folded(text[:_READ]))), _phrases(member)
    return any(phrases.length_at(words, place) for place in phrases.places(words))


def _may_change(
    db: Connection, nearest: Callable[[_DatedText], str | None], newer: _DatedText, older: _DatedText
) -> bool:
    if newer.topic is not None and older.topic is not None:
        if folded(newer.topic) != folded(older.topic):
            return False
    elif newer.category != older.category:
        return False
    words, subject = parse(_without_quotes(newer.content)), _words(older.content)[:1]
    return (
        names_the_same(newer.content, older.content)
        and not _is_of_another(newer.content, subject)
        and (_has("cues", newer.content) or _have_one_subject(words.words, subject))
        and _cover(db, words.terms, older.memory_id) >= _LEAST_COVER
        and nearest(older) == newer.memory_id
    )


def names_the_same(newer: str, older: str) -> bool:
    """Whether the newer text has every word of an older one about health, except numbers.

    One that says "allergic" may be about another substance.
    """
    if not by_words(older) & Holds.HEALTH:
        return True
    words = [word for word in _words(older) if not re.search(r"\d", word)]
    known = _words(newer)
    return all(any(are_forms(word, other) for other in known) for word in words)


def _is_of_another(newer: str, subject: Sequence[str]) -> bool:
    """Whether the newer text is about somebody of the older one's subject: "Nina's husband"."""
    return any(re.search(rf"\b{re.escape(word)}['’]s\b", newer, re.IGNORECASE) for word in subject)


def _have_one_subject(words: Sequence[str], subject: Sequence[str]) -> bool:
    """Whether the newer text has the first word of the older one: "now in the drawer" may be the keys."""
    return any(are_forms(word, other) for word in subject for other in words)


@cache
def _phrases(member: str) -> Phrases:
    """Return the phrases of a member of `ChangeWords` in all languages."""
    tables = (getattr(each.changes, member) for each in language_files.languages("changes").values())
    return Phrases(phrase for table in tables for phrase in language_files.phrases(spaced(table)))


def _memories(db: Connection, memory_ids: Sequence[str]) -> Iterable[_DatedText]:
    rows = db.execute(
        "SELECT memory_id, content, topic, category, updated_at FROM memories"
        " WHERE archived_at IS NULL AND memory_id IN (SELECT value FROM json_each(?))",
        (as_list([*memory_ids]),),
    )
    return map(_DatedText._make, rows.fetchall())


def _words(text: str) -> tuple[str, ...]:
    return parse(_without_quotes(text)).words


def _without_quotes(text: str) -> str:
    return text[:_READ].replace('"', " ")


def _cover(db: Connection, terms: Sequence[str], older: str) -> float:
    """Return the share of a text's words that a memory has, by rarity, times the root of their number."""
    (rows,) = db.execute("SELECT count(*) FROM memory_chunks_fts").fetchone()
    whole = had = 0.0
    for term in terms:
        count, is_there = db.execute(
            "SELECT count(*), coalesce(max(c.memory_id = ?2), 0) FROM memory_chunks_fts f"
            " CROSS JOIN memory_chunks c WHERE memory_chunks_fts MATCH ?1 AND c.chunk_no = f.rowid",
            (term, older),
        ).fetchone()
        weight = rarity(rows, count)
        whole += weight
        had += weight if is_there else 0.0
    return had / whole * len(terms) ** 0.5 if whole else 0.0


def _nearest(db: Connection, memory: _DatedText) -> str | None:
    """Return the id of the other memory that is nearest in meaning; without a vector, by its words."""
    found = _by_meaning(db, memory) or _by_words(db, memory)
    return next((name for name in found if name != memory.memory_id), None)


def _by_meaning(db: Connection, memory: _DatedText) -> list[str]:
    for of in reversed(vectors.SETS):
        if not vectors.tables(db, of) or (of is vectors.FIRST and not nearest.is_english(memory.content)):
            continue
        shelf = index.shelves(of)[0]
        row = db.execute(
            f"SELECT v.embedding FROM {shelf.chunks} c CROSS JOIN {shelf.vectors} v"
            " WHERE c.memory_id = ? AND c.chunk_index = 0 AND v.rowid = c.chunk_no",
            (memory.memory_id,),
        ).fetchone()
        if row is not None:
            found = nearest.nearest(db, row[0], _MEMORIES, _FOUND, of=of)
            return [each.key[1] for each in found if each.owner == "memory"]
    return []


def _by_words(db: Connection, memory: _DatedText) -> list[str]:
    expression = parse(_without_quotes(memory.content)).expression
    if expression is None:
        return []
    lists = fulltext.matches(db, expression, _MEMORIES, _FOUND)
    return [each.key[1] for found in lists for each in found if each.owner == "memory"]
