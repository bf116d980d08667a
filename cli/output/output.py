"""Prints JSON, text, notes and progress, and chooses the format."""

import os
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, partial
from itertools import pairwise
from typing import Any, TextIO, TypeVar

import click
import msgspec

import memlog

# C0 except tab and newline, DEL, C1, and the marks that reverse or hide text (CWE-150).
_CONTROLS = "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"

JSON_FORMATS = ("json", "jsonl")

_USUAL_COLUMNS = 80

F = TypeVar("F", bound=Callable[..., Any])

_FORMAT = "memlog.format"
"""The key under which click's context holds the chosen format."""


class NeedsOwnProcess(BaseException):
    """Raised if a forwarded command cannot run in the server, so that its client must run it."""


class Run:
    """This run's output options, for code without a click context.

    is_quiet: whether to suppress notes and progress.
    is_forwarded: whether another process has forwarded the command to this one.
    context: the context whose format options were read last.
    """

    def __init__(self) -> None:
        self.is_quiet = self.is_forwarded = False
        self.context: click.Context | None = None


RUN = Run()
"""The options of this process, which runs one command line."""


def record_chosen_format(ctx: click.Context, option: click.Parameter, value: Any) -> Any:  # noqa: ANN401 - a name or a flag
    """Record the format chosen by `--format` or a short flag; the callback of these options.

    Raises:
        UsageError: the options name two formats.
    """
    # The options of a group precede those of its command.
    RUN.context = None if isinstance(ctx.command, click.Group) else ctx
    if value:
        request = value if isinstance(value, str) else option.opts[0].removeprefix("--")
        if ctx.meta.setdefault(_FORMAT, request) != request:
            raise click.UsageError(f"{request} cannot be combined with {ctx.meta[_FORMAT]}", ctx)
    return value


def chosen_format(ctx: click.Context) -> str:
    """Return the chosen output format, `table` by default."""
    chosen: str = ctx.meta.get(_FORMAT, "table")
    return chosen


def wants_errors_as_json(error: BaseException, words: Sequence[str]) -> bool:
    """Whether to print an error as JSON, going by the options or, if parsing failed, by `words`."""
    is_read = not isinstance(error, click.UsageError) or error.ctx in (None, RUN.context)
    if RUN.context is not None and is_read:
        return asks_for_json(RUN.context)
    request = {*words, *map("=".join, pairwise(words))}
    return not request.isdisjoint(("--json", "--jsonl", "--format=json", "--format=jsonl"))


def format_option(*names: str, **about: Any) -> click.Option:  # noqa: ANN401 - whatever click.Option takes
    """Return an option that selects a format."""
    return click.Option(names, is_eager=True, expose_value=False, callback=record_chosen_format, **about)


JSON_ON_TERMINAL_OPTION = format_option(
    "--json", is_flag=True, help="Print JSON instead of a sentence, also on a terminal."
)
"""The option of a command that prints a sentence."""


def add_options_to_command(*options: click.Parameter) -> Callable[[F], F]:
    """Return a decorator that adds options to a command's function."""

    def add_options(function: F) -> F:
        # click's own decorators keep them here, last one first.
        vars(function).setdefault("__click_params__", []).extend(reversed(options))
        return function

    return add_options


def asks_for_json(ctx: click.Context) -> bool:
    """Whether JSON was requested."""
    return chosen_format(ctx) in JSON_FORMATS


def prints_sentences(ctx: click.Context) -> bool:
    """Whether to print sentences: on a terminal, unless JSON was requested."""
    return sys.stdout.isatty() and not asks_for_json(ctx)


def print_done(ctx: click.Context, done: Any, sentence: str) -> None:  # noqa: ANN401 - whatever msgspec can encode
    """Print a command's result as a sentence or as JSON."""
    if prints_sentences(ctx):
        click.echo(put_on_one_line(sentence))
    else:
        print_json(done)


def print_json(*values: Any) -> None:  # noqa: ANN401 - whatever msgspec can encode
    """Print JSON documents, one per line, as UTF-8 in any locale."""
    print_lines(msgspec.json.encode(value) for value in values)


def print_raw(text: str) -> None:
    """Print `text` unchanged, as UTF-8 in any locale; on a terminal, escape control characters."""
    shown = escape_controls(text) if sys.stdout.isatty() else text
    sys.stdout.buffer.write(f"{shown}\n".encode())
    sys.stdout.buffer.flush()


def print_lines(lines: Iterable[bytes]) -> None:
    """Print lines of JSON or of the log byte for byte; on a terminal, with control characters escaped."""
    is_terminal = sys.stdout.isatty()
    for line in lines:
        if is_terminal:
            text = line.decode(errors="backslashreplace")
            line = _controls_pattern().sub(lambda match: f"\\u{ord(match[0]):04x}", text).encode()
        sys.stdout.buffer.write(line + b"\n")
    sys.stdout.buffer.flush()


def escape_controls(text: str) -> str:
    r"""Escape control characters and bidi marks as `\x1b`: stored text must not control a terminal."""
    if text.isascii() and text.isprintable():
        return text
    return _controls_pattern().sub(lambda match: match[0].encode("unicode_escape").decode(), text)


@cache
def _controls_pattern() -> re.Pattern[str]:
    # Compiled on first use: acknowledgements do not need it.
    return re.compile(_CONTROLS)


def put_on_one_line(text: str) -> str:
    """Put `text` on one line, with control characters escaped."""
    return escape_controls(" ".join(text.split()))


def count_noun(count: int, thing: str) -> str:
    """Return a number with its noun: `1 line`, `2 lines`."""
    return f"{count:,} {thing}" + ("" if count == 1 else "s")


bold = partial(click.style, bold=True)
"""Style a text as bold; printing drops the style if colours are off."""

dim = partial(click.style, dim=True)
"""Style a text as dimmed; printing drops the style if colours are off."""


def highlight_parts_of_text(text: str, places: Iterable[tuple[int, int]]) -> str:
    """Highlight the parts of `text` at `places`, pairs of start and end, if colours are shown."""
    parts, at = [], 0
    for start, end in places:
        parts += [text[at:start], click.style(text[start:end], fg="yellow", bold=True)]
        at = end
    return "".join([*parts, text[at:]])


def measure_terminal_width(stream: TextIO | None) -> int | None:
    """Return a terminal's width: COLUMNS if set, else its own; None if `stream` is not a terminal."""
    if stream is None or not stream.isatty():
        return None
    told = os.environ.get("COLUMNS", "")
    # A terminal of unknown size reports 0.
    width = int(told) if told.isdecimal() else 0
    return width or os.get_terminal_size(stream.fileno()).columns or _USUAL_COLUMNS


def shows_colours() -> bool | None:
    """Whether to print colours; None means only on a terminal.

    https://no-color.org and https://force-color.org: any value but the empty one counts. As in Python,
    NO_COLOR takes precedence over FORCE_COLOR, which takes precedence over TERM=dumb.
    """
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return False if os.environ.get("TERM") == "dumb" else None


def print_note(text: str) -> None:
    """Print a note on stderr, unless the run is quiet."""
    if RUN.is_quiet:
        return
    if "store." in text:
        # Imported here: few notes contain a call.
        from memlog.cli.output.help_pages import translate_calls

        text = translate_calls(text)
    click.echo(f"memlog: {escape_controls(text)}", err=True)


_MOST_IDS = 5
_MOST_KINDS = 20

_Kind = tuple[str, str]


class StoredEvents:
    """The events stored by this run.

    count: the number not yet acknowledged. ids: the first of their ids.
    """

    def __init__(self) -> None:
        self.count = 0
        self.ids: list[str] = []
        self._warnings: Counter[_Kind] = Counter()
        self._first: dict[_Kind, str] = {}

    def add_and_print_warnings(self, positions: "Sequence[memlog.Position]") -> None:
        """Add durable events, and print their warnings, each kind only once."""
        self.count += len(positions)
        self.ids += [position.id for position in positions[: _MOST_IDS - len(self.ids)]]
        for position in positions:
            for warning in position.warnings:
                self._print_or_count_warning(warning)

    def reset_after_acknowledgement(self) -> None:
        """Reset, once the events have been acknowledged."""
        self.count = 0
        self.ids = []

    def print_repeated_warnings(self) -> None:
        """Print how often each kind of warning was repeated. Call this at the end of the run."""
        for kind, count in self._warnings.items():
            if kind not in self._first:
                print_note(f"{count} other warnings are in the acknowledgements")
            elif count > 1:
                print_note(f"{count - 1} more of: {self._first[kind]}")
        self._warnings.clear()
        self._first.clear()

    def _print_or_count_warning(self, warning: "memlog.AppendWarning") -> None:
        kind = warning.code, warning.member
        if kind not in self._first and len(self._first) >= _MOST_KINDS:
            kind = "", ""
        elif kind not in self._first:
            self._first[kind] = warning.message
            print_note(warning.message)
        self._warnings[kind] += 1


STORED = StoredEvents()
"""The events that this run has stored."""


_PAUSE = 0.1


@contextmanager
def progress_line() -> "Iterator[ProgressLine | None]":
    """Yield a progress line on stderr; None if that is not a terminal, or the run is quiet."""
    if RUN.is_quiet or sys.stderr is None or not sys.stderr.isatty():
        yield None
        return
    line = ProgressLine()
    try:
        yield line
    finally:
        line.clear_line()


class ProgressLine:
    """A line that is overwritten in place."""

    def __init__(self) -> None:
        self._what = ""
        self._began = self._drawn = 0.0
        self._first = self._width = 0

    def show_progress(self, what: str, done: int, total: int) -> None:
        """Show progress, at most every 0.1 s; clear the line when done."""
        now = time.monotonic()
        if what != self._what:
            self._what, self._began, self._drawn, self._first = what, now, 0.0, done
        if done >= total:
            self.clear_line()
        elif now - self._drawn >= _PAUSE:
            self._drawn = now
            self._draw_text(describe_progress(what, done, total, done - self._first, now - self._began))

    def show_text(self, text: str) -> None:
        """Show `text` until something else is shown."""
        self._what = ""
        self._draw_text(text)

    def clear_line(self) -> None:
        """Clear the line."""
        if self._width:
            click.echo(f"\r{' ' * self._width}\r", nl=False, err=True)
        self._width = 0

    def _draw_text(self, text: str) -> None:
        text = text[: (measure_terminal_width(sys.stderr) or 1) - 1]
        click.echo(f"\r{text.ljust(self._width)}", nl=False, err=True)
        self._width = len(text)


def describe_progress(what: str, done: int, total: int, gained: int, seconds: float) -> str:
    """Describe progress, given that `gained` items took `seconds`.

    For example: `vectors: 1,024 of 5,882, 120 a second, 0:41 left`.
    """
    text = f"{what}: {done:,} of {total:,}"
    if gained <= 0 or seconds <= 0:
        return text
    rate = gained / seconds
    minutes, rest = divmod(round((total - done) / rate), 60)
    return f"{text}, {rate:,.0f} a second, {minutes}:{rest:02} left"
