"""Finds similar memories by words and meaning, for many memories at once instead of one search each."""

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from functools import lru_cache

from memlog.projector.passages.index import MEMORY
from memlog.projector.passages.vectors import read_model_of_vectors
from memlog.projector.sqlite import Connection, to_json_list
from memlog.query.memories import Memory, select_memories
from memlog.query.search.request import parse_query

_COMPARED_CHARACTERS = 1000
"""The number of characters of a text whose words are compared."""

_COMMON = 20
"""A word in at most this many texts is never too common, however few texts there are."""

# CROSS JOIN: vec0 looks each of them up, and never scans.
_VECTORS = f"""
SELECT c.memory_id, v.embedding FROM json_each(?) a
CROSS JOIN {MEMORY.chunks} c CROSS JOIN {MEMORY.vectors} v
WHERE c.memory_id = a.value AND c.chunk_index = 0 AND v.rowid = c.chunk_no
"""


def find_similar_memories(
    db: Connection, wanted: Sequence[Memory], others: Sequence[Memory], limit: int
) -> dict[str, list[str]]:
    """Return the ids of the `others` most similar to each memory in `wanted`, keyed by its id.

    Up to `limit` are found by words, and as many by meaning if both memories have a vector.
    """
    found: dict[str, list[str]] = {memory.memory_id: [] for memory in wanted}
    for nearest in (_nearest_by_words(wanted, others, limit), _nearest_by_meaning(db, wanted, others, limit)):
        for name, ids in nearest.items():
            found[name] += [each for each in ids if each not in found[name]]
    return found


def _nearest_by_words(wanted: Sequence[Memory], others: Sequence[Memory], limit: int) -> dict[str, list[str]]:
    """Rank `others` by the rarity of the words they share and by their length, like BM25."""
    terms = [_list_search_terms(memory.content[:_COMPARED_CHARACTERS]) for memory in others]
    having = Counter(term for of_one in terms for term in of_one)
    by_term: defaultdict[str, list[int]] = defaultdict(list)
    for place, of_one in enumerate(terms):
        for term in of_one:
            by_term[term].append(place)
    nearest = {}
    for memory in wanted:
        scores: defaultdict[int, float] = defaultdict(float)
        for term in _list_search_terms(memory.content[:_COMPARED_CHARACTERS]):
            if having[term] > max(_COMMON, len(others) // 4):
                continue  # too common to discriminate
            rarity = math.log(1 + (len(others) - having[term] + 0.5) / (having[term] + 0.5))
            for place in by_term.get(term, ()):
                scores[place] += rarity / math.sqrt(len(terms[place]))
        best = sorted(scores, key=lambda place: (-scores[place], place))[:limit]
        nearest[memory.memory_id] = [others[place].memory_id for place in best]
    return nearest


@lru_cache(8192)
def _list_search_terms(text: str) -> frozenset[str]:
    return frozenset(parse_query(text.replace('"', " ")).terms)


def _nearest_by_meaning(
    db: Connection, wanted: Sequence[Memory], others: Sequence[Memory], limit: int
) -> dict[str, list[str]]:
    if read_model_of_vectors(db) is None:
        return {}
    import numpy as np

    ids = to_json_list([memory.memory_id for memory in (*wanted, *others)])
    vectors = {name: np.frombuffer(data, np.float32) for name, data in db.execute(_VECTORS, (ids,))}
    known = [memory.memory_id for memory in others if memory.memory_id in vectors]
    if not known:
        return {}
    table = np.stack([vectors[name] for name in known])
    table = table / np.maximum(np.linalg.norm(table, axis=1, keepdims=True), 1e-9)
    nearest = {}
    for memory in wanted:
        if (own := vectors.get(memory.memory_id)) is not None:
            best = np.argsort(-np.einsum("ij,j->i", table, own), kind="stable")[:limit]
            nearest[memory.memory_id] = [known[place] for place in best]
    return nearest


_SEARCHED_CHARACTERS = 2000
"""The number of characters of a text whose words are searched for; more words find nothing new."""


def memories_matching_words(
    db: Connection, text: str, *, chat: str | None, any_chat: bool, lengths: tuple[int, int], limit: int
) -> list[Memory]:
    """Return up to `limit` active memories that best match the words of `text`, best first.

    chat: `<channel>:<chat_id>` of the memories; None for the store's own scope. any_chat: ignore `chat`.
    lengths: the shortest and longest content to return, in characters.
    """
    expression = parse_query(text[:_SEARCHED_CHARACTERS].replace('"', " ")).expression
    if expression is None:
        return []
    rows = db.execute(
        # CROSS JOIN: query the full text once, not once for each memory of the chat. First passages only.
        "SELECT c.memory_id FROM memory_chunks_fts CROSS JOIN memory_chunks c CROSS JOIN memories l"
        " WHERE memory_chunks_fts MATCH ? AND c.chunk_no = memory_chunks_fts.rowid AND c.chunk_index = 0"
        " AND c.end_char <= ? AND (? OR c.chat_id IS ?) AND l.memory_id = c.memory_id"
        " AND length(l.content) BETWEEN ? AND ? ORDER BY bm25(memory_chunks_fts), c.memory_id LIMIT ?",
        (expression, lengths[1], any_chat, chat, *lengths, limit),
    )
    ids = [memory_id for (memory_id,) in rows]
    # Read after the limit applies: a content may have 10 MB.
    found = select_memories(db, "WHERE m.memory_id IN (SELECT value FROM json_each(?))", (to_json_list(ids),))
    return sorted(found, key=lambda memory: ids.index(memory.memory_id))
