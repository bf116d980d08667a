"""What is missing of sealed segments, and what is not as it was sealed."""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from memlog.eventlog.errors import LogError
from memlog.eventlog.seals.file import read_seals
from memlog.eventlog.seals.held import held_by, size_of
from memlog.eventlog.seals.lines import Held, Seal, lengths_in
from memlog.eventlog.seals.reading import read_bytes


class Loss(msgspec.Struct, frozen=True):
    """A sealed segment that is gone, or shorter than its seal says. Its stream stops until that is accepted.

    sealed: how many bytes it had. bytes: how many it has; None where it is gone.
    """

    stream: str
    segment: str
    sealed: int
    bytes: int | None

    @property
    def why(self) -> str:
        """For people."""
        now = "is gone" if self.bytes is None else f"has {self.bytes}"
        return f"{self.segment}, sealed with {self.sealed} bytes, {now}"


class Unlike(msgspec.Struct, frozen=True):
    """A sealed segment whose bytes are not those that were sealed. held: None where it is gone."""

    seal: Seal
    held: Held | None

    @property
    def why(self) -> str:
        """For people."""
        sealed = self.seal.bytes
        if self.held is None:
            return f"sealed with {sealed} bytes, is gone"
        if self.held.bytes != sealed:
            return f"sealed with {sealed} bytes, has {self.held.bytes}"
        return f"its {sealed} bytes are not those that were sealed"


def sealed_bytes(log: Path) -> dict[tuple[str, str], int]:
    """How long each sealed segment was, by (stream, segment): what `read_seals` says and no more, faster.

    Raises:
        OSError: the seals cannot be read.
    """
    return lengths_in(read_bytes(log))


def losses(log: Path) -> list[Loss]:
    """The sealed segments that are gone or shorter than their seal says, and nobody has accepted it.

    Raises:
        OSError: the seals, or a segment's folder, cannot be read.
    """
    found = []
    for (stream, segment), sealed in sealed_bytes(log).items():
        size = size_of(log, stream, segment)
        if (size is None and sealed > 0) or (size is not None and size < sealed):
            found.append(Loss(stream, segment, sealed, size))
    return found


def loss_error(found: Sequence[Loss]) -> LogError:
    """The error that says which streams stop."""
    return LogError(
        "; ".join(f"{loss.stream} stops: {loss.why}" for loss in found),
        hint="put back what is missing, or accept the loss: memlog seal --accept-loss",
        code="loss",
        retryable=False,
    )


def unlike(log: Path) -> list[Unlike]:
    """The sealed segments whose bytes are not those that were sealed; every byte is read. Where a hash is
    blank, the length alone is compared.

    Raises:
        OSError: the seals or a segment cannot be read.
    """
    found = []
    for old in read_seals(log).standing.values():
        held = held_by(log, old.stream, old.segment)
        if not _is_like(old, held):
            found.append(Unlike(old, held))
    return found


def _is_like(old: Seal, held: Held | None) -> bool:
    if held is None:
        # What was accepted as lost whole may be gone.
        return old.lost is not None and old.bytes == 0
    return old.bytes == held.bytes if old.is_blank else old.is_of(held)
