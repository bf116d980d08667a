"""`make bench`: what a whole append costs, a rebuild, one new line, an import, the gate, and the service.

Prints figures, and checks no bound: they are of this machine, which may be busy.
"""

import json
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import memlog
from memlog.projector.lifecycle import Projector
from tests.support.month import make as make_month
from tests.support.places import FIXTURES

MESSAGES = 100_000
CHATS = 50
IMPORTED = int(os.environ.get("MEMLOG_BENCH_IMPORTED", "100000"))
ROUNDS = 15

# Not ru_maxrss, which also counts the process that forked it.
IMPORTS = """
import re, sys, memlog
with memlog.open(sys.argv[1], create=True) as store:
    report = store.exchange.import_from("claude-code", [sys.argv[2]])
    print(report.appended, re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())[1])
"""

# Every third word of English is one of these; a text without any would be looked at for other languages.
FUNCTION_WORDS = "the a to i you it and of in is for my me we that this with was so have do at but".split()


def cpu_seconds(command: list[str]) -> float:
    """Of a whole process, user and system."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def median_of(measure: Callable[[], float], rounds: int) -> float:
    return statistics.median(measure() for _ in range(rounds))


def write_messages(store: Path) -> None:
    source = random.Random(2)
    words = ["".join(source.choices("abcdefghijklmnop", k=source.randint(2, 9))) for _ in range(8000)]
    with memlog.open(store, durability="os") as opened:
        opened.append(
            memlog.Message(
                channel="bench",
                chat_id=str(number % CHATS),
                role="user",
                name="Anna",
                content=" ".join(source.choices(words, k=12) + source.choices(FUNCTION_WORDS, k=6)),
            )
            for number in range(MESSAGES)
        )


def append_ratio(command: str, store: Path) -> float:
    append = [command, "--store", str(store), "append", "message", "--chat", "b:1", "--role", "user"]
    append += ["--content", "tea"]
    imports = [sys.executable, "-c", "import click, msgspec"]
    return median_of(lambda: cpu_seconds(append) / cpu_seconds(imports), ROUNDS)


def one_line(store: Path) -> float:
    """Milliseconds to catch up with one new message, in a process that has started."""
    with memlog.open(store, durability="os") as opened:
        opened.append([memlog.Message(channel="bench", chat_id="1", role="user", content="one new line")])
    projector = Projector(store)
    projector.connect_to_live()
    started = time.perf_counter()
    projector.catch_up()
    taken = time.perf_counter() - started
    projector.close()
    return taken * 1000


def gate() -> float:
    """Milliseconds of CPU time for a text."""
    texts = [json.loads(line)["text"] for line in (FIXTURES / "gate/lines.jsonl").read_text().splitlines()]
    started = time.process_time()
    for text in texts:
        memlog.should_retrieve(text)
    return (time.process_time() - started) * 1000 / len(texts)


@contextmanager
def served(command: str, folder: Path) -> Iterator[memlog.RemoteStore]:
    """The store in a folder, over HTTP."""
    options = ["--store", folder / "store", "serve", "--json", "--port=0", "--token-file", folder / "token"]
    with subprocess.Popen([command, *map(str, options)], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        said = json.loads(process.stdout.readline())
        with memlog.connect(said["url"], token=(folder / "token").read_text().strip()) as remote:
            yield remote
        process.terminate()


def searches(command: str, folder: Path) -> tuple[float, float]:
    """Milliseconds of a warm hybrid search in process and over HTTP, in turn: medians."""
    folder.mkdir()
    texts = [json.loads(line)["text"] for line in (FIXTURES / "gate/lines.jsonl").read_text().splitlines()]
    taken: tuple[list[float], list[float]] = ([], [])
    with memlog.open(folder / "store", durability="os") as local:
        local.append(
            memlog.Message(channel="b", chat_id=str(number % 9), role="user", content=text)
            for number, text in enumerate(texts * 3)
        )
        local.maintenance.project()
        with served(command, folder) as remote:
            for number, text in enumerate(texts[:210]):
                for search, times in zip((local.search, remote.search), taken, strict=True):
                    started = time.perf_counter()
                    search(text)
                    if number >= 10:
                        times.append((time.perf_counter() - started) * 1000)
    return statistics.median(taken[0]), statistics.median(taken[1])


def lines_over_http(command: str, folder: Path) -> tuple[float, float]:
    """Seconds for 10,000 events in lines by the pipe and over HTTP, in turn: medians of 5."""
    folder.mkdir()
    taken: tuple[list[float], list[float]] = ([], [])
    said = {"type": "message", "channel": "b", "role": "user", "content": "ten thousand cups of tea"}
    with served(command, folder) as remote:
        connection = remote._connection
        for turn in range(5):
            for side, times in zip(("pipe", "http"), taken, strict=True):
                event = said | {"chat_id": f"{side}-{turn}"}
                lines = b"".join(json.dumps(event | {"id": f"{n}"}).encode() + b"\n" for n in range(10_000))
                started = time.perf_counter()
                if side == "pipe":
                    append = [command, "--store", str(folder / "store"), "append"]
                    subprocess.run(append, input=lines, check=True, capture_output=True)
                else:
                    headers = {"content-type": "application/x-ndjson"}
                    path = "/v1/projects/default/append"
                    connection._client.post(path, content=lines, headers=headers).raise_for_status()
                times.append(time.perf_counter() - started)
    return statistics.median(taken[0]), statistics.median(taken[1])


FORWARDED = {
    "query": ["query", "What does the harbour cost?"],
    "context": ["context", "--no-record", "What does the harbour cost?"],
    "memory list": ["memory", "list"],
    "status": ["status"],
    "window": ["window", "--chat", "cli:home"],
}
NOTHING = """#!{python}
import re
import sys
if __name__ == "__main__":
    sys.argv[0] = re.sub(r"(-script\\.pyw|\\.exe)?$", "", sys.argv[0])
"""
"""A console script as pip writes it, of a program that does nothing."""


def forwarded_commands(command: str, folder: Path) -> Iterator[str]:
    """What commands take with a server, on the month's store: medians of 9 pairs. Measure a wheel's."""
    store, home = folder / "store", folder / "home"
    home.mkdir(parents=True)
    make_month(store)
    nothing = folder / "nothing"
    nothing.write_text(NOTHING.format(python=sys.executable))
    nothing.chmod(0o700)
    imports = [sys.executable, "-c", "import click, msgspec"]
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("MEMLOG_", "XDG_"))}
    env = kept | {"HOME": str(home), "MEMLOG_STORE": str(store)}
    subprocess.run([command, "project"], env=env, check=True, capture_output=True)
    with subprocess.Popen([command, "serve", "--port=0"], env=env, stderr=subprocess.DEVNULL) as server:
        while (
            b"a server"
            not in subprocess.run([command, "-v", "gate", "tea"], env=env, capture_output=True).stderr
        ):
            time.sleep(0.1)
        for name, words in FORWARDED.items():
            pairs = [
                [cpu_and_wall(each, env) for each in ([command, *words], [str(nothing)], imports)]
                for _ in range(9)
            ]
            cpu = statistics.median(ours[0] / none[0] for ours, none, _ in pairs)
            wall = statistics.median(ours[1] / both[1] for ours, _, both in pairs)
            shown = statistics.median(ours[1] for ours, _, _ in pairs)
            yield (
                f"{name} with a server: {shown * 1000:.0f} ms, {wall:.2f} x click and msgspec (wall),"
                f" {cpu:.2f} x nothing (CPU)"
            )
        server.terminate()


def cpu_and_wall(command: list[str], env: dict[str, str]) -> tuple[float, float]:
    started = time.perf_counter()
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, env=env, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return cpu, time.perf_counter() - started


def idle_server(command: str, folder: Path) -> float:
    """Percent of a core that a server with five open stores takes within 20 idle seconds."""
    folder.mkdir()
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("MEMLOG_", "XDG_"))}
    env = kept | {"HOME": str(folder)}
    options = ["serve", "--json", "--port=0", "--no-token"]
    with subprocess.Popen(
        [command, *options], env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as server:
        assert server.stdout is not None
        url = json.loads(server.stdout.readline())["url"]
        for number in range(5):
            with memlog.connect(url, project=f"p{number}") as store:
                store.append([memlog.Message(channel="b", chat_id="1", role="user", content="tea")])
                store.search("tea")
        time.sleep(20)
        tasks = Path(f"/proc/{server.pid}/task")
        before = sum(int((each / "schedstat").read_text().split()[0]) for each in tasks.iterdir())
        time.sleep(20)
        after = sum(int((each / "schedstat").read_text().split()[0]) for each in tasks.iterdir())
        server.terminate()
    return (after - before) / 20e9 * 100


def write_sessions(folder: Path, count: int) -> None:
    """Write sessions of Claude Code with `count` lines of 2 KB in all, a thousand in each."""
    source = random.Random(3)
    words = ["".join(source.choices("abcdefghijklmno", k=source.randint(2, 9))) for _ in range(8000)]
    texts = [" ".join(source.choices(words + FUNCTION_WORDS * 50, k=310)) for _ in range(500)]
    for start in range(0, count, 1000):
        session, day = f"{start:08x}-0000-4000-8000-000000000000", f"2026-0{start // 1000 % 9 + 1}-01"
        with (folder / f"{session}.jsonl").open("w") as file:
            for number in range(start, min(start + 1000, count)):
                line = {
                    "type": "user" if number % 2 else "assistant",
                    "uuid": f"{number:08x}-1111-4111-8111-111111111111",
                    "sessionId": session,
                    "timestamp": f"{day}T08:{number // 60 % 60:02}:{number % 60:02}.000Z",
                    "message": {"content": f"{number} {texts[number % 500]}"},
                }
                file.write(json.dumps(line) + "\n")


def import_of(folder: Path, count: int) -> tuple[float, float]:
    """Messages per second of an import into a new store, and its peak of memory in MB."""
    source = folder / "sessions"
    source.mkdir(parents=True)
    write_sessions(source, count)
    started = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", IMPORTS, folder / "store", source], capture_output=True, text=True, check=True
    )
    seconds = time.perf_counter() - started
    appended, kilobytes = map(int, done.stdout.split())
    assert appended == count
    return count / seconds, kilobytes / 1000


def main() -> None:
    # Else an editable install is compiled anew at each start.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    command = str(Path(sys.executable).parent / "memlog")
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder, "store")
        write_messages(store)
        rebuild = [command, "--store", str(store), "project", "--from-scratch", "--no-embed"]
        print(
            f"append, process: {append_ratio(command, Path(folder, 'small')):.2f} x click and msgspec (CPU)"
        )
        seconds = median_of(lambda: cpu_seconds(rebuild), 5)
        print(f"rebuild of {MESSAGES:,} messages, process: {seconds:.2f} CPU-s")
        print(f"one new line caught up: {median_of(lambda: one_line(store), ROUNDS):.1f} ms")
        here, over_http = searches(command, Path(folder, "searched"))
        print(
            f"warm search: {here:.1f} ms in process, {over_http:.1f} ms over HTTP, {over_http / here:.2f} x"
        )
        piped, posted = lines_over_http(command, Path(folder, "posted"))
        print(f"10,000 events: {piped:.2f} s piped, {posted:.2f} s over HTTP, {posted / piped:.2f} x")
        speed, peak = import_of(Path(folder, "imported"), IMPORTED)
        print(f"import of {IMPORTED:,} messages of 2 KB: {speed:,.0f} a second, {peak:.0f} MB at most")
        for line in forwarded_commands(command, Path(folder, "forwarded")):
            print(line)
        print(
            f"idle server with five open stores: {idle_server(command, Path(folder, 'idle')):.2f} % of a core"
        )
        print(f"gate: {median_of(gate, ROUNDS):.3f} ms a text (CPU)")


if __name__ == "__main__":
    main()
