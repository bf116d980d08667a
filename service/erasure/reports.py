"""What forgetting and scrubbing report, before and after."""

import msgspec

from memlog.eventlog.reader import Key


class DoomedLine(msgspec.Struct, frozen=True, gc=False):
    """A line of the log that is forgotten.

    id: of its event; of a line without an event its position, `2026-02-24.jsonl:1042`.
    offset, line: where it begins in its segment, in bytes, and its number from 1.
    type: of its event, or the reason why it holds none. words: the beginning of its text.
    """

    id: str
    stream: str
    segment: str
    offset: int
    line: int
    type: str
    words: str

    @property
    def key(self) -> Key:
        """The key by which a redaction names it."""
        return self.stream, self.id


class ForgetReport(msgspec.Struct, kw_only=True):
    """The lines that were forgotten, or would be.

    lines: every line of the log, including duplicates and conflicts of an event.
    redacted: how many redactions were appended; 0 for a dry run.
    already: how many of the events were redacted before.
    vectors: how many vectors were removed from the cache, since no passage has their text any more.
    unreachable: lines in folders that are not streams, where no redaction can be appended: `place/file:line`.
    """

    lines: list[DoomedLine]
    redacted: int = 0
    already: int = 0
    vectors: int = 0
    unreachable: list[str] = []
    dry_run: bool = False


class ScrubReport(msgspec.Struct, kw_only=True):
    """The bytes that were overwritten, or would be.

    lines, bytes, segments: how many hold forgotten events.
    done: whether it was done. generation: the file of the new read model.
    vectors: how many vectors were removed from the cache.
    notes: what a person should know.
    """

    lines: int
    bytes: int
    segments: int
    done: bool = False
    generation: str | None = None
    vectors: int = 0
    notes: list[str] = []
