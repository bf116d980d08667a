"""A provider of models over a real socket: Ollama, OpenAI and both forms of rerank, with the bundled model.

It misbehaves by script: each request takes the next fault of `faults`.
"""

import json
import re
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypeVar
from urllib.parse import urlsplit

from memlog.projector.embedding.models import load_embedder

T = TypeVar("T")


class Provider(ThreadingHTTPServer):
    """`requests`: each path with its body and headers. `always`: a fault. `order`: of ranked texts.
    `quotes`: how it quotes what it was sent, in an error. `refuse`: the status and the words with which it
    refuses a body. `reply`: what it answers in the place of its answer to a body, as JSON or as bytes. It is
    a proxy, too. `vectors`: of texts, by the bundled model. `poison`: a fault, or a status, by a word of what
    it is asked about."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.requests: list[tuple[str, Any, dict[str, str]]] = []
        self.always: str | None = None
        self.order: list[str] = []
        self.asked: list[str] = []
        self.answer: Callable[[str], str] = lambda _: '{"memories": [], "summary": ""}'
        self.is_old_ollama = False
        self.longest = 1_000_000
        self.refused = "\0"
        self.quotes: str | None = None
        self.refuse: Callable[[Any], tuple[int, Any] | None] = lambda _: None
        self.reply: Callable[[Any, Any], Any] = lambda _, answer: answer
        self.vectors: Callable[[list[str]], list[list[float]]] = _vectors
        self.poison: dict[str, str] = {}
        self.over = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def said(self, asked: str) -> str:
        """What its language model answers: by `answer`, else that nothing is worth it."""
        self.asked.append(asked)
        return self.answer(asked)

    def asked_about(self, word: str) -> int:
        """How many requests had a word."""
        return sum(word in json.dumps(body) for _, body, _ in self.requests)

    def texts(self) -> list[str]:
        """All texts that it was sent."""
        found = []
        for _, body, _ in self.requests:
            for name in ("input", "prompt", "query", "documents", "texts"):
                value = body.get(name, [])
                found += [value] if isinstance(value, str) else value
        return found


def in_a_minute(call: Callable[[], T]) -> T:
    """What `call` returns; a fault that it waits for would last for ever."""
    outcome: Future[T] = Future()
    threading.Thread(target=lambda: outcome.set_result(call()), daemon=True).start()
    return outcome.result(60)


@contextmanager
def serving() -> Iterator[Provider]:
    server = Provider()
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield server
    finally:
        server.over.set()
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    server: Provider

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.requests.append((self.path, body, {k.lower(): v for k, v in self.headers.items()}))
        if self.server.quotes is not None:
            self._quote(f"cannot-read {json.dumps(body)}")
            return
        if (refusal := self.server.refuse(body)) is not None:
            self._send(refusal[0], _encoded(refusal[1]))
            return
        told = json.dumps(body)
        fault = next((f for word, f in self.server.poison.items() if word in told), self.server.always)
        if fault is not None and fault not in _FAULTS:
            self._send(int(fault), b'{"error":{"message":"it is filtered"}}')
            return
        answer = _ANSWERS.get(urlsplit(self.path).path)
        if answer is None or (self.server.is_old_ollama and self.path == "/api/embed"):
            self._send(404, b"404 page not found", {"content-type": "text/plain"})
            return
        if any(self.server.refused in text for text in _listed(body.get("input", []))):
            self._send(400, b'{"error":{"message":"the text is filtered"}}')
            return
        if any(len(text) > self.server.longest for text in _listed(body.get("input", []))):
            self._send(
                500, b'{"error":{"message":"input (900 tokens) is too large to process"}}'
            )  # llama.cpp
            return
        reply = self.server.reply(body, answer(self.server, body))
        if reply is HANGS:
            self._hang(b"")
            return
        _FAULTS[fault](self, _encoded(reply))

    def _send(self, status: int, data: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _too_many(self, _: bytes) -> None:
        self._send(429, b'{"error":{"message":"slow down"}}', {"retry-after": "1"})

    def _broken(self, _: bytes) -> None:
        self._send(500, b'{"error":"out of memory"}')

    def _hang(self, _: bytes) -> None:
        self.server.over.wait()

    def _cut(self, data: bytes) -> None:
        self.send_response(200)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data[: len(data) // 2])
        self.close_connection = True

    def _wrong(self, _: bytes) -> None:
        self._send(200, b'{"result":"ok"}')

    def _no_json(self, _: bytes) -> None:
        self._send(200, b"<html>Bad gateway</html>")

    def _other_dimension(self, data: bytes) -> None:
        def cut(value: Any) -> Any:
            if isinstance(value, list):
                return value[:7] if value and isinstance(value[0], float) else [cut(each) for each in value]
            return {name: cut(each) for name, each in value.items()} if isinstance(value, dict) else value

        self._send(200, json.dumps(cut(json.loads(data))).encode())

    def _deep(self, _: bytes) -> None:
        self._send(200, b'{"data":' + b"[" * 200_000)

    def _zeros(self, data: bytes) -> None:
        self._send(200, re.sub(rb"-?[0-9.]+(e-?[0-9]+)?(?=[,\]])", b"0.0", data))

    def _echo(self, _: bytes) -> None:
        key = self.headers.get("authorization", "")
        self._send(401, f'{{"error":"wrong key {key}"}}'.encode(), {"location": f"/?key={key}"})

    def _quote(self, words: str) -> None:
        data = json.dumps({"error": {"message": words}}).encode()
        match self.server.quotes:
            case "redirect":
                self._send(307, b"", {"location": f"/?{words}"})
            case "retry-after":
                self._send(503, b"", {"retry-after": words})
            case "status line":
                self.wfile.write(f"HTTP/1.1 {words}\r\n\r\n".encode())
                self.close_connection = True
            case "member":
                self._send(200, json.dumps({"data": [{"index": words}], "choices": words}).encode())
            case "no JSON":
                self._send(200, words.encode())
            case status:
                self._send(int(str(status)), data)

    def _redirect(self, _: bytes) -> None:
        self._send(307, b"", {"location": f"{self.server.url}/elsewhere"})

    def _drip(self, data: bytes) -> None:
        self.send_response(200)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        for number in range(len(data)):
            if self.server.over.wait(0.05):
                return
            self.wfile.write(data[number : number + 1])
            self.wfile.flush()

    def log_message(self, *_: object) -> None:
        pass


_FAULTS: dict[str | None, Callable[[_Handler, bytes], None]] = {
    None: lambda handler, data: handler._send(200, data),
    "429": _Handler._too_many,
    "500": _Handler._broken,
    "hang": _Handler._hang,
    "cut answer": _Handler._cut,
    "wrong JSON": _Handler._wrong,
    "no JSON": _Handler._no_json,
    "wrong dimension": _Handler._other_dimension,
    "slow drip": _Handler._drip,
    "redirect": _Handler._redirect,
    "nested JSON": _Handler._deep,
    "zeros": _Handler._zeros,
    "echo": _Handler._echo,
}
FAULTS = [name for name in _FAULTS if name]


HANGS = object()
"""A reply that never comes."""


def _encoded(value: Any) -> bytes:
    return value if isinstance(value, bytes) else json.dumps(value).encode()


_embedder = cache(load_embedder)  # it takes 0.25 s to load, more than most tests


def _vectors(texts: list[str]) -> list[list[float]]:
    return [[float(number) for number in row] for row in _embedder().embed(texts)]


def _listed(texts: str | list[str]) -> list[str]:
    return [texts] if isinstance(texts, str) else texts


def _openai(server: Provider, body: dict[str, Any]) -> dict[str, Any]:
    data = [{"index": n, "embedding": v} for n, v in enumerate(server.vectors(_listed(body["input"])))]
    # In an order of its own, as the protocol allows.
    return {"object": "list", "data": data[::-1], "model": body["model"], "usage": {"total_tokens": 1}}


def _likeness(server: Provider, texts: list[str]) -> list[float]:
    return [-float(server.order.index(text)) if text in server.order else -99.0 for text in texts]


def _rerank(server: Provider, body: dict[str, Any]) -> dict[str, Any]:
    scores = enumerate(_likeness(server, body["documents"]))
    results = [{"index": n, "relevance_score": score} for n, score in scores]
    results.sort(key=lambda result: -result["relevance_score"])
    return {"id": "1", "results": results[: body.get("top_n")]}


def _tei(server: Provider, body: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"index": n, "score": score} for n, score in enumerate(_likeness(server, body["texts"]))]


def _chat(server: Provider, body: dict[str, Any]) -> dict[str, Any]:
    form = body.get("response_format", {"type": "text"})
    assert form["type"] != "json_schema" or form["json_schema"]["schema"]["type"] == "object"
    text = server.said(body["messages"][-1]["content"])
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    return {"choices": [choice], "usage": {"prompt_tokens": 100, "completion_tokens": 10}}


def _messages(server: Provider, body: dict[str, Any]) -> dict[str, Any]:
    assert "output_config" not in body or body["output_config"]["format"]["schema"]["type"] == "object"
    block = {"type": "text", "text": server.said(body["messages"][-1]["content"])}
    usage = {"input_tokens": 100, "output_tokens": 10}
    return {"type": "message", "content": [block], "stop_reason": "end_turn", "usage": usage}


def _ollama(server: Provider, body: dict[str, Any]) -> dict[str, Any]:
    return {"model": body["model"], "embeddings": server.vectors(_listed(body["input"]))}


_ANSWERS: dict[str, Callable[[Provider, dict[str, Any]], Any]] = {
    "/api/embed": _ollama,
    "/api/embeddings": lambda server, body: {"embedding": server.vectors([body["prompt"]])[0]},
    "/v1/embeddings": _openai,
    "/v1/rerank": _rerank,
    "/rerank": _tei,
    "/v1/chat/completions": _chat,
    "/v1/messages": _messages,
}
