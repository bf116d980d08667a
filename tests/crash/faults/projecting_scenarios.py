"""What is done to the read model while the power may be cut at any operation, SQLite's own among them."""

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner

import memlog
from memlog.cli.process.main import memlog_command
from memlog.eventlog.log.writer import Log
from tests.crash.faults.power_cuts import SimulatedDisk
from tests.crash.faults.recovery import log_bytes, message
from tests.support.recorded_disk import SnapshotDisk, Trace
from tests.support.system_calls import traced

MEMLOG = (str(Path(sys.executable).parent / "memlog"),)
"""The installed command."""


def nothing(store: Path) -> None:
    """There is no read model yet."""


def one_that_is_behind(store: Path) -> None:
    """There is a read model, and the log has grown since."""
    project(store)
    append(store, "new-1", "new-2", "new-3")


def one_and_a_predecessor(store: Path) -> None:
    """There are two generations."""
    project(store)
    project(store, from_scratch=True)


@dataclass(frozen=True)
class Scenario:
    """prepare: makes what stands before. arguments: of the command during which the power is cut."""

    prepare: Callable[[Path], None]
    arguments: tuple[str, ...]
    has_vectors: bool = False


SCENARIOS = {
    "first project": Scenario(nothing, ("project", "--no-embed")),
    "catch up": Scenario(one_that_is_behind, ("project", "--no-embed")),
    "generation switch": Scenario(one_and_a_predecessor, ("project", "--no-embed", "--from-scratch")),
    "vectors": Scenario(one_that_is_behind, ("project",), has_vectors=True),
}


@dataclass
class Traced:
    """What a command asked of the disk; `disk` is as it was before.

    digest: of a replay of the log.
    log: the bytes of the log, by path in the store.
    ids: of the events in the log.
    had_one: whether a read model stood before.
    """

    scenario: Scenario
    disk: SimulatedDisk
    trace: Trace
    digest: str
    log: dict[Path, bytes]
    ids: set[str]
    had_one: bool


def traced_projection(
    name: str, root: Path, output: Path, command: tuple[str, ...] = MEMLOG, *, by_strace: bool = True
) -> Traced:
    """Prepare a scenario in the empty folder `root`, and run its command.

    command: runs memlog with the arguments that follow, as a process of its own.
    output: where strace is to write.
    by_strace: else the command runs in this process, and SQLite's files are as memlog's own calls find them.
    """
    scenario, store = SCENARIOS[name], root / "store"
    append(store, *[f"old-{number}" for number in range(8)])
    scenario.prepare(store)
    simulated, had_one = SimulatedDisk(root), (store / "model" / "CURRENT").exists()
    arguments = ["--store", str(store), *scenario.arguments]
    if by_strace:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("MEMLOG_")}
        trace = traced([*command, *arguments], store, output, env=environment)
    else:
        trace = _snapshots(store, arguments)
    project(store, from_scratch=True)
    with memlog.open(store) as opened:
        ids = {hit.id for hit in opened.search("tea", k=100, mode="text").hits}
        return Traced(
            scenario, simulated, trace, opened.maintenance.digest(), relative_log(store), ids, had_one
        )


def _snapshots(store: Path, arguments: list[str]) -> Trace:
    recorder = SnapshotDisk(store)
    with pytest.MonkeyPatch.context() as monkeypatch:
        recorder.install(monkeypatch)
        done = CliRunner().invoke(memlog_command, arguments, standalone_mode=False)
        if done.exception is not None:
            raise done.exception
    return recorder.trace


def project(store: Path, *, from_scratch: bool = False) -> None:
    """Bring the read model up to the log, in this process."""
    with memlog.open(store) as opened:
        opened.maintenance.project(from_scratch=from_scratch, embed=False)


def append(store: Path, *ids: str) -> None:
    """Events whose text has the word tea."""
    Log(store).append([message(each, f"tea of {each}") for each in ids])


def relative_log(store: Path) -> dict[Path, bytes]:
    """The bytes of the log, by path in the store."""
    return {path.relative_to(store): data for path, data in log_bytes(store).items()}
