"""Links of folders to projects: sessions of coding agents in such a folder go into that project."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from memlog.eventlog.errors import BadInput
from memlog.eventlog.log.streams import escape_invalid_utf8
from memlog.service.engine.create import replace_settings_file

_FILE = "project_links.json"
"""In the folder of the projects, of which none has a `_` in its name."""


class ProjectLink(msgspec.Struct, kw_only=True, frozen=True):
    """A folder whose sessions, and those of the folders below it, go into a project."""

    folder: str
    project: str


def read_links(projects: Path) -> list[ProjectLink]:
    """Return the links by folder. projects: the folder of the projects.

    Raises:
        BadInput: the file of the links holds something else.
    """
    path = projects / _FILE
    try:
        return msgspec.json.decode(path.read_bytes(), type=list[ProjectLink])
    except FileNotFoundError:
        return []
    except msgspec.DecodeError as error:
        raise BadInput(
            f"{escape_invalid_utf8(path)} holds no links: {error}", hint="remove the file, and link again"
        ) from error


def write_links(projects: Path, links: Iterable[ProjectLink]) -> None:
    """Replace the links.

    Raises:
        LogError: the file cannot be written.
    """
    data = msgspec.json.encode(sorted(links, key=lambda link: link.folder))
    replace_settings_file(projects / _FILE, msgspec.json.format(data).decode() + "\n")


def folder_to_link(folder: Path) -> str:
    """Return the name under which a folder is linked: its path without links of the file system."""
    return escape_invalid_utf8(os.path.realpath(folder))


def project_linked_to(folder: str | None, links: Sequence[ProjectLink]) -> str | None:
    """Return the project to which a folder, or the nearest one above it, is linked; None if there is none."""
    if folder is None or not folder.startswith("/") or "\0" in folder:
        return None
    path = Path(os.path.realpath(folder))
    above = [link for link in links if path.is_relative_to(link.folder)]
    return max(above, key=lambda link: len(link.folder)).project if above else None
