"""Requests for documents and workspaces: `store.documents`, `store.workspaces`."""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta

from memlog.eventlog.errors import BadInput, shown_value
from memlog.eventlog.fields import Reads
from memlog.query.request import PathField, Request, path_of
from memlog.service.engine.requests import ProgressField


def _paths(given: Iterable[str | Path]) -> tuple[Path, ...]:
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise BadInput(f"not a list of paths: {shown_value(given)}", hint="give a list of paths")
    return tuple(map(path_of, given))


Paths = Annotated[Iterable[str | Path], Reads(_paths, "path", wire=list[str])]
"""Paths in any form; the field holds a tuple."""


def _globs(given: Iterable[str]) -> tuple[str, ...]:
    globs = () if isinstance(given, str) or not isinstance(given, Iterable) else tuple(given)
    if (not globs and given) or not all(isinstance(each, str) for each in globs):
        raise BadInput(f"not a list of patterns: {shown_value(given)}", hint="give a list of texts")
    return globs


Globs = Annotated[Iterable[str], Reads(_globs, wire=list[str]), Meta(title="GLOB")]


class _Registration(Request, frozen=True, kw_only=True):
    source: Annotated[str | None, Meta(title="NAME"), "Its name; else that of the folder."] = None
    include: Annotated[Globs, "Only files that match, of any type, such as 'guide/*.md' or '**/*.py'."] = ()
    exclude: Annotated[Globs, "No files that match."] = ()
    kind: Annotated[
        Literal["docs", "memory"], "memory for files that are searched as memories, docs for other documents."
    ] = "docs"
    progress: ProgressField = None


class AddSource(_Registration, frozen=True):
    """Make a folder, or one file of it, a source of documents, and read its new and changed files.

    See `AddSources`.

    Raises:
        BadInput: there is no such file or folder; another folder has the source's name; or a pattern or
            name cannot be used.
        LogError: the folder cannot be listed; or as `Store.append`.
        Busy, DatabaseError: as `Store.append` and `Store.search`.
    """

    path: Annotated[PathField, Meta(title="PATH"), "The folder or file."]


class AddSources(_Registration, frozen=True):
    """Make each of `paths`, a folder or a file of one, a source of documents, and read its new and changed
    files.

    Only new and changed files are appended. Interrupted, the next run goes on from there. A folder gives its
    text files of known types, or those that `include` matches. The patterns stay with the source until others
    are given.

    A source that another copy of the store registered is left to it, unless `source` names it: then this
    copy registers it again, and refreshes it from now on.

    Raises:
        BadInput, Busy, LogError, DatabaseError: as `AddSource`.
    """

    paths: Annotated[
        Paths,
        Meta(title="PATH"),
        "Folders and files; the files of one folder are added together.",
    ]


class _OfSource(Request, frozen=True):
    source: Annotated[str | None, "The source; all where not given."] = None


class RefreshDocuments(_OfSource, frozen=True, kw_only=True):
    """Read new and changed files of `source`, or of all sources, and remove documents whose files are gone.

    Without changes nothing is appended. Files whose inode, size and times are as before are not read again.
    Where the folder of a source is gone, cannot be listed, or is read by another process for too long, its
    documents stay, the answer says why, and the other sources go on. Only the copy of the store that
    registered a source refreshes it.

    Raises:
        NotFound: there is no source of this name.
        LogError, DatabaseError: as `AddSource`.
    """

    progress: ProgressField = None


class ListDocuments(_OfSource, frozen=True):
    """List all sources by name, or the documents of one source by file.

    Raises:
        NotFound: there is no source of this name.
    """


class GetDocument(Request, frozen=True):
    """Show a source, or a document of it with its text, as it was read."""

    name: Annotated[str, Meta(title="SOURCE[/FILE]"), "The source, or the document."]


class ShowDocumentTree(_OfSource, frozen=True):
    """Show the folders and files that are documents, of `source` or of all sources.

    Raises:
        NotFound: there is no source of this name.
    """


class ShowSourceStatus(_OfSource, frozen=True):
    """Show the state of `source`, or of all sources: progress, counts, and errors.

    Raises:
        NotFound: there is no source of this name.
    """


class ListIndexingJobs(Request, frozen=True):
    """List the last reading of each source, the newest first: its progress or its result.

    They are kept in cache/, and are forgotten with it.
    """


class RemoveDocuments(Request, frozen=True):
    """Remove a source with all its documents, or one document of it.

    The files stay. A removed document comes back when its file is added by name.

    Raises:
        BadInput: another copy of the store refreshes the source of the document.
    """

    name: Annotated[str, Meta(title="SOURCE[/FILE]"), "The source, or the document."]


class AddWorkspace(Request, frozen=True):
    """Make the folder `path` of an agent a workspace, and read its new and changed notes.

    MEMORY.md and memory/*.md are searched as memories. What USER.md says is set in the core memory, where no
    value is set; a value that was deleted since is not set again. `store.documents.refresh()` reads later
    changes.

    Raises:
        BadInput: a source of documents has this name; or as `AddSource`, as Busy, LogError, DatabaseError.
    """

    path: Annotated[PathField, Meta(title="DIR"), "The folder."]
    source: Annotated[str | None, Meta(title="NAME"), "Its name; else that of the folder."] = None
    progress: ProgressField = None


class ListWorkspaces(Request, frozen=True):
    """List the workspaces, by name."""


class RemoveWorkspace(Request, frozen=True):
    """Remove a workspace with the memories that are its files.

    The files stay, and so does the core memory.
    """

    name: Annotated[str, "The workspace."]
