"""memlog embed."""

import click
from msgspec.structs import replace

from memlog.cli.open_store import open_store
from memlog.cli.output import json_option, print_json
from memlog.cli.progress import progress_line
from memlog.cli.request_options import request_command
from memlog.service.requests.maintenance import Embed


@request_command(Embed)
@json_option
def embed(ctx: click.Context, asked: Embed, *, as_json: bool) -> None:
    with open_store(ctx) as store, progress_line() as progress:
        report = store.maintenance.embed(replace(asked, progress=progress))
    if as_json:
        print_json(report)
        return
    click.echo(
        f"vectors      {report.computed} computed, {report.cached} from the cache, {report.pending} to do"
    )
