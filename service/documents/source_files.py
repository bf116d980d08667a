"""The files of a source, read one after the other into events."""

import time
from collections.abc import Callable, Iterator

import msgspec

from memlog.eventlog.events import DocumentIndexed, DocumentRemoved
from memlog.eventlog.quarantine import MAX_LINE
from memlog.eventlog.secrets import masked
from memlog.service.documents import text_files
from memlog.service.documents.folder import SkippedFile, Walk
from memlog.service.documents.readers import Readers
from memlog.service.documents.records import Seen, Sightings
from memlog.service.documents.root import Root
from memlog.service.documents.sources import FileWarning, SourcePlan
from memlog.service.documents.text_files import GONE, Reason, TextFile, Unfit, filetype

FAILURES: tuple[Reason, ...] = ("unreadable", "changing")
"""What may be read when it is tried again."""

UNREAD: tuple[Reason, ...] = (*FAILURES, "no_reader", "limit")
"""Failures that tell nothing about the file's content: its document stays."""

_ENVELOPE_BYTES = 1024
"""More than id, times, version and crc add to an event."""


class Files:
    """The files of a source, read one after the other, so that memory holds one at a time.

    report: counts what becomes of them. seen: what to remember of them.
    """

    def __init__(
        self,
        plan: SourcePlan,
        root: Root,
        found: Walk,
        before: Sightings,
        *,
        readers: Readers,
        redact: bool,
    ) -> None:
        self.report = plan.report()
        self.report.skipped = found.skipped
        self.report.found = len(found.files) + len(found.skipped)
        self.seen: dict[str, Seen] = {}
        self._source_id = plan.registration.source_id
        self._root = root
        self._readers = readers
        self._redact = redact
        self._names = found.files
        self._before = before
        self._versions = plan.versions
        # Nothing can be appended about a document whose name looks like a key: it stays.
        self._gone = {file for file in plan.versions if not self._is_secret(file)}

    def lines(self, note: Callable[[int, int], None]) -> Iterator[bytes]:
        """The events of new and changed files."""
        for number, file in enumerate(self._names, start=1):
            try:
                if (line := self._line_of(file)) is not None:
                    yield line
            finally:
                note(number, len(self._names))

    def removals(self) -> list[DocumentRemoved]:
        """The events of the documents whose files are gone, as far as all was read where they may be."""
        unread = [each.file for each in self.report.skipped if each.reason in UNREAD]
        return [
            DocumentRemoved(source_id=self._source_id, file=file)
            for file in sorted(self._gone)
            if not any(file == path or file.startswith(f"{path}/") for path in unread)
        ]

    def _line_of(self, file: str) -> bytes | None:
        """The event of a file; None if its document is up to date, or it is not a document."""
        moment = time.time_ns()
        try:
            line = None if self._is_up_to_date(file) else self._read(file, moment)
        except GONE:
            self.report.found -= 1
            return None
        except Unfit as unfit:
            self._skip(file, unfit, moment)
            return None
        self._gone.discard(file)
        self.report.unchanged += line is None
        return line

    def _is_secret(self, file: str) -> bool:
        """Whether keys are masked and the name holds one. Names cannot be masked, so the file is not read."""
        return self._redact and masked(file) != file

    def _is_up_to_date(self, file: str) -> bool:
        """Whether a file looks as it did when its document was indexed.

        Raises:
            Unfit: its name is secret, or it looks as it did when it was found to be no document.
        """
        if self._is_secret(file):
            raise Unfit("secret", "its name holds what looks like a key: rename it")
        seen = self._before.files.get(file)
        if seen is None or seen.look != text_files.look_at(self._root, file):
            return False
        if seen.reason == "limit" and self._before.seconds != self._readers.seconds:
            return False
        if seen.reason is not None:
            raise Unfit(seen.reason, seen.detail, seen.look)
        if seen.version != self._versions.get(file):
            return False
        self.seen[file] = seen
        return True

    def _read(self, file: str, moment: int) -> bytes | None:
        """The event of a file; None if the log has its content."""
        text = text_files.read(self._root, file, self._readers)
        if text.warning:
            self.report.warnings.append(FileWarning(file, text.warning))
        line = None if text.version == self._versions.get(file) else _line(self._source_id, file, text)
        if text.look.is_settled(moment):
            self.seen[file] = Seen(text.look, text.version, None)
        return line

    def _skip(self, file: str, unfit: Unfit, moment: int) -> None:
        name = masked(file) if self._redact else file
        self.report.skipped.append(SkippedFile(name, unfit.reason, unfit.detail))
        if unfit.look is not None and unfit.look.is_settled(moment):
            self.seen[file] = Seen(unfit.look, None, unfit.reason, unfit.detail)


def _line(source_id: str, file: str, text: TextFile) -> bytes:
    """The event of a document, as JSON: an event that is encoded here can be measured.

    Raises:
        Unfit: it is longer than an event can be.
    """
    event = DocumentIndexed(
        source_id=source_id,
        file=file,
        filetype=filetype(file),
        mtime=text.mtime,
        size=text.size,
        version=text.version,
        content=text.content,
    )
    line = msgspec.json.encode(event)
    if len(line) > MAX_LINE - _ENVELOPE_BYTES:
        raise Unfit("too_large", look=text.look)
    return line
