"""What of a folder is taken as documents: patterns, and the walk."""

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cached_property
from glob import has_magic
from pathlib import Path, PurePosixPath

import msgspec

from memlog.eventlog.errors import BadInput
from memlog.eventlog.streams import shown
from memlog.service.text_files import Reason, filetype

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
        parts = PurePosixPath(file).parts
        return not self.excludes(file) and (not self.include or _any_matches(parts, self._include))

    def reach_into(self, folder: str) -> bool:
        """Whether a file below a folder may be asked for."""
        parts = PurePosixPath(folder).parts
        return not self.excludes(folder) and (
            not self.include or any(_reached(parts, pattern) for pattern in self._include)
        )

    def excludes(self, path: str) -> bool:
        """Whether a file, or a folder with all below it, is left out."""
        return _any_matches(PurePosixPath(path).parts, self._exclude)

    @property
    def are_names(self) -> bool:
        """Whether they include files of the root that are named one by one, and nothing else."""
        return bool(self.include) and not any(
            "/" in pattern or has_magic(_ESCAPED.sub("", pattern)) for pattern in self.include
        )

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


def walk(root: Path, patterns: Patterns, store: Path) -> Walk:
    """What of `root` is asked for. Nothing is opened, and no link is followed.

    store: a folder that is left out.

    Raises:
        OSError: the root cannot be listed.
    """
    found = Walk()
    waiting = [""]
    while waiting:
        folder = waiting.pop()
        try:
            with os.scandir(root / folder) as entries:
                listed = sorted(entries, key=lambda entry: entry.name)
        except (FileNotFoundError, NotADirectoryError):
            if not folder:
                raise
            # It was removed since the folder above it was listed.
            continue
        except OSError as error:
            if not folder:
                raise
            found.skipped.append(Skipped(folder, "unreadable", error.strerror))
            continue
        # The first folder is to be popped next.
        waiting += reversed(_sorted_in(found, folder, listed, patterns, store))
    return found


def _sorted_in(
    found: Walk, folder: str, entries: Iterable["os.DirEntry[str]"], patterns: Patterns, store: Path
) -> list[str]:
    """Put the entries of a folder into `found`, and return the folders to go into."""
    deeper = []
    for entry in entries:
        path = f"{folder}/{entry.name}" if folder else entry.name
        is_folder = entry.is_dir(follow_symlinks=False)
        if not (patterns.reach_into(path) if is_folder else patterns.ask_for(path)):
            continue
        reason = _why_not(entry, store, is_any_type=bool(patterns.include))
        if reason is not None:
            found.skipped.append(Skipped(shown(path), reason))
        elif is_folder:
            deeper.append(path)
        else:
            found.files.append(path)
    return deeper


def _why_not(entry: "os.DirEntry[str]", store: Path, *, is_any_type: bool) -> Reason | None:
    """Why an entry is left out, as far as can be known without opening it."""
    is_folder = entry.is_dir(follow_symlinks=False)
    if shown(entry.name) != entry.name:
        return "not_utf8"
    if entry.is_symlink():
        return "link"
    if entry.name.startswith("."):
        return "hidden"
    if is_folder:
        return "store" if _is_same(entry.path, store) else None
    if not entry.is_file(follow_symlinks=False):
        return "special"
    return None if is_any_type or filetype(entry.name) else "type"


def _is_same(folder: str, store: Path) -> bool:
    return store.exists() and store.samefile(folder)


def _any_matches(parts: _Parts, patterns: list[_Parts]) -> bool:
    """Whether a path, or a folder above it, matches one of them."""
    return any(len(pattern) in _reached(parts, pattern) for pattern in patterns)


def _reached(parts: _Parts, pattern: _Parts) -> set[int]:
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
