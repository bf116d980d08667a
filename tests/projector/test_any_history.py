"""Any history of a store: whatever is appended, damaged, killed and projected, in any order, the read model
is what the log says, told one event after the other, and nothing that was acknowledged is lost."""

import json
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from contextlib import contextmanager
from pathlib import Path

import pytest
from drawn_events import EVENTS, foreign_lines
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from row_checks import check_rows

from memlog.eventlog.draft import draft
from memlog.eventlog.log import Log
from memlog.projector.projector import Projector
from memlog.projector.verify import verify

STEPS = 30
LATE_DAY = "2026-02-20.jsonl"
AT = "2026-02-26T09:00:00.000Z"

an_event = st.integers(0, len(EVENTS) - 1).flatmap(EVENTS.__getitem__)
ids = st.integers(0, 15).map("id-{}".format)
an_identified_event = st.builds(lambda event, name: event | {"id": name}, an_event, ids)
some_events = st.lists(an_identified_event, min_size=1, max_size=4)


@contextmanager
def victim_process():
    """The process whose children are killed."""
    process = subprocess.Popen(
        [sys.executable, Path(__file__).with_name("victim.py")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    History.victim = process
    yield
    process.stdin.close()
    assert process.wait(10) == 0


@pytest.fixture(scope="module", autouse=True)
def victim():
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
        self.store = Path(tempfile.mkdtemp(prefix="memlog-history-"))
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

    @rule(data=st.data())
    def append_again(self, data):
        """As one does who does not know whether it was stored."""
        stream, segment, offset, _ = data.draw(st.sampled_from(self.acknowledged))
        line = json.loads(self._line(stream, segment, offset))
        event = {key: value for key, value in line.items() if key not in ("at", "crc")}
        if event["type"] == "redacted":
            event["stream"] = stream
        self.append([event])

    @rule(line=foreign_lines, data=st.data())
    def write_by_hand(self, line, data):
        self._add(data, line)

    @rule(event=an_identified_event, length=st.integers(1, 60), data=st.data())
    def tear(self, event, length, data):
        """A writer was killed within a line."""
        made = draft(event)
        self._add(data, made.line(AT)[:length], made.stream)

    @rule(event=an_identified_event, data=st.data())
    def write_late(self, event, data):
        """A line in an older segment: a copy was merged, or a clock was wrong."""
        made = draft(event)
        folder = self.store / "log" / made.stream
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / LATE_DAY).open("ab") as file:
            file.write(made.line(AT))

    @rule()
    def project(self):
        self.projector.catch_up()
        check_rows(self.projector, self._contents())

    @rule()
    def rebuild(self):
        self.projector.rebuild("asked for")
        check_rows(self.projector, self._contents())

    @rule()
    def restart(self):
        self.projector.close()
        self.projector = Projector(self.store)
        self.writer = Log(self.store, durability="os")

    @rule(events=some_events, what=st.sampled_from(["append", "project", "rebuild"]), ms=st.integers(0, 25))
    def kill(self, events, what, ms):
        asked = {"store": str(self.store), "what": what, "events": events, "seconds": ms / 1000}
        self.victim.stdin.write(json.dumps(asked) + "\n")
        self.victim.stdin.flush()
        said = json.loads(self.victim.stdout.readline())
        self.acknowledged += [tuple(place) for place in said]

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
        found = verify(self.projector.live(), self.projector.log, self.projector.sizes)
        assert found.problems == []
        self._check_all_are_known()
        self.projector.close()
        shutil.rmtree(self.store)

    def _check_all_are_known(self):
        """Each acknowledged event is a row, or repeats or contradicts one, or was to be gone."""
        db = self.projector.live()
        known = Counter(
            db.execute("SELECT stream, id FROM events UNION SELECT stream, target_id FROM redactions")
        )
        for stream, segment, offset, name in self.acknowledged:
            assert json.loads(self._line(stream, segment, offset))["id"] == name
            assert known[stream, name] == 1

    def _add(self, data, line, stream=None):
        """Append bytes as one does who knows no lock."""
        newest = {}
        for path in sorted(self._contents()):
            newest[path.removeprefix("log/").rpartition("/")[0]] = self.store / path
        path = newest.get(stream) or data.draw(st.sampled_from(list(newest.values())))
        with path.open("ab") as file:
            file.write(line)

    def _line(self, stream, segment, offset):
        data = (self.store / "log" / stream / segment).read_bytes()
        return data[offset:].partition(b"\n")[0]

    def _contents(self):
        log = self.store / "log"
        return {str(path.relative_to(self.store)): path.read_bytes() for path in log.rglob("*.jsonl")}


History.TestCase.settings = settings(
    max_examples=100,
    stateful_step_count=STEPS,
    deadline=None,
    # A history that fails is short enough to be read, and to make it shorter takes minutes.
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
TestAnyHistory = History.TestCase
