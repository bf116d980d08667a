"""Text files: which types are read unasked, and how a file is read."""

import errno
import os
import stat
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import BinaryIO, Literal

import msgspec

from memlog.eventlog import timestamps

Reason = Literal[
    "hidden",  # its name begins with a dot
    "link",  # symbolic links are not followed
    "special",  # a pipe, a socket, a device
    "store",  # the store itself
    "type",  # of no type that is read unasked
    "binary",  # it holds NUL
    "not_utf8",  # its text, or its name
    "too_large",
    "unreadable",  # the system says why
]
"""Why a file or folder is left out."""

FILETYPES: dict[str, str] = {
    "markdown": ".md .markdown .mdx",
    "text": ".txt .text",
    "rst": ".rst",
    "asciidoc": ".adoc .asciidoc",
    "org": ".org",
    "tex": ".tex",
    "html": ".html .htm",
    "python": ".py .pyi",
    "javascript": ".js .mjs .cjs .jsx",
    "typescript": ".ts .tsx",
    "shell": ".sh .bash .zsh .fish",
    "c": ".c .h",
    "cpp": ".cc .cpp .cxx .hh .hpp .hxx",
    "csharp": ".cs",
    "css": ".css .scss",
    "dart": ".dart",
    "elixir": ".ex .exs",
    "erlang": ".erl",
    "go": ".go",
    "haskell": ".hs",
    "java": ".java",
    "julia": ".jl",
    "kotlin": ".kt .kts",
    "lua": ".lua",
    "ocaml": ".ml .mli",
    "perl": ".pl .pm",
    "php": ".php",
    "r": ".r .R",
    "ruby": ".rb",
    "rust": ".rs",
    "scala": ".scala",
    "sql": ".sql",
    "swift": ".swift",
    "toml": ".toml",
    "vue": ".vue",
    "yaml": ".yaml .yml",
    "zig": ".zig",
}
"""The types that are read unasked, and their suffixes."""

MAX_BYTES = 10 * 1024 * 1024
"""A larger file is no document. An event has at most 16 MiB, and JSON escapes make a text longer."""

_TYPE_OF = {suffix: name for name, suffixes in FILETYPES.items() for suffix in suffixes.split()}
_HEAD = 8 * 1024
_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class Unfit(Exception):
    """A file that is no document; `detail` is what the system says of it."""

    def __init__(self, reason: Reason, detail: str | None = None) -> None:
        super().__init__(detail or reason)
        self.reason: Reason = reason
        self.detail = detail


class TextFile(msgspec.Struct, frozen=True):
    """A file as it was read.

    content: without a byte order mark. version: sha256 of its bytes, in hex. size: in bytes.
    mtime: RFC 3339, UTC; None where it is outside the years 1 to 9999.
    """

    content: str
    version: str
    size: int
    mtime: str | None


def filetype(file: str) -> str | None:
    """The type that a file's suffix names; None where it names none that is read unasked."""
    suffix = PurePosixPath(file).suffix
    return _TYPE_OF.get(suffix) or _TYPE_OF.get(suffix.lower())


def read(path: Path) -> TextFile:
    """The text of a file.

    Raises:
        FileNotFoundError: it is gone.
        Unfit: it holds no text, or cannot be read.
    """
    try:
        # Not to block: what was a file when its folder was listed may be a pipe by now.
        with os.fdopen(os.open(path, _OPEN), "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise Unfit("special")
            data = _bytes(file)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise _unreadable(error) from error
    return TextFile(_text(data), sha256(data).hexdigest(), len(data), _time(status.st_mtime_ns))


def _bytes(file: BinaryIO) -> bytes:
    head = file.read(_HEAD)
    if b"\0" in head:
        raise Unfit("binary")
    data = head + file.read(MAX_BYTES + 1 - len(head))
    if len(data) > MAX_BYTES:
        raise Unfit("too_large")
    return data


def _text(data: bytes) -> str:
    if b"\0" in data:
        raise Unfit("binary")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Unfit("not_utf8") from error


def _unreadable(error: OSError) -> Unfit:
    return Unfit("link") if error.errno == errno.ELOOP else Unfit("unreadable", error.strerror)


def _time(nanoseconds: int) -> str | None:
    try:
        moment = datetime.fromtimestamp(nanoseconds / 1e9, UTC)
    except (ValueError, OverflowError, OSError):
        return None
    return timestamps.normalised(moment.isoformat(), naive_is_utc=True)
