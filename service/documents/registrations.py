"""Registered sources: the events that register them again, as they are or without a file."""

from glob import escape

import msgspec

from memlog.eventlog.events import DocumentRemoved, Event, SourceRegistered
from memlog.query.documents import Registered
from memlog.service.documents.folder import Patterns
from memlog.service.documents.sources import Wanted


def claiming(source_id: str) -> str:
    """The command with which a copy of a store claims a source that another one registered."""
    return f"memlog docs add FOLDER --source {source_id}"


def told_of_another_copy(source_id: str, writer: str) -> str:
    """For people."""
    return (
        f"{source_id}: another copy of the store (writer {writer}) refreshes it; to refresh it here instead:"
        f" {claiming(source_id)}"
    )


def registration_of(source: Registered) -> SourceRegistered:
    """What registers a source as it is."""
    return SourceRegistered(
        source_id=source.source_id,
        kind=source.kind,
        root=source.root,
        include=source.include,
        exclude=source.exclude,
    )


def as_registered(source: Registered, versions: dict[str, str]) -> Wanted:
    """What `source` is to be; one that an older memlog registered has no writer, and is given this copy's."""
    return Wanted(registration_of(source), Patterns.of(source), source.writer == "", versions)


def says_the_same(source: Registered, registration: SourceRegistered) -> bool:
    """Whether a registration would change nothing but the writer of the source."""
    return all(
        getattr(source, name) == getattr(registration, name)
        for name in ("kind", "root", "include", "exclude")
    )


def without_file(source_id: str, source: Registered | None, file: str) -> list[Event]:
    """What removes a document: its source leaves the file out from now on, or would read it again."""
    removed = DocumentRemoved(source_id=source_id, file=file)
    if source is None:
        return [removed]
    exclude = [*source.exclude, escape(file)]
    return [msgspec.structs.replace(registration_of(source), exclude=exclude), removed]
