"""Every error that memlog raises, as one tree.

MemlogError
    BadInput        an argument or event is invalid
    NotFound        no event, memory, chat or key has that name
    Busy            a lock was not free before the deadline
    LogError        the log cannot be written or read
    DatabaseError   the read model or the vector cache cannot be used
    EmbeddingError  the embedding model cannot be loaded or returned no usable vector
    ProviderError   a model provider does not answer properly
"""

from typing import Literal

LineFault = Literal[
    "bad_crc",  # the crc does not match the bytes
    "missing_crc",  # memlog wrote the line, since it has `at`, but the crc is gone
    "conflict_marker",  # git could not merge two versions of the file and wrote both
    "torn",  # an incomplete object: a writer was killed
    "not_json",
    "not_utf8",
    "lone_surrogate",  # an unpaired escape such as \ud800
    "too_long",
    "too_deep",
    "duplicate_key",  # parsers disagree on which of two equal keys wins
    "invalid",  # JSON, but members are missing or of the wrong type
    "unknown_type",  # from a newer memlog or another tool; no damage
    "newer_version",  # from a newer memlog; no damage
    "wrong_stream",
]
"""Why a line is quarantined or an append refused."""

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
    "server_away",
    "cannot_create",
    "damaged_format",
    "newer_format",
    "database",
    "damaged",
    "no_room",
    "inherited",
    "embedding",
    "provider",
    # Command line only:
    "usage",
    "io",
    "stored",
    "resources",
    "interrupted",
    "internal",
]
"""All error codes; docs/json-output.md explains them."""

_SHOWN = 200
"""The most characters of a value that an error message shows."""


class MemlogError(Exception):
    """Base of all errors: `code` and `retryable` for programs, message and `hint` for humans.

    said: another program's answer, which may quote its input; only for the terminal, never stored.
    """

    code: ErrorCode = "error"
    retryable = False
    said = ""

    def __init__(
        self, message: str, *, hint: str = "", code: ErrorCode | None = None, retryable: bool | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.code = code or self.code
        self.retryable = self.retryable if retryable is None else retryable
        if hint:
            self.add_note(f"hint: {hint}")  # a traceback shows it


class BadInput(MemlogError):
    """An argument or event is invalid; the message names the value."""

    code: ErrorCode = "bad_input"


class NotFound(MemlogError):
    """No event, memory, chat or key has that name."""

    code: ErrorCode = "not_found"


class Busy(MemlogError):
    """A lock was not free before the deadline; the message names its holder if known."""

    code: ErrorCode = "busy"
    retryable = True


class LogError(MemlogError):
    """The log cannot be written or read.

    After a failed append it is unknown whether the events are stored. Retry with the same ids: a repeated
    event counts once.
    """

    code: ErrorCode = "log_io"
    retryable = True


class DatabaseError(MemlogError):
    """The read model or the vector cache cannot be used. Both can be deleted and are rebuilt."""

    code: ErrorCode = "database"


class EmbeddingError(MemlogError):
    """The embedding model cannot be loaded or returned no usable vector.

    refused: the texts that the provider embeds neither whole nor in parts, though it embeds others.
    embedded: the vectors of the texts that it did embed, by text.
    is_of_texts: whether the provider embeds every text except the refused ones.
    """

    code: ErrorCode = "embedding"
    refused: frozenset[str] = frozenset()
    embedded: dict[str, bytes] | None = None
    is_of_texts = False


class ProviderError(MemlogError):
    """A model provider does not answer properly. Everything that works without the provider continues.

    status: the HTTP status; None if there was no answer. words: the provider's explanation of a refusal, to
    inspect only, never to show or store. retry_after: seconds until it accepts another request.
    is_late: the request timed out. is_away: the provider was unreachable or closed the connection; is_cut:
      it closed the connection.
    is_of_answer: the answer was unusable, or the content was refused: another request may succeed.
    The provider was not called at all if is_local: something is missing on this machine; is_of_budget: the
    day's tokens are spent; or is_resting: it failed recently.
    """

    code: ErrorCode = "provider"
    status: int | None = None
    words = ""
    retry_after: float | None = None
    is_late = False
    is_away = False
    is_cut = False
    is_local = False
    is_of_answer = False
    is_of_budget = False
    is_resting = False


def system_error(error: OSError) -> LogError:
    """Return a LogError that names the path and the reason of a system error."""
    path = str(error.filename or "the store").encode(errors="backslashreplace").decode()
    hint = "make it readable and writable, then try again"
    return LogError(f"{path}: {error.strerror or error}", hint=hint)


def shown_value(value: object) -> str:
    """Return a value as shown in error messages: its `repr`, truncated, or its type if `repr` fails."""
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001 - the value is the caller's, and may raise anything
        text = f"a {type(value).__name__}"
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"
