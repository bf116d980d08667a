"""Prints errors, as a line with a hint or as JSON, and determines exit codes."""

import errno
import io
import os
import signal
import sys
import time
from _thread import start_new_thread
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import click
import msgspec

from memlog.cli.output.output import STORED, put_on_one_line
from memlog.eventlog.errors import (
    BadInput,
    Busy,
    DatabaseError,
    EmbeddingError,
    ErrorCode,
    LogError,
    MemlogError,
    NotFound,
    ProviderError,
)


class OutputError(Exception):
    """Writing to stdout failed.

    Not an OSError: click exits on some of those, and the others are about the store.
    """

    def __init__(self, cause: OSError) -> None:
        super().__init__(cause.strerror or str(cause))
        self.is_reader_gone = cause.errno == errno.EPIPE


@contextmanager
def ignoring_closed_pipe() -> Iterator[None]:
    """Ignore a closed pipe, for commands whose exit code is a verdict and must be right."""
    try:
        yield
    except OutputError as error:
        if not error.is_reader_gone:
            raise


def replace_streams() -> None:
    """Replace sys.stdout and sys.stderr, unless something in this process already has."""
    try:
        sys.stdout = _text_stream(_open_stdout(), sys.stdout)
        # None if stderr is closed: Python and click then write nothing.
        if sys.stderr is not None:
            sys.stderr = _text_stream(
                _Output(_open_descriptor(sys.stderr.fileno()), is_needed=False), sys.stderr
            )
    except io.UnsupportedOperation:
        return


class _Output(io.BufferedWriter):
    """A writer that drops all output, even if buffered, after its first failure.

    The underlying file must not fail instead: an interrupt between the system call and its return would
    leave written bytes in the buffer, to be written twice.

    is_needed: whether to raise the first failure.
    """

    def __init__(self, file: io.FileIO, *, is_needed: bool, failure: OSError | None = None) -> None:
        super().__init__(file)
        self._is_needed = is_needed
        self._has_failed = False
        self._failure = failure

    def write(self, data: Any, /) -> int:  # noqa: ANN401 - any buffer
        self._try_to_write(lambda: super(_Output, self).write(data))
        return memoryview(data).nbytes

    def flush(self) -> None:
        self._try_to_write(super().flush)

    def _try_to_write(self, work: Callable[[], object]) -> None:
        if self._has_failed:
            return
        try:
            if self._failure is not None:
                raise self._failure
            work()
        except OSError as error:
            self._has_failed = True
            if self._is_needed:
                raise OutputError(error) from error


def _open_stdout() -> _Output:
    if sys.stdout is not None:
        return _Output(_open_descriptor(sys.stdout.fileno()), is_needed=True)
    # Stdout is closed. Occupy its descriptor, which the next opened file would get.
    closed = OSError(errno.EBADF, os.strerror(errno.EBADF))
    return _Output(io.FileIO(os.devnull, "w"), is_needed=True, failure=closed)


def _open_descriptor(fd: int) -> io.FileIO:
    return io.FileIO(fd, "w", closefd=False)


def _text_stream(output: _Output, before: Any) -> io.TextIOWrapper:  # noqa: ANN401 - a text stream, or None
    """Return a text stream over `output`, with the encoding and buffering of the stream `before`."""
    return io.TextIOWrapper(
        output,
        encoding=getattr(before, "encoding", "utf-8"),
        # What the encoding of the locale cannot express is printed as an escape.
        errors="backslashreplace",
        line_buffering=getattr(before, "line_buffering", False),
    )


EXIT_CODES = {
    0: "done",
    1: "a check failed, or no such id",
    2: "wrong usage",
    3: "loss or tampering",
    65: "bad data",
    69: "a model or service is away",
    70: "a fault of memlog",
    71: "out of memory or descriptors",
    73: "cannot create",
    74: "input or output failed",
    75: "busy, try again",
    130: "interrupted",
}
"""The meaning of each exit code."""

EXIT_CODES_HELP = f"Exit codes: {'; '.join(f'{code} {means}' for code, means in EXIT_CODES.items())}."

_EXIT_CODES: dict[type[MemlogError], int] = {
    NotFound: 1,
    BadInput: 65,
    EmbeddingError: 69,
    ProviderError: 69,
    LogError: 74,
    DatabaseError: 74,
    Busy: 75,
}
_CANNOT_CREATE = 73
LOSS = 3
"""The exit code if sealed bytes are lost or changed."""
_INTERRUPTED = 130
_INTERNAL = 70
IO_FAILED = 74
_OUT_OF_RESOURCES = 71
_EXHAUSTED = (errno.ENOMEM, errno.EMFILE, errno.ENFILE)
_NOT_LOADED = "failed to map segment from shared object"
"""The message of glibc's and musl's loader when there is no memory for a library."""


class Failure(msgspec.Struct):
    """An error in JSON."""

    code: ErrorCode
    message: str
    hint: str
    retryable: bool


def error_to_failure(error: BaseException) -> Failure:
    """Convert `error` to its JSON form, with keys and passwords masked."""
    _, found = _classify_error(error)
    return msgspec.structs.replace(
        found, message=_mask_secrets(found.message), hint=_mask_secrets(found.hint)
    )


def exit_code_of(error: BaseException) -> int:
    """Return the exit code for `error`."""
    return error.exit_code if isinstance(error, click.exceptions.Exit) else _classify_error(error)[0]


def _classify_error(error: BaseException) -> tuple[int, Failure]:
    match error:
        case _ if (what := _find_exhausted_resource(error)) is not None:
            hint = "raise the limit, or do less at a time; acknowledged events are stored"
            return _OUT_OF_RESOURCES, Failure(
                "resources", f"the system ran out of resources: {what}", hint, True
            )
        case MemlogError():
            # Imported here: most runs end without an error.
            from memlog.cli.output.help_pages import translate_hint

            failure = Failure(error.code, error.message, translate_hint(error.hint), error.retryable)
            return _exit_code_of_memlog_error(error), failure
        case click.UsageError():
            return error.exit_code, Failure("usage", error.format_message(), _usage_hint(error), False)
        case click.ClickException():
            return error.exit_code, Failure("usage", error.format_message(), "memlog --help", False)
        case KeyboardInterrupt() | click.Abort():
            return _INTERRUPTED, Failure("interrupted", "interrupted", "what was done is kept", True)
        case OutputError():
            return IO_FAILED, _output_failure(error)
        case OSError():
            name = error.filename or "input or output"
            hint = "make it readable and writable, then try again"
            return IO_FAILED, Failure("io", f"{name}: {error.strerror or error}", hint, True)
    hint = "this is a bug in memlog: set MEMLOG_DEBUG=1 to see where"
    return _INTERNAL, Failure("internal", f"{type(error).__name__}: {error}", hint, False)


def _exit_code_of_memlog_error(error: MemlogError) -> int:
    if error.code == "cannot_create":
        return _CANNOT_CREATE
    return next((code for kind, code in _EXIT_CODES.items() if isinstance(error, kind)), _INTERNAL)


def _usage_hint(error: click.UsageError) -> str:
    context = error.ctx
    if context is None:
        return "memlog --help"
    if isinstance(error, click.NoSuchOption):
        root, name = context.find_root(), error.option_name
        if context is not root and any(name in option.opts for option in root.command.params):
            return f"{name} must come before the command: {root.command_path} {name} … {context.info_name}"
        takes_text = any(isinstance(parameter, click.Argument) for parameter in context.command.params)
        if not error.possibilities:
            # The setting search_limit is `query -k`: users of another command try --limit.
            setting = name.lstrip("-").replace("-", "_")
            for option in context.command.params:
                known = getattr(option, "setting", None)
                if known is not None and known.name.endswith(f"_{setting}"):
                    allowed = getattr(option.type, "allowed", "a value")
                    return f"use {option.opts[0]} {allowed} instead; {context.command_path} --help"
        if takes_text and not error.possibilities:
            return f"put -- before text that begins with a dash; {context.command_path} --help"
    return f"{context.command_path} --help"


def _output_failure(error: OutputError) -> Failure:
    if not STORED.count:
        return Failure("io", f"the output: {error}", "make it writable, then try again", True)
    ids = ", ".join(STORED.ids)
    if STORED.count == 1:
        message = f"the event {ids} is stored; its acknowledgement could not be written: {error}"
        return Failure("stored", message, "do not append it again without this id", False)
    more = f" and {STORED.count - len(STORED.ids)} more" if STORED.count > len(STORED.ids) else ""
    stored = f"{STORED.count} events are stored ({ids}{more})"
    message = f"{stored}; their acknowledgements could not be written: {error}"
    return Failure("stored", message, "do not append them again without these ids", False)


def _find_exhausted_resource(error: BaseException | None) -> str | None:
    """Return the resource that ran out and so caused `error`; None if that is not the cause."""
    match error:
        case MemoryError():
            return "memory"
        case OSError() if error.errno in _EXHAUSTED:
            return (error.strerror or str(error)).lower()
        case ImportError() if _NOT_LOADED in str(error):
            return "memory"
        case ImportError():
            return _find_exhausted_resource(error.__cause__ or error.__context__)
        case LogError():
            return _find_exhausted_resource(error.__cause__)
    return None


def _quote_provider_for_person(error: BaseException) -> str:
    """Return the provider's message if stderr is a terminal, otherwise "": it may quote the request."""
    if not (isinstance(error, MemlogError) and error.said and sys.stderr.isatty()):
        return ""
    return _mask_secrets(error.said)


def _mask_secrets(text: str) -> str:
    # Imported here: most runs end without an error.
    from memlog.eventlog.secrets.detection import mask_keys

    return mask_keys(text)


def print_error(error: BaseException, *, as_json: bool) -> None:
    """Print `error` to stderr."""
    if isinstance(error, click.exceptions.Exit):
        return
    if os.environ.get("MEMLOG_DEBUG"):
        # Imported here: it takes 2 ms, and `append` starts without it.
        import traceback

        click.echo(_mask_secrets("".join(traceback.format_exception(error))), err=True, nl=False)
    failure = error_to_failure(error)
    if as_json:
        # Imported here: most runs end without an error, and --version needs no event.
        from memlog.eventlog.log.streams import escape_invalid_utf8

        # A message may contain a name that is not UTF-8.
        safe = msgspec.structs.replace(
            failure, message=escape_invalid_utf8(failure.message), hint=escape_invalid_utf8(failure.hint)
        )
        click.echo(msgspec.json.encode({"error": safe}).decode(), err=True)
        return
    click.echo(f"memlog: {put_on_one_line(failure.message)}", err=True)
    if words := _quote_provider_for_person(error):
        click.echo(f"it said: {put_on_one_line(words)}", err=True)
    if failure.hint:
        click.echo(f"hint: {put_on_one_line(failure.hint)}", err=True)


# Python raises KeyboardInterrupt between two of its instructions: a statement of SQLite or a batch of a model
# may take longer, and a callback in C turns the exception into another one.

_GRACE = 0.6
"""Seconds allowed for an interrupted command to end; most commands needed 0.4 on a busy machine."""

_LAST_SECONDS = 1.5
"""Seconds allowed for an interrupted server to close."""


class Interrupts:
    """Handles Ctrl-C from the start of the process.

    end: ends the process if the command does not stop in time.
    """

    def __init__(self, end: Callable[[], None]) -> None:
        self.has_come = False
        self._writer: int | None = None
        self._end = end
        # In background commands of a shell, SIGINT is ignored, and stays so.
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            self._install_handler()

    def close_pipe(self) -> None:
        """Close the pipe, so that a command without free file descriptors can print its error."""
        if self._writer is not None:
            signal.set_wakeup_fd(-1)
            os.close(self._writer)
            self._writer = None

    def _install_handler(self) -> None:
        reader, self._writer = os.pipe()
        os.set_blocking(self._writer, False)
        # The signal handler in C writes to the pipe, even while the main thread is in a library.
        signal.set_wakeup_fd(self._writer, warn_on_full_buffer=False)
        signal.signal(signal.SIGINT, self._on_sigint)
        # Not `threading`, whose `start` waits until the thread runs: 3 ms of the 45 of a command.
        start_new_thread(self._watch_pipe, (reader,))

    def _on_sigint(self, number: int, frame: FrameType | None) -> None:
        self.has_come = True
        if _is_importing(frame):
            # During an import, a library may print the exception or turn it into another.
            self._end()
        signal.default_int_handler(number, frame)

    def _watch_pipe(self, reader: int) -> None:
        while data := os.read(reader, 64):
            if signal.SIGINT in data:
                time.sleep(_GRACE)
                self._end()
        os.close(reader)


def _is_importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


def close_or_exit(close: Callable[[], None]) -> None:
    """Close a server's resources; after a timeout, just exit, which loses no acknowledged event."""
    # Imported here: most commands serve nothing.
    from threading import Thread

    closing = Thread(target=close, daemon=True)
    closing.start()
    closing.join(_LAST_SECONDS)
    if closing.is_alive():
        os._exit(0)
