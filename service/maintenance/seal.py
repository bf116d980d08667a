"""Seals the segments of a store on demand."""

import msgspec

from memlog.eventlog.folders import check_store
from memlog.eventlog.seals.close import accept_losses, all_losses, seal_all
from memlog.eventlog.seals.format import Seal
from memlog.eventlog.seals.losses import Loss
from memlog.eventlog.watermarks import OpenLoss
from memlog.eventlog.writer import Log


class SealReport(msgspec.Struct, kw_only=True):
    """The seals of a run.

    sealed: new seals, one for each segment that had none.
    accepted: losses that are accepted from now on.
    lost: losses that are not accepted: each says why.
    """

    sealed: list[Seal]
    accepted: list[Seal | OpenLoss]
    lost: list[Loss | OpenLoss]

    def accepted_texts(self) -> list[str]:
        """The accepted losses, for people."""
        return [
            f"{loss.stream}/{loss.why}"
            if isinstance(loss, OpenLoss)
            else f"{loss.stream}/{loss.segment}: {loss.lost} bytes lost, {loss.bytes} left"
            for loss in self.accepted
        ]


def seal(log: Log, *, accept_loss: bool) -> SealReport:
    """See `memlog.service.requests.maintenance.Seal`."""
    check_store(log.store)
    made = seal_all(log.store, lock_timeout=log.lock_timeout)
    accepted = accept_losses(log.store, lock_timeout=log.lock_timeout) if accept_loss else []
    return SealReport(sealed=made, accepted=accepted, lost=all_losses(log.store))
