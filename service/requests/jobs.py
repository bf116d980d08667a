"""Requests for jobs: `store.jobs`."""

from typing import Annotated, Literal

from msgspec import Meta

from memlog.eventlog.limits import MOST
from memlog.query.request import Request
from memlog.service.requests.extraction import Retry

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
