"""The seals of a log in all its files, for a writer that adds some to its own."""

from collections.abc import Callable
from pathlib import Path

from memlog.eventlog.layout import SEALS, seals_file, seals_files
from memlog.eventlog.seals.file import SealFile
from memlog.eventlog.seals.format import Held, Seal, blanked, holding
from memlog.eventlog.seals.index import SealPlace


class SealFiles:
    """own: the file of `writer`, the only one that it adds seals to. In the others it blanks hashes of which
    the bytes were erased, and changes nothing else.
    """

    def __init__(self, log: Path, writer: str = "") -> None:
        self.log = log
        self.writer = writer
        own = seals_file(writer)
        self.own = SealFile(log, own)
        self._files = {own: self.own}

    def refresh(self) -> None:
        """Read what other processes changed.

        Raises:
            OSError: a file cannot be read.
        """
        for name in seals_files(self.log):
            if name not in self._files:
                self._files[name] = SealFile(self.log, name)
        for file in self._files.values():
            file.refresh()

    def has_any(self, stream: str, segment: str) -> bool:
        """Whether a line of any file, damaged or not, is a seal of a segment."""
        return any(file.of(stream, segment) for file in self._files.values())

    def last(self, stream: str, segment: str) -> list[Seal]:
        """The last whole seal of a segment in each file that has one."""
        found = (file.standing(stream, segment) for file in self._files.values())
        return [seal for seal in found if seal is not None]

    def standing(self, stream: str, segment: str) -> Seal | None:
        """The seal of a segment that holds."""
        last = self.last(stream, segment)
        return holding(last) if last else None

    def blank_stale(self, stream: str, segment: str, held: Held, lock_timeout: float) -> None:
        """Take the hash out of each seal of a segment that says anything else than `held`.

        Raises:
            Busy: another process held a file for too long. OSError: it cannot be written.
        """
        self._blank(stream, segment, lock_timeout, lambda place: not place.seal.is_of(held))

    def blank_all(self, stream: str, segment: str, lock_timeout: float) -> None:
        """Take the hash out of each seal of a segment. Raises as `blank_stale`."""
        self._blank(stream, segment, lock_timeout, lambda _: True)

    def _blank(
        self, stream: str, segment: str, lock_timeout: float, is_due: Callable[[SealPlace], bool]
    ) -> None:
        for name, file in self._files.items():
            if any(is_due(place) and blanked(place.data) != place.data for place in file.of(stream, segment)):
                with file.locked(lock_timeout):
                    due = [place for place in file.of(stream, segment) if is_due(place)]
                    file.blank_hashes(due, keeps_time=name not in (SEALS, seals_file(self.writer)))
