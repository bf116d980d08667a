"""A server that is killed again and again loses and doubles nothing that it acknowledged."""

import json
import socket
import threading
from http.client import HTTPConnection, HTTPException
from pathlib import Path

import pytest

import memlog
from tests.service.http.conftest import Serve
from tests.support.examples import examples

KILLS = examples(3)
CLIENTS = 4


@pytest.mark.drawn
def test_acknowledged_events_are_there_once_after_kills(serve: Serve, tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    store = tmp_path / "store"
    server = serve(f"--port={port}", store=store)
    listening, ended = threading.Event(), threading.Event()
    listening.set()
    acknowledged: list[str] = []
    more = threading.Semaphore(0)

    def append(client: int) -> None:
        number = 0
        while not ended.is_set():
            said = {"type": "message", "channel": "x", "chat_id": str(client), "role": "user"}
            said |= {"id": f"{client}-{number}", "content": f"tea {number}"}
            try:
                connection = HTTPConnection("127.0.0.1", port, timeout=60)
                headers = {"authorization": f"Bearer {server.token}", "content-type": "application/json"}
                connection.request("POST", "/v1/projects/default/append", json.dumps(said), headers)
                answer = connection.getresponse()
                answer.read()
            except (OSError, HTTPException):
                listening.wait(60)
                continue  # again, with the same id
            if answer.status == 200:
                acknowledged.append(str(said["id"]))
                more.release()
                number += 1

    clients = [threading.Thread(target=append, args=(number,)) for number in range(CLIENTS)]
    for client in clients:
        client.start()
    for _ in range(KILLS):
        for _ in range(20):
            assert more.acquire(timeout=60)
        listening.clear()
        server.process.kill()
        server.process.wait()
        server = serve(f"--port={port}", store=store)
        listening.set()
    ended.set()
    for client in clients:
        client.join()
    with memlog.open(store) as opened:
        found = [
            message.id
            for chat in range(CLIENTS)
            for message in opened.conversations.window(f"x:{chat}", last=1_000_000).messages
        ]
    assert len(acknowledged) == len(set(acknowledged)) >= KILLS * 20
    assert len(found) == len(set(found))
    assert set(acknowledged) <= set(found)
