"""Filters over many messages, with memories and documents: each side gives what a brute-force oracle gives.

The oracle knows the events that were written and decides by them what may be found; SQLite scores all that
there is, without any filter, and Python sorts.
"""

import json
import random
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from memlog.projector.embedding.models import Models
from memlog.projector.lifecycle import Projector
from memlog.query.filters import Filters
from memlog.query.search.fulltext import find_best_matches
from memlog.query.search.hybrid import search_read_model
from memlog.query.search.nearest import nearest_candidates
from memlog.query.search.request import Ranking, Search, parse_query

MOST = 50_000
"""Messages in the deep tests; the others have a tenth. For 100 there are two memories and a document."""
DEPTH = 20
DIGITS = {"text": 9, "vector": 6}
"""Scores are rounded to these before equal ones are ordered."""
QUESTIONS = ["word000 word001", "word002 word009 word031"]
CATEGORIES = ["decisions", "context", "identity", "debug"]
DAY = "2026-01-{:02d}"
DECAYED = "context"
DECAY = {
    "type": "salience_decayed",
    "id": "decay",
    "ts": "2026-01-13T00:00:00.000Z",
    "rates": {DECAYED: 0.5},
}


class Thing(NamedTuple):
    """What was written, as far as filters ask for it."""

    kind: str
    key: tuple[str, str]
    ts: str
    chat: tuple[str, str] | None = None
    role: str | None = None
    category: str | None = None
    source: str | None = None
    topic: str | None = None
    tags: tuple[str, ...] = ()
    salience: float = 1.0


class HashedWords:
    """An embedding model of few dimensions: a vector is the sum of random ones, one a word."""

    id = "hashed-words"
    dimension = 8

    is_remote = False

    def embed(self, texts, kind="passage"):
        sums = np.array([np.sum([_vector(word) for word in text.split()], axis=0) for text in texts])
        return (sums / np.linalg.norm(sums, axis=1, keepdims=True)).astype(np.float32)


_VECTORS: dict[str, "np.ndarray"] = {}


def _vector(word):
    if word not in _VECTORS:
        _VECTORS[word] = np.random.default_rng(list(word.encode())).standard_normal(HashedWords.dimension)
    return _VECTORS[word]


# The store


def chat_of(number: int) -> str:
    """`c0.1` has 0.1 % of the messages, `c1` 1 %, `c10` 10 %."""
    return (
        "c0.1" if number % 1000 == 0 else "c1" if number % 100 == 1 else "c10" if number % 10 == 2 else "rest"
    )


def ts_of(number: int) -> str:
    """Of 50,000 messages 2,000 are of one day; some share their time with others."""
    return f"{DAY.format(1 + number // 2000)}T{number // 84 % 24:02d}:{number % 30:02d}:00.000Z"


def events(seed: int, messages: int) -> list[tuple[Thing, dict[str, object]]]:
    """What is written, and what of it filters ask for."""
    chance = random.Random(seed)
    words = [f"word{number:03d}" for number in range(300)]
    # The first stands in a fifth of all texts, the last in one of 130.
    weights = [1 / (number + 10) for number in range(300)]

    def text() -> str:
        return " ".join(chance.choices(words, weights, k=8))

    step = MOST // messages
    return (
        [_message(number, ts_of(number * step), text()) for number in range(messages)]
        + [_memory(number, ts_of(number * step * 50), text()) for number in range(messages // 50)]
        + [_document(number, ts_of(number * step * 100), text()) for number in range(messages // 100)]
    )


def _message(number, ts, text):
    chat, role = chat_of(number), "tool" if number % 500 == 7 else "user"
    thing = Thing(
        "message", (f"conversations/x_{chat}", f"m{number}"), ts, ("x", chat), role, None, "conversation"
    )
    said = {"channel": "x", "chat_id": chat, "role": role, "content": text}
    return thing, {"type": "message", "id": f"m{number}", "ts": ts} | said


def _memory(number, ts, text):
    category = CATEGORIES[number % 3 if number % 100 else 3]
    chat = ("x", chat_of(number))
    source = "migration" if number % 10 == 3 else "manual"
    topic = "tea" if number % 20 == 4 else None
    tags = ("a", "b c") if number % 50 == 5 else ("a",)
    salience = 0.5 if category == DECAYED and ts < DECAY["ts"] else 1.0
    key = ("memory", f"y{number}")
    thing = Thing("memory", key, ts, chat, None, category, source, topic, tags, salience)
    said = {"memory_id": f"y{number}", "chat_id": ":".join(chat), "category": category, "content": text}
    said |= {"source": source, "topic": topic, "tags": list(tags)}
    return thing, {"type": "memory_saved", "id": f"s{number}", "ts": ts, "title": ""} | said


def _document(number, ts, text):
    source = "wiki" if number % 25 == 3 else "guide"
    thing = Thing("document", ("documents", f"{source}/{number}.md"), ts, source=source)
    said = {"source_id": source, "file": f"{number}.md", "content": text}
    return thing, {"type": "document_indexed", "id": f"d{number}", "ts": ts} | said


class Big(NamedTuple):
    """The store's read model, and what was written into it, by (kind, id)."""

    db: object
    things: dict[tuple[str, str], Thing]


@pytest.fixture(scope="module", params=[MOST // 10, pytest.param(MOST, marks=pytest.mark.deep)])
def big(tmp_path_factory, request):
    store = tmp_path_factory.mktemp("big")
    written = events(seed=5, messages=request.param)
    lines: dict[str, list[str]] = {}
    for thing, event in written:
        lines.setdefault(thing.key[0], []).append(json.dumps(event))
    for stream, of_stream in lines.items():
        path = Path(store, "log", stream, "2026-02-24.jsonl")
        path.parent.mkdir(parents=True)
        path.write_text("\n".join(of_stream) + "\n")
    with Path(store, "log", "memory", "2026-02-24.jsonl").open("a") as memory:
        memory.write(json.dumps(DECAY) + "\n")
    projector = Projector(store)
    projector.catch_up()
    projector.embed_passages(HashedWords(), batch=4096)
    yield Big(projector.connect_to_live(), {(thing.kind, thing.key[1]): thing for thing, _ in written})
    projector.close()


# The oracle


def passes(filters: Filters, thing: Thing) -> bool:
    """Whether a filter lets it be found."""
    return (
        (filters.kinds is None or thing.kind in filters.kinds)
        and filters.chat in (None, thing.chat)
        and filters.role in (None, thing.role)
        and filters.category in (None, thing.category)
        and filters.source in (None, thing.source)
        and filters.topic in (None, thing.topic)
        and (filters.tag is None or filters.tag in thing.tags)
        and thing.salience >= filters.min_salience
        and (filters.since is None or thing.ts >= filters.since)
        and (filters.until is None or thing.ts < filters.until)
        and thing.key[1] not in filters.exclude
    )


_TEXTS = (
    "SELECT 'message', m.id, bm25(messages_fts) FROM messages_fts JOIN messages m"
    " ON m.message_no = messages_fts.rowid WHERE messages_fts MATCH ?",
    "SELECT 'memory', c.memory_id, bm25(memory_chunks_fts) FROM memory_chunks_fts JOIN memory_chunks c"
    " ON c.chunk_no = memory_chunks_fts.rowid WHERE memory_chunks_fts MATCH ?",
    "SELECT 'document', c.document_id, bm25(doc_chunks_fts) FROM doc_chunks_fts JOIN doc_chunks c"
    " ON c.chunk_no = doc_chunks_fts.rowid WHERE doc_chunks_fts MATCH ?",
)
_NEAREST = (
    "SELECT 'message', c.message_id, vec_distance_cosine(v.embedding, ?1) FROM memory_chunks c"
    " JOIN vec_memory v ON v.rowid = c.chunk_no WHERE c.message_id IS NOT NULL"
    " UNION ALL SELECT 'memory', c.memory_id, vec_distance_cosine(v.embedding, ?1) FROM memory_chunks c"
    " JOIN vec_memory v ON v.rowid = c.chunk_no WHERE c.memory_id IS NOT NULL"
    " UNION ALL SELECT 'document', c.document_id, vec_distance_cosine(v.embedding, ?1) FROM doc_chunks c"
    " JOIN vec_docs v ON v.rowid = c.chunk_no"
)


class Scored(NamedTuple):
    """All that one side has for a question, best first: each with its cost."""

    things: list[tuple[float, Thing]]

    def best(self, filters: Filters, depth: int = DEPTH) -> list[tuple[str, str]]:
        """The first `depth` of those that pass."""
        passing = ((thing.kind, thing.key[1]) for _, thing in self.things if passes(filters, thing))
        return list(islice(passing, depth))


def scored(big: Big, sql: str, asked: object, digits: int) -> Scored:
    """Ordered by rounded cost, newer first, then by kind, stream and id."""
    found = [
        (round(cost, digits), big.things[kind, name])
        for kind, name, cost in big.db.execute(sql, (asked,)).fetchall()
    ]
    found.sort(key=lambda each: (each[1].kind, each[1].key))
    found.sort(key=lambda each: each[1].ts, reverse=True)
    found.sort(key=lambda each: each[0])
    return Scored(found)


@pytest.fixture(scope="module")
def by_words(big):
    """Of each question what matches, a list a kind."""
    return {
        question: [scored(big, sql, parse_query(question).expression, DIGITS["text"]) for sql in _TEXTS]
        for question in QUESTIONS
    }


@pytest.fixture(scope="module")
def by_vectors(big):
    """Of each question all that there is."""
    return {question: scored(big, _NEAREST, vector_of(question), DIGITS["vector"]) for question in QUESTIONS}


def vector_of(question: str) -> bytes:
    return bytes(HashedWords().embed([question])[0].tobytes())


# The filters

BY_SHARE: dict[str, tuple[Filters, float]] = {
    "all": (Filters(), 1.0),
    "messages": (Filters(kinds=frozenset({"message"})), 0.97),
    "a role of most": (Filters(role="user"), 0.97),
    "since a time before most": (Filters(since=DAY.format(2)), 0.96),
    "a chat of 10 %": (Filters(chat=("x", "c10")), 0.1),
    "a time of 10 %": (Filters(since=DAY.format(9), until=DAY.format(11) + "T12:00"), 0.1),
    "a chat of 1 %": (Filters(chat=("x", "c1")), 0.01),
    "a time of 1 %": (Filters(since=DAY.format(7), until=DAY.format(7) + "T06:00"), 0.01),
    "a role and a time of 1 %": (Filters(role="user", until=DAY.format(1) + "T06:00"), 0.01),
    "a chat of 0.1 %": (Filters(chat=("x", "c0.1")), 0.001),
    "a role of 0.2 %": (Filters(role="tool"), 0.002),
    "a chat, a role and a time of 0.1 %": (
        Filters(chat=("x", "c10"), role="user", until=DAY.format(1) + "T06:00"),
        0.001,
    ),
    "a time of 0.1 %": (
        Filters(since=DAY.format(4) + "T06:00", until=DAY.format(4) + "T06:20"),
        0.001,
    ),
    "memories": (Filters(kinds=frozenset({"memory"})), 0.02),
    "a category": (Filters(category="decisions"), 0.007),
    "a category of 1 % of the memories": (Filters(category="debug"), 0.0002),
    "a category and a chat": (Filters(category="context", chat=("x", "rest")), 0.006),
    "a topic": (Filters(topic="tea"), 0.001),
    "a tag": (Filters(tag="b c"), 0.0004),
    "a tag of all memories, and a source": (Filters(tag="a", source="migration"), 0.002),
    "a salience that most have": (Filters(min_salience=0.6), 0.99),
    "memories of a salience": (Filters(min_salience=0.6, kinds=frozenset({"memory"})), 0.017),
    "a faded category": (Filters(category=DECAYED, min_salience=0.51), 0.003),
    "a source of messages": (Filters(source="conversation"), 0.97),
    "a source of documents": (Filters(source="wiki"), 0.0004),
    "documents": (Filters(kinds=frozenset({"document"})), 0.01),
    "documents of a time": (Filters(kinds=frozenset({"document"}), since=DAY.format(24)), 0.0008),
    "memories and documents": (Filters(kinds=frozenset({"memory", "document"})), 0.03),
    "nothing": (Filters(category="decisions", role="user"), 0.0),
}


def test_a_filter_leaves_the_share_of_the_rows_that_it_is_named_for(big):
    for name, (filters, share) in BY_SHARE.items():
        left = sum(passes(filters, thing) for thing in big.things.values()) / len(big.things)
        assert left == pytest.approx(share, rel=0.5, abs=1e-5), name


def test_the_full_text_gives_what_the_oracle_gives(big, by_words):
    for name, (filters, _) in BY_SHARE.items():
        for question in QUESTIONS:
            found = find_best_matches(big.db, parse_query(question).expression, filters, DEPTH)
            given = [[(each.kind, each.key[1]) for each in of_kind] for of_kind in found]
            assert given == [side.best(filters) for side in by_words[question]], (name, question)


def test_the_vectors_give_what_the_oracle_gives(big, by_vectors):
    for name, (filters, _) in BY_SHARE.items():
        for question in QUESTIONS:
            found = nearest_candidates(big.db, vector_of(question), filters, DEPTH)
            given = [(each.kind, each.key[1]) for each in found]
            assert given == by_vectors[question].best(filters), (name, question)


def test_the_distances_of_the_oracle_are_cosines(big):
    """Or oracle and search would be wrong together."""
    for question in QUESTIONS:
        asked = np.frombuffer(vector_of(question), np.float32)
        rows = big.db.execute(
            "SELECT embedding, vec_distance_cosine(embedding, ?) FROM vec_memory WHERE rowid % 50 = 0",
            (vector_of(question),),
        ).fetchall()
        assert len(rows) > 100
        for embedding, distance in rows:
            own = np.frombuffer(embedding, np.float32)
            cosine = float(own @ asked) / float(np.linalg.norm(own) * np.linalg.norm(asked))
            assert distance == pytest.approx(1 - cosine, abs=1e-5)


@pytest.mark.parametrize("ranking", [Ranking(), Ranking(fusion="convex")], ids=["rrf", "convex"])
def test_a_hybrid_search_is_full_of_what_passes(big, ranking):
    for name, (filters, _) in BY_SHARE.items():
        asked = Search(QUESTIONS[0], filters=filters, ranking=ranking)
        given = {(hit.kind, hit.id) for hit in search_read_model(big.db, asked, Models(HashedWords())).hits}
        assert all(passes(filters, big.things[each]) for each in given), name
        assert len(given) == min(10, sum(passes(filters, thing) for thing in big.things.values())), name


def test_without_neighbours_a_hybrid_search_gives_what_the_oracle_fuses(big, by_words, by_vectors):
    question = QUESTIONS[0]
    ranking = Ranking(context=False, priors=False, salience=False, depth=DEPTH)
    for name, (filters, _) in BY_SHARE.items():
        found = search_read_model(
            big.db, Search(question, filters=filters, ranking=ranking), Models(HashedWords())
        ).hits
        scores: dict[tuple[str, str], float] = {}
        lists = [(1.0, side) for side in by_words[question]] + [(0.5, by_vectors[question])]
        for weight, side in lists:
            for rank, each in enumerate(side.best(filters), start=1):
                scores[each] = scores.get(each, 0.0) + weight / (10 + rank)
        best = [round(score, 5) for score in sorted(scores.values(), reverse=True)[:10]]
        assert [round(hit.score * 1.5 / 11, 5) for hit in found] == best, name
        for hit in found:
            assert scores[hit.kind, hit.id] == pytest.approx(hit.score * 1.5 / 11, abs=1e-5), name


def test_k_is_full_by_words_alone_wherever_so_many_match(big, by_words):
    question = QUESTIONS[0]
    for name, (filters, _) in BY_SHARE.items():
        matching = {each for side in by_words[question] for each in side.best(filters)}
        asked = Search(question, mode="text", filters=filters, ranking=Ranking(context=False))
        hits = search_read_model(big.db, asked, None).hits
        assert len(hits) == min(10, len(matching)), name
        assert all(passes(filters, big.things[hit.kind, hit.id]) for hit in hits), name
