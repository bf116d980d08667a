"""What `.gitignore` files leave out of a folder, as git reads them: nested ones, negation, folders above.

A rule holds for what is below its file; the nearest file that says something of a path decides, and nothing
below a folder that is left out is looked at (https://git-scm.com/docs/gitignore). Rules are a stranger's
patterns, some of which take for ever: the reader process matches them, a folder's entries at a time.
"""

import os
from collections.abc import Callable, Iterable
from functools import partial
from typing import NamedTuple

from memlog.eventlog import disk
from memlog.service.bounded_process.protocol import RequestFailed
from memlog.service.documents.readers import Readers
from memlog.service.documents.root import Root
from memlog.service.documents.text_files import GONE, Unfit, read_bytes

_NAME = ".gitignore"


class _Rules(NamedTuple):
    """The rules of one file. file: its path below the root. prefix: the length of what a path below the root
    has in front of what they see; above: what stands above the root, and is in front of the path for them."""

    file: str
    text: bytes
    prefix: int
    above: str


class Ignoring:
    """The rules that hold in a folder and below it; the nearest come first.

    refuse: called with the file whose rules cannot be followed, and why, whenever that is met.
    """

    def __init__(
        self, readers: Readers, refuse: Callable[[str, str], None], rules: tuple[_Rules, ...] = ()
    ) -> None:
        self._readers = readers
        self._refuse = refuse
        self._rules = rules

    def within(self, root: Root, folder: str) -> "Ignoring":
        """The rules that hold in `folder` below `root`, where these hold above it.

        Raises:
            Unfit: its file cannot be read.
        """
        file = f"{folder}/{_NAME}" if folder else _NAME
        text = _text(lambda: root.open(file))
        prefix = len(folder) + 1 if folder else 0
        return self if text is None else self._with((_Rules(file, text, prefix, ""), *self._rules))

    def above(self, root: Root) -> "Ignoring":
        """The rules of the repository that `root` is in, from the folders above it.

        Rules that exclude the root itself are ignored: the user named the folder.

        Raises:
            Unfit: one of the files cannot be read.
        """
        path = root.path.resolve()
        folders = list(path.parents)
        top = next((number for number, each in enumerate(folders) if (each / ".git").exists()), None)
        if top is None or (path / ".git").exists():
            return self
        found = []
        for number, folder in enumerate(folders[: top + 1], start=1):
            if (text := _text(partial(disk.open, folder / _NAME, disk.READ))) is not None:
                seen = f"{path.relative_to(folder).as_posix()}/"
                found.append(_Rules("../" * number + _NAME, text, 0, seen))
        rules = self._with(tuple(found))
        return self if rules.left_out([""]) else rules

    def left_out(self, paths: Iterable[str]) -> set[str]:
        """Those of `paths` that are left out. A folder's path ends with `/`; that of the root is empty."""
        found, undecided = set(), list(paths)
        for rules in self._rules:
            verdicts = self._verdicts(rules, undecided)
            found |= {path for path, verdict in zip(undecided, verdicts, strict=True) if verdict}
            undecided = [path for path, verdict in zip(undecided, verdicts, strict=True) if verdict is None]
        return found

    def _verdicts(self, rules: _Rules, paths: list[str]) -> list[bool | None]:
        try:
            return self._readers.verdicts(
                rules.text, [os.fsencode(rules.above + path[rules.prefix :]) for path in paths]
            )
        except RequestFailed as failed:
            self._refuse(rules.file, str(failed))
            return [None] * len(paths)

    def _with(self, rules: tuple[_Rules, ...]) -> "Ignoring":
        return Ignoring(self._readers, self._refuse, rules)


def _text(opened: Callable[[], int]) -> bytes | None:
    """The bytes of a file; None if it does not exist.

    Raises:
        Unfit: it is there and cannot be read.
    """
    try:
        return read_bytes(opened)[0]
    except GONE:
        return None
    except Unfit as unfit:
        if unfit.reason == "unreadable":
            raise
        return None
