"""Fades memories: salience decays once a day, and faded memories are archived."""

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Annotated, Literal

import msgspec

from memlog.eventlog import timestamps
from memlog.eventlog.errors import BadInput, shown_value
from memlog.eventlog.events import MemoryArchived, Position, SalienceDecayed
from memlog.eventlog.fields import Reads
from memlog.eventlog.limits import ARCHIVE_THRESHOLD, CATEGORIES, known_category, rates_by_category
from memlog.query.memories import Decay, Memory, decay_of, faded, memories_changed
from memlog.query.request import Request
from memlog.service.engine.read_model import Deciding
from memlog.service.engine.requests import Tried
from memlog.service.memory.save import Append

PRUNED = ("temp", "debug")
"""The categories that are pruned by default."""


class DecayReport(msgspec.Struct, kw_only=True):
    """The outcome of today's decay.

    changed: the number of memories whose salience this call lowered; 0 if today's decay was already done.
    event_id, ts, rates: of the one decay that counts today.
    position: where it was appended; None if today's decay was already done.
    """

    decision: Literal["decayed", "already done today"]
    changed: int
    event_id: str
    ts: str
    rates: dict[str, float]
    position: Position | None


class PruneReport(msgspec.Struct, kw_only=True):
    """The memories that were pruned, or would be.

    memories: those with a relevance of at most `threshold`, least relevant first, before the change.
    archived: how many of them are archived now; 0 in a dry run.
    """

    memories: list[Memory]
    archived: int = 0
    threshold: float
    categories: list[str]
    dry_run: bool


def decay(append: Append, decide: Deciding, rates: Mapping[str, float] | None) -> DecayReport:
    """Append today's decay, unless it was already done.

    Raises the errors of `Memories.decay`.

    The id derives from the UTC date, so that of two concurrent calls only one event counts.
    """
    event_id = f"decay-{timestamps.today()}"
    event = SalienceDecayed(id=event_id, rates=_valid_rates(rates))
    standing = decide(lambda db: decay_of(db, event_id))
    if standing is not None:
        return _report(standing, None)
    (position,) = append([event])
    # Another process may have been faster: then its event counts, and this one is a duplicate.
    standing = decide(lambda db: decay_of(db, event_id))
    assert standing is not None, "an acknowledged event is projected by the next read"
    if (position.segment, position.offset) != (standing.position.segment, standing.position.offset):
        return _report(standing, None)
    return _report(standing, position, decide(partial(memories_changed, decay=standing)))


def _report(standing: Decay, appended: Position | None, changed: int = 0) -> DecayReport:
    return DecayReport(
        decision="already done today" if appended is None else "decayed",
        changed=changed,
        event_id=standing.event_id,
        ts=standing.ts,
        rates=standing.rates,
        position=appended,
    )


def _valid_rates(rates: Mapping[str, float] | None) -> dict[str, float]:
    if rates is None:
        return {name: category.rate for name, category in CATEGORIES.items()}
    for name, rate in rates.items():
        known_category(name)
        if isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 <= rate <= 1:
            raise BadInput(f"the rate of {name} is {rate!r}", hint="a number from 0 to 1")
    if not rates:
        raise BadInput("no category has a rate", hint='such as {"context": 0.9}')
    return rates_by_category(dict(rates))


def prune(
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
        raise BadInput("no category is to be pruned", hint=f"one of {', '.join(CATEGORIES)}")
    fading = decide(partial(faded, categories=names, at_most=threshold))
    found = PruneReport(memories=fading, threshold=threshold, categories=names, dry_run=dry_run)
    if fading and not dry_run:
        found.archived = len(append([MemoryArchived(memory_id=each.memory_id) for each in fading]))
    return found


def _rates(given: Mapping[str, float]) -> Mapping[str, float]:
    if not isinstance(given, Mapping):
        raise BadInput(f"rates is {shown_value(given)}", hint='factors by category, such as {"context": 0.9}')
    return given


def _categories(given: Iterable[str]) -> list[str]:
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise BadInput(f"categories is {shown_value(given)}", hint="a list of categories")
    return [known_category(each) for each in given]


class DecayMemories(Request, frozen=True):
    """Let a day pass: multiply the salience of every older memory by the rate of its category.

    It takes effect once per UTC day, however often it is called. The answer says whether today's decay was
    already done.

    Raises:
        BadInput: a rate is not from 0 to 1, or a category is unknown; or today's decay was forgotten.
        Busy, LogError: as `Store.append`. It is safe to retry.
    """

    rates: Annotated[
        Mapping[str, float] | None,
        (
            "Factors from 0 to 1 by category, instead of memlog's own; categories that are not named do not"
            " decay."
        ),
        Reads(_rates, wire=dict[str, float]),
    ] = None


class PruneMemories(Tried, frozen=True, kw_only=True):
    """Archive faded memories: those whose relevance today is at most a threshold.

    They are kept, but no longer searched; a save restores one. Decay and age lower the relevance.

    Raises:
        BadInput: a category is unknown, or none is given.
        Busy, LogError: as `Store.append`. Some may be archived; it is safe to retry.
    """

    categories: Annotated[
        Iterable[str],
        f"Only of this category; may be given several times. By default {' and '.join(PRUNED)}.",
        Reads(_categories, "category", wire=list[str], choices=tuple(CATEGORIES)),
    ] = PRUNED
    threshold: Annotated[float, ARCHIVE_THRESHOLD.meta, "The relevance up to which a memory is archived."] = (
        ARCHIVE_THRESHOLD.default
    )
