"""Conversations in training and evaluation files: OpenAI API messages, and ShareGPT."""

import json
from collections.abc import Iterator
from typing import Any

from memlog.eventlog.fields import Role
from memlog.service.exchange.maps import ForeignMessage, MessagePart

_FORMS = {"messages": ("openai", "role", "content"), "conversations": ("sharegpt", "from", "value")}
"""For each key that may hold a conversation's messages: the channel, and a message's author and text keys."""

_IDS = ("id", "conversation_id", "chat_id")
"""The keys that may hold a conversation's id."""

_AUTHORS: dict[Role, str] = {
    "user": "user human",
    "assistant": "assistant gpt function_call",
    "tool": "tool function observation",
    "system": "system developer",
}
_ROLES = {author: role for role, authors in _AUTHORS.items() for author in authors.split()}
_ATTACHMENTS = {"image_url": "image", "input_image": "image", "input_audio": "audio", "file": "file"}


class Dialogue:
    """A conversation. Raises ValueError if the value has neither form, or both.

    channel: the name of its form. messages: its messages, as decoded.
    identity: identifies it: its id or, without one, its messages up to the first answer, since many
        conversations begin alike.
    """

    def __init__(self, value: object) -> None:
        fitting = [
            key for key in _FORMS if isinstance(value, dict) and _is_list(value.get(key), _FORMS[key][1])
        ]
        if not isinstance(value, dict) or len(fitting) != 1:
            why = " and ".join(fitting) or " nor ".join(
                f"{key} (each with {_FORMS[key][1]})" for key in _FORMS
            )
            raise ValueError(f"no built-in map fits: it has {'both' if fitting else 'neither'} {why}")
        self.channel, self._author, self._text = _FORMS[fitting[0]]
        self.messages: list[Any] = value[fitting[0]]
        own = next((value[key] for key in _IDS if isinstance(value.get(key), str | int)), None)
        self.identity = json.dumps(own if own is not None else [*self._beginning()], sort_keys=True)
        self._tools: dict[str, str] = {}

    def _beginning(self) -> Iterator[list[Any]]:
        for each in self.messages:
            role = _ROLES.get(str(each.get(self._author)), "system") if isinstance(each, dict) else "system"
            if role != "system":
                yield [each[self._author], each.get(self._text)]
            if role == "assistant":
                return

    def convert(self, message: dict[str, Any], chat_id: str) -> ForeignMessage:
        """Convert a message. Raises ValueError if its author is unknown."""
        author, content = str(message.get(self._author)), message.get(self._text)
        if author not in _ROLES:
            raise ValueError(f"{self._author}: {author!r} is none of {', '.join(_ROLES)}")
        role, called = _ROLES[author], message.get("function_call")
        calls = message.get("tool_calls") or ([] if called is None else [{"function": called}])
        told = (
            content
            if isinstance(content, str) and not calls
            else json.dumps([content, calls], sort_keys=True)
        )
        text, meta = _text_of(message.get("refusal") if content is None else content)
        name, call = message.get("name"), message.get("tool_call_id")
        if role == "tool":
            name = name or self._tools.get(str(call))
            meta |= {"tool": {"call_id": call}} if call else {}
        parts = [MessagePart(0, text, meta)] if text.strip() else []
        parts += [self._convert_call(number, each) for number, each in enumerate(calls, 1)]
        return ForeignMessage(self.channel, chat_id, role, told, parts, name)

    def _convert_call(self, number: int, call: dict[str, Any]) -> MessagePart:
        made = call.get("function") or call["custom"]
        tool, given = made["name"], made.get("arguments", made.get("input"))
        try:
            arguments = json.loads(given) if isinstance(given, str) else given
        except (ValueError, RecursionError):
            arguments = given
        texts = arguments.values() if isinstance(arguments, dict) else [arguments]
        first = next((each for each in texts if isinstance(each, str)), "")
        content = f"{tool}: {first}\n```json\n{json.dumps(arguments, ensure_ascii=False)}\n```"
        known = {"call_id": call["id"]} if call.get("id") else {}
        self._tools.update(dict.fromkeys(known.values(), tool))
        return MessagePart(number, content, {"tool": {**known, "name": tool}})


def _is_list(messages: object, author: str) -> bool:
    """Whether a value is a list of messages, possibly empty."""
    return isinstance(messages, list) and all(
        isinstance(each, dict) and author in each for each in messages[:1]
    )


def split_document(document: object) -> Iterator[Any]:
    """Yield a document's conversations: itself, the items of a list, or one made from a list of messages."""
    if isinstance(document, list) and document and _is_list(document, "role"):
        yield {"messages": document}
    else:
        yield from document if isinstance(document, list) else [document]


def _text_of(content: Any) -> tuple[str, dict[str, Any]]:  # noqa: ANN401 - text, parts, or null
    """Return the text of a message's content, and meta that lists its attachments."""
    if content is None or isinstance(content, str):
        return content or "", {}
    texts, others = [], []
    for part in content:
        text = part if isinstance(part, str) else part.get("text", part.get("refusal"))
        if isinstance(text, str):
            texts.append(text)
        else:
            others.append(_ATTACHMENTS.get(part["type"], part["type"]))
    named = "\n".join(f"[{kind}]" for kind in others)
    return "\n\n".join(texts) or named, {"attachments": [{"type": kind} for kind in others]} if others else {}
