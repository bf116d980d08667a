"""Opens the store that the command line names."""

import click

import memlog
from memlog.cli.output import note
from memlog.cli.settings import Settings


def open_store(ctx: click.Context) -> memlog.Store:
    """The store of this call's settings; its notes go to stderr.

    Raises:
        BadInput: a setting cannot be used.
    """
    settings = ctx.ensure_object(Settings)
    return memlog.open(
        settings.store,
        model=settings.value("model"),
        durability=settings.value("durability"),
        lock_timeout=settings.value("lock_timeout"),
        chunk_sizes=memlog.ChunkSizes(settings.value("chunk_tokens"), settings.value("chunk_overlap")),
        notify=note,
    )
