"""Fades memories: salience decays once a day, and faded memories are archived."""

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Literal

import msgspec

from memlog.eventlog import timestamps
from memlog.eventlog.categories import CATEGORIES, read_decay_rates
from memlog.eventlog.errors import BadInput
from memlog.eventlog.events import MemoryArchived, SalienceDecayed
from memlog.eventlog.positions import Position
from memlog.query.memories import Decay, Memory, count_decayed_memories, find_decay, find_faded_memories
from memlog.service.engine.read_model import Deciding
from memlog.service.memory.save import Append


class DecayReport(msgspec.Struct, kw_only=True):
    """The outcome of a decay.

    changed: the number of memories whose salience this call lowered; 0 if today's decay was already done.
    event_id, ts, rates: the id, time and rates of today's decay, appended by this call or an earlier one.
    position: the position of the event that this call appended; None if today's decay was already done.
    """

    decision: Literal["decayed", "already done today"]
    changed: int
    event_id: str
    ts: str
    rates: dict[str, float]
    position: Position | None


class PruneReport(msgspec.Struct, kw_only=True):
    """The memories that a prune archived or, in a dry run, would archive.

    memories: the memories with a relevance of at most `threshold`, least relevant first, as they were before
        the change.
    archived: how many memories this call archived; 0 in a dry run.
    """

    memories: list[Memory]
    archived: int = 0
    threshold: float
    categories: list[str]
    dry_run: bool


def append_todays_decay(append: Append, decide: Deciding, rates: Mapping[str, float]) -> DecayReport:
    """Append today's decay, unless an earlier call has done so.

    Raises the errors of `Memories.decay`.

    The event's id derives from the UTC date, so that only one of two concurrent calls counts.
    """
    event_id = f"decay-{timestamps.today()}"
    if not rates:
        raise BadInput("no rates were given", hint='set at least one rate, for example {"context": 0.9}')
    event = SalienceDecayed(id=event_id, rates=read_decay_rates(rates))
    standing = decide(lambda db: find_decay(db, event_id))
    if standing is not None:
        return _decay_report(standing, None)
    (position,) = append([event])
    # Another process may have been faster: then its event counts, and this one is a duplicate.
    standing = decide(lambda db: find_decay(db, event_id))
    assert standing is not None, "an acknowledged event is projected by the next read"
    if (position.segment, position.offset) != (standing.position.segment, standing.position.offset):
        return _decay_report(standing, None)
    return _decay_report(standing, position, decide(partial(count_decayed_memories, decay=standing)))


def _decay_report(standing: Decay, appended: Position | None, changed: int = 0) -> DecayReport:
    return DecayReport(
        decision="already done today" if appended is None else "decayed",
        changed=changed,
        event_id=standing.event_id,
        ts=standing.ts,
        rates=standing.rates,
        position=appended,
    )


def archive_faded_memories(
    append: Append,
    decide: Deciding,
    categories: Iterable[str],
    threshold: float,
    *,
    dry_run: bool,
) -> PruneReport:
    """Archive faded memories.

    Raises the errors of `Memories.prune`.
    """
    names = list(dict.fromkeys(categories))
    if not names:
        raise BadInput("no categories to prune were given", hint=f"use some of: {', '.join(CATEGORIES)}")
    fading = decide(partial(find_faded_memories, categories=names, at_most=threshold))
    found = PruneReport(memories=fading, threshold=threshold, categories=names, dry_run=dry_run)
    if fading and not dry_run:
        found.archived = len(append([MemoryArchived(memory_id=each.memory_id) for each in fading]))
    return found
