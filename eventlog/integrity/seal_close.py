"""Seals all segments of a store on request, and accepts losses."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from memlog.eventlog.errors import LogError
from memlog.eventlog.files import locks
from memlog.eventlog.files.folders import opening_folders_of_stream
from memlog.eventlog.integrity.copy_identity import Writer
from memlog.eventlog.integrity.seal_file import SealFiles, draft_seal
from memlog.eventlog.integrity.seal_format import FIRST, Held, Seal
from memlog.eventlog.integrity.seal_losses import Loss, find_altered_segments, find_losses
from memlog.eventlog.log import log_format
from memlog.eventlog.log.layout import LOG
from memlog.eventlog.log.rotation import Rotation
from memlog.eventlog.log.streams import group_segments_by_writer, list_segments
from memlog.eventlog.log.watermarks import OpenLoss, Watermarks


def seal_unsealed_segments(store: Path, *, lock_timeout: float = locks.TIMEOUT) -> list[Seal]:
    """Seal all unsealed segments except those of other writers; return the new seals once durable.

    The current segments are sealed too, so the next append to a stream starts a new segment.

    Raises Busy, and LogError if a segment cannot be read or the seals cannot be written.
    """
    log, made = store / LOG, []
    log_format.check_version_may_write(log)
    written = group_segments_by_writer(list_segments(log)[0])
    if not written:
        return []
    rotation = Rotation(store, lock_timeout=lock_timeout)
    # A plain name belongs to no writer: any copy may seal it.
    own = ("", rotation.writer.find_or_create_name())
    for stream, writer in (key for key in written if key[1] in own):
        deadline = time.monotonic() + lock_timeout
        with (
            _converting_os_errors_to_log_errors(stream),
            opening_folders_of_stream(log, stream) as folders,
            rotation.locking_last_segment(stream, writer, folders, deadline) as segment,
        ):
            made += rotation.seal_segment_and_older_ones(segment, deadline, also_grown=True)
    return made


def accept_losses(store: Path, *, lock_timeout: float = locks.TIMEOUT) -> list[Seal | OpenLoss]:
    """Accept the loss of missing bytes; return the new seals, and the accepted losses of unsealed segments.

    Damaged sealed segments are sealed again as they are now; for unsealed ones, the watermarks are reset to
    the current bytes. Raises the same errors as `seal_unsealed_segments`.
    """
    log = store / LOG
    with _converting_os_errors_to_log_errors(log.name):
        log_format.check_version_may_write(log)
        return [
            *_accept_losses_of_sealed(log, lock_timeout),
            *Watermarks(store).accept_losses(lock_timeout=lock_timeout),
        ]


def _accept_losses_of_sealed(log: Path, lock_timeout: float) -> list[Seal]:
    """Seal damaged sealed segments again as they are now; return the new seals once durable."""
    damaged = [(each.seal, each.held or Held(0, 0, FIRST)) for each in find_altered_segments(log)]
    drafts = [draft_seal(*seal.name, held, max(0, seal.bytes - held.bytes)) for seal, held in damaged]
    if not drafts:
        return []
    writer = Writer(log.parent, lock_timeout=lock_timeout)
    own = SealFiles(log, writer.find_or_create_name()).own
    with own.locking_file(lock_timeout) as fd:
        made = own.append_seals(fd, drafts)
    writer.set_recorded_sizes({seal.name: seal.bytes for seal in made})
    return made


def find_all_losses(store: Path) -> list[Loss | OpenLoss]:
    """Return all losses, of sealed and unsealed segments, that were not accepted. Raises OSError."""
    return [*find_losses(store / LOG), *Watermarks(store).find_losses()]


@contextmanager
def _converting_os_errors_to_log_errors(what: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        message = f"{what}: {error.strerror or error}: it may not have been sealed"
        raise LogError(message, hint="make the log readable and writable, then try again") from error
