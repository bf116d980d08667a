"""Which files of its machine a server reads for those who ask: those below one folder."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from memlog.eventlog.errors import BadInput

EVERYTHING = Path("/")


def readable(root: Path | None, path: Path) -> Path:
    """A path below `root`, from which a relative one counts; None for an owner that reads no files.

    Raises:
        BadInput: it is not below it.
    """
    if root is None:
        raise BadInput("this server reads no files", hint="start it with a folder that it may read (root)")
    if root == EVERYTHING:
        return path
    try:
        is_below = (root / path).resolve().is_relative_to(root)
    except (OSError, RuntimeError, ValueError):  # a loop of links; a NUL
        is_below = False
    if not is_below:
        raise BadInput("the path is outside of the folder that the server may read", hint="name one in it")
    return root / path


class _SourceRoot(msgspec.Struct):
    type: Any = None
    root: Any = None


def check_sources(root: Path | None, events: Iterable[Any]) -> None:
    """Refuse events that would register files as documents which the server may not read.

    events: members by name, or lines of JSON; what is no event is left to the append.

    Raises:
        BadInput: as `readable`.
    """
    for event in events:
        try:
            found = (
                msgspec.json.decode(event, type=_SourceRoot)
                if isinstance(event, bytes)
                else msgspec.convert(event, _SourceRoot)
            )
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            continue
        if found.type == "source_registered" and isinstance(found.root, str):
            readable(root, Path(found.root))
