"""Passages whose text a model could not embed today: words find them, and another day asks again."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from memlog.eventlog import timestamps
from memlog.eventlog.file_io import status_at
from memlog.eventlog.layout import EMBEDDINGS
from memlog.projector.catchup import Turn
from memlog.projector.embedding.cache import VectorCache
from memlog.projector.embedding.models import Model
from memlog.projector.passages import index, vectors
from memlog.projector.passages.index import Shelf
from memlog.projector.passages.vectors import Pending, VectorSet
from memlog.projector.sqlite import Connection

_MARK, _EVER = "9999-12-31", "99999"
"""The day of a row that a cache has from its first use on."""


def names_set_aside(db: Connection, store: Path) -> list[str]:
    """What was set aside: `message 01a2160e-…`."""
    names: dict[str, None] = {}
    for of in vectors.SETS if status_at(store / EMBEDDINGS) is not None else ():
        model = vectors.model_of(db, of)
        if model is None or not vectors.tables(db, of):
            continue
        with closing(VectorCache(store, model)) as cache:
            found = _set_aside(db, cache, of) if cache.has_set_aside() else ()
            names |= {index.name_of_owner(db, shelf, each.chunk_no): None for shelf, each, _ in found}
    return list(names)


def take_back(db: Connection, store: Path, model: Model, turn: Turn) -> None:
    """Have the passages wait for a vector anew that were set aside before today."""
    today, of = timestamps.today(), vectors.set_for(model)
    with closing(VectorCache(store, model.id)) as cache:
        is_lost = not cache.has_set_aside(_EVER)  # with the cache: what was set aside is not known
        if not is_lost and not cache.has_set_aside(today):
            return
        if is_lost:
            found = [(shelf, each) for shelf in index.shelves(of) for each in index.without_vector(db, shelf)]
        else:
            found = [(shelf, each) for shelf, each, day in _set_aside(db, cache, of) if day < today]
    with turn(), closing(VectorCache(store, model.id)) as cache:
        for shelf, each in found:
            index.queue_again(db, shelf, each)
        cache.take_back(today)
        cache.set_aside([""], _MARK)


def _set_aside(db: Connection, cache: VectorCache, of: VectorSet) -> Iterator[tuple[Shelf, Pending, str]]:
    for shelf in index.shelves(of):
        passages = index.without_vector(db, shelf)
        days = cache.days_aside(each.text for each in passages)
        yield from ((shelf, each, days[each.text]) for each in passages if each.text in days)
