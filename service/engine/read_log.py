"""Reads the log itself, without a read model, even while others write."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from memlog.eventlog.errors import NotFound
from memlog.eventlog.files.folders import check_store
from memlog.eventlog.log.layout import LOG
from memlog.eventlog.log.quarantine import BadLine
from memlog.eventlog.log.reader import LogEntry as LogEntry
from memlog.eventlog.log.reader import (
    accepted,
    in_log_order,
    is_redacted,
    last_entries,
    redacted_keys,
    redactions_among,
    segments_about,
    todays_members,
)
from memlog.eventlog.log.streams import Segment, segments_of
from memlog.eventlog.log.tail import Follower, looks


class LogReader:
    """Reads the log of the store at `store`: all of it, one stream, or the streams of one chat.

    Every method but `follow` raises NotFound where the log has segments, and none of this stream or chat.

    Raises:
        NotFound: there is no such store.
    """

    def __init__(
        self, store: Path, *, stream: str | None = None, chat: tuple[str, str] | None = None
    ) -> None:
        check_store(store)
        self._log = store / LOG
        self._stream, self._chat = stream, chat

    def lines(self) -> Iterator[LogEntry]:
        """Return every line, stream by stream, as it was written."""
        return in_log_order(self._segments())

    def events(self, leave_out: Callable[[LogEntry, str], None]) -> Iterator[LogEntry]:
        """Return every event once, in the order in which they happened.

        leave_out: called with each other line, and why it is left out; see `reader.accepted`.
        """
        return accepted(self._segments(), leave_out)

    def last(self, count: int, *, all: bool = False) -> list[LogEntry]:
        """Return the `count` lines that were appended last, without redacted ones; all: with them."""
        segments = self._segments()
        return last_entries(segments, count, redacted=frozenset() if all else redacted_keys(segments))

    def follow(
        self, count: int, notify: Callable[[str], None], *, all: bool = False
    ) -> Iterator[Iterator[LogEntry]]:
        """Yield the last `count` lines, then, at each look at the log, those appended since. Does not end.

        notify: called with what a person should know, such as that a segment was cut short.
        all: with the lines that are redacted by the time of the look.
        """
        follower = Follower(self._found, notify)
        redacted = set() if all else redacted_keys(self._found())
        last = last_entries(self._found(), count, redacted=redacted)
        yield (entry for entry in last if not follower.is_new(entry))
        for _ in looks(self._log):
            if all:
                yield follower.new()
                continue
            new = list(follower.new())
            redacted |= redactions_among(new)
            yield (entry for entry in new if not is_redacted(entry, redacted))

    def _found(self) -> list[Segment]:
        return segments_about(self._log, stream=self._stream, chat=self._chat)

    def _segments(self) -> list[Segment]:
        found = self._found()
        if found or not segments_of(self._log)[0]:
            return found
        if self._chat is not None:
            hint = "store.conversations.sessions() lists the chats"
            raise NotFound(f"no chat {':'.join(self._chat)}", hint=hint, code="session_not_found")
        hint = "a stream is a folder of log/"
        raise NotFound(f"no stream {self._stream!r}", hint=hint, code="stream_not_found")


def fault_of(entry: LogEntry) -> str | None:
    """Return why a line holds no event; None where it holds one."""
    return str(entry.event) if isinstance(entry.event, BadLine) else None


def members_of(entry: LogEntry, *, position: bool) -> dict[str, Any]:
    """Return the members of an entry's event in today's shape.

    position: whether to add the event's position: its stream, segment, byte offset and line, from 1.
    """
    members = todays_members(entry)
    if position:
        members["position"] = {
            "stream": entry.segment.stream,
            "segment": entry.segment.name.filename,
            "offset": entry.line.offset,
            "line": entry.line.number,
        }
    return members
