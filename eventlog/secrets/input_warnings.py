"""Warns about events that are valid, but probably not what the caller meant."""

from collections.abc import Iterator, Mapping

import msgspec

from memlog.eventlog.events import Event, type_name_of_event
from memlog.eventlog.positions import AppendWarning

_COMMON_MEMBERS = ("type", "at", "crc", "client")
_ALIASES = {
    "timestamp": ("ts",),
    "time": ("ts",),
    "datetime": ("ts",),
    "created_at": ("ts",),
    "date": ("event_date", "ts"),
    "text": ("content", "summary", "value"),
    "body": ("content",),
    "message": ("content",),
    "author": ("name",),
    "sender": ("name", "sender_id"),
    "speaker": ("name",),
    "user": ("name",),
    "chat": ("chat_id",),
    "topic": ("topic_key",),
}
"""Member names of other programs that are spelled too differently to count as typos."""

_LONGEST_TYPO = 40
"""The most characters in a name to compare: comparing is quadratic, and memlog's longest member has 18."""

_MOST_WARNINGS = 8
_MOST_SHOWN = 60


def find_input_warnings(event: Event, members: Mapping[str, msgspec.Raw]) -> tuple[AppendWarning, ...]:
    """Return warnings about a valid event with these members."""
    known = (*_COMMON_MEMBERS, *event.__struct_fields__)
    of_chat = _check_chat_form(event, members)
    if of_chat:
        known = (*known, "channel")
    unknown = [name for name in members if name not in known]
    return (*_warn_of_unknown_members(event, unknown), *of_chat)


def warn_of_keys(event_id: str, members: Mapping[str, msgspec.Raw]) -> Iterator[AppendWarning]:
    """Yield a warning for each member that seems to hold a key, or that is masked when sent to providers."""
    # Imported here: only an append needs the shapes of keys.
    from memlog.eventlog.secrets.detection import (
        PAIR_NAMES,
        PAIR_VALUES,
        is_secret_name,
        list_key_kinds,
        list_key_kinds_in_line,
        may_name_secret,
    )

    text = msgspec.json.encode(members).decode()
    names = [
        name
        for member in (*PAIR_NAMES, "topic", "tags")
        if member in members
        for name in _decode_texts(members[member])
        if is_secret_name(name)
    ]
    if not names and not may_name_secret(text) and not list_key_kinds(text):
        return
    from memlog.eventlog.secrets.outgoing import list_kinds_of_keys

    pair = {name: members[name] for name in PAIR_NAMES if name in members}
    for name, raw in members.items():
        is_value = name in PAIR_VALUES
        # With its name: {"key": "wifi_password", "value": …}.
        kinds = list_key_kinds_in_line(msgspec.json.encode(pair | {name: raw} if is_value else {name: raw}))
        told = (list_kinds_of_keys(each, names if is_value else ()) for each in _decode_texts(raw))
        kinds = kinds or sorted({kind for of_text in told for kind in of_text})
        if kinds:
            message = (
                f"{name} of event {event_id} contains what looks like a key ({', '.join(kinds)}): the redact"
                " setting masks most keys; to erase this one, forget the event and scrub the store"
            )
            yield AppendWarning("key", name, message)


def _decode_texts(raw: msgspec.Raw) -> Iterator[str]:
    from memlog.eventlog.secrets.detection import list_texts_within

    yield from list_texts_within([msgspec.json.decode(raw)])


def _warn_of_unknown_members(event: Event, unknown: list[str]) -> Iterator[AppendWarning]:
    for name in unknown[:_MOST_WARNINGS]:
        meant = _find_intended_member(event, name)
        advice = "memlog keeps it and ignores it" if meant is None else f"did you mean {meant!r}?"
        message = f"{_quote_truncated(name)} is not a member of {type_name_of_event(event)}: {advice}"
        yield AppendWarning("unknown_member", _truncate(name), message)
    if len(unknown) > _MOST_WARNINGS:
        more = f"{len(unknown) - _MOST_WARNINGS} more names are not members of {type_name_of_event(event)}"
        yield AppendWarning("unknown_member", "…", more)


def _find_intended_member(event: Event, name: str) -> str | None:
    """Return the member that `name` was probably meant to be, or None."""
    # Imported here: few events have unknown members.
    from difflib import get_close_matches

    members = [member for member in event.__struct_fields__ if member not in ("at", "wins", "highest_wins")]
    alias = next((member for member in _ALIASES.get(name.lower(), ()) if member in members), None)
    if alias is not None or len(name) > _LONGEST_TYPO:
        return alias
    return next(iter(get_close_matches(name.lower(), members, n=1)), None)


def _check_chat_form(event: Event, members: Mapping[str, msgspec.Raw]) -> tuple[AppendWarning, ...]:
    """Return a warning if `chat_id` lacks a channel, or repeats the channel that the event has separately."""
    channel, chat_id = getattr(event, "channel", None), getattr(event, "chat_id", None)
    if chat_id is None:
        return ()
    if channel is None and ":" not in chat_id:
        given = msgspec.json.decode(members["channel"]) if "channel" in members else None
        right = f"{given if isinstance(given, str) else 'telegram'}:{chat_id}"
        message = (
            f"chat_id {_quote_truncated(chat_id)} has no channel, so no search by chat finds it: use"
            f" <channel>:<chat_id>, for example {_quote_truncated(right)}"
        )
    elif channel is not None and chat_id.startswith(f"{channel}:"):
        given, named = _quote_truncated(chat_id), _quote_truncated(channel)
        meant = _quote_truncated(chat_id.removeprefix(f"{channel}:"))
        message = f"chat_id {given} repeats the channel {named}; did you mean {meant}?"
    else:
        return ()
    return (AppendWarning("chat_form", "chat_id", message),)


def _quote_truncated(text: str) -> str:
    return repr(_truncate(text))


def _truncate(text: str) -> str:
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…"
