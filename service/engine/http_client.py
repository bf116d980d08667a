"""Requests to a provider, within a time and a size; and which providers failed."""

import json
import re
import ssl
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from email.utils import parsedate_to_datetime
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, TypeVar
from urllib.parse import urlsplit

import httpx2
import msgspec
from msgspec.structs import replace

from memlog.eventlog import timestamps
from memlog.eventlog.errors import MemlogError, ProviderError
from memlog.eventlog.files.folders import make_path
from memlog.eventlog.log.layout import LOG, PROVIDERS
from memlog.eventlog.secrets.detection import masked
from memlog.eventlog.secrets.outgoing import Outgoing, key_of, keyed_hash
from memlog.projector import core_file
from memlog.service.engine.settings import ApiKey, Provider

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
        """Send `body` to the provider, and return its answer, within `seconds`.

        Raises:
            ProviderError: it cannot be reached, refuses, is too slow, or answers with something else.
        """
        return self._send(body, seconds, lambda data: msgspec.json.decode(data, type=into))

    def ask(self, body: Outgoing, seconds: float) -> Any:  # noqa: ANN401 - JSON
        """Send a request, and return the JSON answer, even with NaN; an error in it is a refusal.

        Raises:
            ProviderError: as `post` does.
        """
        answer = self._send(body, seconds, _decoded)
        error = answer.get("error") if isinstance(answer, dict) else None
        if error:
            raise self._error_of(answer, error)
        return answer

    def _send(self, body: Outgoing, seconds: float, read: Callable[[bytes], T]) -> T:
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
            message, detail = self._told("the answer is not what was expected", _without(key, str(error)))
            raise _saying(_of_answer(message), detail) from None

    def _error_of(self, answer: dict[str, Any], error: Any) -> ProviderError:  # noqa: ANN401 - JSON
        """Return the refusal in an answer of HTTP 200, with the status that it names."""
        key, words = self._key(), json.dumps(answer, ensure_ascii=False)
        places = [error, answer] if isinstance(error, dict) else [answer]
        codes = (str(place.get(name)) for place in places for name in ("code", "status"))
        status = next((int(code) for code in codes if code.isdecimal() and 400 <= int(code) < 600), None)
        if status is not None:
            return self._refused(status, words, key, _HINTS.get(status, ""))
        message, detail = self._told("an error with HTTP 200", _without(key, words))
        failure = _of_answer(message)
        failure.words = words[:_LOOKED_AT]
        return _saying(failure, detail)

    def _told(self, what: str, words: str) -> tuple[str, str]:
        """Return the message of an error, with a hash of the provider's words, and those words."""
        detail = " ".join(words.split())
        return f"{self.url}: {what}{hash_of_words(self._store, detail)}", detail

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
        message, detail = self._told(f"HTTP {status}", _without(key, words))
        failure = ProviderError(message, hint=hint, retryable=status in (408, 429) or status >= 500)
        failure.status, failure.words = status, words[:_LOOKED_AT]
        return _saying(failure, detail)

    def _why_not_found(self, words: str) -> str:
        """Return a hint for a status of 404; Ollama has three causes for it."""
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
    """Parse a `Retry-After` header: seconds, or a date; None without one."""
    if retry_after.isdecimal() and len(retry_after) < 10:
        return float(retry_after)
    with suppress(ValueError, TypeError, OverflowError):
        return max(0.0, parsedate_to_datetime(retry_after).timestamp() - time.time())
    return None


def _without(key: str | None, text: str) -> str:
    """Mask the key in a message of a provider or a library, even if partly escaped."""
    shown = text if key is None else text.replace(key, "[key]").replace(key.replace("/", "\\/"), "[key]")
    return masked(shown)


def _local(message: str, hint: str) -> ProviderError:
    failure = ProviderError(message, hint=hint)
    failure.is_local = True
    return failure


def _saying(failure: ProviderError, detail: str) -> ProviderError:
    failure.said = detail if len(detail) <= _TOLD else detail[:_TOLD] + "…"
    return failure


def hash_of_words(store: Path, words: str) -> str:
    """Return `: words 1f0c…` to recognise equal errors; "" without words, or without a key."""
    # What a provider says may quote what it was sent, and this outlives what is forgotten.
    with suppress(MemlogError):
        return f": words {keyed_hash(key_of(store), words)[:_DIGITS]}" if words else ""
    return ""


def _of_answer(message: str) -> ProviderError:
    failure = ProviderError(message)
    failure.is_of_answer = True
    return failure


def _away(message: str, detail: str, *, is_cut: bool) -> ProviderError:
    failure = ProviderError(message, hint="start the provider there, or name its address", retryable=True)
    failure.is_away, failure.is_cut = True, is_cut
    return _saying(failure, detail)


def late(message: str) -> ProviderError:
    """Return the error of a provider that took too long."""
    failure = ProviderError(message, retryable=True)
    failure.is_late = True
    return failure


_NO_PATH = "404 page not found"
"""What servers in Go say, such as Ollama."""

_OLLAMA_PORT = 11434

_HINTS = {
    401: "check api_key",
    403: "check api_key",
    429: "the provider limits the rate of requests",
}


@cache
def _tls() -> ssl.SSLContext:
    """Return the TLS context, made once: it takes 20 ms."""
    return httpx2.create_ssl_context()


def _within(seconds: float, call: Callable[[], T]) -> T:
    """Return the result of `call` if it comes in time; else it may go on in a thread that nobody waits for.

    A socket timeout alone would restart with each byte, and would not cover name lookups.

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


# `cache/providers.json` has it for all processes of a store: a new command does not wait
# again.

_FIRST_REST = 30.0
_LONGEST_REST = 600.0

_unwritten: "dict[tuple[Path, str], ProviderRecord]" = {}
"""Records by store and provider that could not be written."""


class ProviderRecord(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What is known of a provider.

    dimension: of its vectors. failures: in a row; errors: all. failure, failed_at: of the last one, without
    the provider's words. error: written by older versions, with those words in it: it is dropped.
    rests_until: seconds since 1970; nobody asks it before.
    spent: tokens of questions and answers on the day spent_on, in UTC.
    forms: of parameters, where it refused another one: `max_tokens`: `max_completion_tokens`.
    """

    dimension: int | None = None
    failures: int = 0
    errors: int = 0
    failure: str | None = None
    error: str | None = None
    failed_at: str | None = None
    rests_until: float = 0.0
    forms: dict[str, str] = {}
    spent_on: str | None = None
    spent: int = 0

    @property
    def rests(self) -> bool:
        """Whether nobody asks it now. A clock that was set back does not make it rest permanently."""
        return 0 < self.rests_until - time.time() <= _LONGEST_REST


class ProviderState(msgspec.Struct, kw_only=True):
    """A provider that a store is to ask, and how it does.

    role: `embedding` or `rerank`. base_url: where texts are sent; None for the address by default.
    failures: in a row. error, failed_at: of the last one; the provider's words only as a hash.
    rests_until: nobody asks it before.
    """

    role: str
    type: str
    base_url: str | None
    model: str | None
    failures: int
    error: str | None
    failed_at: str | None
    rests_until: str | None


class Breaker:
    """A circuit breaker: after a failure a provider rests, 30 s at first, twice as long each time, 10 minutes
    at most. https://martinfowler.com/bliki/CircuitBreaker.html

    role: `embedding` or `rerank`.
    """

    def __init__(self, store: Path, role: str, provider: Provider) -> None:
        self._store, self._role, self._provider = store, role, provider
        names = (role, provider.type, provider.base_url, provider.model)
        self._name = " ".join(name for name in names if name)

    def endpoint(self, url: str, **headers: Any) -> Endpoint:  # noqa: ANN401 - as `Endpoint` takes them
        """Return an address of the provider."""
        provider = self._provider
        return Endpoint(url, provider.api_key, self._store, proxy=provider.proxy, **headers)

    def record(self) -> ProviderRecord:
        """Return the record of the provider."""
        own = _unwritten.get((self._store, self._name))
        return own or _records(self._store).get(self._name) or ProviderRecord()

    def state(self) -> ProviderState:
        """Return the state of the provider for people and programs."""
        record, provider = self.record(), self._provider
        return ProviderState(
            role=self._role,
            type=provider.type,
            base_url=provider.base_url,
            model=provider.model,
            failures=record.failures,
            error=record.failure,
            failed_at=record.failed_at,
            rests_until=timestamps.of_seconds(record.rests_until) if record.rests else None,
        )

    def check(self) -> None:
        """Raise ProviderError while the provider rests."""
        record = self.record()
        if record.rests:
            until = timestamps.of_seconds(record.rests_until)
            why = record.failure or f"{self._name}: it failed"
            error = ProviderError(f"{why} (not retried before {until})", retryable=True)
            error.is_resting = True
            raise error

    def failed(self, error: ProviderError, *, rests: bool = True) -> None:
        """Note a failure; not one of this machine, such as a key that is missing.

        rests: whether the provider rests.
        """
        known = self.record()
        if error.is_local:
            return
        if known.rests and rests:  # a concurrent request has already recorded the failure
            self._write(replace(known, errors=known.errors + 1))
            return
        rest = min(_LONGEST_REST, max(_FIRST_REST * 2 ** min(known.failures, 8), error.retry_after or 0.0))
        self._write(
            replace(
                known,
                failures=known.failures + 1,
                errors=known.errors + 1,
                failure=error.message,
                failed_at=timestamps.now(),
                rests_until=time.time() + rest if rests else known.rests_until,
            )
        )

    def missed(self, count: int) -> None:
        """Count failures of requests that were not sent."""
        if count:
            known = self.record()
            self._write(replace(known, errors=known.errors + count))

    def spent_today(self) -> int:
        """Return the tokens that were spent today, as far as the cache knows."""
        record = self.record()
        return record.spent if record.spent_on == timestamps.today() else 0

    def spend(self, tokens: int) -> None:
        """Note that a question and its answer took tokens."""
        spent = self.spent_today() + tokens
        self._write(replace(self.record(), spent_on=timestamps.today(), spent=spent))

    def learn(self, forms: dict[str, str]) -> None:
        """Note in which forms the provider takes parameters."""
        known = self.record()
        self._write(replace(known, forms=known.forms | forms))

    def worked(self, dimension: int | None = None) -> None:
        """Note that the provider answered, and the dimension of its vectors."""
        known = self.record()
        dimension = dimension or known.dimension
        rested = {"failures": 0, "failure": None, "failed_at": None, "rests_until": 0.0}
        record = replace(known, dimension=dimension, **rested)
        if record != known:
            self._write(record)

    def _write(self, record: ProviderRecord) -> None:
        """Write a record; if that fails, only this process remembers it."""
        _unwritten[self._store, self._name] = record
        if not (self._store / LOG).is_dir():
            return
        with suppress(OSError):
            make_path((self._store / PROVIDERS).parent)
            _put(self._store, _records(self._store) | {self._name: record})
            del _unwritten[self._store, self._name]


def count_errors(store: Path, role: str) -> int:
    """Return the number of failures of the providers of a role, as far as the cache knows."""
    return sum(record.errors for name, record in _records(store).items() if name.split()[0] == role)


def forget_words(store: Path) -> None:
    """Drop what older versions kept of the words of providers, which may quote what is forgotten.

    A file that cannot be read goes, too: it is a cache.
    """
    if _known(store) is None:
        (store / PROVIDERS).unlink(missing_ok=True)


def _records(store: Path) -> dict[str, ProviderRecord]:
    return _known(store) or {}


def _known(store: Path) -> dict[str, ProviderRecord] | None:
    """Return the records; None for a file that cannot be read."""
    try:
        data = core_file.read(store / PROVIDERS)
        records = {} if data is None else msgspec.json.decode(data, type=dict[str, ProviderRecord])
    except (OSError, msgspec.MsgspecError, RecursionError):
        return None
    if any(record.error is not None for record in records.values()):
        records = {name: replace(record, error=None) for name, record in records.items()}
        with suppress(OSError):
            _put(store, records)
    return records


def _put(store: Path, records: dict[str, ProviderRecord]) -> None:
    core_file.replace(store / PROVIDERS, msgspec.json.encode(records) + b"\n")


# Servers of one protocol know different parameters, and refuse others by a status of 400 that names them.
# What was refused is replaced or left out, sent again, and remembered of the provider and the model.

Body = dict[str, Any]

LEFT_OUT = "none"
"""The form of a parameter that is not sent."""

_REFUSES_A_PARAMETER = (None, 400, 404, 422, 500, 501)
"""Statuses; None of an error in an answer of HTTP 200. llama.cpp and Ollama say so with 500, too; with 404
OpenRouter, which then has no server that knows the parameter."""

_QUOTED = 24
"""Letters and digits of a text that a refusal repeats if it quotes the request."""


class _Parameter(NamedTuple):
    """A parameter.

    named: how a refusal names it. forms: what is sent, the next one where one is refused. put: gives it in
    another form to a body that has the first one. unless: words of a refusal that is not of the parameter.
    """

    named: str
    forms: tuple[str, ...]
    put: Callable[[Body, str], None]
    unless: str = r"\Z.\A"


def _rename(body: Body, form: str) -> None:
    most = body.pop("max_tokens")
    if form != LEFT_OUT:
        body[form] = most


def _ask_for(body: Body, form: str) -> None:
    if form == LEFT_OUT:
        del body["response_format"]
    elif form != "json_schema":
        body["response_format"] = {"type": form}


def _put_system(body: Body, form: str) -> None:
    system, user = body["messages"]
    if form == "user":
        body["messages"] = [user | {"content": f"{system['content']}\n\n{user['content']}"}]
    else:
        body["messages"] = [system | {"role": form}, user]


def _leave_out(name: str) -> Callable[[Body, str], None]:
    def put(body: Body, form: str) -> None:
        if form == LEFT_OUT:
            body.pop(name, None)

    return put


_PARAMETERS = {
    "max_tokens": _Parameter(
        r"max_(?:completion_|output_|new_)?tokens",
        ("max_tokens", "max_completion_tokens", LEFT_OUT),
        _rename,
        # The messages are too long for the model.
        unless=r"^(?!.*max_\w*tokens\W.{0,60}(?:too large|not support|unsupported|unknown|unrecogni))"
        r".*(?:context|at least|input tokens|prompt)",
    ),
    "temperature": _Parameter("temperature", ("sent", LEFT_OUT), _leave_out("temperature")),
    "response_format": _Parameter(
        r"response.?(?:format|schema|mime)|json.?(?:schema|object|mode)|structured.?output|grammar"
        r"|guided.?(?:decoding|json)|schema produces",
        ("json_schema", "json_object", LEFT_OUT),
        _ask_for,
    ),
    "output_config": _Parameter(
        r"output.?(?:config|format)|json.?schema|structured.?output",
        ("json_schema", LEFT_OUT),
        _leave_out("output_config"),
    ),
    "system_role": _Parameter(
        r"(?:system|developer).{0,3} (?:role|message|prompt|instruction)|messages?\W{1,3}\d+\W{1,3}role"
        r"|roles?\W.{0,30}(?:system|developer)|(?:unsupported|invalid|unknown) (?:message )?role"
        r"|variant \W?(?:system|developer)"
        r"|only user.{1,8}(?:assistant|model) roles|roles must alternate",
        ("developer", "system", "user"),
        _put_system,
    ),
    "encoding_format": _Parameter(r"encoding.?format", ("float", LEFT_OUT), _leave_out("encoding_format")),
}


def send_in_known_forms(
    breaker: Breaker, body: Body, chosen: Mapping[str, str], send: Callable[[Body], T]
) -> T:
    """Send a body with its parameters in the forms that the provider takes, and return the answer.

    body: has each parameter in its first form. chosen: the parameters that it may have, and the forms to
    begin with; what the provider refused before is not tried again.

    Raises:
        ProviderError: as `send` does, for another reason than a parameter.
    """
    known = breaker.record().forms
    forms = {name: _later(name, form, known.get(name, form)) for name, form in chosen.items()}
    begun = dict(forms)
    while True:
        try:
            answer = send(_shaped(body, forms))
        except ProviderError as error:
            following = {name: _next(name, forms[name]) for name in _refused(error, body, chosen)}
            changed = {name: form for name, form in following.items() if form is not None}
            if not changed:
                raise
            forms |= changed
        else:
            if forms != begun:
                breaker.learn(forms)
            return answer


def _shaped(body: Body, forms: Mapping[str, str]) -> Body:
    shaped = dict(body)
    for name, form in forms.items():
        _PARAMETERS[name].put(shaped, form)
    return shaped


def _later(name: str, chosen: str, known: str) -> str:
    forms = _PARAMETERS[name].forms
    return max(chosen, known, key=lambda form: forms.index(form) if form in forms else -1)


def _next(name: str, form: str) -> str | None:
    forms = _PARAMETERS[name].forms
    return next(iter(forms[forms.index(form) + 1 :]), None)


def _refused(error: ProviderError, body: Body, names: Iterable[str]) -> set[str]:
    if error.status not in _REFUSES_A_PARAMETER or not error.words:
        return set()
    named = _matching(_told(error.words), error.words, names)
    return named or (set() if _quotes(error.words, body) else _matching(error.words, error.words, names))


def _matching(told: str, words: str, names: Iterable[str]) -> set[str]:
    parameters = {name: _PARAMETERS[name] for name in names}
    return {
        name
        for name, each in parameters.items()
        if re.search(each.named, told, re.IGNORECASE | re.DOTALL)
        and not re.search(each.unless, words, re.IGNORECASE | re.DOTALL)
    }


def _told(words: str) -> str:
    """Return the members of a refusal that name a parameter: `param` of OpenAI, `loc` of FastAPI."""
    told: list[str] = []
    with suppress(ValueError, RecursionError):
        answer = json.loads(words)
        error = answer.get("error") if isinstance(answer, dict) else None
        if isinstance(error, dict) and isinstance(error.get("param"), str):
            told.append(error["param"])
        waiting = [answer]
        while waiting:  # at any depth: Mistral has them in a message
            value = waiting.pop()
            if isinstance(value, dict) and isinstance(value.get("loc"), list):
                told.append(".".join(map(str, value["loc"])))
            elif isinstance(value, dict | list):
                waiting += value.values() if isinstance(value, dict) else value
    return " ".join(told)


def _quotes(words: str, body: Body) -> bool:
    """Whether a refusal repeats the request, and so names all that is in it."""
    texts = [each["content"] for each in body.get("messages", ())]
    texts += body.get("input", ()) or ()
    letters = _letters(words)
    return any(
        len(text) >= _QUOTED and text in letters for text in (_letters(each)[:_QUOTED] for each in texts)
    )


def _letters(text: str) -> str:
    return re.sub(r"[\W_]+", "", text)
