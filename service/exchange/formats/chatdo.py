"""The databases of the ChatDO memory service: facts, chat messages and sources."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from memlog.eventlog.events import FactStored, Message
from memlog.service.exchange.formats import ForeignData, Record, Skipped, Unreadable, Used, read_records

Row = dict[str, Any]

_FACTS = (
    *("id", "project_id", "chat_id", "topic_key", "kind", "rank", "value"),
    *("source_message_id", "created_at"),
)
_MESSAGES = (
    *("id", "source_id", "project_id", "chat_id", "thread_id", "message_id", "role", "content"),
    *("timestamp", "created_at", "message_index", "file_id"),
)
_SOURCE = ("project_id",)
_ROLES = ("user", "assistant", "system", "tool")
_CHANNEL = "chatdo"


_FILES = ("**/tracking.sqlite", "**/index.sqlite")
_OF_PROJECT = "project-"
_WITHOUT = "default"
"""The project of rows that name no project."""


def read(source: ForeignData) -> Iterator[Record]:
    """Yield the facts of `tracking.sqlite` and the messages of each `index.sqlite`.

    Rows of the table `sources` are skipped: they name folders of another machine, which must be added again.
    """
    for path in source.find_files(*_FILES):

        def is_row_of_project(row: Row, path: Path = path) -> bool:
            return source.project is None or _project_of_row(path, row) == source.project

        if path.name != "index.sqlite":
            yield from read_records(
                source, path, "facts", _FACTS, _fact_record, text="value", is_wanted=is_row_of_project
            )
        if path.name != "tracking.sqlite":
            yield from read_records(
                source,
                path,
                "chat_messages",
                _MESSAGES,
                _message_record,
                text="content",
                is_wanted=is_row_of_project,
            )
            yield from read_records(
                source, path, "sources", _SOURCE, lambda *_: Skipped("structure"), is_wanted=is_row_of_project
            )


def projects(source: ForeignData) -> Iterator[str]:
    """Yield the project of each fact and each message."""
    for path in source.find_files(*_FILES):
        for table in ("facts", "chat_messages"):
            for row in source.read_rows(path, table, ("project_id",), is_optional=True):
                if not isinstance(row, Unreadable):
                    yield _project_of_row(path, row)


def _project_of_row(path: Path, row: Row) -> str:
    """Return a row's project: the one it names, else the one in the name of the database's folder."""
    folder = path.parent.name
    of_folder = folder.removeprefix(_OF_PROJECT) if folder.startswith(_OF_PROJECT) else ""
    return str(row["project_id"] or of_folder or _WITHOUT)


def _fact_record(source: ForeignData, row: Row) -> Record:
    rank = row["rank"] or 0
    kind: Literal["ranked", "single"] = "ranked" if rank else "single"
    names = (row["project_id"], row["chat_id"], row["topic_key"], kind, rank)
    channel = f"{_CHANNEL}{source.suffix}"
    # Without a chat, facts of two sources would replace each other.
    chat = row["chat_id"] or (source.suffix and row["project_id"])
    message_id = row["source_message_id"]
    event = FactStored(
        id="/".join([f"{channel}/fact", *(str(name) for name in names)]),
        ts=source.parse_time(row["created_at"]),
        topic_key=row["topic_key"],
        value=row["value"],
        kind=kind,
        rank=rank,
        chat_id=f"{channel}:{chat}" if chat else None,
        source_message_id=None if message_id is None else str(message_id),
    )
    return Used([event])  # without `created`, because the time is that of the value


def _message_record(source: ForeignData, row: Row) -> Record:
    role = row["role"]
    if role not in _ROLES:
        return Skipped("unsupported")
    chat = row["chat_id"] or row["thread_id"]
    name = row["message_id"] or row["id"]
    channel = f"{_CHANNEL}{source.suffix}"
    event = Message(
        id=f"{channel}/{row['source_id'] or row['project_id']}/{chat}/{name}",
        ts=source.parse_time(row["timestamp"] or row["created_at"]),
        channel=channel,
        chat_id=str(chat),
        role=role,
        content=row["content"],
    )
    return Used([event], created=event.ts)
