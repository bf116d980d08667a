"""Links from folders to projects: coding-agent sessions in a linked folder go into the project."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from memlog.eventlog.errors import BadInput
from memlog.eventlog.log.streams import escape_invalid_utf8
from memlog.service.engine.create import replace_settings_file

_FILE = "project_links.json"
"""The links file in the projects folder. No project folder has a `_` in its name."""


class ProjectLink(msgspec.Struct, kw_only=True, frozen=True):
    """A link from a folder to a project: sessions in the folder, or below it, go into the project."""

    folder: str
    project: str


def read_links(projects: Path) -> list[ProjectLink]:
    """Return the links, sorted by folder. projects: the projects folder.

    Raises:
        BadInput: the links file is damaged.
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
        LogError: the links file cannot be written.
    """
    data = msgspec.json.encode(sorted(links, key=lambda link: link.folder))
    replace_settings_file(projects / _FILE, msgspec.json.format(data).decode() + "\n")


def folder_to_link(folder: Path) -> str:
    """Return the path under which a folder is linked, with symbolic links resolved."""
    return escape_invalid_utf8(os.path.realpath(folder))


def project_linked_to(folder: str | None, links: Sequence[ProjectLink]) -> str | None:
    """Return the project linked to a folder, or to the nearest folder above it; None if there is none."""
    if folder is None or not folder.startswith("/") or "\0" in folder:
        return None
    path = Path(os.path.realpath(folder))
    above = [link for link in links if path.is_relative_to(link.folder)]
    return max(above, key=lambda link: len(link.folder)).project if above else None
