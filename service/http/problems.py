"""Errors as the service answers them: `{"error": {"code", "message", "hint", "retryable"}}`."""

import re
from collections.abc import Awaitable, Callable

import msgspec
from starlette.requests import Request as Call
from starlette.responses import Response

from memlog.eventlog.errors import (
    BadInput,
    Busy,
    DatabaseError,
    EmbeddingError,
    LogError,
    MemlogError,
    NotFound,
)

STATUS: dict[type[MemlogError], int] = {
    BadInput: 422,
    NotFound: 404,
    Busy: 503,
    EmbeddingError: 503,
    LogError: 507,
    DatabaseError: 500,
}
"""By class of error. 507: the log cannot be written, as on a full disk."""

_CALL = re.compile(r"\bstore\.([a-z_.]+)\([^()]*\)")


class Problem(msgspec.Struct, frozen=True):
    """What went wrong, for programs and people.

    code: as errors of memlog have it; of the request itself `bad_request`, `unauthorized`, `forbidden`,
        `misdirected`, `no_route`, `bad_method`, `timeout`, `too_large`, `bad_type`, `overloaded`, `internal`.
    """

    code: str
    message: str
    hint: str = ""
    retryable: bool = False


class ProblemAnswer(msgspec.Struct, frozen=True):
    """The body of an answer that is no success."""

    error: Problem


class Refused(Exception):
    """A request that reaches no operation: the status of its answer, and why."""

    def __init__(self, status: int, code: str, message: str, hint: str = "", **headers: str) -> None:
        super().__init__(message)
        self.status, self.problem = status, Problem(code, message, hint, retryable=status in (408, 503))
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}

    def answer(self) -> Response:
        """The answer."""
        return answer_of(self.problem, self.status, **self.headers)


def problem_of(error: MemlogError) -> Problem:
    """An error of memlog; its hint names operations."""
    return Problem(error.code, error.message, _CALL.sub(r"the operation \1", error.hint), error.retryable)


def failed(error: MemlogError) -> Response:
    """The answer to a request whose operation failed."""
    status = next(status for kind, status in STATUS.items() if isinstance(error, kind))
    again = {"retry-after": "1"} if status == 503 else {}
    return answer_of(problem_of(error), status, **again)


def answering(endpoint: Callable[[Call], Awaitable[Response]]) -> Callable[[Call], Awaitable[Response]]:
    """An endpoint that answers refused and failed requests, too."""

    async def answer(call: Call) -> Response:
        try:
            return await endpoint(call)
        except Refused as refused:
            return refused.answer()
        except MemlogError as error:
            return failed(error)

    return answer


def answer_of(problem: Problem, status: int, **headers: str) -> Response:
    """The answer that tells a problem."""
    return Response(
        msgspec.json.encode(ProblemAnswer(problem)), status, headers, media_type="application/json"
    )
