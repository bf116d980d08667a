"""What of a folder is taken as documents: patterns, and the walk."""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cached_property
from glob import has_magic
from pathlib import Path, PurePosixPath

import msgspec

from memlog.eventlog.errors import BadInput
from memlog.eventlog.events import SourceKind
from memlog.eventlog.streams import shown
from memlog.query.documents import Registered
from memlog.service.documents.ignoring import Ignoring, above
from memlog.service.documents.text_files import Reason, Unfit, filetype

_Parts = tuple[str, ...]
_ANY_FOLDERS = "**"
_ESCAPED = re.compile(r"\[[*?[]\]")


class Skipped(msgspec.Struct, frozen=True):
    """A file or folder that was left out, by its path below the root; `detail` is what the system says."""

    file: str
    reason: Reason
    detail: str | None = None


@dataclass(frozen=True)
class Patterns:
    """Globs, relative to the root. `*` and `?` match within a name, `**` any number of folders; what matches
    a folder holds for all below it.

    include: what is taken; where none is given, files of the types that are read unasked.
    exclude: what is not.

    Raises:
        BadInput: a pattern cannot match anything below the root.
    """

    include: Sequence[str] = ()
    exclude: Sequence[str] = ()

    @classmethod
    def of(cls, source: Registered) -> "Patterns":
        """Those that a source is registered with."""
        return cls(tuple(source.include), tuple(source.exclude))

    def __post_init__(self) -> None:
        for pattern in (*self.include, *self.exclude):
            parts = PurePosixPath(pattern).parts
            if not parts or parts[0] == "/" or ".." in parts:
                raise BadInput(
                    f"the pattern {pattern!r} matches nothing below the folder",
                    hint="patterns are relative to the folder, such as 'guide/*.md' or '**/*.py'",
                )

    def ask_for(self, file: str) -> bool:
        """Whether a file is asked for; without `include` every file is."""
        return not self.excludes(file) and (not self.include or _any_matches(file, self._include))

    def reach_into(self, folder: str) -> bool:
        """Whether a file below a folder may be asked for."""
        return not self.excludes(folder) and (
            not self.include or any(_reached(folder.split("/"), pattern) for pattern in self._include)
        )

    def excludes(self, path: str) -> bool:
        """Whether a file, or a folder with all below it, is left out."""
        return _any_matches(path, self._exclude)

    def name(self, path: str) -> bool:
        """Whether they include a path, one above it or one below it by its name, without any wildcard."""
        parts = tuple(path.split("/")) if self._named else ()
        return any(parts[: len(named)] == named[: len(parts)] for named in self._named)

    @property
    def are_names(self) -> bool:
        """Whether they include files of the root that are named one by one, and nothing else."""
        return bool(self.include) and not any(
            "/" in pattern or has_magic(_ESCAPED.sub("", pattern)) for pattern in self.include
        )

    @cached_property
    def _named(self) -> list[_Parts]:
        plain = [each for each in self.include if not has_magic(_ESCAPED.sub("", each))]
        return [PurePosixPath(_ESCAPED.sub(lambda match: match[0][1], each)).parts for each in plain]

    @cached_property
    def _include(self) -> list[_Parts]:
        return [PurePosixPath(pattern).parts for pattern in self.include]

    @cached_property
    def _exclude(self) -> list[_Parts]:
        return [PurePosixPath(pattern).parts for pattern in self.exclude]


@dataclass
class Walk:
    """The files of a folder that are asked for, by their paths below it, in order; and what was skipped."""

    files: list[str] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)


def walk(root: Path, patterns: Patterns, store: Path, *, kind: SourceKind) -> Walk:
    """What of `root` is asked for. Of no file but `.gitignore` is anything read, and no link is followed.

    store: a folder that is left out. kind: of the source; for memories `.gitignore` does not count.

    Raises:
        OSError: the root cannot be listed.
    """
    walking = _Walking(root, patterns, store, reads_rules=kind == "docs")
    waiting = [("", walking.rules_above())]
    while waiting:
        # The first folder is to be popped next.
        waiting += reversed(walking.enter(*waiting.pop()))
    return walking.found


class _Walking:
    """One walk. found: what was met so far."""

    def __init__(self, root: Path, patterns: Patterns, store: Path, *, reads_rules: bool) -> None:
        self.found = Walk()
        self._reads_rules = reads_rules
        self._root = root
        self._patterns = patterns
        self._store = store

    def rules_above(self) -> Ignoring:
        """The rules of the folders above the root."""
        if not self._reads_rules:
            return Ignoring()
        try:
            return above(self._root)
        except Unfit as unfit:
            self._skip("..", unfit.reason, unfit.detail)
            return Ignoring()

    def enter(self, folder: str, ignoring: Ignoring) -> list[tuple[str, Ignoring]]:
        """Put the entries of a folder into `found`, and return the folders to go into, with their rules."""
        try:
            with os.scandir(self._root / folder) as entries:
                listed = sorted(entries, key=lambda entry: entry.name)
        except OSError as error:
            if not folder:
                raise
            self._cannot_be_listed(folder, error)
            return []
        if self._reads_rules and any(entry.name == ".gitignore" for entry in listed):
            ignoring = self._rules_within(folder, ignoring)
        return [(path, ignoring) for path in self._sorted_in(folder, listed, ignoring)]

    def _cannot_be_listed(self, folder: str, error: OSError) -> None:
        # It may have been removed since the folder above it was listed.
        if not isinstance(error, FileNotFoundError | NotADirectoryError):
            self._skip(folder, "unreadable", error.strerror)

    def _rules_within(self, folder: str, ignoring: Ignoring) -> Ignoring:
        try:
            return ignoring.within(self._root, folder)
        except Unfit as unfit:
            self._skip(f"{folder}/.gitignore" if folder else ".gitignore", unfit.reason, unfit.detail)
            return ignoring

    def _sorted_in(
        self, folder: str, entries: Iterable["os.DirEntry[str]"], ignoring: Ignoring
    ) -> Iterator[str]:
        """Put the files among the entries of a folder into `found`, and yield the folders."""
        for entry in entries:
            path = f"{folder}/{entry.name}" if folder else entry.name
            is_folder = entry.is_dir(follow_symlinks=False)
            if not (self._patterns.reach_into(path) if is_folder else self._patterns.ask_for(path)):
                continue
            reason = self._why_not(entry, path, ignoring)
            if reason is not None:
                self._skip(path, reason)
            elif is_folder:
                yield path
            else:
                self.found.files.append(path)

    def _why_not(self, entry: "os.DirEntry[str]", path: str, ignoring: Ignoring) -> Reason | None:
        """Why an entry is left out, as far as can be known without opening it."""
        if shown(entry.name) != entry.name:
            return "not_utf8"
        if entry.is_symlink():
            return "link"
        is_folder = entry.is_dir(follow_symlinks=False)
        if not self._patterns.name(path):
            if entry.name.startswith("."):
                return "hidden"
            if ignoring.leaves_out(path, is_folder=is_folder):
                return "ignored"
        if is_folder:
            return "store" if _is_same(entry.path, self._store) else None
        if not entry.is_file(follow_symlinks=False):
            return "special"
        return None if self._patterns.include or filetype(entry.name) else "type"

    def _skip(self, path: str, reason: Reason, detail: str | None = None) -> None:
        self.found.skipped.append(Skipped(shown(path), reason, detail))


def _is_same(folder: str, store: Path) -> bool:
    return store.exists() and store.samefile(folder)


def _any_matches(path: str, patterns: list[_Parts]) -> bool:
    """Whether a path, or a folder above it, matches one of them."""
    return bool(patterns) and any(len(pattern) in _reached(path.split("/"), pattern) for pattern in patterns)


def _reached(parts: Sequence[str], pattern: _Parts) -> set[int]:
    """How many parts of a pattern a path may have matched: all where it, or a folder above it, matches the
    pattern; none where nothing below it can.

    All ways at once, since trying one after the other takes for ever where a pattern has many `**`.
    """
    reached = _past_any_folders({0}, pattern)
    for part in parts:
        if len(pattern) in reached:
            break
        stays = {at for at in reached if pattern[at] == _ANY_FOLDERS}
        goes_on = {at + 1 for at in reached - stays if fnmatchcase(part, pattern[at])}
        reached = _past_any_folders(stays | goes_on, pattern)
    return reached


def _past_any_folders(reached: set[int], pattern: _Parts) -> set[int]:
    """`reached`, and behind each `**`, which matches no folder too."""
    for at, part in enumerate(pattern):
        if at in reached and part == _ANY_FOLDERS:
            reached = reached | {at + 1}
    return reached
