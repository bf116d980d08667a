"""Tells whether what a search found has to do with the question: a search finds something for any nonsense.

The order and the scores of hits are those of the search. Beside them stands how likely each memory, fact and
document belongs to the question, measured as for a context.
"""

from memlog.projector.embedding.models import Models
from memlog.projector.sqlite import Connection
from memlog.query.context import floor
from memlog.query.context.background import StoreSample
from memlog.query.context.scores import (
    ListedHit,
    ScoredPrompt,
    chance,
    compared,
    embedding_once,
    is_known,
    scored,
)
from memlog.query.context.sources import core_rows
from memlog.query.search.fts_query import FtsQuery, parse
from memlog.query.search.hits import SNIPPET_LENGTH, Hit
from memlog.query.search.hybrid import Found
from memlog.query.search.request import Search
from memlog.query.search.wording import are_forms

_LEAST_OF_CORE = 0.6
"""The share of the question's words that a core value has, times the root of their number: two words of
eleven, or one of two, are enough; core memory is small, and written to be found."""


def rate(db: Connection, request: Search, models: Models, sample: StoreSample, found: Found) -> bool:
    """Note in each hit but messages its `relevance`, and its `similarity` where it has none; return whether
    anything that was found certainly has to do with the question.

    Raises:
        sqlite3.Error (of the binding): the read model cannot be read.
    """
    prompt = ScoredPrompt(db, request, embedding_once(models), sample)
    listed = [each for each in found.hits if each[1].kind != "message"]
    near = compared(db, prompt, listed)
    far = {} if prompt.multilingual is None else prompt.multilingual.nearness(listed)
    measured = []
    for place, (candidate, hit) in enumerate(listed):
        cosine, words = near[place]
        if hit.similarity is None and cosine is not None:
            hit.similarity = round(max(0.0, cosine), 6)
        measured.append(ListedHit(hit, candidate.owner, cosine, words, far=far.get(place)))
    rated = scored(prompt, measured, lambda name: is_known(db, name))
    for hit, score in rated:
        hit.relevance = round(chance(score), 6)
    if any(score.total >= score.floor for _, score in rated):
        return True
    messages = [each for each in found.hits if each[1].kind == "message"]
    judged = floor.measured(
        db, prompt.question, messages, found.near, prompt.vector, prompt.reads, is_read=prompt.is_read
    )
    return bool(floor.judged(judged, len(prompt.question.terms)).kept)


def core_hits(db: Connection, question: FtsQuery) -> list[Hit]:
    """Return the values of the core memory that have enough of a question's words, best first: hits of source
    `core`, whose id is section and key.

    Raises:
        sqlite3.Error (of the binding): the read model cannot be read.
    """
    asked = question.words
    found = []
    for row in core_rows(db, None).shown:
        known = parse(f"{row.section} {row.key.replace('_', ' ')} {row.value}").words
        had = sum(any(are_forms(word, other) for other in known) for word in asked)
        share = had / max(1, len(asked))
        if share * len(asked) ** 0.5 >= _LEAST_OF_CORE:
            found.append(
                Hit(
                    kind="memory",
                    id=f"{row.section}.{row.key}",
                    event_id=row.event_id,
                    score=round(share, 6),
                    similarity=None,
                    only_context=False,
                    snippet=row.value[:SNIPPET_LENGTH],
                    content=row.value,
                    chat=None,
                    role=None,
                    name=None,
                    title=f"{row.section}.{row.key}",
                    category=None,
                    source="core",
                    ts="",
                    position=row.position,
                )
            )
    return sorted(found, key=lambda hit: -hit.score)
