"""Language models over HTTP: OpenAI's chat completions, which many serve, and Anthropic's Messages API.

They answer in JSON that follows a schema, as far as the server enforces it.
"""

import math
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec

from memlog.eventlog.errors import ProviderError
from memlog.eventlog.secrets.outgoing import encode_outgoing
from memlog.eventlog.sections import LanguageModelProvider
from memlog.query.context.token_counters import count_text_tokens
from memlog.service.engine.http_client import (
    LEFT_OUT,
    Breaker,
    provider_error,
    send_in_known_forms,
    send_with_retries,
)

_MAX_TOKENS = 2**53
"""The largest token count that an event can hold."""

_FILTERED = ("content_filter", "refusal", "error")
"""Stop reasons that mean a refusal."""


class Completion(msgspec.Struct, frozen=True):
    """One or more answers of a language model, with the number of tokens and requests that they took."""

    text: str
    tokens_in: int = 0
    tokens_out: int = 0
    requests: int = 1


def read_token_counts(answer: Any) -> tuple[int, int]:  # noqa: ANN401 - JSON
    """Return the token counts of the question and the answer in a response; 0 for a missing count."""
    usage = _get_member(answer, "usage")
    return (
        _first_valid_count(_get_member(usage, "prompt_tokens"), _get_member(usage, "input_tokens")),
        _first_valid_count(_get_member(usage, "completion_tokens"), _get_member(usage, "output_tokens")),
    )


def read_chat_completion(answer: Any, url: str) -> Completion:  # noqa: ANN401 - JSON
    """Return the answer in a chat completion.

    Raises:
        ProviderError: the completion has no text, or the model refused to answer.
    """
    choices = _get_member(answer, "choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = _get_member(choice, "message")
    if _get_member(choice, "finish_reason") in _FILTERED or _get_member(message, "refusal"):
        raise _unusable_answer(url, "the model refused to answer")
    content = _get_member(message, "content")
    return _build_completion(answer, _get_member(choice, "text") if content is None else content, url)


def read_anthropic_message(answer: Any, url: str) -> Completion:  # noqa: ANN401 - JSON
    """Return the answer in an Anthropic message.

    Raises:
        ProviderError: see `read_chat_completion`.
    """
    if _get_member(answer, "stop_reason") in _FILTERED:
        raise _unusable_answer(url, "the model refused to answer")
    return _build_completion(answer, _get_member(answer, "content"), url)


def _build_completion(answer: Any, content: Any, url: str) -> Completion:  # noqa: ANN401 - JSON
    text = _join_text(content)
    if not text.strip():
        raise _unusable_answer(url, "the answer has no text")
    return Completion(text, *read_token_counts(answer))


def _join_text(content: Any) -> str:  # noqa: ANN401 - JSON
    """Return a content's text, or its text parts joined; other parts, such as reasoning, are dropped."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else [content]
    texts = (
        part if isinstance(part, str) else _get_member(part, "text")
        for part in parts
        if isinstance(part, str) or _get_member(part, "type") in ("text", "output_text", None)
    )
    return "".join(text for text in texts if isinstance(text, str))


def _get_member(value: Any, name: str) -> Any:  # noqa: ANN401 - JSON
    return value.get(name) if isinstance(value, dict) else None


def _first_valid_count(*given: Any) -> int:  # noqa: ANN401 - JSON
    """Return the first valid token count, which may be a fraction or a string; 0 if no count is valid."""
    for each in given:
        try:
            number = float(each)
        except (TypeError, ValueError, OverflowError):
            continue
        if math.isfinite(number):
            return min(max(math.ceil(number), 0), _MAX_TOKENS)
    return 0


def _unusable_answer(url: str, why: str) -> ProviderError:
    hint = "try another model, or a greater max_tokens"
    return provider_error(f"{url}: {why}", hint, is_of_answer=True)


_WAITS = (1.0, 4.0, 15.0)
"""Seconds before each retry after a status in `_RETRIED`, or a failed connection."""

_RETRIED = (429, 502, 503, 504, 529)
"""Statuses of a provider that limits requests, and of a server that is overloaded or starting; 529 is
Anthropic's. A 500 or a dropped connection is caused by the request itself."""

_CONTENT_STATUSES = (400, 413, 422)
"""Statuses that refuse one request; another request may succeed."""


class LanguageModel:
    """Sends questions to a provider. https://platform.openai.com/docs/api-reference/chat,
    https://docs.anthropic.com/en/api/messages

    is_patient: whether to send requests even while the provider rests, as for a person's command.
    breaker: the provider's circuit breaker.
    """

    def __init__(self, provider: LanguageModelProvider, store: Path, *, is_patient: bool = False) -> None:
        self.provider, self._is_patient = provider, is_patient
        self.breaker = Breaker(store, "language_model", provider)

    @property
    def is_of_this_machine(self) -> bool:
        """Whether data sent to the provider stays on this machine."""
        return self.provider.is_of_this_machine

    def request_answer(self, system: str, user: str, schema: dict[str, Any]) -> Completion:
        """Send a question to the model, with retries, and return its answer.

        schema: the JSON schema that the answer should have.

        Raises:
            ProviderError: the provider is unreachable, refuses, is too slow, or rests. With `is_of_answer`,
                only this question failed: the provider does not rest, and may answer others.
        """
        self.check_available()
        try:
            return send_with_retries(
                partial(self.request_answer_once, system, user, schema),
                _WAITS,
                lambda error: (error.is_away and not error.is_cut) or error.status in _RETRIED,
            )
        except ProviderError as error:
            error.is_of_answer = error.is_of_answer or error.status in _CONTENT_STATUSES
            self.breaker.record_failure(error, rests=not error.is_of_answer)
            raise

    def check_available(self) -> None:
        """Raise ProviderError while the provider rests, unless the caller is patient."""
        if not self._is_patient:
            self.breaker.check_available()

    def record_failure(self, why: str, *, is_of_answer: bool = False) -> ProviderError:
        """Record an unusable answer, and return its error.

        is_of_answer: whether the model may answer other questions, and so does not rest.
        """
        error = _unusable_answer(str(self.provider.base_url), why)
        error.is_of_answer = is_of_answer
        self.breaker.record_failure(error, rests=not is_of_answer)
        return error

    def request_answer_once(self, system: str, user: str, schema: dict[str, Any]) -> Completion:
        """Send one request even while the provider rests, and return the answer.

        Raises the errors of `request_answer`; a failure is not recorded.
        """
        provider = self.provider
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
            endpoint = self.breaker.make_endpoint(f"{url}{version}/messages", **headers)
            read = read_anthropic_message
        else:
            body["messages"] = [{"role": "system", "content": system}, {"role": "user", "content": user}]
            named = {"name": "answer", "strict": True, "schema": schema}
            body["response_format"] = {"type": "json_schema", "json_schema": named}
            temperature = 0 if temperature is None else temperature
            forms["max_tokens"] = provider.max_tokens_parameter
            forms |= {"response_format": provider.response_format, "system_role": provider.system_role}
            endpoint = self.breaker.make_endpoint(f"{url}{version}/chat/completions")
            read = read_chat_completion
        if temperature not in (None, LEFT_OUT):
            body["temperature"] = temperature
            forms["temperature"] = "sent"
        answer = send_in_known_forms(
            self.breaker,
            body,
            forms,
            lambda sent: endpoint.post_and_decode_json(encode_outgoing(sent), provider.timeout),
        )
        # Even an unusable answer costs tokens. Some servers report no counts.
        spent = sum(read_token_counts(answer)) or sum(
            count_text_tokens(text, "model") for text in (system, user, msgspec.json.encode(answer).decode())
        )
        self.breaker.record_tokens(spent)
        return read(answer, url)
