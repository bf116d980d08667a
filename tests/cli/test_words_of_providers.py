"""What a provider says of its input is for the terminal of that call: no file, pipe or report has it."""

import os
import pty
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import memlog as library
from tests.service.http.conftest import Serve
from tests.service.http.conftest import serve as serve  # a fixture
from tests.support.command_tree import MEMLOG
from tests.support.provider import Provider, serving

Run = Callable[..., Any]

SAID = "Zitronenmelisse hilft beim Einschlafen"
WORDS = ("cannot-read", "cannot%2", "cannot\\u", "Zitronenmelisse")
SETTINGS = """
[embedding]
type = "{kind}"
base_url = "{url}"
model = "mini"
dimension = 384
timeout = 20
[rerank]
base_url = "{url}"
timeout = 20
[language_model]
base_url = "{url}"
timeout = 20
[jobs]
daily = "off"
weekly = "off"
"""
COMMANDS = (
    ("project",),
    ("embed",),
    ("query", "Einschlafen"),
    ("context", "Einschlafen", "--explain"),
    ("extract",),
    ("daily", "distil", "--until", "2026-01-10"),
    ("jobs", "run", "extraction"),
    ("jobs", "run", "weekly"),
    ("jobs", "log"),
    ("watch", "--once"),
    ("doctor",),
    ("stats",),
    ("status",),
)


@pytest.fixture
def provider() -> Iterator[Provider]:
    with serving() as server:
        yield server


@pytest.fixture
def filled(store: Path, provider: Provider) -> Path:
    with library.open(store) as opened:
        opened.append(library.Message(channel="x", chat_id="1", role="user", content=SAID))
        opened.daily.record(summary=SAID, date="2026-01-09")
        for end in ("!", " immer"):
            opened.memories.save(f"{SAID}{end}", dedup=False)
    (store / "memlog.toml").write_text(SETTINGS.format(url=provider.url, kind="api"))
    return store


def files(store: Path) -> bytes:
    """Whatever lies outside the log, and what jobs wrote into it; the databases hold the texts themselves."""
    lines = [line for path in store.rglob("log/**/*.jsonl") for line in path.read_bytes().splitlines()]
    others = [path for path in store.rglob("*") if path.is_file() and path.suffix not in (".db", ".jsonl")]
    by_jobs = [line for line in lines if b"job_completed" in line or b"model_failed" in line]
    return b"\n".join([*by_jobs, *(path.read_bytes() for path in others)])


@pytest.mark.parametrize("kind", ["api", "ollama"])
@pytest.mark.parametrize(
    "quotes", ["400", "401", "422", "redirect", "retry-after", "status line", "member", "no JSON"]
)
def test_no_file_and_no_report_has_them(
    memlog_here: Run,
    filled: Path,
    provider: Provider,
    quotes: str,
    kind: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for module in ("engine.provider_embedders", "llm.model"):
        monkeypatch.setattr(f"memlog.service.{module}._WAITS", (0.01,))
    (filled / "memlog.toml").write_text(SETTINGS.format(url=provider.url, kind=kind))
    provider.quotes = quotes
    for command in COMMANDS:
        done = memlog_here(*command)
        told = (done.out + done.err).decode().replace(SAID, "")
        assert not any(word in told for word in WORDS), command
        assert not any(word.encode() in files(filled) for word in WORDS), command
    assert {path for path, *_ in provider.requests} >= {"/v1/chat/completions"}


def test_equal_errors_have_one_hash_which_only_the_store_can_make(
    memlog: Run, filled: Path, provider: Provider
) -> None:
    provider.quotes = "401"

    def error() -> str:
        return str(memlog("embed", "--json").error["message"])

    first = error()
    assert "HTTP 401: words " in first
    assert error() == first
    (filled / "store.key").unlink()
    assert error() != first


def test_the_terminal_of_the_call_shows_them(
    filled: Path, provider: Provider, environment: dict[str, str]
) -> None:
    provider.quotes = "401"
    ours, its = pty.openpty()
    with subprocess.Popen([MEMLOG, "embed"], env=environment, stdout=its, stderr=its) as process:
        os.close(its)
        shown = b""
        while block := _read(ours):
            shown += block
        process.wait(60)
    os.close(ours)
    assert b"it said: " in shown
    assert b"cannot-read" in shown


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 4096)
    except OSError:  # on Linux at its end
        return b""


@pytest.mark.parametrize(
    "record",
    [
        '{"x":{"failures":1,"errors":3,"error":"Zitronenmelisse"}}',  # of an older version
        '{"x":{"failures":1,"error":"Zitronenmelisse","rests_until":null}}',
        '{"x":{"failures":1,"error":"Zitronenmelisse"},"y":[]}',
        '{"x":{"failures":1,"error":"Zitronenmelisse"',
    ],
)
def test_a_scrub_removes_a_cache_of_words_that_it_cannot_read(memlog: Run, filled: Path, record: str) -> None:
    path = filled / "cache/providers.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(record)
    assert memlog("scrub", "--yes").code == 0
    assert not path.exists()


def test_without_a_token_a_server_says_that_it_is_not_ready_and_no_more(
    serve: Serve, filled: Path, provider: Provider
) -> None:
    provider.quotes = "401"
    settings = SETTINGS.format(url=provider.url, kind="api").replace("dimension = 384\n", "")
    (filled / "memlog.toml").write_text(settings)
    server = serve(store=filled)
    server.ask("search", {"text": "Einschlafen"})
    answered = server.ask("/readyz", authorization="")
    assert answered.code == "not_ready"
    assert not any(word in answered.body.decode() for word in (*WORDS, provider.url, "mini", "401"))
    assert not any(word in server.ask("status", {}).body.decode() for word in WORDS)
