"""memlog session, sessions, show, summaries, window."""

import click

import memlog
from memlog.cli.options.request_options import Given, request_command
from memlog.cli.options.settings import Group
from memlog.cli.options.zone import format_in_local_time
from memlog.cli.output.answer import (
    Answer,
    Columns,
    TextAnswer,
    list_answer,
    records_answer,
    table_of_named_values,
)
from memlog.cli.output.output import dim, escape_controls, print_raw, put_on_one_line
from memlog.cli.output.turns import format_message, format_surroundings, indent_all_but_first_line

_NOTHING_TOLD = "no messages yet in this session"


@click.group(cls=Group)
def session() -> None:
    """Read a conversation verbatim."""


class _Conversation(TextAnswer, frozen=True):
    """The text of a conversation, byte for byte."""

    def _print_text(self) -> None:
        for text in self.text or ():
            print_raw(text)


@request_command(
    "conversations.session_content", group=session, adds="On a terminal, control characters are escaped."
)
def content(found: "memlog.SessionContent", _: Given) -> TextAnswer:
    text, notes = ([found.content], []) if found.messages else ([], [_NOTHING_TOLD])
    return _Conversation(found, text=text, notes=notes)


@request_command("conversations.sessions", arguments=[])
def sessions(found: "list[memlog.Session]", _: Given) -> Answer:
    columns: Columns = {
        "chat": "chat",
        "began": lambda session: format_in_local_time(session.created_at),
        "messages": "messages",
        "model": "model",
        "title": "title",
        "first message": "session_start",
    }
    return list_answer("sessions", found, columns, if_empty="no session yet")


@request_command("get")
def show(found: "memlog.StoredEvent", given: Given) -> Answer:

    position = f"{found.position} (byte {found.position.offset})"
    members = {"id": found.id, "type": found.type, "ts": found.ts, "at": found.at}
    members |= {"position": position, "raw": found.raw}
    around = format_surroundings(found.around, found.id) if found.around else []
    return Answer(
        document=found,
        table=table_of_named_values(members | ({"around": "\n".join(around)} if around else {})),
        text=[dim(escape_controls(position)), escape_controls(found.raw), *around],
        notes=[f"{found.type}: only a message has neighbours"] if given.around and not around else [],
    )


@request_command("conversations.summaries", arguments=[])
def summaries(found: "list[memlog.Summary]", _: Given) -> Answer:
    columns: Columns = {
        "time": lambda summary: format_in_local_time(summary.created_at),
        "chat": "chat",
        "from": "from_message_id",
        "to": "to_message_id",
        "content": "content",
        "position": _format_position_and_id,
    }
    text = [line for each in found for line in _summary_lines(each)]
    return list_answer("summaries", found, columns, text=text, if_empty="no summary yet")


def _summary_lines(summary: "memlog.Summary") -> list[str]:
    """Format a summary as lines, indented so that no content can look like another summary."""
    ends = (("from", summary.from_message_id), ("to", summary.to_message_id))
    stretch = "".join(f" {word} {message_id}" for word, message_id in ends if message_id is not None)
    return [
        put_on_one_line(f"[{format_in_local_time(summary.created_at)}] {summary.chat}{stretch}"),
        indent_all_but_first_line(f"    {escape_controls(summary.content)}", 4),
        f"    {dim(escape_controls(_format_position_and_id(summary)))}",
    ]


def _format_position_and_id(summary: "memlog.Summary") -> str:
    return f"{summary.position} {summary.id}"


@request_command("conversations.window", arguments=[])
def window(found: "memlog.Window", _: Given) -> Answer:
    columns: Columns = {
        "time": lambda message: format_in_local_time(message.ts),
        "who": "speaker",
        "id": "id",
        "content": "content",
    }
    return records_answer(
        found,
        found.messages,
        columns,
        text=map(format_message, found.messages),
        notes=[] if found.messages else [_NOTHING_TOLD],
    )
