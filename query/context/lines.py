"""The best line of a long prompt for each entry: a question may be hidden in a pasted log."""

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from memlog.projector.sqlite import Connection
from memlog.query.search.fts_query import LONGEST_QUESTION, parse

LONG = 300
"""Characters of a prompt of which each line is looked up, too."""

_LONG_LINE = 240
_SENTENCE_END = re.compile(r"(?<=[.!?。！？])\s*")
_WORD = re.compile(r"[^\W\d_]+")
_PIECE = re.compile(rf"(?s).{{1,{_LONG_LINE}}}(?=\s|$)|.{{1,{_LONG_LINE}}}")
_TELLING = 4
"""Lines whose meaning is compared, too: each takes an embedding."""

_COMMON = 500
"""Entries that have a word: a word that more have finds none by itself."""

FEWEST_TEXTS = 1000
"""A store with fewer texts is taken for one with so many: else a word that none of three texts has would be
worth a dozen times one that one of them has."""


def rarity(texts: int, having: int) -> float:
    """The weight of a word that `having` of so many texts have: BM25's idf."""
    return math.log(1 + (max(texts, FEWEST_TEXTS) - having + 0.5) / (having + 0.5))


def lines_of(text: str) -> dict[str, list[str]]:
    """The terms of each line of a long prompt, of long ones by sentence; empty for a short prompt."""
    if len(text) <= LONG:
        return {}
    lines: list[str] = []
    for line in map(str.strip, text[:LONGEST_QUESTION].splitlines()):
        for sentence in _SENTENCE_END.split(line) if len(line) > _LONG_LINE else [line]:
            lines += _PIECE.findall(sentence)
    return {line: parse(line).terms for line in dict.fromkeys(lines) if len(_WORD.findall(line)) > 1}


class LookedUp(NamedTuple):
    """What the lines of a long prompt find in a full-text table.

    covers: by row the cover of the line that covers it best: the share of the line's words that the row has,
        by their rarity, times the root of their number.
    rarest: by line the rarity of its rarest word that the table has.
    """

    covers: Mapping[int, float]
    rarest: Mapping[str, float]


def telling(found: Iterable[LookedUp]) -> list[str]:
    """Return the lines with the rarest stored words, the rarest first."""
    rarest: dict[str, float] = {}
    for each in found:
        for line, weight in each.rarest.items():
            rarest[line] = max(weight, rarest.get(line, 0.0))
    return sorted(rarest, key=lambda line: -rarest[line])[:_TELLING]


def look_up(db: Connection, table: str, lines: Mapping[str, Sequence[str]]) -> LookedUp:
    """Look up each line of a long prompt by its terms."""
    (texts,) = db.execute(f"SELECT count(*) FROM {table}").fetchone()
    known: dict[str, tuple[float, Sequence[int]]] = {}

    def found(term: str) -> tuple[float, Sequence[int]]:
        if term not in known:
            sql = f"SELECT rowid FROM {table} WHERE {table} MATCH ? LIMIT ?"
            rows = [number for (number,) in db.execute(sql, (term, _COMMON + 1))]
            known[term] = rarity(texts, len(rows)), rows if len(rows) <= _COMMON else ()
        return known[term]

    best: defaultdict[int, float] = defaultdict(float)
    rarest: dict[str, float] = {}
    for line, terms in lines.items():
        of_terms = [found(term) for term in terms]
        total = sum(weight for weight, _ in of_terms)
        if any(rows for _, rows in of_terms):
            rarest[line] = max(weight for weight, rows in of_terms if rows)
        covers: defaultdict[int, float] = defaultdict(float)
        for weight, rows in of_terms:
            for number in rows:
                covers[number] += weight
        for number, cover in covers.items():
            best[number] = max(best[number], cover / total * math.sqrt(len(terms)))
    return LookedUp(best, rarest)
