"""Field types that the requests of several groups share, and their conversions."""

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import msgspec

from memlog.eventlog.categories import CATEGORIES, find_known_category
from memlog.eventlog.errors import BadInput, format_value_for_message
from memlog.eventlog.events import Change
from memlog.eventlog.fields import Chat, ChatName, Local, Reads, to_path
from memlog.eventlog.fields import Field as Field
from memlog.eventlog.fields import list_fields as list_fields
from memlog.query.request import Request as Request
from memlog.query.request import fields_from_texts as fields_from_texts
from memlog.query.request import json_schema_of_request as json_schema_of_request
from memlog.query.request import parse_time_in_words as parse_time_in_words
from memlog.query.request import read_description_of_request as read_description_of_request
from memlog.query.request import to_log_time

if TYPE_CHECKING:
    from memlog.projector.catchup import Progress
else:  # importing it would take longer than a command that only shows its help
    Progress = Any

E = TypeVar("E", bound=Change)


_MEMBERS = {"chat": "chat_id", "date": "event_date", "event_id": "id"}
"""Event members, keyed by operation parameter where the names differ."""


def format_chat(chat: ChatName) -> str:
    """Return a chat as memories and facts name it; a string is returned unchanged.

    Raises:
        BadInput: `chat` is neither a string nor (channel, chat_id).
    """
    return chat if isinstance(chat, str) else str(Chat.of(chat))


def _format_time(time: str | datetime) -> str:
    return time if isinstance(time, str) else to_log_time(time)


ScopeField = Annotated[ChatName, Reads(format_chat, "chat"), msgspec.Meta(title="CHANNEL:CHAT_ID")]
"""A chat in any form; the field holds a string."""

Scope = Annotated[ScopeField | None, "The conversation; by default the store's own scope."]
"""The parameter of an operation that is about one chat."""

OnlyChat = Annotated[ScopeField | None, "Only this conversation."]
"""The parameter of an operation that is about all chats, or about one."""

EventId = Annotated[str, "The event's id; a retry with the same id is harmless."]

EventTime = Annotated[str | datetime, Reads(_format_time), "When it happened (RFC 3339); by default now."]
"""The time of an event; the log checks times given as text."""

CategoryField = Annotated[str, Reads(find_known_category, "category", choices=tuple(CATEGORIES))]
"""A category that memlog knows; `decision` is read as `decisions`."""

DryRun = Annotated[bool, "Change nothing; only report what would be done."]

PRUNED = ("temp", "debug")
"""The categories that are pruned by default."""


def check_decay_rates(given: Mapping[str, float]) -> Mapping[str, float]:
    """Return the given decay factors, keyed by category, if they are a mapping.

    Raises:
        BadInput: `given` is not a mapping.
    """
    if not isinstance(given, Mapping):
        hint = 'use rates by category, for example {"context": 0.9}'
        raise BadInput(f"rates must be a mapping, not {format_value_for_message(given)}", hint=hint)
    return given


def check_categories(given: Iterable[str]) -> list[str]:
    """Return the names of categories in their stored form.

    Raises:
        BadInput: `given` is a string or not a collection, or memlog does not know one of the categories.
    """
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise BadInput(
            f"categories must be a list, not {format_value_for_message(given)}", hint="pass a list"
        )
    return [find_known_category(each) for each in given]


def _check_paths(given: Iterable[str | Path]) -> tuple[Path, ...]:
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise BadInput(f"not a list of paths: {format_value_for_message(given)}", hint="pass a list of paths")
    return tuple(map(to_path, given))


Paths = Annotated[Iterable[str | Path], Reads(_check_paths, "path", wire=list[str])]
"""Paths in any form; the field holds a tuple."""


def _check_globs(given: Iterable[str]) -> tuple[str, ...]:
    globs = () if isinstance(given, str) or not isinstance(given, Iterable) else tuple(given)
    if (not globs and given) or not all(isinstance(each, str) for each in globs):
        raise BadInput(
            f"not a list of patterns: {format_value_for_message(given)}", hint="pass a list of strings"
        )
    return globs


Globs = Annotated[Iterable[str], Reads(_check_globs, wire=list[str]), msgspec.Meta(title="GLOB")]


Retry = Annotated[bool, "Ask again about messages that were set aside today."]

ProgressField = Annotated[Progress | None, Local(), "Called repeatedly with the progress of the work."]


def check_chat_unless_found(chat: ChatName | None, found: Collection[object]) -> None:
    """Raise BadInput if nothing was found because `chat` does not have the form of a chat."""
    if chat is not None and not found:
        Chat.of(chat)


def build_event(kind: type[E], /, **fields: Any) -> E:  # noqa: ANN401
    """Build an event from the arguments of an operation, leaving out default values."""
    members = {_MEMBERS.get(name, name): value for name, value in fields.items()}
    defaults = {field.name: field.default for field in msgspec.structs.fields(kind)}
    return kind(
        **{name: value for name, value in members.items() if name in defaults and value != defaults[name]}
    )
