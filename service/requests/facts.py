"""Requests for facts: `store.facts`."""

from collections.abc import Sequence
from typing import Annotated, Self

from msgspec import Meta

from memlog.eventlog.chat import ChatName
from memlog.eventlog.errors import BadInput
from memlog.eventlog.limits import MOST
from memlog.query.request import one_by_one
from memlog.service.requests.scope import AcrossChats, Scoped

Topic = Annotated[str, Meta(title="KEY"), "The name of the topic, in any spelling."]
Rank = Annotated[int, Meta(ge=1, le=MOST)]
"""A place in a list, from 1 on."""

AnyChat = Annotated[bool, "Where the chat has no such topic, use that of the chat that set it last."]


class SetFact(Scoped, frozen=True):
    """Set the ranked list of a topic: all of it, whatever it was before; the first value has rank 1.

    The topic may have any spelling: favourite_colours and `my favorite color` are favorite_colors.

    Raises:
        BadInput: the topic, a value or a rank cannot be stored; or as `Store.append`, as Busy and LogError.
    """

    topic: Topic
    values: Annotated[Sequence[str], Meta(title="VALUE"), "The values."]
    single: Annotated[bool, "The topic has one value, and no list."] = False
    ranks: Annotated[
        Sequence[Rank] | None, "Set this rank of the list alone; once for each value, without a gap."
    ] = None
    source_message_id: Annotated[str | None, "The message that said so."] = None

    def __post_init__(self) -> None:
        """Refuse ranks of a single value."""
        super().__post_init__()
        if self.single and self.ranks:
            raise BadInput("single and ranks: a single value has no rank", hint="give ranks to a list")

    @classmethod
    def of_values(
        cls,
        topic: str,
        *values: str,
        single: bool = False,
        ranks: Sequence[int] | None = None,
        chat: ChatName | None = None,
        source_message_id: str | None = None,
    ) -> Self:
        """The request of a topic and its values as arguments."""
        values = one_by_one(values)
        return cls(topic, values, single=single, ranks=ranks, chat=chat, source_message_id=source_message_id)


class GetFact(Scoped, frozen=True):
    """Show the values of a topic, or the one at a rank of its list.

    Raises:
        BadInput: the topic is not a possible name.
    """

    topic: Topic
    rank: Annotated[Rank | None, "Only this rank of the list."] = None
    any_chat: AnyChat = False


class AskFacts(Scoped, frozen=True):
    """Answer a question from facts, by fixed rules and no model.

    In English, Finnish, German, Russian, Spanish or Swedish, such as `second favourite colour`, `list my
    favourite colours`, `what is my city`. What is not stored, or not understood for certain, is not answered:
    I don't have that stored yet. A question without a topic is about the topic that was set last.
    """

    question: Annotated[str, Meta(title="TEXT"), "The question."]
    any_chat: AnyChat = False


class ExtractFacts(Scoped, frozen=True):
    """Store the ranked list of favourites that a text states of its author, by fixed rules and no model.

    In English, Russian or Finnish: `My favourite colours are 1) Blue, 2) Green`. Where topic and list are not
    both certain, nothing is stored, and the answer tells why.

    Raises:
        BadInput: a value cannot be stored; or as `Store.append`, as Busy and LogError.
    """

    text: Annotated[str, "The text."]
    source_message_id: Annotated[str | None, "The message that says so."] = None
    dry_run: Annotated[bool, "Tell what would be stored, and store nothing."] = False


class RemoveFact(Scoped, frozen=True):
    """Remove the values of a topic, or one rank of its list. The events stay in the log.

    Raises:
        NotFound: there is no such topic or rank.
        BadInput: as `GetFact`; or as `Store.append`, as Busy and LogError.
    """

    topic: Topic
    rank: Annotated[Rank | None, "Only this rank of the list; the others keep theirs."] = None


class ListFacts(AcrossChats, frozen=True, kw_only=True):
    """List facts: the topic that was set last comes first, its values by rank."""
