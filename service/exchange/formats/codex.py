"""Codex's rollouts: the folder ~/.codex, its `sessions`, a folder of several homes, or one rollout.

Each fork and subagent has its own chat, without the lines copied from its parent. Turns that were rolled
back are marked. Thinking, and texts that the program wrote in the user's name, are left out; keys are masked.
"""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from hashlib import sha256
from itertools import islice
from pathlib import Path

from msgspec.structs import replace

from memlog.eventlog.events import Message
from memlog.service.exchange.formats import (
    ForeignData,
    ForeignSession,
    Reason,
    Record,
    Skipped,
    Used,
)
from memlog.service.exchange.transcripts import (
    Line,
    Transcript,
    call_members,
    convert_lines,
    parse_object,
    result_members,
    text_of_parts,
)

HAS_UNIQUE_IDS = True
VARIABLE = "CODEX_HOME"
HOMES = (".codex*",)
SESSIONS = tuple(
    f"{folder}/**/rollout-*{ending}"
    for folder in ("sessions", "archived_sessions")
    for ending in (".jsonl", ".jsonl.zst")
)

_KINDS: dict[Reason, str] = {
    "structure": "session_meta state turn_context world_state token_usage_record security_risk_score"
    " inter_agent_communication_metadata retained_context additional_tools configuration_update compaction"
    " compaction_summary compaction_trigger context_compaction context_compacted ghost_snapshot task_started"
    " task_complete turn_started turn_complete turn_aborted token_count thread_goal_updated"
    " thread_rolled_back thread_settings_applied thread_name_updated sub_agent_activity"
    " entered_review_mode exited_review_mode",
    "mirror": "user_message agent_message agent_reasoning agent_reasoning_raw_content item_completed"
    " exec_command_end patch_apply_end mcp_tool_call_end web_search_end image_generation_end",
    "thinking": "reasoning",
}
_SKIPPED = {kind: reason for reason, kinds in _KINDS.items() for kind in kinds.split()}
_CALLS = "function_call custom_tool_call local_shell_call web_search_call tool_search_call".split()
_HEAD = 20
"""How many lines of a file are searched for its folder."""

_THREAD = re.compile(r"([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})(_[0-9a-f-]{36})?\.jsonl")
_SHELL = "<user_shell_command>"  # a person's, but not a turn of the conversation
_HARNESS = re.compile(
    r"\s*(?:# AGENTS\.md instructions|</?image\b[^>]*>\s*\Z|<(environment_context|user_instructions|skill"
    r"|permissions instructions|turn_aborted|subagent_notification|goal_context|codex_internal_context"
    r"|recommended_plugins|agent_message_board_notification)\b.*</\1>\s*\Z)",
    re.DOTALL,
)
_EXIT_CODE = re.compile(r"(?:[^\n]*\n){0,4}?(?:Exit code:|Process exited with code) (\d+)\n")


def read(source: ForeignData) -> Iterator[Record]:
    """Yield a record for each line of all rollouts; lines that a rollout shares with its copy count once."""
    threads: defaultdict[str, list[Path]] = defaultdict(list)
    for path in _find_rollouts(source):
        threads[_identify(path)[0]].append(path)
    for paths in threads.values():
        seen: set[str] = set()
        for path in paths:
            yield from convert_lines(source, path, _Rollout(source, path, threads, seen).convert)


def sessions(source: ForeignData) -> Iterator[ForeignSession]:
    """Yield each file with its thread."""
    for path in _find_rollouts(source):
        found = None
        for line in islice(source.read_json_lines(path), _HEAD):
            kind, payload = _unwrap(line) if isinstance(line, dict) else ("None", {})
            found = found or ForeignSession(_identify(path)[0], path)
            if kind == "session_meta" and found.remote is None:
                remote = (parse_object(payload.get("git")) or {}).get("repository_url")
                found = found._replace(
                    name=str(payload.get("id") or found.name),
                    remote=remote if isinstance(remote, str) else None,
                )
            if isinstance(payload.get("cwd"), str):
                found = found._replace(folder=payload["cwd"])
                break
        yield from filter(None, [found])


def _find_rollouts(source: ForeignData) -> list[Path]:
    folders = (
        ("sessions/**/", "archived_sessions/**/") if source.is_folder(source.path / "sessions") else ("**/",)
    )
    endings = ("rollout-*.jsonl", "rollout-*.jsonl.zst")
    return source.find_logs(*(folder + ending for folder in folders for ending in endings))


def _identify(path: Path) -> tuple[str, str]:
    """Return the thread id in a file's name and, if the file continues a thread from a turn, its suffix."""
    name = path.name.encode(errors="replace").decode()
    found = _THREAD.search(name)
    return (found[1], found[2] or "") if found is not None else (name.partition(".")[0], "")


def _read_payloads(source: ForeignData, path: Path) -> Iterator[tuple[str, Line]]:
    return (_unwrap(line) for line in source.read_json_lines(path) if isinstance(line, dict))


def _unwrap(line: Line) -> tuple[str, Line]:
    """Return a line's type and payload. In early 2025, the whole line was the payload."""
    if isinstance(line.get("payload"), dict):
        line["payload"].pop("replacement_history", None)  # the thread once more, often most of the file
        return str(line.get("type")), line["payload"]
    if "type" in line:
        return "response_item", line
    return ("session_meta" if "id" in line else "state" if "record_type" in line else "None"), line


def _subagent_of(meta: Line) -> object:
    origin = meta.get("source")
    return origin.get("subagent") if isinstance(origin, dict) else None


def _parent_of(meta: Line) -> str | None:
    """Return the parent of a thread: the thread that it forked, or that started it; None if it has none."""
    agent = _subagent_of(meta)
    spawn = (agent.get("thread_spawn") if isinstance(agent, dict) else None) or {}
    parent = meta.get("forked_from_id") or meta.get("parent_thread_id") or spawn.get("parent_thread_id")
    return str(parent) if parent else None


def _digest(*values: object) -> str:
    return sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:32]


def _is_harness(part: Line, kind: str) -> bool:
    """Whether the program wrote a part of a prompt. kind: its kind in newer versions, such as `user.text`."""
    text = str(part.get("text", ""))
    is_of_user = kind.partition(".")[0] in ("", "user", "unknown") or text.startswith(_SHELL)
    return not is_of_user or _HARNESS.match(text) is not None


class _Rollout(Transcript):
    """A thread's file. threads: all files, keyed by thread. seen: marks of the lines in its earlier files."""

    def __init__(
        self, source: ForeignData, path: Path, threads: dict[str, list[Path]], seen: set[str]
    ) -> None:
        super().__init__(source, "codex")
        self._threads = threads
        self._thread, self._continued = _identify(path)
        self._seen, self._earlier = seen, frozenset(seen)
        self._ids: set[str] = set()
        self._equal: Counter[str] = Counter()
        self._turns: list[list[str]] = []
        self._parent: str | None = None
        self._ancestors: list[str] = []
        self._is_open = self._is_task_due = self._is_copy = self._has_copied = False
        self._start = 0
        self._has_prompts = any(item.get("role") == "user" for _, item in _read_payloads(source, path))

    def convert(self, line: Line) -> Record:
        """Convert a line to a record."""
        kind, payload = _unwrap(line)
        digest = _digest(kind, payload)
        self.ts = self.source.parse_time(line.get("timestamp")) or self.ts
        is_inherited = self._is_inherited(line, kind, payload, digest)
        names = self._names(line, payload, digest)
        record = self._convert(kind, payload, names.pop(self._thread))
        event = record.events[0] if isinstance(record, Used) else None
        if self._ancestors and event is not None:
            is_inherited = any(
                self.source.has_event(self.channel, chat, self.id_of(copied))
                for chat, copied in names.items()
            )
            self._ancestors = self._ancestors if is_inherited else []
        if isinstance(event, Message):
            if event.role == "user" and not event.content.startswith(_SHELL):
                self._turns.append([])
            if self._turns and not is_inherited:
                self._turns[-1].append(str(event.id))
        if is_inherited:
            self.forget_first(self._thread)
            return Skipped("inherited")
        if isinstance(event, Message) and event.role == "user" and self._is_task_due:
            self._is_task_due = False  # a person may have typed what follows the task
            record = Used([replace(event, meta={"author": "agent"})], created=self.ts)
        self._seen.add(mark := f"{line.get('timestamp')} {digest}")
        return Skipped("duplicate_in_source") if mark in self._earlier else record

    def _is_inherited(self, line: Line, kind: str, payload: Line, digest: str) -> bool:
        """Whether a line is a copy of a line in the parent."""
        if kind == "session_meta" and not self._is_open:
            self._open(payload)
            return False
        if (line.get("metadata") or {}).get("inherited_user_message"):
            return True
        if self._ancestors:
            self._ancestors += [str(payload.get("id"))] if kind == "session_meta" else []
            return True
        if self._start:
            return bool(line.get("ordinal", self._start) < self._start)
        if self._is_copy and self._turns_of_parent and kind == "session_meta":
            self._has_copied = True
        elif self._is_copy and self._turns_of_parent and "turn_id" in payload:
            self._is_copy = self._has_copied = payload["turn_id"] in self._turns_of_parent
        elif self._is_copy and not self._has_copied and kind == "response_item":
            self._is_copy = next(self._items_of_parent, None) == digest
        return self._is_copy

    def _open(self, meta: Line) -> None:
        self._is_open, self._thread = True, str(meta.get("id") or self._thread)
        agent = _subagent_of(meta)
        self._parent = _parent_of(meta)
        younger, oldest = {self._thread}, self._parent
        while oldest is not None and oldest not in younger:
            younger.add(oldest)
            metas = (_read_payloads(self.source, path) for path in self._threads.get(oldest, ()))
            first = next((payload for each in metas for kind, payload in each if kind == "session_meta"), {})
            oldest = _parent_of(first)
        if oldest is not None:  # a circle: each would have copied all from the others
            self._parent = None
        base = (meta.get("history_base") or {}).get("end_ordinal_exclusive")
        self._start = int(meta.get("subagent_history_start_ordinal") or base or 0)
        self._is_task_due = agent is not None
        self._turns_of_parent: set[str] = set()
        items = []
        for path in () if self._start else self._threads.get(str(self._parent), ()):
            for kind, payload in _read_payloads(self.source, path):
                self._turns_of_parent |= {payload["turn_id"]} if "turn_id" in payload else set()
                items += [_digest(kind, payload)] if kind == "response_item" else []
        self._items_of_parent, self._is_copy = iter(items), bool(items)
        # Of a parent whose file is gone, the log tells what was copied, also if it was forgotten.
        self._ancestors = [self._parent] if self._parent and not items and not self._start else []

    def _names(self, line: Line, payload: Line, digest: str) -> dict[str, str]:
        """Return a line's names, keyed by thread: its own, and each from which it may have been copied."""
        self._equal[digest] += 1
        own = [str(each) for each in (payload.get("id"), line.get("ordinal")) if each is not None]
        part = next((each for each in own if each not in self._ids), None)
        self._ids.update(own[:1] if part is None else [part])
        names = {}
        for thread in (*self._ancestors, self._thread):
            ending = self._continued if thread == self._thread else ""
            last = _digest(thread, digest, self._equal[digest]) if part is None else part
            names[thread] = f"{thread}{ending}-{last}"
        return names

    def _convert(self, kind: str, payload: Line, name: str) -> Record:
        if kind == "session_meta":
            parent, folder = self._parent and f"{self.channel}:{self._parent}", payload.get("cwd")
            branch = (payload.get("git") or {}).get("branch")
            labels = [f"branch {branch}"] if branch else None
            told = (
                self.describe(self._thread, parent_chat=parent, folder=folder, labels=labels)
                if not self._continued
                else ()
            )
            return Skipped("structure", [*told])
        if kind == "event_msg" and payload.get("type") == "thread_rolled_back":
            start = max(len(self._turns) - payload["num_turns"], 0)
            ids = [each for turn in self._turns[start:] for each in turn]
            del self._turns[start:]
            marks = [self.withdraw(each, self._thread, "rewound") for each in ids]
            return Used([*marks], created=self.ts, is_telling=False) if marks else Skipped("structure")
        members = self._convert_item(kind, payload)
        if isinstance(members, str):
            return Skipped(members)
        if not (members["content"] or "").strip():
            return Skipped("empty")
        message = self.message(name, self._thread, members)
        return Used([self.summary(message) if kind == "compacted" else message], created=self.ts)

    def _convert_item(self, kind: str, item: Line) -> Line | Reason:
        """Return the event members for a payload, or the reason why it becomes no event."""
        name = str(item.get("type")) if kind in ("response_item", "event_msg") else kind
        match kind, name:
            case "compacted", _:
                return {"role": "assistant", "content": item.get("message")}
            case "response_item", "message":
                parts = item["content"]
                parts = [{"text": parts}] if isinstance(parts, str) else parts
                return self._convert_message(item, item["role"], parts)
            case ("response_item", "agent_message") | ("inter_agent_communication", _):
                # Not as the message's name, which is a person's.
                meta = {"author": "agent", "agent": item.get("author")}
                return {"role": "user", "content": text_of_parts(item.get("content")), "meta": meta}
            case "response_item", _ if name in _CALLS:
                tool, call = item.get("name") or name.removesuffix("_call"), item.get("call_id") or ""
                self.remember_call(call, tool)
                given = item.get("arguments") or item.get("input") or item.get("action") or {}
                return call_members(tool, call, parse_object(given) or given)
            case "response_item", _ if name.endswith("_output"):
                return self._convert_result(item, text_of_parts(item.get("output", item.get("tools"))))
            case "event_msg", "user_message" | "agent_message" if not self._has_prompts:
                return {"role": "user" if name == "user_message" else "assistant", "content": item["message"]}
        if name not in _SKIPPED:
            self.source.unknown[f"{kind} {name}" if name != kind else f"type {kind}"] += 1
        return _SKIPPED.get(name, "unsupported")

    def _convert_message(self, item: Line, role: str, parts: list[Line]) -> Line | Reason:
        meta = {"phase": item["phase"]} if item.get("phase") else None
        if role == "user":
            kinds = (item.get("internal_chat_message_metadata_passthrough") or {}).get("content_item_kinds")
            kinds = kinds if kinds and len(kinds) == len(parts) else [""] * len(parts)
            parts = [part for part, kind in zip(parts, kinds, strict=True) if not _is_harness(part, kind)]
        if role not in ("user", "assistant") or not parts:
            return "harness"
        text = text_of_parts([part for part in parts if "text" in part] or parts)
        return {"role": role, "content": text, "meta": meta}

    def _convert_result(self, item: Line, text: str) -> Line:
        call, found = item.get("call_id") or "", _EXIT_CODE.match(text)
        code = found is not None and int(found[1])
        match parse_object(text):
            case {"output": str(output), "metadata": {"exit_code": int(status)}}:
                text, code = output, status
        text = self.source.shorten_result(text)
        return result_members(self.tool_of(call)[0], call, text, is_error=code != 0)
