"""Requests for extractions and jobs: `store.extraction`, `store.jobs`."""

from typing import Annotated, Literal

from msgspec import Meta

from memlog.eventlog.limits import MOST
from memlog.query.request import ChatField, Day, Request
from memlog.service.engine.requests import ProgressField

Mode = Annotated[
    str, Meta(max_length=200), "What the conversation is for, such as `support`: shapes the prompt."
]


Retry = Annotated[bool, "Ask again about what was set aside today."]


class DistilMessages(Request, frozen=True):
    """Have the language model distil messages into memories: those that no extraction covers yet.

    What it answers becomes events, and a replay never asks a model. One request covers messages of one day,
    up to the tokens of the rules. Where the model fails, the messages stay in the buffer. What it refuses, or
    answers with nothing usable, is set aside until tomorrow (UTC): the last reports name it.

    Raises:
        BadInput: no language model is configured. Busy: another process distils.
        ProviderError: the model fails; what was distilled before stays.
    """

    chat: Annotated[ChatField | None, "Only of this conversation."] = None
    mode: Mode | None = None
    dry_run: Annotated[bool, "Send nothing: only tell what would be sent."] = False
    unbounded: Annotated[bool, "Do not ask, and send more than extraction.max_tokens_per_day."] = False
    progress: ProgressField = None
    retry: Retry = False


class DistilDays(Request, frozen=True):
    """Have the language model distil daily events into memories, a day at a time: those that nobody has yet.

    A day's memories and the mark that it is distilled count together. Without `until`, today is left out: it
    is not over. What the model refuses, or answers with nothing usable, is set aside until tomorrow (UTC).

    Raises:
        BadInput: no language model is configured. Busy: another process distils.
        ProviderError: the model fails; what was distilled before stays.
    """

    until: Annotated[Day | None, "The last day (2026-02-24); yesterday where not given."] = None
    progress: ProgressField = None
    retry: Retry = False


class ListBuffers(Request, frozen=True):
    """List the messages that no extraction covers yet, by chat."""

    chat: Annotated[ChatField | None, "Only of this conversation."] = None


class DistilExchange(Request, frozen=True):
    """Distil the buffer of a session in the background, after an answer was stored. Returns at once.

    Messages of these texts that the session lacks are appended first. Where the process ends before the model
    has answered, the messages stay in the buffer.

    Raises:
        BadInput: no language model is configured; or as `Store.append`, as Busy and LogError.
    """

    session: Annotated[ChatField, "The conversation, CHANNEL:CHAT_ID."]
    user: Annotated[str | None, "The user's message."] = None
    assistant: Annotated[str | None, "What the assistant answered."] = None
    mode: Mode | None = None


class ShowPrompt(Request, frozen=True):
    """Show a prompt of the language model. Each event that was made with it names its id.

    Raises:
        BadInput: there is no such prompt.
    """

    name: Annotated[str, "The prompt's name, such as extract-1."]


JobName = Literal["extraction", "summaries", "daily", "weekly"]


class ListJobs(Request, frozen=True):
    """List the jobs of a store: when each is due, when it ran last, and what became of it.

    `memlog watch` and `memlog serve` run them. A run that was missed is caught up once.
    """


class RunJobs(Request, frozen=True):
    """Run the jobs that are due, each period once; or one of them now, whether it is due or not.

    Steps that need a language model are skipped where none is configured.

    Raises:
        Busy: another process runs jobs, or distils.
        ProviderError: the language model fails: the run stays due, and no step is done twice.
    """

    job: Annotated[JobName | None, "Only this job, now."] = None
    retry: Retry = False


class ListJobRuns(Request, frozen=True):
    """List the runs of the daily and the weekly job, the newest first: each step, what it changed, and why it
    was skipped."""

    job: Annotated[Literal["daily", "weekly"] | None, "Only of this job."] = None
    limit: Annotated[int | None, Meta(ge=1, le=MOST), "At most so many runs; all where not given."] = None
