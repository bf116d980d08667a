"""Memories that are alike by words or by meaning: of many at once, without a search for each."""

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from functools import lru_cache

from memlog.projector.passages.index import MEMORY
from memlog.projector.passages.vectors import model_of
from memlog.projector.sqlite import Connection, as_list
from memlog.query.memories import Memory, select
from memlog.query.search.request import parse

_READ = 1000
"""Characters of a text whose words are looked at."""

_FEW = 20
"""Texts that may share a word, however few there are."""

# CROSS JOIN: vec0 reads each of them, never all.
_VECTORS = f"""
SELECT c.memory_id, v.embedding FROM json_each(?) a
CROSS JOIN {MEMORY.chunks} c CROSS JOIN {MEMORY.vectors} v
WHERE c.memory_id = a.value AND c.chunk_index = 0 AND v.rowid = c.chunk_no
"""


def alike(
    db: Connection, wanted: Sequence[Memory], others: Sequence[Memory], limit: int
) -> dict[str, list[str]]:
    """Return, for each wanted memory, the ids of the others that are most alike.

    At most `limit` by words, and as many by meaning, where both have a vector.
    """
    found: dict[str, list[str]] = {memory.memory_id: [] for memory in wanted}
    for nearest in (_by_words(wanted, others, limit), _by_meaning(db, wanted, others, limit)):
        for name, ids in nearest.items():
            found[name] += [each for each in ids if each not in found[name]]
    return found


def _by_words(wanted: Sequence[Memory], others: Sequence[Memory], limit: int) -> dict[str, list[str]]:
    """Rank by the rarity of the words that two texts share, and the length of the other one, as BM25 does."""
    terms = [_terms(memory.content[:_READ]) for memory in others]
    having = Counter(term for of_one in terms for term in of_one)
    by_term: defaultdict[str, list[int]] = defaultdict(list)
    for place, of_one in enumerate(terms):
        for term in of_one:
            by_term[term].append(place)
    nearest = {}
    for memory in wanted:
        scores: defaultdict[int, float] = defaultdict(float)
        for term in _terms(memory.content[:_READ]):
            if having[term] > max(_FEW, len(others) // 4):
                continue  # it tells nothing apart
            rarity = math.log(1 + (len(others) - having[term] + 0.5) / (having[term] + 0.5))
            for place in by_term.get(term, ()):
                scores[place] += rarity / math.sqrt(len(terms[place]))
        best = sorted(scores, key=lambda place: (-scores[place], place))[:limit]
        nearest[memory.memory_id] = [others[place].memory_id for place in best]
    return nearest


@lru_cache(8192)
def _terms(text: str) -> frozenset[str]:
    return frozenset(parse(text.replace('"', " ")).terms)


def _by_meaning(
    db: Connection, wanted: Sequence[Memory], others: Sequence[Memory], limit: int
) -> dict[str, list[str]]:
    """Rank by the cosine of the first passages."""
    if model_of(db) is None:
        return {}
    import numpy as np

    ids = as_list([memory.memory_id for memory in (*wanted, *others)])
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


_CANDIDATES_READ = 2000
"""Characters of a text whose words are looked up: more words find nothing else."""


def likely_memories(
    db: Connection, text: str, *, chat: str | None, any_chat: bool, lengths: tuple[int, int], limit: int
) -> list[Memory]:
    """Return at most `limit` unarchived memories that share most words with `text`, best first.

    chat: of the memories, `<channel>:<chat_id>`; None for the store's own scope. any_chat: of every chat.
    lengths: the least and the greatest length of their contents, in characters.
    """
    expression = parse(text[:_CANDIDATES_READ].replace('"', " ")).expression
    if expression is None:
        return []
    rows = db.execute(
        # CROSS JOIN: the full text is queried once, not once for each memory of the chat. Of each memory the
        # first passage alone.
        "SELECT c.memory_id FROM memory_chunks_fts CROSS JOIN memory_chunks c CROSS JOIN memories l"
        " WHERE memory_chunks_fts MATCH ? AND c.chunk_no = memory_chunks_fts.rowid AND c.chunk_index = 0"
        " AND c.end_char <= ? AND (? OR c.chat_id IS ?) AND l.memory_id = c.memory_id"
        " AND length(l.content) BETWEEN ? AND ? ORDER BY bm25(memory_chunks_fts), c.memory_id LIMIT ?",
        (expression, lengths[1], any_chat, chat, *lengths, limit),
    )
    ids = [memory_id for (memory_id,) in rows]
    # Read behind the limit: a content may have 10 MB.
    found = select(db, "WHERE m.memory_id IN (SELECT value FROM json_each(?))", (as_list(ids),))
    return sorted(found, key=lambda memory: ids.index(memory.memory_id))
