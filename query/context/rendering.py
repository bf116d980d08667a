"""The forms in which a context is printed, piece by piece, so that what fits is known before it is put
together.

text: a line an entry, between the two lines of `fence`. json: an object an entry, for programs. messages:
what a language model is sent: all but the window as text in a message of the system, the window as it was
said, the current message last.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Protocol, get_args

import msgspec

from memlog.query.context.entries import ContextEntry
from memlog.query.context.fence import FIRST_LINE, LAST_LINE, escaped, marked_json, shown_json
from memlog.query.context.request import Form
from memlog.query.speakers import speaker

FORMS: tuple[Form, ...] = get_args(Form)

_ROLES = ("user", "assistant")
"""Who speaks in a conversation. What tools and the system said before is data, and no instruction."""

_JSON_MEMBERS = (
    *("title", "category", "content", "relevance_score", "importance", "chat", "role", "name", "ts"),
    "position",
)


class Printer(Protocol):
    """One form."""

    def frame(self) -> str:
        """What is printed around the entries."""
        ...

    def piece(self, entry: ContextEntry) -> str:
        """What an entry adds to what is printed."""
        ...

    def cites(self, entry: ContextEntry) -> bool:
        """Whether the citation of an entry is printed; those that are come first."""
        ...

    def printed(self, entries: Sequence[ContextEntry]) -> str:
        """All that is printed, with the newline at its end; nothing where there is nothing to say."""
        ...


def printer_of(form: Form, *, text: str, silent: dict[str, str], synced: bool, in_chat: bool) -> Printer:
    """The printer of a form.

    text: the current message. silent, synced: as in a search. in_chat: all is of one chat or of none, so that
    no entry needs to name its own.
    """
    if form == "json":
        return _JsonPrinter(silent, synced)
    return _TextPrinter(in_chat) if form == "text" else _MessagesPrinter(text, in_chat)


class _TextPrinter:
    def __init__(self, in_chat: bool) -> None:
        self._in_chat = in_chat

    def frame(self) -> str:
        return f"{FIRST_LINE}\n{LAST_LINE}\n"

    def piece(self, entry: ContextEntry) -> str:
        return f"{line_of(entry, in_chat=self._in_chat)}\n"

    def cites(self, entry: ContextEntry) -> bool:  # noqa: ARG002 - as any printer
        return True

    def printed(self, entries: Sequence[ContextEntry]) -> str:
        if not entries:
            return ""
        return f"{FIRST_LINE}\n{''.join(map(self.piece, entries))}{LAST_LINE}\n"


class _JsonPrinter:
    def __init__(self, silent: dict[str, str], synced: bool) -> None:
        self._rest = marked_json(f'"silent":{as_json(silent)},"synced":{as_json(synced)}')

    def frame(self) -> str:
        return self._around("")

    def piece(self, entry: ContextEntry) -> str:
        return f"{_object(entry)},"

    def cites(self, entry: ContextEntry) -> bool:  # noqa: ARG002 - as any printer
        return True

    def printed(self, entries: Sequence[ContextEntry]) -> str:
        return self._around(",".join(map(_object, entries)))

    def _around(self, entries: str) -> str:
        return f'{{"entries":[{entries}],{self._rest}}}\n'


class _MessagesPrinter:
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
        told = [entry for entry in entries if self.cites(entry)]
        turns = [_turn(entry) for entry in entries if not self.cites(entry)]
        return self._around([*([self._system(told)] if told else []), *turns])

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
    weight = f" (importance: {round(entry.importance, 2):g})" if entry.importance is not None else ""
    return f"- [{entry.label}] {escaped(_told(entry) + chat)}{weight} [{entry.citation}]"


def as_json(value: Any) -> str:  # noqa: ANN401 - whatever msgspec can encode
    r"""`value` as JSON, in which what cannot be seen stands as `\u202e`: the same to a program."""
    return shown_json(msgspec.json.encode(value).decode())


def _told(entry: ContextEntry) -> str:
    """What an entry says, with when and who."""
    match entry.part:
        case "passage" | "window":
            return f"{_minute(entry)} {speaker(entry.role, entry.name)}: {entry.content}"
        case "summary":
            return f"{_minute(entry)[:10]}: {entry.content}"
        case "memory" if entry.label == "EVENT":
            return f"{_minute(entry)[:10]}: {entry.content}"
    # Who saves a memory without a title gives it its own beginning.
    has_title = entry.title and not (entry.is_memory and entry.content.startswith(entry.title))
    return f"{entry.title}: {entry.content}" if has_title else entry.content


def _minute(entry: ContextEntry) -> str:
    return (entry.ts or "")[:16].replace("T", " ")


def _object(entry: ContextEntry) -> str:
    """An entry for programs."""
    members = {name: getattr(entry, name) for name in _JSON_MEMBERS}
    said = {name: value for name, value in members.items() if value is not None}
    named = {"memory_id" if entry.is_memory else "id": entry.id}
    return _head(entry) + marked_json(as_json(named | said)[1:])


def _head(entry: ContextEntry) -> str:
    return as_json({"citation": entry.citation, "part": entry.part, "label": entry.label})[:-1] + ","


def _turn(entry: ContextEntry) -> str:
    """A message of the window as a language model is sent it."""
    if entry.role in _ROLES:
        return as_json({"role": entry.role, "content": escaped(entry.content, keep_lines=True)})
    return as_json({"role": "user", "content": f"[{(entry.role or '').upper()}] {escaped(_told(entry))}"})
