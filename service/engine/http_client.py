"""Sends requests to providers within time and size limits, and remembers which providers fail."""

import json
import re
import ssl
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, InvalidStateError
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
from memlog.eventlog.files import file_io
from memlog.eventlog.files.folders import make_folder_and_parents
from memlog.eventlog.log.layout import LOG, PROVIDERS
from memlog.eventlog.secrets.detection import mask_keys
from memlog.eventlog.secrets.outgoing import Outgoing, compute_keyed_hash, load_or_create_store_key
from memlog.eventlog.sections import Provider

T = TypeVar("T")

_MAX_BYTES = 64 * 1024 * 1024
"""The longest answer, in bytes: 2,048 vectors of 1,536 dimensions as JSON take 40 MB."""

_SHOWN_CHARACTERS = 200
"""The maximum number of characters to show of a refusal."""

_HASH_DIGITS = 16

_SEARCHED_BYTES = 20_000
"""The maximum number of bytes of a refusal to search for parameter names."""


class Endpoint:
    """One address of a provider.

    url: where requests are posted. store: the folder of the store whose key hashes error messages.
    key_header: the header for the key; None for a bearer token. headers: additional headers.
    """

    def __init__(
        self,
        url: str,
        provider: Provider,
        store: Path,
        *,
        key_header: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.url, self._provider, self._store = url, provider, store
        self._key_header, self._headers = key_header, headers or {}

    def post_body(self, body: Outgoing, into: type[T], seconds: float) -> T:
        """Send `body` to the provider, and return the answer decoded as `into`, within `seconds`.

        Raises:
            ProviderError: the provider is unreachable, refuses, is too slow, or gives an unexpected answer.
        """
        return self._send(body, seconds, lambda data: msgspec.json.decode(data, type=into))

    def post_and_decode_json(self, body: Outgoing, seconds: float) -> Any:  # noqa: ANN401 - JSON
        """Send a request, and return the JSON answer, which may contain NaN; an error in the answer counts as
        a refusal.

        Raises:
            ProviderError: see `post_body`.
        """
        answer = self._send(body, seconds, _decode_json)
        error = answer.get("error") if isinstance(answer, dict) else None
        if error:
            raise self._error_in_answer(answer, error)
        return answer

    def _send(self, body: Outgoing, seconds: float, read: Callable[[bytes], T]) -> T:
        key = self._read_key()
        try:
            return read(_run_within_seconds(seconds, lambda: self._post(body.content, key, seconds)))
        except (TimeoutError, httpx2.TimeoutException) as error:
            raise late_error(self.url, seconds) from error
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
            # The request may have crashed the provider.
            is_cut = isinstance(error, httpx2.ReadError | httpx2.RemoteProtocolError)
            hint = "start the provider or correct its address"
            raise self._build_error(
                "unreachable", str(error), key, hint, retryable=True, is_away=True, is_cut=is_cut
            ) from None
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            what = "the answer is not what was expected"
            raise self._build_error(what, str(error), key, is_of_answer=True) from None

    def _error_in_answer(self, answer: dict[str, Any], error: Any) -> ProviderError:  # noqa: ANN401 - JSON
        """Return the error described in an HTTP 200 answer, with the status that it names."""
        key, words = self._read_key(), json.dumps(answer, ensure_ascii=False)
        places = [error, answer] if isinstance(error, dict) else [answer]
        codes = (str(place.get(name)) for place in places for name in ("code", "status"))
        status = next((int(code) for code in codes if code.isdecimal() and 400 <= int(code) < 600), None)
        if status is not None:
            return self._error_of_status(status, words, key, _HINTS.get(status, ""))
        reason = words[:_SEARCHED_BYTES]
        return self._build_error("an error with HTTP 200", words, key, is_of_answer=True, words=reason)

    def _build_error(
        self, what: str, said: str, key: str | None, hint: str = "", **marks: object
    ) -> ProviderError:
        """Return an error whose message has only a hash of what the provider said; see `provider_error`."""
        if key is not None:  # it may be partly escaped
            said = said.replace(key, "[key]").replace(key.replace("/", "\\/"), "[key]")
        told, label = " ".join(mask_keys(said).split()), ""
        # A provider may quote the request, and this message outlives events that are forgotten.
        with suppress(MemlogError):
            label = (
                f": words {compute_keyed_hash(load_or_create_store_key(self._store), told)[:_HASH_DIGITS]}"
                if told
                else ""
            )
        shown = told if len(told) <= _SHOWN_CHARACTERS else told[:_SHOWN_CHARACTERS] + "…"
        return provider_error(f"{self.url}: {what}{label}", hint, said=shown, **marks)

    def _read_key(self) -> str | None:
        try:
            key = self._provider.read_key()
        except MemlogError as error:
            raise provider_error(error.message, error.hint, is_local=True) from error
        if key is not None and not (key.strip().isascii() and key.strip().isprintable()):
            why, hint = "the API key has invalid characters", "use one line of printable ASCII"
            raise provider_error(why, hint, is_local=True)
        return (key or "").strip() or None

    def _post(self, content: bytes, key: str | None, seconds: float) -> bytes:
        headers = {"content-type": "application/json", "accept-encoding": "identity"}
        headers |= self._headers
        if key is not None and self._key_header is not None:
            headers[self._key_header] = key
        elif key is not None:
            headers["authorization"] = f"Bearer {key}"
        until = time.monotonic() + seconds
        # Only the configured proxy, and no redirect target, may see the key.
        with (
            httpx2.Client(
                timeout=seconds, trust_env=False, verify=_tls_context(), proxy=self._provider.proxy
            ) as client,
            client.stream("POST", self.url, content=content, headers=headers) as answer,
        ):
            data = bytearray()
            for part in answer.iter_bytes():
                data += part
                if len(data) > _MAX_BYTES:
                    why = f"{self.url}: the answer is longer than {_MAX_BYTES:,} bytes"
                    raise provider_error(why, is_of_answer=True)
                if time.monotonic() > until:  # the caller has given up
                    raise late_error(self.url, seconds)
            if answer.is_success:
                return bytes(data)
            raise self._error_of_response(answer, bytes(data), key)

    def _error_of_response(self, answer: httpx2.Response, data: bytes, key: str | None) -> ProviderError:
        words, status = data.decode(errors="replace"), answer.status_code
        hint = self._why_not_found(words) if status == 404 else _HINTS.get(status, "")
        if answer.is_redirect:
            words = f"it redirects to {answer.headers.get('location', 'nowhere')}"
            hint = "use the final address: memlog does not follow redirects"
        failure = self._error_of_status(status, words, key, hint)
        failure.retry_after = _parse_retry_after(answer.headers.get("retry-after", ""))
        return failure

    def _error_of_status(self, status: int, words: str, key: str | None, hint: str) -> ProviderError:
        retryable = status in (408, 429) or status >= 500
        marks = {"status": status, "words": words[:_SEARCHED_BYTES]}
        return self._build_error(f"HTTP {status}", words, key, hint, retryable=retryable, **marks)

    def _why_not_found(self, words: str) -> str:
        """Return a hint for an HTTP 404, which can have three causes with Ollama."""
        is_ollama = f":{_OLLAMA_PORT}/" in f"{self.url}/"
        if "try pulling" in words or (is_ollama and "model" in words):
            return "pull the model: ollama pull MODEL"
        if not is_ollama and words.strip() != _NO_PATH:
            return "check base_url and model"
        path = urlsplit(self.url).path
        if path.startswith("/v1/") and "/api/" not in path:
            return f"this Ollama is older than {path}: update it; for vectors, set embedding.type to ollama"
        return f"there is no {path}: base_url of type api ends in /v1, and of type ollama has no path"


def _decode_json(data: bytes) -> Any:  # noqa: ANN401 - JSON
    try:
        return msgspec.json.decode(data)
    except msgspec.MsgspecError:
        return json.loads(data)  # accepts NaN


def _parse_retry_after(retry_after: str) -> float | None:
    """Parse a `Retry-After` header, which holds seconds or a date; None if it holds neither."""
    if retry_after.isdecimal() and len(retry_after) < 10:
        return float(retry_after)
    with suppress(ValueError, TypeError, OverflowError):
        return max(0.0, parsedate_to_datetime(retry_after).timestamp() - time.time())
    return None


def provider_error(message: str, hint: str = "", **marks: object) -> ProviderError:
    """Return a provider error. marks: its other attributes, such as `is_late`; see `ProviderError`."""
    failure = ProviderError(message, hint=hint)
    vars(failure).update(marks)
    return failure


def late_error(url: str | None, seconds: float) -> ProviderError:
    """Return the error for a provider that did not answer within `seconds`."""
    return provider_error(f"{url}: no answer within {seconds:.3g} s", retryable=True, is_late=True)


_NO_PATH = "404 page not found"
"""The answer of Go servers, such as Ollama, for an unknown path."""

_OLLAMA_PORT = 11434

_HINTS = {
    401: "check api_key",
    403: "check api_key",
    429: "the provider limits the rate of requests: try again later",
}


@cache
def _tls_context() -> ssl.SSLContext:
    """Return the TLS context, which is cached because creating it takes 20 ms."""
    return httpx2.create_ssl_context()


_LONGEST_WAIT = 60.0
"""The maximum delay of a retry at the provider's request, in seconds."""


def send_with_retries(
    send: Callable[[], T], waits: Iterable[float], is_worth_it: Callable[[ProviderError], bool]
) -> T:
    """Return the result of `send`, retrying it after errors for which `is_worth_it` returns True.

    waits: seconds before each retry.

    Raises:
        ProviderError: the error of the last attempt.
    """
    left = iter(waits)
    while True:
        try:
            return send()
        except ProviderError as error:
            wait, requested = next(left, None), error.retry_after or 0.0
            if wait is None or not is_worth_it(error) or requested > _LONGEST_WAIT:
                raise
            time.sleep(max(wait, requested))


_waiting: set[Future[Any]] = set()
"""The requests that are waiting for an answer."""

_is_ending = threading.Event()


def abandon_requests() -> None:
    """Fail all current and later requests to providers, because this process is ending; blame no provider."""
    _is_ending.set()
    for outcome in [*_waiting]:
        with suppress(InvalidStateError):  # it has just been answered
            outcome.set_exception(_ending_error())


def _ending_error() -> ProviderError:
    return provider_error("the server is ending", retryable=True, is_local=True)


def _run_within_seconds(seconds: float, call: Callable[[], T]) -> T:
    """Return the result of `call`; after `seconds`, raise TimeoutError and abandon its thread.

    A socket timeout alone would restart with each byte, and would not cover name lookups.
    """
    if _is_ending.is_set():
        raise _ending_error()
    outcome: Future[Any] = Future()

    def run() -> None:
        with suppress(InvalidStateError):  # the request was abandoned
            try:
                outcome.set_result(call())
            except BaseException as error:  # noqa: BLE001 - the waiting thread raises it
                outcome.set_exception(error)

    threading.Thread(target=run, name="memlog-provider", daemon=True).start()
    _waiting.add(outcome)
    try:
        result: T = outcome.result(seconds)
    finally:
        _waiting.discard(outcome)
    return result


# All processes of a store share `cache/providers.json`, so that a new command does not wait for a failing
# provider again.

_FIRST_REST = 30.0
_LONGEST_REST = 600.0

_unwritten: "dict[tuple[Path, str], ProviderRecord]" = {}
"""Records that could not be written, keyed by store and provider."""


class ProviderRecord(msgspec.Struct, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """What is known about a provider.

    dimension: the length of its vectors. failures, errors: the number of consecutive and of all failures.
    failure, failed_at: the last failure, without the provider's words; an older version kept them as `error`.
    rests_until: seconds since 1970; no request is sent before then.
    spent: the tokens used on the UTC day `spent_on`.
    forms: replacements for refused parameters, such as `max_tokens`: `max_completion_tokens`.
    """

    dimension: int | None = None
    failures: int = 0
    errors: int = 0
    failure: str | None = None
    failed_at: str | None = None
    rests_until: float = 0.0
    forms: dict[str, str] = {}
    spent_on: str | None = None
    spent: int = 0

    @property
    def is_paused(self) -> bool:
        """Whether requests are paused. Setting the clock back cannot extend the pause indefinitely."""
        return 0 < self.rests_until - time.time() <= _LONGEST_REST


class ProviderState(msgspec.Struct, kw_only=True):
    """The state of a configured provider.

    role: `embedding` or `rerank`. base_url: where texts are sent; None for the default address.
    failures: the number of consecutive failures.
    error, failed_at: the last failure, with the provider's words only as a hash.
    rests_until: the time before which no request is sent.
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
    """A circuit breaker with exponential backoff. After a failure, no request is sent for 30 s, and for up to
    10 minutes after repeated failures. https://martinfowler.com/bliki/CircuitBreaker.html

    role: `embedding` or `rerank`.
    """

    def __init__(self, store: Path, role: str, provider: Provider) -> None:
        self._store, self._role, self._provider = store, role, provider
        names = (role, provider.type, provider.base_url, provider.model)
        self._name = " ".join(name for name in names if name)

    def make_endpoint(self, url: str, **headers: Any) -> Endpoint:  # noqa: ANN401 - as `Endpoint` takes them
        """Return the provider's endpoint at `url`."""
        return Endpoint(url, self._provider, self._store, **headers)

    def read_record(self) -> ProviderRecord:
        """Return the provider's record."""
        own = _unwritten.get((self._store, self._name))
        return own or _known_records(self._store).get(self._name) or ProviderRecord()

    def read_state(self) -> ProviderState:
        """Return the provider's state, for display."""
        record, provider = self.read_record(), self._provider
        return ProviderState(
            role=self._role,
            type=provider.type,
            base_url=provider.base_url,
            model=provider.model,
            failures=record.failures,
            error=record.failure,
            failed_at=record.failed_at,
            rests_until=timestamps.timestamp_from_seconds(record.rests_until) if record.is_paused else None,
        )

    def check_available(self) -> None:
        """Raise ProviderError if the provider must not be used now, because it failed."""
        record = self.read_record()
        if record.is_paused:
            until = timestamps.timestamp_from_seconds(record.rests_until)
            why = record.failure or f"{self._name}: it failed"
            raise provider_error(f"{why} (not retried before {until})", retryable=True, is_resting=True)

    def record_failure(self, error: ProviderError, *, rests: bool = True) -> None:
        """Record a failure, unless its cause is local, such as a missing key.

        rests: whether to stop sending requests for a while.
        """
        known = self.read_record()
        if error.is_local:
            return
        if known.is_paused and rests:  # a concurrent request has already recorded the failure
            self._write_record(replace(known, errors=known.errors + 1))
            return
        rest = min(_LONGEST_REST, max(_FIRST_REST * 2 ** min(known.failures, 8), error.retry_after or 0.0))
        self._write_record(
            replace(
                known,
                failures=known.failures + 1,
                errors=known.errors + 1,
                failure=error.message,
                failed_at=timestamps.now(),
                rests_until=time.time() + rest if rests else known.rests_until,
            )
        )

    def count_unsent_as_failures(self, count: int) -> None:
        """Count `count` requests that were not sent as failures."""
        if count:
            known = self.read_record()
            self._write_record(replace(known, errors=known.errors + count))

    def tokens_spent_today(self) -> int:
        """Return the tokens spent today, according to the cache."""
        record = self.read_record()
        return record.spent if record.spent_on == timestamps.today() else 0

    def record_tokens(self, tokens: int) -> None:
        """Add the tokens of a request and its answer to today's total."""
        spent = self.tokens_spent_today() + tokens
        self._write_record(replace(self.read_record(), spent_on=timestamps.today(), spent=spent))

    def record_forms(self, forms: dict[str, str]) -> None:
        """Record which forms of parameters the provider accepts."""
        known = self.read_record()
        self._write_record(replace(known, forms=known.forms | forms))

    def record_success(self, dimension: int | None = None) -> None:
        """Record that the provider answered and, if given, the dimension of its vectors."""
        known = self.read_record()
        dimension = dimension or known.dimension
        rested = {"failures": 0, "failure": None, "failed_at": None, "rests_until": 0.0}
        record = replace(known, dimension=dimension, **rested)
        if record != known:
            self._write_record(record)

    def _write_record(self, record: ProviderRecord) -> None:
        """Write the record. If that fails, it is kept only in this process."""
        _unwritten[self._store, self._name] = record
        if not (self._store / LOG).is_dir():
            return
        with suppress(OSError):
            path = self._store / PROVIDERS
            make_folder_and_parents(path.parent)
            records = _known_records(self._store) | {self._name: record}
            file_io.replace_file(path, msgspec.json.encode(records) + b"\n")
            del _unwritten[self._store, self._name]


def count_failures_of_role(store: Path, role: str) -> int:
    """Return how often providers with the given role have failed, according to the cache."""
    return sum(record.errors for name, record in _known_records(store).items() if name.split()[0] == role)


def remove_unreadable_cache(store: Path) -> None:
    """Delete an unreadable cache: an older version kept providers' words, which may quote erased events."""
    if _read_records(store) is None:
        (store / PROVIDERS).unlink(missing_ok=True)


def _known_records(store: Path) -> dict[str, ProviderRecord]:
    return _read_records(store) or {}


def _read_records(store: Path) -> dict[str, ProviderRecord] | None:
    """Return the records; None if the file is unreadable."""
    try:
        data = file_io.read_file(store / PROVIDERS)
        return {} if data is None else msgspec.json.decode(data, type=dict[str, ProviderRecord])
    except (OSError, msgspec.MsgspecError, RecursionError):
        return None


# Servers of one protocol accept different parameters, and refuse others with HTTP 400 and their names.
# A refused parameter is replaced or omitted, and the working form is remembered per provider and model.

Body = dict[str, Any]

LEFT_OUT = "none"
"""The form for a parameter that is not sent."""

_REFUSES_A_PARAMETER = (None, 400, 404, 422, 500, 501)
"""Statuses with which a provider may refuse a parameter; None stands for an error in an HTTP 200 answer.
llama.cpp and Ollama also use 500; OpenRouter uses 404 when none of its servers knows the parameter."""

_QUOTED_LETTERS = 24
"""How many letters and digits of a text a refusal must contain to count as quoting the request."""


class _Parameter(NamedTuple):
    """A request parameter that providers may refuse.

    named: how refusals name it. forms: its forms, in the order in which they are tried. put: changes a body
    from the first form to another. unless: words in refusals that have another reason.
    """

    named: str
    forms: tuple[str, ...]
    put: Callable[[Body, str], None]
    unless: str = r"\Z.\A"


def _rename_max_tokens(body: Body, form: str) -> None:
    most = body.pop("max_tokens")
    if form != LEFT_OUT:
        body[form] = most


def _set_response_format(body: Body, form: str) -> None:
    if form == LEFT_OUT:
        del body["response_format"]
    elif form != "json_schema":
        body["response_format"] = {"type": form}


def _set_system_role(body: Body, form: str) -> None:
    system, user = body["messages"]
    if form == "user":
        body["messages"] = [user | {"content": f"{system['content']}\n\n{user['content']}"}]
    else:
        body["messages"] = [system | {"role": form}, user]


def _make_parameter_omitter(name: str) -> Callable[[Body, str], None]:
    def omit_parameter(body: Body, form: str) -> None:
        if form == LEFT_OUT:
            body.pop(name, None)

    return omit_parameter


_PARAMETERS = {
    "max_tokens": _Parameter(
        r"max_(?:completion_|output_|new_)?tokens",
        ("max_tokens", "max_completion_tokens", LEFT_OUT),
        _rename_max_tokens,
        # The messages are too long for the model.
        unless=r"^(?!.*max_\w*tokens\W.{0,60}(?:too large|not support|unsupported|unknown|unrecogni))"
        r".*(?:context|at least|input tokens|prompt)",
    ),
    "temperature": _Parameter("temperature", ("sent", LEFT_OUT), _make_parameter_omitter("temperature")),
    "response_format": _Parameter(
        r"response.?(?:format|schema|mime)|json.?(?:schema|object|mode)|structured.?output|grammar"
        r"|guided.?(?:decoding|json)|schema produces",
        ("json_schema", "json_object", LEFT_OUT),
        _set_response_format,
    ),
    "output_config": _Parameter(
        r"output.?(?:config|format)|json.?schema|structured.?output",
        ("json_schema", LEFT_OUT),
        _make_parameter_omitter("output_config"),
    ),
    "system_role": _Parameter(
        r"(?:system|developer).{0,3} (?:role|message|prompt|instruction)|messages?\W{1,3}\d+\W{1,3}role"
        r"|roles?\W.{0,30}(?:system|developer)|(?:unsupported|invalid|unknown) (?:message )?role"
        r"|variant \W?(?:system|developer)"
        r"|only user.{1,8}(?:assistant|model) roles|roles must alternate",
        ("developer", "system", "user"),
        _set_system_role,
    ),
    "encoding_format": _Parameter(
        r"encoding.?format", ("float", LEFT_OUT), _make_parameter_omitter("encoding_format")
    ),
}


def send_in_known_forms(
    breaker: Breaker, body: Body, chosen: Mapping[str, str], send: Callable[[Body], T]
) -> T:
    """Send `body` with its parameters in forms that the provider accepts, and return the answer.

    body: has each parameter in its first form. chosen: the optional parameters, and the forms to begin with;
    forms that the provider has refused are not retried.

    Raises:
        ProviderError: `send` fails for a reason other than a parameter.
    """
    known = breaker.read_record().forms
    forms = {name: _choose_later_form(name, form, known.get(name, form)) for name, form in chosen.items()}
    begun = dict(forms)
    while True:
        try:
            shaped = dict(body)
            for name, form in forms.items():
                _PARAMETERS[name].put(shaped, form)
            answer = send(shaped)
        except ProviderError as error:
            changed = {}
            for name in _find_refused_parameters(error, body, chosen):
                known_forms = _PARAMETERS[name].forms
                if later := known_forms[known_forms.index(forms[name]) + 1 :]:
                    changed[name] = later[0]
            if not changed:
                raise
            forms |= changed
        else:
            if forms != begun:
                breaker.record_forms(forms)
            return answer


def _choose_later_form(name: str, chosen: str, known: str) -> str:
    forms = _PARAMETERS[name].forms
    return max(chosen, known, key=lambda form: forms.index(form) if form in forms else -1)


def _find_refused_parameters(error: ProviderError, body: Body, names: Iterable[str]) -> set[str]:
    if error.status not in _REFUSES_A_PARAMETER or not error.words:
        return set()
    named = _match_parameters(_find_named_parameters(error.words), error.words, names)
    return named or (
        set() if _quotes_request(error.words, body) else _match_parameters(error.words, error.words, names)
    )


def _match_parameters(told: str, words: str, names: Iterable[str]) -> set[str]:
    parameters = {name: _PARAMETERS[name] for name in names}
    return {
        name
        for name, each in parameters.items()
        if re.search(each.named, told, re.IGNORECASE | re.DOTALL)
        and not re.search(each.unless, words, re.IGNORECASE | re.DOTALL)
    }


def _find_named_parameters(words: str) -> str:
    """Return the parameters named in a refusal: OpenAI's `param`, FastAPI's `loc`."""
    told: list[str] = []
    with suppress(ValueError, RecursionError):
        answer = json.loads(words)
        error = answer.get("error") if isinstance(answer, dict) else None
        if isinstance(error, dict) and isinstance(error.get("param"), str):
            told.append(error["param"])
        waiting = [answer]
        while waiting:  # at any depth: Mistral nests them in a message
            value = waiting.pop()
            if isinstance(value, dict) and isinstance(value.get("loc"), list):
                told.append(".".join(map(str, value["loc"])))
            elif isinstance(value, dict | list):
                waiting += value.values() if isinstance(value, dict) else value
    return " ".join(told)


def _quotes_request(words: str, body: Body) -> bool:
    """Whether a refusal quotes the request, so that parameter names in it mean nothing."""
    texts = [each["content"] for each in body.get("messages", ())]
    texts += body.get("input", ()) or ()
    letters = _keep_letters_and_digits(words)
    return any(
        len(text) >= _QUOTED_LETTERS and text in letters
        for text in (_keep_letters_and_digits(each)[:_QUOTED_LETTERS] for each in texts)
    )


def _keep_letters_and_digits(text: str) -> str:
    return re.sub(r"[\W_]+", "", text)
