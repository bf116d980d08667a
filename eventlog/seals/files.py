"""The seals of a log in all its files, for a writer that adds to its own."""

from collections.abc import Callable
from pathlib import Path

from memlog.eventlog.layout import SEALS, seals_file, seals_files
from memlog.eventlog.seals.file import SealFile
from memlog.eventlog.seals.format import Held, Seal, blanked, holding
from memlog.eventlog.seals.index import SealPlace


class SealFiles:
    """All seals files of a log. Adds seals to the file of `writer` (`own`) alone; in the others it only
    blanks hashes of erased bytes.
    """

    def __init__(self, log: Path, writer: str = "") -> None:
        self.log = log
        self.writer = writer
        own = seals_file(writer)
        self.own = SealFile(log, own)
        self._files = {own: self.own}

    def refresh(self) -> None:
        """Read the files that other processes have changed. Raises OSError."""
        for name in seals_files(self.log):
            if name not in self._files:
                self._files[name] = SealFile(self.log, name)
        for file in self._files.values():
            file.refresh()

    def has_any(self, stream: str, segment: str) -> bool:
        """Whether any line, damaged or not, seals a segment."""
        return any(file.of(stream, segment) for file in self._files.values())

    def last(self, stream: str, segment: str) -> list[Seal]:
        """The last intact seal of a segment in each file that has one."""
        seals = (file.valid(stream, segment) for file in self._files.values())
        return [seal for seal in seals if seal is not None]

    def valid(self, stream: str, segment: str) -> Seal | None:
        """The valid seal of a segment."""
        last = self.last(stream, segment)
        return holding(last) if last else None

    def blank_stale(self, stream: str, segment: str, held: Held, lock_timeout: float) -> None:
        """Blank the hash of each seal of a segment that differs from `held`.

        Raises:
            Busy: another process held a file for too long. OSError: it cannot be written.
        """
        self._blank(stream, segment, lock_timeout, lambda place: not place.seal.is_of(held))

    def blank_all(self, stream: str, segment: str, lock_timeout: float) -> None:
        """Blank the hash of each seal of a segment. Raises as `blank_stale`."""
        self._blank(stream, segment, lock_timeout, lambda _: True)

    def _blank(
        self, stream: str, segment: str, lock_timeout: float, is_due: Callable[[SealPlace], bool]
    ) -> None:
        for name, file in self._files.items():
            if any(is_due(place) and blanked(place.data) != place.data for place in file.of(stream, segment)):
                with file.locked(lock_timeout):
                    due = [place for place in file.of(stream, segment) if is_due(place)]
                    file.blank_hashes(due, keeps_time=name not in (SEALS, seals_file(self.writer)))
