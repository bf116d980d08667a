"""Opens the store that the command line names."""

import click

import memlog
from memlog.cli.main import Place
from memlog.cli.output import note


def open_store(ctx: click.Context) -> memlog.Store:
    """The store of --store, --project and --model; its notes go to stderr."""
    place = ctx.find_object(Place)
    if place is None:
        raise TypeError("a command of memlog was called without its group")
    return memlog.open(place.store, model=place.model, notify=note)
