"""memlog summaries."""

import click

from memlog import Summary
from memlog.cli.answer import format_options, print_answer
from memlog.cli.open_store import open_store
from memlog.cli.output import dim, minute, one_line, printable
from memlog.cli.records import list_answer
from memlog.cli.request_options import request_command
from memlog.service.requests.conversations import ListSummaries

_COLUMNS = ("time", "chat", "from", "to", "content", "position")


@request_command(ListSummaries)
@format_options
def summaries(ctx: click.Context, asked: ListSummaries) -> None:
    with open_store(ctx) as store:
        found = store.conversations.summaries(asked)
    text = [line for each in found for line in _lines(each)]
    print_answer(ctx, list_answer("summaries", found, _COLUMNS, _row, text=text, if_empty="no summary yet"))


def _row(summary: Summary) -> tuple[object, ...]:
    stretch = (summary.from_message_id, summary.to_message_id)
    return minute(summary.created_at), summary.chat, *stretch, summary.content, _position(summary)


def _lines(summary: Summary) -> list[str]:
    """A summary for people, indented, so that no content looks like another summary."""
    stretch = "".join(
        f" {word} {message_id}"
        for word, message_id in (("from", summary.from_message_id), ("to", summary.to_message_id))
        if message_id is not None
    )
    return [
        one_line(f"[{minute(summary.created_at)}] {summary.chat}{stretch}"),
        "    " + printable(summary.content).replace("\n", "\n    "),
        "    " + dim(printable(_position(summary))),
    ]


def _position(summary: Summary) -> str:
    place = summary.position
    return f"{place.stream}/{place.segment}:{place.line} {summary.id}"
