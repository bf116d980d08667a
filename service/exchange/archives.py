"""Reads zip and tar archives in place, as if they were folders; each member is read as a stream."""

import io
import re
import shutil
import stat
import struct
import tarfile
import tempfile
import time
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, NamedTuple, Protocol

from memlog.eventlog.log.streams import escape_invalid_utf8
from memlog.service.exchange.formats import Unreadable

_ENDINGS = (".zip", ".tar", ".tar.gz", ".tgz")
_MAX_MEMBERS = 100_000
_MAX_BYTES = 64 * 2**30
_MAX_RATIO = 1000
"""The highest compression ratio of members. No text reaches a zip bomb's ratio of 1,032."""
_SMALL = 2**20
"""The size in bytes below which the ratio does not matter."""
_MAX_HEADER = 2**20
_LONGEST_NAME = 4096
_UNIX_TIME = 0x5455
"""The id of the zip extra field that holds the modification time in seconds since 1970."""

_GZIP = 31
"""The window size argument that makes zlib expect a gzip header."""
_YEAR_10000 = 253402300800
_ENCRYPTED = 1
_TRUNCATED = "the archive is truncated"
_INPUT_BYTES = 16 * 1024
_BLOCK_BYTES = 256 * 1024
_MAX_MARKS = 256

_ERRORS = (zipfile.BadZipFile, tarfile.TarError, zlib.error, struct.error, EOFError, RuntimeError, ValueError)
"""The errors, besides OSError, of damaged, encrypted and unsupported archives."""


class _Bytes(Protocol):
    def read(self, size: int) -> bytes:
        """Read up to `size` bytes; b"" at the end."""


class _Member(NamedTuple):
    """A file in an archive. name: its path there. seconds: its modification time. opens: opens it."""

    name: PurePosixPath
    size: int
    seconds: float
    opens: Callable[[], _Bytes]


class Archive:
    """The files in an archive, each at a path below the archive's own path.

    problems: the entries that are not read, and why.
    """

    def __init__(self, path: Path, opened: ExitStack) -> None:
        self.path = path
        self.problems: list[Unreadable] = []
        self._members: dict[Path, _Member] = {}
        self._repeats: Counter[PurePosixPath] = Counter()
        self._size, self._total, self._count = 0, 0, 0
        try:
            file = opened.enter_context(path.open("rb"))
            self._size = path.stat().st_size
            if path.name.lower().endswith(".zip"):
                self._add_zip(opened.enter_context(zipfile.ZipFile(file)))
            else:
                self._add_tar(file)
        except (OSError, *_ERRORS) as error:
            self._refuse("", _describe(error))
        self._enter_hidden_folder()

    def _enter_hidden_folder(self) -> None:
        """Use a lone hidden folder, such as `.claude`, as the root: hidden files are not read."""
        tops = {each.name.parts[0] for each in self._members.values()}
        if len(tops) == 1 and (top := tops.pop()).startswith("."):
            inside = ((each.name.relative_to(top), each) for each in self._members.values())
            self._members = {
                self.path / name: each._replace(name=name) for name, each in inside if name.parts
            }

    def find_files(self, *patterns: str) -> list[Path]:
        """Return the paths of the files that match any of the patterns, sorted."""
        wanted = re.compile("|".join(map(_regex_of, patterns)))
        return sorted(path for path, each in self._members.items() if wanted.fullmatch(str(each.name)))

    def is_file(self, path: Path) -> bool:
        """Whether there is a file at `path`."""
        return path in self._members

    def is_folder(self, path: Path) -> bool:
        """Whether any file is below `path`."""
        return any(path in each.parents for each in self._members)

    def size(self, path: Path) -> int:
        """Return the size of a file in bytes."""
        return self._members[path].size

    def modified_at(self, path: Path) -> float:
        """Return a file's modification time, in seconds since 1970."""
        return self._members[path].seconds

    def open(self, path: Path) -> "io.BufferedReader[Any]":
        """Open a file. Raises OSError; so do the file's methods if its data is damaged."""
        with _converting_errors():
            return io.BufferedReader(_Guarded(self._members[path].opens()), _BLOCK_BYTES)

    @contextmanager
    def copied(self, path: Path) -> Iterator[Path]:
        """Yield the path of a temporary copy of a database and its journal. Raises OSError."""
        with tempfile.TemporaryDirectory(prefix="memlog.") as folder:
            for ending in ("", "-wal", "-journal"):
                each = path.with_name(path.name + ending)
                if self.is_file(each):
                    # Not under its own name, which may be anything.
                    with self.open(each) as source, Path(folder, f"database{ending}").open("xb") as copy:
                        shutil.copyfileobj(source, copy)
            yield Path(folder, "database")

    def _add_zip(self, archive: zipfile.ZipFile) -> None:
        for each in archive.infolist():
            mode = each.external_attr >> 16
            is_plain = each.compress_type in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
            is_readable = is_plain and not each.flag_bits & _ENCRYPTED
            why = None if is_readable else "encrypted, or not compressed by deflate: unpack the archive"
            if stat.S_IFMT(mode) not in (0, stat.S_IFREG, stat.S_IFDIR):
                why = "a link or device"
            if each.file_size > max(_SMALL, _MAX_RATIO * each.compress_size):
                why = f"more than {_MAX_RATIO:,} times its compressed size"
            opens = _opener(archive, each)
            # Old programs of Windows write its separators.
            name = each.filename.replace("\\", "/") if each.create_system == 0 else each.filename
            if not self._add(name, each.file_size, _zip_seconds(each), opens, why, each.is_dir()):
                return

    def _add_tar(self, file: BinaryIO) -> None:
        is_gzip = file.read(2) == b"\x1f\x8b"
        file.seek(0)
        most = min(_MAX_BYTES, max(_SMALL, _MAX_RATIO * self._size))
        whole: _Readable = _Gunzipped(file, most) if is_gzip else _Plain(file)
        with tarfile.open(fileobj=_Headers(whole), mode="r:") as archive:
            while (each := archive.next()) is not None:
                archive.members.clear()  # type: ignore[attr-defined] # else it keeps all headers
                why = None if each.isdir() or (each.isreg() and not each.issparse()) else "a link or device"
                opens = _slicer(whole, each.offset_data, each.size)
                if not self._add(each.name, each.size, each.mtime, opens, why, each.isdir()):
                    return

    def _add(
        self,
        name: str,
        size: int,
        seconds: float,
        opens: Callable[[], _Bytes],
        why: str | None,
        is_folder: bool,
    ) -> bool:
        """Add a member unless it is refused; return False if there are too many."""
        self._count += 1
        if size < 0:
            raise OSError("a negative size")
        if self._count > _MAX_MEMBERS:
            self._refuse("", f"more than {_MAX_MEMBERS:,} members: the others are left out; unpack it")
            return False
        if len(name) > _LONGEST_NAME:
            why, name = "its name is too long", f"{name[:_LONGEST_NAME]}…"
        plain = PurePosixPath(name)
        if plain.is_absolute() or ".." in plain.parts or re.match(r"[A-Za-z]:", name):
            why = "its name leads outside the archive"
        if why is None and not is_folder and name.lower().endswith(_ENDINGS):
            why = "an archive in an archive: unpack it, and import it by itself"
        if why is None and self._total + size > _MAX_BYTES:
            why = "more than 64 GiB in all"
        if why is not None:
            self._refuse(name, why)
        elif not is_folder and plain.parts:
            self._total += size
            path = self.path / plain
            while path in self._members:  # each entry of a repeated name is read
                self._repeats[plain] += 1
                path = self.path / f"#{self._repeats[plain]}" / plain
            self._members[path] = _Member(plain, size, seconds if 0 <= seconds < _YEAR_10000 else 0, opens)
        return True

    def _refuse(self, name: str, why: str) -> None:
        where = f"{self.path.name}: {name}" if name else self.path.name
        self.problems.append(Unreadable(escape_invalid_utf8(where), why))


@contextmanager
def opened_archive(path: Path) -> Iterator[Archive | None]:
    """Yield the archive at `path`; None if it is not a file with an archive suffix."""
    if not path.name.lower().endswith(_ENDINGS) or not path.is_file():
        yield None
        return
    with ExitStack() as opened:
        yield Archive(path, opened)


def _regex_of(pattern: str) -> str:
    """Return a regular expression for a `Path.glob` pattern; hidden files never match."""
    parts = [
        r"(?:[^/.][^/]*/)*" if part == "**" else rf"(?!\.){re.escape(part)}/"
        for part in pattern.replace("*", "\0").replace("\0\0", "**").split("/")
    ]
    return "".join(parts).removesuffix("/").replace("\0", "[^/]*")


@contextmanager
def _converting_errors() -> Iterator[None]:
    try:
        yield
    except _ERRORS as error:
        raise OSError(_describe(error)) from error


def _describe(error: Exception) -> str:
    if isinstance(error, EOFError):
        return _TRUNCATED
    return (error.strerror if isinstance(error, OSError) else None) or str(error) or "the archive is damaged"


def _zip_seconds(member: zipfile.ZipInfo) -> float:
    rest = member.extra
    while len(rest) >= 4:
        kind, length = int.from_bytes(rest[:2], "little"), int.from_bytes(rest[2:4], "little")
        if kind == _UNIX_TIME and length >= 5 and rest[4] & 1:
            return int.from_bytes(rest[5:9], "little", signed=True)
        rest = rest[4 + length :]
    try:
        return time.mktime((*member.date_time, 0, 0, -1))  # of an unknown zone: the local one
    except (ValueError, OverflowError):
        return 0


def _opener(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Callable[[], _Bytes]:
    return lambda: archive.open(member)


def _slicer(whole: "_Readable", start: int, size: int) -> Callable[[], _Bytes]:
    return lambda: _Slice(whole, start, size)


class _Readable(Protocol):
    def read_at(self, at: int, size: int) -> bytes:
        """Return up to `size` bytes at `at`; b"" at the end."""


class _Plain:
    """The bytes of a file."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def read_at(self, at: int, size: int) -> bytes:
        """Return up to `size` bytes at `at`; b"" at the end."""
        self._file.seek(at)
        return self._file.read(size)


class _Mark(NamedTuple):
    """A decompression state. at: bytes produced. read: bytes read. rest: bytes read but not used yet."""

    at: int
    read: int
    rest: bytes
    inflate: Any


class _Gunzipped:
    """The content of a gzip file. Saved decompression states let a read resume from the nearest one."""

    def __init__(self, file: BinaryIO, most: int) -> None:
        self._file, self._most = file, most
        self._marks = [_Mark(0, 0, b"", zlib.decompressobj(_GZIP))]
        self._distance = 2**22
        self._go_to(self._marks[0])

    def read_at(self, at: int, size: int) -> bytes:
        """Return up to `size` bytes at `at`; b"" at the end. Raises zlib.error and OSError."""
        mark = next(each for each in reversed(self._marks) if each.at <= at)
        if at < self._at or mark.at > self._at:
            self._go_to(mark)
        while self._at + len(self._block) <= at:
            if not self._inflate_next():
                return b""
        start = at - self._at
        return self._block[start : start + size]

    def _go_to(self, mark: _Mark) -> None:
        self._at, self._read, self._rest, self._block = mark.at, mark.read, mark.rest, b""
        self._inflate = mark.inflate.copy()

    def _inflate_next(self) -> bool:
        self._at += len(self._block)
        self._block = b""
        if self._at > self._most:
            raise OSError(f"a bomb: more than 64 GiB or {_MAX_RATIO:,} times the size of the archive")
        if self._at >= self._marks[-1].at + self._distance:
            self._add_mark()
        while not self._block:
            if self._inflate.eof:  # zeros may fill up the file
                self._rest = self._rest.lstrip(b"\0")
            if not self._rest and not self._read_more():
                if self._inflate.eof:
                    return False
                raise OSError(_TRUNCATED)
            if self._inflate.eof:
                self._inflate = zlib.decompressobj(_GZIP)  # another member of the gzip file
                continue
            self._block = self._inflate.decompress(self._rest, _BLOCK_BYTES)
            self._rest = self._inflate.unused_data if self._inflate.eof else self._inflate.unconsumed_tail
        return True

    def _read_more(self) -> bool:
        self._file.seek(self._read)
        self._rest = self._file.read(_INPUT_BYTES)
        self._read += len(self._rest)
        return bool(self._rest)

    def _add_mark(self) -> None:
        self._marks.append(_Mark(self._at, self._read, self._rest, self._inflate.copy()))
        if len(self._marks) > _MAX_MARKS:
            del self._marks[1::2]
            self._distance *= 2


class _Slice:
    """A member of a tar file."""

    def __init__(self, whole: _Readable, start: int, size: int) -> None:
        self._whole, self._at, self._end = whole, start, start + size

    def read(self, size: int) -> bytes:
        """Read up to `size` bytes; b"" at the end."""
        left = min(size, self._end - self._at)
        data = self._whole.read_at(self._at, left) if left > 0 else b""
        if left > 0 and not data:
            raise OSError(_TRUNCATED)
        self._at += len(data)
        return data


class _Headers(io.RawIOBase):
    """Reads the headers of a tar file; refuses a header of more than 1 MiB."""

    def __init__(self, whole: _Readable) -> None:
        super().__init__()
        self._whole, self._at = whole, 0

    def readable(self) -> bool:
        """Whether it is readable: always true."""
        return True

    def tell(self) -> int:
        """Return the current position."""
        return self._at

    def seek(self, at: int, whence: int = 0) -> int:
        """Move to `at`, counted from the beginning or, if `whence` is not 0, from the current position."""
        self._at = at if whence == 0 else self._at + at
        return self._at

    def read(self, size: int = -1) -> bytes:
        """Read `size` bytes; fewer only at the end. Raises OSError if `size` exceeds 1 MiB."""
        if not 0 <= size <= _MAX_HEADER:
            raise OSError("a header of more than 1 MiB")
        data = b""
        while len(data) < size and (part := self._whole.read_at(self._at, size - len(data))):
            data += part
            self._at += len(part)
        return data


class _Guarded(io.RawIOBase):
    """A member that raises all its errors as OSError."""

    def __init__(self, member: _Bytes) -> None:
        super().__init__()
        self._member = member

    def readable(self) -> bool:
        """Whether it is readable: always true."""
        return True

    def readinto(self, buffer: Any) -> int:  # noqa: ANN401 - a writable buffer
        """Read into a buffer, and return the number of bytes. Raises OSError."""
        with _converting_errors():
            data = self._member.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)
