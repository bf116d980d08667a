"""What a context is made for: every read of a store imports this, a context alone imports what makes it."""

from datetime import tzinfo
from functools import cached_property
from typing import Annotated, Literal

from memlog.eventlog.errors import BadInput
from memlog.eventlog.fields import Chat, Local
from memlog.eventlog.limits import HEALTH_TOKENS, PREFERENCE_TOKENS
from memlog.eventlog.limits import Scope as Scope
from memlog.query.context.token_counters import Counter
from memlog.query.request import ChatField, Count, Ids, Request, Synced, Unit
from memlog.query.search.request import Search

Form = Literal["text", "json", "messages"]
Part = Literal["stable", "turn", "both"]
Style = Literal["dated", "session"]


DEFAULT_TOKENS = 4000


class _OfMessage(Request, frozen=True):
    text: Annotated[str, "The message; the stable part needs none."] = ""


class BuildContext(_OfMessage, frozen=True, kw_only=True, dict=True):
    """Build the memory context for the message `text`: core memory, what always holds, facts, memories,
    passages of conversations, summaries, and the newest messages of `chat`, in at most `max_tokens`.

    Entries that do not fit are left out whole. Each entry but core memory and what always holds has a
    citation, such as [M1], by which the answer gives its place in the log. What memory holds is data: it
    cannot end the block that contains it. Where the search fails, core memory, what always holds and window
    are still given, and the answer says why.

    Raises:
        BadInput: a value is out of its range, or the text is empty.
        DatabaseError: the read model cannot be read, nor rebuilt.
    """

    chat: Annotated[
        ChatField | None,
        ("The current conversation, whose window is given."),
    ] = None
    scope: Annotated[
        Scope,
        (
            "What is given beside the window. store: of all conversations, less of others than `chat`. chat:"
            " of this one alone; facts and memories also of no chat. auto: store while at most one person"
            " talks to the agent, by the names of user messages and the chats of messengers; else the chats"
            " of the person of `chat`."
        ),
    ] = "auto"
    part: Annotated[
        Part,
        (
            "stable: core memory and what always holds, the same text until one of them changes, for the"
            " beginning of a prompt that is cached. turn: all else."
        ),
    ] = "both"
    max_tokens: Annotated[Count, "Tokens of all that is printed, at most."] = DEFAULT_TOKENS
    counter: Annotated[
        Counter,
        (
            "What a token is: of a language model, estimated (model); 4 characters (chars4); a Chinese"
            " character is 1.5, a word 0.75 (heuristic)."
        ),
    ] = "model"
    form: Annotated[
        Form,
        "text for a prompt; json for programs; messages as a language model is sent them.",
    ] = "text"
    style: Annotated[
        Style,
        "dated: entries with their dates. session: the lines of the Java MemoryService, without dates.",
    ] = "dated"
    timezone: Annotated[
        str | None,
        "The time zone of days and times, such as Europe/Helsinki; else the store's, or the system's.",
    ] = None
    limit: Annotated[
        Count,
        (
            "Entries for the message at most: facts (a list is one), memories and summaries; also passages of"
            " messages or documents that memories and facts are at least a tenth of."
        ),
    ] = 6
    passages: Annotated[Count, "Passages of conversations at most."] = 20
    documents: Annotated[Count, "Passages of documents at most."] = 3
    health_tokens: Annotated[
        int, HEALTH_TOKENS.meta, "Tokens of allergies, illnesses and medicines that always hold; 0: none."
    ] = HEALTH_TOKENS.default
    preference_tokens: Annotated[
        int, PREFERENCE_TOKENS.meta, "Tokens of preferences and prohibitions that always hold; 0: none."
    ] = PREFERENCE_TOKENS.default
    min_salience: Annotated[Unit, "Leave out memories that have faded below this salience."] = 0.3
    message_id: Annotated[
        str | None,
        (
            "The asking message, which is left out. Without it, the newest message of the chat with this text"
            " that no assistant has answered yet."
        ),
    ] = None
    exclude: Annotated[Ids, "Leave out these events, memories or documents."] = frozenset()
    joined: Annotated[
        tuple[str, ...], Local(is_callback=False), "Further chats of the person of `chat`, of the same scope."
    ] = ()
    record: Annotated[
        bool,
        (
            "Record what was given: one context_given, and one memory_accessed for the memories. Where that"
            " fails, the answer says why."
        ),
    ] = True
    explain: Annotated[bool, "Tell which entries were taken, which were left out, and why."] = False
    sync: Synced = True

    def __post_init__(self) -> None:
        """Refuse what no context can be made for."""
        super().__post_init__()
        if not self.text.strip() and self.part != "stable":
            raise BadInput("the message is empty", hint="say what the context is for")
        self.zone()

    def zone(self) -> tzinfo | None:
        """Return the time zone; None is the system's.

        Raises:
            BadInput: there is none of this name.
        """
        if self.timezone is None:
            return None
        # Imported here: most stores have no such setting.
        from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

        try:
            return ZoneInfo(self.timezone)
        except (ZoneInfoNotFoundError, ValueError, OSError) as error:
            hint = "a name such as Europe/Helsinki or UTC; the package tzdata has all"
            raise BadInput(f"timezone is {self.timezone!r}, which is not known here", hint=hint) from error

    @cached_property
    def search(self) -> Search:
        """The search for the text, which everything shares that reads its question."""
        return Search(self.text)

    @property
    def conversation(self) -> Chat | None:
        """The chat."""
        return None if self.chat is None else Chat.of(self.chat)

    @property
    def excluded(self) -> frozenset[str]:
        """What is left out."""
        return frozenset(self.exclude)

    @property
    def own_chats(self) -> tuple[str, ...]:
        """The chats of its scope; none if it names no chat, or in the scope `store`."""
        return () if self.chat is None or self.scope == "store" else (str(self.chat), *self.joined)

    @property
    def chat_name(self) -> str | None:
        """`<channel>:<chat_id>`."""
        return None if self.chat is None else str(self.chat)
