"""What `.gitignore` files exclude from a folder, as git reads them: nested ones, negation, folders above.

A rule applies below its file; the nearest file with a rule for a path decides, and nothing below an excluded
folder is looked at (https://git-scm.com/docs/gitignore). Rules are a stranger's patterns, some of which take
for ever: the reader process matches them, a folder's entries at a time.
"""

import os
from collections.abc import Callable, Iterable
from functools import partial
from typing import NamedTuple

from memlog.eventlog import disk
from memlog.service.bounded_process.protocol import ReaderFailed
from memlog.service.documents.readers import Readers
from memlog.service.documents.root import Root
from memlog.service.documents.text_files import GONE, Unfit, read_bytes

GITIGNORE = ".gitignore"


class Rules(NamedTuple):
    """The rules of one file.

    file: its path below the root. prefix: the length of the part of a path below the root that is above the
    file. above: the part of the path between the file and the root, where the file is above the root.
    """

    file: str
    text: bytes
    prefix: int
    above: str


def rules_within(root: Root, folder: str) -> list[Rules]:
    """The rules of a folder below `root`, if it has some.

    Raises:
        Unfit: its file cannot be read.
    """
    prefix = f"{folder}/" if folder else ""
    text = _text(lambda: root.open(prefix + GITIGNORE))
    return [] if text is None else [Rules(prefix + GITIGNORE, text, len(prefix), "")]


def rules_above(root: Root) -> list[Rules]:
    """The rules of the repository that `root` is in, from the folders above it, the nearest first.

    Raises:
        Unfit: one of the files cannot be read.
    """
    path = root.path.resolve()
    folders = list(path.parents)
    top = next((number for number, each in enumerate(folders) if (each / ".git").exists()), None)
    if top is None or (path / ".git").exists():
        return []
    found = []
    for number, folder in enumerate(folders[: top + 1], start=1):
        if (text := _text(partial(disk.open, folder / GITIGNORE, disk.READ))) is not None:
            above = f"{path.relative_to(folder).as_posix()}/"
            found.append(Rules("../" * number + GITIGNORE, text, 0, above))
    return found


def excluded(
    paths: Iterable[str], rules: Iterable[Rules], readers: Readers, refuse: Callable[[str, str], None]
) -> set[str]:
    """The paths that rules exclude. A folder's path ends with `/`; that of the root is empty.

    rules: the nearest first. refuse: called with each file whose rules cannot be followed, and why.
    """
    found, undecided = set(), list(paths)
    for each in rules:
        seen = [os.fsencode(each.above + path[each.prefix :]) for path in undecided]
        try:
            verdicts = dict(zip(undecided, readers.verdicts(each.text, seen), strict=True))
        except ReaderFailed as failed:
            refuse(each.file, str(failed))
            continue
        found |= {path for path, verdict in verdicts.items() if verdict}
        undecided = [path for path, verdict in verdicts.items() if verdict is None]
    return found


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
