"""What `.gitignore` files leave out of a folder, as git reads them: nested ones, negation, folders above.

A rule holds for what is below its file; the nearest file that says something of a path decides, and nothing
below a folder that is left out is looked at (https://git-scm.com/docs/gitignore).
"""

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from memlog.service.documents import text_files
from memlog.service.documents.text_files import Unfit

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

_NAME = ".gitignore"


class _Rules(NamedTuple):
    """The rules of one file. prefix: the length of what a path below the root has in front of what they see;
    above: what stands above the root, and is in front of the path for them."""

    spec: "GitIgnoreSpec"
    prefix: int
    above: str


class Ignoring:
    """The rules that hold in a folder and below it; the nearest come first."""

    def __init__(self, rules: tuple[_Rules, ...] = ()) -> None:
        self._rules = rules

    def within(self, root: Path, folder: str) -> "Ignoring":
        """The rules that hold in `folder` below `root`, where these hold above it.

        Raises:
            Unfit: its file cannot be read.
        """
        spec = _spec(f"{root}/{folder}/{_NAME}" if folder else f"{root}/{_NAME}")
        prefix = len(folder) + 1 if folder else 0
        return self if spec is None else Ignoring((_Rules(spec, prefix, ""), *self._rules))

    def leaves_out(self, path: str, *, is_folder: bool) -> bool:
        """Whether a file or folder below the root is left out."""
        for rules in self._rules:
            seen = rules.above + path[rules.prefix :] + ("/" if is_folder else "")
            if (verdict := rules.spec.check_file(seen).include) is not None:
                return verdict
        return False


def above(root: Path) -> Ignoring:
    """The rules of the repository that `root` is in, from the folders above it.

    Where they leave the root itself out, they say nothing: whoever names a folder wants it.

    Raises:
        Unfit: one of the files cannot be read.
    """
    folders = list(root.resolve().parents)
    top = next((number for number, each in enumerate(folders) if (each / ".git").exists()), None)
    if top is None or (root / ".git").exists():
        return Ignoring()
    found = []
    for folder in folders[: top + 1]:
        if (spec := _spec(str(folder / _NAME))) is not None:
            found.append(_Rules(spec, 0, f"{root.resolve().relative_to(folder).as_posix()}/"))
    rules = Ignoring(tuple(found))
    return Ignoring() if rules.leaves_out("", is_folder=False) else rules


def _spec(path: str) -> "GitIgnoreSpec | None":
    """The rules of a file; None where there is none. Git takes names as bytes, whatever they say.

    Raises:
        Unfit: it is there and cannot be read.
    """
    try:
        data, _ = text_files.read_bytes(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except Unfit as unfit:
        if unfit.reason == "unreadable":
            raise
        return None
    from pathspec import GitIgnoreSpec

    lines = data.decode("utf-8-sig", "surrogateescape").splitlines()
    return GitIgnoreSpec.from_lines(lines)
