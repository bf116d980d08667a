"""Looks up ids given by callers in the read model, which may lag behind the log."""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from memlog.eventlog.codec.content_ids import content_hash_without_openssl
from memlog.eventlog.codec.decode import decode_line
from memlog.eventlog.codec.upcast import Place
from memlog.eventlog.errors import MemlogError
from memlog.eventlog.events import Event
from memlog.eventlog.files.forks import ForkMutex, SplitByFork
from memlog.eventlog.log.layout import LOG
from memlog.eventlog.log.quarantine import BadLine
from memlog.eventlog.log.reader import read_line_at
from memlog.eventlog.log.streams import SegmentName
from memlog.eventlog.positions import IdHolder, KnownId
from memlog.projector.lifecycle import Generations
from memlog.projector.sqlite import Connection, connect, converting_errors
from memlog.query.provenance import forgotten_ids, line_places_of_ids, undone_ids


class KnownIds(SplitByFork):
    """Finds which event ids are already in use in a store. Thread-safe.

    Reads the current read model without building it, catching it up, or taking a memlog lock.
    """

    def __init__(self, store: Path) -> None:
        super().__init__()
        self._log = store / LOG
        self._generations = Generations(store)
        self._in_use = ForkMutex()
        self._live: tuple[Path, Connection] | None = None

    def __call__(self, stream: str, ids: Sequence[str]) -> dict[str, KnownId]:
        """Return the ids in `ids` that are in use in `stream`; {} if no read model can be read.

        The events are already durable, so a read model error must not hide them.
        """
        with self._in_use.lock, suppress(MemlogError, OSError), converting_errors("the read model"):
            db = self._connection()
            if db is None:
                return {}
            undone = undone_ids(db, stream, ids)
            known = {name: KnownId() for name in forgotten_ids(db, stream, ids)}
            for name, (segment, offset, length) in line_places_of_ids(db, stream, ids).items():
                # The hash in the read model is not used: another version of memlog may have computed it.
                event = read_event_from_line(self._log, name, stream, segment, offset, length)
                if event is not None:
                    content = content_hash_without_openssl(event)
                    known[name] = KnownId(
                        IdHolder(stream, segment, offset), content, is_undone=name in undone
                    )
            return known
        return {}

    def close(self) -> None:
        """Close the connection."""
        with self._in_use.lock:
            if self._live is not None:
                self._live[1].close()
                self._live = None

    def before_fork(self, until: float) -> None:
        """Close the connection, unless a thread is still using it."""
        if self._in_use.acquire_for_fork(until):
            self.close()

    def after_fork_in_parent(self) -> None:
        """Let other threads use the connection again."""
        self._in_use.release_in_parent()

    def after_fork_in_child(self) -> None:
        """Leave an open connection to the parent process."""
        self._in_use.reset_in_child()
        self._live = None

    def _connection(self) -> Connection | None:
        path = self._generations.find_live_file()
        if self._live is not None and self._live[0] != path:
            self.close()
        if path is not None and self._live is None:
            self._live = (path, connect(path, "look"))
        return None if self._live is None else self._live[1]


def read_event_from_line(
    log: Path, event_id: str, stream: str, segment: str, offset: int, length: int
) -> Event | None:
    """Return an event from its log line; None if the line no longer holds the event with that id."""
    name = SegmentName.parse(segment)
    if name is None:
        return None
    try:
        event = decode_line(read_line_at(log, stream, segment, offset, length), Place(stream, name, offset))
    except BadLine:
        return None
    return event if event.id == event_id else None
