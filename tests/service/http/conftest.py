"""Server processes, and requests to them."""

import json
import os
import re
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.support.command_tree import MEMLOG


class Answered(NamedTuple):
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def code(self) -> str:
        """Of its error."""
        return str(self.json["error"]["code"])


class Server:
    """A process of `memlog serve`, which `ask` asks with its token."""

    def __init__(self, process: "subprocess.Popen[str]", port: int, token: str) -> None:
        self.process, self.port, self.token = process, port, token

    def ask(
        self,
        path: str,
        body: Any = None,
        *,
        method: str | None = None,
        project: str = "default",
        **headers: str,
    ) -> Answered:
        """A path below the project's, or one that begins with `/`. A body is bytes, or sent as JSON."""
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        sent = {"authorization": f"Bearer {self.token}", "content-type": "application/json"}
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        connection = HTTPConnection("127.0.0.1", self.port, timeout=60)
        where = path if path.startswith("/") else f"/v1/projects/{project}/{path}"
        # A server that refuses a long body answers before all of it is sent: the answer is there to read.
        with suppress(BrokenPipeError, ConnectionResetError):
            connection.request(method or ("GET" if data is None else "POST"), where, data, sent)
        answer = connection.getresponse()
        found = Answered(answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read())
        connection.close()
        return found


Serve = Callable[..., Server]

_FOLDERS = ("data_home", "config_home", "state_home", "runtime_dir")


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Of the servers: projects below a folder of their own."""
    mine = {name: value for name, value in os.environ.items() if not name.startswith("MEMLOG_")}
    return mine | {f"XDG_{name.upper()}": str(tmp_path / name) for name in _FOLDERS}


@pytest.fixture
def serve(tmp_path: Path, environment: dict[str, str]) -> Iterator[Serve]:
    """Starts servers."""
    started: list[subprocess.Popen[str]] = []

    def start(*options: str, store: Path | None = None) -> Server:
        of_store = [] if store is None else ["--store", str(store)]
        process = subprocess.Popen(
            [MEMLOG, *of_store, "serve", "--port=0", f"--token-file={tmp_path / 'token'}", *options],
            env=environment,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        assert process.stderr is not None
        said = process.stderr.readline()
        found = re.search(r"listening on http://\S+:(\d+)", said)
        assert found, said + process.stderr.read()
        token = tmp_path / "token"
        return Server(process, int(found[1]), token.read_text().strip() if token.exists() else "")

    yield start
    for process in started:
        process.send_signal(signal.SIGKILL)
        process.communicate()
