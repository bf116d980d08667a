"""Importers: a module for each format of another program. It makes events of a source, and knows no store.

A module has `read`, which yields what becomes of each record; its docstring says what it reads. It may have
`SOURCES`: patterns of files that are sources each, where a folder is none; and `projects`, which yields their
names: `read` then yields the records of the requested one. The name of the format is the
module's, with hyphens. The ids of events are made of the source's own ids, never of texts,
so that a second run knows them: `tiered/7`, of a second source `tiered~1f0c9a3e/7`.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

from memlog.eventlog.errors import BadInput, MemlogError
from memlog.eventlog.events import Event, MemoryAccessed
from memlog.eventlog.fields import MOST_TIMES

Reason = Literal["empty", "structure", "bookkeeping", "duplicate_in_source", "unsupported", "archived"]
"""Why a record is left out. archived: core memory has no archive."""


class Used(NamedTuple):
    """A record that gives events.

    events: what it says, each with the id of its own.
    changes: what happened to the first of them since, with ids such as `tiered/7/updated`, to which the
        import adds the time and a hash. resets: changes that count only if they differ from an earlier one.
    created: when the source says that it was made.
    group: of records whose ids say their places: where one of them has changed, new ones may be old ones that
        have moved, and are not stored.
    is_telling: whether two sources that say the same here are likely one.
    """

    events: list[Event]
    changes: Sequence[Event] = ()
    resets: Sequence[Event] = ()
    created: str | None = None
    group: str | None = None
    is_telling: bool = True


class Skipped(NamedTuple):
    """A record that is left out."""

    reason: Reason


class Unreadable(NamedTuple):
    """A record, or a file, that cannot be read.

    where: names it. why: in a few words.
    """

    where: str
    why: str


class ForeignData(Protocol):
    """The files of another program. `memlog.service.exchange.source` says what each method does."""

    path: Path
    suffix: str
    project: str | None

    def files(self, *patterns: str) -> list[Path]:
        """Return the files that match."""

    def name(self, path: Path) -> str:
        """Return the name of a file for people."""

    def text(self, path: Path) -> str | Unreadable:
        """Return the text of a file."""

    def notes(self, path: Path) -> str | Unreadable:
        """Return the text of a Markdown file without its front matter."""

    def is_of_user(self, headings: Sequence[tuple[int, str]], key: str, value: str) -> bool:
        """Whether a value below headings is one of the user."""

    def document(self, path: Path) -> Any:  # noqa: ANN401 - whatever it holds
        """Return the JSON of a file, or an `Unreadable`."""

    def rows(
        self, path: Path, table: str, known: Collection[str], *, is_optional: bool = False
    ) -> Iterator[dict[str, Any] | Unreadable]:
        """Return the rows of a table of SQLite."""

    def changed(self, path: Path) -> str:
        """Return the time of a file's last change."""

    def time(self, value: object) -> str | None:
        """Return a time as another program wrote it."""


Record = Used | Skipped | Unreadable

Make = Callable[[ForeignData, dict[str, Any]], Record]

Read = Callable[[ForeignData], Iterator[Record]]


class Importer(NamedTuple):
    """What reads a format.

    sources: the patterns of its sources; () where a folder is one.
    projects: yields the names of the projects in a source, each once or more; None for a format without.
    """

    read: Read
    sources: Sequence[str]
    projects: Callable[[ForeignData], Iterator[str]] | None


def records(
    data: ForeignData,
    path: Path,
    table: str,
    columns: Collection[str],
    make: Make,
    *,
    is_optional: bool = False,
    is_wanted: Callable[[dict[str, Any]], bool] = lambda _: True,
) -> Iterator[Record]:
    """Yield a record for each wanted row of a table; `Unreadable` for one that `make` cannot read."""
    for row in data.rows(path, table, columns, is_optional=is_optional):
        if isinstance(row, Unreadable):
            yield row
            continue
        if not is_wanted(row):
            continue
        try:
            yield make(data, row)
        except (TypeError, ValueError, KeyError, AttributeError, OSError, MemlogError) as error:
            yield Unreadable(f"{table} {row.get('id')!r}", f"it has another form: {error}")


def accessed(
    name: str, count: object, last_accessed: str | None, otherwise: str | None
) -> Iterator[MemoryAccessed]:
    """Yield the accesses of a record so far, if there are any.

    last_accessed: when the last was. otherwise: another time, where its source does not say.
    """
    if isinstance(count, int) and count > 0:
        yield MemoryAccessed(
            id=f"{name}/accessed",
            ts=last_accessed or otherwise,
            memory_ids=[name],
            times=min(count, MOST_TIMES),
            by="import",
        )


def formats() -> list[str]:
    """Return the names of the formats: memory-folder."""
    modules = (path.stem for path in Path(__file__).parent.glob("*.py"))
    return sorted(name.replace("_", "-") for name in modules if name != "__init__")


def is_imported(event_id: str) -> bool:
    """Whether an event with this id came from another program: its id begins with a format, `tiered/7`."""
    name, _, rest = event_id.partition("/")
    return bool(rest) and name.partition("~")[0] in _formats()


@cache
def _formats() -> frozenset[str]:
    return frozenset(formats())


def known_format(name: str) -> str:
    """Return `name` itself.

    Raises:
        BadInput: there is no such format.
    """
    if name not in formats():
        raise BadInput(f"there is no format {name!r}", hint=f"one of {', '.join(formats())}")
    return name


def about(name: str) -> str:
    """Return the description of a format, in one sentence."""
    module = import_module(f"{__name__}.{name.replace('-', '_')}")
    return str(module.__doc__).partition("\n\n")[0].strip()


def importer(name: str) -> Importer:
    """Return the reader of a format from `formats`."""
    module = import_module(f"{__name__}.{name.replace('-', '_')}")
    return Importer(module.read, getattr(module, "SOURCES", ()), getattr(module, "projects", None))
