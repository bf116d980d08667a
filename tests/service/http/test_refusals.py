"""What a server refuses is an error object, and what it writes is where it was told."""

import json
import socket
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.service.http.conftest import Serve, environment, serve

__all__ = ["environment", "serve"]

SAVED = {"type": "memory_saved", "content": "Anna drinks tea", "tags": ["drinks"]}


@pytest.mark.parametrize(
    "path",
    [
        "memories.list?chat=1",
        "facts.list?chat=1",
        "facts.list?chat=",
        "memories.list?tag=",
        "memories.list?chat=:1",
        "memories.list?chat=x:1&chat=x:2",
        "memories.list?chat=null",
        "memories.list?tag=%ff",
        "core.get?chat=1",
    ],
)
def test_a_filter_that_could_find_nothing_is_refused(serve: Serve, tmp_path: Path, path: str) -> None:
    server = serve(store=tmp_path / "store")
    server.ask("append", SAVED)
    found = server.ask(path, method="GET")
    assert (found.status, found.code[:3]) == (422, "bad")
    assert server.ask("memories.list?chat=x:1", method="GET").json == []


def test_an_export_is_written_below_its_folder_alone_and_never_over_a_file(
    serve: Serve, tmp_path: Path
) -> None:
    folder = tmp_path / "exports"
    folder.mkdir()
    (folder / "there.sqlite").write_text("kept")
    server = serve(f"--exports={folder}", f"--root={tmp_path}", store=tmp_path / "store")
    server.ask("append", SAVED)

    def status(**fields: Any) -> int:
        return server.ask("exchange.export_sqlite", fields).status

    assert status(path="new.sqlite") == 200
    refused = ("there.sqlite", "../out.sqlite", str(tmp_path / "o.sqlite"), "a" * 300, "new.sqlite-wal")
    assert {status(path=path) for path in refused} == {422}
    assert status(path="there.sqlite", replace=True) == 422
    assert server.ask("exchange.export_sqlite?path=by-get.sqlite", method="GET").status == 405
    assert sorted(path.name for path in folder.iterdir()) == ["new.sqlite", "there.sqlite"]
    assert (folder / "there.sqlite").read_text() == "kept"


def test_what_is_no_request_is_answered_and_who_goes_away_leaves_no_traceback(
    serve: Serve, tmp_path: Path
) -> None:
    server = serve(store=tmp_path / "store")
    with socket.create_connection(("127.0.0.1", server.port), 60) as connected:
        connected.sendall(b"no HTTP\r\n\r\n")
        answer = b"".join(iter(lambda: connected.recv(4096), b""))
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["error"]["code"] == "bad_request"
    head = (
        f"POST /v1/projects/default/append HTTP/1.1\r\nhost: 127.0.0.1:{server.port}\r\n"
        f"authorization: Bearer {server.token}\r\ncontent-type: application/json\r\n"
        "content-length: 99\r\n\r\n["
    )
    with socket.create_connection(("127.0.0.1", server.port), 60) as connected:
        connected.sendall(head.encode())
    server.ask("append", SAVED)
    server.process.terminate()
    assert "Traceback" not in server.process.communicate(timeout=60)[1]


def test_a_head_that_does_not_end_is_refused(serve: Serve, tmp_path: Path) -> None:
    server = serve(store=tmp_path / "store")
    with socket.create_connection(("127.0.0.1", server.port), 60) as connected:
        connected.sendall(f"GET /healthz HTTP/1.1\r\nhost: 127.0.0.1:{server.port}\r\n".encode())
        with suppress(OSError):  # it hangs up
            while server.process.poll() is None:
                connected.sendall(b"a: b\r\n" * 10_000)
    assert server.ask("/healthz").status == 200


def test_requests_without_end_are_refused(serve: Serve, tmp_path: Path) -> None:
    server = serve(store=tmp_path / "store")
    with socket.create_connection(("127.0.0.1", server.port), 60) as connected:
        connected.sendall(f"GET /healthz HTTP/1.1\r\nhost: 127.0.0.1:{server.port}\r\n\r\n".encode() * 1000)
        answers = b"".join(iter(lambda: connected.recv(65536), b""))
    assert b"400 Bad Request" in answers
    assert server.ask("/healthz").status == 200


def test_connections_that_send_nothing_keep_nobody_out(serve: Serve, tmp_path: Path) -> None:
    server = serve(store=tmp_path / "store")
    with ExitStack() as held:
        for _ in range(600):
            held.enter_context(socket.create_connection(("127.0.0.1", server.port), 60))
        assert server.ask("append", SAVED).status == 200
