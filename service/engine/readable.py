"""Which files of its machine a server reads, or writes, for those who ask: those below one folder."""

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
"""The beginning of the line of an event that makes a folder a source, which is read from then on."""


@contextmanager
def reading_below(root: Path | None) -> Iterator[None]:
    """Let operations read only files below `root` in this context; None: no files at all."""
    before = _ROOT.set(root)
    try:
        yield
    finally:
        _ROOT.reset(before)


def is_bounded() -> bool:
    """Whether it is a server that reads and writes files, for those who ask it."""
    return _ROOT.get() != EVERYTHING


def readable(path: Path) -> Path:
    """Return a path that may be read; a relative one counts from the root.

    Raises:
        BadInput: it may not.
    """
    root = _ROOT.get()
    if root is None:
        raise BadInput(
            "this server does not read or write such files",
            hint="start it with a folder that it may read (root), or may write to (exports)",
        )
    if root == EVERYTHING:
        return path
    try:
        is_below = (root / path).resolve().is_relative_to(root)
    except (OSError, RuntimeError, ValueError):  # a loop of links; a NUL
        is_below = False
    if not is_below:
        raise BadInput("the path is outside of the folder that the server may use", hint="name one in it")
    return root / path


def check_source(event: Draft) -> None:
    """Refuse an event by which the server would read what it may not.

    Raises:
        BadInput: as `readable`; or the root is relative, and would count from somewhere else.
    """
    if _ROOT.get() == EVERYTHING or not event.head.startswith(_SOURCE):
        return
    members: dict[str, Any] = msgspec.json.decode(b"{" + event.tail[1:] + b"}")
    root = members.get("root")
    if root is None:
        return
    if not Path(root).is_absolute():
        raise BadInput("the root of a source is relative", hint="use the operation that adds documents")
    readable(Path(root))
