"""Asks a language model, and appends the events from its answers."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, TypeVar

import msgspec

from memlog.eventlog import timestamps
from memlog.eventlog.codec.encode import new_id
from memlog.eventlog.errors import BadInput, LogError, ProviderError
from memlog.eventlog.events import Event, ModelFailed, Position
from memlog.eventlog.fields import FailureKind, ModelTask
from memlog.eventlog.settings import ExtractionRules
from memlog.projector.sqlite import Connection
from memlog.query.buffer import Failures, SetAside, failures_of_today, set_aside_request, tokens_of_today
from memlog.query.context.scope import (
    SourceEvent,
    sources_of_daily_events,
    sources_of_memories,
    sources_of_profiles,
)
from memlog.query.context.token_counters import CHARACTERS, count_text_tokens
from memlog.query.memories import Memory
from memlog.query.records import DailyEvent
from memlog.service.engine.prompts import EXTRACT, read_prompt
from memlog.service.engine.read_model import Deciding
from memlog.service.exchange.formats import is_imported
from memlog.service.llm.answers import SCHEMA, read_answer
from memlog.service.llm.model import Completion, LanguageModel

A = TypeVar("A")
T = TypeVar("T")

_FAILURES_OF_PROVIDER = 5
"""Consecutive failures after which the provider itself may be at fault, such as for a missing model: few
stores have so many conversations in a row that are refused. Then memlog sends the provider a greeting before
the next question."""

_GREETING = msgspec.json.encode([{"role": "user", "name": None, "content": "Good morning!"}]).decode()

_PROMPT = 1000
"""The most tokens of a prompt: the longest prompt has 480, and a mode adds 60."""

_RETRY_HINT = "it is retried tomorrow (UTC), or by store.extraction.run(retry=True)"


class Questions:
    """Asks questions of one model, within the rules and the daily budget.

    append: makes events durable. decide: calls a function with the read model after it has caught up.
    retry: whether to ask again about items that were set aside today.
    is_bounded: whether the daily token budget applies.
    """

    def __init__(
        self,
        model: LanguageModel,
        append: Callable[[Sequence[Event]], list[Position]],
        decide: Deciding,
        rules: ExtractionRules,
        *,
        retry: bool = False,
        is_bounded: bool = True,
    ) -> None:
        self._model, self._append, self._decide, self._retry = model, append, decide, retry
        self._rules, self._is_bounded = rules, is_bounded
        self._sent: list[Completion] = []

    @property
    def model(self) -> str:
        """The name of the model."""
        return self._model.name

    def may_be_sent(self, channel: str | None, event_id: str) -> bool:
        """Whether a message or a daily event may be sent.

        An imported message stays on this machine, unless the settings name its channel or, if it has no
        channel, its format.
        """
        named = channel or event_id.partition("/")[0].partition("~")[0]
        return self._model.is_of_this_machine or named in self._rules.channels or not is_imported(event_id)

    def withheld_memories(self, db: Connection, memories: Iterable[Memory]) -> set[str]:
        """Return the ids of memories that may not be sent, because they or their sources were imported."""
        return self._find_withheld(lambda: sources_of_memories(db, (each.memory_id for each in memories)))

    def withheld_profiles(self, db: Connection, extraction_ids: Iterable[str]) -> set[str]:
        """Return the ids of the extractions whose profile values may not be sent."""
        return self._find_withheld(lambda: sources_of_profiles(db, extraction_ids))

    def sendable_days(self, db: Connection, days: Iterable[DailyEvent]) -> list[DailyEvent]:
        """Return the daily events that may be sent."""
        found = [each for each in days if self.may_be_sent(each.channel, each.id)]
        kept = self._find_withheld(
            lambda: sources_of_daily_events(db, {each.chat for each in found if each.chat})
        )
        return [each for each in found if each.chat not in kept]

    def _find_withheld(self, read: Callable[[], dict[str, set[SourceEvent]]]) -> set[str]:
        origins = {} if self._model.is_of_this_machine else read()
        return {name for name, found in origins.items() if not all(self.may_be_sent(*each) for each in found)}

    def why_over_budget(self) -> str | None:
        """Return why no more requests are sent today; None while the budget allows another request."""
        most = self._rules.max_tokens_per_day
        spent = max(self._model.spent_today, self._decide(tokens_of_today)) if self._is_bounded else 0
        if not spent or spent + self._rules.tokens + _PROMPT <= most:
            return None
        spent_of = f"{spent:,} of {most:,} tokens of today (UTC) are spent (extraction.max_tokens_per_day)"
        return f"{spent_of}: the rest waits until tomorrow"

    def begin(self, task: ModelTask) -> "Items":
        """Begin a run of a task."""
        read = partial(failures_of_today, provider=self._model.provider, model=self.model)
        return Items(self, task, Failures() if self._retry else self._decide(read))

    def ask(
        self, system: str, user: str, schema: dict[str, Any], read: Callable[[str], A | None]
    ) -> tuple[A, Completion]:
        """Return the parsed answer of the model, and its cost; ask again if the first answer is unusable.

        read: parses an answer, and returns None if it is unusable.

        Raises:
            ProviderError: the model fails, or gives no usable answer twice.
        """
        made = self._complete(system, user, schema)
        answer = read(made.text)
        if answer is None:
            again = f"{user}\n\nThe last answer was not the JSON object. Answer with the JSON object alone."
            more = self._complete(system, again, schema)
            made = made.followed_by(more)
            answer = read(made.text)
        if answer is None:
            why = "it answered twice with something other than the JSON object"
            raise self._model.record_failure(why, is_of_answer=True)
        return answer, made

    def append(self, events: Sequence[Event]) -> None:
        """Append the events of an answer. If that fails, let the model rest, since its tokens are wasted."""
        try:
            self._append(events)
        except BadInput:  # its message quotes the answer
            raise self._model.record_failure("its answer could not be stored", is_of_answer=True) from None
        except LogError as error:
            self._model.record_failure(f"its answer could not be stored: {error.message}")
            raise
        self._model.record_success()

    def count_unsent(self, count: int) -> None:
        """Count `count` extractions that failed without a request."""
        self._model.count_unsent(count)

    def check(self) -> None:
        """Check, before the next item, that a request may be sent to the provider.

        Raises:
            ProviderError: the provider rests or fails for every request, or the budget is spent.
        """
        self._model.check_available()
        if why := self.why_over_budget():
            error = ProviderError(why, hint="the rest waits until tomorrow")
            error.is_of_budget = True
            raise error
        self._sent = []
        if self._model.failures >= _FAILURES_OF_PROVIDER:
            try:
                self._greet()
            except ProviderError as error:
                self._model.record_provider_failure(error)
                raise

    def record_failure(
        self, task: ModelTask, chat: str | None, event_ids: Sequence[str], error: ProviderError
    ) -> tuple[SetAside, FailureKind, int] | None:
        """Record a failed request, and return arguments for `Failures.add`; None if the provider failed."""
        kind = self._classify_failure(error)
        if kind is None:
            return None
        error.is_of_answer = True
        error.hint = "; ".join(filter(None, (error.hint, _RETRY_HINT)))
        event = ModelFailed(
            id=new_id(),
            ts=timestamps.now(),
            task=task,
            event_ids=[*event_ids],
            provider=self._model.provider,
            model=self.model,
            kind=kind,
            why=error.message,
            chat_id=chat,
            requests=len(self._sent),
            tokens_in=sum(each.tokens_in for each in self._sent),
            tokens_out=sum(each.tokens_out for each in self._sent),
        )
        self._append([event])
        return set_aside_request(event), kind, event.requests

    def catch_up(self) -> None:
        """Bring the read model up to date, since `status` reads it without a catch-up."""
        self._decide(lambda _: None)

    def _classify_failure(self, error: ProviderError) -> FailureKind | None:
        if error.is_of_answer:
            return "unusable" if error.status is None else "refused"
        # A content filter may refuse with any status, even one that elsewhere means a bad key or address.
        is_of_provider = error.status == 429 or (error.is_away and not error.is_cut)
        if is_of_provider or not (error.is_late or error.is_cut or error.status):
            return None
        try:
            self._greet()
        except ProviderError:
            return None
        if error.is_late:
            return "late"
        return "refused" if error.status is not None and error.status < 500 else "failed"

    def _complete(self, system: str, user: str, schema: dict[str, Any]) -> Completion:
        self._sent.append(Completion(""))
        self._sent[-1] = self._model.complete(system, user, schema)
        return self._sent[-1]

    def _greet(self) -> None:
        """Ask the provider for a trivial answer; raise ProviderError if there is no proper answer."""
        try:
            made = self._model.complete_once(read_prompt(EXTRACT).text, _GREETING, SCHEMA)
        except ProviderError as error:
            error.is_of_answer = False
            raise
        if read_answer(made.text) is None:
            raise self._model.record_failure("it answers even a greeting without the JSON object")
        self._model.record_success()


class Items:
    """The items of one run of a task; all processes together send each item at most twice a day."""

    def __init__(self, questions: Questions, task: ModelTask, failures: Failures) -> None:
        self._questions, self._task, self._failures = questions, task, failures
        self._failure: ProviderError | None = None
        self._has_worked = False

    def is_set_aside(self, chat: str | None, event_ids: Iterable[str]) -> bool:
        """Whether the item of these events is set aside until tomorrow."""
        return self._failures.is_exhausted(self._task, chat, event_ids)

    def has_failed(self, chat: str | None, event_ids: Iterable[str]) -> bool:
        """Whether a request about these events failed today."""
        return self._failures.requests(self._task, chat, event_ids) > 0

    def attempt(self, chat: str | None, event_ids: Sequence[str], work: Callable[[], T]) -> T | None:
        """Run `work` on the item of these events, and return its result; None after a failure of the item.

        The failure is recorded; the next run retries the item, unless it is then set aside.

        Raises:
            ProviderError: the provider fails for every request.
        """
        self._questions.check()
        try:
            made = work()
        except ProviderError as error:
            failure = self._questions.record_failure(self._task, chat, event_ids, error)
            if failure is None:
                raise
            self._failures.add(*failure)
            self._failure = error
            return None
        self._has_worked = True
        return made

    def end(self, chat: str | None = None) -> list[SetAside]:
        """End the run, and return the items of `chat`, or of all chats, that are set aside until tomorrow.

        Raises:
            ProviderError: every request failed.
        """
        if self._failure is not None or self._has_worked:
            self._questions.catch_up()
        if self._failure is not None and not self._has_worked:
            raise self._failure
        found = self._failures.set_aside()
        return [each for each in found if each.task == self._task and chat in (None, each.chat)]


_HEAD, _TAIL = 1000, 500
"""How many characters of a tool's output are kept: the beginning says what it is, the end how it went."""

_LEAST_DATA = 256
"""The length in characters from which encoded data is omitted; hashes and tokens in URLs are shorter."""

_DATA = re.compile(
    r"(?:[A-Za-z0-9+/=_-]{24,}+(?:[\s>|]|\\[nr])*+)+"
    r"|(?:\b(?:0x)?[0-9A-Fa-f]{1,8}\b(?:[\s,;:.>\[\]]|\\[nr]|\|[^|\n]{0,40}\|)*+){100,}+"
)
"""Matches base64 and the like in lines of any length, even quoted; or a hundred or more bytes or numbers in a
row."""

_FENCED = re.compile(r"(```[^\n]*\n)(.*?)(\n```)", re.DOTALL)
"""Matches a fenced block: code, a log, the output of a tool."""

_LEAST_TEXT = 64
"""The fewest tokens of a piece of text, even if they exceed the room: a few words tell a model nothing."""

FRAME = 4
"""How many tokens a request has around its entries."""


def shorten_message(role: str, text: str) -> str:
    """Return a message without encoded data, and without the middle of long tool output and fenced text."""
    text = _DATA.sub(_replace_data, text)
    text = _FENCED.sub(lambda found: f"{found[1]}{_truncate_middle(found[2])}{found[3]}", text)
    return _truncate_middle(text) if role == "tool" else text


def _truncate_middle(text: str) -> str:
    left_out = len(text) - _HEAD - _TAIL
    if left_out <= 0:
        return text
    return f"{text[:_HEAD]}\n[{left_out:,} characters left out]\n{text[-_TAIL:]}"


def _replace_data(found: re.Match[str]) -> str:
    size = len(found[0])
    behind = " " if found[0][-1].isspace() else ""
    return found[0] if size < _LEAST_DATA else f"[{size:,} characters of data left out]{behind}"


def entry_size(entry: dict[str, Any]) -> int:
    """Return the number of tokens that an entry takes in a request."""
    return count_text_tokens(msgspec.json.encode(entry).decode(), "model") + 1  # the comma


def pack_batches(entries: Iterable[dict[str, Any]], member: str, room: int) -> Iterator[list[dict[str, Any]]]:
    """Yield batches of entries, each of at most `room` tokens as JSON.

    A longer entry is split into pieces of its text, the field `member`. If `room` is smaller than the other
    fields of an entry, batches exceed it.
    """
    part: list[dict[str, Any]] = []
    room = max(1, room - FRAME)
    left = room
    for entry in entries:
        for piece in _split_entry(entry, member, room):
            needed = entry_size(piece)
            if part and needed > left:
                yield part
                part, left = [], room
            part.append(piece)
            left -= needed
    if part:
        yield part


def _split_entry(entry: dict[str, Any], member: str, room: int) -> Iterator[dict[str, Any]]:
    if entry_size(entry) <= room:
        yield entry
        return
    frame = entry_size({**entry, member: ""})
    yield from (
        {**entry, member: piece} for piece in _split_text(entry[member], max(_LEAST_TEXT, room - frame))
    )


def _split_text(text: str, room: int) -> Iterator[str]:
    """Yield a text in pieces of at most `room` tokens as JSON, split after a space if possible."""
    start = 0
    while True:
        end = min(len(text), start + room * CHARACTERS)
        while end - start > 1:
            needed = count_text_tokens(msgspec.json.encode(text[start:end]).decode(), "model")
            if needed <= room:
                break
            end = start + max(1, (end - start) * room * 9 // (needed * 10))
        if end < len(text):
            space = text.rfind(" ", start + (end - start) * 3 // 4, end)
            end = space + 1 if space > start else end
        yield text[start:end]
        if end >= len(text):
            return
        start = end


class Outcome(msgspec.Struct, frozen=True):
    """The outcome of a step. count: the number of changes.

    note: what remains to be done or checked.
    """

    count: int
    note: str | None = None


def set_aside_note(whys: Sequence[str]) -> str | None:
    """Return a note on the items that a step has set aside until tomorrow; None if there are none."""
    # No names: the record of the run outlives a forgotten chat.
    return f"set aside until tomorrow: {len(whys)}, the last: {whys[-1]}" if whys else None


def withheld_note(count: int) -> str | None:
    """Return a note on imported memories that a step has not sent; None if it has sent all."""
    return f"imported memories not sent (extraction.channels does not name them): {count}" if count else None
