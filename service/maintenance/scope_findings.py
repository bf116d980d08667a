"""Whose chats share their memory, and whose are kept apart."""

from collections.abc import Iterator

from memlog.eventlog.streams import shown
from memlog.projector.sqlite import Connection
from memlog.query.context.people import People, chats_by_name, nameless_chats
from memlog.query.context.scope import automatic_scope
from memlog.service.maintenance.findings import Finding

_MOST_CHATS = 8


def scope_findings(db: Connection, people: People) -> Iterator[Finding]:
    """Yield the scope of contexts by default, and the chats that a name or its lack joins or separates."""
    scope, why, _ = automatic_scope(db, people)
    yield Finding("scope", "ok", f"{scope}: {shown(why)}")
    if scope == "store":
        yield from _shared(db, people)
    elif nameless := [*nameless_chats(db, people)]:
        said = f"kept apart, since their messages give no name: {_listed(nameless)}"
        yield Finding("scope", "ok", f"{said}; context.people joins the chats of one person")


def _shared(db: Connection, people: People) -> Iterator[Finding]:
    """Yield the chats of messengers that share a scope for no other reason than an equal name."""
    for name, chats in chats_by_name(db).items():
        alike = [chat for chat in chats if people.is_messenger(chat) and people.owner(chat) is None]
        if len(alike) > 1:
            said = f"{name} speaks in {_listed(alike)}: they share their memory, since the name is the same"
            remedy = "where these are several people, name the chats of each in context.people"
            yield Finding("scope", "warning", shown(said), remedy)


def _listed(chats: list[str]) -> str:
    more = f" and {len(chats) - _MOST_CHATS:,} more" if len(chats) > _MOST_CHATS else ""
    return shown(", ".join(chats[:_MOST_CHATS]) + more)
