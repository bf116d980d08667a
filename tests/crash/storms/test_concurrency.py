"""Writers, projectors and readers at once: real processes of the installed command."""

import random
import signal
import time
from contextlib import closing

import pytest

from tests.support.storm_checks import problems_of, read_model
from tests.support.storm_workload import AppendPipe, Loop, ask, message, text, wait_for_any

WRITERS = 8
EVENTS = 1000
WAVE = 200
CHATS = ("one", "two", "three")


@pytest.fixture
def start():
    """Starts pipes and loops, and kills those that a failing test leaves behind."""
    started = []

    def begin(kind, *arguments):
        started.append(kind(*arguments))
        return started[-1]

    yield begin
    for running in started:
        if running.process.poll() is None:
            running.kill()


def test_eight_writers_and_a_projector_lose_and_double_nothing(tmp_path, start):
    """Of 8 processes with 1,000 events each in the same 3 chats, every event is there exactly once."""
    # The projector may start before a writer has made the log.
    (tmp_path / "memlog.toml").touch()
    pipes = [start(AppendPipe, tmp_path) for _ in range(WRITERS)]
    projector = start(Loop, tmp_path, lambda: ("project", "--no-embed"))
    events = [written_by(number) for number in range(WRITERS)]
    for begin in range(0, EVENTS, WAVE):
        append_in_bursts(pipes, [of_one[begin : begin + WAVE] for of_one in events], projector)
        # So that there are several runs to catch up, however fast the writers are.
        projector.finish_run()
    assert [pipe.finish() for pipe in pipes] == [0] * WRITERS
    projector.finish()

    submitted = {name: event for pipe in pipes for name, event in pipe.submitted.items()}
    acknowledged = [ack for pipe in pipes for ack in pipe.acknowledged]
    assert sum(answer["events"] > 0 for answer in projector.answers) > 3, "it caught up beside the writers"
    assert len({ack.id for ack in acknowledged}) == len(acknowledged) == WRITERS * EVENTS
    assert problems_of(tmp_path, submitted, acknowledged) == []
    with closing(read_model(tmp_path)) as db:
        assert db.execute("SELECT count(*), count(DISTINCT id) FROM events").fetchone() == (8000, 8000)
        assert db.execute("SELECT count(*) FROM quarantine").fetchone() == (0,)


def test_two_writers_of_the_same_events_at_once_count_each_once(tmp_path, start):
    """A retry that runs beside its first try is acknowledged, counted as a duplicate, and one event."""
    events = written_by(0)[:300]
    pipes = [start(AppendPipe, tmp_path) for _ in range(2)]
    for begin in range(0, len(events), 10):
        for pipe in pipes:
            pipe.submit(events[begin : begin + 10])
        while any(pipe.unanswered for pipe in pipes):
            wait_for_any(pipes)
            for pipe in pipes:
                pipe.turn()
    assert [pipe.finish() for pipe in pipes] == [0, 0]

    assert [len(pipe.acknowledged) for pipe in pipes] == [300, 300]
    acknowledged = [ack for pipe in pipes for ack in pipe.acknowledged]
    assert len({ack[1:] for ack in acknowledged}) == 600, "each try stands at a place of its own"
    report = ask(tmp_path, "project", "--no-embed")
    assert (report["events"], report["duplicates"], report["conflicts"]) == (300, 300, 0)
    assert problems_of(tmp_path, pipes[0].submitted, acknowledged) == []


def test_queries_answer_while_two_rebuilds_run(tmp_path, start):
    """No query fails beside two processes that rebuild; each finds all that was appended before it."""
    rng = random.Random(3)
    pipe = start(AppendPipe, tmp_path)
    append_and_wait(pipe, [message(f"old-{n}", rng.choice(CHATS), f"harbour {n}") for n in range(200)])
    ask(tmp_path, "project", "--no-embed")
    rebuilds = [start(Loop, tmp_path, lambda: ("project", "--from-scratch", "--no-embed")) for _ in range(2)]
    appended_before, synced = set(pipe.submitted), 0
    asked = 0
    # A slow machine rebuilds five times while few queries are answered: then more are asked.
    while asked < 100 and (synced < 6 or min(len(rebuild.answers) for rebuild in rebuilds) < 5):
        asked += 1
        append_and_wait(pipe, [message(f"new-{len(pipe.submitted)}", rng.choice(CHATS), "a harbour")])
        found = ask(tmp_path, "query", "harbour", "-k", "1000", "--mode", "text")
        # Where a rebuild held the lock the answer says so, and what the last synced one had is there still.
        synced += found["synced"]
        appended_before = set(pipe.submitted) if found["synced"] else appended_before
        assert {hit["id"] for hit in found["hits"]} >= appended_before
        assert found["silent"] == {}
        for rebuild in rebuilds:
            rebuild.turn()
    for rebuild in rebuilds:
        rebuild.finish()

    assert synced > 5, f"{asked} queries were asked, and these saw what was appended before them"
    assert all(answer["rebuilt"] for rebuild in rebuilds for answer in rebuild.answers)
    assert min(len(rebuild.answers) for rebuild in rebuilds) >= 5
    assert pipe.finish() == 0
    assert problems_of(tmp_path, pipe.submitted, pipe.acknowledged) == []
    assert len(list((tmp_path / "model").glob("*.db"))) == 2


def test_a_query_does_not_wait_for_a_rebuild(tmp_path, start):
    """A query answers while a rebuild stands still, in whatever it was about to do."""
    rng = random.Random(4)
    pipe = start(AppendPipe, tmp_path)
    append_and_wait(pipe, written_by(0))
    append_and_wait(pipe, [message("beacon", "one", "The beacon burns.")])
    ask(tmp_path, "project", "--no-embed")
    for _ in range(6):
        rebuild = start(Loop, tmp_path, lambda: ("project", "--from-scratch", "--no-embed"))
        time.sleep(0.3 + rng.random())
        rebuild.process.send_signal(signal.SIGSTOP)
        try:
            found = ask(tmp_path, "query", "beacon", "--mode", "text", "--no-context")
        finally:
            rebuild.process.send_signal(signal.SIGCONT)
        assert [hit["id"] for hit in found["hits"]] == ["beacon"]
        rebuild.finish()
        assert rebuild.answers[0]["rebuilt"] == "asked for"
    assert pipe.finish() == 0


def written_by(number):
    """The events of one writer: most texts have some 100 bytes, some have 5 kB."""
    rng = random.Random(number)
    sizes = [int(50 * 100 ** rng.random() ** 3) for _ in range(EVENTS)]
    return [message(f"{number}-{n}", rng.choice(CHATS), text(rng, size)) for n, size in enumerate(sizes)]


def append_in_bursts(pipes, events, projector):
    """Each pipe is given its list of events in bursts, all pipes at once, until all are answered."""
    rng = random.Random(1)
    while any(events) or any(pipe.unanswered for pipe in pipes):
        for pipe, left in zip(pipes, events, strict=True):
            if left and pipe.unanswered < 64:
                burst = rng.randint(1, 64)
                pipe.submit(left[:burst])
                del left[:burst]
            pipe.turn()
        projector.turn()
        wait_for_any(pipes)


def append_and_wait(pipe, events):
    pipe.submit(events)
    while pipe.unanswered:
        wait_for_any([pipe])
        pipe.turn()
