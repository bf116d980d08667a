"""memlog log: the log without a read model, and followed while others append."""

import json
import os
import re
import select
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from memlog.eventlog.log.streams import list_segments
from memlog.eventlog.log.writer import Log
from tests.support.command_tree import MEMLOG
from tests.support.damaged_stores import clock
from tests.support.places import FIXTURES
from tests.support.watched import until

Run = Callable[..., Any]

CHAT = {"type": "message", "channel": "x", "chat_id": "1", "role": "user"}


def said(content: str, **members: Any) -> bytes:
    return json.dumps(CHAT | {"content": content} | members).encode() + b"\n"


def contents(done: Any) -> list[str]:
    return [line["content"] for line in done.lines]


# cat


def test_what_was_redacted_is_not_printed_whoever_repeats_it(memlog: Run) -> None:
    for content in ("a secret", "a secret", "another"):
        memlog("append", "message", "--chat", "x:1", "--role", "user", "--content", content, "--id", "s")
    memlog("append", "redacted", "--target-id", "s")
    memlog("append", "message", "--chat", "x:1", "--role", "user", "--content", "a secret", "--id", "s")
    done = memlog("log", "cat")
    assert [line["type"] for line in done.lines] == ["redacted"]
    assert b"secret" not in done.out + done.err
    assert done.err.decode().count(": redacted") == 4
    assert b"a secret" in memlog("log", "cat", "--raw").out


def test_events_of_all_streams_come_in_the_order_in_which_they_happened(memlog: Run, segment: Run) -> None:
    segment("conversations/x_1", said("2", ts="2026-02-24T02:00:00Z") + said("1", ts="2026-02-24T01:00:00Z"))
    segment("conversations/x_2", said("3", ts="2026-02-24T03:00:00Z", chat_id="2"))
    late = {"type": "memory_saved", "content": "0", "ts": "2026-02-23T00:00:00Z"}
    segment("memory", json.dumps(late).encode() + b"\n", "2026-02-25.jsonl")
    assert contents(memlog("log", "cat")) == ["0", "1", "2", "3"]


def test_reading_the_log_makes_no_read_model(memlog: Run, segment: Run, store: Path) -> None:
    segment("conversations/x_1", said("tea"))
    assert memlog("log", "cat").code == memlog("log", "tail").code == 0
    assert [path.name for path in store.iterdir()] == ["log"]


def test_an_empty_store_has_an_empty_log(memlog: Run, empty_store: Path) -> None:
    for args in (("cat",), ("tail",), ("cat", "--chat", "x:1"), ("tail", "--stream", "memory")):
        assert memlog("log", *args) == (0, b"", b"")
    assert [path.name for path in empty_store.iterdir()] == ["log"]


@pytest.mark.parametrize("command", ["cat", "tail"])
def test_a_stream_that_is_not_there_is_an_error(memlog: Run, segment: Run, command: str) -> None:
    segment("conversations/x_1", said("tea"))
    done = memlog("log", command, "--stream", "conversations/x_2", "--json")
    assert (done.code, done.error["code"]) == (1, "stream_not_found")
    done = memlog("log", command, "--chat", "x:2", "--json")
    assert (done.code, done.error["code"]) == (1, "session_not_found")


@pytest.mark.parametrize("command", ["cat", "tail"])
def test_both_folders_of_a_chat_are_read(memlog: Run, segment: Run, command: str) -> None:
    segment("conversations/x_a_b", said("by hand", chat_id="a_b"))
    segment("conversations/x_a%5fb", said("by memlog", chat_id="a_b"))
    segment("conversations/x_1", said("another chat"))
    done = memlog("log", command, "--chat", "x:a_b")
    assert sorted(contents(done)) == ["by hand", "by memlog"]
    assert contents(memlog("log", command, "--stream", "conversations/x_1")) == ["another chat"]


def test_since_is_included_and_so_is_the_day_of_until(memlog: Run, segment: Run) -> None:
    days = [said(str(day), ts=f"2026-02-{day}T00:00:00Z") for day in (23, 24, 25)]
    segment("conversations/x_1", b"".join(days))
    assert contents(memlog("log", "cat", "--since", "2026-02-24", "--until", "2026-02-24")) == ["24"]
    assert contents(memlog("log", "cat", "--raw", "--since", "2026-02-24T00:00:00.001Z")) == ["25"]
    assert contents(memlog("log", "cat", "--until", "2026-02-24T00:00:00Z")) == ["23"]


def test_foreign_lines_come_in_todays_shape_with_what_memlog_does_not_know(memlog: Run, segment: Run) -> None:
    foreign = b'{"role":"user","content":"tea","meta":{"chat_id":1},"mood":"calm","n":9223372036854775807}'
    segment("conversations/x_1", b"\xef\xbb\xbf" + foreign + b"\r\n")
    done = memlog("log", "cat")
    assert list(done.json)[:4] == ["type", "id", "ts", "v"]
    assert done.json == {
        "type": "message",
        "id": "2026-02-24.jsonl:0",
        "ts": "2026-02-24T00:00:00.000Z",
        "v": 1,
        "channel": "x",
        "chat_id": "1",
        "role": "user",
        "content": "tea",
        "meta": {"chat_id": 1},
        "mood": "calm",
        "n": (1 << 63) - 1,
    }


@pytest.mark.parametrize("command", ["cat", "tail"])
def test_a_bad_line_is_named_and_its_neighbours_are_printed(memlog: Run, segment: Run, command: str) -> None:
    bad = b'hello\n\n{"type":"memory_dreamt"}\n' + b"x" * (17 << 20) + b"\n"
    segment("conversations/x_1", said("before") + bad + said("after") + b'{"torn')
    done = memlog("log", command)
    assert (done.code, contents(done)) == (0, ["before", "after"])
    offset = len(said("before"))
    named = re.compile(r"^memlog: (\S+):(\d+) \(byte (\d+)\): (\w+): .+$", re.MULTILINE)
    assert named.findall(done.err.decode()) == [
        ("conversations/x_1/2026-02-24.jsonl", "2", str(offset), "not_json"),
        ("conversations/x_1/2026-02-24.jsonl", "4", str(offset + 7), "unknown_type"),
        ("conversations/x_1/2026-02-24.jsonl", "5", str(offset + 32), "too_long"),
    ]
    assert len(done.err.splitlines()) == 3


def test_repeated_events_are_printed_once_and_raw_lines_as_they_stand(
    memlog: Run, segment: Run, store: Path
) -> None:
    lines = said("tea", id="m1") + said("tea", id="m1", x=1) + said("coffee", id="m1") + b'\t{"x"\n'
    path = segment("conversations/x_1", lines + said("no newline in an old file").rstrip())
    segment("conversations/x_1", said("next"), "2026-02-25.jsonl")
    done = memlog("log", "cat")
    assert contents(done) == ["tea", "no newline in an old file", "next"]
    said_of_them = done.err.decode().splitlines()
    third = len(b"".join(lines.splitlines(keepends=True)[:2]))
    assert said_of_them[0].endswith(f":3 (byte {third}): conflict")
    assert said_of_them[-1] == "memlog: 1 lines repeat an event, which is printed once"
    raw = memlog("log", "cat", "--raw")
    assert raw.out == path.read_bytes().replace(b'\t{"x"\n', b"") + b"\n" + said("next")


def test_positions_are_where_the_bytes_are(memlog: Run, store: Path) -> None:
    shutil.copytree(FIXTURES / "week/log", store / "log")
    entries = memlog("log", "cat", "--positions").lines
    segments, _ = list_segments(store / "log")
    assert len(entries) == sum(len(each.path.read_bytes().splitlines()) for each in segments)
    for entry in entries:
        place = entry["position"]
        data = (store / "log" / place["stream"] / place["segment"]).read_bytes()
        assert json.loads(data[place["offset"] :].partition(b"\n")[0])["id"] == entry["id"]
        assert data.splitlines()[place["line"] - 1] in data[place["offset"] :]


@pytest.mark.parametrize("fixture", ["week", "foreign", "memories", "core-memory", "session-breaks"])
def test_a_log_that_is_read_and_appended_again_says_the_same(
    memlog: Run, store: Path, tmp_path: Path, fixture: str
) -> None:
    shutil.copytree(FIXTURES / fixture / "log", store / "log")
    other = {"MEMLOG_STORE": str(tmp_path / "other")}
    assert memlog("append", input=memlog("log", "cat").out, env=other).code == 0

    def events(env: dict[str, str]) -> list[Any]:
        """In the order of their ids: where two happened at once, the order is that of the files."""
        found = [{**event, "at": None, "wins": None} for event in memlog("log", "cat", env=env).lines]
        return sorted(found, key=lambda event: (event["id"], json.dumps(event)))

    assert events(other) == events({})


@pytest.mark.parametrize(
    "args",
    [("cat", "--raw", "--positions"), ("tail", "--chat", "x:1", "--stream", "memory"), ("tail", "-n", "-1")],
    ids=" ".join,
)
def test_options_that_contradict_each_other_are_refused(memlog: Run, args: tuple[str, ...]) -> None:
    done = memlog("log", *args, "--json")
    assert (done.code, done.error["code"]) == (2, "usage")


def test_raw_lines_cannot_drive_a_terminal(on_a_terminal: Callable[..., bytes], segment: Run) -> None:
    hostile = json.dumps(CHAT | {"content": "\x9b31m \u202e"}, ensure_ascii=False)
    segment("conversations/x_1", hostile.encode() + b"\n")
    assert b"\\x9b31m \\u202e" in on_a_terminal("log", "cat", "--raw")


# tail


def test_the_last_lines_are_those_that_were_appended_last(memlog: Run, store: Path) -> None:
    for number in range(8):
        chat = str(number % 2)
        ts = f"2026-02-24T0{9 - number}:00:00Z"
        event = CHAT | {"content": str(number), "chat_id": chat, "ts": ts}
        with clock(f"2026-02-24T10:00:0{number}.000Z"):
            Log(store).append([event])
    assert contents(memlog("log", "tail", "-n", "3")) == ["5", "6", "7"]
    assert contents(memlog("log", "tail")) == [str(number) for number in range(8)]
    assert contents(memlog("log", "tail", "-n", "3", "--chat", "x:0")) == ["2", "4", "6"]
    assert memlog("log", "tail", "-n", "0") == (0, b"", b"")


def test_the_last_lines_may_stand_in_several_segments(memlog: Run, segment: Run) -> None:
    segment("conversations/x_1", said("1") + said("2"), "2026-02-23.jsonl")
    segment("conversations/x_1", b"", "2026-02-24.jsonl")
    segment("conversations/x_1", said("3") + b"\n\n", "2026-02-24.0001.jsonl")
    assert contents(memlog("log", "tail", "-n", "2")) == ["2", "3"]


MEANWHILE = b'{"role":"user","content":"meanwhile"}\n'


class Following:
    """`memlog log tail -f`."""

    def __init__(self, env: dict[str, str], *args: str) -> None:
        self.process = subprocess.Popen(
            [MEMLOG, "log", "tail", "-f", *args],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=env,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        assert self.process.stdout is not None
        self._fd = self.process.stdout.fileno()
        self._heard = b""

    def hear(self) -> Any:
        """The content of the next line; None without one."""
        while b"\n" not in self._heard:
            self._heard += self._read(self._fd)
        line, _, self._heard = self._heard.partition(b"\n")
        return json.loads(line).get("content")

    def hear_error(self) -> bytes:
        """What it says next on stderr."""
        assert self.process.stderr is not None
        return self._read(self.process.stderr.fileno())

    def waits(self) -> bool:
        """Whether the file system reports changes to it."""
        folder = Path(f"/proc/{self.process.pid}/fd")
        with suppress(FileNotFoundError):
            return any("inotify" in os.readlink(each) for each in folder.iterdir())
        return False

    def _read(self, fd: int) -> bytes:
        ready, _, _ = select.select([fd], [], [], 60)
        assert ready, "it says nothing"
        data = os.read(fd, 65536)
        assert data, "the process has ended"
        return data

    def end(self, with_signal: int) -> tuple[int, bytes]:
        """Ask it to end; its exit code and what it said on stderr."""
        self.process.send_signal(with_signal)
        out, err = self.process.communicate(timeout=60)
        assert out == self._heard == b""
        return self.process.returncode, err


@pytest.fixture
def follow(environment: dict[str, str]) -> Iterator[Callable[..., Following]]:
    """Starts `memlog log tail -f`."""
    started: list[Following] = []

    def start(*args: str) -> Following:
        started.append(Following(environment, *args))
        return started[-1]

    yield start
    for following in started:
        following.process.kill()
        following.process.communicate()


def test_what_any_process_appends_is_printed(
    memlog: Run, segment: Run, store: Path, follow: Callable[..., Following]
) -> None:
    path = segment("conversations/x_1", said("before"), "2026-02-23.jsonl")
    tail = follow()
    assert tail.hear() == "before"

    Log(store).append([CHAT | {"content": "in a new segment"}])
    assert tail.hear() == "in a new segment"
    newest = max(path.parent.iterdir())
    with newest.open("ab") as file:
        file.write(said("by a foreign writer")[:20])
        file.flush()
        segment("conversations/x_2", MEANWHILE)
        assert tail.hear() == "meanwhile"
        file.write(said("by a foreign writer")[20:])
    assert tail.hear() == "by a foreign writer"
    (newest.parent / "2099-01-01.jsonl").write_bytes(said("in another new segment"))
    assert tail.hear() == "in another new segment"
    with path.open("ab") as file:
        file.write(said("late, in an old segment"))
    assert tail.hear() == "late, in an old segment"
    memlog("append", "message", "--chat", "y:1", "--role", "user", "--content", "in a new stream")
    assert tail.hear() == "in a new stream"
    code, err = tail.end(signal.SIGINT)
    assert (code, err.strip()) == (130, b"memlog: interrupted\nhint: what was done is kept")


def test_what_was_forgotten_is_not_among_the_last_lines(
    memlog: Run, store: Path, follow: Callable[..., Following]
) -> None:
    log = Log(store)
    log.append([CHAT | {"content": f"secret {number}", "id": f"s{number}"} for number in range(80)])
    log.append([CHAT | {"content": content, "id": content} for content in ("kept", "secret")])
    ids = [f"s{number}" for number in range(80)] + ["secret"]
    log.append_redactions([("conversations/x_1", each) for each in ids], None)
    assert [line.get("content") for line in memlog("log", "tail", "-n", "2").lines] == ["kept", None]
    assert b"secret 79" in memlog("log", "tail", "-n", "100", "--raw").out
    tail = follow("-n", "2", "--chat", "x:1")
    assert [tail.hear(), tail.hear()] == ["kept", None]
    log.append([CHAT | {"content": "secret", "id": "secret"}])
    log.append([CHAT | {"content": "later"}])
    assert tail.hear() == "later"


@pytest.mark.usefixtures("empty_store")
def test_a_log_that_is_to_come_is_followed(store: Path, follow: Callable[..., Following]) -> None:
    tail = follow("--chat", "x:1")
    until(tail.waits)
    Log(store).append([CHAT | {"content": "another", "chat_id": "2"}, CHAT | {"content": "tea"}])
    assert tail.hear() == "tea"
    code, _ = tail.end(signal.SIGTERM)
    assert code == -signal.SIGTERM


def test_a_segment_that_is_cut_short_is_followed_from_its_end(
    segment: Run, follow: Callable[..., Following]
) -> None:
    path = segment("conversations/x_1", said("first") + said("second"))
    tail = follow("-n", "1")
    assert tail.hear() == "second"
    os.truncate(path, len(said("first")))
    assert b"conversations/x_1/2026-02-24.jsonl was truncated" in tail.hear_error()
    segment("conversations/x_2", MEANWHILE)
    assert tail.hear() == "meanwhile", "by now it has looked at the segment of the other chat"
    with path.open("ab") as file:
        file.write(said("third"))
    assert tail.hear() == "third"
    assert tail.end(signal.SIGINT)[0] == 130


def test_no_line_is_lost_or_doubled_while_many_are_appended(
    store: Path, follow: Callable[..., Following]
) -> None:
    """Also those that come while it starts."""
    log = Log(store, durability="os")
    tail = follow("-n", "1000000")
    for number in range(500):
        log.append([CHAT | {"content": str(number)}])
    heard = [tail.hear() for _ in range(500)]
    assert heard == [str(number) for number in range(500)]
    tail.end(signal.SIGTERM)


def test_a_chat_is_followed_across_segments_days_and_folders(
    segment: Run, store: Path, follow: Callable[..., Following]
) -> None:
    """Its folders are those that name it, memlog's own and those made by hand."""

    def said(content: str) -> bytes:
        return b'{"role":"user","content":"%s"}\n' % content.encode()

    segment("conversations/x_a_b", said("before"), "2026-02-23.jsonl")
    segment("conversations/x_other", said("another chat"), "2026-02-23.jsonl")
    tail = follow("--chat", "x:a_b")
    assert tail.hear() == "before"

    segment("conversations/x_a_b", said("on the next day"), "2026-02-24.jsonl")
    assert tail.hear() == "on the next day"
    segment("conversations/x_a_b", said("in the next segment"), "2026-02-24.0001.jsonl")
    assert tail.hear() == "in the next segment"
    segment("conversations/x_other", said("another chat again"), "2026-02-24.jsonl")
    Log(store).append([CHAT | {"chat_id": "other", "content": "yet another"}])
    Log(store).append([CHAT | {"chat_id": "a_b", "content": "in memlog's own folder"}])
    assert (store / "log/conversations/x_a%5fb").is_dir()
    assert tail.hear() == "in memlog's own folder"
    code, _ = tail.end(signal.SIGINT)
    assert code == 130


def test_a_log_that_is_removed_and_made_anew_is_followed(
    segment: Run, store: Path, follow: Callable[..., Following]
) -> None:
    segment("conversations/x_1", said("before"))
    tail = follow()
    assert tail.hear() == "before"
    shutil.rmtree(store / "log")
    segment("conversations/x_1", said("after"), "2026-02-25.jsonl")
    assert tail.hear() == "after"
    tail.end(signal.SIGTERM)
