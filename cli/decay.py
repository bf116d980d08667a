"""memlog decay."""

import click

from memlog.cli.open_store import open_store
from memlog.cli.output import json_on_terminal_option, print_done
from memlog.cli.request_options import request_command
from memlog.service.requests.fading import DecayMemories


@request_command(DecayMemories)
@json_on_terminal_option
def decay(ctx: click.Context, asked: DecayMemories) -> None:
    with open_store(ctx) as store:
        done = store.memories.decay(asked)
    told = "Memories were faded today already." if done.position is None else "Faded memories by one day."
    print_done(ctx, done, told)
