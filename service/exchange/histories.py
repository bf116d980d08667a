"""Finds the conversations that other programs keep on this machine, and the ones to be deleted soon."""

import math
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import msgspec

from memlog.eventlog import timestamps
from memlog.eventlog.events import Message
from memlog.projector.catchup import Progress
from memlog.service.exchange.formats import Importer, Used, load_importer
from memlog.service.exchange.source import ForeignFiles, Tables

_DAY = 24 * 60 * 60
_SOON = 7 * _DAY


class FoundHistory(msgspec.Struct, kw_only=True):
    """The conversations that a program keeps in a folder.

    format: the format for importing them. sessions: their number; a subagent belongs to its session.
    messages: their number, including tool calls and results.
    bytes: the total size of the session files. first, last: the times of the first and the last message.
    kept_days: how many days without a change the program keeps a session; None if it deletes none.
    expiring: how many sessions it will delete within a week. expires: when it will delete the next one; a
        time in the past means at its next start.
    """

    format: str
    folder: str
    sessions: int
    messages: int
    bytes: int
    first: str | None
    last: str | None
    kept_days: int | None = None
    expiring: int = 0
    expires: str | None = None


class _Unmasked(ForeignFiles):
    """A program's files, for counting messages without masking, which would take half of the time."""

    def clean_text(self, text: str) -> str:
        """Return the text unchanged."""
        return text


def find_histories(
    home: Path,
    folders: Sequence[Path],
    progress: Progress | None,
    *,
    formats: Sequence[str],
    since: str | None,
) -> Iterator[FoundHistory]:
    """Yield the conversations in the programs' usual folders below `home`, and in `folders`.

    formats: the programs' formats. since: only sessions that changed at or after this time; None for all.
    """
    with closing(Tables()) as tables:
        for name in formats:
            importer = load_importer(name)
            for folder in folders_of_program(name, home, folders):
                source = _Unmasked(folder, tables, since=since)
                files = source.find_files(*importer.sessions)
                if files:
                    yield _describe(name, importer, source, files, progress)


def folders_of_program(format: str, home: Path, folders: Sequence[Path]) -> Iterator[Path]:
    """Yield the existing folders of a program: those in `folders`, then its usual ones below `home`."""
    homes = load_importer(format).homes
    known: set[Path] = set()
    for folder in (*folders, *(path for pattern in homes for path in sorted(home.glob(pattern)))):
        if homes and folder.is_dir() and folder.resolve() not in known:
            known.add(folder.resolve())
            yield folder


def _describe(
    name: str, importer: Importer, source: ForeignFiles, files: list[Path], progress: Progress | None
) -> FoundHistory:
    messages, times = 0, list[str]()
    for number, record in enumerate(importer.read(source)):
        if isinstance(record, Used):
            found = [each for each in record.events if isinstance(each, Message)]
            messages += len(found)
            dated = [each.ts for each in found if each.ts is not None]
            times = [min(times + dated), max(times + dated)] if times or dated else []
        if progress is not None and number % 1000 == 0:
            progress(f"bytes of {name} counted", source.done, source.size)
    if progress is not None:
        progress(f"bytes of {name} counted", source.size, source.size)
    kept = importer.days_kept(source) if importer.days_kept is not None else None
    changed = _find_last_changes(importer, source, files)
    ends = sorted(at + kept * _DAY for at in changed.values()) if kept is not None else []
    return FoundHistory(
        format=name,
        folder=str(source.path),
        sessions=len(changed),
        messages=messages,
        bytes=sum(path.stat().st_size for path in files),
        first=times[0] if times else None,
        last=times[-1] if times else None,
        kept_days=kept,
        expiring=sum(end < time.time() + _SOON for end in ends),
        expires=timestamps.timestamp_from_seconds(ends[0]) if ends else None,
    )


def _find_last_changes(importer: Importer, source: ForeignFiles, files: Sequence[Path]) -> dict[str, float]:
    """Return when the oldest file of each session last changed, in seconds since 1970, keyed by session."""
    assert importer.find_sessions is not None  # a program with a folder of its own has sessions
    names: defaultdict[Path, set[str]] = defaultdict(set)
    for each in importer.find_sessions(source):
        names[each.path].add(each.name)
    changed: dict[str, float] = {}
    for path in files:
        at = path.stat().st_mtime
        changed |= {name: min(at, changed.get(name, math.inf)) for name in names.get(path, {path.stem})}
    return changed
