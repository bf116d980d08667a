"""The pool of a search: the candidates of both sides, and the messages around them."""

from collections.abc import Iterable, Mapping

from memlog.projector.sqlite import Connection
from memlog.query.filters import Filters
from memlog.query.search import candidates
from memlog.query.search.candidates import Candidate, Ref
from memlog.query.search.neighbours import neighbourhood_of
from memlog.query.search.priors import passages_of

Lists = list[list[Candidate]]
"""The candidates of one side: the full text has a list for each kind of hit."""


class Pool:
    """Everything that may become a hit. Of several candidates with one `ref` the last is kept.

    near: the messages, with their neighbours if `with_context`. passages: all other candidates.
    """

    def __init__(
        self, db: Connection, sides: Mapping[str, Lists], filters: Filters, *, with_context: bool
    ) -> None:
        self._by_ref = {each.ref: each for lists in sides.values() for rows in lists for each in rows}
        numbers = [ref for ref in self._by_ref if isinstance(ref, int)]
        self.near = neighbourhood_of(db, numbers, filters, alone=not with_context)
        self.passages = passages_of(db, self._by_ref.values())

    def candidate(self, ref: Ref) -> Candidate:
        """The candidate of `ref`; a message that only its neighbours brought has no score."""
        if isinstance(ref, int) and ref not in self._by_ref:
            message = self.near.messages[ref]
            return Candidate("message", "message", message.key, None, message.ts, ref)
        return self._by_ref[ref]

    def in_order(self, refs: Iterable[Ref]) -> list[Ref]:
        """Members of equal scores in the order of `candidates.in_order`."""
        return [each.ref for each in candidates.in_order(map(self.candidate, refs))]
