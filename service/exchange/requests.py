"""Requests for moving in and out: `store.exchange`."""

from typing import Annotated

from msgspec import Meta

from memlog.eventlog.fields import Reads
from memlog.query.request import PathField, Request
from memlog.service.documents.requests import Paths
from memlog.service.engine.requests import ProgressField, Tried
from memlog.service.exchange.formats import formats, known_format


class ImportData(Tried, frozen=True):
    """Import what another program keeps: its memories, facts, daily events and messages become events.

    What was imported before is known by its id and not written again; what has changed since arrives; what
    was forgotten does not come back. So an import that was interrupted goes on from there. Another source
    with the same ids gets ids of its own. The answer accounts for every record.

    A store is for one project: of a source with several, one is chosen.

    Raises:
        BadInput: there is no such format or project, a path does not exist, or nothing of the format is found
            there; or the source has several projects, and none is chosen.
        Busy, LogError: as `Store.append`; what was imported before stays.
    """

    format: Annotated[
        str, Meta(title="NAME"), "The format.", Reads(known_format, "format", choices=(*formats(),))
    ]
    paths: Annotated[Paths, Meta(title="PATH"), "The files or folders of the other program."]
    project: Annotated[str | None, "Only this project of the other program (chatdo)."] = None
    progress: ProgressField = None


class ExportDatabase(Request, frozen=True):
    """Write messages, memories, facts, core memory and daily events as plain tables of an SQLite file.

    For Datasette, DuckDB and people. The file is a copy: memlog never reads it.

    Raises:
        BadInput: the file exists, or cannot be written.
    """

    path: Annotated[PathField, Meta(title="FILE"), "The file to write."]
    replace: Annotated[bool, "Replace a file that exists."] = False
    progress: ProgressField = None
