"""The names of the log's folders and files, and the stream that each event belongs to.

No input can lead outside `log/`: a conversation's folder name consists of a–z, 0–9, `-`, `.`, `%` and
`~` around one `_`, so it is never `.` or `..`.
"""

import os
import re
import stat
from collections import defaultdict
from collections.abc import Container, Iterable
from datetime import date
from functools import lru_cache
from pathlib import Path

import msgspec

from memlog.eventlog.errors import BadInput
from memlog.eventlog.events import TYPES, Change, ConversationEvent, Event, Redacted
from memlog.eventlog.files import disk
from memlog.eventlog.files.file_io import as_file_not_found, status_at
from memlog.eventlog.log.layout import CONVERSATIONS, FORMAT, LOG, WRITER, is_seals_file
from memlog.eventlog.log.quarantine import BadLine

_NAME_LIMIT = 255  # bytes, on every file system in use
_PROJECT_HINT = "use a simple name, for example work or anna"
_FOLDER_LIMIT = 120
_FOLDER_HEAD = 80
_SEGMENT = re.compile(
    rf"(\d{{4}}-\d\d-\d\d)(?:\.({WRITER}))?(?:\.(\d{{4}}|[1-9]\d{{4,17}}))?\.jsonl", re.ASCII
)
_CONVERSATION = rf"{CONVERSATIONS}/[^/\x00-\x1f\x7f]*_[^/\x00-\x1f\x7f]*"
_SHORTENED = rf".{{{_FOLDER_HEAD}}}~[0-9a-f]{{16}}"
_PLAIN = frozenset(b"abcdefghijklmnopqrstuvwxyz0123456789-.")


def encode_name(name: str) -> str:
    """Encode `name` as UTF-8, with every byte except a–z, 0–9, `-` and `.` written as `%xx`."""
    return "".join(chr(byte) if byte in _PLAIN else f"%{byte:02x}" for byte in name.encode())


def project_folder(name: str) -> str:
    """Return a project's folder name, which cannot lead outside the folder of all projects.

    Raises BadInput if `name` consists only of dots, is too long, or cannot be encoded as UTF-8.
    """
    try:
        folder = encode_name(name)
    except UnicodeEncodeError as error:
        raise BadInput(f"the name {name!r} cannot be encoded as UTF-8", hint=_PROJECT_HINT) from error
    if folder.strip(".") == "" or len(folder) > _NAME_LIMIT:
        raise BadInput(f"invalid project name: {name!r}", hint=_PROJECT_HINT)
    return folder


@lru_cache(maxsize=4096)
def conversation_stream(channel: str, chat_id: str) -> str:
    """Return the stream of a conversation."""
    folder = f"{encode_name(channel)}_{encode_name(chat_id)}"
    if len(folder) > _FOLDER_LIMIT:
        # Imported here, like the import in chat_of_stream below: most appends need neither.
        from memlog.eventlog.codec.hashing import short_sha256

        folder = f"{folder[:_FOLDER_HEAD]}~{short_sha256(folder.encode()).hexdigest()[:16]}"
    return f"{CONVERSATIONS}/{folder}"


def chat_of_stream(stream: str) -> tuple[str, str] | None:
    """Return a conversation's (channel, chat_id); None for other streams and for shortened names.

    The folder name is split at its first `_` and both halves are decoded, so a folder made by hand
    (`telegram_a_b`) and one made by memlog (`telegram_a%5fb`) name the same chat.
    """
    from urllib.parse import unquote_to_bytes

    parent, _, folder = stream.partition("/")
    channel, underscore, chat_id = folder.partition("_")
    if parent != CONVERSATIONS or not underscore or re.fullmatch(_SHORTENED, folder):
        return None
    try:
        return unquote_to_bytes(channel).decode(), unquote_to_bytes(chat_id).decode()
    except UnicodeDecodeError:
        return None


def chat_of_folder(store: Path, name: str) -> tuple[str, str] | None:
    """Return the chat whose folder in the log has this name; None if there is no such folder."""
    stream = f"{CONVERSATIONS}/{name}"
    is_name = is_stream_name(stream) and len(name.encode(errors="replace")) <= _NAME_LIMIT
    return chat_of_stream(stream) if is_name and disk.is_folder(store / LOG / stream) else None


_STREAMS = frozenset(kind.STREAM for kind in TYPES.values() if issubclass(kind, Change))


def stream_of(event: Event) -> str:
    """Return the stream of an event. Raises BadLine if a `redacted` event does not name a valid stream."""
    if isinstance(event, ConversationEvent):
        return conversation_stream(event.channel, event.chat_id)
    if isinstance(event, Redacted):
        if event.stream is None or not is_stream_name(event.stream):
            raise BadLine("invalid", f"stream must be that of the event to redact, not {event.stream!r}")
        return event.stream
    assert isinstance(event, Change), "every other type sets, changes or removes something"
    return event.STREAM


def is_stream_name(name: str) -> bool:
    """Whether a folder with this name in `log/` may be a stream."""
    return name in _STREAMS or re.fullmatch(_CONVERSATION, name) is not None


def may_be_in_stream(event: Event, stream: str) -> bool:
    """Whether an event may be in `stream`: its own, or a folder made by hand that names its chat."""
    if isinstance(event, Redacted):
        return event.stream in (None, stream)
    if stream == stream_of(event):
        return True
    return isinstance(event, ConversationEvent) and chat_of_stream(stream) == (event.channel, event.chat_id)


def parse_writer_in_filename(filename: str) -> str | None:
    """Return the writer in a segment's file name; "" for a plain segment; None if it is not a segment."""
    name = SegmentName.parse(filename)
    return None if name is None else name.writer


class SegmentName(msgspec.Struct, frozen=True, order=True):
    """The name of a segment; sorts in the order in which a stream's segments are listed.

    number: counts a writer's segments in a stream across days; plain segments are numbered within a day.
    writer: six characters; "" for a plain segment, which memlog reads but never appends to.
    """

    day: str
    number: int = 0
    writer: str = ""

    @classmethod
    def parse(cls, filename: str) -> "SegmentName | None":
        """Parse a file name; return None if it does not name a segment."""
        match = _SEGMENT.fullmatch(filename)
        if match is None or match[3] == "0000":
            return None
        try:
            date.fromisoformat(match[1])
        except ValueError:
            return None
        return cls(match[1], int(match[3] or 0), match[2] or "")

    @property
    def filename(self) -> str:
        """The file name, such as `2026-11-24.k7f3qz.0001.jsonl`; `2026-02-24.jsonl` for a plain segment."""
        writer = f".{self.writer}" if self.writer else ""
        number = f".{self.number:04d}" if self.number else ""
        return f"{self.day}{writer}{number}.jsonl"

    @property
    def age_key(self) -> tuple[int, str]:
        """The sort key for a writer's segments by age; based on the number, since clocks may be set back."""
        return (self.number, self.day) if self.writer else (0, f"{self.day} {self.number:018d}")

    def next_segment_name(self, today: str) -> "SegmentName":
        """Return the writer's next segment name."""
        return SegmentName(today, self.number + 1, self.writer)


def select_current_segments(names: Iterable[SegmentName]) -> dict[str, SegmentName]:
    """Return the last segment of each writer, the only one that it appends to."""
    last: dict[str, SegmentName] = {}
    for name in names:
        known = last.get(name.writer)
        if known is None or known.age_key < name.age_key:
            last[name.writer] = name
    return last


class Segment(msgspec.Struct, frozen=True):
    """One JSONL file of a stream.

    is_newest: whether the file may still grow, so that its tail may be incomplete. True for each writer's
      segments and the last plain one until they are sealed; depends only on the files, not on the machine
      that reads them.
    """

    log: Path
    stream: str
    name: SegmentName
    is_newest: bool

    @property
    def stream_and_filename(self) -> tuple[str, str]:
        """The stream and the file name."""
        return self.stream, self.name.filename

    @property
    def path(self) -> Path:
        """The segment file's path."""
        return self.log / self.stream / self.name.filename

    def read_status(self) -> os.stat_result:
        """Return the segment file's status. Raises OSError; FileNotFoundError if it is missing."""
        try:
            # A string, because this is called for thousands of segments, and joining paths takes as long as
            # the system call.
            return disk.status_of_path(f"{self.log}/{self.stream}/{self.name.filename}")
        except OSError as error:
            raise as_file_not_found(error) from None


def group_segments_by_writer(segments: Iterable[Segment]) -> dict[tuple[str, str], list[Segment]]:
    """Group segments by (stream, writer), oldest first within each group."""
    written: defaultdict[tuple[str, str], list[Segment]] = defaultdict(list)
    for segment in segments:
        written[segment.stream, segment.name.writer].append(segment)
    return {key: sorted(made, key=lambda segment: segment.name.age_key) for key, made in written.items()}


def list_segment_names(folder: Path | int) -> list[SegmentName]:
    """Return the names of the segments in a stream's folder, sorted."""
    return _segment_names(folder)[0]


def list_segments(
    log: Path,
    only: Iterable[str] | None = None,
    *,
    unread: dict[str, OSError] | None = None,
    sealed: Container[tuple[str, str]] | None = None,
) -> tuple[list[Segment], list[Path]]:
    """Return all segments in `log`, sorted, and the paths that are not part of the log.

    The latter are links, devices and files with other names, except hidden files; they are never read.

    only: the streams to list; None for all.
    unread: collects the errors for stream folders, or `conversations`, that may not be read; None to raise
      them.
    sealed: the sealed segments, if the caller already knows them.
    """
    segments: list[Segment] = []
    if only is None:
        folders, strangers = _stream_folders(log, unread)
    else:
        folders, strangers = select_existing_streams(log, only), []
    if sealed is None:
        # Imported here: an append lists no segments.
        from memlog.eventlog.integrity.seal_reader import read_sealed_lengths

        sealed = read_sealed_lengths(log)
    for stream, folder in folders:
        try:
            names, others = _segment_names(folder)
        except PermissionError as error:
            if unread is None:
                raise
            unread[stream] = error
            continue
        last_plain = select_current_segments(names).get("")
        for name in names:
            may_grow = name.writer != "" or name == last_plain
            is_newest = may_grow and (stream, name.filename) not in sealed
            segments.append(Segment(log, stream, name, is_newest))
        strangers += others
    return segments, sorted(strangers)


def make_segment_of_file(log: Path, stream: str, filename: str) -> Segment:
    """Return the segment in a file; one with an unusual name, sealed by another program, counts as plain."""
    return Segment(log, stream, SegmentName.parse(filename) or SegmentName("0001-01-01"), is_newest=True)


def may_be_stream(folder: str) -> bool:
    """Whether a folder may be or contain a stream: `.git` may not, but a chat in a channel named `.x` may."""
    return not folder.startswith(".") or "_" in folder


def escape_invalid_utf8(name: Path | str) -> str:
    """Return a file name, or text with file names, with bytes that are not valid UTF-8 escaped."""
    return str(name).encode(errors="backslashreplace").decode()


def _segment_names(folder: Path | int) -> tuple[list[SegmentName], list[Path]]:
    names, others = [], []
    with disk.scan_folder(folder) as entries:
        for entry in entries:
            name = SegmentName.parse(entry.name)
            if name is not None and entry.is_file(follow_symlinks=False):
                names.append(name)
            elif not entry.name.startswith("."):
                others.append(Path(entry.path))
    return sorted(names), others


def _stream_folders(
    log: Path, refused: dict[str, OSError] | None
) -> tuple[list[tuple[str, Path]], list[Path]]:
    if not disk.is_folder(log):
        return [], []
    tops, others = _subfolders(log)
    strangers = [path for path in others if path.name != FORMAT and not is_seals_file(path.name)]
    streams = [(path.name, path) for path in tops if path.name != CONVERSATIONS]
    if log / CONVERSATIONS in tops:
        try:
            chats, unread = _subfolders(log / CONVERSATIONS)
        except PermissionError as error:
            if refused is None:
                raise
            refused[CONVERSATIONS] = error
            chats, unread = [], []
        streams += [(f"{CONVERSATIONS}/{path.name}", path) for path in chats]
        strangers += unread
    return sorted(streams), strangers


def select_existing_streams(log: Path, streams: Iterable[str]) -> list[tuple[str, Path]]:
    """Return the `streams` whose folders exist, with these folders; a folder behind a link does not count."""
    folders = ((stream, log / stream) for stream in sorted(streams))
    return [
        (stream, folder)
        for stream, folder in folders
        if _is_folder(log / stream.partition("/")[0]) and _is_folder(folder)
    ]


def _is_folder(path: Path) -> bool:
    status = status_at(path)
    return status is not None and stat.S_ISDIR(status.st_mode)


def _subfolders(parent: Path) -> tuple[list[Path], list[Path]]:
    folders: list[Path] = []
    others: list[Path] = []
    with disk.scan_folder(parent) as entries:
        for entry in entries:
            if not may_be_stream(entry.name):
                continue
            is_folder = entry.is_dir(follow_symlinks=False) and is_utf8(entry.name)
            (folders if is_folder else others).append(Path(entry.path))
    return folders, others


def is_utf8(name: str) -> bool:
    """Whether a file name is valid UTF-8."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
