"""Any history of a store: whatever is appended, damaged, killed and projected, in any order, the read model
is what the log says, told one event after the other, and nothing that was acknowledged is lost."""

import json
import shutil
import subprocess
import tempfile
from collections import Counter
from contextlib import contextmanager
from pathlib import Path

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

import memlog
from memlog.eventlog.codec.encode import draft_event
from memlog.eventlog.log.writer import Log
from memlog.projector.lifecycle import Projector
from memlog.projector.verify import verify_read_model
from tests.support import victim
from tests.support.drawn_events import EVENTS, foreign_lines
from tests.support.examples import examples
from tests.support.in_memory import memory
from tests.support.row_checks import check_rows

STEPS = 30
LATE_DAY = "2026-02-20.jsonl"
AT = "2026-02-26T09:00:00.000Z"

an_event = st.integers(0, len(EVENTS) - 1).flatmap(EVENTS.__getitem__)
ids = st.integers(0, 15).map("id-{}".format)
an_identified_event = st.builds(lambda event, name: event | {"id": name}, an_event, ids)
TAKES = {"append": 0.008, "project": 0.015, "rebuild": 0.03}
"""What is killed, and how many seconds it takes, about: a kill comes within them."""

numbers = st.integers(0, 999)
"""Which of the things that there are by then: how many there are hangs on what a kill has left."""
some_events = st.lists(an_identified_event, min_size=1, max_size=4)


@contextmanager
def victim_process():
    """The process whose children are killed."""
    process = victim.started()
    History.victim = process
    yield
    process.stdin.close()
    assert process.wait(60) == 0


@pytest.fixture(scope="module", autouse=True)
def a_victim():
    with victim_process():
        yield


class History(RuleBasedStateMachine):
    """One store, and what is known of it.

    bytes: of each segment, by its path below the store, as they were last seen.
    acknowledged: the place and the id of each event that was.
    """

    victim: subprocess.Popen[str]
    steps = 0

    def __init__(self):
        super().__init__()
        self.store = Path(tempfile.mkdtemp(prefix="memlog-history-", dir=memory()))
        self.bytes: dict[str, bytes] = {}
        self.acknowledged: list[tuple[str, str, int, str]] = []
        self.projector = Projector(self.store)
        self.writer = Log(self.store, durability="os")

    @initialize(events=some_events)
    def begin(self, events):
        self.append(events)

    @rule(events=some_events)
    def append(self, events):
        """Ids are few: many repeat an event or contradict it."""
        for position in self.writer.append(events):
            self.acknowledged.append((position.stream, position.segment, position.offset, position.id))

    @rule(which=numbers)
    def append_again(self, which):
        """As one does who does not know whether it was stored."""
        stream, segment, offset, _ = self._one_of(self.acknowledged, which)
        line = json.loads(self._line(stream, segment, offset))
        event = {key: value for key, value in line.items() if key not in ("at", "crc")}
        if event["type"] == "redacted":
            event["stream"] = stream
        self.append([event])

    @rule(line=foreign_lines, which=numbers)
    def write_by_hand(self, line, which):
        self._add(which, line)

    @rule(event=an_identified_event, length=st.integers(1, 60), which=numbers)
    def tear(self, event, length, which):
        """A writer was killed within a line."""
        made = draft_event(event)
        self._add(which, made.build_line(AT)[:length], made.stream)

    @rule(count=st.integers(1, 300), line=st.just(b"") | foreign_lines, which=numbers)
    def leave_nuls(self, count, line, which):
        """A power cut left a file its new size without its bytes; then somebody may have gone on by hand."""
        self._add(which, bytes(count) + line)

    @rule(event=an_identified_event, which=numbers)
    def write_late(self, event, which):
        """A line in an older segment: a copy was merged, or a clock was wrong."""
        made = draft_event(event)
        folder = self.store / "log" / made.stream
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / LATE_DAY).open("a+b") as file:
            file.seek(0)
            is_torn = not file.read().endswith(b"\n")
            # Glued to the rest of another one it would be damage, as memlog sees it.
            file.write(b"\n" * is_torn + made.build_line(AT))

    @rule()
    def project(self):
        self.projector.catch_up()
        check_rows(self.projector, self._contents())

    @rule()
    def rebuild(self):
        self.projector.rebuild_generation("asked for")
        check_rows(self.projector, self._contents())

    @rule()
    def restart(self):
        self.projector.close()
        self.projector = Projector(self.store)
        self.writer = Log(self.store, durability="os")

    @rule(events=some_events, what=st.sampled_from(list(TAKES)), part=st.integers(0, 25))
    def kill(self, events, what, part):
        seconds = TAKES[what] * part / 25
        asked = {"store": str(self.store), "what": what, "events": events, "seconds": seconds}
        self.victim.stdin.write(json.dumps(asked) + "\n")
        self.victim.stdin.flush()
        said = json.loads(self.victim.stdout.readline())
        self.acknowledged += [tuple(place) for place in said]

    @rule(which=numbers)
    def forget(self, which):
        stream, _, _, name = self._one_of(self.acknowledged, which)
        with memlog.open(self.store) as store:
            done = store.erasure.forget(name, stream=stream)
        for line in done.lines:
            assert line.stream == stream

    @rule()
    def scrub(self):
        with memlog.open(self.store) as store:
            store.erasure.scrub()
        contents = self._contents()
        for path, before in self.bytes.items():
            after = contents[path]
            assert len(after) == len(before)
            written_over = [number for number, byte in enumerate(before) if after[number] != byte]
            assert all(after[number] == ord(" ") for number in written_over)
            assert not any(before[number] == ord("\n") for number in written_over)
        self.bytes = contents
        self.projector.catch_up()
        gone = set(self.projector.connect_to_live().execute("SELECT stream, target_id FROM redactions"))
        for stream, segment, offset, name in self.acknowledged:
            is_blank = not self._line(stream, segment, offset).strip()
            assert is_blank <= ((stream, name) in gone)
        self.acknowledged = [place for place in self.acknowledged if self._line(*place[:3]).strip()]
        if not self.acknowledged:
            self.append(
                [{"type": "message", "channel": "cli", "chat_id": "1", "role": "user", "content": "tea"}]
            )

    @rule()
    def lose_the_read_model(self):
        self.projector.close()
        shutil.rmtree(self.store / "model", ignore_errors=True)

    @invariant()
    def nothing_is_ever_taken_from_the_log(self):
        contents = self._contents()
        for path, before in self.bytes.items():
            assert contents[path].startswith(before), path
        self.bytes = contents
        History.steps += 1

    @invariant()
    def what_was_acknowledged_stands_where_it_was_said(self):
        for stream, segment, offset, name in self.acknowledged[-8:]:
            assert json.loads(self._line(stream, segment, offset))["id"] == name

    def teardown(self):
        self.projector.catch_up()
        check_rows(self.projector, self._contents())
        found = verify_read_model(self.projector.connect_to_live(), self.projector.log, self.projector.sizes)
        assert found.problems == []
        self._check_all_are_known()
        self.projector.close()
        shutil.rmtree(self.store)

    def _check_all_are_known(self):
        """Each acknowledged event is a row, or repeats or contradicts one, or was to be gone."""
        db = self.projector.connect_to_live()
        known = Counter(
            db.execute("SELECT stream, id FROM events UNION SELECT stream, target_id FROM redactions")
        )
        for stream, segment, offset, name in self.acknowledged:
            assert json.loads(self._line(stream, segment, offset))["id"] == name
            assert known[stream, name] == 1

    def _add(self, which, line, stream=None):
        """Append bytes as one does who knows no lock."""
        newest = {}
        for path in sorted(self._contents()):
            newest[path.removeprefix("log/").rpartition("/")[0]] = self.store / path
        path = newest.get(stream) or self._one_of(list(newest.values()), which)
        with path.open("ab") as file:
            file.write(line)

    @staticmethod
    def _one_of(things, which):
        return things[which % len(things)]

    def _line(self, stream, segment, offset):
        data = (self.store / "log" / stream / segment).read_bytes()
        return data[offset:].partition(b"\n")[0]

    def _contents(self):
        log = self.store / "log"
        segments = (path for path in log.rglob("*.jsonl") if path.parent != log)
        return {str(path.relative_to(self.store)): path.read_bytes() for path in segments}


SETTINGS = settings(
    max_examples=examples(5),
    stateful_step_count=STEPS,
    # A history that fails is short enough to be read, and to make it shorter takes minutes.
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)


def test_any_history_leaves_what_the_log_says_and_loses_nothing():
    run_state_machine_as_test(History, settings=SETTINGS)
