"""All errors that memlog raises, as one hierarchy.

MemlogError
    BadInput        an argument or event is invalid
    NotFound        no event, memory, chat or key has that name
    Busy            a lock was not released in time
    LogError        the log cannot be written or read
    DatabaseError   the read model or the vector cache cannot be used
    EmbeddingError  the embedding model cannot be loaded, or did not return a usable vector
    ProviderError   a model provider failed or gave an unusable answer
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
    "import_not_found",
    "link_not_found",
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
    """The base class of all errors: `code` and `retryable` for programs, the message and `hint` for people.

    said: another program's reply, which may quote its input; show it only on the terminal, never store it.
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
    """An argument or event is invalid; the message quotes the value."""

    code: ErrorCode = "bad_input"


class NotFound(MemlogError):
    """No event, memory, chat or key has the given name."""

    code: ErrorCode = "not_found"


class Busy(MemlogError):
    """A lock was not released in time; the message names its holder, if known."""

    code: ErrorCode = "busy"
    retryable = True


class LogError(MemlogError):
    """The log cannot be written or read.

    After a failed append, the events may or may not have been stored. Retry with the same ids: an event that
    is appended twice counts once.
    """

    code: ErrorCode = "log_io"
    retryable = True


class DatabaseError(MemlogError):
    """The read model or the vector cache cannot be used. Either can be deleted; memlog rebuilds it."""

    code: ErrorCode = "database"


class EmbeddingError(MemlogError):
    """The embedding model cannot be loaded, or did not return a usable vector.

    refused: texts that the provider rejects even when they are split, although it embeds others.
    embedded: the vectors of the texts that were embedded, keyed by text.
    is_of_texts: whether only the refused texts failed and the provider embeds all others.
    """

    code: ErrorCode = "embedding"
    refused: frozenset[str] = frozenset()
    embedded: dict[str, bytes] | None = None
    is_of_texts = False


class ProviderError(MemlogError):
    """A model provider failed or gave an unusable answer. Everything that does not need it keeps working.

    status: the HTTP status; None if there was no response. words: the provider's reason for a refusal, for
    inspection only; never show or store it. retry_after: seconds until it accepts requests again.
    is_late: the request timed out. is_away: the provider was unreachable or closed the connection; is_cut:
      it closed the connection.
    is_of_answer: the answer was unusable or the content was refused, so another request may succeed.

    If one of these is set, no request was made. is_local: something is missing on this machine. is_of_budget:
    the day's tokens are used up. is_resting: the provider failed recently.
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


def convert_system_error(error: OSError) -> LogError:
    """Convert a system error to a LogError with the path and the reason."""
    path = str(error.filename or "the store").encode(errors="backslashreplace").decode()
    hint = "make it readable and writable, then try again"
    return LogError(f"{path}: {error.strerror or error}", hint=hint)


def format_value_for_message(value: object) -> str:
    """Return `repr(value)`, truncated for error messages, or the name of its type if `repr` fails."""
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001 - the value is the caller's, and may raise anything
        text = f"a {type(value).__name__}"
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"
