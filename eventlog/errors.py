"""Every error that memlog raises, as one tree.

MemlogError
    BadInput        what the caller gave cannot be stored or asked
    NotFound        no event, memory, chat or key of that name
    Busy            a lock was not free before the deadline
    LogError        the log could not be written or read
    DatabaseError   the read model or the vector cache could not be used
    EmbeddingError  the embedding model could not be loaded or gave no usable vector
"""

from typing import Literal

LineFault = Literal[
    "bad_crc",  # the line has a crc that does not match its bytes
    "missing_crc",  # the line has `at`, so memlog wrote it, but no crc
    "conflict_marker",  # git could not merge two versions of the file, and wrote both
    "torn",  # the beginning of an object: a writer was killed
    "not_json",
    "not_utf8",
    "lone_surrogate",  # an escape such as \ud800 that is no character
    "too_long",
    "too_deep",
    "duplicate_key",  # an object says two things under one name, and readers differ in which they take
    "invalid",  # JSON, but members are missing or of the wrong type
    "unknown_type",  # of a newer memlog or another tool; no damage
    "newer_version",  # of a newer memlog; no damage
    "wrong_stream",
]
"""Why a line is quarantined, or refused by an append."""

ErrorCode = Literal[
    LineFault,
    "error",
    "bad_input",
    "busy",
    "not_found",
    "core_key_not_found",
    "daily_event_not_found",
    "document_not_found",
    "event_not_found",
    "fact_not_found",
    "memory_not_found",
    "project_not_found",
    "session_not_found",
    "source_not_found",
    "store_not_found",
    "stream_not_found",
    "log_io",
    "cannot_create",
    "damaged_format",
    "newer_format",
    "database",
    "damaged",
    "no_room",
    "embedding",
    # Of the command line alone:
    "usage",
    "io",
    "stored",
    "resources",
    "interrupted",
    "internal",
]
"""Every code of an error, as docs/json-output.md explains them."""


class MemlogError(Exception):
    """An error with what a program needs (`code`, `retryable`) and what a person needs (`hint`)."""

    code: ErrorCode = "error"
    retryable = False

    def __init__(
        self, message: str, *, hint: str = "", code: ErrorCode | None = None, retryable: bool | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        if code is not None:
            self.code = code
        if retryable is not None:
            self.retryable = retryable


class BadInput(MemlogError):
    """What the caller gave cannot be stored or asked; the message names the offending value."""

    code: ErrorCode = "bad_input"


class NotFound(MemlogError):
    """No event, memory, chat or key of that name."""

    code: ErrorCode = "not_found"


class Busy(MemlogError):
    """A lock was not free before the deadline; the message names its holder where it can be known."""

    code: ErrorCode = "busy"
    retryable = True


class LogError(MemlogError):
    """The log could not be written or read.

    After a failed append the events are not known to be stored: trying again with the same ids is safe,
    since the projector counts a repeated event once.
    """

    code: ErrorCode = "log_io"
    retryable = True


class DatabaseError(MemlogError):
    """The read model or the vector cache could not be used. Both can be deleted and come back."""

    code: ErrorCode = "database"


class EmbeddingError(MemlogError):
    """The embedding model could not be loaded or gave no usable vector."""

    code: ErrorCode = "embedding"
