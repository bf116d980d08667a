"""The kinds of values that options take."""

import math
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from memlog.eventlog import timestamps
from memlog.eventlog.categories import read_as
from memlog.eventlog.errors import BadInput

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


class _TextType(click.ParamType):  # type: ignore[type-arg] # generic from click 8.4 on
    name = "text"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:  # noqa: ANN401
        text = str(value)
        try:
            text.encode()
        except UnicodeEncodeError:
            self.fail(f"{text!r} is not UTF-8", param, ctx)
        return text


class _TextOrStdin(_TextType):
    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:  # noqa: ANN401
        from memlog.cli.stdin import stdin_text

        return stdin_text() if value == "-" else super().convert(value, param, ctx)


class _ProjectType(_TextType):
    name = "name"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:  # noqa: ANN401
        # Imported here: most programs name their store.
        from memlog.eventlog.streams import project_folder

        text = super().convert(value, param, ctx)
        try:
            project_folder(text)
        except BadInput as error:
            self.fail(error.message, param, ctx)
        return text


class _ChatType(_TextType):
    name = "channel:chat_id"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # noqa: ANN401
        channel, colon, chat_id = super().convert(value, param, ctx).partition(":")
        if not (channel and colon and chat_id):
            self.fail(f"{value!r} is not CHANNEL:CHAT_ID, such as telegram:123456", param, ctx)
        return channel, chat_id


class _Time(_TextType):
    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:  # noqa: ANN401
        text = super().convert(value, param, ctx)
        try:
            return timestamps.of_day_or_time(text)
        except ValueError:
            self.fail(f"{value!r} is no time such as 2026-02-24 or 2026-02-24T10:15:00Z", param, ctx)


class _Day(_TextType):
    name = "day"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:  # noqa: ANN401
        text = super().convert(value, param, ctx)
        try:
            return timestamps.day(text)
        except ValueError as error:
            self.fail(str(error), param, ctx)


class _Seconds(click.FloatRange):
    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:  # noqa: ANN401
        seconds = float(super().convert(value, param, ctx))
        # It is neither below nor above a limit, and a wait for so long would never end.
        if math.isnan(seconds):
            self.fail(f"{value!r} is not a number", param, ctx)
        return seconds


class _JsonObject(_TextType):
    name = "json"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # noqa: ANN401
        # Imported here: what a log accepts is more than most commands need to know.
        from memlog.eventlog.decode import members_of
        from memlog.eventlog.quarantine import BadLine, check_text

        data = super().convert(value, param, ctx).encode()
        try:
            check_text(data)
            return members_of(data)
        except BadLine as bad:
            why = f"{bad.reason.replace('_', ' ')}: {bad.detail}"
            self.fail(f"{value!r} is no JSON object that a log can keep: {why}", param, ctx)


class CategoryType(click.Choice):  # type: ignore[type-arg]
    """One of the categories that it is made with; `decision` is read as `decisions`."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # noqa: ANN401
        """See `click.ParamType`."""
        return super().convert(read_as(str(value)), param, ctx)


class Number(click.FloatRange):
    """A number within bounds; NaN is none."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # noqa: ANN401
        """See `click.ParamType`."""
        number = super().convert(value, param, ctx)
        # It is neither below nor above any bound.
        if math.isnan(number):
            self.fail(f"{value!r} is no number from {self.min:g} to {self.max:g}", param, ctx)
        return number


class _Path(click.ParamType):  # type: ignore[type-arg]
    """Of click's own, gettext translates the name; see `standard_options`.

    must_be_readable: where the file system has something of this name.
    """

    name = "path"

    def __init__(self, *, must_be_readable: bool) -> None:
        self._must_be_readable = must_be_readable

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:  # noqa: ANN401
        # Python takes it for the current folder; in a script it is a variable that is not set.
        if not os.fspath(value):
            self.fail("the path is empty", param, ctx)
        if self._must_be_readable and os.path.exists(value) and not os.access(value, os.R_OK):  # noqa: PTH110
            self.fail(f"Path {os.fspath(value)!r} is not readable.", param, ctx)
        return Path(value)

    def shell_complete(
        self,
        ctx: click.Context,  # noqa: ARG002
        param: click.Parameter,  # noqa: ARG002
        incomplete: str,
    ) -> "list[CompletionItem]":
        """The shell completes the names of files."""
        from click.shell_completion import CompletionItem

        return [CompletionItem(incomplete, type="file")]


def count(least: int) -> click.IntRange:
    """A number of things, from `least` on. More than a million is a slip, and SQLite's numbers end, too."""
    return click.IntRange(least, 1_000_000)


UNIT = Number(0, 1)
"""A number from 0 to 1."""

WEIGHT = Number(0, 1000)
"""How much something counts."""

TEXT = _TextType()
"""UTF-8."""

STDIN = _TextOrStdin()
"""UTF-8; `-` reads it from stdin."""

PROJECT = _ProjectType()
"""A project's name."""

CHAT = _ChatType()
"""(channel, chat_id), split at the first `:`."""

TIME = _Time()
"""A day, or an RFC 3339 time; as the log writes times."""

DAY = _Day()
"""A date of the calendar: 2026-02-24."""

FOLDER = _Path(must_be_readable=True)
"""A folder's path."""

PATH = _Path(must_be_readable=False)
"""A file's or folder's path; what is wrong with it the command says."""
SECONDS = _Seconds(0, 3600)
"""A time to wait, at most an hour."""

JSON_OBJECT = _JsonObject()
"""A JSON object."""
