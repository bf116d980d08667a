"""Converts errors to HTTP responses, and back to errors for clients."""

import re
from collections.abc import Callable
from pathlib import Path

import msgspec

from memlog.eventlog.errors import (
    BadInput,
    Busy,
    DatabaseError,
    EmbeddingError,
    LogError,
    MemlogError,
    NotFound,
    ProviderError,
)
from memlog.eventlog.positions import RefusedLine
from memlog.projector.sqlite import NO_ROOM
from memlog.service.engine.readable import allowing_files_below
from memlog.service.store import Store

STATUS: dict[type[MemlogError], int] = {
    BadInput: 422,
    NotFound: 404,
    Busy: 503,
    EmbeddingError: 503,
    ProviderError: 502,
    LogError: 507,
    DatabaseError: 500,
}
"""HTTP statuses by error class. 507: the log cannot be written or, on a full disk, the read model."""

_CALL = re.compile(r"\bstore\.([a-z_.]+)\([^()]*\)")

_WORDS = (
    (", or create one with memlog.open(PATH, create=True)", ""),
    (
        "help(memlog.TYPE) lists the members of a type",
        "the page on the log's format lists the members of a type",
    ),
    ("Projects.list()", "a project is created by its first append"),
)
"""Parts of hints for Python callers, and their replacements for clients of a service."""


class Problem(msgspec.Struct, frozen=True):
    """An error, for programs and people.

    code: the code of the memlog error; or, if there is none, `bad_request`, `unauthorized`, `forbidden`,
        `misdirected`, `no_route`, `bad_method`, `timeout`, `too_large`, `bad_type`, `overloaded`, `ending` or
        `internal`.
    """

    code: str
    message: str
    hint: str = ""
    retryable: bool = False


class ProblemAnswer(msgspec.Struct, frozen=True):
    """The body of an error response."""

    error: Problem


def error_to_problem(
    error: MemlogError, spelled: Callable[[str], str] = lambda name: f"the operation {name}"
) -> Problem:
    """Convert an error to a problem. spelled: returns the name of an operation for the hint."""
    hint = _CALL.sub(lambda found: spelled(found[1]), error.hint)
    for python, words in _WORDS:
        hint = hint.replace(python, words)
    return Problem(error.code, error.message, hint, error.retryable)


def http_status_of_error(error: MemlogError) -> int:
    """Return the HTTP status for an error."""
    if error.code == NO_ROOM:
        return STATUS[LogError]
    return next(status for kind, status in STATUS.items() if isinstance(error, kind))


def problem_to_error(problem: Problem, status: int) -> MemlogError:
    """Convert a problem from a server's answer back to an error."""
    kinds = [kind for kind, its in STATUS.items() if its == status] or [BadInput]
    # Two classes of errors share the status 503; the code identifies the second class.
    kind = kinds[-1] if problem.code == "embedding" else kinds[0]
    return kind(problem.message, hint=problem.hint, code=problem.code, retryable=problem.retryable)  # type: ignore[arg-type] # a newer server may have other codes


def append_and_acknowledge(store: Store, lines: bytes, root: Path | None) -> bytes:
    """Append one event per line; return a line for each, with its position or the reason for its refusal.

    root: see `allowing_files_below`.
    """
    with allowing_files_below(root):
        outcomes = store.append_lines([*enumerate(lines.split(b"\n"), start=1)])
    return msgspec.json.Encoder().encode_lines(
        {"line": number, "id": outcome.id, "error": error_to_problem(outcome.error)}
        if isinstance(outcome, RefusedLine)
        else outcome
        for number, outcome in outcomes
    )
