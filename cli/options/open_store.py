"""Opens the store that the command line names, or its log alone."""

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING

import click

import memlog
from memlog.cli.options.providers import (
    embedding_of,
    extraction_rules_of,
    job_rules_of,
    language_model_of,
    rerank_of,
)
from memlog.cli.options.settings import Settings
from memlog.cli.output.output import STORED, note

if TYPE_CHECKING:
    from pathlib import Path

    from memlog.eventlog.log.writer import Log
    from memlog.service.engine.ids import KnownIds


# The annotation is a text: looked up, it would import all of the store, for `open_log` too.
def open_store(ctx: click.Context, notify: Callable[[str], None] = note) -> "memlog.Store":
    """Open the store of this call's settings; its notes go to stderr.

    Raises:
        BadInput: a setting cannot be used.
    """
    return _opened(ctx.ensure_object(Settings), notify, STORED.add)


def store_opener(ctx: click.Context) -> "Callable[[Path], memlog.Store]":
    """Return a function that opens the store in a folder with that store's settings."""
    settings = ctx.ensure_object(Settings)
    return lambda path: _opened(settings.at(path), note, None)


def _opened(
    settings: Settings, notify: Callable[[str], None], on_stored: Callable[..., None] | None
) -> "memlog.Store":
    language_model = language_model_of(settings)
    return memlog.open(
        settings.store,
        model=settings.value("model"),
        embedding=embedding_of(settings),
        rerank=rerank_of(settings),
        language_model=language_model,
        extraction=None if language_model is None else extraction_rules_of(settings),
        jobs=job_rules_of(settings),
        people=memlog.People(
            messengers=settings.value("context.messengers"), chats=settings.value("context.people")
        ),
        memory=settings.value("memory.enabled"),
        durability=settings.value("durability"),
        lock_timeout=settings.value("lock_timeout"),
        redact=settings.value("redact"),
        chunk_sizes=memlog.ChunkSizes(settings.value("chunk_tokens"), settings.value("chunk_overlap")),
        document_seconds=settings.value("document_seconds"),
        notify=notify,
        on_stored=on_stored,
    )


def open_log(ctx: click.Context) -> "Log":
    """Open the log of the store, for commands that only append: without the read model they start fast.

    Raises:
        BadInput: a setting cannot be used.
    """
    from memlog.eventlog.log.writer import Log

    settings = ctx.ensure_object(Settings)

    def find_stream(event_id: str) -> str:
        with open_store(ctx) as store:
            return store.stream_with(event_id)

    @cache
    def known_ids() -> "KnownIds":
        # Imported here: most events are given their id by memlog, and it takes SQLite.
        from memlog.service.engine.ids import KnownIds

        return KnownIds(settings.store)

    return Log(
        settings.store,
        durability=settings.value("durability"),
        lock_timeout=settings.value("lock_timeout"),
        find_stream=find_stream,
        redact=settings.value("redact"),
        look_up=lambda stream, ids: known_ids()(stream, ids),
        on_stored=STORED.add,
    )
