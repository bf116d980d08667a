"""Reads the log of a store without a read model, even while others write."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from memlog.eventlog.errors import NotFound
from memlog.eventlog.files.folders import check_store_exists
from memlog.eventlog.log.layout import LOG
from memlog.eventlog.log.quarantine import BadLine
from memlog.eventlog.log.reader import LogEntry as LogEntry
from memlog.eventlog.log.reader import (
    collect_redacted_keys,
    is_redacted,
    members_in_current_schema,
    read_accepted_events,
    read_entries_in_log_order,
    read_last_entries,
    read_redacted_keys,
    select_segments,
)
from memlog.eventlog.log.streams import Segment, list_segments
from memlog.eventlog.log.tail import Follower, wait_for_polls


class LogReader:
    """Reads a store's log: all of it, one stream, or the streams of one chat.

    Every method except `follow_new_lines` raises NotFound if the log has segments, but none for the stream or
    chat.

    Raises:
        NotFound: there is no such store.
    """

    def __init__(
        self, store: Path, *, stream: str | None = None, chat: tuple[str, str] | None = None
    ) -> None:
        check_store_exists(store)
        self._log = store / LOG
        self._stream, self._chat = stream, chat

    def read_lines(self) -> Iterator[LogEntry]:
        """Yield every line as it was written, stream by stream."""
        return read_entries_in_log_order(self._segments_or_raise())

    def read_events(self, leave_out: Callable[[LogEntry, str], None]) -> Iterator[LogEntry]:
        """Yield every event once, in chronological order.

        leave_out: called with each skipped line and the reason; see `reader.read_accepted_events`.
        """
        return read_accepted_events(self._segments_or_raise(), leave_out)

    def read_last_lines(self, count: int, *, all: bool = False) -> list[LogEntry]:
        """Return the last `count` lines. With `all`, redacted lines are included."""
        segments = self._segments_or_raise()
        return read_last_entries(
            segments, count, redacted=frozenset() if all else read_redacted_keys(segments)
        )

    def follow_new_lines(
        self, count: int, notify: Callable[[str], None], *, all: bool = False
    ) -> Iterator[Iterator[LogEntry]]:
        """Yield the last `count` lines and then, at each poll of the log, the new lines. Never ends.

        notify: called with human-readable notes, for example that a segment was truncated.
        all: whether to include lines that are already redacted when they are read.
        """
        follower = Follower(self._find_segments, notify)
        redacted = set() if all else read_redacted_keys(self._find_segments())
        last = read_last_entries(self._find_segments(), count, redacted=redacted)
        yield (entry for entry in last if not follower.is_new(entry))
        for _ in wait_for_polls(self._log):
            if all:
                yield follower.new_entries()
                continue
            new = list(follower.new_entries())
            redacted |= collect_redacted_keys(new)
            yield (entry for entry in new if not is_redacted(entry, redacted))

    def _find_segments(self) -> list[Segment]:
        return select_segments(self._log, stream=self._stream, chat=self._chat)

    def _segments_or_raise(self) -> list[Segment]:
        found = self._find_segments()
        if found or not list_segments(self._log)[0]:
            return found
        if self._chat is not None:
            hint = "store.conversations.sessions() lists the chats"
            raise NotFound(f"no chat {':'.join(self._chat)}", hint=hint, code="session_not_found")
        hint = "use the name of a folder in log/"
        raise NotFound(f"no stream {self._stream!r}", hint=hint, code="stream_not_found")


def describe_fault(entry: LogEntry) -> str | None:
    """Return the reason why a line is not an event; None if it is one."""
    return str(entry.event) if isinstance(entry.event, BadLine) else None


def make_event_members(entry: LogEntry, *, position: bool) -> dict[str, Any]:
    """Return an event's members in the current format.

    position: whether to add the event's position: its stream, segment, byte offset and line, from 1.
    """
    members = members_in_current_schema(entry)
    if position:
        members["position"] = {
            "stream": entry.segment.stream,
            "segment": entry.segment.name.filename,
            "offset": entry.line.offset,
            "line": entry.line.number,
        }
    return members
