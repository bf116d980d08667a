"""Checks the arguments that register a source: folder, named files, name and patterns."""

import os
import re
from collections.abc import Iterable, Sequence
from glob import escape
from pathlib import Path
from typing import NamedTuple

import msgspec

from memlog.eventlog.errors import BadInput
from memlog.eventlog.event_fields import SourceId, SourceKind
from memlog.eventlog.events import SourceRegistered
from memlog.eventlog.streams import shown
from memlog.query.documents import Registered
from memlog.service.documents.folder import Patterns
from memlog.service.documents.text_files import filetype
from memlog.service.requests.documents import AddSource, AddSources

_SET = re.compile(r"\[!?+\]?+[^]]*+(\])?+")
"""A set of characters in a glob, as `fnmatch` reads it: a ] at its beginning belongs to it. One that is not
closed goes on to the end, so that no [ is searched for twice."""


class FolderRequest(NamedTuple):
    """A folder to register as a source.

    names: the files in it that the user named; None for the whole folder. given: the user's patterns.
    """

    root: Path
    names: tuple[str, ...] | None
    source_id: str
    kind: SourceKind
    given: Patterns


def folder_requests(paths: Iterable[str | Path], asked: AddSource | AddSources) -> list[FolderRequest]:
    """The folders to register: each folder among `paths`, and each folder with files among them.

    Raises:
        BadInput: a path, the name or a pattern cannot be used.
    """
    given = checked_patterns(asked.include, asked.exclude)
    names: dict[tuple[Path, bool], list[str]] = {}
    for path in map(checked_path, paths):
        is_folder = path.is_dir()
        named = names.setdefault((path if is_folder else path.parent, is_folder), [])
        if not is_folder:
            named.append(path.name)
    return [
        FolderRequest(
            root,
            None if is_folder else tuple(named),
            checked_name(root.name if asked.source is None else asked.source),
            asked.kind,
            given,
        )
        for (root, is_folder), named in names.items()
    ]


def checked_path(path: str | Path) -> Path:
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


def checked_name(name: str) -> str:
    """`name`.

    Raises:
        BadInput: it cannot name a source.
    """
    try:
        return msgspec.convert(name, SourceId)
    except msgspec.ValidationError as error:
        raise BadInput(
            f"{name!r} cannot name a source: {error}",
            hint="source=NAME: up to 255 characters, without / and control characters",
        ) from error


def checked_patterns(include: Iterable[str], exclude: Iterable[str]) -> Patterns:
    """The patterns that were given.

    Raises:
        BadInput: one of them can match nothing, or is broken.
    """
    patterns = Patterns(tuple(include), tuple(exclude))
    for pattern in (*patterns.include, *patterns.exclude):
        # A [ begins a set of characters within one name.
        if any(found[1] is None for part in pattern.split("/") for found in _SET.finditer(part)):
            raise BadInput(
                f"the pattern {pattern!r} has a [ that is not closed",
                hint="close it within one name, as in '[a-z]*.md'; [[] stands for the character itself",
            )
    return patterns


def check_without_keys(texts: Iterable[str]) -> None:
    """Refuse texts with a key before they are written anywhere.

    Raises:
        BadInput: a text holds what looks like a key: masked, it would name something else.
    """
    # Imported here: it compiles the shapes of all keys, which most runs do not need.
    from memlog.eventlog.secrets import kinds_in

    if any(kinds_in(text) for text in texts):
        raise BadInput(
            "the name, the folder or a pattern of the source holds what looks like a key",
            hint="use another name: names are kept",
        )


def registration_for(
    request: FolderRequest, before: Registered | None, *, may_move: bool
) -> SourceRegistered:
    """The registration of a source after this request.

    before: its present registration. may_move: whether its folder may be another one than before.

    Raises:
        BadInput: another folder has the source's name, or the patterns do not fit the request.
    """
    patterns = _patterns_of(request, before)
    return SourceRegistered(
        source_id=request.source_id,
        kind=request.kind,
        root=str(request.root) if before is None or may_move else _same_root(request.root, before),
        include=[*patterns.include],
        exclude=[*patterns.exclude],
    )


def _same_root(root: Path, source: Registered) -> str:
    """The root of a registered source, which must be the folder `root` by this or another spelling."""
    known_root = Path(source.root)
    if root != known_root and not (known_root.exists() and root.samefile(known_root)):
        raise BadInput(
            f"the source {source.source_id!r} is {known_root}, not {root}",
            hint="give the other one a name of its own: source=NAME",
        )
    return str(known_root)


def _patterns_of(request: FolderRequest, source: Registered | None) -> Patterns:
    """The patterns of a source after this request; `source` has the present ones."""
    before = Patterns() if source is None else Patterns.of(source)
    is_given = bool(request.given.include or request.given.exclude)
    if request.names is not None:
        if is_given:
            raise BadInput("patterns are for folders, not for files", hint="name the folder")
        return _with_names(before, [escape(name) for name in request.names], is_known=source is not None)
    if is_given:
        return request.given
    # To name the folder of files that were added one by one means the whole folder.
    return Patterns((), before.exclude) if before.are_names else before


def _with_names(before: Patterns, names: Sequence[str], *, is_known: bool) -> Patterns:
    """`before` with files of the root by their escaped names, even if they were removed by name."""
    known, wanted = set(before.include), set(names)
    exclude = tuple(pattern for pattern in before.exclude if pattern not in wanted)
    if is_known and not before.include:
        patterns = Patterns((), exclude)
    else:
        new = dict.fromkeys(name for name in names if name not in known)
        patterns = Patterns((*before.include, *new), exclude)
    for name in names:
        if patterns.excludes(name) or not (patterns.include or filetype(name)):
            raise BadInput(
                f"{name} is not among the files that its source takes",
                hint="store.documents.list() shows its patterns; source=NAME makes it a source of its own",
            )
    return patterns
