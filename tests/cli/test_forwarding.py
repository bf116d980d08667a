"""A server runs commands in the place of their own processes: the same bytes, whatever happens to it."""

import json
import os
import random
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

import memlog
from memlog.cli.process.forwarding import path_of_socket
from tests.cli.transcripts import CHAPTERS, is_told, run, steps_of
from tests.support.command_tree import MEMLOG
from tests.support.forked_memlog import forking_program

FORWARDED = b"memlog: a server runs this command\n"
OTHER = "memlog: this process runs the command: "


@contextmanager
def served(env: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    """A server that runs forwarded commands, and has begun to."""
    command = [MEMLOG, "serve", "--port", "0"]
    with subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as server:
        try:
            assert server.stderr is not None
            for line in server.stderr:
                if b"listening" in line:
                    break
            path = Path(
                path_of_socket({os.fsencode(name): os.fsencode(value) for name, value in env.items()})
            )
            wait_for(path.exists)
            yield server
        finally:
            server.kill()


def wait_for(what: Callable[[], object]) -> None:
    deadline = time.monotonic() + 60
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def called(env: dict[str, str], *args: str, **more: object) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([MEMLOG, *args], env=env, capture_output=True, timeout=60, check=False, **more)  # type: ignore[call-overload,no-any-return]


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    home = tmp_path / "home"
    home.mkdir()
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("MEMLOG_", "XDG_"))}
    return kept | {"HOME": str(home), "MEMLOG_STORE": str(home / "notes")}


@pytest.fixture
def store(env: dict[str, str]) -> memlog.Store:
    store = memlog.open(env["MEMLOG_STORE"])
    store.append(
        [
            memlog.Message(channel="cli", chat_id="1", role="user", content=f"Tea {number} is green.")
            for number in range(20)
        ]
    )
    store.maintenance.project()
    return store


def test_chapters_read_the_same_with_a_server(env: dict[str, str], tmp_path: Path) -> None:
    home = Path(env["HOME"])
    with served(env | {"MEMLOG_STORE": str(tmp_path / "other")}), forking_program(tmp_path) as program:
        assert called(env, "-v", "gate", "Who likes tea?").stderr == FORWARDED
        env["PATH"] = f"{program.parent}:{MEMLOG.parent}:{os.environ['PATH']}"
        for chapter in CHAPTERS:
            steps = steps_of(chapter.read_text())
            for step, output in zip(steps, run(steps, env, home), strict=True):
                if not is_told(step.output, output):
                    assert output.splitlines() == step.output.splitlines(), step.command


def test_a_forwarded_command_has_the_surroundings_of_its_client(
    env: dict[str, str], store: memlog.Store, tmp_path: Path
) -> None:
    calls: list[Callable[[], subprocess.CompletedProcess[bytes]]] = [
        lambda: called(env, "query", "-", input=b"green tea\n"),
        lambda: called(env, "query", "-", input=b"green tea " * 200_000),
        lambda: called(env | {"TZ": "Asia/Tokyo"}, "window", "--chat", "cli:1", "--format", "md"),
        lambda: called(env | {"LC_ALL": "C", "PYTHONIOENCODING": "latin-1"}, "ask", "Где чай?"),
        lambda: called(env | {"MEMLOG_SEARCH_LIMIT": "2"}, "query", "tea", "--json"),
        lambda: called(env | {"MEMLOG_STORE": "notes"}, "status", "--json", cwd=Path(env["HOME"])),
        lambda: called(env | {"MEMLOG_STORE": "notes"}, "window", "--chat", "cli:1", cwd=tmp_path),
        lambda: called(env, "query", "tea", stdin=subprocess.DEVNULL, umask=0o022),
        lambda: called(env, "query", "--no-such-option"),
        lambda: called(env, "query", stdin=subprocess.DEVNULL),
    ]
    cold = [(done.returncode, done.stdout, done.stderr) for done in (call() for call in calls)]
    with served(env):
        for call, expected in zip(calls, cold, strict=True):
            done = call()
            masked = [_without_time(text) for text in (done.stdout, done.stderr)]
            assert [done.returncode, *masked] == [expected[0], *map(_without_time, expected[1:])]


def _without_time(text: bytes) -> bytes:
    return b"" if b'"took_ms"' in text or b'"memlog_version"' in text else text


def test_a_store_that_is_replaced_or_complains_is_as_without_a_server(
    env: dict[str, str], store: memlog.Store
) -> None:
    copy = store.path.with_name("copy")
    store.close()
    shutil.copytree(store.path, copy)
    with served(env):
        for _ in range(4):
            called(env, "query", "tea")
        store.append([memlog.Message(channel="cli", chat_id="1", role="user", content="A zebra.")])
        store.close()
        assert b"zebra" in called(env, "query", "zebra").stdout
        shutil.rmtree(store.path)
        shutil.copytree(copy, store.path)
        for _ in range(4):
            assert json.loads(called(env, "status", "--json").stdout)["messages"] == 20
        (store.path / "model" / "core_memory.json").write_text("{}")
        said = [called(env, "core", "get").stderr for _ in range(4)]
        assert said == [called(env, "--no-server", "core", "get").stderr] * 4 != [b""] * 4


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda env, server: env, "the server does not run it"),
        (lambda env, server: env | {"HOME": env["HOME"] + "/other"}, "no server runs"),
        (lambda env, server: server.kill(), ""),
    ],
    ids=["command", "home", "killed"],
)
def test_another_command_runs_in_its_own_process(
    change: Callable[..., object], why: str, env: dict[str, str], store: memlog.Store
) -> None:
    with served(env) as server:
        changed = change(env, server)
        server.poll() if isinstance(changed, dict) else server.wait(60)
        words = ["digest"] if why == "the server does not run it" else ["status"]
        done = called(changed if isinstance(changed, dict) else env, "-v", *words)
        assert done.stderr.decode().startswith(OTHER + why)
        assert called(env, "query", "tea").returncode == 0


def test_serve_auto_starts_one_server_that_ends_when_idle(env: dict[str, str], store: memlog.Store) -> None:
    config = Path(env["HOME"], ".config", "memlog", "config.toml")
    config.parent.mkdir(parents=True)
    config.write_text("[serve]\nauto = true\nidle_minutes = 0.05\n")
    both = [subprocess.Popen([MEMLOG, "query", "tea"], env=env, stdout=subprocess.DEVNULL) for _ in range(2)]
    assert [each.wait(60) for each in both] == [0, 0]
    wait_for(lambda: called(env, "-v", "gate", "Who likes tea?").stderr == FORWARDED)
    wait_for(lambda: len(servers_of(env)) == 1)
    wait_for(lambda: not servers_of(env))
    refused = called(env | {"MEMLOG_STORE": str(store.path)}, "config", "set", "serve.auto", "true")
    assert (refused.returncode, b"your own file alone" in refused.stderr) == (65, True)


def servers_of(env: dict[str, str]) -> list[Path]:
    """The processes of servers that were started for this home."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            words = (process / "cmdline").read_bytes().split(b"\0")
            if b"--no-port" in words and f"HOME={env['HOME']}".encode() in (
                process / "environ"
            ).read_bytes().split(b"\0"):
                found.append(process)
    return found


def test_commands_are_answered_once_while_servers_are_killed(
    env: dict[str, str], store: memlog.Store
) -> None:
    check_storm(env, store, commands=40, kills=2)


@pytest.mark.deep
def test_500_commands_are_answered_once_while_servers_are_killed(
    env: dict[str, str], store: memlog.Store
) -> None:
    check_storm(env, store, commands=500, kills=25)


def check_storm(env: dict[str, str], store: memlog.Store, *, commands: int, kills: int) -> None:
    """Run commands from four threads while servers are killed at random, and check every answer."""
    source = random.Random(70)
    failures: list[str] = []
    recorded: list[int] = []
    rest = [source.choice(("query", "context", "window")) for _ in range(commands)]
    expected = {
        "query": called(env, "query", "tea").stdout,
        "context": called(env, "context", "--no-record", "Is tea green?").stdout,
        "window": called(env, "window", "--chat", "cli:1").stdout,
    }
    words = {"query": ["tea"], "context": ["Is tea green?"], "window": ["--chat", "cli:1"]}

    def call_until_done() -> None:
        while rest:
            name = rest.pop()
            done = called(env, name, *words[name])
            if done.returncode or done.stdout != expected[name]:
                failures.append(f"{name}: {done}")
            recorded.append(name == "context")

    clients = [threading.Thread(target=call_until_done) for _ in range(4)]
    share = commands // (kills + 1)
    for number in range(kills):
        with served(env) as server:
            if not number:
                for client in clients:
                    client.start()
            left = len(rest)
            while rest and left - len(rest) < share and any(client.is_alive() for client in clients):
                clients[0].join(0.01)
            if source.random() < 0.5:
                subprocess.run(["pkill", "-KILL", "-P", str(server.pid)], check=False)  # the template
            server.send_signal(signal.SIGKILL)
    for client in clients:
        client.join(60)
    assert not failures, failures[0]
    with memlog.open(env["MEMLOG_STORE"]) as opened:
        stats = opened.maintenance.stats()
    assert stats.events_by_type["context_given"] == sum(recorded)
    quarantined = json.loads(called(env, "status", "--json").stdout)
    assert (quarantined["duplicates"], quarantined["conflicts"]) == (0, 0)
