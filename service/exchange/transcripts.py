"""Shared parts of the coding-agent importers: lines, tools, and the events of a file."""

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple

from memlog.eventlog.codec.hashing import short_sha256
from memlog.eventlog.events import ChatDescribed, Message, MessageUpdated, SummaryWritten
from memlog.service.exchange.formats import ForeignData, Record, Skipped, Unreadable, describe_error

Line = dict[str, Any]

_BEFORE_ALL = "1970-01-01T00:00:00.000Z"
"""The time of a title before the first dated line, so that later titles win."""

_MAX_CALLS = 10_000
_HASH_LENGTH = 12
_SHARED = "-"


class Transcript:
    """Builds the events of a transcript file.

    channel: the channel of its chats. ts: the time of the last dated line.
    """

    def __init__(self, source: ForeignData, channel: str) -> None:
        self.source, self.channel = source, channel
        self.ts: str | None = None
        self._first: dict[str, str] = {}
        self._described: set[str] = set()
        self._titles: Counter[str] = Counter()
        self._title: dict[str, tuple[int, str]] = {}
        self._calls: dict[str, tuple[str, str]] = {}
        self._answer: object = None
        self._latest: dict[str, Message] = {}

    def id_of(self, name: str) -> str:
        """Return an event's id. name: unique in the channel."""
        return f"{self.channel}{self.source.suffix}/{self.source.clean_text(name)}"

    def message(self, name: str, chat: str, members: Line) -> Message:
        """Build a message, with keys masked. Raises TypeError if its content is not a text."""
        if not isinstance(members["content"], str):
            raise TypeError("the content is no text")
        place: Line = {
            "id": self.id_of(name),
            "ts": self.ts,
            "channel": self.channel,
            "chat_id": self._clean(chat),
        }
        made = Message(**place, **self._clean(members))
        self._first.setdefault(made.chat_id, str(made.id))
        return made

    def _clean(self, value: Any) -> Any:  # noqa: ANN401 - whatever a member holds
        if isinstance(value, dict):
            return {key: self._clean(each) for key, each in value.items()}
        if isinstance(value, list):
            return [*map(self._clean, value)]
        return self.source.clean_text(value) if isinstance(value, str) else value

    def summary(self, message: Message) -> SummaryWritten:
        """Turn a message into a summary of its chat since the last summary."""
        first = self._first.pop(message.chat_id, None)
        return SummaryWritten(
            id=message.id,
            ts=message.ts,
            channel=message.channel,
            chat_id=message.chat_id,
            content=message.content,
            from_message_id=first if first != message.id else None,
        )

    def forget_first(self, chat: str) -> None:
        """Let the next summary of a chat begin after the messages so far."""
        self._first.pop(chat, None)

    def describe(self, chat: str, **members: Any) -> Iterator[ChatDescribed]:  # noqa: ANN401 - of the event
        """Yield a chat's description on the first call for the chat."""
        if chat not in self._described and any(members.values()):
            self._described.add(chat)
            place: Line = {"id": self.id_of(f"{chat}/described"), "ts": self.ts, "channel": self.channel}
            yield ChatDescribed(**place, chat_id=self._clean(chat), **self._clean(members))

    def rename(self, chat: str, title: object, strength: int) -> Iterator[ChatDescribed]:
        """Yield the description that gives a chat a new title, unless it has a stronger title."""
        standing, known = self._title.get(chat, (0, ""))
        if isinstance(title, str) and title and strength >= standing and title != known:
            self._title[chat] = strength, title
            # Titles have no ids; a program only appends them.
            self._titles[chat] += 1
            name = self.id_of(f"{chat}/title/{self._titles[chat]}")
            clean = self.source.clean_text(title)
            ts = self.ts or _BEFORE_ALL
            place: Line = {"channel": self.channel, "chat_id": self._clean(chat)}
            yield ChatDescribed(id=name, ts=ts, **place, title=clean)

    def withdraw(self, message_id: str, chat: str, state: Literal["superseded", "rewound"]) -> MessageUpdated:
        """Build the change that takes a message out of its conversation."""
        name = f"{message_id}~{short_sha256(state.encode()).hexdigest()[:_HASH_LENGTH]}"
        place: Line = {"ts": self.ts, "channel": self.channel, "chat_id": chat}
        return MessageUpdated(id=name, **place, message_id=message_id, state=state)

    def supersede(self, answer: object, messages: list[Message]) -> Iterator[MessageUpdated]:
        """Yield a change that marks the shorter of two versions of an answer's part as superseded.

        Some programs rewrite an answer while it grows. answer: its id. messages: its next messages.
        """
        if answer is None or answer != self._answer:
            self._answer, self._latest = answer, {}
        for new in messages:
            part = str(new.meta)
            old = self._latest.get(part)
            shorter, longer = sorted((old or new, new), key=lambda each: len(each.content))
            self._latest[part] = longer
            if old is not None and longer.content.startswith(shorter.content):
                yield self.withdraw(str(shorter.id), shorter.chat_id, "superseded")
            else:
                self._latest[part] = new

    def remember_call(self, call_id: str, tool: str, agent: str | None = None) -> None:
        """Remember a tool call for its result. agent: the kind of the subagent that was called."""
        self._calls[call_id] = tool, agent or ""
        if len(self._calls) > _MAX_CALLS:
            del self._calls[next(iter(self._calls))]

    def tool_of(self, call_id: str) -> tuple[str | None, str]:
        """Return a call's tool and the kind of its subagent; (None, "") for an unknown call."""
        return self._calls.get(call_id, (None, ""))


def convert_lines(source: ForeignData, path: Path, convert: Callable[[Line], Record]) -> Iterator[Record]:
    """Yield a record for each line of a file; also an `Unreadable` if no line is of a known type."""
    is_known, is_unknown = False, False
    for line in source.read_json_lines(path):
        record = line
        if not isinstance(line, Skipped | Unreadable | dict):
            record = Unreadable(source.where, "not an object")
        elif isinstance(line, dict):
            try:
                record = convert(line)
            except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
                record = Unreadable(source.where, describe_error(error))
        is_understood = record != Skipped("unsupported")
        is_known, is_unknown = is_known or is_understood, is_unknown or not is_understood
        yield record
    source.count_as_done(path)
    if is_unknown and not is_known:
        yield Unreadable(source.display_name(path), "no line is of a known type")


class LineMark(NamedTuple):
    """A line's id and time, which identify it, and whether the line says that its file is a fork."""

    id: str
    at: str
    is_of_fork: bool


def sort_by_writer(
    source: ForeignData, files: list[Path], read_marks: Callable[[Path], Iterator[LineMark]]
) -> Iterator[Path]:
    """Yield the files; among files with the same first line, the file that wrote the line comes first.

    That is the file that is not a fork or, among several, the one that was continued first.
    read_marks: yields a mark for each line of a file.
    """
    groups: defaultdict[str, list[Path]] = defaultdict(list)
    for path in files:
        groups[next((mark.id for mark in read_marks(path)), path.stem)].append(path)
    for group in groups.values():
        began = _first_own_times(source, group, read_marks) if len(group) > 1 else {}
        yield from sorted(group, key=lambda path: began.get(path, "~"))


def _first_own_times(
    source: ForeignData, group: list[Path], read_marks: Callable[[Path], Iterator[LineMark]]
) -> dict[Path, str]:
    """Return, for each file, the time of the first line that only it has; the times of forks sort last."""
    holders = source.new_table()
    forks: set[Path] = set()
    for number, path in enumerate(group):
        for mark in read_marks(path):
            known = holders.get(mark.id)
            is_own = known is None or str(known).startswith(f"{number} ")
            holders[mark.id] = f"{number} {mark.at}" if is_own else _SHARED
            forks |= {path} if mark.is_of_fork else set()
    began: dict[Path, str] = {}
    for holder in holders.values():
        if holder != _SHARED:
            owner, _, at = str(holder).partition(" ")
            path = group[int(owner)]
            began[path] = min(at, began.get(path, at))
    return {path: f"{'~' * (path in forks)}{at}" for path, at in began.items()}


def call_members(tool: str, call_id: str, given: Line | str) -> Line:
    """Return the message members for a tool call: the tool's name and input."""
    content = f"{tool}: {given}"
    if isinstance(given, dict):
        values = (_join_words(value) for key, value in given.items() if key != "type")
        first = next((value for value in values if isinstance(value, str)), "")
        content = f"{tool}: {first}\n```json\n{json.dumps(given, ensure_ascii=False)}\n```"
    return {"role": "assistant", "content": content, "meta": {"tool": {"call_id": call_id, "name": tool}}}


def _join_words(value: object) -> object:
    """Join a command that is a list of words; return any other value unchanged."""
    if isinstance(value, list) and value and all(isinstance(word, str) for word in value):
        return " ".join(value)
    return value


def result_members(tool: str | None, call_id: str, text: str, *, is_error: bool) -> Line:
    """Return the message members for a tool's result."""
    meta = {"tool": {"call_id": call_id, "error": is_error}}
    return {"role": "tool", "name": tool, "content": text, "meta": meta}


def text_of_parts(content: str | list[Line] | None) -> str:
    """Return the text of content that may have parts; a part without text contributes its name or type."""
    if isinstance(content, str | None):
        return content or ""
    texts = (
        each.get("text", each.get("name", f"[{str(each.get('type')).removeprefix('input_')}]"))
        for each in content
    )
    return "\n".join(map(str, texts))


def parse_object(value: object) -> Line | None:
    """Return `value` if it is an object, or the object that it encodes as JSON text; otherwise None."""
    if isinstance(value, str) and value.startswith("{"):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return None
    return value if isinstance(value, dict) else None
