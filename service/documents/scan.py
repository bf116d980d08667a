"""Selects the files in a folder that become documents: patterns, .gitignore rules, and the walk."""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property, partial
from glob import has_magic
from pathlib import Path, PurePosixPath
from typing import NamedTuple, TypeAlias

import msgspec

from memlog.eventlog.errors import BadInput
from memlog.eventlog.events import SourceRegistered
from memlog.eventlog.files import disk
from memlog.eventlog.log.streams import escape_invalid_utf8
from memlog.query.documents import Registered
from memlog.service.documents.text_files import (
    GONE,
    Reason,
    Root,
    Unfit,
    filetype_of_suffix,
    read_bytes_and_look,
)
from memlog.service.engine.sandbox import ReaderFailed, Readers

# A rule applies below its file; the nearest file with a matching rule decides, and nothing below an excluded
# folder is visited (https://git-scm.com/docs/gitignore). Rules are untrusted patterns, and some never finish:
# the reader process matches them, a folder's entries at a time.

GITIGNORE = ".gitignore"


class Rules(NamedTuple):
    """The rules in one `.gitignore`.

    file: its path relative to the root. prefix: the length of the path to its folder.
    above: the path from its folder down to the root, if it is above the root.
    """

    file: str
    text: bytes
    prefix: int
    above: str


def read_rules_within(root: Root, folder: str) -> list[Rules]:
    """Return the rules in `folder` below `root`, if it has a `.gitignore`.

    Raises:
        Unfit: the `.gitignore` is unreadable.
    """
    prefix = f"{folder}/" if folder else ""
    text = _read_if_present(lambda: root.open_file(prefix + GITIGNORE))
    return [] if text is None else [Rules(prefix + GITIGNORE, text, len(prefix), "")]


def read_rules_above(root: Root) -> list[Rules]:
    """Return the rules of the folders above `root` in its Git repository, nearest first.

    Raises:
        Unfit: a file is unreadable.
    """
    path = root.path.resolve()
    folders = list(path.parents)
    top = next((number for number, each in enumerate(folders) if (each / ".git").exists()), None)
    if top is None or (path / ".git").exists():
        return []
    found = []
    for number, folder in enumerate(folders[: top + 1], start=1):
        if (text := _read_if_present(partial(disk.open, folder / GITIGNORE, disk.READ))) is not None:
            above = f"{path.relative_to(folder).as_posix()}/"
            found.append(Rules("../" * number + GITIGNORE, text, 0, above))
    return found


def find_excluded_paths(
    paths: Iterable[str], rules: Iterable[Rules], readers: Readers, refuse: Callable[[str, str], None]
) -> set[str]:
    """Return the paths that the rules exclude. Paths of folders end with `/`; the root's path is "".

    rules: nearest first. refuse: called with each .gitignore that cannot be applied, and the reason.
    """
    found, undecided = set(), list(paths)
    for each in rules:
        seen = [os.fsencode(each.above + path[each.prefix :]) for path in undecided]
        try:
            verdicts = dict(zip(undecided, readers.match_rules(each.text, seen), strict=True))
        except ReaderFailed as failed:
            refuse(each.file, str(failed))
            continue
        found |= {path for path, verdict in verdicts.items() if verdict}
        undecided = [path for path, verdict in verdicts.items() if verdict is None]
    return found


def _read_if_present(opened: Callable[[], int]) -> bytes | None:
    """Return the bytes of a file; None if it does not exist, or cannot contain rules.

    Raises:
        Unfit: the file is unreadable.
    """
    try:
        return read_bytes_and_look(opened)[0]
    except GONE:
        return None
    except Unfit as unfit:
        if unfit.reason == "unreadable":
            raise
        return None


_Parts = tuple[str, ...]
_Entry: TypeAlias = "os.DirEntry[str]"
_Entries = dict[str, _Entry]
"""A folder's entries, keyed by path below the root."""

_ANY_FOLDERS = "**"
_ESCAPED = re.compile(r"\[[*?[]\]")


class SkippedFile(msgspec.Struct, frozen=True):
    """A file or folder that was skipped. file: its path below the root. detail: the system's message."""

    file: str
    reason: Reason
    detail: str | None = None


@dataclass(frozen=True)
class Patterns:
    """Globs relative to the root. `*` and `?` match within a name, `**` any number of folders; a pattern that
    matches a folder covers everything below it.

    include: files to index; if empty, all files of the default types. exclude: files to skip.

    Raises:
        BadInput: a pattern cannot match anything below the root.
    """

    include: Sequence[str] = ()
    exclude: Sequence[str] = ()

    @classmethod
    def make_patterns_of_source(cls, source: Registered | SourceRegistered) -> "Patterns":
        """Return a registered source's patterns."""
        return cls(tuple(source.include), tuple(source.exclude))

    def __post_init__(self) -> None:
        for pattern in (*self.include, *self.exclude):
            parts = PurePosixPath(pattern).parts
            if not parts or parts[0] == "/" or ".." in parts:
                raise BadInput(
                    f"the pattern {pattern!r} matches nothing below the folder",
                    hint="use patterns relative to the folder, for example 'guide/*.md' or '**/*.py'",
                )

    def includes(self, file: str) -> bool:
        """Whether a file is included: it is not excluded, and `include` matches it or is empty."""
        return not self.excludes(file) and (not self.include or self._include.matches_path(file))

    def may_include_below(self, folder: str) -> bool:
        """Whether any file below a folder may be included."""
        return not self.excludes(folder) and (not self.include or self._include.may_match_below(folder))

    def excludes(self, path: str) -> bool:
        """Whether a path is excluded; for a folder, this includes everything below it."""
        return self._exclude.matches_path(path)

    def names_path(self, path: str) -> bool:
        """Whether a pattern without wildcards names a path, or a path above or below it."""
        return self._include.names_path(path)

    @property
    def are_only_file_names(self) -> bool:
        """Whether all patterns are just names of files in the root."""
        return bool(self.include) and all(_has_no_wildcard(each) and "/" not in each for each in self.include)

    @cached_property
    def _include(self) -> "_Globs":
        return _Globs(self.include)

    @cached_property
    def _exclude(self) -> "_Globs":
        return _Globs(self.exclude)


class _Globs:
    """A set of globs. Those without wildcards are looked up in a set, since there may be one per file."""

    def __init__(self, globs: Sequence[str]) -> None:
        self._wild = [PurePosixPath(each).parts for each in globs if not _has_no_wildcard(each)]
        self._plain = {
            PurePosixPath(_ESCAPED.sub(lambda match: match[0][1], each)).parts
            for each in globs
            if _has_no_wildcard(each)
        }
        self._above = {parts[:count] for parts in self._plain for count in range(1, len(parts))}

    def matches_path(self, path: str) -> bool:
        """Whether a path, or a folder above it, matches."""
        parts = tuple(path.split("/"))
        return self._is_path_listed(parts) or any(
            len(glob) in _count_matched_parts(parts, glob) for glob in self._wild
        )

    def may_match_below(self, folder: str) -> bool:
        """Whether anything below a folder may match."""
        return self.names_path(folder) or any(
            _count_matched_parts(folder.split("/"), glob) for glob in self._wild
        )

    def names_path(self, path: str) -> bool:
        """Whether a glob without wildcards names a path, or a path above or below it."""
        parts = tuple(path.split("/"))
        return parts in self._above or self._is_path_listed(parts)

    def _is_path_listed(self, parts: _Parts) -> bool:
        return bool(self._plain) and any(parts[:count] in self._plain for count in range(1, len(parts) + 1))


def _has_no_wildcard(glob: str) -> bool:
    return not has_magic(_ESCAPED.sub("", glob))


def walk_source_folder(
    root: Root, source: Registered | SourceRegistered, store: Path, readers: Readers
) -> "Walk":
    """Walk through `root`, opening no file except `.gitignore` and following no link, and return the walk.

    store: a folder to skip. In a source of memories, `.gitignore` has no effect.

    Raises:
        OSError: the root cannot be listed.
    """
    found = Walk(
        root, Patterns.make_patterns_of_source(source), store, readers if source.kind == "docs" else None
    )
    found.walk_all_folders()
    return found


class Walk:
    """A walk through a folder.

    files: the paths of the included files below the root, sorted. skipped: all other entries.
    readers: match the rules of `.gitignore`; None if the rules do not apply.
    """

    def __init__(self, root: Root, patterns: Patterns, store: Path, readers: Readers | None) -> None:
        self.files: list[str] = []
        self.skipped: list[SkippedFile] = []
        self._root = root
        self._patterns = patterns
        self._store = store.stat() if store.exists() else None
        self._readers = readers
        self._refused: set[str] = set()

    def walk_all_folders(self) -> None:
        """Walk through all folders.

        Raises OSError if the root cannot be listed.
        """
        waiting = [("", self._find_rules_above())]
        while waiting:
            # Reversed, so that the first folder is popped next.
            waiting += reversed(self._list_folders_to_enter(*waiting.pop()))

    def _find_rules_above(self) -> list[Rules]:
        """Return the rules above the root; [] if they exclude the root itself, which the user named."""
        if self._readers is None:
            return []
        try:
            rules = read_rules_above(self._root)
        except Unfit as unfit:
            self._record_skipped_path("..", unfit.reason, unfit.detail)
            return []
        return [] if find_excluded_paths([""], rules, self._readers, self._report_unusable) else rules

    def _list_folders_to_enter(self, folder: str, rules: list[Rules]) -> list[tuple[str, list[Rules]]]:
        """Classify the entries of a folder, and return the folders to enter, with their rules."""
        try:
            listed = self._root.list_entries(folder)
        except OSError as error:
            if not folder:
                raise
            if not isinstance(error, GONE):
                self._record_skipped_path(folder, "unreadable", error.strerror)
            return []
        below = f"{folder}/" if folder else ""
        if self._readers is not None and any(entry.name == GITIGNORE for entry in listed):
            try:
                rules = read_rules_within(self._root, folder) + rules
            except Unfit as unfit:
                self._record_skipped_path(below + GITIGNORE, unfit.reason, unfit.detail)
        entries = {below + entry.name: entry for entry in listed}
        return [(path, rules) for path in self._classify_entries(entries, rules)]

    def _report_unusable(self, file: str, why: str) -> None:
        """Report, once per file, that the rules of a .gitignore are not applied."""
        if file not in self._refused:
            self._refused.add(file)
            self._record_skipped_path(file, "limit", f"its rules are not applied: {why}")

    def _classify_entries(self, entries: _Entries, rules: list[Rules]) -> Iterator[str]:
        """Add the files of a folder to `files` or `skipped`, and yield the folders to enter."""
        matched = {path: entry for path, entry in entries.items() if self._matches_patterns(path, entry)}
        reasons = {path: self._why_hidden_or_link_is_skipped(path, entry) for path, entry in matched.items()}
        seen = {path: entry for path, entry in matched.items() if reasons[path] is None}
        reasons |= dict.fromkeys(self._find_ignored(seen, rules), "ignored")
        for path, entry in matched.items():
            reason = reasons[path] or self._why_type_is_skipped(entry)
            if reason is not None:
                self._record_skipped_path(path, reason)
            elif entry.is_dir(follow_symlinks=False):
                yield path
            else:
                self.files.append(path)

    def _matches_patterns(self, path: str, entry: _Entry) -> bool:
        is_folder = _may_be_folder(entry) if entry.is_symlink() else entry.is_dir(follow_symlinks=False)
        return self._patterns.may_include_below(path) if is_folder else self._patterns.includes(path)

    def _why_hidden_or_link_is_skipped(self, path: str, entry: _Entry) -> Reason | None:
        """Return why a hidden entry or a link is skipped, regardless of the rules; otherwise None."""
        if escape_invalid_utf8(entry.name) != entry.name:
            return "not_utf8"
        if entry.is_symlink():
            return "link"
        return "hidden" if entry.name.startswith(".") and not self._patterns.names_path(path) else None

    def _find_ignored(self, entries: _Entries, rules: list[Rules]) -> Iterator[str]:
        """Yield the paths that the rules exclude, except paths named by a pattern."""
        if self._readers is None:
            return
        paths = {
            f"{path}/" if entry.is_dir(follow_symlinks=False) else path: path
            for path, entry in entries.items()
            if not self._patterns.names_path(path)
        }
        yield from (
            paths[each] for each in find_excluded_paths(paths, rules, self._readers, self._report_unusable)
        )

    def _why_type_is_skipped(self, entry: _Entry) -> Reason | None:
        """Return why an entry is skipped because of its type; otherwise None."""
        if entry.is_dir(follow_symlinks=False):
            return "store" if self._is_folder_of_store(entry) else None
        if not entry.is_file(follow_symlinks=False):
            return "special"
        return None if self._patterns.include or filetype_of_suffix(entry.name) else "type"

    def _is_folder_of_store(self, entry: _Entry) -> bool:
        try:
            return self._store is not None and os.path.samestat(
                self._store, entry.stat(follow_symlinks=False)
            )
        except OSError:  # removed meanwhile
            return False

    def _record_skipped_path(self, path: str, reason: Reason, detail: str | None = None) -> None:
        self.skipped.append(SkippedFile(escape_invalid_utf8(path), reason, detail))


def _may_be_folder(link: _Entry) -> bool:
    """Whether a link may lead to a folder: it does not lead to a file, or is broken."""
    try:
        return not link.is_file()
    except OSError:  # a cycle
        return True


def _count_matched_parts(parts: Sequence[str], pattern: _Parts) -> set[int]:
    """Return how many parts of the pattern the path may have matched; there may be several possibilities.

    They include the number of all parts if the path, or a folder above it, matches; there are none if
    nothing below can match. Possible matches are followed in parallel: with many `**`, backtracking is
    exponential.
    """
    reached = _add_positions_after_wildcards({0}, pattern)
    for part in parts:
        if len(pattern) in reached:
            break
        stays = {at for at in reached if pattern[at] == _ANY_FOLDERS}
        goes_on = {at + 1 for at in reached - stays if fnmatchcase(part, pattern[at])}
        reached = _add_positions_after_wildcards(stays | goes_on, pattern)
    return reached


def _add_positions_after_wildcards(reached: set[int], pattern: _Parts) -> set[int]:
    """Return `reached` and the positions after each `**`, which may also match no folder."""
    further = set(reached)
    for at, part in enumerate(pattern):
        if part == _ANY_FOLDERS and at in further:
            further.add(at + 1)
    return further
