"""Runs a language model task: asks, retries, sets items aside, and appends the events from its answers."""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain
from typing import Any, ClassVar, Generic, TypeVar

import msgspec

from memlog.eventlog import timestamps
from memlog.eventlog.codec.encode import draft_event, make_event_id
from memlog.eventlog.errors import BadInput, LogError, ProviderError
from memlog.eventlog.events import Event, Extraction, ModelFailed
from memlog.eventlog.fields import FailureKind, ModelTask
from memlog.eventlog.schedules import load_zone
from memlog.eventlog.secrets.detection import list_key_kinds
from memlog.projector.sqlite import Connection
from memlog.query.buffer import (
    Failures,
    SetAside,
    count_tokens_of_today,
    event_to_set_aside,
    failures_of_today,
)
from memlog.query.context.scope import (
    SourceEvent,
    sources_of_daily_events,
    sources_of_memories,
    sources_of_profiles,
)
from memlog.query.context.token_counters import CHARACTERS, count_text_tokens
from memlog.query.memories import Memory
from memlog.query.records import DailyEvent
from memlog.query.sendable import mask_memories
from memlog.service.engine.engine import Engine
from memlog.service.engine.http_client import provider_error
from memlog.service.engine.prompts import EXTRACT, Prompt, read_prompt
from memlog.service.exchange.formats import is_imported
from memlog.service.llm.answers import MemoryAnswer, read_answer, schema_of_answer
from memlog.service.llm.model import Completion, LanguageModel

A = TypeVar("A", bound=msgspec.Struct)
B = TypeVar("B", bound="Batch")
E = TypeVar("E")
T = TypeVar("T")

_FAILURES_OF_PROVIDER = 5
"""The number of consecutive failures after which the provider itself may be at fault, for example because of
a missing model: a provider rarely refuses so many conversations in a row. memlog then sends the provider a
greeting before the next question."""

_GREETING = msgspec.json.encode([{"role": "user", "name": None, "content": "Good morning!"}]).decode()

_PROMPT = 1000
"""The maximum number of tokens in a prompt: the longest prompt has 480, and a mode adds 60."""

_RETRY_HINT = "it is retried tomorrow (UTC), or by store.extraction.run(retry=True)"


class ModelReply(msgspec.Struct, Generic[A]):
    """The answer to a batch's requests.

    origin: the origin of the events that the task makes from it. refused: the number of malformed entries.
    """

    answer: A
    origin: Extraction
    refused: int
    cost: Completion

    def closing_event(self, kind: Callable[..., E], refused: int = 0, **about: object) -> E:
        """Return the event that closes the extraction. refused: how many entries the task refuses."""
        return kind(
            id=self.origin.id,
            model=self.origin.model,
            prompt=self.origin.prompt,
            tokens_in=self.cost.tokens_in,
            tokens_out=self.cost.tokens_out,
            refused=self.refused + refused,
            **about,
        )


class Batch(msgspec.Struct, kw_only=True):
    """The subject of one answer.

    chat, event_ids: recorded with a failure. requests: sent as JSON; an entry that is too long spans several.
    count, line: the number of changes, and a line about them; the task sets both when it has the answer.
    is_done: whether the events from the answer are in the log.
    """

    chat: str | None
    event_ids: list[str]
    requests: list[Any]
    count: int = 0
    line: str | None = None
    is_done: bool = False


class Outcome(msgspec.Struct, frozen=True):
    """The outcome of a step. count: the number of changes.

    note: what remains to be done or checked.
    """

    count: int
    note: str | None = None


class Questions:
    """Asks a store's language model questions, within the rules and the daily budget.

    lock_timeout: seconds to wait for another process that distils; by default the store's.
    is_patient: see `LanguageModel`.
    retry: whether to ask again about items that were set aside today.
    is_bounded: whether the daily token budget applies.
    is_requested: whether a person requested the run, so that conversations need not be due.
    zone: the user's time zone, which defines days; None for the system's.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        lock_timeout: float | None = None,
        is_patient: bool = False,
        retry: bool = False,
        is_bounded: bool = True,
        is_requested: bool = False,
    ) -> None:
        assert engine.language_model is not None
        self.model = LanguageModel(engine.language_model, engine.path, is_patient=is_patient)
        self.zone = None if engine.job_rules is None else load_zone(engine.job_rules.timezone)
        self._engine, self.rules = engine, engine.extraction_rules
        self._retry, self._is_bounded = retry, is_bounded
        self.lock_timeout = engine.lock_timeout if lock_timeout is None else lock_timeout
        self.is_requested = is_requested
        self._sent: list[Completion] = []

    def may_be_sent(self, channel: str | None, event_id: str) -> bool:
        """Whether a message or a daily event may be sent.

        An imported message stays on this machine, unless the settings name its channel or, if it has no
        channel, its format.
        """
        named = channel or event_id.partition("/")[0].partition("~")[0]
        return self.model.is_of_this_machine or named in self.rules.channels or not is_imported(event_id)

    def withheld_memories(self, db: Connection, memories: Iterable[Memory]) -> set[str]:
        """Return the ids of memories that may not be sent, because they or their sources were imported."""
        return self._find_withheld(lambda: sources_of_memories(db, (each.memory_id for each in memories)))

    def withheld_profiles(self, db: Connection, extraction_ids: Iterable[str]) -> set[str]:
        """Return the ids of the extractions whose profile values may not be sent."""
        return self._find_withheld(lambda: sources_of_profiles(db, extraction_ids))

    def sendable_daily_events(self, db: Connection, days: Iterable[DailyEvent]) -> list[DailyEvent]:
        """Return the daily events that may be sent."""
        found = [each for each in days if self.may_be_sent(each.channel, each.id)]
        kept = self._find_withheld(
            lambda: sources_of_daily_events(db, {each.chat for each in found if each.chat})
        )
        return [each for each in found if each.chat not in kept]

    def _find_withheld(self, read: Callable[[], dict[str, set[SourceEvent]]]) -> set[str]:
        origins = {} if self.model.is_of_this_machine else read()
        return {name for name, found in origins.items() if not all(self.may_be_sent(*each) for each in found)}

    def why_over_budget(self) -> str | None:
        """Return why no more requests may be sent today; None while the budget allows another one."""
        most = self.rules.max_tokens_per_day
        spent = 0
        if self._is_bounded:
            spent = max(self.model.breaker.tokens_spent_today(), self._engine.decide(count_tokens_of_today))
        if not spent or spent + self.rules.tokens + _PROMPT <= most:
            return None
        spent_of = f"{spent:,} of {most:,} tokens of today (UTC) are spent (extraction.max_tokens_per_day)"
        return f"{spent_of}: the rest waits until tomorrow"

    def failures_not_to_retry(self) -> Failures:
        """Return today's failed requests; none if they are to be retried."""
        provider = self.model.provider
        read = partial(failures_of_today, provider=provider.place, model=provider.name)
        return Failures() if self._retry else self._engine.decide(read)

    def ask(self, prompt: str, system: str, requests: Iterable[Any], kind: type[A]) -> ModelReply[A]:
        """Return the answers to the requests combined into one, and their cost.

        prompt: the id of the prompt that `system` begins with.

        Raises:
            ProviderError: the model fails, or gives no usable answer twice.
        """
        texts = (msgspec.json.encode(request).decode() for request in requests)
        made = [self._ask_once(system, text, kind) for text in texts]
        origin = Extraction(make_event_id(), self.model.provider.name, prompt)
        answers, refused = zip(*made, strict=True)
        return ModelReply(join_answers(answers), origin, sum(refused), self._cost_since_check())

    def _ask_once(self, system: str, user: str, kind: type[A]) -> tuple[A, int]:
        """Return an answer and its number of refused entries; ask again if the first answer is unusable."""
        again = f"{user}\n\nThe last answer was not the JSON object. Answer with the JSON object alone."
        for request in (user, again):
            self._sent.append(Completion(""))
            self._sent[-1] = self.model.request_answer(system, request, schema_of_answer(kind))
            found = read_answer(self._sent[-1].text, kind)
            if found is not None:
                return found
        why = "it answered twice with something other than the JSON object"
        raise self.model.record_failure(why, is_of_answer=True)

    def _cost_since_check(self) -> Completion:
        """Return the requests and tokens since the last `check_next_request_allowed`."""
        tokens_in = sum(each.tokens_in for each in self._sent)
        tokens_out = sum(each.tokens_out for each in self._sent)
        return Completion("", tokens_in, tokens_out, len(self._sent))

    def append_answer_events(self, events: Sequence[Event]) -> None:
        """Append an answer's events. If that fails, let the model rest, since its tokens are wasted."""
        try:
            self._engine.append(events)
        except BadInput:  # its message quotes the answer
            raise self.model.record_failure("its answer could not be stored", is_of_answer=True) from None
        except LogError as error:
            self.model.record_failure(f"its answer could not be stored: {error.message}")
            raise
        self.model.breaker.record_success()

    def check_next_request_allowed(self) -> None:
        """Check, before the next batch, that a request may be sent to the provider.

        Raises:
            ProviderError: the provider rests or fails for every request, or the budget is spent.
        """
        self.model.check_available()
        if why := self.why_over_budget():
            raise provider_error(why, "the rest waits until tomorrow", is_of_budget=True)
        self._sent = []
        if self.model.breaker.read_record().failures >= _FAILURES_OF_PROVIDER:
            try:
                self._probe_model()
            except ProviderError as error:
                self.model.breaker.record_failure(error)
                raise

    def record_failure(self, task: ModelTask, batch: Batch, error: ProviderError) -> ModelFailed | None:
        """Record a failed request, and return its event; None if the provider failed."""
        kind = self._classify_failure(error)
        if kind is None:
            return None
        error.is_of_answer = True
        error.hint = "; ".join(filter(None, (error.hint, _RETRY_HINT)))
        cost = self._cost_since_check()
        event = ModelFailed(
            id=make_event_id(),
            ts=timestamps.now(),
            task=task,
            event_ids=batch.event_ids,
            provider=self.model.provider.place,
            model=self.model.provider.name,
            kind=kind,
            why=error.message,
            chat_id=batch.chat,
            requests=cost.requests,
            tokens_in=cost.tokens_in,
            tokens_out=cost.tokens_out,
        )
        self._engine.append([event])
        return event

    def _classify_failure(self, error: ProviderError) -> FailureKind | None:
        if error.is_of_answer:
            return "unusable" if error.status is None else "refused"
        # A content filter may refuse with any status, even one that elsewhere means a bad key or address.
        is_of_provider = error.status == 429 or (error.is_away and not error.is_cut)
        if is_of_provider or not (error.is_late or error.is_cut or error.status):
            return None
        try:
            self._probe_model()
        except ProviderError:
            return None
        if error.is_late:
            return "late"
        return "refused" if error.status is not None and error.status < 500 else "failed"

    def _probe_model(self) -> None:
        """Ask the provider for a trivial answer; raise ProviderError if it gives none."""
        try:
            made = self.model.request_answer_once(
                read_prompt(EXTRACT).text, _GREETING, schema_of_answer(MemoryAnswer)
            )
        except ProviderError as error:
            error.is_of_answer = False
            raise
        if read_answer(made.text, MemoryAnswer) is None:
            raise self.model.record_failure("it answers even a greeting without the JSON object")
        self.model.breaker.record_success()


class Task(ABC, Generic[A, B]):
    """A language model task: a module in the folder `tasks`, whose `TASK` is a subclass.

    All processes together send each batch at most twice a day.

    name: recorded with failures. job, step: the job that runs it, and its step in that job.
    prompt: the name of its prompt. answer: the struct of its answer; see `schema_of_answer`.
    """

    name: ClassVar[ModelTask]
    job: ClassVar[str]
    step: ClassVar[str]
    prompt: ClassVar[str]
    answer: type[A]

    def __init__(self, engine: Engine, questions: Questions) -> None:
        self._engine, self._decide, self._questions = engine, engine.decide, questions
        self._room = questions.rules.tokens
        self._count = 0
        self._failures = Failures()
        self._failure: ProviderError | None = None
        self._has_worked = False

    @abstractmethod
    def find_batches(self) -> Iterator[B]:
        """Yield the due items in batches that fit into a request.

        Each batch is done, or has failed, before the next one is requested.
        """

    @abstractmethod
    def events_of_reply(self, db: Connection, batch: B, reply: ModelReply[A]) -> list[Event] | None:
        """Return an answer's events, the closing one last; None if the batch has changed meanwhile."""

    def _build_system_message(self, prompt: str) -> str:
        """Return the system message. prompt: the text of the task's prompt."""
        return prompt

    def _notes_on_run(self) -> Iterable[str]:
        """Return notes on the run for people to read."""
        return ()

    def _count_withheld(self) -> int:
        """Return the number of imported memories that the run has not sent."""
        return 0

    def run(self) -> Iterator[B]:
        """Ask about all due items, and yield each batch after its answer or failure.

        The next run retries a failed batch, unless it is then set aside.

        Raises:
            ProviderError: the provider fails for every request, or every batch failed; finished work stays.
        """
        self._failures = self._questions.failures_not_to_retry()
        self._failure, self._has_worked, self._count = None, False, 0
        for batch in self.find_batches():
            if self._is_set_aside(batch.chat, batch.event_ids):
                continue
            self._questions.check_next_request_allowed()
            try:
                batch.is_done = self._process_batch(batch)
                self._has_worked = True
            except ProviderError as error:
                failure = self._questions.record_failure(self.name, batch, error)
                if failure is None:
                    raise
                self._failures.add_failure(event_to_set_aside(failure), failure.kind, failure.requests)
                self._failure = error
            yield batch
        self._end_run()

    def run_as_job_step(self, told: Callable[[str | None], None]) -> Outcome:
        """Run the task as a job step. told: called after each batch with a line about it, if any.

        Raises:
            ProviderError: see `run`.
        """
        for batch in self.run():
            self._count += batch.count
            told(batch.line)
        notes = [*self._notes_on_run(), set_aside_note([each.why for each in self._batches_set_aside()])]
        if withheld := self._count_withheld():
            notes.append(f"imported memories not sent (extraction.channels does not name them): {withheld}")
        return Outcome(self._count, "; ".join(filter(None, notes)) or None)

    def _process_batch(self, batch: B) -> bool:
        used = self._read_prompt()
        reply = self._questions.ask(
            used.id, self._build_system_message(used.text), batch.requests, self.answer
        )
        events = self._decide(lambda db: self.events_of_reply(db, batch, reply))
        if events is not None:
            self._questions.append_answer_events(events)
        return events is not None

    def _read_prompt(self) -> Prompt:
        return read_prompt(self.prompt, self._questions.rules.prompts_dir)

    def _end_run(self) -> None:
        """End a run; raise ProviderError if every request failed."""
        if self._failure is not None or self._has_worked:
            self._decide(lambda _: None)  # `status` reads without a catch-up
        if self._failure is not None and not self._has_worked:
            raise self._failure

    def _is_set_aside(self, chat: str | None, event_ids: Iterable[str]) -> bool:
        """Whether the batch of these events is set aside until tomorrow."""
        return self._failures.has_reached_daily_maximum(self.name, chat, event_ids)

    def _has_failed(self, chat: str | None, event_ids: Iterable[str]) -> bool:
        """Whether a request about these events failed today."""
        return self._failures.most_failed_requests(self.name, chat, event_ids) > 0

    def _batches_set_aside(self) -> list[SetAside]:
        """Return the batches that are set aside until tomorrow."""
        return [each for each in self._failures.requests_set_aside() if each.task == self.name]


def join_answers(answers: Sequence[A]) -> A:
    """Combine several answers into one: their lists concatenated, and their texts joined with spaces."""
    kind = type(answers[0])
    found: dict[str, Any] = {}
    for name in kind.__struct_fields__:
        values = [getattr(each, name) for each in answers]
        is_text = isinstance(values[0], str)
        found[name] = " ".join(filter(None, values)) if is_text else [*chain.from_iterable(values)]
    return kind(**found)


def is_storable(event: Event, *texts: str) -> bool:
    """Whether an event from an answer is valid, and its texts contain no key, which a model may invent."""
    with suppress(BadInput):
        draft_event(event)
        return not any(map(list_key_kinds, texts))
    return False


def make_entries_of_memories(memories: Sequence[Memory]) -> list[dict[str, Any]]:
    """Return numbered request entries for memories, with keys masked."""
    return [
        make_entry_of_memory(number, memory, text)
        for number, (memory, text) in enumerate(zip(memories, mask_memories(memories), strict=True), 1)
    ]


def make_entry_of_memory(number: int, memory: Memory, text: str) -> dict[str, Any]:
    """Return a memory's entry in a request."""
    return {"number": number, "date": memory.updated_at[:10], "text": text}


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
"""The minimum number of tokens in a piece of text, even if it exceeds the room: a few words tell a model
nothing."""

FRAME = 4
"""How many tokens a request has besides its entries."""


def shorten_message(role: str, text: str) -> str:
    """Return a message without encoded data, and without the middle of long tool output and fenced text."""
    text = _DATA.sub(_replace_long_data, text)
    text = _FENCED.sub(lambda found: f"{found[1]}{_truncate_middle(found[2])}{found[3]}", text)
    return _truncate_middle(text) if role == "tool" else text


def _truncate_middle(text: str) -> str:
    left_out = len(text) - _HEAD - _TAIL
    if left_out <= 0:
        return text
    return f"{text[:_HEAD]}\n[{left_out:,} characters left out]\n{text[-_TAIL:]}"


def _replace_long_data(found: re.Match[str]) -> str:
    size = len(found[0])
    behind = " " if found[0][-1].isspace() else ""
    return found[0] if size < _LEAST_DATA else f"[{size:,} characters of data left out]{behind}"


def count_tokens_of_entry(entry: dict[str, Any]) -> int:
    """Return the number of tokens that an entry takes in a request."""
    return count_text_tokens(msgspec.json.encode(entry).decode(), "model") + 1  # the comma


def take_items_that_fit(
    items: Iterable[T], size: Callable[[T], int], room: int, *, skips: bool = False
) -> list[T]:
    """Return the first items that fit into `room` together. skips: whether to skip items that do not fit."""
    taken: list[T] = []
    for item in items:
        needed = size(item)
        if needed <= room:
            taken.append(item)
            room -= needed
        elif not skips:
            break
    return taken


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
            needed = count_tokens_of_entry(piece)
            if part and needed > left:
                yield part
                part, left = [], room
            part.append(piece)
            left -= needed
    if part:
        yield part


def _split_entry(entry: dict[str, Any], member: str, room: int) -> Iterator[dict[str, Any]]:
    if count_tokens_of_entry(entry) <= room:
        yield entry
        return
    frame = count_tokens_of_entry({**entry, member: ""})
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


def set_aside_note(whys: Sequence[str]) -> str | None:
    """Return a note on the items that a step has set aside until tomorrow; None if there are none."""
    # No names: the record of the run outlives a forgotten chat.
    return f"set aside until tomorrow: {len(whys)}, the last: {whys[-1]}" if whys else None
