"""What is missing: the errors of names that nothing has."""

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from memlog.eventlog.errors import ErrorCode, NotFound
from memlog.eventlog.struct_fields import fields_of
from memlog.query.request import Request
from memlog.service.operations import Operation

Q = TypeVar("Q", bound=Request)
T = TypeVar("T")


def required(operation: Callable[[Q], T], request: Q) -> Any:  # noqa: ANN401 - T without None and False
    """What an operation of an object answers.

    Raises:
        NotFound: it answers that what the request names is missing.
    """
    declared: Operation[Any, Any, Q, T] = operation.__func__  # type: ignore[attr-defined]
    answer = operation(request)
    if declared.missing is not None and (answer is None or answer is False or answer == []):
        raise not_found(declared.missing, ".".join(_names(request)))
    return answer


def _names(request: Request) -> list[str]:
    """The values by which a request names something: those that it must have, else all that it has."""
    fields = fields_of(type(request))
    named = [field for field in fields if field.default is msgspec.NODEFAULT] or fields
    return [str(value) for field in named if (value := getattr(request, field.name)) is not None]


NOUNS: dict[ErrorCode, tuple[str, str]] = {
    "core_key_not_found": ("core memory key", "store.core.get()"),
    "daily_event_not_found": ("daily event", "store.daily.list()"),
    "document_not_found": ("source or document", "store.documents.list()"),
    "event_not_found": ("event or memory", "store.search(TEXT) gives ids"),
    "memory_not_found": ("memory", "store.memories.list()"),
    "project_not_found": ("project", "Projects.list()"),
    "session_not_found": ("chat", "store.conversations.sessions()"),
    "source_not_found": ("source", "store.documents.list()"),
}
"""What is missing by code, and where its names are listed."""


def not_found(code: ErrorCode, *names: str) -> NotFound:
    """The error where nothing has these names."""
    what, hint = NOUNS[code]
    return NotFound(f"no {what} {', '.join(map(repr, names))}", hint=hint, code=code)
