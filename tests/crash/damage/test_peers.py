"""What other logs and memories of agents lost, by the number of its thread: the same scenario on memlog.

Five threads could not be read when this was written; their tests play what other threads of their projects
tell of, and say so.
"""

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import memlog

CHAT = "conversations/x_1"

APPEND_MANY = """
import sys, memlog
with memlog.open(sys.argv[1], durability="os") as store:
    for number in range(int(sys.argv[3])):
        text = sys.argv[2] + str(number) + "x" * (number % 7 * 3000)
        store.append([memlog.Message(id=f"{sys.argv[2]}{number}", channel="x", chat_id="1", role="user",
                                     content=text)])
        print(number, flush=True)
"""


def message(event_id: str, content: str = "green tea") -> memlog.Message:
    return memlog.Message(id=event_id, channel="x", chat_id="1", role="user", content=content)


def segment_of(store: Path, stream: str = CHAT) -> Path:
    """The newest one: of a writer that was retired, others stay."""
    paths = (store / "log" / stream).iterdir()
    return max(paths, key=lambda path: path.stat().st_mtime_ns)


def said(opened: memlog.Store) -> list[str]:
    return [each.id for each in opened.conversations.window(("x", "1"), last=10_000).messages]


def tear(store: Path, keep: int) -> None:
    """Leave `keep` bytes of a line, as a killed writer does."""
    path = segment_of(store)
    line = path.read_bytes().splitlines()[-1]
    with path.open("ab") as file:
        file.write(line[:keep])


def append_after_restart(store: Path, *events: memlog.Message) -> None:
    """Append as a process does that knows nothing of what the file held before."""
    with memlog.open(store, durability="os", model=store.parent) as again:
        again.append(events)


def run_at_once(*arguments: list[str]) -> list[subprocess.Popen[bytes]]:
    """Processes that append at the same time, all at their end."""
    running = [
        subprocess.Popen([sys.executable, "-c", APPEND_MANY, *each], stdout=subprocess.DEVNULL)
        for each in arguments
    ]
    assert [process.wait(60) for process in running] == [0] * len(running)
    return running


def test_claude_code_50347_a_bad_line_in_the_middle_ends_no_history(opened, store):
    """There, resuming stopped without a word at the first bad line, and all behind it seemed gone."""
    opened.append([message(f"m{number}") for number in range(10)])
    path = segment_of(store)
    lines = path.read_bytes().splitlines()
    lines[4] = lines[4][: len(lines[4]) // 2]
    path.write_bytes(b"\n".join(lines) + b"\n")
    assert said(opened) == [f"m{number}" for number in range(10) if number != 4]
    (bad,) = opened.maintenance.quarantine()
    assert (bad.reason, bad.offset) == ("torn", 4 * (len(lines[0]) + 1))


def test_claude_code_53821_a_torn_tail_blanks_no_history(opened, store):
    """There, a transcript that a power loss had cut in its last line was shown as an empty conversation."""
    opened.append([message(f"m{number}") for number in range(299)])
    tear(store, 40)
    assert len(said(opened)) == 299
    append_after_restart(store, message("next"))
    assert said(opened)[-1] == "next"
    assert [line.reason for line in opened.maintenance.quarantine()] == ["torn"]


def test_claude_code_49876_a_record_behind_a_run_of_nuls_lives(opened, store):
    """There, a run of zero bytes with one valid record behind it, on one line, cost the record."""
    opened.append([message("a"), message("b"), message("c")])
    path = segment_of(store)
    first, second, third = path.read_bytes().splitlines()
    path.write_bytes(b"\n".join([first, b"\0" * 4096 + second, third, b"\0" * 9000]))
    assert said(opened) == ["a", "b", "c"]
    opened.append([message("d")])
    assert said(opened) == ["a", "b", "c", "d"]
    assert [run.bytes for run in opened.maintenance.verify().nul_runs] == [4096, 9000]


def test_claude_code_81843_writers_at_once_splice_no_records(store):
    """There, records of writers without a common lock were cut off by the next one on the same line."""
    run_at_once(*([str(store), name, "60"] for name in "abcd"))
    path = segment_of(store)
    ids = [json.loads(line)["id"] for line in path.read_bytes().splitlines()]
    assert sorted(ids) == sorted(f"{name}{number}" for name in "abcd" for number in range(60))


def test_claude_code_81843_a_spliced_line_costs_no_neighbour(opened, store):
    """Where a writer without the lock has spliced one, the line is listed, and its neighbours live."""
    opened.append([message("a"), message("b"), message("c"), message("d")])
    path = segment_of(store)
    first, second, third, fourth = path.read_bytes().splitlines()
    path.write_bytes(b"\n".join([first, second[:50] + third, fourth, b""]))
    assert said(opened) == ["a", "d"]
    assert len(opened.maintenance.quarantine()) == 1


def test_claude_code_52387_a_session_that_two_processes_continue_keeps_both(store):
    """Thread unread; of its kind (#39151): two processes resumed one session, and interleaved."""
    run_at_once([str(store), "left", "40"], [str(store), "right", "40"])
    with memlog.open(store, model=store.parent) as opened:
        assert len(said(opened)) == 80
        assert opened.maintenance.verify().is_spotless


def test_claude_code_20992_who_is_killed_while_it_writes_loses_nothing_that_was_acknowledged(store):
    """Thread unread; of its kind (#24494): what had been said was not on the disk after a kill."""
    process = subprocess.Popen(
        [sys.executable, "-c", APPEND_MANY, str(store), "m", "100000"], stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    for _ in range(25):
        process.stdout.readline()
    process.send_signal(signal.SIGKILL)
    acknowledged = 25 + len(process.stdout.read().splitlines())
    process.wait()
    with memlog.open(store, model=store.parent) as opened:
        found = set(said(opened))
        assert {f"m{number}" for number in range(acknowledged)} <= found
        assert len(found) <= acknowledged + 1


def test_codex_24425_a_record_written_again_behind_its_own_beginning_is_there_once(opened, store):
    """There, a record was cut short and then written whole, and the session with it disappeared."""
    opened.append([message("a"), message("b", "a long thought " * 50)])
    path = segment_of(store)
    first, second = path.read_bytes().splitlines()
    path.write_bytes(b"\n".join([first, second[:200], second, b""]))
    assert said(opened) == ["a", "b"]
    assert [line.reason for line in opened.maintenance.quarantine()] == ["torn"]


def test_mcp_servers_1819_calls_at_once_corrupt_nothing(opened):
    """There, several calls of one answer wrote the memory file at once, and left it malformed for good."""
    threads = [
        threading.Thread(target=opened.memories.save, args=(f"memory {number}",)) for number in range(16)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(opened.memories.list()) == 16
    assert opened.maintenance.verify().is_spotless


def test_mcp_servers_4510_a_malformed_line_stops_no_call(opened, store):
    """There, one malformed line made every call fail, from the start of the server on."""
    opened.memories.save("green tea", memory_id="tea")
    with segment_of(store, "memory").open("ab") as file:
        file.write(b'{"type":"memory_saved","content":\n')
    opened.memories.save("black tea", memory_id="black")
    assert {memory.memory_id for memory in opened.memories.list()} == {"tea", "black"}
    assert opened.memories.delete("tea")
    assert len(opened.maintenance.quarantine()) == 1


def test_mcp_servers_3653_a_last_line_without_its_newline_welds_nothing(opened, store):
    """There, a file without a last newline had the next record appended to its last line."""
    opened.append([message("a")])
    os.truncate(segment_of(store), segment_of(store).stat().st_size - 1)
    append_after_restart(store, message("b"))
    assert said(opened) == ["a", "b"]
    assert opened.maintenance.quarantine() == []


def test_hermes_agent_12684_threads_that_append_at_once_merge_no_lines(opened, store):
    """Thread unread; of its kind (#13695): threads merged two messages into one line."""

    def append(name: str) -> None:
        for number in range(25):
            opened.append([message(f"{name}{number}", "y" * 9000)])

    threads = [threading.Thread(target=append, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(segment_of(store).read_bytes().splitlines()) == len(said(opened)) == 100


def test_eliza_30878_the_record_behind_a_torn_one_is_not_glued_to_it(opened, store):
    """There, a crash left a torn line, and the next record was appended to it and lost with it."""
    opened.append([message("a")])
    for keep in (1, 17, 60):
        tear(store, keep)
        append_after_restart(store, message(f"after-{keep}"))
    assert said(opened) == ["a", "after-1", "after-17", "after-60"]
    assert len(opened.maintenance.quarantine()) == 3


def test_beads_3931_a_stale_database_drops_no_line_of_the_log(opened, store):
    """There, an update wrote the whole log anew from a database that had not seen the lines of others."""
    opened.memories.save("green tea", memory_id="tea")
    opened.maintenance.project(embed=False)
    path = segment_of(store, "memory")
    with memlog.open(store, model=store.parent) as other:
        other.memories.save("of another session", memory_id="other")
    before = path.read_bytes()
    opened.memories.update("tea", content="black tea")
    assert path.read_bytes().startswith(before)
    assert {memory.memory_id for memory in opened.memories.list()} == {"tea", "other"}


def test_openclaw_104323_early_messages_are_not_dropped(opened, store):
    """There, two files held parts of one session, the first messages were in one alone, and nothing told."""
    opened.append([message(f"m{number}") for number in range(14)])
    path = segment_of(store)
    before = said(opened)
    lines = path.read_bytes().splitlines()
    path.write_bytes(b"\n".join(lines[7:]) + b"\n")
    notes: list[str] = []
    with memlog.open(store, model=store.parent, notify=notes.append) as again:
        assert said(again) == before[7:]
    assert any("was rewritten" in note for note in notes), "that the log lost lines is told, not passed over"


def test_openclaw_89037_who_dies_with_the_lock_blocks_nobody(opened, store):
    """Thread unread; of its kind (#60258): the lock file of a dead process blocked all others."""
    opened.append([message("a")])
    hold = "import sys\nfrom pathlib import Path\nfrom memlog.eventlog.files.locks import locked\n"
    hold += "with locked(Path(sys.argv[1]), 'it', 5):\n    print('locked', flush=True)\n    sys.stdin.read()"
    holder = subprocess.Popen(
        [sys.executable, "-c", hold, segment_of(store)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == b"locked\n"
    holder.kill()
    holder.communicate()
    opened.append([message("b")])
    assert said(opened) == ["a", "b"]


def test_openclaw_90361_status_says_what_is_not_read_yet(opened, store):
    """Thread unread; of its kind (#97814): a status was clean while a transcript was missing."""
    opened.append([message("a")])
    opened.maintenance.project(embed=False)
    assert opened.maintenance.status().unread_bytes == 0
    with memlog.open(store, durability="os", model=store.parent) as other:
        other.append([memlog.Message(channel="x", chat_id="2", role="user", content="of another process")])
    assert opened.maintenance.status().unread_bytes > 0
    assert len(opened.search("another", mode="text").hits) == 1
    assert opened.maintenance.status().unread_bytes == 0
