"""Prints a context in one of three forms, piece by piece, so that its size is known in advance.

text: a line per entry, between the two lines of `fence`. json: an object per entry, for programs. messages:
as a language model takes them: all but the window as text in a system message, then the window and the
current message.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import msgspec

from memlog.query.context.entries import ContextEntry
from memlog.query.context.fence import FIRST_LINE, LAST_LINE, escaped, marked_json, shown_json
from memlog.query.context.request import Form
from memlog.query.speakers import speaker

_ROLES = ("user", "assistant")
"""Speakers of a conversation. Earlier messages of tools and of the system are data, not instructions."""

_JSON_MEMBERS = (
    *("title", "category", "content", "relevance_score", "importance", "chat", "role", "name", "ts"),
    "position",
)


class Printer(Protocol):
    """Prints a context in one form: text, JSON or messages."""

    def frame(self) -> str:
        """The text around the entries."""

    def piece(self, entry: ContextEntry) -> str:
        """The text that an entry adds."""

    def cites(self, entry: ContextEntry) -> bool:  # noqa: ARG002 - of one form
        """Whether the citation of an entry is printed; entries with one come first."""
        return True

    def printed(self, entries: Sequence[ContextEntry]) -> str:
        """The whole text, ending with a newline; "" if there is nothing to print."""


def printer_of(form: Form, *, text: str, silent: dict[str, str], synced: bool, in_chat: bool) -> Printer:
    """The printer of a form.

    text: the current message. silent, synced: as in a search. in_chat: entries are of one chat or of none, so
    they do not name their chat.
    """
    if form == "json":
        return _JsonPrinter(silent, synced)
    return _TextPrinter(in_chat) if form == "text" else _MessagesPrinter(text, in_chat)


class _TextPrinter(Printer):
    def __init__(self, in_chat: bool) -> None:
        self._in_chat = in_chat

    def frame(self) -> str:
        return f"{FIRST_LINE}\n{LAST_LINE}\n"

    def piece(self, entry: ContextEntry) -> str:
        return f"{line_of(entry, in_chat=self._in_chat)}\n"

    def printed(self, entries: Sequence[ContextEntry]) -> str:
        if not entries:
            return ""
        return f"{FIRST_LINE}\n{''.join(map(self.piece, entries))}{LAST_LINE}\n"


class _JsonPrinter(Printer):
    def __init__(self, silent: dict[str, str], synced: bool) -> None:
        self._rest = marked_json(f'"silent":{as_json(silent)},"synced":{as_json(synced)}')

    def frame(self) -> str:
        return self._around("")

    def piece(self, entry: ContextEntry) -> str:
        return f"{_object(entry)},"

    def printed(self, entries: Sequence[ContextEntry]) -> str:
        return self._around(",".join(map(_object, entries)))

    def _around(self, entries: str) -> str:
        return f'{{"entries":[{entries}],{self._rest}}}\n'


class _MessagesPrinter(Printer):
    def __init__(self, text: str, in_chat: bool) -> None:
        self._in_chat = in_chat
        self._current = as_json({"role": "user", "content": text})

    def frame(self) -> str:
        return self._around([self._system([])])

    def piece(self, entry: ContextEntry) -> str:
        return self._line(entry) if self.cites(entry) else f"{_turn(entry)},"

    def cites(self, entry: ContextEntry) -> bool:
        return entry.part != "window"

    def printed(self, entries: Sequence[ContextEntry]) -> str:
        cited = [entry for entry in entries if self.cites(entry)]
        turns = [_turn(entry) for entry in entries if not self.cites(entry)]
        return self._around([*([self._system(cited)] if cited else []), *turns])

    def _around(self, messages: Iterable[str]) -> str:
        return f'{{"messages":[{",".join([*messages, self._current])}]}}\n'

    def _system(self, entries: Iterable[ContextEntry]) -> str:
        lines = "".join(map(self._line, entries))
        first, last = as_json(FIRST_LINE)[1:-1], as_json(f"\n{LAST_LINE}")[1:-1]
        return f'{{"role":"system","content":"{first}{lines}{last}"}}'

    def _line(self, entry: ContextEntry) -> str:
        return as_json(f"\n{line_of(entry, in_chat=self._in_chat)}")[1:-1]


def line_of(entry: ContextEntry, *, in_chat: bool) -> str:
    """An entry as one line of the text: `- [PREFERENCE] … (importance: 0.7) [M1]`."""
    chat = f" ({entry.chat})" if entry.chat and not in_chat else ""
    copies = f" ({entry.copies:,} copies)" if entry.copies > 1 else ""
    weight = f" (importance: {round(entry.importance, 2):g})" if entry.importance is not None else ""
    return f"- [{entry.label}] {escaped(_statement(entry) + chat)}{copies}{weight} [{entry.citation}]"


def as_json(value: Any) -> str:  # noqa: ANN401 - whatever msgspec can encode
    r"""`value` as JSON, with invisible characters as `\u202e`, which a program reads as the same."""
    return shown_json(msgspec.json.encode(value).decode())


def _statement(entry: ContextEntry) -> str:
    """The content of an entry, with its time and speaker, or its title."""
    minute = (entry.ts or "")[:16].replace("T", " ")
    if entry.part in ("passage", "window"):
        return f"{minute} {speaker(entry.role, entry.name)}: {entry.content}"
    if entry.part == "summary" or (entry.part == "memory" and entry.label == "EVENT"):
        return f"{minute[:10]}: {entry.content}"
    # The title of a memory without one is the beginning of its content.
    has_title = entry.title and not (entry.is_memory and entry.content.startswith(entry.title))
    return f"{entry.title}: {entry.content}" if has_title else entry.content


def _object(entry: ContextEntry) -> str:
    """An entry for programs."""
    names = {"citation": entry.citation, "part": entry.part, "label": entry.label}
    names["memory_id" if entry.is_memory else "id"] = entry.id
    members = {name: getattr(entry, name) for name in _JSON_MEMBERS}
    if entry.copies > 1:
        members["copies"] = entry.copies
    return marked_json(as_json(names | {name: it for name, it in members.items() if it is not None}))


def _turn(entry: ContextEntry) -> str:
    """A message of the window as a language model takes it."""
    if entry.role in _ROLES:
        return as_json({"role": entry.role, "content": escaped(entry.content, keep_lines=True)})
    content = f"[{(entry.role or '').upper()}] {escaped(_statement(entry))}"
    return as_json({"role": "user", "content": content})
