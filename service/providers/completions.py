"""Reads what language models answer: chat completions of OpenAI's form, and messages of Anthropic's."""

import math
from typing import Any

import msgspec

from memlog.eventlog.errors import ProviderError

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
    """A text, or the parts of one; parts of other kinds, such as what a model thinks, are none of it."""
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
    """The first number of tokens, which may be a fraction or a text; 0 without one."""
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
