"""The best line of a long prompt for each entry: a question may be hidden in a pasted log."""

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence

from memlog.projector.sqlite import Connection
from memlog.query.search.fts_query import parse
from memlog.query.search.priors import ASKING

LONG = 300
"""Characters of a prompt of which each line is looked up, too."""

_LONG_LINE = 240
_SENTENCE_END = re.compile(r"(?<=[.!?。！？])\s*")
_WORD = re.compile(r"[^\W\d_]+")
_FIRST, _LAST = 30, 70
"""Of more lines than these together, the first and the last are looked up, and those that ask."""

_COMMON = 500
"""Entries that have a word: a word that more have finds none by itself."""

FEWEST_TEXTS = 1000
"""A store with fewer texts is taken for one with so many: else a word that none of three texts has would be
worth a dozen times one that one of them has."""


def rarity(texts: int, having: int) -> float:
    """The weight of a word that `having` of so many texts have: BM25's idf."""
    return math.log(1 + (max(texts, FEWEST_TEXTS) - having + 0.5) / (having + 0.5))


def lines_of(text: str) -> list[str]:
    """The lines of a long prompt, long ones by sentence; none of a short prompt."""
    if len(text) <= LONG:
        return []
    lines: list[str] = []
    for line in map(str.strip, text.splitlines()):
        lines += _SENTENCE_END.split(line) if len(line) > _LONG_LINE else [line]
    telling = [line for line in lines if len(_WORD.findall(line)) > 1]
    if len(telling) <= _FIRST + _LAST:
        return telling
    asking = [line for line in telling[_FIRST:-_LAST] if line.endswith(ASKING)][:_FIRST]
    return [*telling[: _FIRST - len(asking)], *asking, *telling[-_LAST:]]


def best_lines(db: Connection, table: str, lines: Iterable[str]) -> dict[int, float]:
    """By row of a full-text table the cover of the line that covers it best: the share of the line's words
    that the row has, by their rarity, times the root of their number."""
    (texts,) = db.execute(f"SELECT count(*) FROM {table}").fetchone()
    known: dict[str, tuple[float, Sequence[int]]] = {}

    def found(term: str) -> tuple[float, Sequence[int]]:
        if term not in known:
            sql = f"SELECT rowid FROM {table} WHERE {table} MATCH ? LIMIT ?"
            rows = [number for (number,) in db.execute(sql, (term, _COMMON + 1))]
            known[term] = rarity(texts, len(rows)), rows if len(rows) <= _COMMON else ()
        return known[term]

    best: defaultdict[int, float] = defaultdict(float)
    for line in lines:
        terms = parse(line).terms
        of_terms = [found(term) for term in terms]
        total = sum(weight for weight, _ in of_terms)
        covers: defaultdict[int, float] = defaultdict(float)
        for weight, rows in of_terms:
            for number in rows:
                covers[number] += weight
        for number, cover in covers.items():
            best[number] = max(best[number], cover / total * math.sqrt(len(terms)))
    return best
