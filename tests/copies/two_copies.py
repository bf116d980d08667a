"""Two copies of one store, and what must hold once each has what the other has."""

from pathlib import Path
from typing import NamedTuple

import memlog
from memlog import Verification
from memlog.eventlog.integrity.seal_close import seal_unsealed_segments

SAID = 3


class Copies(NamedTuple):
    """The folders of two stores that were one."""

    a: Path
    b: Path


def append_some(store: Path, who: str, *, seal: bool = False) -> None:
    """Append three messages and a memory."""
    with memlog.open(store, durability="os") as opened:
        opened.append(
            [
                *(
                    memlog.Message(channel="x", chat_id="1", role="user", content=f"{who} {number}")
                    for number in range(SAID)
                ),
                memlog.MemorySaved(content=f"{who} remembers"),
            ]
        )
    if seal:
        seal_unsealed_segments(store)


def appended_by(*names: str) -> set[str]:
    """What `append_some` has put into a store for each of these."""
    return {f"{who} {number}" for who in names for number in range(SAID)} | {
        f"{who} remembers" for who in names
    }


def texts(store: Path) -> set[str]:
    """All that is found in a store."""
    with memlog.open(store) as opened:
        messages = {message.content or "" for message in opened.conversations.window(("x", "1")).messages}
        return messages | {memory.content for memory in opened.memories.list()}


def digest(store: Path) -> str:
    """Of the read model, caught up with the log."""
    with memlog.open(store) as opened:
        opened.maintenance.project(embed=False)
        return opened.maintenance.digest()


def verified(store: Path) -> Verification:
    """What `memlog verify` finds."""
    with memlog.open(store) as opened:
        opened.maintenance.project(embed=False)
        return opened.maintenance.verify()


def check_merged(copies: Copies, *names: str) -> None:
    """Nothing is lost, both copies say the same, and nothing is odd."""
    for side in copies:
        assert texts(side) == appended_by(*names)
        found = verified(side)
        assert (found.problems, found.tampered, found.quarantined) == ([], [], {})
    assert digest(copies.a) == digest(copies.b)
