"""`memlog serve`: every operation over HTTP, and who may ask."""

import json
import resource
import signal
import socket
import stat
import subprocess
import threading
import time
from contextlib import suppress
from http.client import HTTPException
from pathlib import Path
from typing import Any

import msgspec
import pytest
from openapi_spec_validator import validate

import memlog
from memlog.service.catalogue import call_operation, operations
from tests.service.http.conftest import Answered, Serve, Server
from tests.support.command_tree import MEMLOG
from tests.support.sample_calls import fits, request_of, without_times

SAID = {"type": "message", "channel": "x", "chat_id": "1", "role": "user", "content": "green tea"}


def test_every_operation_answers_what_it_answers_in_python(
    serve: Serve, filled: memlog.Store, tmp_path: Path
) -> None:
    filled.maintenance.project()
    (tmp_path / "exports").mkdir()
    server = serve(f"--root={tmp_path}", f"--exports={tmp_path / 'exports'}", store=filled.path)
    for name, operation in operations().items():
        if operation.is_endless:
            assert server.ask(name, {}).status == 404
            continue
        # What an operation before has removed.
        filled.memories.save("likes tea", memory_id="likes", dedup=False)
        filled.core.set("user", "name", "Ann")
        filled.facts.set("city", "Oulu", single=True)
        filled.documents.add_all([tmp_path / "notes"])
        filled.workspaces.add(tmp_path / "agent")
        asked = {"path": "new.sqlite"} if operation.writes_paths else request_of(name, tmp_path)
        given = server.ask(name, asked)
        assert given.status == 200, (name, given.body)
        assert any(fits(given.json, kind) for kind in operation.types_if_found), name
        is_alike = operation.effect == "read" and not operation.writes_paths
        if is_alike and not name.startswith(("maintenance.", "erasure.")):
            expected = msgspec.json.decode(msgspec.json.encode(call_operation(filled, name, asked)))
            assert without_times(given.json) == without_times(expected), name
        if operation.missing:
            assert server.ask("memories.get", {"memory_id": "nothing"}).code == "memory_not_found"


def test_a_read_without_a_text_is_got_and_a_search_is_not(serve: Serve, tmp_path: Path) -> None:
    server = serve(store=tmp_path / "store")
    for number in range(3):
        server.ask("memories.save", {"content": f"tea number {number}", "tags": ["a", "b"]})
    assert len(server.ask("memories.list?limit=2&tag=a").json) == 2
    assert server.ask("memories.list?limit=x").status == 422
    assert server.ask("search?text=tea").status == 405


def test_a_filter_takes_words_for_a_time(serve: Serve, tmp_path: Path) -> None:
    server = serve(store=tmp_path / "store")
    server.ask("memories.save", {"content": "old tea", "ts": "2026-02-24T12:00:00Z"})
    server.ask("memories.save", {"content": "new milk"})
    found = server.ask("search", {"text": "tea milk", "filters": {"until": "24 February 2026"}}).json["hits"]
    assert [hit["content"] for hit in found] == ["old tea"]
    found = server.ask("tools.memory_search", {"query": "tea milk", "since": "yesterday"}).json["results"]
    assert [each["content"] for each in found] == ["new milk"]
    assert server.ask("search", {"text": "tea", "filters": {"since": "soon"}}).status == 422


def test_events_come_alone_in_a_list_or_a_line_each(serve: Serve, tmp_path: Path) -> None:
    server = serve(store=tmp_path / "store")
    assert len(server.ask("append", SAID | {"id": "a"}).json) == 1
    assert [each["id"] for each in server.ask("append", [SAID | {"id": "b"}, SAID | {"id": "c"}]).json] == [
        "b",
        "c",
    ]
    assert server.ask("append", {"events": [SAID | {"id": "b"}]}).status == 200
    lines = b"\n".join([json.dumps(SAID | {"id": "d"}).encode(), b"", b"no json", json.dumps(SAID).encode()])
    told = server.ask("append", lines, content_type="application/x-ndjson")
    answers = [json.loads(line) for line in told.body.splitlines()]
    assert (answers[0]["id"], answers[1]["line"], answers[1]["error"]["code"]) == ("d", 3, "not_json")
    assert len(server.ask("conversations.window?chat=x:1").json["messages"]) == 5


def test_projects_do_not_see_each_other(serve: Serve, tmp_path: Path) -> None:
    server = serve()
    server.ask("memories.save", {"content": "anna likes tea"}, project="anna")
    server.ask("memories.save", {"content": "boris likes tea"}, project="boris")
    (hit,) = server.ask("search", {"text": "tea"}, project="anna").json["hits"]
    assert hit["content"] == "anna likes tea"
    assert server.ask("search", {"text": "tea"}, project="carl").code == "store_not_found"
    assert server.ask("search", {"text": "tea"}, project="..").status in (404, 422)
    assert not (tmp_path / "data/memlog/carl").exists()


def test_many_projects_keep_few_stores_open(serve: Serve, tmp_path: Path) -> None:
    server = serve()
    (tmp_path / "data/memlog").mkdir(parents=True, exist_ok=True)
    for number in range(40):
        assert server.ask("append", SAID, project=f"p/{number}").status == 200
        assert server.ask("search", {"text": "tea"}, project=f"p/{number}").json["hits"]
    opened, until = [*Path(f"/proc/{server.process.pid}/fd").iterdir()], time.monotonic() + 60
    while len(opened) > 16 * 15 + 30:
        assert time.monotonic() < until
        opened = [*Path(f"/proc/{server.process.pid}/fd").iterdir()]
    assert server.ask("search", {"text": "tea"}, project="p/0").json["hits"]
    with memlog.connect(f"http://127.0.0.1:{server.port}", project="p/0", token=server.token) as store:
        assert store.search("tea").hits


@pytest.fixture
def server(serve: Serve, tmp_path: Path) -> Server:
    """A server of a store with a message."""
    (tmp_path / "notes").mkdir()
    server = serve(f"--root={tmp_path / 'notes'}", store=tmp_path / "store")
    assert server.ask("append", SAID).status == 200
    return server


BAD: dict[str, tuple[dict[str, Any], int, str]] = {
    "no JSON": ({"body": b"{"}, 422, "bad_request"),
    "no UTF-8": ({"body": b'{"text":"\xff"}'}, 422, "bad_request"),
    "NaN": ({"body": b'{"text":"tea","k":NaN}'}, 422, "bad_request"),
    "no object": ({"body": b"[]"}, 422, "bad_request"),
    "an unknown member": ({"body": {"text": "tea", "nope": 1}}, 422, "bad_input"),
    "a local member": ({"body": {"text": "tea", "filters": {"own_scope": True}}}, 422, "bad_input"),
    "another type": ({"body": {"text": "tea"}, "content_type": "text/plain"}, 415, "bad_type"),
    "no token": ({"body": {"text": "tea"}, "authorization": ""}, 401, "unauthorized"),
    "a wrong token": ({"body": {"text": "tea"}, "authorization": "Bearer x"}, 401, "unauthorized"),
    "another host": ({"body": {"text": "tea"}, "host": "evil.example"}, 421, "misdirected"),
    "a page of another origin": ({"body": {"text": "tea"}, "origin": "null"}, 403, "forbidden"),
    "another project": ({"body": {"text": "tea"}, "project": "other"}, 404, "project_not_found"),
    "a project above": ({"body": {"text": "tea"}, "project": "..%2Fx"}, 404, "project_not_found"),
    "a long body": ({"body": b" " * 2_000_000}, 413, "too_large"),
    "a path outside": ({"path": "documents.add", "body": {"path": "/etc"}}, 422, "bad_input"),
    "a path of nobody's": ({"path": "documents.add", "body": {"path": "../x"}}, 422, "bad_input"),
    "a source outside": (
        {
            "path": "append",
            "body": {"type": "source_registered", "source_id": "e", "root": "/etc", "kind": "docs"},
        },
        *(422, "bad_input"),
    ),
    "a source behind a mark": (
        {
            **{"path": "append", "content_type": "application/x-ndjson"},
            "body": b'\xef\xbb\xbf{"type":"source_registered","source_id":"e","root":"/etc","kind":"docs"}',
        },
        *(200, "bad_input"),
    ),
    "a relative source": (
        {
            "path": "append",
            "body": {"type": "source_registered", "source_id": "e", "root": ".", "kind": "docs"},
        },
        *(422, "bad_input"),
    ),
    "no UTF-8 in a name": ({"body": {"text": "tea"}, "project": "%ff"}, 422, "bad_request"),
    "an event of no type": ({"path": "append", "body": {"role": "user"}}, 422, "invalid"),
    "no such operation": ({"path": "memories.burn", "body": {}}, 404, "no_route"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_request_is_refused_and_changes_nothing(server: Server, tmp_path: Path, name: str) -> None:
    asked, status, code = BAD[name]
    before = {path: path.read_bytes() for path in (tmp_path / "store/log").rglob("*.jsonl")}
    given = server.ask(**({"path": "search"} | asked))
    assert (given.status, given.code) == (status, code), given.body
    assert given.json["error"].keys() == {"code", "message", "hint", "retryable"}
    assert {path: path.read_bytes() for path in (tmp_path / "store/log").rglob("*.jsonl")} == before
    assert server.ask("search", {"text": "tea"}).status == 200


def test_a_body_without_end_and_a_head_without_end_are_cut_off(server: Server) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as endless:
        endless.sendall(
            f"POST /v1/projects/default/search HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n"
            f"Authorization: Bearer {server.token}\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
        )
        for _ in range(64):
            try:
                endless.sendall(b"10000\r\n" + b" " * 0x10000 + b"\r\n")
            except OSError:
                break
        assert b" 413 " in endless.recv(100)
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as unread:
        unread.sendall(
            f"POST /x HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nContent-Length: 9\r\n\r\n".encode()
        )
        assert b" 401 " in unread.recv(1000)
        unread.sendall(b" ")
        while unread.recv(1000):
            pass
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as slow:
        slow.sendall(b"POST /v1/projects/default/search HTTP/1.1\r\nHost: ")
        assert slow.recv(100) == b""


def test_without_a_token_no_page_may_ask(serve: Serve, tmp_path: Path) -> None:
    server = serve("--no-token", store=tmp_path / "store")
    assert server.ask("append", SAID, authorization="").status == 200
    assert server.ask("append", SAID, sec_fetch_site="none").status == 200
    for site in ("cross-site", "same-site"):
        assert server.ask("append", SAID, sec_fetch_site=site).code == "forbidden"
    assert server.ask("append", SAID, origin="http://evil.example").code == "forbidden"


def test_requests_during_a_rebuild_and_on_a_damaged_store_are_answered(
    server: Server, tmp_path: Path
) -> None:
    lines = b"\n".join(json.dumps(SAID | {"content": f"tea {number}"}).encode() for number in range(2000))
    assert server.ask("append", lines, content_type="application/x-ndjson").status == 200
    rebuild = subprocess.Popen([MEMLOG, "--store", tmp_path / "store", "project", "--from-scratch"])
    told = set()
    while rebuild.poll() is None:
        told.add(server.ask("search", {"text": "tea"}).status)
        assert server.ask("append", SAID).status == 200
    assert rebuild.returncode == 0
    assert told <= {200, 503}
    assert server.ask("search", {"text": "tea"}).status == 200
    for path in (tmp_path / "store/model").glob("*.db"):
        path.write_bytes(b"x" * 8192)
    given = server.ask("search", {"text": "tea"})
    assert given.status in (200, 500, 503), given.body
    assert server.ask("append", SAID).status == 200


def test_on_a_full_disk_nothing_is_claimed_and_reads_go_on(server: Server, tmp_path: Path) -> None:
    assert server.ask("search", {"text": "tea"}).json["hits"]
    (segment,) = (tmp_path / "store/log").rglob("conversations/**/*.jsonl")
    said, once = SAID | {"id": "m2"}, (segment.stat().st_size, resource.RLIM_INFINITY)
    before = resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, once)
    given = server.ask("append", said)
    assert (given.status, given.code, given.json["error"]["retryable"]) == (507, "log_io", True)
    assert server.ask("search", {"text": "tea"}).json["hits"]
    resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, before)
    assert [server.ask("append", said).status for _ in range(2)] == [200, 200]
    found = server.ask("conversations.window?chat=x:1").json["messages"]
    assert [each["id"] for each in found[1:]] == ["m2"]


def test_paths_count_from_the_root(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "read/guide").mkdir(parents=True)
    (tmp_path / "read/guide/tea.md").write_text("# Tea\n\nGreen tea brews at 80 degrees.\n")
    server = serve(f"--root={tmp_path / 'read'}", store=tmp_path / "store")
    assert server.ask("documents.add", {"path": "guide"}).status == 200
    assert server.ask("search", {"text": "brewing tea"}).json["hits"][0]["file"] == "tea.md"
    without = serve(store=tmp_path / "other")
    assert (
        "does not read or write files for this operation"
        in without.ask("documents.add", {"path": "guide"}).json["error"]["message"]
    )


def test_the_token_is_the_owners_and_the_start_says_where(serve: Serve, tmp_path: Path) -> None:
    server = serve(store=tmp_path / "store")
    assert stat.S_IMODE((tmp_path / "token").stat().st_mode) == 0o600
    again = serve(store=tmp_path / "store")
    assert again.token == server.token


def test_sigterm_lets_the_running_end_and_texts_are_in_no_log(server: Server, tmp_path: Path) -> None:
    server.ask("search", {"text": "a secret question"})
    lines = b"\n".join(
        json.dumps(SAID | {"chat_id": "2", "id": f"m{number}"}).encode() for number in range(10_000)
    )
    answers: list[Answered] = []

    def append() -> None:
        with suppress(OSError, HTTPException):  # what takes longer than 3 s is cut off, and not acknowledged
            answers.append(server.ask("append", lines, content_type="application/x-ndjson"))

    asking = threading.Thread(target=append)
    asking.start()
    waits_until = time.monotonic() + 60
    while not [*(tmp_path / "store/log").rglob("x_2/*.jsonl")]:
        assert time.monotonic() < waits_until
    server.process.send_signal(signal.SIGTERM)
    _, err = server.process.communicate(timeout=60)
    asking.join(60)
    assert (server.process.returncode, "secret" in err) == (0, False)
    told = {json.loads(line)["id"] for call_operation in answers for line in call_operation.body.splitlines()}
    with memlog.open(tmp_path / "store") as store:
        found = store.conversations.window("x:2", last=20_000).messages
    assert told <= {each.id for each in found}


def test_the_description_is_openapi(server: Server) -> None:
    described = server.ask("/openapi.json").json
    validate(described)
    assert len(described["paths"]) > 50
    for path in ("/healthz", "/readyz"):
        assert server.ask(path, authorization="").status == 200


def test_an_address_that_others_reach_is_refused() -> None:
    for options in ((), ("--allow-remote", "--no-token")):
        assert subprocess.run([MEMLOG, "serve", "--host", "0.0.0.0", *options], check=False).returncode == 2
