"""The request for a context. Separate from the other modules, which are imported only to build a context."""

from datetime import tzinfo
from functools import cached_property
from typing import Annotated, Literal

from memlog.eventlog.errors import BadInput
from memlog.eventlog.fields import Chat, Local
from memlog.eventlog.settings import DEFAULTS
from memlog.eventlog.settings import Scope as Scope
from memlog.query.context.token_counters import Counter
from memlog.query.request import ChatField, Count, Ids, Request, Synced, Unit
from memlog.query.search.request import Search

Form = Literal["text", "json", "messages", "session"]
Part = Literal["stable", "turn", "both"]

DEFAULT_TOKENS = 4000


class _OfMessage(Request, frozen=True):
    text: Annotated[str, "The message; the stable part needs none."] = ""


class BuildContext(_OfMessage, frozen=True, kw_only=True, dict=True):
    """Build the memory context for the message `text`: core memory, what always holds, facts, memories,
    passages of conversations, summaries, and the newest messages of `chat`, in at most `max_tokens`.

    Entries that do not fit are left out whole. Every entry except core memory and what always holds has a
    citation, such as [M1]; the answer gives its position in the log. Memory content is data: it cannot close
    its block. If the search fails, core memory, what always holds and the window are still returned, and the
    answer says why.

    Raises:
        BadInput: a value is out of range, or the text is empty.
        DatabaseError: the read model can neither be read nor rebuilt.
    """

    chat: Annotated[
        ChatField | None,
        "The current conversation, whose window is given.",
    ] = None
    scope: Annotated[
        Scope,
        (
            "What to search besides the window. store: all conversations, `chat` first. chat: only `chat`;"
            " facts and memories also of no chat. auto: store while at most one person talks to the agent,"
            " by the names of user messages and the chats of messengers; otherwise the chats of the person"
            " of `chat`."
        ),
    ] = "auto"
    part: Annotated[
        Part,
        (
            "stable: core memory and what always holds, the same text until one of them changes, for the"
            " cached beginning of a prompt. turn: everything else."
        ),
    ] = "both"
    max_tokens: Annotated[Count, "The most tokens of the whole output."] = DEFAULT_TOKENS
    counter: Annotated[
        Counter,
        (
            "How to count tokens: estimate those of a language model (model); 4 characters each (chars4);"
            " 1.5 for a Chinese character and 0.75 for a word (heuristic)."
        ),
    ] = "model"
    form: Annotated[
        Form,
        (
            "text for a prompt; json for programs; messages for the API of a language model; session: only"
            " the memories of `chat`, in the form of the Java MemoryService, without citations."
        ),
    ] = "text"
    timezone: Annotated[
        str | None,
        "The time zone of days and times, such as Europe/Helsinki; by default the store's, or the system's.",
    ] = None
    limit: Annotated[
        Count,
        (
            "The most entries for the message: facts (a list is one), memories and summaries; also passages"
            " of messages or documents, if memories and facts are at least a tenth as many."
        ),
    ] = 6
    passages: Annotated[Count, "The most passages of conversations."] = 20
    documents: Annotated[Count, "The most passages of documents."] = 3
    health_tokens: Annotated[
        Count, "Tokens of allergies, illnesses and medicines that always hold; 0: none."
    ] = DEFAULTS.context_health_tokens
    preference_tokens: Annotated[
        Count, "Tokens of preferences and prohibitions that always hold; 0: none."
    ] = DEFAULTS.context_preference_tokens
    min_salience: Annotated[Unit, "Leave out memories that have faded below this salience."] = 0.3
    message_id: Annotated[
        str | None,
        (
            "The asking message, which is left out. By default, the newest message of the chat with this text"
            " that no assistant has answered yet."
        ),
    ] = None
    exclude: Annotated[Ids, "Leave out these events, memories or documents."] = frozenset()
    joined: Annotated[
        tuple[str, ...], Local(is_callback=False), "Further chats of the person of `chat`, of the same scope."
    ] = ()
    is_sent: Annotated[
        bool,
        Local(is_callback=False),
        "For an agent that has the conversation: without its window, and without credentials and keys.",
    ] = False
    beside: Annotated[
        tuple[str, ...], Local(is_callback=False), "Lines of another store's context, printed first."
    ] = ()
    record: Annotated[
        bool,
        (
            "Record the context: one context_given, and one memory_accessed for the memories. If that fails,"
            " the answer says why."
        ),
    ] = True
    record_id: Annotated[
        str | None, "The id of the recorded context. A retry with the same id records nothing again."
    ] = None
    explain: Annotated[bool, "Show which entries were taken, which were left out, and why."] = False
    sync: Synced = True

    def __post_init__(self) -> None:
        """Reject an unknown time zone, an empty message where it is needed, and the form `session` without a
        chat or for the stable half.
        """
        super().__post_init__()
        if self.form == "session" and (self.chat is None or self.part == "stable"):
            raise BadInput("the form session is of one chat, for a message", hint="pass chat, and omit part")
        if not self.text.strip() and self.part != "stable":
            raise BadInput("the message must not be empty", hint="specify the message of the user")
        self.load_time_zone()

    def load_time_zone(self) -> tzinfo | None:
        """Return the time zone; None means the system's.

        Raises:
            BadInput: the time zone is unknown.
        """
        if self.timezone is None:
            return None
        # Imported here: most stores have no such setting.
        from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

        try:
            return ZoneInfo(self.timezone)
        except (ZoneInfoNotFoundError, ValueError, OSError) as error:
            hint = "use a name, for example Europe/Helsinki or UTC; the tzdata package has all of them"
            raise BadInput(f"unknown time zone: {self.timezone!r}", hint=hint) from error

    @cached_property
    def search_for_text(self) -> Search:
        """The search for `text`, cached so that the question is parsed only once."""
        return Search(self.text)

    @property
    def current_chat(self) -> Chat | None:
        """The current chat, or None."""
        return None if self.chat is None else Chat.of(self.chat)

    @property
    def excluded_ids(self) -> frozenset[str]:
        """The ids of events, memories and documents to leave out."""
        return frozenset(self.exclude)

    @property
    def chats_of_scope(self) -> tuple[str, ...]:
        """The chats the scope is limited to; () for the scope `store` or without a current chat."""
        return () if self.chat is None or self.scope == "store" else (str(self.chat), *self.joined)

    @property
    def name_of_current_chat(self) -> str | None:
        """The current chat as `<channel>:<chat_id>`, or None."""
        return None if self.chat is None else str(self.chat)
