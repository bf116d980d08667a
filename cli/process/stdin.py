"""Reads stdin, as bytes or as text."""

import sys
from typing import BinaryIO

from memlog.eventlog.errors import BadInput
from memlog.eventlog.log.quarantine import HINTS, MAX_LINE, TOO_LONG


def stdin_bytes() -> BinaryIO:
    """Return stdin as a binary stream.

    Raises:
        BadInput: stdin is closed.
    """
    # None if Python was started with stdin closed.
    if sys.stdin is None:
        raise BadInput("stdin is closed", hint="connect stdin to a file or a pipe")
    return sys.stdin.buffer


def read_stdin_text() -> str:
    """Read all of stdin, without a byte order mark and without the newline that `echo` adds.

    Raises:
        BadInput: stdin is closed, not UTF-8, or longer than an event may be.
    """
    data = stdin_bytes().read(MAX_LINE + 1)
    if len(data) > MAX_LINE:
        raise TOO_LONG
    try:
        return data.decode().removeprefix("\ufeff").removesuffix("\n")
    except UnicodeDecodeError as error:
        message = f"the content is not UTF-8: byte {error.start}: {error.reason}"
        raise BadInput(message, hint=HINTS["not_utf8"]) from error
