"""Copies files between stores as `rsync -a --update` or `--append-verify` does, whole or the beginning.

With `--update`, rsync skips a file that has a later mtime at the target, or the same mtime and size. It
compares whole seconds, whatever `--modify-window` is, so no file changes twice within one here. What
`--partial` leaves of a file has the mtime 0.
"""

import os
from bisect import bisect_right
from collections import defaultdict
from itertools import permutations
from pathlib import Path

_SECOND = 1_000_000_000
_EARLIEST_TRUE_TIME = 1_000_000_000 * _SECOND
"""A file with a later mtime was changed since `FileSync.stamp` was last called."""


class FileSync:
    """Copies files between folders, each a copy of the others.

    appends: as `rsync -a --append-verify`: only what is longer is copied, behind what stands there; once that
        is whole, it is compared, and copied anew where it differs.
    versions: by file the (mtime, size) of each version that its writer made.
    """

    def __init__(self, *, appends: bool = False) -> None:
        self._appends = appends
        self.versions: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)

    def stamp(self, folder: Path, second: int) -> None:
        """Give what was changed in `folder` the mtime `second`, later than that of any other file."""
        for name in files_in(folder):
            status = (folder / name).stat()
            if status.st_mtime_ns > _EARLIEST_TRUE_TIME:
                _set_mtime(folder / name, second * _SECOND)
                self.versions[name].append((second * _SECOND, status.st_size))

    def newer(self, source: Path, target: Path) -> list[str]:
        """The files that are missing at the target, or older there; with `appends`, or shorter."""
        is_newer = _is_longer if self._appends else _is_newer
        return [name for name in files_in(source) if is_newer(source / name, target / name)]

    def longer(self, source: Path, target: Path) -> list[tuple[str, int, int]]:
        """Those that are longer at the source, with both lengths."""
        found = []
        for name in self.newer(source, target):
            size = (target / name).stat().st_size if (target / name).exists() else 0
            found.append((name, size, (source / name).stat().st_size))
        return [each for each in found if each[1] < each[2]]

    def copy(
        self, name: str, source: Path, target: Path, size: int | None = None, *, in_place: bool = False
    ) -> None:
        """Copy a file, or its first `size` bytes.

        in_place: write into the file that stands there, as `--inplace` does.
        """
        data = (source / name).read_bytes()
        if self._appends and size is not None and (target / name).exists():
            standing = (target / name).read_bytes()
            data = standing + data[len(standing) :]
        if size is None:
            _write(target / name, data, (source / name).stat().st_mtime_ns, in_place)
        else:
            _write(target / name, data[:size], self._mtime(name, source, size), in_place)

    def copy_all(self, folders: list[Path]) -> None:
        """Copy every file of each folder to all others, until there is nothing to copy."""
        pairs = list(permutations(folders, 2))
        while sum(self.copy_to(source, target) for source, target in pairs):
            pass

    def copy_to(self, source: Path, target: Path) -> int:
        """Copy every file that is newer; how many were."""
        names = self.newer(source, target)
        for name in names:
            self.copy(name, source, target)
        return len(names)

    def _mtime(self, name: str, source: Path, size: int) -> int:
        """That of the beginning of a file: later than the last version which was no longer, and earlier than
        the next one. So no version takes the place of a longer one, whatever goes which way."""
        known = [
            version for version in self.versions[name] if version[0] <= (source / name).stat().st_mtime_ns
        ]
        shorter = known[: bisect_right(known, size, key=lambda version: version[1])]
        mtime, before = shorter[-1] if shorter else (0, 0)
        return mtime + size - before


def files_in(folder: Path) -> list[str]:
    """The files below `folder`, by their paths from there."""
    start = len(str(folder)) + 1
    return sorted(f"{within}/{name}"[start:] for within, _, names in os.walk(folder) for name in names)


def _is_newer(source: Path, target: Path) -> bool:
    if not target.exists():
        return True
    ours, theirs = source.stat(), target.stat()
    is_same = (ours.st_mtime_ns, ours.st_size) == (theirs.st_mtime_ns, theirs.st_size)
    return ours.st_mtime_ns >= theirs.st_mtime_ns and not is_same


def _is_longer(source: Path, target: Path) -> bool:
    return not target.exists() or source.stat().st_size > target.stat().st_size


def _write(path: Path, data: bytes, mtime: int, in_place: bool) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if in_place and path.exists():
        with path.open("r+b") as file:
            file.write(data)
            file.truncate()
    else:
        draft = path.with_name(f".{path.name}.draft")
        draft.write_bytes(data)
        draft.replace(path)
    _set_mtime(path, mtime)


def _set_mtime(path: Path, mtime: int) -> None:
    os.utime(path, ns=(mtime, mtime))
