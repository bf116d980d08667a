"""Language models over HTTP: OpenAI's chat completions, which many serve, and Anthropic's Messages API.

They answer in JSON of a schema, as far as the server holds them to it.
"""

import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec

from memlog.eventlog.errors import ProviderError
from memlog.eventlog.outgoing import outgoing
from memlog.service.providers.breaker import Breaker
from memlog.service.providers.settings import LanguageModelProvider

_WAITS = (1.0, 4.0, 15.0)
"""Seconds before it is asked again after 429, a status from 500 on, or no answer."""

_LONGEST_WAIT = 60.0

_OF_CONTENT = (400, 413, 422)
"""Statuses that refuse what is asked, and may answer to something else."""


class Completion(msgspec.Struct, frozen=True):
    """What a language model answered, and the tokens of the question and of the answer."""

    text: str
    tokens_in: int = 0
    tokens_out: int = 0


class _Reply(msgspec.Struct):
    content: str | None = None


class _Choice(msgspec.Struct):
    message: _Reply


class _ChatUsage(msgspec.Struct):
    prompt_tokens: int = 0
    completion_tokens: int = 0


class _ChatAnswer(msgspec.Struct):
    choices: list[_Choice]
    usage: _ChatUsage | None = None


class _TextBlock(msgspec.Struct):
    type: str
    text: str = ""


class _MessageUsage(msgspec.Struct):
    input_tokens: int = 0
    output_tokens: int = 0


class _MessageAnswer(msgspec.Struct):
    content: list[_TextBlock]
    usage: _MessageUsage | None = None


class LanguageModel:
    """Asks a provider. https://platform.openai.com/docs/api-reference/chat,
    https://docs.anthropic.com/en/api/messages

    is_patient: whether it is asked although it rests, as a person wants who gives a command.
    """

    def __init__(self, provider: LanguageModelProvider, store: Path, *, is_patient: bool = False) -> None:
        self._provider, self._is_patient = provider, is_patient
        self._breaker = Breaker(store, "language_model", provider)

    @property
    def provider(self) -> str:
        """The address of the provider."""
        return self._provider.place

    @property
    def failures(self) -> int:
        """How often it has failed in a row."""
        return self._breaker.record().failures

    @property
    def name(self) -> str:
        """The name of the model; that of the dialect where the server has one model alone."""
        return self._provider.name

    def complete(self, system: str, user: str, schema: dict[str, Any]) -> Completion:
        """What the model answers. schema: the JSON schema that the answer should have.

        Raises:
            ProviderError: it cannot be reached, refuses, is too slow, or rests.
        """
        self.check()
        waits = iter(_WAITS)
        while True:
            try:
                completion = self._asked(system, user, schema)
            except ProviderError as error:
                error.is_of_answer = error.is_of_answer or error.status in _OF_CONTENT
                wait, asked_for = next(waits, None), error.retry_after or 0.0
                is_worth_it = error.is_away or error.status == 429 or (error.status or 0) in _RETRIED
                if wait is None or not is_worth_it or asked_for > _LONGEST_WAIT:
                    self._breaker.failed(error, rests=not error.is_of_answer)
                    raise
                time.sleep(max(wait, asked_for))
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
        """What the model answers to one request, although it rests. Raises as `complete`; nobody notes it."""
        return self._asked(system, user, schema)

    def note(self, error: ProviderError) -> None:
        """Note a failure, after which it rests."""
        self._breaker.failed(error)

    def failed(self, why: str, *, is_of_answer: bool = False) -> ProviderError:
        """The error of an answer that cannot be used.

        is_of_answer: whether the model may answer about something else, and so does not rest.
        """
        error = ProviderError(
            f"{self._provider.base_url}: {why}", hint="try another model, or a greater max_tokens"
        )
        error.is_of_answer = is_of_answer
        self._breaker.failed(error, rests=not is_of_answer)
        return error

    def _asked(self, system: str, user: str, schema: dict[str, Any]) -> Completion:
        provider = self._provider
        url = (provider.base_url or "").rstrip("/")
        has_path = bool(urlsplit(url).path.strip("/"))
        body: dict[str, Any] = {"max_tokens": provider.max_tokens}
        if provider.model is not None:
            body["model"] = provider.model
        if provider.type == "anthropic":
            body |= {"system": system, "messages": [{"role": "user", "content": user}]}
            body["output_config"] = {"format": {"type": "json_schema", "schema": schema}}
            endpoint = self._breaker.endpoint(
                f"{url}/messages" if has_path else f"{url}/v1/messages",
                key_header="x-api-key",
                headers={"anthropic-version": "2023-06-01"},
            )
            said = endpoint.post(outgoing(body), _MessageAnswer, provider.timeout)
            text = "".join(block.text for block in said.content if block.type == "text")
            used = said.usage or _MessageUsage()
            return Completion(text, _count(used.input_tokens), _count(used.output_tokens))
        body["messages"] = [{"role": "system", "content": system}, {"role": "user", "content": user}]
        named = {"name": "answer", "strict": True, "schema": schema}
        body |= {"temperature": 0, "response_format": {"type": "json_schema", "json_schema": named}}
        path = "/chat/completions" if has_path else "/v1/chat/completions"
        answer = self._breaker.endpoint(url + path).post(outgoing(body), _ChatAnswer, provider.timeout)
        if not answer.choices:
            raise ProviderError(f"{url}: the answer has no choice")
        usage = answer.usage or _ChatUsage()
        text = answer.choices[0].message.content or ""
        return Completion(text, _count(usage.prompt_tokens), _count(usage.completion_tokens))


def _count(given: int) -> int:
    """Tokens as an event can hold them, whatever a provider says."""
    return min(max(given, 0), 2**53)


_RETRIED = (500, 502, 503, 504, 529)
"""Statuses of a server that is overloaded, or starts; 529 is Anthropic's."""
