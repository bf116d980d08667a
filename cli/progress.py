"""How far long work is: one line on stderr, on a terminal only, gone at the end."""

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click

Progress = Callable[[str, int, int], None]
"""Called with what is being done, how much of it is done, and how much there is."""

_PAUSE = 0.1
_USUAL_COLUMNS = 80


@contextmanager
def progress_line() -> Iterator[Progress | None]:
    """What shows progress while the context lasts; None where nobody is there to look."""
    with line_on_a_terminal() as line:
        yield None if line is None else line.show


@contextmanager
def line_on_a_terminal() -> "Iterator[ProgressLine | None]":
    """A line of stderr while the context lasts; None where nobody is there to look."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield None
        return
    line = ProgressLine()
    try:
        yield line
    finally:
        line.clear()


class ProgressLine:
    """One line that is written over and over, and is gone at the end."""

    def __init__(self) -> None:
        self._what = ""
        self._began = self._drawn = 0.0
        self._first = self._width = 0

    def show(self, what: str, done: int, total: int) -> None:
        """How far work is, unless it was shown a moment ago; nothing where all is done."""
        now = time.monotonic()
        if what != self._what:
            self._what, self._began, self._drawn, self._first = what, now, 0.0, done
        if done >= total:
            self.clear()
        elif now - self._drawn >= _PAUSE:
            self._drawn = now
            self._draw(described(what, done, total, done - self._first, now - self._began))

    def stand(self, text: str) -> None:
        """Show `text`, until something else is shown."""
        self._what = ""
        self._draw(text)

    def clear(self) -> None:
        """Show nothing."""
        if self._width:
            click.echo(f"\r{' ' * self._width}\r", nl=False, err=True)
        self._width = 0

    def _draw(self, text: str) -> None:
        text = text[: _columns() - 1]
        click.echo(f"\r{text.ljust(self._width)}", nl=False, err=True)
        self._width = len(text)


def described(what: str, done: int, total: int, gained: int, seconds: float) -> str:
    """`vectors: 1,024 of 5,882, 120 a second, 0:41 left`; `gained` of them were done in so many seconds."""
    text = f"{what}: {done:,} of {total:,}"
    if gained <= 0 or seconds <= 0:
        return text
    rate = gained / seconds
    minutes, rest = divmod(round((total - done) / rate), 60)
    return f"{text}, {rate:,.0f} a second, {minutes}:{rest:02} left"


def _columns() -> int:
    # A terminal that nobody has told its size has 0.
    return os.get_terminal_size(sys.stderr.fileno()).columns or _USUAL_COLUMNS
