"""Requests for the core memory: `store.core`."""

from os import PathLike
from pathlib import Path
from typing import Annotated, Literal

from memlog.eventlog.errors import BadInput
from memlog.query.request import Reads, Request

Section = Literal["user", "agent"]
SectionField = Annotated[Section, "Of the user, or of the agent."]
Key = Annotated[str, "The key."]


def _path(given: str | PathLike[str]) -> Path:
    try:
        return Path(given)
    except TypeError as error:
        raise BadInput(f"path is {given!r}", hint="a text or a pathlib.Path") from error


class GetCoreMemory(Request, frozen=True):
    """Show the core memory, one section of it, or the value of one key."""

    section: SectionField | None = None
    key: Key | None = None


class SetCoreValue(Request, frozen=True):
    """Set a key of a section, user or agent.

    Raises:
        BadInput, Busy, LogError: as `Store.append`.
    """

    section: SectionField
    key: Key
    value: Annotated[str, "The value."]


class DeleteCoreValue(Request, frozen=True):
    """Remove a key of a section, user or agent.

    Raises:
        BadInput, Busy, LogError: as `Store.append`.
    """

    section: SectionField
    key: Key


class ImportCoreMemory(Request, frozen=True):
    """Append what a file has and the core memory lacks.

    A Markdown or text file, such as USER.md, has lines `key: value`, and lists under headings; keys that are
    set already keep their values, unless `force`. All values of a JSON file in the shape of
    model/core_memory.json are set. Of that file itself, changed by hand, changed values are set, and removed
    keys are deleted; then it is written anew.

    Raises:
        BadInput: the file cannot be read, or has another shape; nothing was appended.
        Busy, LogError: as `Store.append`. It is safe to try again.
    """

    path: Annotated[str | Path, "The file.", Reads(_path, "path")]
    force: Annotated[bool, "The values of a Markdown file replace those that are set."] = False
