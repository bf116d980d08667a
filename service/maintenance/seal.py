"""Seals the segments of a store on demand."""

from typing import Any, Self

import msgspec

from memlog.eventlog.folders import check_store
from memlog.eventlog.layout import SegmentRecord
from memlog.eventlog.seals.close import accept_losses, all_losses, seal_all
from memlog.eventlog.seals.format import Seal
from memlog.eventlog.seals.losses import Loss
from memlog.eventlog.watermarks import OpenLoss
from memlog.eventlog.writer import Log


class SegmentLoss(SegmentRecord, frozen=True, omit_defaults=True):
    """A segment that has lost or changed bytes.

    bytes: its size now; None if it is missing, 0 in its new seal. sealed: its size by its seal; None for one
    without a seal. read: its size when it was read last, without a seal. why: a sentence for people.
    """

    bytes: int | None
    why: str
    sealed: int | None = None
    read: int | None = None

    @classmethod
    def of(cls, loss: Seal | Loss | OpenLoss) -> Self:
        """A loss; of an accepted one that was sealed, by its new seal."""
        if isinstance(loss, Seal):
            lost = loss.lost or 0
            why = f"{loss.segment}: {lost} bytes lost, {loss.bytes} left"
            return cls(*loss.name, loss.bytes, why, sealed=loss.bytes + lost)
        sizes: dict[str, Any] = {"read": loss.read} if isinstance(loss, OpenLoss) else {"sealed": loss.sealed}
        return cls(*loss.name, loss.bytes, loss.why, **sizes)


class SealReport(msgspec.Struct, kw_only=True):
    """The seals of a run.

    sealed: new seals, one for each segment that had none.
    accepted: losses that are accepted from now on.
    lost: losses that are not accepted.
    """

    sealed: list[Seal]
    accepted: list[SegmentLoss]
    lost: list[SegmentLoss]


def seal(log: Log, *, accept_loss: bool) -> SealReport:
    """See `memlog.service.requests.maintenance.Seal`."""
    check_store(log.store)
    made = seal_all(log.store, lock_timeout=log.lock_timeout)
    accepted = accept_losses(log.store, lock_timeout=log.lock_timeout) if accept_loss else []
    return SealReport(
        sealed=made,
        accepted=[*map(SegmentLoss.of, accepted)],
        lost=[*map(SegmentLoss.of, all_losses(log.store))],
    )
