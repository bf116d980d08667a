"""Generates the options of `memlog append TYPE` from the struct of each event type."""

from typing import Any

import click
import msgspec

from memlog.cli.options.field_options import option_for_field
from memlog.cli.options.param_types import CHAT, TEXT
from memlog.eventlog.events import Change, Event, type_name_of_event
from memlog.eventlog.fields import Field, list_fields

_ENVELOPE = Change.__struct_fields__
_WITHOUT_OPTION = ("target_ids", "extraction", "decisions", "steps", "entries", "times", "by")
"""Members without an option: `append redacted` takes one event, while `memlog forget` takes many; distilled
members belong to the line that closes their extraction; only memlog itself writes decisions, job steps,
context entries, and counts of accesses other than reads."""
_NEEDED = ("target_id",)

_CHAT_HELP = "The conversation, CHANNEL:CHAT_ID, split at the first colon."

_OPTIONS = {
    "format": "--of-format",
    "ids": "--daily-event",
    "message_ids": "--message-id",
    "event_ids": "--event-id",
}
"""Options whose names differ from their members' names: --id is the event's id, and --format is the output
format."""

_HELP = {
    "appended": "A JSON object with the ids of the events that it appends, by stream.",
    "category": "Its category, which decides how fast it fades.",
    "channel": "The channel that it came from.",
    "content": "The text; - reads it from stdin.",
    "derived": "A JSON object with the ids of events derived from those of the import, by stream.",
    "event_ids": "The id of an event that it is about, such as one with the content of a memory; repeatable.",
    "event_date": "The day, such as 2026-02-24; the day of --ts by default.",
    "exclude": "A glob pattern of files to leave out; repeatable.",
    "file": "Its path below the source's root, with / between names.",
    "filetype": "Its type, such as markdown.",
    "folder": "The working folder of the chat.",
    "format": "The format.",
    "from_message_id": "The first message that it covers.",
    "ids": "The id of a daily event; repeatable.",
    "importance": "Its importance, from 0 to 1.",
    "include": "A glob pattern of files to index; repeatable.",
    "job": "The job: daily or weekly.",
    "kept": "A JSON object with the ids of events that stay, by stream.",
    "key": "The key.",
    "kind": "Its kind.",
    "memory_id": "The memory's id; memory_saved derives it from chat and content by default.",
    "memory_ids": "The id of a memory; repeatable.",
    "message_id": "The message that it is about.",
    "message_ids": "The id of a message that was distilled; repeatable.",
    "met": "A JSON object with the ids of events that other sources had brought, by stream.",
    "meta": "A JSON object with more about it, such as the model's name.",
    "model": "The model of the new session.",
    "labels": "A label; repeatable.",
    "mtime": "When the file was last changed (RFC 3339).",
    "name": "The speaker's name; searches find it, too.",
    "parent_chat": "The chat that started it, as CHANNEL:CHAT_ID.",
    "path": "The path of what was imported.",
    "period": "The local day for which it was due.",
    "project": "Its project.",
    "provider": "The address of the provider.",
    "prompt": "The id of the prompt.",
    "rank": "Its rank in a list, from 1.",
    "rates": "A JSON object with a factor from 0 to 1 for each category.",
    "raw_tokens": "The length of the original, in tokens.",
    "reason": "The reason, for readers of the log.",
    "refused": "How many entries of the answer had another form.",
    "requests": "How many requests were sent.",
    "rest": "With --rank 1, the value of the next rank; repeatable. Together they are the whole list.",
    "role": "The role of the speaker.",
    "root": "The folder of the source.",
    "run": "The id of the import.",
    "salience": "Its salience, from 0 to 1; later decays start from it.",
    "section": "Whether it is about the user or the agent.",
    "sender_id": "The id of the sender.",
    "size": "The size of the file, in bytes.",
    "source": "Its source, such as manual.",
    "source_id": "The name of the source.",
    "source_message_id": "The message that states it.",
    "stable": "The hash of the block with the core memory.",
    "state": "Whether it is current, superseded by another version, or rewound by the user.",
    "stream": "The stream of the event to redact; required unless exactly one stream has it.",
    "summary": "What happened.",
    "tags": "A tag; repeatable.",
    "target_id": "The id of the event to redact.",
    "tokens": "A JSON object with the tokens of each part.",
    "tokens_in": "The tokens of the question.",
    "tokens_out": "The tokens of the answer.",
    "through_message_id": "The last distilled message.",
    "title": "A title; that of a memory is by default the first 80 characters of its content.",
    "to_message_id": "The last message that it covers.",
    "topic": "Its topic.",
    "topic_key": "The topic, such as favorite_colors.",
    "task": "What the model was to do.",
    "turn": "The hash of the block with everything except the core memory.",
    "value": "The value.",
    "why": "The error, without the words of the provider.",
    "version": "The SHA-256 of the file's bytes, in hex.",
}
"""The help of each option, whatever the event type."""


def options_for_event_type(kind: type[Event]) -> list[click.Parameter]:
    """Return the options for appending an event of `kind`: one per settable member, plus --id and --ts."""
    fields = {
        field.name: field for field in list_fields(kind) if field.name not in (*_ENVELOPE, *_WITHOUT_OPTION)
    }
    chat: list[click.Parameter] = []
    if fields.pop("chat_id", None):
        is_conversation = fields.pop("channel", None) is not None
        chat.append(click.Option(["--chat"], type=CHAT, required=is_conversation, help=_CHAT_HELP))
    return [
        *chat,
        *map(_make_option, fields.values()),
        click.Option(["--id", "id"], type=TEXT, help="The event's id; a retry with the same id is harmless."),
        click.Option(["--ts"], type=TEXT, help="When it happened (RFC 3339); now by default."),
    ]


def members_of_options(kind: type[Event], given: dict[str, Any]) -> dict[str, Any]:
    """Convert option values to the members of an event, without validating them."""
    members: dict[str, Any] = {"type": type_name_of_event(kind)}
    for name, value in given.items():
        if value is None or value == ():
            continue
        if name != "chat":
            members[name] = list(value) if isinstance(value, tuple) else value
        elif "channel" in kind.__struct_fields__:
            members["channel"], members["chat_id"] = value
        else:
            members["chat_id"] = ":".join(value)
    if members.get("rank") and "kind" in kind.__struct_fields__:
        members.setdefault("kind", "ranked")
    return members


def _make_option(field: Field) -> click.Option:
    is_needed = field.default is msgspec.NODEFAULT or field.name in _NEEDED
    # The event has its own defaults.
    request = msgspec.structs.replace(field, default=msgspec.NODEFAULT if is_needed else None)
    return option_for_field(request, _OPTIONS.get(field.name), help=_HELP[field.name])
