"""Faults of the protocol, to see that the simulations find them."""

import os
from typing import Any

import memlog.eventlog.log.writer
from memlog.eventlog.files import disk
from tests.crash.faults.log_scenarios import Writing


def no_sync(writing: Writing) -> None:
    """The bytes of an event are never synced."""
    writing.faults.setattr(disk, "sync_data", lambda fd: None)


def no_folder_sync(writing: Writing) -> None:
    """The name of a new segment is never synced."""
    writing.faults.setattr(disk, "sync", lambda fd: None)


def acknowledged_early(writing: Writing) -> None:
    """An event is acknowledged when it is written, and then synced."""
    sync_data = disk.sync_data

    def late(fd: int) -> None:
        writing.recorder.ack(*writing.submitted)
        sync_data(fd)

    writing.faults.setattr(disk, "sync_data", late)


def truncating_repair(writing: Writing) -> None:
    """A torn tail is cut off, where a newline should end it."""
    write_lines: Any = memlog.eventlog.log.writer.write_lines

    def cut_off(fd: int, lines: list[bytes]) -> list[int]:
        data = disk.read(fd, disk.status_of_descriptor(fd).st_size, 0)
        os.ftruncate(fd, data.rfind(b"\n") + 1)
        offsets: list[int] = write_lines(fd, lines)
        return offsets

    writing.surroundings.setattr(memlog.eventlog.log.writer, "write_lines", cut_off)
