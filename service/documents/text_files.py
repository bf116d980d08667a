"""Reads text files safely, and lists the types that are read by default."""

import errno
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from io import FileIO
from pathlib import Path, PurePosixPath
from typing import Literal, Self

import msgspec

from memlog.eventlog import timestamps
from memlog.eventlog.codec.hashing import sha256
from memlog.eventlog.files import disk
from memlog.eventlog.files.file_io import file_identity
from memlog.service.engine.sandbox import Extracted, ReaderFailed, Readers

# No link below the root is followed, even if another process replaces a folder by a link meanwhile.


class Root:
    """An open folder, as a context manager. The path itself may be a link.

    Raises:
        OSError: the folder cannot be opened.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._fd = disk.open(path, disk.FOLDER, follow=True)
        self._entered = ("", self._fd)
        """The last folder entered, and its descriptor."""
        self.identity = file_identity(disk.status_of_descriptor(self._fd))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._cache_folder("", self._fd)
        disk.close(self._fd)

    def list_entries(self, folder: str) -> "list[os.DirEntry[str]]":
        """Return the entries of a folder, sorted by name. They are valid until the next call.

        Raises:
            OSError: the folder cannot be listed, or a part of its path is a link.
        """
        with disk.scan_folder(self._open_folder(folder)) as entries:
            return sorted(entries, key=lambda entry: entry.name)

    def open_file(self, file: str) -> int:
        """Open a file for reading, without following a link or waiting for a pipe; return its descriptor.

        Raises:
            OSError: the file, or a folder above it, is gone or a link.
        """
        folder, name = self._open_parent_folder(file)
        return disk.open(name, disk.READ, folder=folder)

    def read_status_of_file(self, path: str) -> os.stat_result:
        """Return the status of a file or, if it is a link, of the link.

        Raises:
            OSError: the file is gone, or a folder above it is gone or a link.
        """
        folder, name = self._open_parent_folder(path)
        return disk.status_of_path(name, folder=folder)

    def check_not_replaced(self) -> None:
        """Raise OSError unless the root's path still leads to this folder."""
        if file_identity(disk.status_of_path(self.path, follow=True)) != self.identity:
            raise OSError(errno.ESTALE, "another folder has replaced it", str(self.path))

    def _open_parent_folder(self, path: str) -> tuple[int, str]:
        """Return the descriptor of a path's folder, and the last name of the path."""
        folder, _, name = path.rpartition("/")
        return self._open_folder(folder), name

    def _open_folder(self, folder: str) -> int:
        """Return the descriptor of a folder, which stays open until the next call."""
        entered, fd = self._entered
        if entered and not f"{folder}/".startswith(f"{entered}/"):
            entered, fd = "", self._fd
            self._cache_folder(entered, fd)
        for name in filter(None, folder[len(entered) :].split("/")):
            fd = disk.open(name, disk.FOLDER, folder=fd)
            entered = f"{entered}/{name}" if entered else name
            self._cache_folder(entered, fd)
        return fd

    def _cache_folder(self, folder: str, fd: int) -> None:
        """Cache the descriptor of a folder, and close the previous descriptor."""
        _, before = self._entered
        self._entered = (folder, fd)
        if before not in (self._fd, fd):
            disk.close(before)


Reason = Literal[
    "hidden",  # its name begins with a dot
    "link",  # symbolic links are not followed
    "special",  # a pipe, a socket, a device
    "store",  # the store itself
    "ignored",  # by a .gitignore
    "type",  # not a default type
    "binary",  # it contains NUL
    "not_utf8",  # its text or its name
    "too_large",
    "no_reader",  # HTML or PDF without the library for it
    "damaged",  # its content does not match its type; with the library's message
    "limit",  # reading it exceeded a limit, which the detail names
    "secret",  # its name looks like a key, and keys are masked
    "changing",  # it changed during every attempt to read it
    "unreadable",  # with the system's message
]
"""Why a file or folder is skipped."""

FILETYPES: dict[str, str] = {
    "markdown": ".md .markdown .mdx",
    "text": ".txt .text",
    "asciidoc": ".adoc .asciidoc",
    "html": ".html .htm",
    "python": ".py .pyi",
    "javascript": ".js .mjs .cjs .jsx",
    "typescript": ".ts .tsx",
    "shell": ".sh .bash .zsh .fish",
    "c": ".c .h",
    "cpp": ".cc .cpp .cxx .hh .hpp .hxx",
    "csharp": ".cs",
    "css": ".css .scss",
    "elixir": ".ex .exs",
    "erlang": ".erl",
    "haskell": ".hs",
    "julia": ".jl",
    "kotlin": ".kt .kts",
    "ocaml": ".ml .mli",
    "perl": ".pl .pm",
    "r": ".r .R",
    "ruby": ".rb",
    "rust": ".rs",
    "yaml": ".yaml .yml",
} | {name: f".{name}" for name in "rst org tex pdf dart go java lua php scala sql swift toml vue zig".split()}
"""The types that are read by default, and their suffixes."""

MAX_BYTES = 10 * 1024 * 1024
"""The largest document, in bytes. An event has at most 16 MiB, and JSON escapes lengthen a text."""

TICK_NS = 2_000_000_000
"""The coarsest timestamp of a file system, FAT's, in nanoseconds: two changes within it may look like one."""

_TRIES = 3
MAX_PDF_BYTES = 100 * 1024 * 1024
"""The largest PDF, in bytes; its images take more room than its text."""

INSTALL = "pip install '.[documents]' in a checkout of memlog"
"""The command that installs the libraries for reading HTML and PDF."""

GONE = (FileNotFoundError, NotADirectoryError)
"""The errors raised for a file that was removed after its folder was listed."""

_TYPE_OF = {suffix: name for name, suffixes in FILETYPES.items() for suffix in suffixes.split()}
_HEAD = 8 * 1024


class Look(msgspec.Struct, frozen=True, array_like=True):
    """The fields of a file's status that reveal a change; times are in nanoseconds since 1970."""

    inode: int
    size: int
    mtime: int
    ctime: int

    @classmethod
    def of_status(cls, status: os.stat_result) -> "Look":
        """Return the look of a file with this status."""
        return cls(status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)

    @property
    def modified(self) -> str | None:
        """`mtime` as RFC 3339 in UTC; None outside the years 1 to 9999."""
        try:
            moment = datetime.fromtimestamp(self.mtime / 1e9, UTC)
        except (ValueError, OverflowError, OSError):
            return None
        return timestamps.normalise_timestamp(moment.isoformat(), naive_is_utc=True)

    def is_settled(self, moment: int) -> bool:
        """Whether a change after `moment`, in nanoseconds since 1970, would be visible.

        Within one clock tick, a file may change again without a change of its times.
        """
        return max(self.mtime, self.ctime) < moment - TICK_NS


class Unfit(Exception):
    """Raised for a file that cannot become a document.

    detail: a message from the system or a library. look: the file's look, if its content is the reason.
    """

    def __init__(self, reason: Reason, detail: str | None = None, look: Look | None = None) -> None:
        super().__init__(detail or reason)
        self.reason: Reason = reason
        self.detail = detail
        self.look = look


class TextFile(msgspec.Struct, frozen=True):
    """The content of a file.

    content: the text, without a byte order mark. warning: the output of the library that read it, or "".
    version: the SHA-256 of its bytes, in hex. look: the file's look, which did not change during the read.
    """

    content: str
    warning: str
    version: str
    look: Look


def filetype_of_suffix(file: str) -> str | None:
    """Return the type implied by a file's suffix; None if the suffix is unknown."""
    suffix = PurePosixPath(file).suffix
    return _TYPE_OF.get(suffix) or _TYPE_OF.get(suffix.lower())


def read_file_look(root: Root, file: str) -> Look:
    """Return the look of a file or, if it is a link, of the link.

    Raises:
        FileNotFoundError, NotADirectoryError: the file is gone.
        Unfit: its status cannot be read.
    """
    with _converting_os_errors_to_unfit():
        return Look.of_status(root.read_status_of_file(file))


def read_text_file(root: Root, file: str, readers: Readers) -> TextFile:
    """Return the text of a file below a root, from a consistent snapshot.

    Raises:
        FileNotFoundError, NotADirectoryError: the file is gone.
        Unfit: it has no text, is unreadable, or keeps changing.
    """
    kind = filetype_of_suffix(file)
    data, look = read_bytes_and_look(lambda: root.open_file(file), is_pdf=kind == "pdf")
    try:
        content, warning = _extract_text(data, kind, readers)
    except Unfit as unfit:
        # These reasons may disappear without a change of the file.
        unfit.look = None if unfit.reason in ("no_reader", "unreadable") else look
        raise
    return TextFile(content, warning, sha256(data).hexdigest(), look)


def read_bytes_and_look(opened: Callable[[], int], *, is_pdf: bool = False) -> tuple[bytes, Look]:
    """Return the bytes of a text or PDF file, and its look.

    Raises the errors of `read_text_file`.

    opened: opens the file without following a link or blocking, since it may have become a pipe.
    """
    with _converting_os_errors_to_unfit(), os.fdopen(opened(), "rb", buffering=0) as file:
        return _read_consistently(file, is_pdf=is_pdf)


def _read_consistently(file: FileIO, *, is_pdf: bool) -> tuple[bytes, Look]:
    """Return a snapshot of a file, whose look is the same before and after the read."""
    for _ in range(_TRIES):
        status = os.fstat(file.fileno())
        look = Look.of_status(status)
        if not stat.S_ISREG(status.st_mode):
            raise Unfit("special")
        if look.size > (MAX_PDF_BYTES if is_pdf else MAX_BYTES):
            raise Unfit("too_large", look=look)
        file.seek(0)
        data = _read_up_to(file, look, is_binary=is_pdf)
        if Look.of_status(os.fstat(file.fileno())) == look and len(data) == look.size:
            return data, look
    raise Unfit("changing")


def _read_up_to(file: FileIO, look: Look, *, is_binary: bool) -> bytes:
    """Return the bytes of a file, and at most one byte beyond its expected size.

    Raises:
        Unfit: the file is binary, and `is_binary` is false.
    """
    found = file.read(_HEAD) or b""
    if b"\0" in found and not is_binary:
        raise Unfit("binary", look=look)
    while len(found) <= look.size and (block := file.read(look.size + 1 - len(found))):
        found += block
    return found


def _extract_text(data: bytes, kind: str | None, readers: Readers) -> Extracted:
    if kind != "pdf":
        if b"\0" in data:
            raise Unfit("binary")
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise Unfit("not_utf8") from error
        if kind != "html":
            return Extracted(text, "")
        data = text.encode()
    try:
        with _converting_os_errors_to_unfit():
            return readers.extract_text(data, kind)
    except ReaderFailed as failed:
        raise Unfit(failed.why, str(failed) or None) from failed


@contextmanager
def _converting_os_errors_to_unfit() -> Iterator[None]:
    """Convert an OSError in this context to Unfit, unless the file is gone."""
    try:
        yield
    except GONE:
        raise
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise Unfit("link") from error
        raise Unfit("unreadable", error.strerror) from error
