"""Ctrl-C ends a command within a second, as interrupted, whatever code it meets.

Python raises KeyboardInterrupt between two of its instructions: a statement of SQLite or a batch of a model
may run for longer than that, and a callback in C turns the exception into another one.
"""

import os
import signal
import time
from _thread import start_new_thread
from collections.abc import Callable
from types import FrameType

_GRACE = 0.6
"""Seconds that a command has to end by itself; measured: most need 0.4 on a busy machine."""


_LAST_SECONDS = 1.5


class Interrupts:
    """Handles Ctrl-C from the start of the process.

    end: ends the process if the command does not end in time.
    """

    def __init__(self, end: Callable[[], None]) -> None:
        self.has_come = False
        self._writer: int | None = None
        self._end = end
        # A shell makes commands in the background ignore it.
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            self._begin()

    def release(self) -> None:
        """Close the pipe: after a command that ran out of descriptors, printing the error needs them."""
        if self._writer is not None:
            signal.set_wakeup_fd(-1)
            os.close(self._writer)
            self._writer = None

    def _begin(self) -> None:
        reader, self._writer = os.pipe()
        os.set_blocking(self._writer, False)
        # The pipe is written by the signal handler in C, also while the main thread is in a library.
        signal.set_wakeup_fd(self._writer, warn_on_full_buffer=False)
        signal.signal(signal.SIGINT, self._interrupt)
        # Not by `threading`, whose `start` waits until the thread runs: 3 ms of the 45 of a command.
        start_new_thread(self._wait, (reader,))

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        self.has_come = True
        if _is_importing(frame):
            # A library that is being imported prints the exception, or turns it into another.
            self._end()
        signal.default_int_handler(number, frame)

    def _wait(self, reader: int) -> None:
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


def end_with(close: Callable[[], None]) -> None:
    """Close what a server has open; what takes longer is given up, and loses no acknowledged event."""
    # Imported here: most commands serve nothing.
    from threading import Thread

    closing = Thread(target=close, daemon=True)
    closing.start()
    closing.join(_LAST_SECONDS)
    if closing.is_alive():
        os._exit(0)
