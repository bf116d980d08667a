"""Claude Code's transcripts: the folder ~/.claude, its `projects`, a project, or one session.

Each subagent has its own chat. A line that a fork copied counts once, for the session that wrote it.
Thinking, and texts that the program wrote in the user's name, are left out; keys are masked.
"""

import re
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from memlog.eventlog.events import ChatDescribed, Message
from memlog.service.exchange.formats import (
    ForeignData,
    ForeignSession,
    Reason,
    Record,
    Skipped,
    Unreadable,
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
VARIABLE = "CLAUDE_CONFIG_DIR"
HOMES = (".claude", ".config/claude")
SESSIONS = ("projects/**/*.jsonl",)

_DAYS_KEPT = 30
"""The default of Claude Code's setting cleanupPeriodDays."""

_TITLES = {"summary": "summary", "ai-title": "aiTitle", "custom-title": "customTitle"}
"""The members that hold a title, keyed by line type, weakest first."""

_KINDS: dict[Reason, str] = {
    "mirror": "queue-operation last-prompt",
    "bookkeeping": "file-history-snapshot file-history-delta mode system progress agent-name pr-link"
    " cost-state continued-in turn_end",
}
_SKIPPED = {kind: reason for reason, kinds in _KINDS.items() for kind in kinds.split()}
_HARNESS = (
    *("<local-command-stdout>", "<local-command-caveat>", "<task-notification>", "<bash-stdout>"),
    *("Caveat: The messages below", "[Request interrupted", "Stop hook feedback:"),
)
_ENVELOPE = re.compile(r"\s*<(ide_opened_file|ide_selection|system-reminder)>.*?(?:</\1>|\Z)\s*", re.DOTALL)
_COMMAND = re.compile(r"<command-(name|args)>(.*?)</command-\1>", re.DOTALL)
_STORED_OUTPUT = re.compile(r"<persisted-output>.*?([\w.-]{1,200}\.txt)\s", re.DOTALL)
_HEAD = 200
"""How many lines of a file are searched for its folder."""

_SEARCHED = 2000
"""How many characters of a result are searched for the name of its file."""


def read(source: ForeignData) -> Iterator[Record]:
    """Yield a record for each line of all sessions and subagents, and for the prompts of deleted sessions."""
    transcripts, histories = _find_transcripts_and_histories(source)

    def read_marks(path: Path) -> Iterator[LineMark]:
        for line in source.read_json_lines(path):
            if isinstance(line, dict) and isinstance(line.get("uuid"), str):
                yield LineMark(line["uuid"], str(line.get("timestamp")), is_of_fork="forkedFrom" in line)

    seen = source.new_table()
    for path in sort_by_writer(source, transcripts, read_marks):
        yield from convert_lines(source, path, _TranscriptFile(source, path, seen).convert)
    names, equal = {path.stem for path in transcripts}, Counter[str]()
    for path in histories:
        for line in source.read_json_lines(path):
            if source.is_chosen(_text_of(line, "sessionId") or ""):
                yield _convert_prompt(source, line, names, equal)


def sessions(source: ForeignData) -> Iterator[ForeignSession]:
    """Yield each session's file, then each subagent's, then the sessions in the prompt history."""
    transcripts, histories = _find_transcripts_and_histories(source)
    for path in sorted(transcripts, key=_is_of_agent):
        found = None
        for line in islice(source.read_json_lines(path), _HEAD):
            session = _text_of(line, "sessionId") if _is_of_agent(path) else None
            found = ForeignSession(session or _name_of(path), path, _text_of(line, "cwd"))
            if found.folder:
                break
        yield from filter(None, [found])
    for path in histories:
        lines = source.read_json_lines(path)
        prompts = {_text_of(line, "sessionId"): _text_of(line, "project") for line in lines}
        yield from (ForeignSession(name, path, folder) for name, folder in prompts.items() if name)


def _find_transcripts_and_histories(source: ForeignData) -> tuple[list[Path], list[Path]]:
    is_home = source.is_folder(source.path / "projects")
    files = source.find_files(*(("projects/**/*.jsonl", "history.jsonl") if is_home else ("**/*.jsonl",)))
    transcripts = [path for path in files if path.name not in ("history.jsonl", "journal.jsonl")]
    return transcripts, [path for path in files if path.name == "history.jsonl"]


def _name_of(path: Path) -> str:
    return path.stem.encode(errors="replace").decode()


def _is_of_agent(path: Path) -> bool:
    return path.name.startswith("agent-")


def _text_of(line: object, member: str) -> str | None:
    """Return a member of a line if it is a non-empty text, otherwise None."""
    value = line.get(member) if isinstance(line, dict) else None
    return value if isinstance(value, str) and value else None


def days_kept(source: ForeignData) -> int | None:
    """Return the number of days after which Claude Code deletes an unchanged session."""
    settings = source.read_json(source.path / "settings.json")
    chosen = settings.get("cleanupPeriodDays") if isinstance(settings, dict) else None
    return chosen if isinstance(chosen, int) else _DAYS_KEPT


def _convert_prompt(source: ForeignData, line: Any, sessions: set[str], equal: Counter[str]) -> Record:  # noqa: ANN401
    """Convert a line of history.jsonl, which repeats the prompts of sessions that still exist."""
    match line:
        case {"display": str(text), "timestamp": at, "sessionId": str(chat)} if chat and text.strip():
            history = Transcript(source, "claude-code")
            name = f"h-{chat}-{at}"
            equal[name] += 1
            is_known = source.has_event(history.channel, chat, history.id_of(name))
            if source.since is not None and (source.parse_time(at) or "") < source.since:
                return Skipped("excluded")
            if chat in sessions or (source.has_chat(history.channel, chat) and not is_known):
                return Skipped("mirror")
            pasted = [str(each.get("content") or "") for each in (line.get("pastedContents") or {}).values()]
            history.ts = source.parse_time(at)
            part = f"/{equal[name] - 1}" if equal[name] > 1 else ""
            members = {"role": "user", "content": "\n".join([text, *filter(None, pasted)])}
            return Used([history.message(name + part, chat, members)], created=history.ts)
    return line if isinstance(line, Skipped | Unreadable) else Skipped("unsupported")


def _prompt_of(text: str) -> str:
    """Return the text that a person typed; "" for text that the program wrote in the person's name."""
    while (envelope := _ENVELOPE.match(text)) is not None:
        text = text[envelope.end() :]
    if text.lstrip().startswith("<command-"):
        found = dict(_COMMAND.findall(text))
        return f"{found.get('name', '')} {found.get('args', '')}".strip()
    return "" if text.lstrip().startswith(_HARNESS) else text


class _TranscriptFile(Transcript):
    """A session's or subagent's file. seen: the UUIDs of all lines read so far."""

    def __init__(self, source: ForeignData, path: Path, seen: ValuesById) -> None:
        super().__init__(source, "claude-code")
        self._path, self._seen, self._last = path, seen, None
        self._name = _name_of(path)
        self._agent = self._name.removeprefix("agent-") if _is_of_agent(path) else None

    def convert(self, line: Line) -> Record:
        """Convert a line to a record."""
        kind = str(line.get("type"))
        is_attached = kind == "attachment"
        whole: Line = line.get("attachment" if is_attached else "message") or {}
        content = whole.get("prompt" if is_attached else "content")
        blocks: list[Line] = (
            [{"type": "text", "text": content}] if isinstance(content, str) else [*(content or ())]
        )
        for each in blocks:  # also of a copied line: results behind it name the call
            if each["type"] == "tool_use":
                self.remember_call(each["id"], each["name"], (each.get("input") or {}).get("subagent_type"))
        self._last = line.get("uuid", self._last)
        if isinstance(line.get("uuid"), str) and not self._seen.add(line["uuid"]):
            return Skipped("duplicate_in_source")
        self.ts = self.source.parse_time(line.get("timestamp")) or self.ts
        if kind in _TITLES:
            return Skipped(
                "title", [*self.rename(self._name, line.get(_TITLES[kind]), [*_TITLES].index(kind))]
            )
        if kind in _SKIPPED or (kind == "attachment" and not blocks):
            return Skipped(_SKIPPED.get(kind, "bookkeeping"))
        if kind not in ("user", "assistant", "attachment"):
            self.source.unknown[f"type {kind}"] += 1
            return Skipped("unsupported")
        if not isinstance(line.get("uuid"), str):
            return Unreadable(self.source.where, "it has no uuid")
        messages = [] if line.get("isMeta") else [*self._convert_blocks(line, blocks)]
        if not messages:
            is_thought = any("thinking" in each["type"] for each in blocks)
            return Skipped("thinking" if is_thought else "harness")
        if line.get("isCompactSummary"):
            return Used([self.summary(messages[0])], created=self.ts)
        events = [
            *messages,
            *self._describe(line, messages[0].chat_id),
            *self.supersede(whole.get("id"), messages),
        ]
        return Used([*events], created=self.ts, has_own_id=True)

    def _describe(self, line: Line, chat: str) -> Iterator[ChatDescribed]:
        origin = (line.get("forkedFrom") or {}).get("sessionId")
        session = self._session_of(line) if chat != self._session_of(line) else origin
        parent = f"{self.channel}:{session}" if session else None
        branch = line.get("gitBranch")
        labels = [f"branch {branch}"] if branch else None
        return self.describe(chat, folder=line.get("cwd"), parent_chat=parent, labels=labels)

    def _session_of(self, line: Line) -> str:
        return self._name if self._agent is None else str(line["sessionId"])

    def _convert_blocks(self, line: Line, blocks: list[Line]) -> Iterator[Message]:
        agent = line.get("agentId") or self._agent or "sidechain"
        is_agent = line.get("isSidechain") or self._agent
        chat = f"{self._session_of(line)}.{agent}" if is_agent else self._session_of(line)
        is_alone = all(each["type"] == "image" for each in blocks)
        for number, block in enumerate(blocks):
            if (members := self._convert_block(line, block, is_alone=is_alone)) is not None:
                part = f"/{number}" if number else ""
                yield self.message(f"{line['uuid']}{part}", self.source.clean_text(chat), members)

    def _convert_block(self, line: Line, block: Line, *, is_alone: bool) -> Line | None:
        """Return the message members for a block; None if the block is not a message."""
        is_user = line["type"] != "assistant"
        match block:
            case {"type": "text", "text": str(text)}:
                text = _prompt_of(text) if is_user else text
                meta = {"author": "agent"} if is_user and line.get("isSidechain") else None
                role = "user" if is_user else "assistant"
                return {"role": role, "content": text, "meta": meta} if text.strip() else None
            case {"type": "tool_use", "id": call, "name": tool}:
                return call_members(tool, call, block.get("input") or {})
            case {"type": "tool_result", "tool_use_id": call}:
                tool, agent = self.tool_of(call)
                result = result_members(
                    tool, call, self._result_of(block), is_error=bool(block.get("is_error"))
                )
                is_agent = tool in ("Agent", "Task")
                return result | ({"kind": "subagent_result", "name": agent or tool} if is_agent else {})
            case {"type": "image"}:
                return {"role": "user", "content": "[image]"} if is_alone else None
            case {"type": str(kind)} if "thinking" not in kind:
                self.source.unknown[f"block {kind}"] += 1
        return None

    def _result_of(self, block: Line) -> str:
        text = text_of_parts(block.get("content"))
        if (stored := _STORED_OUTPUT.match(text[:_SEARCHED])) is not None:
            # Only the base name counts: the path is one of another machine, or anything.
            folder = self._path.parent.parent if self._agent else self._path.with_suffix("")
            found = folder / "tool-results" / stored[1]
            whole = self.source.read_text(found) if self.source.is_file_below(folder, found) else text
            text = text if isinstance(whole, Unreadable) else whole
        return self.source.shorten_result(text)
