"""Requests for the fading of memories: `store.memories.decay` and `prune`."""

from collections.abc import Iterable, Mapping
from typing import Annotated

from memlog.eventlog.categories import CATEGORIES, known_category
from memlog.eventlog.errors import BadInput, shown_value
from memlog.eventlog.limits import ARCHIVE_THRESHOLD
from memlog.eventlog.struct_fields import Reads
from memlog.query.request import Request
from memlog.service.memories.fading import PRUNED
from memlog.service.requests.scope import Tried


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

    It takes effect once a UTC day, whatever number of times and processes call it. The answer says whether
    today's decay was already done.

    Raises:
        BadInput: a rate is not from 0 to 1, or there is no such category; or today's decay was forgotten.
        Busy, LogError: as `Store.append`. It is safe to try again.
    """

    rates: Annotated[
        Mapping[str, float] | None,
        (
            "Factors from 0 to 1 by category, in the place of memlog's own; a category that it does not name"
            " stays as it is."
        ),
        Reads(_rates, wire=dict[str, float]),
    ] = None


class PruneMemories(Tried, frozen=True, kw_only=True):
    """Archive faded memories: those whose relevance today is at most a threshold.

    They are kept, and no longer searched; a save brings one back. Decay and age make relevance fall.

    Raises:
        BadInput: there is no such category, or none is given.
        Busy, LogError: as `Store.append`. Some may be archived; it is safe to try again.
    """

    categories: Annotated[
        Iterable[str],
        f"Only of this category; may be given several times. By default {' and '.join(PRUNED)}.",
        Reads(_categories, "category", wire=list[str], choices=tuple(CATEGORIES)),
    ] = PRUNED
    threshold: Annotated[float, ARCHIVE_THRESHOLD.meta, "The relevance up to which a memory is archived."] = (
        ARCHIVE_THRESHOLD.default
    )
