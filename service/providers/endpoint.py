"""Requests to a provider: JSON there and back, within a time, and no more of it than a size."""

import json
import ssl
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from email.utils import parsedate_to_datetime
from functools import cache
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import httpx2
import msgspec

from memlog.eventlog.errors import MemlogError, ProviderError
from memlog.eventlog.outgoing import Outgoing
from memlog.eventlog.secrets import masked
from memlog.eventlog.store_key import key_of, keyed_hash
from memlog.service.providers.settings import ApiKey

T = TypeVar("T")

_MOST_BYTES = 64 * 1024 * 1024
"""Of an answer: 2,048 vectors of 1,536 dimensions as JSON take 40 MB."""

_TOLD = 200
"""Characters of a refusal that a terminal shows."""

_DIGITS = 16

_LOOKED_AT = 20_000
"""Bytes of a refusal in which parameters are looked for."""


class Endpoint:
    """One address of a provider.

    url: where requests are posted. api_key: see `EmbeddingProvider`. store: whose key hashes what it says.
    proxy: through which it is reached. key_header: the header that has the key; None for a bearer token.
    headers: further ones.
    """

    def __init__(
        self,
        url: str,
        api_key: ApiKey | None,
        store: Path,
        *,
        proxy: str | None = None,
        key_header: str | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        self.url, self._api_key, self._store, self._proxy = url, api_key, store, proxy
        self._key_header, self._headers = key_header, headers or {}

    def post(self, body: Outgoing, into: type[T], seconds: float) -> T:
        """What the provider answers to `body`, within `seconds`.

        Raises:
            ProviderError: it cannot be reached, refuses, is too slow, or answers with something else.
        """
        return self._asked(body, seconds, lambda data: msgspec.json.decode(data, type=into))

    def ask(self, body: Outgoing, seconds: float) -> Any:  # noqa: ANN401 - JSON
        """Return the JSON that the provider answers with, also one with NaN; an error in it is a refusal.

        Raises:
            ProviderError: as `post` does.
        """
        answer = self._asked(body, seconds, _decoded)
        error = answer.get("error") if isinstance(answer, dict) else None
        if error:
            raise self._error_of(answer, error)
        return answer

    def _asked(self, body: Outgoing, seconds: float, read: Callable[[bytes], T]) -> T:
        key = self._key()
        try:
            return read(_within(seconds, lambda: self._posted(body.content, key, seconds)))
        except (TimeoutError, httpx2.TimeoutException) as error:
            raise late(f"{self.url}: no answer within {seconds:.3g} s") from error
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
            # Of what it was sent, it may have crashed.
            is_cut = isinstance(error, httpx2.ReadError | httpx2.RemoteProtocolError)
            told = self._told("unreachable", _without(key, str(error)))
            raise _away(*told, is_cut=is_cut) from None
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            message, said = self._told("the answer is not what was expected", _without(key, str(error)))
            raise _saying(_of_answer(message), said) from None

    def _error_of(self, answer: dict[str, Any], error: Any) -> ProviderError:  # noqa: ANN401 - JSON
        """The refusal that stands in an answer of HTTP 200, with the status that it names."""
        key, words = self._key(), json.dumps(answer, ensure_ascii=False)
        places = [error, answer] if isinstance(error, dict) else [answer]
        codes = (str(place.get(name)) for place in places for name in ("code", "status"))
        status = next((int(code) for code in codes if code.isdecimal() and 400 <= int(code) < 600), None)
        if status is not None:
            return self._refused(status, words, key, _HINTS.get(status, ""))
        message, said = self._told("an error with HTTP 200", _without(key, words))
        failure = _of_answer(message)
        failure.words = words[:_LOOKED_AT]
        return _saying(failure, said)

    def _told(self, what: str, words: str) -> tuple[str, str]:
        """The message of an error, with a hash of what the provider said, and that."""
        said = " ".join(words.split())
        return f"{self.url}: {what}{hash_of_words(self._store, said)}", said

    def _key(self) -> str | None:
        try:
            key = self._api_key() if callable(self._api_key) else self._api_key
        except MemlogError as error:
            raise _local(error.message, error.hint) from error
        if key is not None and not (key.strip().isascii() and key.strip().isprintable()):
            raise _local("the key has other characters than a key has", "give one line of ASCII")
        return (key or "").strip() or None

    def _posted(self, content: bytes, key: str | None, seconds: float) -> bytes:
        headers = {"content-type": "application/json", "accept-encoding": "identity"}
        headers |= self._headers
        if key is not None and self._key_header is not None:
            headers[self._key_header] = key
        elif key is not None:
            headers["authorization"] = f"Bearer {key}"
        until = time.monotonic() + seconds
        # No proxy but the one that is set, and no redirect may see the key.
        with (
            httpx2.Client(timeout=seconds, trust_env=False, verify=_tls(), proxy=self._proxy) as client,
            client.stream("POST", self.url, content=content, headers=headers) as answer,
        ):
            data = bytearray()
            for part in answer.iter_bytes():
                data += part
                if len(data) > _MOST_BYTES:
                    raise _of_answer(f"{self.url}: the answer is longer than {_MOST_BYTES:,} bytes")
                if time.monotonic() > until:  # nobody waits for it any more
                    raise late(f"{self.url}: no answer within {seconds:.3g} s")
            if answer.is_success:
                return bytes(data)
            raise self._refusal(answer, bytes(data), key)

    def _refusal(self, answer: httpx2.Response, data: bytes, key: str | None) -> ProviderError:
        words, status = data.decode(errors="replace"), answer.status_code
        hint = self._why_not_found(words) if status == 404 else _HINTS.get(status, "")
        if answer.is_redirect:
            words = f"it redirects to {answer.headers.get('location', 'nowhere')}"
            hint = "it redirects, which memlog does not follow: name the address itself"
        failure = self._refused(status, words, key, hint)
        failure.retry_after = _seconds_of(answer.headers.get("retry-after", ""))
        return failure

    def _refused(self, status: int, words: str, key: str | None, hint: str) -> ProviderError:
        message, said = self._told(f"HTTP {status}", _without(key, words))
        failure = ProviderError(message, hint=hint, retryable=status in (408, 429) or status >= 500)
        failure.status, failure.words = status, words[:_LOOKED_AT]
        return _saying(failure, said)

    def _why_not_found(self, words: str) -> str:
        """What to do about a status of 404, of which Ollama has three causes."""
        is_ollama = f":{_OLLAMA_PORT}/" in f"{self.url}/"
        if "try pulling" in words or (is_ollama and "model" in words):
            return "pull the model: ollama pull MODEL"
        if not is_ollama and words.strip() != _NO_PATH:
            return "check base_url and model"
        path = urlsplit(self.url).path
        if path.startswith("/v1/") and "/api/" not in path:
            return f"this Ollama is older than {path}: update it; for vectors, set embedding.type to ollama"
        return f"there is no {path}: base_url of type api ends in /v1, and of type ollama has no path"


def _decoded(data: bytes) -> Any:  # noqa: ANN401 - JSON
    try:
        return msgspec.json.decode(data)
    except msgspec.MsgspecError:
        return json.loads(data)  # which reads NaN


def _seconds_of(retry_after: str) -> float | None:
    """Of a header `Retry-After`, in seconds or as a date; None without."""
    if retry_after.isdecimal() and len(retry_after) < 10:
        return float(retry_after)
    with suppress(ValueError, TypeError, OverflowError):
        return max(0.0, parsedate_to_datetime(retry_after).timestamp() - time.time())
    return None


def _without(key: str | None, text: str) -> str:
    """A message that a provider, or a library, may have put the key into, or half of it in other signs."""
    shown = text if key is None else text.replace(key, "[key]").replace(key.replace("/", "\\/"), "[key]")
    return masked(shown)


def _local(message: str, hint: str) -> ProviderError:
    failure = ProviderError(message, hint=hint)
    failure.is_local = True
    return failure


def _saying(failure: ProviderError, said: str) -> ProviderError:
    failure.said = said if len(said) <= _TOLD else said[:_TOLD] + "…"
    return failure


def hash_of_words(store: Path, words: str) -> str:
    """`: words 1f0c…`, by which equal errors are recognised; "" without words, or without a key."""
    # What a provider says may quote what it was sent, and this outlives what is forgotten.
    with suppress(MemlogError):
        return f": words {keyed_hash(key_of(store), words)[:_DIGITS]}" if words else ""
    return ""


def _of_answer(message: str) -> ProviderError:
    failure = ProviderError(message)
    failure.is_of_answer = True
    return failure


def _away(message: str, said: str, *, is_cut: bool) -> ProviderError:
    failure = ProviderError(message, hint="start the provider there, or name its address", retryable=True)
    failure.is_away, failure.is_cut = True, is_cut
    return _saying(failure, said)


def late(message: str) -> ProviderError:
    """The error of a provider that took too long."""
    failure = ProviderError(message, retryable=True)
    failure.is_late = True
    return failure


_NO_PATH = "404 page not found"
"""What servers in Go say, such as Ollama."""

_OLLAMA_PORT = 11434

_HINTS = {
    401: "check api_key",
    403: "check api_key",
    429: "the provider limits how often it is asked",
}


@cache
def _tls() -> ssl.SSLContext:
    """Made once: it takes 20 ms."""
    return httpx2.create_ssl_context()


def _within(seconds: float, call: Callable[[], T]) -> T:
    """What `call` returns, if it does so in time; it may go on in a thread that nobody waits for.

    A limit of the socket alone would count anew with each byte, and not for names that are looked up.

    Raises TimeoutError.
    """
    outcome: Future[Any] = Future()

    def run() -> None:
        try:
            outcome.set_result(call())
        except BaseException as error:  # noqa: BLE001 - the waiting thread raises it
            outcome.set_exception(error)

    threading.Thread(target=run, name="memlog-provider", daemon=True).start()
    result: T = outcome.result(seconds)
    return result
