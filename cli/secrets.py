"""memlog secrets."""

import click

from memlog import SecretPlace
from memlog.cli.answer import format_options, print_answer
from memlog.cli.open_store import open_store
from memlog.cli.records import list_answer
from memlog.cli.request_options import request_command
from memlog.service.requests.erasure import FindSecrets

_NO_SECRETS = "none that memlog knows the shape of"


@request_command(FindSecrets)
@format_options
def secrets(ctx: click.Context, asked: FindSecrets) -> None:
    with open_store(ctx) as store:
        found = store.erasure.secrets(asked)
    print_answer(ctx, list_answer("secrets", found, ("kind", "position", "id"), _row, if_empty=_NO_SECRETS))


def _row(place: SecretPlace) -> tuple[object, ...]:
    return place.kind, f"{place.stream}/{place.segment}:{place.line}", place.id
