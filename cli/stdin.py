"""Reading stdin."""

import sys
from typing import BinaryIO

from memlog.eventlog.errors import BadInput
from memlog.eventlog.quarantine import HINTS, MAX_LINE, TOO_LONG


def stdin() -> BinaryIO:
    """It, as bytes.

    Raises:
        BadInput: it is closed.
    """
    # Python has none where it was started with it closed.
    if sys.stdin is None:
        raise BadInput("stdin is closed", hint="give events on stdin, or an event by options")
    return sys.stdin.buffer


def stdin_text() -> str:
    """What stdin holds, without the newline that `echo` adds.

    Raises:
        BadInput: it is closed, longer than an event may be, or not UTF-8.
    """
    data = stdin().read(MAX_LINE + 1)
    if len(data) > MAX_LINE:
        raise TOO_LONG
    try:
        return data.decode().removesuffix("\n")
    except UnicodeDecodeError as error:
        message = f"the content is not UTF-8: byte {error.start}: {error.reason}"
        raise BadInput(message, hint=HINTS["not_utf8"]) from error
