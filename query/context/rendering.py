"""Prints a context in one of four forms, piece by piece, so that its size is known in advance.

text: one line per entry, between the first and last line from `escaping`. json: one object per entry, for
programs. messages: for a language model's API: a system message with everything but the window, then the
window's messages and the current message. session: the lines of the Java MemoryService.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import msgspec

from memlog.eventlog import timestamps
from memlog.query.context import escaping
from memlog.query.context.entries import STABLE, ContextEntry
from memlog.query.context.escaping import escape_leading_bracket, escape_text
from memlog.query.context.request import BuildContext
from memlog.query.conversations import format_speaker
from memlog.query.search.hits import LATER

_ROLES = ("user", "assistant")
"""The roles whose messages keep their role. Earlier messages from tools and the system are printed as data,
so that they cannot pass for instructions."""

_JSON_MEMBERS = (
    *("title", "category", "content", "relevance_score", "importance", "chat", "role", "name", "ts"),
    "position",
)


class Printer(Protocol):
    """Prints a context in one form: text, JSON or messages."""

    def frame_around_entries(self) -> str:
        """Return the text around the entries."""

    def text_of_entry(self, entry: ContextEntry) -> str:
        """Return the text an entry adds to the context."""

    def render_entries(self, entries: Sequence[ContextEntry]) -> str:
        """Return the whole text, ending in a newline; "" if there is nothing to print."""


def make_printer(
    request: BuildContext, *, silent: dict[str, str], synced: bool, answered: float | None
) -> Printer:
    """Return the printer for the request's form.

    silent, synced: see `SearchResult`. answered: see `Context`.
    """
    if request.form == "json":
        return _JsonPrinter(silent, synced, answered)
    if request.form == "session":
        return _SessionPrinter()
    lines = LinePrinter(request)
    return _TextPrinter(lines, request.beside) if request.form == "text" else _MessagesPrinter(request, lines)


class LinePrinter:
    """Prints entries as lines: `- [PREFERENCE] 2026-11-23: Anna likes tea [M1]`; the stable half as
    `- user.name: Anna`.
    """

    def __init__(self, request: BuildContext) -> None:
        self._zone, self._chat = request.load_time_zone(), request.name_of_current_chat

    def line_of_entry(self, entry: ContextEntry) -> str:
        """Return an entry's line with its marks, its citation and, unless it is the current one, its chat."""
        chat = f" ({entry.chat})" if entry.chat not in (None, self._chat) else ""
        marks = f" ({entry.copies:,} copies)" if entry.copies > 1 else ""
        if entry.is_older:
            marks += " (older)"
        elif entry.changed_by is not None:
            marks += f" {LATER}"
        if entry.is_disputed:
            marks += " (disputed)"
        if entry.part in STABLE:
            return f"- {escape_leading_bracket(escape_text(self.statement_of_entry(entry)))}{marks}"
        statement = escape_text(self.statement_of_entry(entry) + chat)
        return f"- [{entry.label}] {statement}{marks} [{entry.citation}]"

    def statement_of_entry(self, entry: ContextEntry) -> str:
        """Return an entry's content, preceded by its date and its speaker or title where it has them."""
        # A daily event has a calendar day, not a time.
        minute = (entry.ts or "")[:10] if entry.label == "EVENT" else self._format_local_minute(entry.ts)
        if entry.part in ("passage", "window"):
            # Of the time of an old message, only the day is needed.
            when = minute[:10] if entry.part == "passage" else minute
            return f"{when} {format_speaker(entry.role, entry.name)}: {entry.content}"
        # A memory without a title of its own gets the beginning of its content.
        has_title = entry.title and not (entry.is_memory and entry.content.startswith(entry.title))
        content = f"{entry.title}: {entry.content}" if has_title else entry.content
        return f"{minute[:10]}: {content}" if minute and entry.part not in STABLE else content

    def _format_local_minute(self, ts: str | None) -> str:
        if ts is None:
            return ""
        try:
            return timestamps.convert_to_zone(ts, self._zone).isoformat(" ", "minutes")[:16]
        except (OverflowError, ValueError, OSError):  # beyond the range of datetime
            return ts[:16].replace("T", " ")


class _TextPrinter(Printer):
    def __init__(self, lines: LinePrinter, beside: Sequence[str]) -> None:
        self._lines, self._beside = lines, "".join(f"{line}\n" for line in beside)

    def frame_around_entries(self) -> str:
        return f"{escaping.FIRST_LINE}\n{self._beside}{escaping.LAST_LINE}\n"

    def text_of_entry(self, entry: ContextEntry) -> str:
        return f"{self._lines.line_of_entry(entry)}\n"

    def render_entries(self, entries: Sequence[ContextEntry]) -> str:
        lines = self._beside + "".join(map(self.text_of_entry, entries))
        return f"{escaping.FIRST_LINE}\n{lines}{escaping.LAST_LINE}\n" if lines else ""


class _SessionPrinter(Printer):
    def frame_around_entries(self) -> str:
        return "{}\n\n{}\n".format(*escaping.SESSION_LINES)

    def text_of_entry(self, entry: ContextEntry) -> str:
        importance = round(entry.importance or 0.0, 2)
        return f"- [{entry.label}] {escape_text(entry.content)} (importance: {importance})\n"

    def render_entries(self, entries: Sequence[ContextEntry]) -> str:
        first, last = escaping.SESSION_LINES
        return f"{first}\n{''.join(map(self.text_of_entry, entries))}\n{last}\n" if entries else ""


class _JsonPrinter(Printer):
    def __init__(self, silent: dict[str, str], synced: bool, answered: float | None) -> None:
        rest = {"silent": silent, "synced": synced, "answered": answered}
        self._rest = escaping.escape_citations_in_json(
            ",".join(f'"{name}":{to_json_with_visible_escapes(value)}' for name, value in rest.items())
        )

    def frame_around_entries(self) -> str:
        return self.render_entries([])

    def text_of_entry(self, entry: ContextEntry) -> str:
        return f"{_entry_to_json_object(entry)},"

    def render_entries(self, entries: Sequence[ContextEntry]) -> str:
        return f'{{"entries":[{",".join(map(_entry_to_json_object, entries))}],{self._rest}}}\n'


class _MessagesPrinter(Printer):
    def __init__(self, request: BuildContext, lines: LinePrinter) -> None:
        self._lines = lines
        message = request.text if request.part != "stable" else ""
        self._current = (
            [to_json_with_visible_escapes({"role": "user", "content": message})] if message else []
        )

    def frame_around_entries(self) -> str:
        return self._wrap_messages([self._system_message([])])

    def text_of_entry(self, entry: ContextEntry) -> str:
        return f"{self._turn_message(entry)}," if entry.part == "window" else self._json_line_of_entry(entry)

    def render_entries(self, entries: Sequence[ContextEntry]) -> str:
        told = [entry for entry in entries if entry.part != "window"]
        turns = [self._turn_message(entry) for entry in entries if entry.part == "window"]
        return self._wrap_messages([*([self._system_message(told)] if told else []), *turns])

    def _wrap_messages(self, messages: Iterable[str]) -> str:
        return f'{{"messages":[{",".join([*messages, *self._current])}]}}\n'

    def _system_message(self, entries: Iterable[ContextEntry]) -> str:
        lines = "".join(map(self._json_line_of_entry, entries))
        first, last = (
            to_json_with_visible_escapes(escaping.FIRST_LINE)[1:-1],
            to_json_with_visible_escapes(f"\n{escaping.LAST_LINE}")[1:-1],
        )
        return f'{{"role":"system","content":"{first}{lines}{last}"}}'

    def _json_line_of_entry(self, entry: ContextEntry) -> str:
        return to_json_with_visible_escapes(f"\n{self._lines.line_of_entry(entry)}")[1:-1]

    def _turn_message(self, entry: ContextEntry) -> str:
        if entry.role in _ROLES:
            return to_json_with_visible_escapes(
                {"role": entry.role, "content": escape_text(entry.content, keep_lines=True)}
            )
        content = f"[{(entry.role or '').upper()}] {escape_text(self._lines.statement_of_entry(entry))}"
        return to_json_with_visible_escapes({"role": "user", "content": content})


def to_json_with_visible_escapes(value: Any) -> str:  # noqa: ANN401 - whatever msgspec can encode
    r"""Encode `value` as JSON, with invisible characters escaped (`\u202e`)."""
    return escaping.escape_invisible_in_json(msgspec.json.encode(value).decode())


def _entry_to_json_object(entry: ContextEntry) -> str:
    names = {"citation": entry.citation, "part": entry.part, "label": entry.label}
    names["memory_id" if entry.is_memory else "id"] = entry.id
    members = {name: getattr(entry, name) for name in _JSON_MEMBERS} | {
        "copies": entry.copies if entry.copies > 1 else None,
        "older": entry.is_older or None,
        "changed_by": entry.changed_by,
        "disputed": entry.is_disputed or None,
    }
    return escaping.escape_citations_in_json(
        to_json_with_visible_escapes(names | {name: it for name, it in members.items() if it is not None})
    )
