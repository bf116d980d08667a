"""Gemini CLI's sessions: the folder ~/.gemini, a project's folder below its `tmp`, or one session.

A message that was rewritten while it grew counts once, in its last form. Turns that the user took back are
marked. Each subagent has its own chat. Thinking, and the program's notices to the user, are left out; keys
are masked.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from memlog.eventlog.events import Message
from memlog.service.exchange.formats import (
    ForeignData,
    ForeignSession,
    Record,
    Skipped,
    Unreadable,
    Used,
    ValuesById,
    describe_error,
)
from memlog.service.exchange.transcripts import (
    Line,
    Transcript,
    call_members,
    convert_lines,
    result_members,
)

HAS_UNIQUE_IDS = True
VARIABLE = "GEMINI_CLI_HOME/.gemini"
HOMES = (".gemini",)
SESSIONS = ("tmp/*/chats/**/*.jsonl", "tmp/*/chats/**/session-*.json")

_DAYS_KEPT = "30d"
"""The default of Gemini CLI's setting general.sessionRetention.maxAge."""

_UNITS = {"h": 1 / 24, "d": 1, "w": 7, "m": 30}
_AGE = re.compile(r"(\d{1,6})([hdwm])")
_FINISHED = ("success", "error", "cancelled")


def read(source: ForeignData) -> Iterator[Record]:
    """Yield a record for each line of all sessions, and each message of those in the older format."""
    seen, titles = source.new_table(), Counter[str]()
    for path in _find_sessions(source):
        session = _GeminiSession(source, path, seen, titles)
        if path.suffix == ".json":
            yield from session.read_document()
        else:
            yield from convert_lines(source, path, session.convert)


def sessions(source: ForeignData) -> Iterator[ForeignSession]:
    """Yield each session's file, then each subagent's."""
    for path in sorted(_find_sessions(source), key=lambda path: _parent_of(path) is not None):
        lines = [source.read_json(path)] if path.suffix == ".json" else source.read_json_lines(path)
        first = next((line for line in lines if isinstance(line, dict)), None)
        if first is not None:
            name = _parent_of(path) or str(first.get("sessionId") or _name_of(path))
            yield ForeignSession(name, path, _find_folder(source, path))


def _find_sessions(source: ForeignData) -> list[Path]:
    """Return the session files. Files in the newer format come first, since a session may exist in both."""
    is_home = source.is_folder(source.path / "tmp")
    files = source.find_files(*(SESSIONS if is_home else ("**/*.jsonl", "**/session-*.json")))
    return sorted(files, key=lambda path: path.suffix == ".json")


def _name_of(path: Path) -> str:
    return path.stem.encode(errors="replace").decode()


def _parent_of(path: Path) -> str | None:
    """Return the session that started a subagent: the name of its file's folder. None for other files."""
    folder = path.parent
    is_agent = folder.name != "chats" and folder.parent.name == "chats"
    return folder.name.encode(errors="replace").decode() if is_agent else None


def _find_folder(source: ForeignData, path: Path) -> str | None:
    """Return the folder in which a session worked; None if it is unknown."""
    project = path.parent.parent.parent if _parent_of(path) else path.parent.parent
    root = project / ".project_root"
    if source.is_file_below(project, root):
        text = source.read_text(root)
        return None if isinstance(text, Unreadable) else text.strip() or None
    projects = project.parent.parent / "projects.json"
    match source.read_json(projects) if source.is_file_below(projects.parent, projects) else None:
        case {"projects": dict(slugs)}:
            return next((str(folder) for folder, slug in slugs.items() if slug == project.name), None)
    return None


def days_kept(source: ForeignData) -> int | None:
    """Return the number of days after which Gemini CLI deletes an unchanged session; None if never."""
    settings = source.read_json(source.path / "settings.json")
    match settings:
        case {"general": {"sessionRetention": {"enabled": False}}}:
            return None
        case {"general": {"sessionRetention": {"maxAge": str(age)}}}:
            found = _AGE.fullmatch(age) or _AGE.fullmatch(_DAYS_KEPT)
        case _:
            found = _AGE.fullmatch(_DAYS_KEPT)
    assert found is not None
    return int(int(found[1]) * _UNITS[found[2]])


def _parts_of(content: Any) -> list[Line]:  # noqa: ANN401 - a text, a part, or parts
    parts = content if isinstance(content, list) else [content] if content else []
    return [{"text": each} if isinstance(each, str) else each for each in parts]


def _text_of(parts: list[Line]) -> str:
    """Return the text of the parts or, if they have no text, the types of their attachments."""
    texts = [str(each["text"]) for each in parts if "text" in each and not each.get("thought")]
    attached = (each.get("inlineData") or each.get("fileData") for each in parts)
    kinds = [str(each.get("mimeType") or "file").partition("/")[0] for each in attached if each]
    return "\n".join(texts or [f"[{kind}]" for kind in kinds])


def _is_summary(message: Line) -> bool:
    """Whether a message is the summary that replaces older ones in a compressed history."""
    text = _text_of(_parts_of(message.get("content")))
    return message.get("type") == "user" and text.startswith("<state_snapshot>")


def _result_of(call: Line) -> str:
    """Return a tool call's output as given to the model, else as shown to the user."""
    texts = []
    for part in _parts_of(call.get("result")):
        response = (part.get("functionResponse") or {}).get("response")
        match response:
            case {"output": str(text)} | {"error": str(text)}:
                texts.append(text)
            case dict():
                texts.append(json.dumps(response, ensure_ascii=False))
            case _ if "text" in part:
                texts.append(str(part["text"]))
    shown = call.get("resultDisplay")
    return "\n".join(texts) or (shown if isinstance(shown, str) else "")


class _GeminiSession(Transcript):
    """A session's file; a resumed session continues in another file.

    seen: the event ids of each message read before, keyed by session and message.
    titles: how many titles each session has had.
    """

    def __init__(self, source: ForeignData, path: Path, seen: ValuesById, titles: Counter[str]) -> None:
        super().__init__(source, "gemini-cli")
        self._titles = titles
        self._path, self._seen = path, seen
        self._session = _name_of(path)
        self._is_open = False
        self._events: dict[str, list[str]] = {}
        """The event ids of each message that the user has not taken back."""
        self._number, self._last = 0, self._find_last() if path.suffix != ".json" else {}

    def _find_last(self) -> dict[str, int]:
        """Return the number of each message's last line, keyed by message id."""
        lines = (line for line in self.source.read_json_lines(self._path) if isinstance(line, dict))
        numbered = enumerate(lines, 1)
        return {line["id"]: number for number, line in numbered if isinstance(line.get("id"), str)}

    def read_document(self) -> Iterator[Record]:
        """Yield the records of a session stored as one document."""
        whole = self.source.read_json(self._path)
        name = self.source.display_name(self._path)
        if isinstance(whole, Unreadable):
            yield whole
            return
        if not isinstance(whole, dict) or not isinstance(whole.get("messages"), list):
            yield Unreadable(name, "it has no messages")
            return
        yield self._open(whole)
        for number, each in enumerate(whole["messages"], 1):
            try:
                yield self._convert_message(each)
            except (TypeError, ValueError, KeyError, AttributeError, RecursionError) as error:
                yield Unreadable(f"{name}: message {number}", describe_error(error))

    def convert(self, line: Line) -> Record:
        """Convert a line to a record."""
        self._number += 1
        self.ts = self.source.parse_time(line.get("timestamp") or line.get("startTime")) or self.ts
        if isinstance(line.get("$rewindTo"), str):
            return self._rewind(line["$rewindTo"])
        if isinstance(line.get("id"), str):
            if self._last[line["id"]] == self._number:
                return self._convert_message(line)
            self._events.setdefault(
                line["id"], []
            )  # keeps its position, even if the turn is taken back later
            return Skipped("duplicate_in_source")
        if isinstance(line.get("$set"), dict):
            return self._update(line["$set"])
        if "sessionId" in line:
            return self._open(line)
        self.source.unknown[f"line with {', '.join(line)}"] += 1
        return Skipped("unsupported")

    def _open(self, head: Line) -> Record:
        if self._is_open:
            return Skipped("structure")
        self._is_open, self._session = True, str(head["sessionId"])
        if not self._seen.add(self._session):
            return Skipped("structure")
        self.ts = self.source.parse_time(head.get("startTime")) or self.ts
        parent, folder = _parent_of(self._path), _find_folder(self.source, self._path)
        told = self.describe(self._session, folder=folder, parent_chat=parent and f"{self.channel}:{parent}")
        return Skipped("structure", [*told, *self.rename(self._session, head.get("summary"), 0)])

    def _update(self, members: Line) -> Record:
        """Return the record for a line that sets members of the session.

        Messages that the program drops from its history stay, because they were said. A compressed history
        adds its summary, and an answer to it in the model's name; only the summary is imported.
        """
        titled = [*self.rename(self._session, members.get("summary"), 0)]
        added = (each for each in members.get("messages") or () if each["id"] not in self._last)
        for each in added:
            if _is_summary(each):
                self._last[each["id"]] = self._number
                return self._convert_message(each)
        return Skipped("title" if titled else "structure", titled)

    def _rewind(self, message_id: str) -> Record:
        """Return the record for taking back a message and all later ones; all messages if it is unknown."""
        names = [*self._events]
        taken = names[names.index(message_id) if message_id in self._events else 0 :]
        ids = [each for name in taken for each in self._events.pop(name) if self._seen.add(f"{each} rewound")]
        marks = [self.withdraw(each, self.source.clean_text(self._session), "rewound") for each in ids]
        return Used([*marks], created=self.ts, is_telling=False) if marks else Skipped("structure")

    def _convert_message(self, line: Line) -> Record:
        self.ts = self.source.parse_time(line.get("timestamp")) or self.ts
        name, kind = str(line["id"]), str(line.get("type"))
        mark = f"{self._session} {name}"
        if (known := self._seen.get(mark)) is not None:
            self._events[name] = [each for each in str(known).split("\n") if each]
            return Skipped("duplicate_in_source")
        self._seen[mark] = ""
        if kind in ("info", "warning", "error"):
            return Skipped("bookkeeping")
        if kind not in ("user", "gemini"):
            self.source.unknown[f"type {kind}"] += 1
            return Skipped("unsupported")
        if _is_summary(line):
            members = {"role": "assistant", "content": _text_of(_parts_of(line.get("content")))}
            message = self.message(f"{self._session}/{name}", self._session, members)
            return Used([self.summary(message)], created=self.ts)
        messages = [*self._convert_parts(line, f"{self._session}/{name}", is_user=kind == "user")]
        self._events[name] = [str(each.id) for each in messages]
        self._seen[mark] = "\n".join(self._events[name])
        if messages:
            return Used([*messages], created=self.ts, has_own_id=True)
        is_result = any("functionResponse" in each for each in _parts_of(line.get("content")))
        return Skipped("mirror" if is_result else "thinking" if line.get("thoughts") else "empty")

    def _convert_parts(self, line: Line, name: str, *, is_user: bool) -> Iterator[Message]:
        """Yield a message's text, and its tool calls with their results."""
        text = _text_of(_parts_of(line.get("displayContent") or line.get("content")))
        if text.strip():
            members = {"role": "user" if is_user else "assistant", "content": text}
            yield self.message(name, self._session, members)
        for call in line.get("toolCalls") or ():
            call_id, tool = str(call["id"]), call["name"]
            made = call_members(tool, call_id, call.get("args") or {})
            yield self.message(f"{name}/{call_id}", self._session, made)
            if call.get("status") in _FINISHED:
                output = self.source.shorten_result(_result_of(call))
                is_error = call["status"] != "success"
                result = result_members(tool, call_id, output, is_error=is_error)
                result |= {"kind": "subagent_result"} if call.get("agentId") else {}
                yield self.message(f"{name}/{call_id}/r", self._session, result)
