"""Documents: folders and files of text that are read into the log, and found by a search."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from glob import escape
from pathlib import Path
from typing import Any, Literal, NamedTuple, overload

import msgspec

from memlog.eventlog.damage import MAX_LINE
from memlog.eventlog.errors import BadInput, NotFound
from memlog.eventlog.events import (
    DocumentIndexed,
    DocumentRemoved,
    Event,
    SourceId,
    SourceKind,
    SourceRegistered,
    SourceRemoved,
)
from memlog.eventlog.log import Position
from memlog.eventlog.streams import shown
from memlog.projector.catchup import Progress
from memlog.query import documents as standing
from memlog.query.documents import Document, Source
from memlog.service import text_files
from memlog.service.folder import Patterns, Skipped, walk
from memlog.service.read_model import Reading
from memlog.service.text_files import TextFile, Unfit, filetype

_BATCH_BYTES = 1024 * 1024
_BATCH_EVENTS = 256
_ENVELOPE_BYTES = 1024
"""More than id, times, version and crc add to an event."""

_READING = "files read"

Append = Callable[[Iterable[Event | dict[str, Any] | bytes]], list[Position]]
_Sources = list[Source]
_Documents = list[Document]


class Added(msgspec.Struct, kw_only=True):
    """What became of the files of a source.

    registered: whether the source is new, or says now something else than before.
    indexed, unchanged, removed: documents: those that were read into the log, those that stood there as they
        are, and those whose file is gone or no longer asked for.
    skipped: what was left out, and why. Where a file could not be read, the document of it stays.
    error: why the files could not be looked at; the documents stay then. None where they could.
    """

    source_id: str
    root: str
    registered: bool
    indexed: int
    unchanged: int
    removed: int
    skipped: list[Skipped]
    error: str | None = None


class _Asked(NamedTuple):
    """A folder, and the files of it that were named; None where the whole folder was."""

    root: Path
    names: tuple[str, ...] | None


class _Wanted(NamedTuple):
    """What a source is to be: how it is registered, and what is taken.

    is_new: whether the log says something else so far. versions: of the documents that stand, by file.
    """

    registration: SourceRegistered
    patterns: Patterns
    is_new: bool
    versions: dict[str, str]


class Documents:
    """The documents of a store: `store.documents`.

    store: its folder, which is never read as documents.
    append: puts events into the log. read: asks the read model, caught up with the log.
    """

    def __init__(self, store: Path, append: Append, read: Reading) -> None:
        self._store = store
        self._append = append
        self._read = read

    def add(
        self,
        path: str | Path,
        *,
        source: str | None = None,
        include: Sequence[str] = (),
        exclude: Sequence[str] = (),
        kind: SourceKind = "docs",
        progress: Progress | None = None,
    ) -> Added:
        """Make a folder, or a file of one, a source of documents, and bring the documents up to its files.

        Only what is new or changed is appended. Interrupted, what was appended stays, and the next call goes
        on.

        source: its name; else that of the folder.
        include, exclude: glob patterns relative to the folder, see `Patterns`; where neither is given, those
            that the source has stay.
        kind: `memory` for files that are searched as memories.

        Raises:
            BadInput: there is no such file or folder; another folder has the source's name; or a pattern or
                name cannot be used.
            OSError: the folder cannot be listed.
            Busy, LogError, DatabaseError: as `Store.append` and `Store.search`.
        """
        (added,) = self.add_all(
            [path], source=source, include=include, exclude=exclude, kind=kind, progress=progress
        )
        return added

    def add_all(
        self,
        paths: Iterable[str | Path],
        *,
        source: str | None = None,
        include: Sequence[str] = (),
        exclude: Sequence[str] = (),
        kind: SourceKind = "docs",
        progress: Progress | None = None,
    ) -> list[Added]:
        """As `add` for each of `paths`; the files of one folder are added together."""
        given = Patterns(tuple(include), tuple(exclude))
        added = []
        for asked in _by_folder([_checked_path(path) for path in paths]):
            self._check_outside_the_store(asked.root)
            name = _checked_name(asked.root.name if source is None else source)
            added.append(self._brought_up(self._wanted(asked, name, given, kind), progress))
        return added

    def refresh(self, source: str | None = None, *, progress: Progress | None = None) -> list[Added]:
        """Bring the documents of a source, or of all, up to their files, as `add` does for a folder.

        Where the files of a source cannot be looked at, since its folder is gone or cannot be listed, its
        documents stay, `error` says why, and the others go on. A source that nobody registered has no files.

        Raises:
            NotFound: there is no source of this name.
            Busy, LogError, DatabaseError: as `add`.
        """
        sources = [each for each in self.list() if source in (None, each.source_id)]
        if source is not None and not sources:
            raise unknown_source(source)
        return [self._refreshed(each, progress) for each in sources if each.root is not None]

    @overload
    def list(self, source: None = None) -> _Sources: ...
    @overload
    def list(self, source: str) -> _Documents: ...
    def list(self, source: str | None = None) -> _Sources | _Documents:
        """All sources, by name; or the documents of one, by file.

        Raises:
            NotFound: there is no source of this name.
        """
        if source is None:
            return self._read(standing.sources)
        found, documents = self._read(
            lambda db: (standing.source(db, source), standing.documents(db, source))
        )
        if found is None:
            raise unknown_source(source)
        return documents

    def remove(self, name: str) -> Position | Literal[False]:
        """Remove a source with all its documents, or one document (`source/file`); False where there is none.

        The files stay as they are. A document that was removed is not read again with its source, until
        its file is added by name.
        """
        source_id, is_document, file = name.partition("/")
        found, versions = self._standing(source_id)
        if found is None or (is_document and file not in versions):
            return False
        events = _without_file(found, file) if is_document else [SourceRemoved(source_id=source_id)]
        return self._append(events)[-1]

    def _standing(self, source_id: str) -> tuple[Source | None, dict[str, str]]:
        """A source, None where it is none, and the versions of its documents by file."""
        return self._read(lambda db: (standing.source(db, source_id), standing.versions(db, source_id)))

    def _check_outside_the_store(self, root: Path) -> None:
        if root.resolve().is_relative_to(self._store.resolve()):
            raise BadInput(f"{root} is part of the store itself", hint="name a folder outside the store")

    def _wanted(self, asked: _Asked, source_id: str, given: Patterns, kind: SourceKind) -> _Wanted:
        found, versions = self._standing(source_id)
        before = None if found is None or found.root is None else found
        root = str(asked.root) if before is None else _standing_root(asked.root, before)
        patterns = _patterns(asked, given, before)
        registration = SourceRegistered(
            source_id=source_id,
            kind=kind,
            root=root,
            include=[*patterns.include],
            exclude=[*patterns.exclude],
        )
        is_new = before is None or not _says_the_same(before, registration)
        return _Wanted(registration, patterns, is_new, versions)

    def _refreshed(self, source: Source, progress: Progress | None) -> Added:
        """What `refresh` does for one source."""
        _, versions = self._standing(source.source_id)
        wanted = _Wanted(_registration(source), _standing_patterns(source), False, versions)
        try:
            return self._brought_up(wanted, progress)
        except OSError as error:
            return _nothing_done(wanted, f"{shown(error.filename)}: {error.strerror}")

    def _brought_up(self, wanted: _Wanted, progress: Progress | None) -> Added:
        source_id, root = wanted.registration.source_id, Path(str(wanted.registration.root))
        found = walk(root, wanted.patterns, self._store)
        if wanted.is_new:
            self._append([wanted.registration])
        added = _nothing_done(wanted)
        added.skipped = found.skipped
        gone = dict(wanted.versions)
        for batch in _batches(_lines_of_changed(source_id, root, found.files, gone, added, progress)):
            added.indexed += len(self._append(batch))
        # Where the root itself went meanwhile, no file of it can be said to be gone.
        os.scandir(root).close()
        removed = [DocumentRemoved(source_id=source_id, file=file) for file in _surely(gone, added.skipped)]
        added.removed = len(self._append(removed))
        return added


def _nothing_done(wanted: _Wanted, error: str | None = None) -> Added:
    return Added(
        source_id=wanted.registration.source_id,
        root=str(wanted.registration.root),
        registered=wanted.is_new,
        indexed=0,
        unchanged=0,
        removed=0,
        skipped=[],
        error=error,
    )


def unknown_source(name: str) -> NotFound:
    """The error where no source has this name."""
    return NotFound(f"no source {name!r}", hint="memlog docs list", code="source_not_found")


def _checked_path(path: str | Path) -> Path:
    """`path`, absolute.

    Raises:
        BadInput: it names no file and no folder, or cannot be written as UTF-8.
    """
    absolute = Path(os.path.abspath(path))  # noqa: PTH100 - what a link is called is the user's choice
    if shown(absolute) != str(absolute):
        raise BadInput(f"{shown(path)}: the name is not UTF-8", hint="rename it")
    try:
        absolute.stat()
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror}", hint="name a file or folder that can be read") from error
    if not absolute.is_dir() and not absolute.is_file():
        raise BadInput(f"{path} is neither a file nor a folder", hint="name a file or folder")
    return absolute


def _checked_name(name: str) -> str:
    try:
        return msgspec.convert(name, SourceId)
    except msgspec.ValidationError as error:
        raise BadInput(
            f"{name!r} cannot name a source: {error}",
            hint="--source NAME: up to 255 characters, without / and control characters",
        ) from error


def _by_folder(paths: Iterable[Path]) -> list[_Asked]:
    """The folders among `paths`, and those of the files, each once."""
    names: dict[tuple[Path, bool], list[str]] = {}
    for path in paths:
        is_folder = path.is_dir()
        named = names.setdefault((path if is_folder else path.parent, is_folder), [])
        if not is_folder:
            named.append(path.name)
    return [_Asked(root, None if is_folder else tuple(named)) for (root, is_folder), named in names.items()]


def _standing_root(root: Path, source: Source) -> str:
    """The root of a registered source, which must be the folder `root` by this or another spelling."""
    standing_root = Path(str(source.root))
    if root != standing_root and not (standing_root.exists() and root.samefile(standing_root)):
        raise BadInput(
            f"the source {source.source_id!r} is {standing_root}, not {root}",
            hint="give the other one a name of its own: --source NAME",
        )
    return str(standing_root)


def _patterns(asked: _Asked, given: Patterns, source: Source | None) -> Patterns:
    """What is to be taken of a folder, of which `source` says so far what is."""
    before = Patterns() if source is None else _standing_patterns(source)
    is_given = bool(given.include or given.exclude)
    if asked.names is not None:
        if is_given:
            raise BadInput("patterns are for folders, not for files", hint="name the folder")
        return _with_names(before, [escape(name) for name in asked.names], is_known=source is not None)
    if is_given:
        return given
    # Whoever names the folder of files that were added one by one wants the whole folder.
    return Patterns((), before.exclude) if before.are_names else before


def _standing_patterns(source: Source) -> Patterns:
    return Patterns(tuple(source.include), tuple(source.exclude))


def _registration(source: Source) -> SourceRegistered:
    """What registers a source as it is."""
    return SourceRegistered(
        source_id=source.source_id,
        kind=source.kind,
        root=source.root,
        include=source.include,
        exclude=source.exclude,
    )


def _with_names(before: Patterns, names: Sequence[str], *, is_known: bool) -> Patterns:
    """`before`, and files of the root by their escaped names, also where they were removed by name."""
    exclude = tuple(pattern for pattern in before.exclude if pattern not in names)
    if is_known and not before.include:
        patterns = Patterns((), exclude)
    else:
        new = dict.fromkeys(name for name in names if name not in before.include)
        patterns = Patterns((*before.include, *new), exclude)
    for name in names:
        if patterns.excludes(name) or not (patterns.include or filetype(name)):
            raise BadInput(
                f"{name} is not among the files that its source takes",
                hint="memlog docs list shows its patterns; --source NAME makes it a source of its own",
            )
    return patterns


def _says_the_same(source: Source, registration: SourceRegistered) -> bool:
    return all(
        getattr(source, name) == getattr(registration, name)
        for name in ("kind", "root", "include", "exclude")
    )


def _lines_of_changed(
    source_id: str,
    root: Path,
    files: Sequence[str],
    gone: dict[str, str],
    added: Added,
    progress: Progress | None,
) -> Iterator[bytes]:
    """The events of the files whose documents do not stand as they are, one file in memory at a time.

    gone: versions of standing documents by file; those whose file is there are taken out.
    added: counts what is unchanged and skipped.
    """
    for number, file in enumerate(files, start=1):
        try:
            text = text_files.read(root / file)
            if gone.get(file) == text.version:
                added.unchanged += 1
            else:
                yield _line(source_id, file, text)
            gone.pop(file, None)
        except FileNotFoundError:
            # It was removed since its folder was listed.
            continue
        except Unfit as unfit:
            added.skipped.append(Skipped(file, unfit.reason, unfit.detail))
        finally:
            if progress is not None:
                progress(_READING, number, len(files))


def _line(source_id: str, file: str, text: TextFile) -> bytes:
    """The event of a document, as JSON: an event that is encoded here can be measured.

    Raises:
        Unfit: it is longer than an event can be.
    """
    event = DocumentIndexed(
        source_id=source_id,
        file=file,
        filetype=filetype(file),
        mtime=text.mtime,
        size=text.size,
        version=text.version,
        content=text.content,
    )
    line = msgspec.json.encode(event)
    if len(line) > MAX_LINE - _ENVELOPE_BYTES:
        raise Unfit("too_large")
    return line


def _batches(lines: Iterable[bytes]) -> Iterator[list[bytes]]:
    """`lines` in groups that share a sync, and that memory holds easily."""
    batch: list[bytes] = []
    size = 0
    for line in lines:
        batch.append(line)
        size += len(line)
        if size >= _BATCH_BYTES or len(batch) == _BATCH_EVENTS:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _surely(gone: Iterable[str], skipped: Iterable[Skipped]) -> list[str]:
    """The files of `gone` without those that may be there, since something could not be read."""
    unread = [each.file for each in skipped if each.reason == "unreadable"]
    return sorted(
        file for file in gone if not any(file == path or file.startswith(f"{path}/") for path in unread)
    )


def _without_file(source: Source, file: str) -> list[Event]:
    """What removes a document: its source leaves the file out from now on, or would read it again."""
    removed = DocumentRemoved(source_id=source.source_id, file=file)
    if source.root is None:
        return [removed]
    exclude = [*source.exclude, escape(file)]
    return [msgspec.structs.replace(_registration(source), exclude=exclude), removed]
