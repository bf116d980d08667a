"""Requests to a provider: JSON there and back, within a time, and no more of it than a size."""

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


class Endpoint:
    """One address of a provider.

    url: where requests are posted. api_key: see `EmbeddingProvider`. store: whose key hashes what it says.
    key_header: the header that has the key; None for a bearer token. headers: further ones.
    """

    def __init__(
        self,
        url: str,
        api_key: ApiKey | None,
        store: Path,
        *,
        key_header: str | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        self.url, self._api_key, self._store = url, api_key, store
        self._key_header, self._headers = key_header, headers or {}

    def post(self, body: Outgoing, into: type[T], seconds: float) -> T:
        """What the provider answers to `body`, within `seconds`.

        Raises:
            ProviderError: it cannot be reached, refuses, is too slow, or answers with something else.
        """
        key = self._key()
        try:
            data = _within(seconds, lambda: self._posted(body.content, key, seconds))
            return msgspec.json.decode(data, type=into)
        except (TimeoutError, httpx2.TimeoutException) as error:
            raise late(f"{self.url}: no answer within {seconds:.3g} s") from error
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
            raise _away(*self._told("unreachable", _without(key, str(error)))) from None
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            message, said = self._told("the answer is not what was expected", _without(key, str(error)))
            raise _saying(ProviderError(message), said) from None

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
        words, hint = data.decode(errors="replace"), _HINTS.get(answer.status_code, "")
        if answer.is_redirect:
            words = f"it redirects to {answer.headers.get('location', 'nowhere')}"
            hint = "it redirects, which memlog does not follow: name the address itself"
        status = answer.status_code
        message, said = self._told(f"HTTP {status}", _without(key, words))
        failure = ProviderError(message, hint=hint, retryable=status in (408, 429) or status >= 500)
        failure.status = status
        failure.retry_after = _seconds_of(answer.headers.get("retry-after", ""))
        return _saying(failure, said)


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


def _away(message: str, said: str) -> ProviderError:
    failure = ProviderError(message, hint="start the provider there, or name its address", retryable=True)
    failure.is_away = True
    return _saying(failure, said)


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
