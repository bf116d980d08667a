"""Pi's sessions: the folder ~/.pi/agent, its `sessions`, or one session.

All branches of a session are in its chat. Each fork has its own chat, without the lines copied from its
parent. Thinking, and texts that extensions wrote in the user's name, are left out; keys are masked.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

from memlog.eventlog.events import SummaryWritten
from memlog.service.exchange.formats import (
    ForeignData,
    ForeignSession,
    Reason,
    Record,
    Skipped,
    Used,
    ValuesById,
)
from memlog.service.exchange.transcripts import (
    Line,
    LineMark,
    Transcript,
    call_members,
    convert_lines,
    result_members,
    sort_by_writer,
    text_of_parts,
)

HAS_UNIQUE_IDS = True
VARIABLE = "PI_CODING_AGENT_DIR"
HOMES = (".pi/agent",)
SESSIONS = ("sessions/**/*.jsonl",)

_KINDS: dict[Reason, str] = {
    "structure": "model_change thinking_level_change",
    "bookkeeping": "custom label context_transform",
    "harness": "custom_message ephemeral",
}
_SKIPPED = {kind: reason for reason, kinds in _KINDS.items() for kind in kinds.split()}
_ROLES: dict[str, Reason] = {
    "custom": "harness",
    "hookMessage": "harness",
    "branchSummary": "mirror",
    "compactionSummary": "mirror",
}
_SESSION_OF_FILE = re.compile(r"_([^_/\\]+)\.jsonl\Z")


def read(source: ForeignData) -> Iterator[Record]:
    """Yield a record for each line of all sessions."""

    def read_marks(path: Path) -> Iterator[LineMark]:
        is_fork = False
        for line in source.read_json_lines(path):
            if isinstance(line, dict) and line.get("type") == "session":
                is_fork = _parent_of(line) is not None
            elif isinstance(line, dict) and isinstance(line.get("id"), str):
                yield LineMark(_key_across_sessions(line), str(line.get("timestamp")), is_fork)

    seen = source.new_table()
    for path in sort_by_writer(source, _find_sessions(source), read_marks):
        yield from convert_lines(source, path, _PiSession(source, path, seen).convert)


def sessions(source: ForeignData) -> Iterator[ForeignSession]:
    """Yield each session's file."""
    for path in _find_sessions(source):
        first = next((line for line in source.read_json_lines(path) if isinstance(line, dict)), None)
        if first is not None:
            folder = first.get("cwd")
            name = str(first["id"]) if first.get("type") == "session" and first.get("id") else _name_of(path)
            yield ForeignSession(name, path, folder if isinstance(folder, str) else None)


def _find_sessions(source: ForeignData) -> list[Path]:
    is_home = source.is_folder(source.path / "sessions")
    return source.find_files("sessions/**/*.jsonl" if is_home else "**/*.jsonl")


def _key_across_sessions(line: Line) -> str:
    """Return a key that identifies a line across all sessions; its id is unique only within its session."""
    return f"{line['id']} {line.get('timestamp')}"


def _name_of(path: Path) -> str:
    name = path.name.encode(errors="replace").decode()
    return _session_of(name) or name.removesuffix(".jsonl")


def _session_of(file: str) -> str | None:
    found = _SESSION_OF_FILE.search(file)
    return None if found is None else found[1]


def _parent_of(header: Line) -> str | None:
    """Return the session from which a session was forked; its header names that session's file."""
    file = header.get("parentSession") or header.get("branchedFrom")
    return _session_of(file) if isinstance(file, str) else None


class _PiSession(Transcript):
    """A session's file. seen: the keys of all lines read so far, from any session."""

    def __init__(self, source: ForeignData, path: Path, seen: ValuesById) -> None:
        super().__init__(source, "pi")
        self._session, self._parent = _name_of(path), _parent_of({})
        self._seen = seen
        self._equal: Counter[str] = Counter()

    def convert(self, line: Line) -> Record:
        """Convert a line to a record."""
        kind = str(line.get("type"))
        self.ts = self.source.parse_time(line.get("timestamp")) or self.ts
        if kind == "session":
            self._session, self._parent = str(line.get("id") or self._session), _parent_of(line)
            parent = self._parent and f"{self.channel}:{self._parent}"
            return Skipped(
                "structure", [*self.describe(self._session, folder=line.get("cwd"), parent_chat=parent)]
            )
        if isinstance(line.get("id"), str) and not self._seen.add(_key_across_sessions(line)):
            return Skipped("duplicate_in_source")
        if kind == "session_info":
            return Skipped("title", [*self.rename(self._session, line.get("name"), 0)])
        if kind in ("compaction", "branch_summary"):
            return self._summarise(line, kind)
        if kind == "message":
            return self._convert_message(line, line["message"])
        if kind not in _SKIPPED:
            self.source.unknown[f"type {kind}"] += 1
        return Skipped(_SKIPPED.get(kind, "unsupported"))

    def _name(self, line: Line) -> str:
        """Return a line's name in its session. Lines written by Pi's first version have no ids."""
        if isinstance(line.get("id"), str):
            return str(line["id"])
        text = json.dumps(line, sort_keys=True)
        self._equal[text] += 1
        return sha256(f"{self._equal[text]} {text}".encode()).hexdigest()[:32]

    def _summarise(self, line: Line, kind: str) -> Record:
        name, text = f"{self._session}-{self._name(line)}", line["summary"]
        if kind == "compaction":
            message = self.message(name, self._session, {"role": "assistant", "content": text})
            return Used([self.summary(message)], created=self.ts)
        # The summary of another branch: it does not begin at any message of this one.
        clean = self.source.clean_text
        place: Line = {"channel": self.channel, "chat_id": clean(self._session), "content": clean(text)}
        return Used([SummaryWritten(id=self.id_of(name), ts=self.ts, **place)], created=self.ts)

    def _convert_message(self, line: Line, told: Line) -> Record:
        role = str(told.get("role"))
        if role in _ROLES:
            return Skipped(_ROLES[role])
        content = told.get("content")
        blocks: list[Line] = content if isinstance(content, list) else [{"type": "text", "text": content}]
        if role != "assistant":
            made = self._convert_whole(role, told, blocks)
            if made is None:
                self.source.unknown[f"role {role}"] += 1
                return Skipped("unsupported")
            parts = {0: made} if made["content"].strip() else {}
        else:
            parts = {
                number: each
                for number, block in enumerate(blocks)
                if (each := self._convert_block(block)) is not None
            }
        if not parts:
            is_thought = any(each.get("type") == "thinking" for each in blocks)
            return Skipped("thinking" if is_thought else "empty")
        entry = self._name(line)
        names = {number: f"{entry}/{number}" if number else entry for number in parts}
        if self._parent is not None and self._was_copied(names[min(names)]):
            return Skipped("inherited")
        messages = [
            self.message(f"{self._session}-{names[number]}", self._session, each)
            for number, each in parts.items()
        ]
        return Used([*messages], created=self.ts, has_own_id=True)

    def _was_copied(self, name: str) -> bool:
        """Whether the log has a message with this name in the parent session, whose file is gone."""
        return self.source.has_event(self.channel, str(self._parent), self.id_of(f"{self._parent}-{name}"))

    def _convert_whole(self, role: str, told: Line, blocks: list[Line]) -> Line | None:
        """Return the message members for a role other than the assistant's; None if the role is unknown."""
        match role:
            case "user":
                return {
                    "role": "user",
                    "content": text_of_parts([each for each in blocks if "text" in each] or blocks),
                }
            case "toolResult":
                text = self.source.shorten_result(text_of_parts(blocks))
                call, is_error = str(told.get("toolCallId") or ""), bool(told.get("isError"))
                return result_members(told.get("toolName"), call, text, is_error=is_error)
            case "bashExecution":  # a command of the user, with its output
                text = self.source.shorten_result(f"$ {told['command']}\n{told.get('output') or ''}")
                return result_members("bash", "", text, is_error=told.get("exitCode") not in (0, None))
        return None

    def _convert_block(self, block: Line) -> Line | None:
        """Return the message members for a block of an answer; None if the block is not a message."""
        match block:
            case {"type": "text", "text": str(text)}:
                return {"role": "assistant", "content": text} if text.strip() else None
            case {"type": "toolCall", "id": call, "name": tool}:
                return call_members(tool, call, block.get("arguments") or {})
            case {"type": str(kind)} if kind not in ("thinking", "text"):
                self.source.unknown[f"block {kind}"] += 1
        return None
