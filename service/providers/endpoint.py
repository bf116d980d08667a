"""Requests to a provider: JSON there and back, within a time, and no more of it than a size."""

import ssl
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from functools import cache
from typing import Any, TypeVar

import httpx2
import msgspec

from memlog.eventlog.errors import MemlogError, ProviderError
from memlog.service.providers.settings import ApiKey

T = TypeVar("T")

_MOST_BYTES = 64 * 1024 * 1024
"""Of an answer: 2,048 vectors of 1,536 dimensions as JSON take 40 MB."""

_TOLD = 200
"""Characters of a refusal that a message repeats."""


class Endpoint:
    """One address of a provider.

    url: where requests are posted. api_key: see `EmbeddingProvider`.
    """

    def __init__(self, url: str, api_key: ApiKey | None) -> None:
        self.url, self._api_key = url, api_key

    def post(self, body: object, into: type[T], seconds: float) -> T:
        """What the provider answers to `body`, within `seconds`.

        Raises:
            ProviderError: it cannot be reached, refuses, is too slow, or answers with something else.
        """
        key = self._key()
        try:
            data = _within(seconds, lambda: self._posted(msgspec.json.encode(body), key, seconds))
            return msgspec.json.decode(data, type=into)
        except (TimeoutError, httpx2.TimeoutException) as error:
            raise late(f"{self.url}: no answer within {seconds:.3g} s") from error
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
            why = str(error) or type(error).__name__
            raise _away(f"{self.url}: {why}") from error
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise ProviderError(f"{self.url}: the answer is not what was expected: {error}") from error

    def _key(self) -> str | None:
        try:
            key = self._api_key() if callable(self._api_key) else self._api_key
        except MemlogError as error:
            raise ProviderError(error.message, hint=error.hint) from error
        if key is not None and not (key.isascii() and key.isprintable()):
            raise ProviderError("the key has other characters than a key has", hint="give one line of ASCII")
        return key or None

    def _posted(self, content: bytes, key: str | None, seconds: float) -> bytes:
        headers = {"content-type": "application/json", "accept-encoding": "identity"}
        if key is not None:
            headers["authorization"] = f"Bearer {key}"
        until = time.monotonic() + seconds
        # No proxy and no redirect may see the key.
        with (
            httpx2.Client(timeout=seconds, trust_env=False, verify=_tls()) as client,
            client.stream("POST", self.url, content=content, headers=headers) as answer,
        ):
            data = bytearray()
            for part in answer.iter_bytes():
                data += part
                if len(data) > _MOST_BYTES:
                    raise ProviderError(f"{self.url}: the answer is longer than {_MOST_BYTES:,} bytes")
                if time.monotonic() > until:  # nobody waits for it any more
                    raise late(f"{self.url}: no answer within {seconds:.3g} s")
            if answer.is_success:
                return bytes(data)
            raise self._refusal(answer, bytes(data), key)

    def _refusal(self, answer: httpx2.Response, data: bytes, key: str | None) -> ProviderError:
        told = " ".join(data.decode(errors="replace").split())
        if key is not None:
            told = told.replace(key, "[key]")
        if answer.is_redirect:
            told = (
                f"it redirects to {answer.headers.get('location', 'nowhere')}, which memlog does not follow"
            )
        shown = told if len(told) <= _TOLD else told[:_TOLD] + "…"
        hint = _HINTS.get(answer.status_code, "")
        wait = answer.headers.get("retry-after", "")
        retry_after = float(wait) if wait.isdecimal() and len(wait) < 10 else None
        message = f"{self.url}: HTTP {answer.status_code}{': ' if shown else ''}{shown}"
        status = answer.status_code
        failure = ProviderError(message, hint=hint, retryable=status in (408, 429) or status >= 500)
        failure.status, failure.retry_after = status, retry_after
        return failure


def _away(message: str) -> ProviderError:
    failure = ProviderError(message, hint="start the provider there, or name its address", retryable=True)
    failure.is_away = True
    return failure


def late(message: str) -> ProviderError:
    """The error of a provider that took too long."""
    failure = ProviderError(message, retryable=True)
    failure.is_late = True
    return failure


_HINTS = {
    401: "check api_key",
    403: "check api_key",
    404: "check base_url and model",
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
