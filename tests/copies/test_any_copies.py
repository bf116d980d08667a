"""Any history of copies of one store: whatever each appends, seals, forgets and scrubs, and whatever part is
copied when, they are one store once each has all files, and nothing that was acknowledged is lost."""

import json
import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any, NamedTuple, TypeVar
from unittest import mock

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)
from hypothesis.strategies import DataObject, SearchStrategy

import memlog
from memlog.eventlog.codec.encode import draft_event
from memlog.eventlog.integrity.seal_close import find_all_losses, seal_unsealed_segments
from memlog.eventlog.integrity.seal_reader import read_sealed_lengths
from memlog.eventlog.integrity.verify import check_log
from memlog.eventlog.log.writer import Log
from memlog.eventlog.positions import Position
from memlog.projector.lifecycle import Projector
from memlog.projector.verify import hash_dump, verify_read_model
from tests.copies.file_sync import FileSync, files_in
from tests.support.drawn_events import EVENTS, ONE_THING, conversations, memories, saved
from tests.support.in_memory import memory
from tests.support.row_checks import check_rows

T = TypeVar("T")

pytestmark = pytest.mark.deep

HISTORIES = 300
PARTS = 3
STEPS = 13
MOST_COPIES = 5
ACTIONS = {
    "append": 6,
    "append_again": 2,
    "redact": 2,
    "maintain": 4,
    "copy_store": 1,
    "copy_all": 2,
    "copy_some": 2,
    "copy_beginning": 3,
}
"""How often each is done, of all of them."""

PLAIN = "2026-02-24.jsonl"
AT = "2026-02-24T09:00:00.000Z"
CHANGED = ("memory", "core", "facts", "documents")
WINS = rb'(?m)^\{.*"wins":"([^"]+)".*\}\n'

SECOND = 1_000_000_000
TRUE_TIME = 1_772_006_400 * SECOND  # 2026-02-25T08:00:00Z, as drawn events say
pauses = st.sampled_from([0, 0, 0, 1_000_000, SECOND, 3600 * SECOND, 24 * 3600 * SECOND])
skews = st.sampled_from([0, 0, 1_000_000, -240 * SECOND, 3600 * SECOND, -48 * 3600 * SECOND])
"""By how much the clock of a copy is wrong."""

numbers = st.integers(0, 999)
"""Which of the things that there are by then."""
ids = st.none() | st.integers(0, 5).map("id-{}".format)
THEMES = [*ONE_THING, conversations, [saved, *memories], EVENTS]
"""Most histories are about few things, so that what the copies say of them meets."""


def identified(event: dict[str, Any], name: str | None, is_dated: bool) -> dict[str, Any]:
    """With an id, or without; as memlog dates it, or as it was drawn."""
    members = event | ({} if name is None else {"id": name})
    return members if is_dated else {key: value for key, value in members.items() if key != "ts"}


def some_of(kinds: list[SearchStrategy[dict[str, Any]]]) -> SearchStrategy[list[dict[str, Any]]]:
    """Some events of these kinds."""
    an_event = st.sampled_from(range(len(kinds))).flatmap(kinds.__getitem__)
    return st.lists(st.builds(identified, an_event, ids, st.booleans()), min_size=1, max_size=3)


events_of = [some_of(kinds) for kinds in THEMES]
maintenance = st.sampled_from(
    ["seal", "seal", "scrub", "scrub", "project", "project", "rebuild", "rebuild", "restart"]
)


class Copy:
    """One copy of the store, as one machine has it.

    skew: by how much its clock is wrong, in nanoseconds.
    """

    def __init__(self, folder: Path, skew: int) -> None:
        self.folder = folder
        self.log = folder / "log"
        self.skew = skew
        self._open()

    def _open(self) -> None:
        self.writer = Log(self.folder, durability="os")
        self.projector = Projector(self.folder)

    def seal(self) -> None:
        """Close all of its segments."""
        seal_unsealed_segments(self.folder)

    def scrub(self) -> None:
        """Overwrite what was redacted."""
        with memlog.open(self.folder, durability="os") as store:
            store.erasure.scrub()

    def project(self) -> None:
        """Read on. Whatever has not arrived yet is neither damage nor a loss."""
        self.projector.catch_up()
        check = check_log(self.log)
        assert [*check.problems, *check.tampered] == []
        assert find_all_losses(self.folder) == []
        quarantined = self.projector.connect_to_live().execute("SELECT stream, segment FROM quarantine")
        assert set(quarantined) <= read_sealed_lengths(self.log).keys()

    def rebuild(self) -> None:
        """Read all anew, which changes nothing."""
        self.projector.catch_up()
        before = hash_dump(self.projector.connect_to_live())
        self.projector.rebuild_generation("asked for")
        assert hash_dump(self.projector.connect_to_live()) == before

    def restart(self) -> None:
        """Open it as a new process would."""
        self.projector.close()
        self._open()

    def digests(self) -> tuple[str, str]:
        """Of the read model, caught up; and of its content alone."""
        self.projector.catch_up()
        db = self.projector.connect_to_live()
        return hash_dump(db), hash_dump(db, content=True)

    def highest_wins(self, stream: str) -> str:
        """The highest precedence of the whole lines of a stream."""
        segments = (path.read_bytes() for path in (self.log / stream).glob("*.jsonl"))
        return max((found.decode() for data in segments for found in re.findall(WINS, data)), default="")

    def line(self, stream: str, segment: str, offset: int) -> bytes:
        """The line that stands at a position."""
        return (self.log / stream / segment).read_bytes()[offset:].partition(b"\n")[0]


class Acknowledged(NamedTuple):
    """An event, and the copy that acknowledged it."""

    copy: Copy
    position: Position

    @property
    def key(self) -> tuple[str, str]:
        return self.position.stream, self.position.id

    @property
    def place(self) -> tuple[str, str, int]:
        return self.position.stream, self.position.segment, self.position.offset


class Copies(RuleBasedStateMachine):
    """Some copies of one store.

    second: the mtime of what is changed next.
    """

    now = TRUE_TIME
    random = Random(0)
    histories = steps = 0

    def __init__(self) -> None:
        super().__init__()
        self.root = Path(tempfile.mkdtemp(prefix="memlog-copies-", dir=memory()))
        self.copies: list[Copy] = []
        self.acknowledged: list[Acknowledged] = []
        self.redacted: set[tuple[str, str]] = set()
        self.second = 1_000_000
        Copies.now = TRUE_TIME

    @initialize(
        data=st.data(),
        theme=st.sampled_from(range(len(THEMES))),
        copies=st.integers(1, 2),
        names=numbers,
        appends=st.sampled_from([False, False, True]),
    )
    def begin(self, data: DataObject, theme: int, copies: int, names: int, appends: bool) -> None:
        self.sync = FileSync(appends=appends)
        Copies.random = Random(names)
        self.some_events = events_of[theme]
        (self.root / "0").mkdir()
        for event in data.draw(st.just([]) | self.some_events):
            self._write_plain(event)
        self.copies.append(Copy(self.root / "0", 0))
        self.append(data)
        for _ in range(copies):
            self.copy_store(data)

    @rule(
        data=st.data(),
        action=st.sampled_from([name for name, count in ACTIONS.items() for _ in range(count)]),
    )
    def heartbeat(self, data: DataObject, action: str) -> None:
        """One rule for all: hypothesis leaves out half of the rules of a machine in each of its runs."""
        getattr(self, action)(data)

    def append(self, data: DataObject) -> None:
        """Ids are few: many repeat an event or contradict it."""
        Copies.now += data.draw(pauses)
        with self._at_work(data) as copy:
            self._append(copy, data.draw(self.some_events))

    def append_again(self, data: DataObject) -> None:
        """As one does who does not know whether it was stored, on any copy."""
        known = self._one_of(self.acknowledged, data)
        line = known.copy.line(*known.place)
        if not line.strip():
            return
        envelope = ("at", "wins", "highest_wins", "crc")
        event = {key: value for key, value in json.loads(line).items() if key not in envelope}
        if event["type"] == "redacted":
            event["stream"] = known.position.stream
        with self._at_work(data) as copy:
            self._append(copy, [event])

    def redact(self, data: DataObject) -> None:
        """An event that any copy has acknowledged, whether it has arrived or not."""
        stream, name = self._one_of(self.acknowledged, data).key
        with self._at_work(data) as copy:
            self._append(copy, [{"type": "redacted", "stream": stream, "target_id": name}])

    def maintain(self, data: DataObject) -> None:
        """What a person or another program does with a copy now and then."""
        with self._at_work(data) as copy:
            getattr(copy, data.draw(maintenance))()

    def copy_store(self, data: DataObject) -> None:
        """The log; or the folder with the read model, and with what tells writers apart, as of a backup."""
        if len(self.copies) < MOST_COPIES:
            source, folder = self._one_of(self.copies, data), self.root / str(len(self.copies))
            source.projector.close()  # another descriptor of an open database drops SQLite's locks
            part = data.draw(st.sampled_from([".", "log"]))
            shutil.copytree(source.folder / part, folder / part)
            self.copies.append(Copy(folder, data.draw(skews)))

    def copy_all(self, data: DataObject) -> None:
        """A file sync that has brought all."""
        self.sync.copy_to(*self._two_logs(data))

    def copy_some(self, data: DataObject) -> None:
        """A file sync that has not brought all."""
        source, target = self._two_logs(data)
        names = self.sync.newer(source, target)
        in_place = data.draw(st.booleans())
        for name in data.draw(st.sets(st.sampled_from(names))) if names else ():
            self.sync.copy(name, source, target, in_place=in_place)

    def copy_beginning(self, data: DataObject) -> None:
        """A file sync that was interrupted."""
        source, target = self._two_logs(data)
        longer = self.sync.longer(source, target)
        if longer:
            name, start, end = self._one_of(longer, data)
            size = data.draw(st.integers(start + 1, end))
            self.sync.copy(name, source, target, size, in_place=data.draw(st.booleans()))

    @invariant()
    def what_was_acknowledged_stands_where_it_was_said(self) -> None:
        for known in self.acknowledged[-4:]:
            self._check_line(known, known.copy)
        Copies.steps += 1

    def teardown(self) -> None:
        folders = [copy.log for copy in self.copies]
        self.sync.copy_all(folders)
        if self._redactions(self.copies[0]):
            for copy in self.copies:
                with self._clock_of(copy):
                    copy.scrub()
            self.sync.copy_all(folders)
        self._check_they_are_one()
        self._check_nothing_is_lost(self.copies[0])
        for copy in self.copies:
            copy.projector.close()
        shutil.rmtree(self.root)
        Copies.histories += 1

    def _check_they_are_one(self) -> None:
        contents = segments_of(self.copies[0])
        found = {copy.folder.name: copy.digests() for copy in self.copies}
        assert len(set(found.values())) == 1, found
        for copy in self.copies:
            assert segments_of(copy) == contents
            check = check_log(copy.log)
            odd = [*check.problems, *check.notes, *check.tampered]
            assert odd == [], odd
            assert find_all_losses(copy.folder) == []
        checked = self.copies[0].projector
        check_rows(checked, contents)
        assert verify_read_model(checked.connect_to_live(), checked.log, checked.sizes).problems == []

    def _check_nothing_is_lost(self, copy: Copy) -> None:
        """Each acknowledged event is a row, or repeats or contradicts one, or was to be gone."""
        known = set(
            copy.projector.connect_to_live().execute("SELECT stream, id FROM events")
        ) | self._redactions(copy)
        for each in self.acknowledged:
            self._check_line(each, copy)
            assert each.key in known

    def _check_line(self, known: Acknowledged, copy: Copy) -> None:
        line = copy.line(*known.place)
        if line.strip():
            assert json.loads(line)["id"] == known.position.id
        else:
            assert known.key in self.redacted

    def _write_plain(self, event: dict[str, Any]) -> None:
        """As an older memlog wrote it, before the store was copied: in a segment without a writer's name."""
        self._note_redactions([event])
        made = draft_event(event)
        folder = self.root / "0" / "log" / made.stream
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / PLAIN).open("ab") as file:
            file.write(made.build_line(AT))

    def _append(self, copy: Copy, events: list[dict[str, Any]]) -> None:
        self._note_redactions(events)
        highest = {stream: copy.highest_wins(stream) for stream in CHANGED}
        positions = copy.writer.append(events)
        for event, position in zip(events, positions, strict=True):
            if "ts" not in event and position.stream in CHANGED and event["type"] != "redacted":
                wins = json.loads(copy.line(position.stream, position.segment, position.offset))["wins"]
                assert wins > highest[position.stream], "an edit holds against all that this copy knew"
        self.acknowledged += [Acknowledged(copy, position) for position in positions]

    def _note_redactions(self, events: list[dict[str, Any]]) -> None:
        for event in events:
            if event["type"] == "redacted":
                targets = event.get("target_ids") or [event["target_id"]]
                self.redacted |= {(event["stream"], target) for target in targets}

    def _redactions(self, copy: Copy) -> set[tuple[str, str]]:
        copy.projector.catch_up()
        return set(copy.projector.connect_to_live().execute("SELECT stream, target_id FROM redactions"))

    @contextmanager
    def _at_work(self, data: DataObject) -> Iterator[Copy]:
        """A copy, and meanwhile its clock."""
        copy = self._one_of(self.copies, data)
        with self._clock_of(copy):
            yield copy

    @contextmanager
    def _clock_of(self, copy: Copy) -> Iterator[None]:
        """What is changed meanwhile is later than all before."""
        true, Copies.now = Copies.now, Copies.now + copy.skew
        yield
        Copies.now = true
        self.second += 1
        self.sync.stamp(copy.log, self.second)

    def _two_logs(self, data: DataObject) -> tuple[Path, Path]:
        """Of one copy, and of another."""
        source, target = data.draw(st.permutations(range(len(self.copies))))[:2]
        return self.copies[source].log, self.copies[target].log

    @staticmethod
    def _one_of(things: Sequence[T], data: DataObject) -> T:
        return things[data.draw(st.integers(0, len(things) - 1))]


def segments_of(copy: Copy) -> dict[str, bytes]:
    """The bytes of each segment, by its path below the store."""
    names = [name for name in files_in(copy.log) if "/" in name]
    return {f"log/{name}": (copy.log / name).read_bytes() for name in names}


@contextmanager
def drawn_surroundings() -> Iterator[None]:
    """Meanwhile the time is that of the history, so that many events come within one millisecond, and what is
    random (the writers' names) can be drawn again."""
    with (
        mock.patch.object(time, "time_ns", side_effect=lambda: Copies.now),
        mock.patch.object(os, "urandom", side_effect=lambda size: Copies.random.randbytes(size)),
    ):
        yield


SETTINGS = settings(
    max_examples=HISTORIES // PARTS,
    stateful_step_count=STEPS,
    deadline=None,
    # A history that fails is short enough to be read, and to make it shorter takes minutes.
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)


@pytest.mark.parametrize("part", range(PARTS))
def test_any_history_of_copies_ends_in_one_store_that_has_lost_nothing(part: int) -> None:
    """In parts, which may run beside each other."""
    with drawn_surroundings():
        run_state_machine_as_test(Copies, settings=SETTINGS)
