"""Clients of this machine reach the server of their user, and nobody else."""

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

import memlog
from memlog.service.adapters.remote_store import find_running_server
from tests.service.http.conftest import Serve, environment, serve

__all__ = ["environment", "serve"]

IS_ROOT = os.geteuid() == 0
NOBODY = 65534

STRANGER = """
import os, socket, sys
port = int(sys.argv[1])
if os.geteuid() == 0:
    os.setuid(65534)
print("ready", flush=True)
listening = socket.socket()
listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
while True:
    try:
        listening.bind(("127.0.0.1", port))
        break
    except OSError:
        continue
listening.listen()
print("bound", flush=True)
while True:
    connected, _ = listening.accept()
    data = connected.recv(65536)
    print(data.hex(), flush=True)
    connected.sendall(b"HTTP/1.1 200 OK\\r\\ncontent-length: 2\\r\\n\\r\\n{}")
    connected.close()
"""


@pytest.fixture(params=["socket", "challenge"])
def runtime(request: pytest.FixtureRequest, environment: dict[str, str]) -> Iterator[Path]:
    """The folder of sockets: a path is too long for one, and then a challenge is answered."""
    with TemporaryDirectory(prefix="m", dir="/tmp") as short:
        folder = Path(short) if request.param == "socket" else Path(short) / ("x" * 100)
        folder.mkdir(exist_ok=True, mode=0o700)
        environment |= {"XDG_RUNTIME_DIR": str(folder), "XDG_STATE_HOME": f"{short}/state"}
        with pytest.MonkeyPatch.context() as patch:
            for name in ("XDG_RUNTIME_DIR", "XDG_STATE_HOME"):
                patch.setenv(name, environment[name])
            yield folder


def test_while_a_server_ends_a_stranger_at_its_port_receives_nothing(
    serve: Serve, runtime: Path, tmp_path: Path
) -> None:
    server = serve(store=tmp_path / "store")
    with memlog.connect(store=tmp_path / "store") as store:
        store.memories.save("Anna drinks green tea", dedup=False)
    stranger = subprocess.Popen(
        [sys.executable, "-c", STRANGER, str(server.port)], stdout=subprocess.PIPE, text=True
    )
    assert stranger.stdout is not None
    assert stranger.stdout.readline() == "ready\n"
    known = memlog.connect(store=tmp_path / "store")
    saved = 1

    def save(store: memlog.RemoteStore) -> None:
        nonlocal saved
        store.memories.save(f"memory {saved} of a server that ends", dedup=False)
        saved += 1

    # A request that hangs keeps the server at its end for three seconds.
    with socket.create_connection(("127.0.0.1", server.port)) as hanging:
        hanging.sendall(
            f"POST /v1/projects/default/append HTTP/1.1\r\nhost: 127.0.0.1:{server.port}\r\n"
            f"authorization: Bearer {server.token}\r\ncontent-type: application/json\r\n"
            "content-length: 10\r\n\r\n[".encode()
        )
        server.process.send_signal(signal.SIGTERM)
        while server.process.poll() is None:
            for connected in (lambda: memlog.connect(store=tmp_path / "store"), lambda: known):
                with suppress(memlog.LogError):
                    save(connected())
                known.close()
    assert server.process.wait(60) == 0
    assert stranger.stdout.readline() == "bound\n"
    for connected in (lambda: memlog.connect(store=tmp_path / "store"), lambda: known):
        with suppress(memlog.LogError):
            save(connected())
    stranger.kill()
    # Of a client that knew the server before, the challenge, which has neither token nor text.
    received = [bytes.fromhex(line) for line in stranger.communicate()[0].splitlines()]
    assert [each for each in received if not each.startswith(b"GET /v1/challenge?nonce=")] == []
    assert not [each for each in received if server.token.encode() in each]
    with memlog.open(tmp_path / "store") as store:
        assert len(store.memories.list()) == saved, "what was acknowledged, and no more"


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
def test_the_address_that_is_announced_is_the_one_that_is_bound(
    serve: Serve, tmp_path: Path, host: str
) -> None:
    server = serve(f"--host={host}", store=tmp_path / "store")
    found = find_running_server(tmp_path / "state_home/memlog/servers", tmp_path / "store")
    assert found is not None
    assert found.url == f"http://127.0.0.1:{server.port}"


@pytest.mark.skipif(not IS_ROOT, reason="only root can become another user")
def test_a_socket_is_for_one_user_at_both_ends(
    serve: Serve, environment: dict[str, str], tmp_path: Path
) -> None:
    with TemporaryDirectory(prefix="m", dir="/tmp") as short:
        environment |= {"XDG_RUNTIME_DIR": short, "XDG_STATE_HOME": f"{short}/state"}
        serve(store=tmp_path / "store")
        found = find_running_server(Path(short) / "state/memlog/servers", tmp_path / "store")
        assert found is not None
        assert found.socket is not None
        for path in (Path(short), Path(found.socket).parent, Path(found.socket)):
            path.chmod(0o777)
        with closing(socket.socket(socket.AF_UNIX)) as connected:
            # The kernel tells the uid of the moment at which it connects.
            os.seteuid(NOBODY)
            try:
                connected.connect(found.socket)
            finally:
                os.seteuid(0)
            with suppress(OSError):
                connected.sendall(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n")
                assert connected.recv(100) == b""
        of_stranger = f"{short}/stranger.sock"
        os.seteuid(NOBODY)
        listening = socket.socket(socket.AF_UNIX)
        listening.settimeout(60)
        listening.bind(of_stranger)
        listening.listen()
        os.seteuid(0)
        received: list[bytes] = []
        thread = threading.Thread(
            target=lambda: received.append(listening.accept()[0].recv(100)), daemon=True
        )
        thread.start()
        other = memlog.service.adapters.remote_store.replace(found, socket=of_stranger).connect_if_proven(
            "default"
        )
        assert other is not None
        assert not other.is_server_answering()
        other.close()
        thread.join(60)
        assert received == [b""]


@pytest.mark.parametrize(
    ("text", "mode", "uid", "why"),
    [
        ("short", 0o600, None, "a token of 16 to 4096"),
        ("x" * 40, 0o604, None, "read by others"),
        ("x" * 40, 0o600, NOBODY, "another user"),
        (None, 0o600, None, "not a regular file"),
    ],
)
def test_a_file_that_is_no_token_of_this_user_is_refused(
    serve: Serve, tmp_path: Path, text: str | None, mode: int, uid: int | None, why: str
) -> None:
    if uid is not None and not IS_ROOT:
        pytest.skip("only root can give a file to another user")
    file = tmp_path / "token"
    if text is None:
        os.mkfifo(file)
    else:
        file.write_text(text)
    file.chmod(mode)
    if uid is not None:
        os.chown(file, uid, -1)
    with pytest.raises(AssertionError, match=why):  # of the fixture, which expects it to start
        serve()


@pytest.mark.parametrize("scheme", ["bearer", "BEARER", "Bearer"])
def test_the_scheme_of_a_token_is_read_in_any_case(serve: Serve, tmp_path: Path, scheme: str) -> None:
    server = serve(store=tmp_path / "store")
    assert server.ask("gate", {"text": "x"}, authorization=f"{scheme} {server.token}").status != 401
    assert server.ask("/v1/challenge?nonce=..", method="GET").code == "bad_request"
