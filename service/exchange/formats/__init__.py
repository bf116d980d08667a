"""Importers: one module per format of another program. A module turns a source into events, without a store.

A module has `read`, which yields the outcome for each record; its docstring says what it reads. It may have
`SOURCES`, patterns for source files if a source is not a folder; `projects`, which yields project names:
`read` then yields only the requested project; `sessions`, which yields coding-agent sessions: `read` then
yields only the chosen ones; and `HAS_UNIQUE_IDS = True` if no two sources can use one id for different
records, as with UUIDs: then a source is read once. If the program has its own folder, the module has
`VARIABLE`, `HOMES`, `SESSIONS` and, if the program deletes sessions, `days_kept`; see `Importer`. A format is
named after its module, with hyphens. Event ids derive from the source's ids, never from texts, so that a
second run recognises them: `tiered/7`, or `tiered~1f0c9a3e/7` from a second source.
"""

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

from memlog.eventlog.errors import BadInput, MemlogError
from memlog.eventlog.events import Event, MemoryAccessed
from memlog.eventlog.fields import MOST_TIMES

if TYPE_CHECKING:
    from memlog.service.exchange.maps import RecordMap

Reason = Literal[
    "empty",
    "structure",
    "bookkeeping",
    "duplicate_in_source",
    "unsupported",
    "archived",
    "mirror",
    "harness",
    "inherited",
    "thinking",
    "title",
    "tail",
    "system",
    "excluded",
    "pending",
    "context",
]
"""Why a record is skipped. archived: core memory has no archive. mirror: the source has the same content
elsewhere. harness: the program wrote it in the user's name. inherited: copied from the parent conversation.
tail: an unfinished last line. system: a system prompt. excluded: the map leaves it out, or it is too old.
pending: the program has not finished it. context: it is only context that memlog gave to the chat."""


class Used(NamedTuple):
    """A record that is imported as events.

    events: the record's content; each event has its own id.
    changes: later changes of the first event, with ids such as `tiered/7/updated`, to which the import adds
        the time and a hash. resets: changes that count only if an earlier change differs.
    created: when the record was created, according to the source.
    group: a name shared by consecutive records that only their place and text identify: their ids end in a
        number, and the import finds the numbers under which the log has them.
    is_editable: whether a new text in the place of a known one may be its new version.
    former: the id that an older version of memlog gave the record or, for a group, its list.
    former_text: the text that an older version of memlog gave the record.
    is_telling: whether equal content in two sources suggests that they are the same.
    has_own_id: whether the source itself gives the record its id, so that other content under this id is a
        new version of the record.
    """

    events: list[Event]
    changes: Sequence[Event] = ()
    resets: Sequence[Event] = ()
    created: str | None = None
    group: str | None = None
    is_telling: bool = True
    has_own_id: bool = False
    is_editable: bool = False
    former: str | None = None
    former_text: str | None = None


class Skipped(NamedTuple):
    """A record that is not imported. events: `chat_described` events, if the record describes its chat."""

    reason: Reason
    events: Sequence[Event] = ()


class Unreadable(NamedTuple):
    """A record or file that cannot be read. where: its name."""

    where: str
    why: str


class ForeignSession(NamedTuple):
    """A session's file, or another part of a source that contains lines of a session.

    name: the name of the session and its chat. folder: the folder where it first worked.
    remote: the remote of the folder's repository, according to the session.
    """

    name: str
    path: Path
    folder: str | None = None
    remote: str | None = None


class ChosenSessions(NamedTuple):
    """The sessions that one pass reads from sources that are divided between projects.

    names: the sessions' names. files: the files that contain their lines, keyed by source.
    has_rest: whether this pass also reads lines that belong to no session.
    """

    names: set[str]
    files: dict[Path, set[Path]]
    has_rest: bool


class ValuesById(Protocol):
    """Values keyed by id, with only a bounded part in memory; see `memlog.projector.disk_table.DiskTable`."""

    def get(self, name: str) -> bytes | str | None:
        """Return the value for an id; None if there is no value."""

    def __setitem__(self, name: str, value: str) -> None:
        """Set the value for an id."""

    def add(self, name: str) -> bool:
        """Add an id without a value; return whether it is new."""

    def values(self) -> Iterator[bytes | str]:
        """Yield all values, in no particular order."""


class ForeignData(Protocol):
    """The files of another program; see `memlog.service.exchange.source.ForeignFiles`."""

    path: Path
    suffix: str
    project: str | None
    map: "RecordMap | None"
    since: str | None
    unknown: Counter[str]
    where: str

    def find_files(self, *patterns: str) -> list[Path]:
        """Return the files that match any of the patterns."""

    def count_as_done(self, path: Path) -> None:
        """Count a file as converted, for progress reports."""

    def find_logs(self, *patterns: str) -> list[Path]:
        """Return the files that match any of the patterns, each once."""

    def is_chosen(self, session: str) -> bool:
        """Whether to read a session's lines. session: its name; "" for lines that belong to no session."""

    def is_folder(self, path: Path) -> bool:
        """Whether there is a folder at `path`."""

    def is_file_below(self, folder: Path, path: Path) -> bool:
        """Whether there is a file at `path`, and no link on the way leads out of `folder`."""

    def display_name(self, path: Path) -> str:
        """Return the name of a file for display."""

    def read_text(self, path: Path) -> str | Unreadable:
        """Return the text of a file."""

    def read_notes(self, path: Path) -> str | Unreadable:
        """Return the text of a Markdown file without its front matter."""

    def is_of_user(self, headings: Sequence[tuple[int, str]], key: str, value: str) -> bool:
        """Whether a value below headings is about the user."""

    def read_json(self, path: Path) -> Any:  # noqa: ANN401 - whatever it holds
        """Return the decoded JSON of a file, or an `Unreadable`."""

    def without_surrogates(self, value: Any) -> Any:  # noqa: ANN401 - whatever JSON holds
        """Return a value with each lone surrogate in its texts replaced by U+FFFD."""

    def read_json_lines(self, path: Path) -> Iterator[Any]:
        """Yield the value of each line of a file; a `Skipped` or `Unreadable` for a line without one."""

    def read_csv(self, path: Path) -> Iterator[dict[str, str | None] | Unreadable]:
        """Yield the rows of a CSV file, keyed by the header's names; an `Unreadable` for an invalid row."""

    def new_table(self) -> ValuesById:
        """Return an empty table for data that a format must remember about a large source."""

    def has_chat(self, channel: str, chat_id: str) -> bool:
        """Whether the log has a conversation, even if it was forgotten."""

    def has_event(self, channel: str, chat_id: str, event_id: str) -> bool:
        """Whether the log has an event in a conversation, even if it was forgotten."""

    def clean_text(self, text: str) -> str:
        """Return a text with keys masked, and with characters that JSON cannot hold replaced."""

    def shorten_result(self, text: str) -> str:
        """Return a tool's output, without its middle if it is long."""

    def read_rows(
        self,
        path: Path,
        table: str,
        known: Collection[str],
        *,
        is_optional: bool = False,
        is_streamed: bool = False,
    ) -> Iterator[dict[str, Any] | Unreadable]:
        """Yield the rows of an SQLite table, and `Unreadable` for each damaged part."""

    def modified_at(self, path: Path) -> str:
        """Return a file's modification time, in RFC 3339."""

    def parse_time(self, value: object) -> str | None:
        """Parse a time in another program's notation; return None if there is no valid time."""


Record = Used | Skipped | Unreadable

Make = Callable[[ForeignData, dict[str, Any]], Record]

Read = Callable[[ForeignData], Iterator[Record]]


class Importer(NamedTuple):
    """The importer of a format.

    sources: patterns for the files that are sources; () if a folder is a source.
    projects: yields the names of the projects in a source, possibly repeated; None if the format has none.
    find_sessions: yields the session files in a source, reading only their beginnings; a session's own file
        comes before its other files. None if the format has no sessions.
    has_unique_ids: whether no two sources use one id for different records.
    variable: the environment variable with the program's folder, or `NAME/folder` for a folder below it.
    homes: patterns for the program's folders below a home folder.
    sessions: patterns for the conversation files in such a folder.
    days_kept: returns the number of days after which the program deletes an unchanged session; None if never.
    """

    read: Read
    sources: Sequence[str]
    projects: Callable[[ForeignData], Iterator[str]] | None
    find_sessions: Callable[[ForeignData], Iterator[ForeignSession]] | None
    has_unique_ids: bool
    variable: str | None
    homes: Sequence[str]
    sessions: Sequence[str]
    days_kept: Callable[[ForeignData], int | None] | None


def read_records(
    data: ForeignData,
    path: Path,
    table: str,
    columns: Collection[str],
    make: Make,
    *,
    text: str | None = None,
    is_optional: bool = False,
    is_wanted: Callable[[dict[str, Any]], bool] = lambda _: True,
) -> Iterator[Record]:
    """Yield a record for each wanted row of a table; `Unreadable` for a row that `make` cannot convert.

    text: the column with the text; a row without text is skipped.
    """
    for row in data.read_rows(path, table, columns, is_optional=is_optional):
        if isinstance(row, Unreadable):
            yield row
            continue
        if not is_wanted(row):
            continue
        try:
            is_empty = text is not None and not (row[text] or "").strip()
            yield Skipped("empty") if is_empty else make(data, row)
        except (TypeError, ValueError, KeyError, AttributeError, OSError, MemlogError) as error:
            where = f"{data.display_name(path)}, {table} {row.get('id')}"
            yield Unreadable(where, describe_error(error))


def describe_error(error: Exception) -> str:
    """Describe why a record cannot be converted, in words that do not depend on Python."""
    match error:
        case MemlogError():
            return error.message
        case KeyError():
            return f"the member {error.args[0]} is missing"
        case RecursionError():
            return "it is nested too deeply"
        case json.JSONDecodeError():
            return f"no JSON: {error.msg.removesuffix(' at')} at character {error.colno}"
        case UnicodeDecodeError():
            return f"not UTF-8, at byte {error.start + 1}"
        case OSError():
            return error.strerror or str(error)
    return "a member has an unexpected type"


def access_events(
    name: str, count: object, last_accessed: str | None, otherwise: str | None
) -> Iterator[MemoryAccessed]:
    """Yield one event for all accesses of a record so far, or nothing if it was never accessed.

    last_accessed: the time of the last access. otherwise: the time to use if the last access is unknown.
    """
    if isinstance(count, int) and count > 0:
        yield MemoryAccessed(
            id=f"{name}/accessed",
            ts=last_accessed or otherwise,
            memory_ids=[name],
            times=min(count, MOST_TIMES),
            by="import",
        )


@cache
def format_names() -> Sequence[str]:
    """Return the names of the formats, such as memory-folder."""
    modules = (path.stem for path in Path(__file__).parent.glob("*.py"))
    return sorted(name.replace("_", "-") for name in modules if name != "__init__")


@cache
def list_agent_channels() -> frozenset[str]:
    """Return the coding agents' channels: the formats of programs that have their own folder."""
    return frozenset(name for name in format_names() if load_importer(name).homes)


def is_imported(event_id: str) -> bool:
    """Whether an event was imported: its id begins with a format's name, as in `tiered/7`."""
    name, _, rest = event_id.partition("/")
    return bool(rest) and name.partition("~")[0] in format_names()


def check_format(name: str) -> str:
    """Return `name` if it is the name of a format.

    Raises:
        BadInput: there is no such format.
    """
    if name not in format_names():
        raise BadInput(f"there is no format {name!r}", hint=f"use one of: {', '.join(format_names())}")
    return name


def describe_format(name: str) -> str:
    """Describe a format in one sentence."""
    module = import_module(f"{__name__}.{name.replace('-', '_')}")
    return str(module.__doc__).partition("\n\n")[0].strip()


def load_importer(name: str) -> Importer:
    """Return the importer of a format. name: one of `format_names`."""
    module = import_module(f"{__name__}.{name.replace('-', '_')}")
    return Importer(
        module.read,
        getattr(module, "SOURCES", ()),
        getattr(module, "projects", None),
        getattr(module, "sessions", None),
        getattr(module, "HAS_UNIQUE_IDS", False),
        getattr(module, "VARIABLE", None),
        getattr(module, "HOMES", ()),
        getattr(module, "SESSIONS", ()),
        getattr(module, "days_kept", None),
    )
