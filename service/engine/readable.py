"""Restricts the files that a server reads or writes for its clients to one folder."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import msgspec

from memlog.eventlog.codec.encode import Draft
from memlog.eventlog.errors import BadInput

EVERYTHING = Path("/")

_ROOT: ContextVar[Path | None] = ContextVar("root", default=EVERYTHING)
_SOURCE = b'{"type":"source_registered"'
"""The beginning of an event line that registers a folder as a source."""


@contextmanager
def allowing_files_below(root: Path | None) -> Iterator[None]:
    """Allow only files below `root` in this context; no files at all if it is None."""
    before = _ROOT.set(root)
    try:
        yield
    finally:
        _ROOT.reset(before)


def is_file_access_restricted() -> bool:
    """Whether access to files is restricted, as on a server."""
    return _ROOT.get() != EVERYTHING


def resolve_readable(path: Path) -> Path:
    """Resolve `path` against the allowed folder.

    Raises:
        BadInput: the result is not below that folder, or no files may be used at all.
    """
    root = _ROOT.get()
    if root is None:
        raise BadInput(
            "this server does not read or write files for this operation",
            hint="start it with a folder that it may read (root) or write (exports)",
        )
    if root == EVERYTHING:
        return path
    try:
        is_below = (root / path).resolve().is_relative_to(root)
    except (OSError, RuntimeError, ValueError):  # a loop of links; a NUL
        is_below = False
    if not is_below:
        raise BadInput("the path is outside the folder that the server may use", hint="use a path inside it")
    return root / path


def check_source_root(event: Draft) -> None:
    """Raise BadInput if an event registers a source whose root is relative or outside the allowed folder."""
    if _ROOT.get() == EVERYTHING or not event.head.startswith(_SOURCE):
        return
    members: dict[str, Any] = msgspec.json.decode(b"{" + event.tail[1:] + b"}")
    root = members.get("root")
    if root is None:
        return
    if not Path(root).is_absolute():
        raise BadInput("the root of a source must be absolute", hint="add it with store.documents.add()")
    resolve_readable(Path(root))
