"""Shows the progress of long work: one line on stderr, on a terminal only, removed at the end."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import click

from memlog.cli.output.output import RUN, columns_of

_PAUSE = 0.1


@contextmanager
def progress_line() -> "Iterator[ProgressLine | None]":
    """Make a line on stderr for the context; None if stderr is no terminal, or the run is quiet."""
    if RUN.is_quiet or sys.stderr is None or not sys.stderr.isatty():
        yield None
        return
    line = ProgressLine()
    try:
        yield line
    finally:
        line.clear()


class ProgressLine:
    """A line that is overwritten in place."""

    def __init__(self) -> None:
        self._what = ""
        self._began = self._drawn = 0.0
        self._first = self._width = 0

    def show(self, what: str, done: int, total: int) -> None:
        """Show progress, at most every 0.1 s; clear the line when all is done."""
        now = time.monotonic()
        if what != self._what:
            self._what, self._began, self._drawn, self._first = what, now, 0.0, done
        if done >= total:
            self.clear()
        elif now - self._drawn >= _PAUSE:
            self._drawn = now
            self._draw(described(what, done, total, done - self._first, now - self._began))

    def stand(self, text: str) -> None:
        """Show `text` until the next call."""
        self._what = ""
        self._draw(text)

    def clear(self) -> None:
        """Clear the line."""
        if self._width:
            click.echo(f"\r{' ' * self._width}\r", nl=False, err=True)
        self._width = 0

    def _draw(self, text: str) -> None:
        text = text[: (columns_of(sys.stderr) or 1) - 1]
        click.echo(f"\r{text.ljust(self._width)}", nl=False, err=True)
        self._width = len(text)


def described(what: str, done: int, total: int, gained: int, seconds: float) -> str:
    """Describe progress, from the `gained` that took `seconds`.

    Such as `vectors: 1,024 of 5,882, 120 a second, 0:41 left`.
    """
    text = f"{what}: {done:,} of {total:,}"
    if gained <= 0 or seconds <= 0:
        return text
    rate = gained / seconds
    minutes, rest = divmod(round((total - done) / rate), 60)
    return f"{text}, {rate:,.0f} a second, {minutes}:{rest:02} left"
