"""Claude Code's transcripts: the folder ~/.claude, its `projects`, a project, or one session.

A subagent is a chat of its own. A line that a fork has copied counts once, for the session that wrote it.
Titles, thinking, and what the program wrote in the user's name are left out; keys are masked.
"""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from memlog.eventlog.events import Message, SummaryWritten
from memlog.service.exchange.formats import ForeignData, Reason, Record, Skipped, Unreadable, Used, ValuesById

Line = dict[str, Any]

HAS_UNIQUE_IDS = True

_CHANNEL = "claude-code"
_KINDS: dict[Reason, str] = {
    "title": "ai-title custom-title summary",
    "mirror": "queue-operation last-prompt",
    "bookkeeping": "file-history-snapshot file-history-delta mode system progress agent-name pr-link"
    " cost-state continued-in turn_end",
}
_SKIPPED = {kind: reason for reason, kinds in _KINDS.items() for kind in kinds.split()}
_HARNESS = (
    *("<local-command-stdout>", "<local-command-caveat>", "<task-notification>", "<bash-stdout>"),
    *("Caveat: The messages below", "[Request interrupted", "Stop hook feedback:"),
)
_ENVELOPES = ("ide_opened_file", "ide_selection", "system-reminder")
_STORED_OUTPUT = re.compile(r"<persisted-output>.*?([\w.-]{1,200}\.txt)\s", re.DOTALL)
_MAX_CALLS = 10_000
_SHARED = "-"
_SEARCHED = 2000
"""In how many characters of a result the name of its file is searched."""


def read(source: ForeignData) -> Iterator[Record]:
    """Yield the lines of all sessions and subagents, and the prompts of sessions that are gone."""
    is_home = source.is_folder(source.path / "projects")
    files = source.find_files(*(("projects/**/*.jsonl", "history.jsonl") if is_home else ("**/*.jsonl",)))
    sessions = [path for path in files if path.name not in ("history.jsonl", "journal.jsonl")]
    seen = source.new_table()
    for path in _writers_first(source, sessions):
        yield from _Transcript(source, path, seen).records()
    names = {path.stem for path in sessions}
    for path in files:
        if path.name == "history.jsonl":
            yield from (_convert_prompt(source, line, names) for line in source.read_json_lines(path))


def _writers_first(source: ForeignData, files: list[Path]) -> Iterator[Path]:
    """Yield the files; of those with one first line, the file that went on first comes first: it wrote it."""
    groups: defaultdict[str, list[Path]] = defaultdict(list)
    for path in files:
        groups[next((uuid for uuid, _ in _uuids(source, path)), path.stem)].append(path)
    for group in groups.values():
        began = _first_own_times(source, group) if len(group) > 1 else {}
        yield from sorted(group, key=lambda path: began.get(path, "~"))


def _first_own_times(source: ForeignData, group: list[Path]) -> dict[Path, str]:
    """Return the time of the first line of each file that no other file has."""
    holders = source.new_table()
    for number, path in enumerate(group):
        for uuid, at in _uuids(source, path):
            known = holders.get(uuid)
            is_own = known is None or str(known).startswith(f"{number} ")
            holders[uuid] = f"{number} {at}" if is_own else _SHARED
    began: dict[Path, str] = {}
    for holder in holders.values():
        if holder != _SHARED:
            owner, _, at = str(holder).partition(" ")
            path = group[int(owner)]
            began[path] = min(at, began.get(path, at))
    return began


def _uuids(source: ForeignData, path: Path) -> Iterator[tuple[str, str]]:
    for line in source.read_json_lines(path):
        if isinstance(line, dict) and isinstance(line.get("uuid"), str):
            yield line["uuid"], str(line.get("timestamp"))


def _convert_prompt(source: ForeignData, line: Any, sessions: set[str]) -> Record:  # noqa: ANN401 - a line
    """Convert a line of history.jsonl, which repeats the prompts of the sessions that still exist."""
    match line:
        case {"display": str(text), "timestamp": at, "sessionId": str(chat)} if chat and text.strip():
            if chat in sessions or source.has_chat(_CHANNEL, chat):
                return Skipped("mirror")
            name, ts = f"{_CHANNEL}{source.suffix}/h-{chat}-{at}", source.parse_time(at)
            content = source.clean_text(text)
            event = Message(id=name, ts=ts, channel=_CHANNEL, chat_id=chat, role="user", content=content)
            return Used([event], created=ts)
    return line if isinstance(line, Skipped | Unreadable) else Skipped("unsupported")


def _prompt_of(text: str) -> str:
    """Return what a person typed; "" for what the program wrote in the person's name."""
    text = text.lstrip()
    while (tag := next((each for each in _ENVELOPES if text.startswith(f"<{each}>")), None)) is not None:
        text = text.partition(f"</{tag}>")[2].lstrip()
    if text.startswith("<command-"):
        command, arguments = (
            text.partition(f"<command-{each}>")[2].partition(f"</command-{each}>")[0]
            for each in ("name", "args")
        )
        return f"{command} {arguments}".strip()
    return "" if text.startswith(_HARNESS) else text


class _Transcript:
    """The file of a session or subagent. seen: the uuids of all lines that were read before."""

    def __init__(self, source: ForeignData, path: Path, seen: ValuesById) -> None:
        self._source, self._path, self._seen = source, path, seen
        self._name = path.stem.encode(errors="replace").decode()
        self._agent = self._name.removeprefix("agent-") if self._name.startswith("agent-") else None
        self._calls: dict[str, Line] = {}
        """The latest calls of tools, without what else they were given."""
        self._first: str | None = None

    def records(self) -> Iterator[Record]:
        """Yield a record for each line; also an `Unreadable` for a file of which no line is understood."""
        outcomes: Counter[bool] = Counter()
        for line in self._source.read_json_lines(self._path):
            record = line if isinstance(line, Skipped | Unreadable) else self._try_convert(line)
            outcomes[record == Skipped("unsupported")] += 1
            yield record
        if [*outcomes] == [True]:
            yield Unreadable(self._source.display_name(self._path), "no line is of a known type")

    def _try_convert(self, line: Any) -> Record:  # noqa: ANN401 - a line
        try:
            return self._convert(line)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            return Unreadable(self._source.display_name(self._path), f"unexpected line: {error!r}")

    def _convert(self, line: Line) -> Record:
        kind, uuid = str(line.get("type")), line.get("uuid")
        told = (
            line["attachment"].get("prompt")
            if kind == "attachment"
            else (line.get("message") or {}).get("content")
        )
        blocks = [{"type": "text", "text": told}] if isinstance(told, str) else [*(told or ())]
        # Also of a copied line: results behind it name the call.
        for each in blocks:
            if each["type"] == "tool_use":
                self._remember_call(each)
        if isinstance(uuid, str) and not self._seen.add(uuid):
            return Skipped("duplicate_in_source")
        if kind in _SKIPPED or (kind == "attachment" and not blocks):
            return Skipped(_SKIPPED.get(kind, "bookkeeping"))
        if kind not in ("user", "assistant", "attachment"):
            self._source.unknown[f"type {kind}"] += 1
            return Skipped("unsupported")
        if line.get("isMeta"):
            return Skipped("harness")
        messages = [*self._convert_blocks(line, blocks)]
        if not messages:
            is_thought = any("thinking" in each["type"] for each in blocks)
            return Skipped("thinking" if is_thought else "harness")
        if line.get("isCompactSummary"):
            summary, self._first = self._summary_of(messages[0]), None
            return Used([summary], created=summary.ts)
        self._first = self._first or str(messages[0].id)
        return Used([*messages], created=messages[0].ts)

    def _remember_call(self, block: Line) -> None:
        given = block.get("input")
        agent = given.get("subagent_type") if isinstance(given, dict) else None
        self._calls[block["id"]] = {"name": block.get("name"), "agent": agent}
        if len(self._calls) > _MAX_CALLS:
            del self._calls[next(iter(self._calls))]

    def _summary_of(self, event: Message) -> SummaryWritten:
        return SummaryWritten(
            id=event.id,
            ts=event.ts,
            channel=event.channel,
            chat_id=event.chat_id,
            content=event.content,
            from_message_id=self._first,
        )

    def _convert_blocks(self, line: Line, blocks: list[Line]) -> Iterator[Message]:
        session = self._name if self._agent is None else str(line["sessionId"])
        agent = line.get("agentId") or self._agent or "sidechain"
        chat = f"{session}.{agent}" if line.get("isSidechain") or self._agent else session
        ts = self._source.parse_time(line.get("timestamp"))
        pictures = sum(each["type"] == "image" for each in blocks)
        is_alone = pictures == len(blocks)
        for number, block in enumerate(blocks):
            made = self._convert_block(line, block, is_alone=is_alone)
            if made is not None:
                part = f"/{number}" if number else ""
                name = f"{_CHANNEL}{self._source.suffix}/{line['uuid']}{part}"
                content = self._source.clean_text(made.pop("content"))
                yield Message(id=name, ts=ts, channel=_CHANNEL, chat_id=chat, content=content, **made)

    def _convert_block(self, line: Line, block: Line, *, is_alone: bool) -> Line | None:
        """Return the members of the message of a block; None if it is none."""
        is_user = line["type"] != "assistant"
        match block:
            case {"type": "text", "text": str(text)}:
                text = _prompt_of(text) if is_user else text
                by_agent = {"meta": {"author": "agent"}} if is_user and line.get("isSidechain") else {}
                members = {"role": "user" if is_user else "assistant", "content": text} | by_agent
                return members if text.strip() else None
            case {"type": "tool_use", "id": call, "name": tool}:
                given = block.get("input") or {}
                first = next((each for each in given.values() if isinstance(each, str)), "")
                text = f"{tool}: {first}\n```json\n{json.dumps(given, ensure_ascii=False)}\n```"
                return {
                    "role": "assistant",
                    "content": text,
                    "meta": {"tool": {"call_id": call, "name": tool}},
                }
            case {"type": "tool_result", "tool_use_id": call}:
                made = self._calls.get(call, {})
                tool = made.get("name")
                meta = {"tool": {"call_id": call, "error": bool(block.get("is_error"))}}
                result = {"role": "tool", "name": tool, "content": self._result_of(block), "meta": meta}
                agent = {"kind": "subagent_result", "name": made.get("agent") or tool}
                return result | (agent if tool in ("Agent", "Task") else {})
            case {"type": "image"}:
                return {"role": "user", "content": "[image]"} if is_alone else None
            case {"type": str(kind)} if "thinking" not in kind:
                self._source.unknown[f"block {kind}"] += 1
        return None

    def _result_of(self, block: Line) -> str:
        given = block.get("content") or ""
        parts = (
            [given] if isinstance(given, str) else [each.get("text", f"[{each['type']}]") for each in given]
        )
        text = "\n".join(parts)
        if (stored := _STORED_OUTPUT.match(text[:_SEARCHED])) is not None:
            # Only the base name counts: the path is one of another machine, or anything.
            folder = self._path.parent.parent if self._agent else self._path.with_suffix("")
            found = folder / "tool-results" / stored[1]
            whole = self._source.read_text(found) if self._source.is_file_below(folder, found) else text
            text = text if isinstance(whole, Unreadable) else whole
        return self._source.shorten_result(text)
