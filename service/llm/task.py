"""Puts questions to a language model, and appends what becomes of its answers."""

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
from memlog.projector.sqlite import Connection
from memlog.query.buffer import Failures, SetAside, failures_of_today, set_aside_by, tokens_of_today
from memlog.query.context.scope import SourceEvent, origins_of, origins_of_days, origins_of_profiles
from memlog.query.context.token_counters import CHARACTERS, tokens
from memlog.query.memories import Memory
from memlog.query.records import DailyEvent
from memlog.service.engine.prompts import EXTRACT, prompt
from memlog.service.engine.read_model import Deciding
from memlog.service.engine.settings import ExtractionRules
from memlog.service.exchange.formats import is_imported
from memlog.service.llm.answers import SCHEMA, read_answer
from memlog.service.llm.model import Completion, LanguageModel

A = TypeVar("A")
T = TypeVar("T")

_TO_BLAME = 5
"""Failures in a row after which the provider may be to blame, such as for a model that it does not have: few
stores have so many conversations in a row that are refused. Then memlog greets it before it asks on."""

_GREETING = msgspec.json.encode([{"role": "user", "name": None, "content": "Good morning!"}]).decode()

_PROMPT = 1000
"""Tokens of a prompt, at most: the longest has 480, and a mode adds 60."""

_LATER = "it is retried tomorrow (UTC), or by store.extraction.run(retry=True)"


class Questions:
    """Questions to one model.

    append: makes events durable. decide: reads the read model of the log as it is now.
    retry: whether a person wants to ask again about what was set aside today. is_bounded: whether the tokens
    of a day bound it.
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

        One that was imported from another program stays on this machine, unless somebody names its channel,
        or the format of one without.
        """
        named = channel or event_id.partition("/")[0].partition("~")[0]
        return self._model.is_of_this_machine or named in self._rules.channels or not is_imported(event_id)

    def kept_memories(self, db: Connection, memories: Iterable[Memory]) -> set[str]:
        """Return the memories that may not be sent: they, or what they were made of, were imported."""
        return self._kept(lambda: origins_of(db, (each.memory_id for each in memories)))

    def kept_profiles(self, db: Connection, extraction_ids: Iterable[str]) -> set[str]:
        """Return the profiles that may not be sent."""
        return self._kept(lambda: origins_of_profiles(db, extraction_ids))

    def sendable_days(self, db: Connection, days: Iterable[DailyEvent]) -> list[DailyEvent]:
        """Return the daily events that may be sent."""
        found = [each for each in days if self.may_be_sent(each.channel, each.id)]
        kept = self._kept(lambda: origins_of_days(db, {each.chat for each in found if each.chat}))
        return [each for each in found if each.chat not in kept]

    def _kept(self, read: Callable[[], dict[str, set[SourceEvent]]]) -> set[str]:
        origins = {} if self._model.is_of_this_machine else read()
        return {name for name, found in origins.items() if not all(self.may_be_sent(*each) for each in found)}

    def why_spent(self) -> str | None:
        """Return why no more requests are sent today; None while there is room for one."""
        most = self._rules.max_tokens_per_day
        spent = max(self._model.spent_today, self._decide(tokens_of_today)) if self._is_bounded else 0
        if not spent or spent + self._rules.tokens + _PROMPT <= most:
            return None
        spent_of = f"{spent:,} of {most:,} tokens of today (UTC) are spent (extraction.max_tokens_per_day)"
        return f"{spent_of}: the rest waits until tomorrow"

    def begin(self, task: ModelTask) -> "Items":
        """Begin a run, and return its items."""
        read = partial(failures_of_today, provider=self._model.provider, model=self.model)
        return Items(self, task, Failures() if self._retry else self._decide(read))

    def ask(
        self, system: str, user: str, schema: dict[str, Any], read: Callable[[str], A | None]
    ) -> tuple[A, Completion]:
        """Return the answer of the model, and its cost; ask again if the first answer is unusable.

        read: makes something of an answer; None where it is of no use.

        Raises:
            ProviderError: the model fails, or gives no usable answer twice.
        """
        made = self._complete(system, user, schema)
        answer = read(made.text)
        if answer is None:
            again = f"{user}\n\nThe last answer was not the JSON object. Answer with the JSON object alone."
            more = self._complete(system, again, schema)
            made = made.and_then(more)
            answer = read(made.text)
        if answer is None:
            raise self._unusable("it answered twice with something else than the JSON object")
        return answer, made

    def append(self, events: Sequence[Event]) -> None:
        """Append what became of an answer. Where that fails, the model rests: it was paid for nothing."""
        try:
            self._append(events)
        except BadInput:  # whose message quotes the answer
            raise self._unusable("its answer could not be stored") from None
        except LogError as error:
            self._model.failed(f"its answer could not be stored: {error.message}")
            raise
        self._model.worked()

    def missed(self, count: int) -> None:
        """Count extractions that failed without a request of their own."""
        self._model.missed(count)

    def check(self) -> None:
        """Check before the next item that a request may be sent to the provider.

        Raises:
            ProviderError: it rests, or fails for every request.
        """
        self._model.check()
        if why := self.why_spent():
            error = ProviderError(why, hint="the rest waits until tomorrow")
            error.is_of_budget = True
            raise error
        self._sent = []
        if self._model.failures >= _TO_BLAME:
            try:
                self._greet()
            except ProviderError as error:
                self._model.note(error)
                raise

    def failure(
        self, task: ModelTask, chat: str | None, event_ids: Sequence[str], error: ProviderError
    ) -> tuple[SetAside, FailureKind, int] | None:
        """Append that the last request about something failed; None where the provider is to blame."""
        kind = self._kind_of(error)
        if kind is None:
            return None
        error.is_of_answer = True
        error.hint = "; ".join(filter(None, (error.hint, _LATER)))
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
        return set_aside_by(event), kind, event.requests

    def catch_up(self) -> None:
        """Bring the read model up to what was appended: `status` reads it as it is."""
        self._decide(lambda _: None)

    def _kind_of(self, error: ProviderError) -> FailureKind | None:
        if error.is_of_answer:
            return "unusable" if error.status is None else "refused"
        # A filter may refuse with any status, which elsewhere is of the key or the address.
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

    def _unusable(self, why: str) -> ProviderError:
        return self._model.failed(why, is_of_answer=True)

    def _greet(self) -> None:
        """Greet the provider.

        Raises ProviderError where it does not answer as it should.
        """
        try:
            made = self._model.complete_once(prompt(EXTRACT).text, _GREETING, SCHEMA)
        except ProviderError as error:
            error.is_of_answer = False
            raise
        if read_answer(made.text) is None:
            why = "it answers even a greeting with something else than the JSON object"
            raise self._model.failed(why)
        self._model.worked()


class Items:
    """The items of a run of one task. Each is sent at most twice a day, across all processes:
    a failure is an event that names the ids of its item.
    """

    def __init__(self, questions: Questions, task: ModelTask, failures: Failures) -> None:
        self._questions, self._task, self._failures = questions, task, failures
        self._failure: ProviderError | None = None
        self._has_worked = False

    def rests(self, chat: str | None, event_ids: Iterable[str]) -> bool:
        """Whether nobody asks about these events before tomorrow."""
        return self._failures.is_exhausted(self._task, chat, event_ids)

    def has_failed(self, chat: str | None, event_ids: Iterable[str]) -> bool:
        """Whether a request about these events failed today."""
        return self._failures.requests(self._task, chat, event_ids) > 0

    def tried(self, chat: str | None, event_ids: Sequence[str], work: Callable[[], T]) -> T | None:
        """Run `work` on these events, and return its result; on failure set them aside, and return None.

        Events that are not set aside are retried by the next run.

        Raises:
            ProviderError: the provider fails for every request.
        """
        self._questions.check()
        try:
            made = work()
        except ProviderError as error:
            failure = self._questions.failure(self._task, chat, event_ids, error)
            if failure is None:
                raise
            self._failures.add(*failure)
            self._failure = error
            return None
        self._has_worked = True
        return made

    def end(self, chat: str | None = None) -> list[SetAside]:
        """End the run: what nobody asks about before tomorrow; of all chats, or of one.

        Raises:
            ProviderError: something failed, and nothing worked.
        """
        if self._failure is not None or self._has_worked:
            self._questions.catch_up()
        if self._failure is not None and not self._has_worked:
            raise self._failure
        found = self._failures.set_aside()
        return [each for each in found if each.task == self._task and chat in (None, each.chat)]


_HEAD, _TAIL = 1000, 500
"""Characters of the output of a tool that are shown: its beginning says what it is, its end how it went."""

_LEAST_DATA = 256
"""Characters of encoded data that are left out; a hash or a token of an address is shorter."""

_DATA = re.compile(
    r"(?:[A-Za-z0-9+/=_-]{24,}+(?:[\s>|]|\\[nr])*+)+"
    r"|(?:\b(?:0x)?[0-9A-Fa-f]{1,8}\b(?:[\s,;:.>\[\]]|\\[nr]|\|[^|\n]{0,40}\|)*+){100,}+"
)
"""Base64 and such in lines of any length, quoted, too; a hundred bytes or numbers one after another."""

_FENCED = re.compile(r"(```[^\n]*\n)(.*?)(\n```)", re.DOTALL)
"""What stands in a message as it is: code, a log, the output of a tool."""


_LEAST_TEXT = 64
"""Tokens of a piece of a text, however small the room is: a piece of a few words tells a model nothing."""

FRAME = 4
"""Tokens of a request around its entries."""


def shortened(role: str, text: str) -> str:
    """Shorten a message: drop encoded data; of tool output and fenced text keep the beginning and the end."""
    text = _DATA.sub(_without_data, text)
    text = _FENCED.sub(lambda found: f"{found[1]}{_ends_of(found[2])}{found[3]}", text)
    return _ends_of(text) if role == "tool" else text


def _ends_of(text: str) -> str:
    left_out = len(text) - _HEAD - _TAIL
    if left_out <= 0:
        return text
    return f"{text[:_HEAD]}\n[{left_out:,} characters left out]\n{text[-_TAIL:]}"


def _without_data(found: re.Match[str]) -> str:
    size = len(found[0])
    behind = " " if found[0][-1].isspace() else ""
    return found[0] if size < _LEAST_DATA else f"[{size:,} characters of data left out]{behind}"


def size_of(entry: dict[str, Any]) -> int:
    """Return the tokens that an entry takes in a request."""
    return tokens(msgspec.json.encode(entry).decode(), "model") + 1  # the comma


def cut(text: str, room: int) -> str:
    """Return the beginning of a text, of at most `room` tokens."""
    return next(_pieces(text, room))


def packed(entries: Iterable[dict[str, Any]], member: str, room: int) -> Iterator[list[dict[str, Any]]]:
    """Yield lists of entries, each list of at most `room` tokens as JSON.

    An entry that is longer is given in pieces of its text, which is its `member`. Less room than an entry
    needs around it is exceeded.
    """
    part: list[dict[str, Any]] = []
    room = max(1, room - FRAME)
    left = room
    for entry in entries:
        for piece in _entries(entry, member, room):
            needed = size_of(piece)
            if part and needed > left:
                yield part
                part, left = [], room
            part.append(piece)
            left -= needed
    if part:
        yield part


def _entries(entry: dict[str, Any], member: str, room: int) -> Iterator[dict[str, Any]]:
    if size_of(entry) <= room:
        yield entry
        return
    frame = size_of({**entry, member: ""})
    yield from ({**entry, member: piece} for piece in _pieces(entry[member], max(_LEAST_TEXT, room - frame)))


def _pieces(text: str, room: int) -> Iterator[str]:
    """Yield a text in pieces of at most `room` tokens as JSON, cut behind a space where there is one."""
    start = 0
    while True:
        end = min(len(text), start + room * CHARACTERS)
        while (needed := _tokens(text[start:end])) > room and end - start > 1:
            end = start + max(1, (end - start) * room * 9 // (needed * 10))
        if end < len(text):
            space = text.rfind(" ", start + (end - start) * 3 // 4, end)
            end = space + 1 if space > start else end
        yield text[start:end]
        if end >= len(text):
            return
        start = end


def _tokens(text: str) -> int:
    return tokens(msgspec.json.encode(text).decode(), "model")


class Outcome(msgspec.Struct, frozen=True):
    """The number of things that a step changed.

    note: what it leaves to do, or to look at.
    """

    count: int
    note: str | None = None


def set_aside_note(whys: Sequence[str]) -> str | None:
    """Describe what a step leaves until tomorrow, by reason; None where it leaves nothing."""
    # Without names: the line of the run outlives a chat that is forgotten.
    return f"set aside until tomorrow: {len(whys)}, the last: {whys[-1]}" if whys else None


def kept_note(count: int) -> str | None:
    """Describe how many imported memories a step has not sent; None where there is none."""
    return f"imported memories not sent (extraction.channels does not name them): {count}" if count else None
