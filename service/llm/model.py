"""Language models over HTTP: OpenAI's chat completions, which many serve, and Anthropic's Messages API.

They answer in JSON of a schema, as far as the server holds them to it.
"""

import math
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec

from memlog.eventlog.errors import ProviderError
from memlog.eventlog.secrets.outgoing import outgoing
from memlog.query.context.token_counters import tokens
from memlog.service.engine.http_client import LEFT_OUT, Breaker, send_in_known_forms
from memlog.service.engine.settings import LanguageModelProvider

_MOST = 2**53
"""Tokens that an event can hold, whatever a provider says."""

_FILTERED = ("content_filter", "refusal", "error")
"""Reasons for the end of an answer that is none."""


class Completion(msgspec.Struct, frozen=True):
    """What a language model answered, and the tokens of the question and of the answer.

    requests: how many it took.
    """

    text: str
    tokens_in: int = 0
    tokens_out: int = 0
    requests: int = 1

    def and_then(self, more: "Completion") -> "Completion":
        """Return a later answer, with what both took."""
        spent = (self.tokens_in + more.tokens_in, self.tokens_out + more.tokens_out)
        return Completion(more.text, *spent, self.requests + more.requests)


def tokens_of(answer: Any) -> tuple[int, int]:  # noqa: ANN401 - JSON
    """Return the tokens of a question and of its answer, whatever the answer is; 0 for what is not told."""
    usage = _member(answer, "usage")
    return (
        _count(_member(usage, "prompt_tokens"), _member(usage, "input_tokens")),
        _count(_member(usage, "completion_tokens"), _member(usage, "output_tokens")),
    )


def read_chat(answer: Any, url: str) -> Completion:  # noqa: ANN401 - JSON
    """Read a chat completion.

    Raises:
        ProviderError: it is none, or the model refused to answer.
    """
    choices = _member(answer, "choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = _member(choice, "message")
    if _member(choice, "finish_reason") in _FILTERED or _member(message, "refusal"):
        raise _unusable(url, "the model refused to answer")
    content = _member(message, "content")
    return _completion(answer, _member(choice, "text") if content is None else content, url)


def read_message(answer: Any, url: str) -> Completion:  # noqa: ANN401 - JSON
    """Read a message of Anthropic's.

    Raises:
        ProviderError: as `read_chat`.
    """
    if _member(answer, "stop_reason") in _FILTERED:
        raise _unusable(url, "the model refused to answer")
    return _completion(answer, _member(answer, "content"), url)


def _completion(answer: Any, content: Any, url: str) -> Completion:  # noqa: ANN401 - JSON
    text = _text(content)
    if not text.strip():
        raise _unusable(url, "the answer has no text")
    return Completion(text, *tokens_of(answer))


def _text(content: Any) -> str:  # noqa: ANN401 - JSON
    """Return a text, or its parts joined, without parts of other kinds such as a model's thoughts."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else [content]
    texts = (
        part if isinstance(part, str) else _member(part, "text")
        for part in parts
        if isinstance(part, str) or _member(part, "type") in ("text", "output_text", None)
    )
    return "".join(text for text in texts if isinstance(text, str))


def _member(value: Any, name: str) -> Any:  # noqa: ANN401 - JSON
    return value.get(name) if isinstance(value, dict) else None


def _count(*given: Any) -> int:  # noqa: ANN401 - JSON
    """Return the first number of tokens, which may be a fraction or a text; 0 without one."""
    for each in given:
        try:
            number = float(each)
        except (TypeError, ValueError, OverflowError):
            continue
        if math.isfinite(number):
            return min(max(math.ceil(number), 0), _MOST)
    return 0


def _unusable(url: str, why: str) -> ProviderError:
    error = ProviderError(f"{url}: {why}", hint="try another model, or a greater max_tokens")
    error.is_of_answer = True
    return error


_WAITS = (1.0, 4.0, 15.0)
"""Seconds before each retry after 429, a status from 502 on, or where it cannot be reached."""

_LONGEST_WAIT = 60.0

_OF_CONTENT = (400, 413, 422)
"""Statuses that refuse one request; another request may succeed."""


class LanguageModel:
    """Asks a provider. https://platform.openai.com/docs/api-reference/chat,
    https://docs.anthropic.com/en/api/messages

    is_patient: whether requests are sent even while it rests, as for a command that a person gave.
    """

    def __init__(self, provider: LanguageModelProvider, store: Path, *, is_patient: bool = False) -> None:
        self._provider, self._is_patient = provider, is_patient
        self._breaker = Breaker(store, "language_model", provider)

    @property
    def provider(self) -> str:
        """The address of the provider."""
        return self._provider.place

    @property
    def is_of_this_machine(self) -> bool:
        """Whether nothing that it is sent leaves this machine."""
        return self._provider.is_of_this_machine

    @property
    def failures(self) -> int:
        """How often it has failed in a row."""
        return self._breaker.record().failures

    @property
    def spent_today(self) -> int:
        """The tokens that were spent today, in UTC, as far as the cache knows."""
        return self._breaker.spent_today()

    @property
    def name(self) -> str:
        """The name of the model; that of the dialect where the server has one model alone."""
        return self._provider.name

    def complete(self, system: str, user: str, schema: dict[str, Any]) -> Completion:
        """Send a question to the model, and return its answer.

        schema: the JSON schema that the answer should have.

        Raises:
            ProviderError: it cannot be reached, refuses, is too slow, or rests. Where `is_of_answer` is set,
                it refuses this question or gives no completion: it does not rest, and may answer others.
        """
        self.check()
        waits = iter(_WAITS)
        while True:
            try:
                completion = self._send(system, user, schema)
            except ProviderError as error:
                error.is_of_answer = error.is_of_answer or error.status in _OF_CONTENT
                wait, requested = next(waits, None), error.retry_after or 0.0
                is_away = error.is_away and not error.is_cut
                is_worth_it = is_away or error.status == 429 or (error.status or 0) in _RETRIED
                if wait is None or not is_worth_it or requested > _LONGEST_WAIT:
                    self._breaker.failed(error, rests=not error.is_of_answer)
                    raise
                time.sleep(max(wait, requested))
            else:
                return completion

    def worked(self) -> None:
        """Note that an answer could be used."""
        self._breaker.worked()

    def check(self) -> None:
        """Raise ProviderError while it rests, and nobody waits for it."""
        if not self._is_patient:
            self._breaker.check()

    def complete_once(self, system: str, user: str, schema: dict[str, Any]) -> Completion:
        """Send one request although the model rests, and return the answer.

        Raises the errors of `complete`; a failure is not recorded.
        """
        return self._send(system, user, schema)

    def note(self, error: ProviderError) -> None:
        """Note a failure, after which it rests."""
        self._breaker.failed(error)

    def missed(self, count: int) -> None:
        """Count what failed without a request of its own."""
        self._breaker.missed(count)

    def failed(self, why: str, *, is_of_answer: bool = False) -> ProviderError:
        """Return the error of an answer that cannot be used.

        is_of_answer: whether the model may answer about something else, and so does not rest.
        """
        error = ProviderError(
            f"{self._provider.base_url}: {why}", hint="try another model, or a greater max_tokens"
        )
        error.is_of_answer = is_of_answer
        self._breaker.failed(error, rests=not is_of_answer)
        return error

    def _send(self, system: str, user: str, schema: dict[str, Any]) -> Completion:
        provider = self._provider
        url = (provider.base_url or "").rstrip("/")
        version = "" if urlsplit(url).path.strip("/") else "/v1"
        body: dict[str, Any] = {"max_tokens": provider.max_tokens}
        body |= {} if provider.model is None else {"model": provider.model}
        temperature = provider.temperature
        forms: dict[str, str] = {}
        if provider.type == "anthropic":
            body |= {"system": system, "messages": [{"role": "user", "content": user}]}
            body["output_config"] = {"format": {"type": "json_schema", "schema": schema}}
            is_held = provider.response_format == "json_schema"
            forms["output_config"] = "json_schema" if is_held else LEFT_OUT
            headers = {"key_header": "x-api-key", "headers": {"anthropic-version": "2023-06-01"}}
            endpoint = self._breaker.endpoint(f"{url}{version}/messages", **headers)
            read = read_message
        else:
            body["messages"] = [{"role": "system", "content": system}, {"role": "user", "content": user}]
            named = {"name": "answer", "strict": True, "schema": schema}
            body["response_format"] = {"type": "json_schema", "json_schema": named}
            temperature = 0 if temperature is None else temperature
            forms["max_tokens"] = provider.max_tokens_parameter
            forms |= {"response_format": provider.response_format, "system_role": provider.system_role}
            endpoint = self._breaker.endpoint(f"{url}{version}/chat/completions")
            read = read_chat
        if temperature not in (None, LEFT_OUT):
            body["temperature"] = temperature
            forms["temperature"] = "sent"
        answer = send_in_known_forms(
            self._breaker, body, forms, lambda sent: endpoint.ask(outgoing(sent), provider.timeout)
        )
        # Whatever it is, it was paid for. Some servers count none.
        spent = sum(tokens_of(answer)) or sum(
            tokens(text, "model") for text in (system, user, msgspec.json.encode(answer).decode())
        )
        self._breaker.spend(spent)
        return read(answer, url)


_RETRIED = (502, 503, 504, 529)
"""Statuses of a server that is overloaded, or starts; 529 is Anthropic's. With 500, or by hanging up, it
fails at what it was sent."""
