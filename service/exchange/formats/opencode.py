"""OpenCode's sessions: the folder ~/.local/share/opencode, or one of its databases.

A session in both the older and the newer tables is read from the newer ones. Each subagent and fork has its
own chat. Messages that the user took back are marked. Thinking, and texts that the program wrote, are left
out; keys are masked.
"""

import json
from collections import defaultdict, deque
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from memlog.eventlog.events import ChatDescribed, Event, Message
from memlog.service.exchange.formats import (
    ForeignData,
    ForeignSession,
    Reason,
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
    parse_object,
    result_members,
    text_of_parts,
)

HAS_UNIQUE_IDS = True
VARIABLE = "XDG_DATA_HOME/opencode"
HOMES = (".local/share/opencode",)
SESSIONS = ("opencode*.db",)

_SESSION = (
    *("id", "parent_id", "fork_session_id", "directory", "title", "revert", "time_created", "time_updated"),
    *(
        "project_id",
        "workspace_id",
        "fork_message_id",
        "fork_boundary",
        "slug",
        "path",
        "version",
        "share_url",
    ),
    *("summary_additions", "summary_deletions", "summary_files", "summary_diffs", "metadata", "cost"),
    *("tokens_input", "tokens_output", "tokens_reasoning", "tokens_cache_read", "tokens_cache_write"),
    *("permission", "agent", "model", "time_compacting", "time_archived", "time_idle", "idle_outcome"),
)
"""The columns of `session` and `session_v2`; only those in the first line are used."""

_MESSAGE = ("id", "session_id", "time_created", "time_updated", "data")
_PART = ("id", "message_id", "session_id", "time_created", "time_updated", "data")
_NEW_MESSAGE = ("id", "session_id", "type", "seq", "time_created", "time_updated", "data")

_KINDS: dict[Reason, str] = {
    "structure": "step-start step-finish snapshot patch agent retry compaction agent-switched model-switched"
    " location-switched idle",
    "harness": "synthetic system skill",
    "thinking": "reasoning",
}
_SKIPPED = {kind: reason for reason, kinds in _KINDS.items() for kind in kinds.split()}
_CONTENT = ("text", "reasoning", "tool")
"""The answer parts that both tables have, in the same places."""

_FINISHED = ("completed", "error")


def read(source: ForeignData) -> Iterator[Record]:
    """Yield the records of all sessions; a message in both a database and its copy counts once."""
    seen = source.new_table()
    for path in _find_databases(source):
        yield from _Database(source, path, seen).records()


def sessions(source: ForeignData) -> Iterator[ForeignSession]:
    """Yield the sessions that no other session started; their subagents belong to them."""
    for path in _find_databases(source):
        database = _Database(source, path, source.new_table())
        deque(database.read_sessions(), maxlen=0)
        for name, about in database.sessions.items():
            if database.find_root(name) == name:
                folder = about.get("directory")
                yield ForeignSession(name, path, folder if isinstance(folder, str) else None)


def _find_databases(source: ForeignData) -> list[Path]:
    """Return opencode.db, then the copies made by other release channels, such as opencode-beta.db."""
    return sorted(source.find_files(*SESSIONS), key=lambda path: len(path.name))


class _Groups:
    """Rows grouped by key, in the order in which they were added; kept on disk, since there may be many."""

    def __init__(self, source: ForeignData) -> None:
        self._table = source.new_table()

    def add(self, group: str, row: Line) -> None:
        """Add a row to a group."""
        count = int(self._table.get(group) or 0)
        self._table[f"{group}\n{count}"] = json.dumps(row, default=str)
        self._table[group] = str(count + 1)

    def rows(self, group: str) -> Iterator[Line]:
        """Yield a group's rows."""
        for number in range(int(self._table.get(group) or 0)):
            yield json.loads(self._table.get(f"{group}\n{number}") or "")


class _Turn(NamedTuple):
    """A message, as the newer table has it.

    name: its id, taken from the older tables if they also have the message.
    left: the types of its parts that are not content.
    """

    name: str
    kind: str
    data: Line
    left: tuple[str, ...] = ()


def _from_old(row: Line, data: Line, parts: list[Line]) -> _Turn:
    """Convert a message from the older tables to the newer form."""
    role = str(data.get("role"))
    time = {"created": row["time_created"]} | _object(data.get("time"))
    if role == "user":
        own = [each for each in parts if each.get("type") in ("text", "file", "subtask") and _is_shown(each)]
        texts = [str(each.get("text", each.get("prompt", ""))) for each in own if each["type"] != "file"]
        files = [{"name": each.get("filename"), "mime": each.get("mime")} for each in own if "mime" in each]
        new: Line = {"time": time, "text": "\n".join(texts), "files": files}
    else:
        own = [each for each in parts if each.get("type") in _CONTENT and _is_shown(each)]
        new = {
            "time": time,
            "content": [*map(_content_from_old, own)],
            "is_summary": data.get("summary") is True,
        }
    left = [str(each.get("type")) if _is_shown(each) else "synthetic" for each in parts if each not in own]
    return _Turn(str(row["id"]), role, new, tuple(left))


def _object(value: object) -> Line:
    return value if isinstance(value, dict) else {}


def _is_shown(part: Line) -> bool:
    """Whether the program neither wrote a part itself nor ignores it."""
    return not part.get("synthetic") and not part.get("ignored")


def _content_from_old(part: Line) -> Line:
    if part["type"] != "tool":
        return part
    state = dict(_object(part.get("state")))
    if isinstance(state.get("output"), str):
        state["content"] = [{"type": "text", "text": state["output"]}]
    times = _object(state.get("time"))
    took = {"ran": times.get("start"), "completed": times.get("end")}
    return {"type": "tool", "id": part.get("callID"), "name": part.get("tool"), "state": state, "time": took}


def _place_of(row: Line) -> int:
    return row["seq"] if isinstance(row["seq"], int) else 0


class _Database:
    """An OpenCode database.

    seen: the messages of earlier databases. sessions: the session rows, keyed by id.
    """

    def __init__(self, source: ForeignData, path: Path, seen: ValuesById) -> None:
        self._source, self._path, self._seen = source, path, seen
        self.sessions: dict[str, Line] = {}
        self._is_new: set[str] = set()
        """The sessions for which the newer table has messages, not just changes of the model."""
        self._messages, self._parts, self._new_messages = (_Groups(source) for _ in range(3))

    def records(self) -> Iterator[Record]:
        """Yield the records of all sessions."""
        unreadable = [*self.read_sessions()]
        yield from unreadable if self._source.is_chosen("") else ()
        yield from self._collect("message", _MESSAGE, self._messages, "session_id")
        yield from self._collect("part", _PART, self._parts, "message_id")
        yield from self._collect("session_message", _NEW_MESSAGE, self._new_messages, "session_id")
        for name, about in self.sessions.items():
            # What has no row of a session belongs to none.
            if self._source.is_chosen(self.find_root(name) if about else ""):
                yield from self._convert_session(name, about)

    def read_sessions(self) -> Iterator[Unreadable]:
        """Read the session rows, the newer table's last; yield an `Unreadable` for each damaged part."""
        for table in ("session", "session_v2"):
            for row in self._rows(table, _SESSION):
                if isinstance(row, Unreadable):
                    yield row
                else:
                    told = {name: value for name, value in row.items() if value is not None}
                    self.sessions[str(row["id"])] = self.sessions.get(str(row["id"]), {}) | told

    def find_root(self, name: str) -> str:
        """Return the session that started a session, directly or indirectly; itself if no session did."""
        younger = {name}
        while (parent := self.sessions.get(name, {}).get("parent_id")) in self.sessions:
            if parent in younger:  # a circle
                return min(younger)
            younger.add(parent)
            name = parent
        return name

    def _rows(self, table: str, columns: tuple[str, ...]) -> Iterator[Line | Unreadable]:
        return self._source.read_rows(self._path, table, columns, is_optional=True, is_streamed=True)

    def _collect(self, table: str, columns: tuple[str, ...], groups: _Groups, by: str) -> Iterator[Record]:
        """Collect a table's rows in groups; yield an `Unreadable` for each damaged part."""
        for row in self._rows(table, columns):
            if isinstance(row, Unreadable):
                yield from [row] if self._source.is_chosen("") else ()
                continue
            data = parse_object(row["data"])
            if data is None:
                if self._source.is_chosen(""):
                    name = f"{self._source.display_name(self._path)}, {table} {row['id']}"
                    yield Unreadable(name, "no JSON object")
                continue
            session = str(row["session_id"])
            self.sessions.setdefault(session, {})
            self._is_new |= {session} if row.get("type") in ("user", "assistant") else set()
            groups.add(str(row[by]), row | {"data": data})

    def _convert_session(self, name: str, about: Line) -> Iterator[Record]:
        session = _OpenCodeSession(
            self._source, name, about, f"{self._source.display_name(self._path)}, {name}"
        )
        old = [self._read_old(row) for row in self._messages.rows(name)]
        old.sort(key=lambda turn: (str(self._time_of(turn)), turn.name))
        is_new = name in self._is_new
        # Messages of the older tables that the newer one has under other names keep theirs.
        names: defaultdict[tuple[str, str | None], list[str]] = defaultdict(list)
        for turn in old:
            names[turn.kind, self._time_of(turn)].append(turn.name)
        origin = str(about.get("fork_session_id"))
        is_origin_known = origin in self._is_new or self._source.has_chat(session.channel, origin)
        for row in sorted(self._new_messages.rows(name), key=_place_of):
            turn = _Turn(str(row["id"]), str(row["type"]), row["data"])
            same = names.get((turn.kind, self._time_of(turn)))
            turn = turn._replace(name=same.pop(0)) if same else turn
            if is_origin_known and turn.name.endswith(f"_{row['seq']}"):
                yield Skipped("inherited")
            else:
                yield from self._convert_once(session, turn)
        for turn in old:
            yield from [Skipped("mirror")] if is_new else self._convert_once(session, turn)
        yield from session.marks()

    def _read_old(self, row: Line) -> _Turn:
        parts = sorted(self._parts.rows(str(row["id"])), key=lambda part: str(part["id"]))
        return _from_old(row, row["data"], [part["data"] | {"at": part["time_created"]} for part in parts])

    def _time_of(self, turn: _Turn) -> str | None:
        return self._source.parse_time(_object(turn.data.get("time")).get("created"))

    def _convert_once(self, session: "_OpenCodeSession", turn: _Turn) -> Iterator[Record]:
        is_first = self._seen.add(f"{session.name} {turn.name}")
        return session.convert(turn) if is_first else iter([Skipped("duplicate_in_source")])


class _OpenCodeSession(Transcript):
    """A session. about: its row. where: its name for display."""

    def __init__(self, source: ForeignData, name: str, about: Line, where: str) -> None:
        super().__init__(source, "opencode")
        self.name, self._about, self._where = name, about, where
        self._reverted = (parse_object(about.get("revert")) or {}).get("messageID")
        self._taken_back: list[Message] | None = None

    def convert(self, turn: _Turn) -> Iterator[Record]:
        """Yield a message's records: texts, tool calls, results, and parts that are not content."""
        if turn.name == self._reverted:
            self._taken_back = []
        try:
            self.ts = self.source.parse_time(_object(turn.data.get("time")).get("created")) or self.ts
            yield from self._convert(turn)
        except (TypeError, ValueError, KeyError, AttributeError, RecursionError) as error:
            yield Unreadable(f"{self._where}, {turn.name}", describe_error(error))
        for kind in turn.left:
            yield self._skip(kind)

    def marks(self) -> Iterator[Record]:
        """Yield a record that marks the messages that the user took back."""
        marks: list[Event] = []
        for each in self._taken_back or ():
            self.ts = each.ts
            marks.append(self.withdraw(str(each.id), each.chat_id, "rewound"))
        if marks:
            yield Used(marks, is_telling=False)

    def _convert(self, turn: _Turn) -> Iterator[Record]:
        data = turn.data
        match turn.kind:
            case "user":
                members = self._prompt_members(data)
                if members["content"].strip() or not turn.left:
                    yield self._use(turn.name, members)
            case "assistant":
                if not data.get("content") and not turn.left:
                    yield Skipped("empty")
                for number, each in enumerate(data.get("content") or ()):
                    name = f"{turn.name}/{number}" if number else turn.name
                    yield from self._convert_content(name, each, is_summary=bool(data.get("is_summary")))
            case "shell" if data.get("status") == "running":
                yield Skipped("pending")
            case "shell":  # a command of the user, with its output
                shown = data.get("output")
                output = shown.get("output", "") if isinstance(shown, dict) else shown or ""
                text = self.source.shorten_result(f"$ {data['command']}\n{output}")
                is_error = data.get("exit") not in (0, None)
                yield self._use(turn.name, result_members("shell", "", text, is_error=is_error))
            case "compaction" if data.get("status", "completed") == "completed":
                members = {"role": "assistant", "content": data["summary"]}
                yield self._use(turn.name, members, is_summary=True)
            case "compaction":
                yield Skipped("pending" if data["status"] == "running" else "structure")
            case _:
                yield self._skip(turn.kind)

    def _skip(self, kind: str) -> Record:
        if kind not in _SKIPPED:
            self.source.unknown[f"type {kind}"] += 1
        return Skipped(_SKIPPED.get(kind, "unsupported"))

    def _prompt_members(self, data: Line) -> Line:
        files = [{"type": each.get("mime"), "name": each.get("name")} for each in data.get("files") or ()]
        text = str(data.get("text") or "") or "\n".join(f"[{each['name'] or each['type']}]" for each in files)
        return {"role": "user", "content": text, "meta": {"attachments": files} if files else None}

    def _convert_content(self, name: str, part: Line, *, is_summary: bool) -> Iterator[Record]:
        """Yield the record of a part of an answer; for a tool, the records of the call and its result."""
        kind = str(part.get("type"))
        if kind == "text":
            self.ts = self.source.parse_time(part.get("at")) or self.ts
            yield self._use(name, {"role": "assistant", "content": part["text"]}, is_summary=is_summary)
            return
        if kind != "tool":
            yield self._skip(kind)
            return
        state, took, call = part["state"], part.get("time") or {}, str(part.get("id") or "")
        tool, given, status = str(part["name"]), state.get("input"), state.get("status")
        if status != "running" and status not in _FINISHED:
            yield Skipped("pending")
            return
        self.ts = self.source.parse_time(took.get("ran")) or self.ts
        yield self._use(name, call_members(tool, call, given or {}))
        if status not in _FINISHED:
            yield Skipped("pending")
            return
        self.ts = self.source.parse_time(took.get("completed")) or self.ts
        text = text_of_parts(state.get("content"))
        error = state.get("error")
        failed = str(error.get("message") or "") if isinstance(error, dict) else str(error or "")
        text = self.source.shorten_result("\n".join(filter(None, (text, failed))))
        result = result_members(tool, call, text, is_error=status == "error")
        agent = given.get("subagent_type") if isinstance(given, dict) else None
        result |= {"kind": "subagent_result", "name": agent or tool} if tool == "task" else {}
        yield self._use(f"{name}/r", result)

    def _use(self, name: str, members: Line, *, is_summary: bool = False) -> Record:
        """Return a message's record; the first record of a chat also describes the chat."""
        if not str(members["content"] or "").strip() and members["role"] != "tool":
            return Skipped("empty")
        message = self.message(name, self.name, members)
        event = self.summary(message) if is_summary else message
        if self._taken_back is not None and not is_summary:
            self._taken_back.append(message)
        # Without a time of creation: the newer table has none for a text, and the older one another.
        return Used([event, *self._describe_session()], has_own_id=True)

    def _describe_session(self) -> Iterator[ChatDescribed]:
        """Yield a description from the session's row, once for each state of the row."""
        parent = self._about.get("parent_id") or self._about.get("fork_session_id")
        told: Line = {
            "title": self._about.get("title") or None,
            "folder": self._about.get("directory") or None,
            "parent_chat": f"{self.channel}:{parent}" if parent else None,
        }
        digest = sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:12]
        name = f"{self.name}/described/{digest}"
        if not self.source.has_event(self.channel, self.source.clean_text(self.name), self.id_of(name)):
            ts, self.ts = self.ts, self.source.parse_time(self._about.get("time_updated")) or self.ts
            for event in self.describe(self.name, **told):
                yield replace(event, id=self.id_of(name))
            self.ts = ts
