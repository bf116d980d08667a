"""Read-only access to another program's files and tables, for importers."""

import csv
import errno
import io
import json
import os
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from typing import Any, BinaryIO

from memlog.eventlog import timestamps
from memlog.eventlog.codec.hashing import sha256
from memlog.eventlog.files import disk
from memlog.eventlog.log.quarantine import MAX_LINE
from memlog.eventlog.log.streams import conversation_stream, escape_invalid_utf8
from memlog.eventlog.secrets.detection import mask_keys
from memlog.projector.disk_table import DiskTable
from memlog.query.foreign_tables import TablePage
from memlog.service.engine.sandbox import BoundedProcess, MoreRows, ReaderFailed, ReadTable
from memlog.service.exchange.archives import Archive
from memlog.service.exchange.formats import ChosenSessions, Skipped, Unreadable, describe_error
from memlog.service.exchange.maps import RecordMap
from memlog.service.memory.core_markdown import Headings, is_fact_of_project, without_front_matter

_MAX_BYTES = 64 * 2**20
"""The largest text file, in bytes."""

_MAX_RATIO, _MAX_DECOMPRESSED = 1000, 4 * 2**30
"""How much of a compressed file is read: 1,000 times its size, but at least 64 MiB and at most 4 GiB."""

_PIECE = 512
"""How many compressed bytes are decompressed at once, producing at most 16 MiB."""

_INSTALL = "pip install '.[import]' in a checkout of memlog"

_SECONDS = 60
"""Seconds of CPU time for a page of a few thousand rows."""

_INDEX_BYTES = 64 * 2**20
"""The largest -shm file of SQLite in bytes, enough for a WAL of 32 GB."""

_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
"""The byte order marks of UTF-16 files."""

_LONGEST_NAME = 100

_LONGEST_RESULT, _HEAD, _TAIL = 16 * 1024, 12 * 1024, 3 * 1024

_REMEDIES = {
    "locked": "stop the program that writes to it",
    "malformed": "the .recover of the sqlite3 command saves what it can",
    # A journal has to be rolled back.
    "readonly": "its program crashed during a write; start and stop that program, then import again",
}
"""Remedies for SQLite errors, keyed by a word in the message."""

_MILLISECONDS = 1e11
"""The largest time in seconds since 1970, in the year 5138; a larger number is in milliseconds."""


class Tables:
    """Reads tables of SQLite files in a bounded process, which `close` ends."""

    def __init__(self) -> None:
        # The shared reader process may write no file, but SQLite writes an index file for a WAL that a
        # crashed writer left.
        self._process = BoundedProcess(lambda: None, file_bytes=_INDEX_BYTES)
        self.close = self._process.close

    def read_pages(self, path: Path, table: str, known: Collection[str]) -> Iterator[TablePage]:
        """Yield the rows of a table, page by page.

        Raises:
            ReaderFailed: the table is unreadable, or exceeds a limit. OSError: the process cannot be started.
        """
        page, _ = self._process.ask(ReadTable(str(path), table, [*known], _SECONDS), TablePage)
        while True:
            yield page
            if page.is_last or not page.is_known:
                return
            page, _ = self._process.ask(MoreRows(_SECONDS), TablePage)


class ForeignFiles:
    """A file or folder of another program.

    tables: reads the program's databases.
    suffix: `~1f0c9a3e`, for example, if another source uses the same ids.
    project: the only project to read; None for all. log: the store's log, if known.
    map: how records become messages, if the format uses a map.
    archive: the archive that contains the files; None for files on disk.
    is_stored: returns whether a stream of the store has, or had, an event with an id.
    chosen: the only sessions to read; None for all.
    since: only files of a folder that changed at or after this time are read; None for all.
    size, done: the total bytes of the files found last, and of those converted so far.
    unknown: counts of data that was not understood, such as rows with an unknown column, keyed by
        `table.column`.
    where: the line read last.
    """

    def __init__(
        self,
        path: Path,
        tables: Tables,
        suffix: str = "",
        project: str | None = None,
        log: Path | None = None,
        map: RecordMap | None = None,
        archive: Archive | None = None,
        is_stored: Callable[[str, str], bool] = lambda _stream, _name: False,
        chosen: ChosenSessions | None = None,
        since: str | None = None,
    ) -> None:
        self.path, self._tables, self.suffix, self.project = path, tables, suffix, project
        self._log, self.map, self._archive, self._is_stored = log, map, archive, is_stored
        self._chosen = chosen
        self.since = since
        self._had_chat: dict[tuple[str, str], bool] = {}
        self.unknown: Counter[str] = _ShortNames()
        self.where = ""
        self.size = self.done = 0

    def find_files(self, *patterns: str) -> list[Path]:
        """Return the matching files of a folder, sorted, or the path itself if it is a file.

        Links that point outside the folder are left out, and named in `unknown`. If sessions are chosen, only
        their files are returned.
        """
        found = self._find_all_files(*patterns) if self._chosen is None or self._chosen.has_rest else []
        if self._chosen is not None:
            found = sorted(self._chosen.files.get(self.path, ()))
        if self._archive is None:
            self.size = sum(path.stat().st_size for path in found if path.is_file())
        return found

    def count_as_done(self, path: Path) -> None:
        """Add the bytes of a converted file to `done`."""
        if self._archive is None:
            self.done += path.stat().st_size

    def is_chosen(self, session: str) -> bool:
        """Whether to read a session's lines. session: its name; "" for lines that belong to no session."""
        return self._chosen is None or (session in self._chosen.names if session else self._chosen.has_rest)

    def _find_all_files(self, *patterns: str) -> list[Path]:
        if self._archive is not None and self.path == self._archive.path:
            return self._archive.find_files(*patterns)
        if not self.path.is_dir():
            return [self.path]
        shown = (
            path for pattern in patterns for path in self.path.glob(pattern) if not self._is_hidden(path)
        )
        found = {path for path in shown if path.is_file() and self._has_changed(path)}
        outside = {path for path in (*found, *self._linked_folders()) if self._leads_outside(path)}
        self.unknown |= Counter({f"link {self.display_name(path)}" for path in outside})
        return sorted(found - outside)

    def _has_changed(self, path: Path) -> bool:
        return self.since is None or timestamps.timestamp_from_seconds(path.stat().st_mtime) >= self.since

    def _is_hidden(self, path: Path) -> bool:
        return any(part.startswith(".") for part in path.relative_to(self.path).parts)

    def _leads_outside(self, path: Path) -> bool:
        return not path.resolve().is_relative_to(self.path.resolve())

    def _linked_folders(self) -> Iterator[Path]:
        """Yield the links to folders, which no pattern follows."""
        for folder, names, _ in os.walk(self.path):
            names[:] = (name for name in names if not name.startswith("."))
            yield from (path for name in names if (path := Path(folder, name)).is_symlink())

    def find_logs(self, *patterns: str) -> list[Path]:
        """Return the matching files, each once, without its other hard links and its compressed copy."""
        found = self.find_files(*patterns)
        names = {path.name for path in found}
        files: dict[tuple[int, int], Path] = {}
        for number, path in enumerate(found):
            if not (path.suffix == ".zst" and path.stem in names):
                status = None if self._archive is not None else path.stat()
                files.setdefault((status.st_dev, status.st_ino) if status else (-1, number), path)
        return [*files.values()]

    def is_folder(self, path: Path) -> bool:
        """Whether there is a folder at `path`."""
        return path.is_dir() if self._archive is None else self._archive.is_folder(path)

    def is_file_below(self, folder: Path, path: Path) -> bool:
        """Whether there is a file at `path`, and no link on the way leads out of `folder`."""
        if self._archive is not None:
            return self._archive.is_file(path)
        return path.is_file() and path.resolve().is_relative_to(folder.resolve())

    def _open(self, path: Path) -> "io.BufferedReader[Any]":
        return path.open("rb") if self._archive is None else self._archive.open(path)

    def display_name(self, path: Path) -> str:
        """Return the name of a file below the folder, for display."""
        return escape_invalid_utf8(path.relative_to(self.path) if path != self.path else path.name)

    def read_text(self, path: Path) -> str | Unreadable:
        """Return the text of a UTF-8 or UTF-16 file without its byte order mark, or an `Unreadable`."""
        try:
            with self._open(path) as file:
                data = file.read(_MAX_BYTES + 1)
        except OSError as error:
            return Unreadable(self.display_name(path), error.strerror or str(error))
        if len(data) > _MAX_BYTES:
            return Unreadable(self.display_name(path), "more than 64 MiB")
        encoding = "utf-16" if data[:2] in _UTF_16 else "utf-8-sig"
        try:
            return data.decode(encoding)
        except UnicodeDecodeError as error:
            line = data.count(b"\n", 0, error.start) + 1
            why = "neither UTF-8 nor UTF-16 with a byte order mark"
            return Unreadable(f"{self.display_name(path)}: line {line}", why)

    def read_notes(self, path: Path) -> str | Unreadable:
        """Return the text of a Markdown file without its front matter, or an `Unreadable`."""
        text = self.read_text(path)
        return text if isinstance(text, Unreadable) else without_front_matter(text)

    def is_of_user(self, headings: Sequence[tuple[int, str]], key: str, value: str) -> bool:
        """Whether a value below headings, each with its level, is about the user."""
        above = Headings()
        for level, title in headings:
            above.add_heading(level, title)
        return above.are_of_user and not is_fact_of_project(key, value)

    def read_json(self, path: Path) -> Any:  # noqa: ANN401 - whatever it holds
        """Return the decoded JSON of a file, or an `Unreadable`."""
        text = self.read_text(path)
        if isinstance(text, Unreadable):
            return text
        try:
            value = json.loads(text)
            return _without_surrogates(value) if "\\ud" in text.lower() else value
        except (ValueError, RecursionError) as error:
            line = f": line {error.lineno}" if isinstance(error, json.JSONDecodeError) else ""
            return Unreadable(f"{self.display_name(path)}{line}", describe_error(error))

    def without_surrogates(self, value: Any) -> Any:  # noqa: ANN401 - whatever JSON holds
        """Return a value with each lone surrogate in its texts replaced by U+FFFD."""
        return _without_surrogates(value)

    def read_json_lines(self, path: Path) -> Iterator[Any]:
        """Yield the value of each line of a file, holding only one line in memory.

        A line without a value yields an `Unreadable`; an unfinished last line, which its program may still be
        writing, yields `Skipped("tail")`. Blank lines are ignored. A `.zst` file is decompressed.
        """
        number = 0
        try:
            with self._open(path) as opened:
                is_packed = path.suffix == ".zst"
                file = io.BufferedReader(_Decompressed(opened, self._size(path))) if is_packed else opened
                read_line = _line_reader(file)
                while line := read_line(MAX_LINE + 1):
                    number += 1
                    self.where = where = f"{self.display_name(path)}: line {number}"
                    if len(line) > MAX_LINE:
                        while not line.endswith(b"\n") and (line := read_line(MAX_LINE)):
                            pass
                        yield Unreadable(where, "longer than 16 MiB")
                    elif line.strip():
                        yield _parse_line(line, where)
        except OSError as error:
            yield Unreadable(self.display_name(path), error.strerror or str(error))

    def read_csv(self, path: Path) -> Iterator[dict[str, str | None] | Unreadable]:
        """Yield a CSV file's rows, keyed by header; the header's most frequent separator is used."""
        text = self.read_text(path)
        if isinstance(text, Unreadable):
            yield text
            return
        csv.field_size_limit(MAX_LINE)
        separator = max(",;\t|", key=text.partition("\n")[0].count)
        rows = csv.DictReader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
        while True:
            try:
                row = next(rows)
                why = "more cells than the header" if None in row else ""
            except StopIteration:
                return
            except csv.Error as error:
                row, why = {}, f"no CSV: {error}"
            self.where = f"{self.display_name(path)}: line {rows.line_num}"
            yield Unreadable(self.where, why) if why else row

    def new_table(self) -> DiskTable:
        """Return an empty table for data that a format must remember about a large source."""
        return DiskTable()

    def has_chat(self, channel: str, chat_id: str) -> bool:
        """Whether the log has a conversation, even if it was forgotten."""
        if self._log is None:
            return False
        # As it was at first: the import itself creates chats.
        folder = self._log / conversation_stream(channel, chat_id)
        return self._had_chat.setdefault((channel, chat_id), disk.is_folder(folder))

    def has_event(self, channel: str, chat_id: str, event_id: str) -> bool:
        """Whether the log has an event in a conversation, even if it was forgotten."""
        return self._is_stored(conversation_stream(channel, chat_id), event_id)

    def clean_text(self, text: str) -> str:
        """Return a text with keys masked, and NUL and lone surrogates replaced."""
        return mask_keys(text.replace("\0", "\ufffd").encode(errors="replace").decode()).rstrip("\n")

    def shorten_result(self, text: str) -> str:
        """Return a tool's output; if it exceeds 16 KiB, only the first 12 and the last 3 KiB.

        This form must not change, since stored events have it.
        """
        text = self.clean_text(text)  # first: half a key is not recognised
        data = text.encode()
        if len(data) <= _LONGEST_RESULT:
            return text
        middle = f"\n[… {len(data):,} bytes, sha256 {sha256(data).hexdigest()} …]\n"
        return data[:_HEAD].decode(errors="ignore") + middle + data[-_TAIL:].decode(errors="ignore")

    def read_rows(
        self,
        path: Path,
        table: str,
        known: Collection[str],
        *,
        is_optional: bool = False,
        is_streamed: bool = False,
    ) -> Iterator[dict[str, Any] | Unreadable]:
        """Yield the readable rows of an SQLite table, and `Unreadable` for each damaged part.

        known: the columns to read, which may be missing; values in other columns are counted.
        is_optional: whether the table may be missing. is_streamed: whether to yield rows while the table is
                being read, with one page in memory; otherwise all rows are read first, so that a program that
            writes to the file need not wait for appends.
        """
        where = f"{self.display_name(path)}, table {table}"
        try:
            with self._database(path) as database:
                pages = self._tables.read_pages(database, table, known)
                if is_streamed:
                    for page in pages:
                        yield from self._rows_of(page, path, table, known, is_optional=is_optional)
                    return
                read = [*pages]
        except OSError as error:
            yield Unreadable(where, error.strerror or str(error))
            return
        except ReaderFailed as failed:
            yield Unreadable(where, self._add_remedy(path, str(failed)))
            return
        for page in read:
            yield from self._rows_of(page, path, table, known, is_optional=is_optional)

    def _rows_of(
        self, page: TablePage, path: Path, table: str, known: Collection[str], *, is_optional: bool
    ) -> Iterator[dict[str, Any] | Unreadable]:
        where = f"{self.display_name(path)}, table {table}"
        for column, count in page.unknown.items():
            self.unknown[f"{table}.{column}"] += count
        yield from (dict(zip(known, row, strict=True)) for row in page.rows)
        if page.too_long:
            yield Unreadable(where, f"{page.too_long} rows are too long for an event")
        if page.error is not None:
            yield Unreadable(where, self._add_remedy(path, page.error))
        if not page.is_known and not is_optional:
            yield Unreadable(where, "there is no such table")

    def _database(self, path: Path) -> AbstractContextManager[Path]:
        return nullcontext(path) if self._archive is None else self._archive.copied(path)

    def _add_remedy(self, path: Path, error: str) -> str:
        """Return one of SQLite's error messages, with a remedy if one is known."""
        if "not a database" in error:
            with suppress(OSError), self._open(path) as file:
                return f"{error}: it is a zip archive, unpack it" if file.read(2) == b"PK" else error
        return next((f"{error}: {remedy}" for part, remedy in _REMEDIES.items() if part in error), error)

    def modified_at(self, path: Path) -> str:
        """Return a file's modification time, in RFC 3339."""
        seconds = path.stat().st_mtime if self._archive is None else self._archive.modified_at(path)
        return timestamps.timestamp_from_seconds(seconds)

    def _size(self, path: Path) -> int:
        return path.stat().st_size if self._archive is None else self._archive.size(path)

    def parse_time(self, value: object) -> str | None:
        """Parse another program's time: seconds since 1970, or a text, in UTC if it has no offset.

        Return None if there is no valid time; an invalid time is counted in `unknown`.
        """
        if value is None or value == "":
            return None
        try:
            text = str(value).strip()
            if re.fullmatch(r"-?\d+(?:\.\d*)?", text):
                number = float(text)
                return timestamps.timestamp_from_seconds(number / 1000 if number > _MILLISECONDS else number)
            if len(text) == len("2026-02-24"):
                return timestamps.parse_day_or_time(text)
            return timestamps.normalise_timestamp(text, naive_is_utc=True)
        except (ValueError, OverflowError, OSError):
            self.unknown["times that cannot be read"] += 1
            return None


class _ShortNames(Counter[str]):
    """Counts names, keeping only their beginnings: a source may have names of many megabytes."""

    def __getitem__(self, name: str) -> int:
        return super().__getitem__(name[:_LONGEST_NAME])

    def __setitem__(self, name: str, count: int) -> None:
        super().__setitem__(name[:_LONGEST_NAME], count)


class _Decompressed(io.RawIOBase):
    """The content of a zstd file of `size` bytes. Raises OSError if it is damaged or too large."""

    def __init__(self, file: BinaryIO, size: int) -> None:
        try:
            from zstandard import ZstdDecompressor, ZstdError
        except ImportError:
            raise OSError(errno.ENOPKG, f"zstandard is not installed: {_INSTALL}") from None
        self._file, self._error = file, ZstdError
        self._start_frame = ZstdDecompressor().decompressobj
        self._frame, self._rest, self._data = self._start_frame(), b"", memoryview(b"")
        self._left = min(max(_MAX_BYTES, size * _MAX_RATIO), _MAX_DECOMPRESSED)

    def readable(self) -> bool:
        """Whether it is readable: always true."""
        return True

    def readinto(self, buffer: Any, /) -> int:  # noqa: ANN401 - a buffer, which Python 3.11 has no type for
        """Fill the beginning of a buffer, and return the number of bytes; 0 at the end of the file."""
        while not self._data:
            piece = self._rest or self._file.read(_PIECE)
            if not piece and self._frame.eof:
                return 0
            if not piece:
                raise OSError(errno.EIO, "its end is missing")
            if self._frame.eof:
                self._frame = self._start_frame()
            try:
                self._data = memoryview(self._frame.decompress(piece))
            except self._error as error:
                raise OSError(errno.EIO, str(error)) from error
            self._rest = self._frame.unused_data
            self._left -= len(self._data)
            if self._left < 0:
                raise OSError(errno.EFBIG, "decompressed, it is too large")
        filled = self._data[: len(buffer)]
        buffer[: len(filled)] = filled
        self._data = self._data[len(filled) :]
        return len(filled)


def _line_reader(file: "io.BufferedReader[Any]") -> Callable[[int], bytes]:
    """Return a function that reads a line of a UTF-8 or UTF-16 file, as UTF-8, up to a length."""
    if file.peek(2)[:2] not in _UTF_16:
        return file.readline
    text = io.TextIOWrapper(file, "utf-16", errors="replace", newline="\n")
    return lambda length: text.readline(length).encode()


def _parse_line(line: bytes, where: str) -> Any:  # noqa: ANN401 - whatever it holds
    try:
        value = json.loads(line.decode("utf-8-sig"))
        return _without_surrogates(value) if b"\\ud" in line.lower() else value
    except (ValueError, RecursionError) as error:
        is_whole = line.endswith(b"\n") or not line.lstrip(b"\xef\xbb\xbf \t").startswith(b"{")
        return Unreadable(where, describe_error(error)) if is_whole else Skipped("tail")


def _without_surrogates(value: Any) -> Any:  # noqa: ANN401 - whatever JSON holds
    """Return a value with each lone surrogate in its strings replaced by U+FFFD."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, dict):
        return {_without_surrogates(key): _without_surrogates(each) for key, each in value.items()}
    return [*map(_without_surrogates, value)] if isinstance(value, list) else value
