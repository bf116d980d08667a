"""The operations of `store.extraction`."""

import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from msgspec import Meta

from memlog.eventlog.errors import BadInput, MemlogError, NotFound, ProviderError
from memlog.eventlog.events import Message
from memlog.eventlog.fields import Chat
from memlog.eventlog.files.forks import SplitByFork
from memlog.eventlog.positions import AppendWarning, collect_warnings
from memlog.projector.catchup import Progress
from memlog.projector.sqlite import Connection
from memlog.query.buffer import Buffer, undistilled_buffers
from memlog.query.conversations import messages_of_window
from memlog.query.request import ChatField, Day
from memlog.service.engine import prompts
from memlog.service.engine.engine import Engine
from memlog.service.engine.operation import OperationGroup, operation
from memlog.service.engine.prompts import Prompt
from memlog.service.engine.requests import ProgressField, Retry

if TYPE_CHECKING:
    from memlog.service.llm.task import Questions
    from memlog.service.llm.tasks.extract import ExtractionReport


_RECENT = 50
"""How many of a chat's newest messages are searched for the messages of an exchange."""


class DistilRequest(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The outcome of a request to distil a session in the background.

    appended: how many of the given messages the session lacked. waiting: how many messages its buffer has.
    warnings: about the appended messages.
    why: why no language model distils, so that the messages wait; None if one does.
    """

    session: str
    appended: int
    waiting: int
    warnings: list[AppendWarning] = []
    why: str | None = None


Mode = Annotated[
    str, Meta(max_length=200), "The purpose of the conversation, such as `support`, for the prompt."
]


class Extractions(OperationGroup):
    """Distils conversations with a language model. Every result is an event; a replay asks no model."""

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine)
        self._background = _Background(self._distil)

    @operation("append")
    def run(
        self,
        chat: Annotated[ChatField | None, "Only this conversation."] = None,
        mode: Mode | None = None,
        *,
        dry_run: Annotated[bool, "Send nothing; only report what would be sent."] = False,
        unbounded: Annotated[bool, "Exceed extraction.max_tokens_per_day without asking."] = False,
        progress: ProgressField = None,
        retry: Retry = False,
    ) -> "list[ExtractionReport]":
        """Let the language model distil into memories the messages that no extraction has covered yet.

        The answers become events, so that a replay never asks a model. One request covers messages of one
        day, up to the token limit of the rules. If the model fails, the messages stay in the buffer. Messages
        that it refuses, or answers unusably, are set aside until tomorrow (UTC); the last reports name them.

        Raises:
            BadInput: no language model is configured. Busy: another process distils.
            ProviderError: the model fails; earlier results stay.
        """
        from memlog.service.llm.tasks.extract import ExtractTask

        questions = create_questions(
            self._engine, is_patient=True, retry=retry, is_bounded=not unbounded, is_requested=True
        )
        chat = None if chat is None else Chat.of(chat)
        task = ExtractTask(self._engine, questions, chat, mode)
        if dry_run:
            return [*task.reports_on_plan(), *task.withheld_reports()]
        waiting = self._decide(
            lambda db: sum(len(buffer.messages) for buffer in undistilled_buffers(db, chat))
        )
        done = _collect_reports(task.distil_and_report(chat), "messages distilled", waiting, progress)
        return [*done, *task.withheld_reports()]

    @operation("append")
    def days(
        self,
        until: Annotated[Day | None, "The last day, such as 2026-02-24; by default yesterday."] = None,
        *,
        progress: ProgressField = None,
        retry: Retry = False,
    ) -> "list[ExtractionReport]":
        """Let the language model distil daily events into memories, day by day, each event once.

        A day's memories are appended together with a mark that the day has been distilled. Daily events that
        the model refuses, or answers unusably, are set aside until tomorrow (UTC).

        Raises:
            BadInput: no language model is configured. Busy: another process distils.
            ProviderError: the model fails; earlier results stay.
        """
        from memlog.service.llm.tasks.days import DaysTask

        questions = create_questions(self._engine, is_patient=True, retry=retry)
        task = DaysTask(self._engine, questions, str(until) if until else None)
        waiting, _ = task.pending_and_sendable_days()
        return _collect_reports(task.distil_and_report(), "daily events distilled", len(waiting), progress)

    @operation("append")
    def extract(
        self,
        session: Annotated[ChatField, "The conversation, CHANNEL:CHAT_ID."],
        user: Annotated[str | None, "The user's message."] = None,
        assistant: Annotated[str | None, "The assistant's answer."] = None,
        mode: Mode | None = None,
    ) -> DistilRequest:
        """Start distilling a session's buffer in the background, and return without waiting for the result.

        First, the given messages that the session lacks are appended, even without a language model. They
        stay in the buffer until a model has answered.

        Raises:
            BadInput, Busy, LogError: as `Store.append`.
        """
        chat = Chat.of(session)
        given = [("user", user), ("assistant", assistant)]
        known = self._decide(lambda db: _recent_messages(db, chat), creates=True)
        missing = [
            Message(channel=chat.channel, chat_id=chat.chat_id, role=role, content=text)  # type: ignore[arg-type]
            for role, text in given
            if text and (role, text) not in known
        ]
        told = collect_warnings(self._append(missing))
        (waiting,) = self._decide(lambda db: list(undistilled_buffers(db, chat))) or [Buffer(str(chat), [])]
        why = why_no_model(self._engine)
        if why is None:
            self._background.distil_in_background(chat, mode)
        return DistilRequest(
            session=str(chat),
            appended=len(missing),
            waiting=len(waiting.messages),
            warnings=told,
            why=None if why is None else why.message,
        )

    @operation("read")
    def buffer(self, chat: Annotated[ChatField | None, "Only this conversation."] = None) -> list[Buffer]:
        """List each chat's messages that no extraction has covered yet."""
        chat = None if chat is None else Chat.of(chat)
        return self._read(lambda db: list(undistilled_buffers(db, chat)))

    @operation("read")
    def prompt(self, name: Annotated[str, "The prompt's name, such as extract-1."]) -> Prompt:
        """Show a prompt for the language model. Events from its answers contain the prompt's id.

        Raises:
            BadInput: there is no such prompt, or its file in extraction.prompts_dir is unreadable.
        """
        return prompts.read_prompt(name, self._engine.extraction_rules.prompts_dir)

    def _distil(self, chat: Chat, mode: str | None, calls: int) -> None:
        from memlog.service.llm.tasks.extract import ExtractTask

        questions = create_questions(self._engine, is_requested=True)
        missed = 0
        try:
            done = [*ExtractTask(self._engine, questions, chat, mode).distil_and_report(chat)]
            is_set_aside = bool(done) and all(report.set_aside is not None for report in done)
            missed = calls if is_set_aside else 0
        except ProviderError as error:
            missed = calls - 1 + error.is_resting  # the provider's record counts the request itself
            raise
        finally:
            questions.model.breaker.count_unsent_as_failures(missed)


def _collect_reports(
    reports: "Iterable[ExtractionReport]", what: str, total: int, progress: Progress | None
) -> "list[ExtractionReport]":
    """Collect all reports, and report progress after each."""
    told, done = [], 0
    for report in reports:
        told.append(report)
        done += report.messages * (report.set_aside is None)
        if progress is not None:
            progress(what, done, total)
    return told


def _recent_messages(db: Connection, chat: Chat) -> set[tuple[str, str]]:
    """Return the role and content of each of a chat's newest messages; an empty set if the chat is new."""
    with suppress(NotFound):
        messages = messages_of_window(db, chat, last=_RECENT, tokens=None, across_sessions=False)
        return {(each.role, each.content) for each in messages}
    return set()


class _Background(SplitByFork):
    """A thread that distils the waiting chats in turn, and ends when no chat waits.

    distil: called with a chat, the mode of the last call for it, and the number of calls.
    """

    def __init__(self, distil: Callable[[Chat, str | None, int], None]) -> None:
        super().__init__()
        self._distil = distil
        self.after_fork_in_child()

    def after_fork_in_child(self) -> None:
        """Forget the thread and the waiting chats, which belong to the parent."""
        self._lock = threading.Lock()
        self._waiting: dict[Chat, list[str | None]] = {}
        """The modes of the calls, keyed by chat."""
        self._is_running = False

    def distil_in_background(self, chat: Chat, mode: str | None) -> None:
        with self._lock:
            self._waiting.setdefault(chat, []).append(mode)
            if not self._is_running:
                self._is_running = True
                threading.Thread(
                    target=self._distil_waiting_chats, name="memlog-extraction", daemon=True
                ).start()

    def _distil_waiting_chats(self) -> None:
        while True:
            with self._lock:
                if not self._waiting:
                    self._is_running = False
                    return
                chat = next(iter(self._waiting))
                modes = self._waiting.pop(chat)
            # After a memlog error, the messages stay in the buffer, and the provider's record has the error.
            # Any other error ends the thread with a traceback; the next call starts a new one.
            try:
                with suppress(MemlogError):
                    self._distil(chat, modes[-1], len(modes))
            except BaseException:
                self._is_running = False
                raise


def create_questions(engine: Engine, **how: Any) -> "Questions":  # noqa: ANN401 - as `Questions` takes them
    """Return the `Questions` for a store's language model. how: see `Questions`.

    Raises:
        BadInput: no language model is configured.
    """
    # Imported here: most processes ask no model.
    from memlog.service.llm.task import Questions

    if error := why_no_model(engine):
        raise error
    return Questions(engine, **how)


def why_no_model(engine: Engine) -> BadInput | None:
    """Return an error that says why no language model is used; None if a model is used."""
    if engine.read_model.is_off:
        return BadInput("memory.enabled is false", hint="set memory.enabled to true")
    if not engine.extraction_rules.enabled:
        return BadInput("extraction.enabled is false", hint="set extraction.enabled to true")
    if engine.language_model is None:
        hint = "choose a model with memlog.open(language_model=…)"
        return BadInput("no language model is configured", hint=hint)
    return None
