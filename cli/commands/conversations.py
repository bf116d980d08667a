"""memlog session, sessions, show, summaries, window."""

import click

import memlog
from memlog.cli.options.request_options import Store, request_command
from memlog.cli.options.settings import Group
from memlog.cli.options.zone import minute
from memlog.cli.output.answer import Answer, Columns, TextAnswer, list_answer, named_values, records_answer
from memlog.cli.output.output import dim, one_line, print_raw, printable
from memlog.cli.output.turns import lines_around, set_in, turn
from memlog.service.memory.conversation_requests import ListSessions, ListSummaries, ReadSession, ReadWindow
from memlog.service.retrieval.requests import GetEvent

_NOTHING_TOLD = "no messages yet in this session"


@click.group(cls=Group)
def session() -> None:
    """Read a conversation word for word."""


class _Conversation(TextAnswer, frozen=True):
    """The text of a conversation, byte for byte."""

    def _print_text(self) -> None:
        for text in self.text or ():
            print_raw(text)


@request_command(
    ReadSession, group=session, arguments=["chat"], adds="On a terminal control characters are escaped."
)
def content(store: Store, request: ReadSession) -> TextAnswer:
    found = store.conversations.session_content(request)
    text, notes = ([found.content], []) if found.messages else ([], [_NOTHING_TOLD])
    return _Conversation(found, text=text, notes=notes)


@request_command(ListSessions)
def sessions(store: Store, request: ListSessions) -> Answer:
    columns: Columns = {
        "chat": "chat",
        "began": lambda session: minute(session.created_at),
        "messages": "messages",
        "model": "model",
        "first message": "session_start",
    }
    return list_answer("sessions", store.conversations.sessions(request), columns, if_empty="no session yet")


@request_command(GetEvent, arguments=["id"])
def show(store: Store, request: GetEvent) -> Answer:
    # Imported here: windows, which are read often, do not need it.
    from memlog.service.engine.operation import required

    found = required(store.get, request)
    position = f"{found.position} (byte {found.position.offset})"
    members = {"id": found.id, "type": found.type, "ts": found.ts, "at": found.at}
    members |= {"position": position, "raw": found.raw}
    around = lines_around(found.around, found.id) if found.around else []
    return Answer(
        document=found,
        table=named_values(members | ({"around": "\n".join(around)} if around else {})),
        text=[dim(printable(position)), printable(found.raw), *around],
        notes=[f"{found.type}: only a message has neighbours"] if request.around and not around else [],
    )


@request_command(ListSummaries)
def summaries(store: Store, request: ListSummaries) -> Answer:
    found = store.conversations.summaries(request)
    columns: Columns = {
        "time": lambda summary: minute(summary.created_at),
        "chat": "chat",
        "from": "from_message_id",
        "to": "to_message_id",
        "content": "content",
        "position": _position,
    }
    text = [line for each in found for line in _lines(each)]
    return list_answer("summaries", found, columns, text=text, if_empty="no summary yet")


def _lines(summary: "memlog.Summary") -> list[str]:
    """Return the lines of a summary, indented, so that no content looks like another summary."""
    ends = (("from", summary.from_message_id), ("to", summary.to_message_id))
    stretch = "".join(f" {word} {message_id}" for word, message_id in ends if message_id is not None)
    return [
        one_line(f"[{minute(summary.created_at)}] {summary.chat}{stretch}"),
        set_in(f"    {printable(summary.content)}", 4),
        f"    {dim(printable(_position(summary)))}",
    ]


def _position(summary: "memlog.Summary") -> str:
    return f"{summary.position} {summary.id}"


@request_command(ReadWindow)
def window(store: Store, request: ReadWindow) -> Answer:
    found = store.conversations.window(request)
    columns: Columns = {
        "time": lambda message: minute(message.ts),
        "who": "speaker",
        "id": "id",
        "content": "content",
    }
    return records_answer(
        found,
        found.messages,
        columns,
        text=map(turn, found.messages),
        notes=[] if found.messages else [_NOTHING_TOLD],
    )
