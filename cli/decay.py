"""memlog decay."""

import click

from memlog.cli.open_store import open_store
from memlog.cli.output import json_option, print_json
from memlog.cli.request_options import request_command
from memlog.service.requests.fading import DecayMemories


@request_command(DecayMemories)
@json_option
def decay(ctx: click.Context, asked: DecayMemories, *, as_json: bool) -> None:  # noqa: ARG001
    with open_store(ctx) as store:
        print_json(store.memories.decay(asked))
