"""Decides which hits are relevant enough for a prompt: those above the floor.

Without a floor, a greeting would get twenty unrelated passages. docs/tools/context.md has the curves, and
the cases these rules can't tell apart.
"""

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from memlog.projector.sqlite import Connection, to_json_list
from memlog.query.search import copies
from memlog.query.search.fulltext import Neighbourhood
from memlog.query.search.hits import Candidate, Hit
from memlog.query.search.request import LONGEST_QUESTION, parse_query

LONG = 300
"""The most characters of a short prompt. Each line of a longer prompt is also looked up separately."""

_LONG_LINE = 240
_SENTENCE_END = re.compile(r"(?<=[.!?。！？])\s*")
_WORD = re.compile(r"[^\W\d_]+")
_PIECE = re.compile(rf"(?s).{{1,{_LONG_LINE}}}(?=\s|$)|.{{1,{_LONG_LINE}}}")
_TELLING_LINES = 4
"""The most lines that are also compared by meaning: each line needs an embedding."""

_COMMON = 500
"""A word finds entries for a line only if at most this many entries contain it."""

FEWEST_TEXTS = 1000
"""The least number of texts that `weight_of_rarity` assumes. Otherwise, among three texts, a word that none
of them contains would weigh a dozen times as much as a word that one of them contains."""


def weight_of_rarity(texts: int, having: int) -> float:
    """Return the weight of a word that occurs in `having` of `texts` texts: BM25's idf."""
    return math.log(1 + (max(texts, FEWEST_TEXTS) - having + 0.5) / (having + 0.5))


def terms_by_line_of_long_prompt(text: str) -> dict[str, list[str]]:
    """Return the search terms of each line of a long prompt, splitting long lines; {} for a short prompt."""
    if len(text) <= LONG:
        return {}
    lines: list[str] = []
    for line in map(str.strip, text[:LONGEST_QUESTION].splitlines()):
        for sentence in _SENTENCE_END.split(line) if len(line) > _LONG_LINE else [line]:
            lines += _PIECE.findall(sentence)
    return {line: parse_query(line).terms for line in dict.fromkeys(lines) if len(_WORD.findall(line)) > 1}


class LookedUp(NamedTuple):
    """Matches between the lines of a long prompt and a full-text table.

    covers: each row's best cover of a line: the share of the line's words in the row, weighted by rarity,
        times √(words in the line).
    rarest: the rarity of each line's rarest word that is stored but not too common, keyed by line.
    """

    covers: Mapping[int, float]
    rarest: Mapping[str, float]


def distinctive_lines(found: Iterable[LookedUp]) -> list[str]:
    """Return the few lines with the rarest stored words, rarest first."""
    rarest: dict[str, float] = {}
    for each in found:
        for line, weight in each.rarest.items():
            rarest[line] = max(weight, rarest.get(line, 0.0))
    return sorted(rarest, key=lambda line: -rarest[line])[:_TELLING_LINES]


def match_lines(db: Connection, table: str, lines: Mapping[str, Sequence[str]]) -> LookedUp:
    """Match the terms of each line of a long prompt against a full-text table."""
    (texts,) = db.execute(f"SELECT count(*) FROM {table}").fetchone()
    known: dict[str, tuple[float, Sequence[int]]] = {}

    def look_up_term(term: str) -> tuple[float, Sequence[int]]:
        if term not in known:
            sql = f"SELECT rowid FROM {table} WHERE {table} MATCH ? LIMIT ?"
            rows = [number for (number,) in db.execute(sql, (term, _COMMON + 1))]
            known[term] = weight_of_rarity(texts, len(rows)), rows if len(rows) <= _COMMON else ()
        return known[term]

    best: defaultdict[int, float] = defaultdict(float)
    rarest: dict[str, float] = {}
    for line, terms in lines.items():
        of_terms = [look_up_term(term) for term in terms]
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


QUESTION = 0.555
"""The least relevance that the best hit must have. On LoCoMo 1 to 5, at .543, .555 and .565, .015, .016 and
.019 of the questions lose an answer that was among the first 20 hits, and .85, .87 and .88 of the questions
about other conversations find nothing (`python -m tests.eval.relevance --tuning`)."""

PASSAGE = 1.05
"""How far a hit may be below the best one in the sum of score and relevance. On LoCoMo, this excludes .22 of
the passages."""

WORDS_ONLY = 0.38
"""The least cover of the best hit, times the square root of the number of terms, if only words are compared.
At .38, .42 and .43, XQuAD's German questions lose .007, .017 and .027 of their answers; its Turkish, Russian
and Chinese questions lose fewer."""

OTHER_LANGUAGE = 0.59
"""Like `WORDS_ONLY`, if the model supports the language of only the question or only the passage: names occur
in both languages, but other words match by chance. At .42, .053 of the small talk in five languages finds
something in LoCoMo; at .59, .015."""

OF_FEW = 0.74
"""The factor by which these three floors are multiplied if there are fewer than `FEW_MESSAGES` messages,
since the best of so few is less similar by chance. With it, all 65 questions of fixtures/month keep their
memories; without it, 7 lose them. .77 of the small talk finds nothing. For documents the factor is 1:
otherwise, .30 of XQuAD's questions about other articles would find one."""

FEW_MESSAGES = 100

COSINE_AND_WORDS = 0.5
"""The weight of the cover relative to the cosine. With a floor for the cosine alone, chosen on LoCoMo, .178
of XQuAD's questions lose their answers."""

CHANCE = (-6.893, 9.377)
"""The intercept and slope of the logistic curve from the relevance of the best hit to the probability that
the question is answered, if half of all questions are. On LoCoMo 6 to 10 its calibration error is .039."""

_OF_NEIGHBOURS = (1.0, 0.6, 0.4)
"""The weights of a word in the message itself, one turn away and two turns away, as in `fulltext`."""


NEAR = 0.8
"""The least share of common words that makes two messages near copies. On LoCoMo, XQuAD and chats with long
answers, .8 loses no evidence, and .7 loses one piece."""

_NUMBERS = re.compile(r"\d+")
_COMPARED = 4000
"""Messages with more characters than this are not compared."""


class Measured(NamedTuple):
    """A hit and its features.

    cosine: similarity of the question and the hit's passage; None if the model does not support both
        languages or the passage has no vector yet.
    cover: the share of the question's words in the hit, weighted by rarity.
    least: the floor when only words are compared: `WORDS_ONLY` or `OTHER_LANGUAGE`.
    """

    hit: Hit
    cosine: float | None
    cover: float
    least: float = WORDS_ONLY

    @property
    def relevance(self) -> float | None:
        """The cosine plus the weighted cover; None if only words are compared."""
        return None if self.cosine is None else self.cosine + COSINE_AND_WORDS * self.cover

    @property
    def combined_score(self) -> float:
        """The hit's score plus its relevance, if known."""
        return self.hit.score + (self.relevance or 0.0)


class Judged(NamedTuple):
    """Hits sorted into relevant and irrelevant.

    kept: the relevant hits. below: the rest, each with the reason.
    best: the highest relevance; None if only words were compared or there were no hits.
    """

    kept: list[Hit]
    below: list[tuple[Hit, str]]
    best: float | None = None


def judge_hits(hits: Sequence[Measured], terms: int, factor: float = 1.0) -> Judged:
    """Judge which hits may go into a prompt.

    terms: the number of terms in the question. factor: multiplies the floor; see `OF_FEW`.
    """
    best = max((each.relevance for each in hits if each.relevance is not None), default=None)
    # Hits that have no cosine are judged by words alone.
    root = math.sqrt(max(terms, 1))
    missing = [factor * each.least - each.cover * root for each in hits if each.relevance is None]
    missing += [] if best is None else [factor * QUESTION - best]
    if missing and min(missing) > 0:
        why = f"not relevant: the best of its part is {min(missing):.3f} below the floor"
        return Judged([], [(each.hit, why) for each in hits], best)
    least = max((each.combined_score for each in hits if each.relevance is not None), default=0.0) - PASSAGE
    kept, below = [], []
    for each in hits:
        # A memory is kept even without any of the words, since it may paraphrase the question.
        if each.relevance is None and not each.cover and each.hit.kind != "memory":
            below.append((each.hit, "it has no word of the prompt: below the floor"))
        elif each.relevance is not None and each.combined_score < least:
            below.append((each.hit, f"{least - each.combined_score:.3f} below the floor for a passage"))
        else:
            kept.append(each.hit)
    return Judged(kept, below, best)


def keep_newest_of_near_copies(hits: Sequence[Hit]) -> Judged:
    """Keep only the newest of a speaker's near copies, with the best score of the group."""
    groups: list[list[tuple[Wording, Hit]]] = []
    for hit in hits:
        wording = _normalise_wording_of_hit(hit)
        near = (group for group in groups if all(_are_near_copies(wording, other) for other, _ in group))
        group = next(near, None)
        if group is None:
            groups.append([(wording, hit)])
        else:
            group.append((wording, hit))
    kept, below = [], []
    for group in groups:
        members = [hit for _, hit in group]
        newest = max(members, key=lambda hit: (hit.ts, hit.position.segment, hit.position.offset))
        newest.score, newest.copies = members[0].score, sum(hit.copies for hit in members)
        kept.append(newest)
        below += [(hit, f"{newest.id} says nearly the same") for hit in members if hit is not newest]
    return Judged(kept, below)


class Wording(NamedTuple):
    """The features of a message used to detect near copies.

    by: the speaker's role and name. numbers: all numbers in the message, which must match in near copies.
    """

    by: tuple[str | None, str | None]
    words: frozenset[str]
    numbers: tuple[str, ...]


def _normalise_wording_of_hit(hit: Hit) -> Wording:
    is_long = len(hit.content) > _COMPARED
    words = frozenset([hit.id] if is_long else copies.normalise_words(hit.content).split())
    return Wording((hit.role, hit.name), words, () if is_long else tuple(_NUMBERS.findall(hit.content)))


def _are_near_copies(one: Wording, other: Wording) -> bool:
    if one.by != other.by or one.numbers != other.numbers:
        return False
    return len(one.words & other.words) >= NEAR * max(1, len(one.words | other.words))


def answer_probability(best: float) -> float:
    """Convert the relevance of the best hit to the probability that the question is answered."""
    return 1 / (1 + math.exp(-(CHANCE[0] + CHANCE[1] * best)))


def measure_term_covers(
    db: Connection,
    terms: Sequence[str],
    found: Sequence[tuple[Candidate, Hit]],
    near: Neighbourhood | None = None,
) -> list[float]:
    """Return the share of `terms` that each hit contains, weighted by rarity.

    near: messages with their neighbours, whose terms also count; None to count only the hit's own terms.
    """
    shares = [0.0] * len(found)
    by_table: dict[str, dict[int, int]] = {}
    for place, (candidate, _) in enumerate(found):
        table, number = "messages_fts", candidate.message_no
        if number is None:
            table = "doc_chunks_fts" if candidate.kind == "document" else "memory_chunks_fts"
            number = candidate.chunk_no
        if number is not None:
            by_table.setdefault(table, {})[number] = place
    for table, places in by_table.items():
        (rows,) = db.execute(f"SELECT count(*) FROM {table}").fetchone()
        around = near if table == "messages_fts" else None
        among = to_json_list([*(places if around is None else around.messages)])
        total = 0.0
        for term in terms:
            sql = f"FROM {table} WHERE {table} MATCH ?"
            (count,) = db.execute(f"SELECT count(*) {sql}", (term,)).fetchone()
            weight = weight_of_rarity(rows, count)
            total += weight
            matches = db.execute(
                f"SELECT rowid {sql} AND +rowid IN (SELECT value FROM json_each(?))", (term, among)
            )
            having = (number for (number,) in matches)
            worth = dict.fromkeys(having, 1.0) if around is None else _spread_to_neighbours(having, around)
            for number, share in worth.items():
                if number in places:
                    shares[places[number]] += share * weight
        if total:
            for place in places.values():
                shares[place] /= total
    return shares


def _spread_to_neighbours(numbers: Iterable[int], near: Neighbourhood) -> Mapping[int, float]:
    """Return a word's weight for messages that contain it and for their neighbours, keyed by number."""
    worth: dict[int, float] = {}
    for number in numbers:
        # A message excluded by the filters does not count: it may be the question itself.
        place = near.places_by_number.get(number)
        if place is None or not near.messages[number].is_wanted:
            continue
        for step in (-1, 1):
            for turns, share in enumerate(_OF_NEIGHBOURS):
                other = near.line[place + step * turns]
                if other is None:
                    break
                worth[other] = max(worth.get(other, 0.0), share)
    return worth
