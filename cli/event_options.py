"""`memlog append TYPE`: the options of each event type, made from its struct."""

from typing import Any

import click
import msgspec

from memlog.cli.field_options import option_of
from memlog.cli.param_types import CHAT, TEXT
from memlog.eventlog.events import Change, Event, tag_of
from memlog.eventlog.struct_fields import Field, fields_of

_ENVELOPE = Change.__struct_fields__
_OF_FORGET = ("target_ids",)
"""Members without an option: `memlog forget` names many events, `append redacted` one."""
_NEEDED = ("target_id",)

_CHAT_HELP = "The conversation, CHANNEL:CHAT_ID, split at the first colon."

_OPTIONS = {"ids": "--daily-event"}
"""Options of another name than their member: --id is the event's own."""

_HELP = {
    "category": "What sort of thing it is: how fast it fades.",
    "channel": "Where it came from.",
    "content": "The text; - reads it from stdin.",
    "event_date": "The day, as 2026-02-24; that of --ts where not given.",
    "exclude": "A glob pattern of files to leave out; may be given several times.",
    "file": "Its path below the source's root, with /.",
    "filetype": "Such as markdown.",
    "from_message_id": "The first message that it is about.",
    "ids": "A daily event; may be given several times.",
    "importance": "From 0 to 1.",
    "include": "A glob pattern of files to index; may be given several times.",
    "key": "What it says.",
    "kind": "What kind it is.",
    "memory_id": "The memory's id; of a memory_saved derived from chat and content where not given.",
    "memory_ids": "A memory; may be given several times.",
    "meta": "A JSON object to keep with it, such as the model's name.",
    "model": "The model that the new session talks to.",
    "mtime": "When the file was changed (RFC 3339).",
    "name": "Of the speaker; it is searched, too.",
    "rank": "Its place in a ranked list, from 1.",
    "rates": "Factors from 0 to 1 by category, as a JSON object.",
    "raw_tokens": "How long what it sums up was.",
    "reason": "Why, for those who read the log.",
    "rest": "The value of the next rank, several times: with --rank 1 the whole list.",
    "role": "Whose turn it is.",
    "root": "The folder.",
    "salience": "From 0 to 1; later decays go on from there.",
    "section": "About the user, or about the agent.",
    "sender_id": "Who it was.",
    "size": "Of the file, in bytes.",
    "source": "Where it comes from.",
    "source_id": "The source's name.",
    "source_message_id": "The message that said so.",
    "stream": "Where the event to redact stands; needed where not exactly one stream has it.",
    "summary": "What happened.",
    "tags": "A tag; may be given several times.",
    "target_id": "The event to redact.",
    "through_message_id": "The last message that is distilled.",
    "title": "A title; without one, the content's first 80 characters.",
    "to_message_id": "The last message that it is about.",
    "topic": "What it is about.",
    "topic_key": "The subject, such as favorite_colors.",
    "value": "The value.",
    "version": "sha256 of the file's bytes, in hex.",
}
"""What an option of this name is for, whichever event has it."""


def options_of(kind: type[Event]) -> list[click.Parameter]:
    """The options of the command that appends one event of `kind`: one for each of its members."""
    fields = {field.name: field for field in fields_of(kind) if field.name not in (*_ENVELOPE, *_OF_FORGET)}
    chat: list[click.Parameter] = []
    if fields.pop("chat_id", None):
        is_conversation = fields.pop("channel", None) is not None
        chat.append(click.Option(["--chat"], type=CHAT, required=is_conversation, help=_CHAT_HELP))
    return [
        *chat,
        *map(_option, fields.values()),
        click.Option(["--id", "id"], type=TEXT, help="The event's id; a retry with the same id is harmless."),
        click.Option(["--ts"], type=TEXT, help="When it happened (RFC 3339); now where not given."),
    ]


def members_of_options(kind: type[Event], given: dict[str, Any]) -> dict[str, Any]:
    """The members of the event that options say; whether they make one is not checked."""
    members: dict[str, Any] = {"type": tag_of(kind)}
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


def _option(field: Field) -> click.Option:
    is_needed = field.default is msgspec.NODEFAULT or field.name in _NEEDED
    # The event has its defaults without the command.
    asked = msgspec.structs.replace(field, default=msgspec.NODEFAULT if is_needed else None)
    return option_of(asked, _OPTIONS.get(field.name), help=_HELP[field.name])
