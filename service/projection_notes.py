"""What a person should know of a projection."""

from collections.abc import Iterator
from contextlib import closing, suppress

from memlog.eventlog.errors import DatabaseError
from memlog.projector.lifecycle import Projection, Projector
from memlog.projector.sqlite import connect, wrapped
from memlog.query.context.people import People
from memlog.query.context.scope import knows_messengers, narrowed_by_messengers


def notes_of(done: Projection, projector: Projector, people: People) -> Iterator[str]:
    """Yield the notes of a projection, in the order in which they are told."""
    # The first command of a store has built nothing that anybody would miss.
    if done.rebuilt and done.read.events:
        yield f"{done.rebuilt}: built one from the log ({done.read.events} events)"
    yield from done.read.notes
    if done.read.conflicts:
        many = f"{done.read.conflicts} events reuse ids of earlier, different events: no read shows them"
        one = "1 event reuses the id of an earlier, different event: no read shows it"
        yield f"{one if done.read.conflicts == 1 else many}; store.maintenance.examine() lists them"
    yield from narrowed_scope(done, projector, people)


def narrowed_scope(done: Projection, projector: Projector, people: People) -> list[str]:
    """Tell, once, that contexts keep chats apart which shared a scope before memlog knew messengers."""
    if done.replaced is None:
        return []
    # What cannot be read is built anew, and told elsewhere.
    with suppress(DatabaseError), wrapped("the read model"):
        with closing(connect(done.replaced, "immutable")) as before:
            is_known = knows_messengers(before)
        why = None if is_known else narrowed_by_messengers(projector.live(), people)
        how = "context.people joins the chats of one person"
        return [] if why is None else [f"contexts now keep chats apart: {why}; {how}"]
    return []
