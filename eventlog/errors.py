"""Every error that memlog raises, as one tree.

MemlogError
    BadInput        what the caller gave cannot be stored or asked
    NotFound        no event, memory, chat or key of that name
    Busy            a lock was not free before the deadline
    LogError        the log could not be written or read
    DatabaseError   the read model or the vector cache could not be used
    EmbeddingError  the embedding model could not be loaded or gave no usable vector
"""


class MemlogError(Exception):
    """An error with what a program needs (`code`, `retryable`) and what a person needs (`hint`)."""

    code = "error"
    retryable = False

    def __init__(
        self, message: str, *, hint: str = "", code: str | None = None, retryable: bool | None = None
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

    code = "bad_input"


class NotFound(MemlogError):
    """No event, memory, chat or key of that name."""

    code = "not_found"


class Busy(MemlogError):
    """A lock was not free before the deadline; the message names its holder where it can be known."""

    code = "busy"
    retryable = True


class LogError(MemlogError):
    """The log could not be written or read.

    After a failed append the events are not known to be stored: trying again with the same ids is safe,
    since the projector counts a repeated event once.
    """

    code = "log_io"
    retryable = True


class DatabaseError(MemlogError):
    """The read model or the vector cache could not be used. Both can be deleted and come back."""

    code = "database"


class EmbeddingError(MemlogError):
    """The embedding model could not be loaded or gave no usable vector."""

    code = "embedding"
