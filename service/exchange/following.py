"""Follows the conversations that agents write on this machine: imports each turn soon after it is written.

A pass imports each session file that has changed since the last pass as a source of its own: whatever a host
does to its files (growing, rotation, truncation, rewriting, deletion) has the same effect as in any import.
The prompt history is left out, since a host writes a prompt there before its session exists.
"""

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path

import msgspec

from memlog.eventlog.errors import MemlogError
from memlog.eventlog.files.file_io import file_version, status_at
from memlog.eventlog.files.folder_events import ChangeHints
from memlog.service.engine.create import replace_settings_file
from memlog.service.exchange.formats import load_importer
from memlog.service.exchange.histories import folders_of_program
from memlog.service.exchange.importing import ImportReport, draw_run_id
from memlog.service.exchange.incoming import ImportedRecords
from memlog.service.exchange.source import ForeignFiles, Tables

_STEP_MS, _GROUP_MS, _TICK_MS = 100, 200, 1000
_SWEEP_SECONDS = 30.0
"""Seconds between checks of all folders, since a notification from the file system may be missing."""

_WRITE_SECONDS = 60.0

_SHARE = 4
"""The pause after a pass, as a multiple of the pass's duration: reading 2,000 messages takes 0.2 s, and an
agent may write several lines a second."""

_LONGEST_PAUSE = 30.0
_SLACK = 2.0
"""Seconds by which a file's time may be older than its change."""

_FILE = "followed.json"


ImportFiles = Callable[[str, Sequence[Path], str, ImportedRecords], Iterable[ImportReport]]
"""Imports session files, and returns a report for each project. Takes the format, the files, the import id,
and the records imported before."""


class ConversationFollower:
    """Imports new messages from the conversations of some programs until it is stopped.

    hosts: the programs' formats. home, folders: where they keep their conversations; see
        `folders_of_program`. state: the folder for the record of the times up to which conversations have
        been imported.
    notify: called with each new problem.
    """

    def __init__(
        self,
        hosts: Sequence[str],
        home: Path,
        folders: Sequence[Path],
        state: Path,
        import_files: ImportFiles,
        notify: Callable[[str], None],
    ) -> None:
        self._hosts, self._home, self._folders = hosts, home, folders
        self._state, self._import_files, self._notify = state / _FILE, import_files, notify
        self._run = draw_run_id()
        self._imported = ImportedRecords()
        self._times = self._read_times()
        self._versions: dict[Path, tuple[object, ...]] = {}
        self._problems: dict[str, str] = {}
        self._written = 0.0

    def run_until(self, stop: threading.Event) -> None:
        """Follow until `stop` is set."""
        hints = ChangeHints(
            is_deep=True, stop=stop, step_ms=_STEP_MS, group_ms=_GROUP_MS, tick_ms=_TICK_MS, rests=False
        )
        with closing(hints):
            # Watched before the first pass, so that a change during it ends the next wait.
            hints.wait_for_changes([folder for _, folder in self._places()], 0)
            while not stop.is_set():
                began = time.monotonic()
                self.run_once()
                stop.wait(min(_LONGEST_PAUSE, _SHARE * (time.monotonic() - began)))
                self._wait_for_changes(hints, stop)
        self._write_times()

    def _wait_for_changes(self, hints: ChangeHints, stop: threading.Event) -> None:
        """Wait for a change or the next sweep; a new folder of a host is a change."""
        until = time.monotonic() + _SWEEP_SECONDS
        while not stop.is_set() and time.monotonic() < until:
            if hints.wait_for_changes([folder for _, folder in self._places()], _TICK_MS / 1000):
                return

    def run_once(self) -> None:
        """Import the files that have changed since the last pass."""
        for host, folder in self._places():
            began = time.time()
            changed = self._find_changed_files(host, folder)
            if not changed:
                continue
            try:
                for report in self._import_files(host, [*changed], self._run, self._imported):
                    self._run = report.run or self._run  # another one if this one was undone
            except (MemlogError, OSError) as error:
                if self._problems.get(host) != str(error):
                    self._notify(f"{host}: {error}")
                self._problems[host] = str(error)
                self._imported.clear()
            else:
                self._problems.pop(host, None)
                self._versions |= changed
                self._times[str(folder)] = began
        if time.monotonic() - self._written >= _WRITE_SECONDS:
            self._write_times()

    def _places(self) -> Iterator[tuple[str, Path]]:
        for host in self._hosts:
            yield from ((host, folder) for folder in folders_of_program(host, self._home, self._folders))

    def _find_changed_files(self, host: str, folder: Path) -> dict[Path, tuple[object, ...]]:
        """Return the versions of the files that have changed, keyed by path."""
        with closing(Tables()) as tables:
            files = ForeignFiles(folder, tables).find_files(*load_importer(host).sessions)
        changed: dict[Path, tuple[object, ...]] = {}
        for path in files:
            # SQLite writes beside the file first.
            found = [status_at(path.with_name(path.name + side)) for side in ("", "-wal")]
            version = tuple(map(file_version, found))
            # A file that was moved or restored has an old time, but a new change of its status.
            last = max((max(each.st_mtime, each.st_ctime) for each in found if each is not None), default=0.0)
            is_known = path in self._versions or last < self._times.get(str(folder), 0.0) - _SLACK
            if not is_known or self._versions.get(path, version) != version:
                changed[path] = version
            else:
                self._versions[path] = version
        return changed

    def _read_times(self) -> dict[str, float]:
        with suppress(OSError, msgspec.MsgspecError):
            return msgspec.json.decode(self._state.read_bytes(), type=dict[str, float])
        return {}  # all files are read again, which brings nothing twice

    def _write_times(self) -> None:
        self._written = time.monotonic()
        with suppress(OSError, MemlogError):
            replace_settings_file(self._state, msgspec.json.encode(self._times).decode())
