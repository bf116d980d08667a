"""Explains files below `log/` that are not read, and what to do about them."""

import re
from pathlib import Path

from memlog.eventlog.copy_identity import name_from
from memlog.eventlog.layout import CONVERSATIONS, FORMAT
from memlog.eventlog.seals.measure import held_by, size_of
from memlog.eventlog.streams import SegmentName, shown

_CONFLICT_COPY = re.compile(
    rf"(?:(?P<day>\d{{4}}-\d\d-\d\d)|seals|{FORMAT})\b.*conflict.*", re.ASCII | re.IGNORECASE | re.DOTALL
)
_MOVE_OUT = "move it out of log/"


def is_conflict_copy(filename: str) -> bool:
    """Whether the name is a file sync's for a second version of a file of the log.

    Syncthing writes `2026-11-23.k7f3qz.sync-conflict-20261123-101500-ABCDEFG.jsonl`, Dropbox and Nextcloud
    `2026-11-23.k7f3qz (conflicted copy 2026-11-23).jsonl`.
    """
    return _CONFLICT_COPY.fullmatch(filename) is not None


def why_not_read(log: Path, path: Path) -> str:
    """A sentence for people."""
    what = "a conflict copy of a file sync" if is_conflict_copy(path.name) else "no segment"
    return f"{shown(path.relative_to(log.parent))} is {what}: not read"


def remedy(log: Path, path: Path) -> str:
    """What to do about an unread file."""
    conflict = _CONFLICT_COPY.fullmatch(path.name)
    if conflict is not None and conflict["day"] and path.parent not in (log, log / CONVERSATIONS):
        return _segment_remedy(log, path, conflict["day"])
    if conflict is not None and path.name.startswith(FORMAT):
        return f"{_MOVE_OUT}; if its number is the greater one, replace log/{FORMAT} by it"
    return _MOVE_OUT


def _segment_remedy(log: Path, path: Path, day: str) -> str:
    """Advises to rename a conflict copy, so that it is a segment of a writer of its own.

    The name depends on the bytes: a conflict copy on two machines gets one name, and two conflict copies get
    two, so no merge replaces a file by another.
    """
    stream = path.parent.relative_to(log).as_posix()
    try:
        held = held_by(log, stream, path.name)
    except OSError as error:
        return f"make it readable ({error.strerror}), then try again"
    if held is None or SegmentName.parse(f"{day}.jsonl") is None:
        return _MOVE_OUT
    # Imported here: few logs have conflict copies.
    from shlex import quote

    segment = path.with_name(SegmentName(day, 0, name_from(bytes.fromhex(held.sha256))).filename)
    copy, target = (quote(shown(file.relative_to(log.parent))) for file in (path, segment))
    # A scrub keeps the size.
    if (size_of(log, stream, segment.name) or -1) >= held.bytes:
        return f"{target} has its events: in the store's folder, rm {copy}"
    return f"rename it, and its events are read, each once: in the store's folder, mv {copy} {target}"
