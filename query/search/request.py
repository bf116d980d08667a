"""The request for a search. Every read of a store imports this module; only a search imports the others."""

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta
from msgspec.structs import force_setattr, replace

from memlog.eventlog.errors import BadInput
from memlog.eventlog.limits import HITS
from memlog.eventlog.limits import Mode as Mode
from memlog.eventlog.struct_fields import Reads
from memlog.query.filters import Filters
from memlog.query.request import ChatField, OfText, Synced, Unit
from memlog.query.search.ranking import Ranking
from memlog.query.surroundings import MAX_NEIGHBOURS

if TYPE_CHECKING:
    from memlog.query.search.fts_query import FtsQuery


class Search(OfText, frozen=True, kw_only=True, dict=True):
    """Search messages, memories and documents for `text`.

    Words match themselves, their other forms, and longer words that begin with them; "double quotes" make a
    phrase. A hit with more of the words ranks higher. A message is also found by its neighbours in the
    conversation.

    Raises:
        BadInput: a value is not of its type or outside its bounds; FTS5 does not understand a raw text.
        DatabaseError: the read model cannot be read, nor rebuilt.
    """

    k: Annotated[int, HITS.meta, "Hits at most."] = HITS.default
    mode: Annotated[Mode, "Search by words (text), by meaning (vector), or by both (hybrid)."] = "hybrid"
    chat: Annotated[ChatField | None, "Only hits of this conversation."] = None
    filters: Annotated[Filters | Mapping[str, Any], Reads(Filters.of, wire=Filters), "What hits must be."] = (
        Filters()
    )
    ranking: Annotated[
        Ranking | Mapping[str, Any],
        Reads(Ranking.of, wire=Ranking),
        "How both sides are ranked and joined; the defaults measured best.",
    ] = Ranking()
    min_similarity: Annotated[
        Unit | None, "Leave out hits that only meaning finds below this similarity."
    ] = None
    is_raw: Annotated[bool, "The text is in FTS5's own query syntax; only the full text is searched."] = False
    explain: Annotated[
        bool,
        "Tell how each side found each hit: rank, score, what neighbours and priors add.",
    ] = False
    expand: Annotated[
        int,
        Meta(ge=0, le=MAX_NEIGHBOURS, title="N"),
        (
            "Show each message with N others of its session on either side, each passage of a document with"
            " the text of N others."
        ),
    ] = 0
    sync: Synced = True

    def __post_init__(self) -> None:
        """Refuse an empty text, and a raw text for vectors."""
        super().__post_init__()
        if not self.text.strip():
            raise BadInput("text is empty", hint="give the words to search for")
        if self.is_raw and self.mode == "vector":
            raise BadInput("is_raw with mode 'vector'", hint="vectors know no syntax: leave one of them out")
        if self.is_raw:
            force_setattr(self, "mode", "text")

    @cached_property
    def where(self) -> Filters:
        """The filters, with the chat."""
        filters = Filters.of(self.filters)
        return filters if self.chat is None else replace(filters, chat=self.chat)

    @cached_property
    def ranked_by(self) -> Ranking:
        """The ranking."""
        return Ranking.of(self.ranking)

    @cached_property
    def question(self) -> "FtsQuery":
        """The question for the full text."""
        from memlog.query.search.fts_query import parse, raw

        return raw(self.text) if self.is_raw else parse(self.text)
