"""Files that several sources have: of nested folders, or of one folder under two names."""

from collections.abc import Collection, Mapping
from itertools import groupby
from typing import NamedTuple

from memlog.projector.rows import as_list
from memlog.projector.sqlite import Connection
from memlog.query.documents import FILE_PATH
from memlog.query.search.candidates import Candidate, Lists


class _Twin(NamedTuple):
    """A document, and what tells whether another one is of the same file.

    writer: of the copy of the store that registered its source: a path of another machine is another file.
    """

    path: str
    document_id: str
    writer: str
    version: str


def without_twins(db: Connection, sides: Mapping[str, Lists]) -> dict[str, Lists]:
    """The candidates of a search, with one document for each file: notes of a workspace are memories, too."""
    every = (each for lists in sides.values() for rows in lists for each in rows)
    outer = outer_twins(db, {each.key[1] for each in every if each.owner == "document"})
    return {
        side: [[each for each in rows if not (outer and is_one_of(each, outer))] for rows in lists]
        for side, lists in sides.items()
    }


def is_one_of(candidate: Candidate, document_ids: Collection[str]) -> bool:
    """Whether a candidate is of one of these documents."""
    return candidate.owner == "document" and candidate.key[1] in document_ids


def outer_twins(db: Connection, document_ids: Collection[str]) -> set[str]:
    """Those of some documents whose file another one of them is of, too, in a source further in."""
    if len(document_ids) < 2:
        return set()
    rows = db.execute(
        f"SELECT {FILE_PATH} AS path, d.document_id, s.writer, d.version"
        " FROM documents d JOIN sources s USING (source_id)"
        " WHERE s.root IS NOT NULL AND d.document_id IN (SELECT value FROM json_each(?))"
        " ORDER BY path, length(s.root) DESC, d.document_id",
        (as_list(sorted(document_ids)),),
    )
    twins: set[str] = set()
    for _, group in groupby(map(_Twin._make, rows.fetchall()), lambda twin: twin.path):
        innermost, *others = group
        twins |= {
            each.document_id
            for each in others
            if each.writer == innermost.writer or each.version == innermost.version
        }
    return twins
