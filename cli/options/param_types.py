"""The types of arguments and options."""

import math
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from memlog.cli.options.zone import zone
from memlog.eventlog import timestamps
from memlog.eventlog.errors import BadInput
from memlog.eventlog.limits import read_as

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


class TextType(click.ParamType):  # type: ignore[type-arg] # generic from click 8.4 on
    """UTF-8.

    read: makes a value of the text; raises ValueError or BadInput, which say what is wrong.
    """

    def __init__(self, name: str, read: Callable[[str], Any] = str) -> None:
        self.name = name
        self._read = read

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # noqa: ANN401
        """See `click.ParamType`."""
        text = str(value)
        try:
            text.encode()
        except UnicodeEncodeError:
            self.fail(f"{text!r} is not UTF-8", param, ctx)
        try:
            return self._read(text)
        except (BadInput, ValueError) as error:
            self.fail(str(error), param, ctx)


class _TextOrStdin(TextType):
    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # noqa: ANN401
        from memlog.cli.process.stdin import stdin_text

        return stdin_text() if value == "-" else super().convert(value, param, ctx)


def _project(text: str) -> str:
    # Imported here: most programs name their store.
    from memlog.eventlog.log.streams import project_folder

    project_folder(text)
    return text


def _chat(text: str) -> tuple[str, str]:
    channel, colon, chat_id = text.partition(":")
    if not (channel and colon and chat_id):
        raise ValueError(f"{text!r} is not CHANNEL:CHAT_ID, such as telegram:123456")
    return channel, chat_id


def _time(text: str, *, is_end: bool = False) -> str:
    try:
        return timestamps.of_day_or_time(text, zone(), is_end=is_end)
    except ValueError as error:
        # Imported here: few times are words.
        from memlog.service.engine.requests import time_of_words

        if (words := time_of_words(text, zone(), is_end=is_end)) is not None:
            return words
        raise ValueError(
            f"invalid timestamp: {text!r} (examples: 2026-02-24, 2026-02-24T10:15:00Z, yesterday)"
        ) from error


def _zone(text: str) -> str:
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    try:
        return ZoneInfo(text).key
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ValueError(
            f"unknown time zone: {text!r} (examples: Europe/Helsinki, UTC); pip install tzdata has all"
        ) from error


def _json_object(text: str) -> Any:  # noqa: ANN401 - a JSON object
    # Imported here: what a log accepts is more than most commands need to know.
    from memlog.eventlog.codec.decode import members_of
    from memlog.eventlog.log.quarantine import BadLine, check_text

    data = text.encode()
    try:
        check_text(data)
        return members_of(data)
    except BadLine as bad:
        why = f"{bad.reason.replace('_', ' ')}: {bad.detail}"
        raise ValueError(f"not a JSON object that a log can keep: {text!r}: {why}") from bad


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
            self.fail(f"not a number from {self.min:g} to {self.max:g}: {value!r}", param, ctx)
        return number


class _Path(click.ParamType):  # type: ignore[type-arg]
    """A path. gettext would translate the name of click's own type; see `standard_options`.

    A shell expands no `~` within quotes, behind `=`, or in a file.

    is_setting: refuse a path that exists and cannot be read, and expand `~user`, too. Elsewhere this may be
        the name of a file, such as an editor's backup.
    """

    name = "path"

    def __init__(self, *, is_setting: bool) -> None:
        self._is_setting = is_setting

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:  # noqa: ANN401
        # Python takes it for the current folder; in a script it is a variable that is not set.
        if not os.fspath(value):
            self.fail("the path is empty", param, ctx)
        home = os.fspath(value).partition("/")[0]
        if home == "~" or (self._is_setting and home.startswith("~")):
            value = os.path.expanduser(value)  # noqa: PTH111 - Path's takes any HOME for a home folder
            if not os.path.isabs(value) or (home == "~" and os.environ.get("HOME") == ""):  # noqa: PTH117
                self.fail(f"not a home folder: {home}; give the path without it", param, ctx)
        if self._is_setting and os.path.exists(value) and not os.access(value, os.R_OK):  # noqa: PTH110
            self.fail(f"Path {os.fspath(value)!r} is not readable.", param, ctx)
        return Path(value)

    def shell_complete(
        self,
        ctx: click.Context,  # noqa: ARG002
        param: click.Parameter,  # noqa: ARG002
        incomplete: str,
    ) -> "list[CompletionItem]":
        """Return a marker that has the shell complete file names."""
        from click.shell_completion import CompletionItem

        return [CompletionItem(incomplete, type="file")]


TEXT = TextType("text")
"""UTF-8."""

STDIN = _TextOrStdin("text")
"""UTF-8; `-` reads it from stdin."""

PROJECT = TextType("name", _project)
"""A project's name."""

CHAT = TextType("channel:chat_id", _chat)
"""(channel, chat_id), split at the first `:`."""

TIME = TextType("time", _time)
"""A local day, or an RFC 3339 time; as the log writes times."""

END = TextType("time", partial(_time, is_end=True))
"""As TIME; a day is the first moment after it."""

ZONE = TextType("zone", _zone)
"""The name of a time zone."""

DAY = TextType("day", timestamps.day)
"""A date of the calendar: 2026-02-24."""

FOLDER = _Path(is_setting=True)
"""A folder's path, of a setting."""

PATH = _Path(is_setting=False)
"""A path of a file or a folder, which the command checks."""

JSON_OBJECT = TextType("json", _json_object)
"""A JSON object."""
