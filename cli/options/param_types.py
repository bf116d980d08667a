"""Types of arguments and options."""

import math
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_origin

import click

from memlog.cli.options.zone import time_zone_of_run
from memlog.eventlog import timestamps
from memlog.eventlog.errors import BadInput
from memlog.eventlog.fields import Field

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


class TextType(click.ParamType):  # type: ignore[type-arg] # generic from click 8.4 on
    """A string that is valid UTF-8.

    read: converts the string; raises ValueError or BadInput with a message.
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
        from memlog.cli.process.stdin import read_stdin_text

        return read_stdin_text() if value == "-" else super().convert(value, param, ctx)


def _check_project_name(text: str) -> str:
    # Imported here: most programs name their store.
    from memlog.eventlog.log.streams import project_folder

    project_folder(text)
    return text


def _parse_chat(text: str) -> tuple[str, str]:
    channel, colon, chat_id = text.partition(":")
    if channel and colon and chat_id:
        return channel, chat_id
    # Imported here: most chats have their usual name.
    from memlog.eventlog.log.streams import chat_of_folder

    if (found := chat_of_folder(click.get_current_context().obj.store, text)) is not None:
        return found
    raise ValueError(f"{text!r} is not CHANNEL:CHAT_ID, for example telegram:123456")


def _parse_time(text: str, *, is_end: bool = False) -> str:
    try:
        return timestamps.parse_day_or_time(text, time_zone_of_run(), is_end=is_end)
    except ValueError as error:
        # Imported here: few times are words.
        from memlog.service.engine.requests import parse_time_in_words

        if (words := parse_time_in_words(text, time_zone_of_run(), is_end=is_end)) is not None:
            return words
        raise ValueError(
            f"invalid timestamp: {text!r} (examples: 2026-02-24, 2026-02-24T10:15:00Z, yesterday)"
        ) from error


def _parse_json_object(text: str) -> Any:  # noqa: ANN401 - a JSON object
    # Imported here: few commands take JSON.
    from memlog.eventlog.codec.decode import parse_members
    from memlog.eventlog.log.quarantine import BadLine, check_utf8_and_depth

    data = text.encode()
    try:
        check_utf8_and_depth(data)
        return parse_members(data)
    except BadLine as bad:
        why = f"{bad.reason.replace('_', ' ')}: {bad.detail}"
        raise ValueError(f"not a JSON object that the log accepts: {text!r}: {why}") from bad


class CategoryType(click.Choice):  # type: ignore[type-arg]
    """One of the given categories. Aliases such as `decision` for `decisions` are accepted."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # noqa: ANN401
        """See `click.ParamType`."""
        # Imported here: most commands name no category.
        from memlog.eventlog.categories import resolve_alias

        return super().convert(resolve_alias(str(value)), param, ctx)


class _Bounded(click.ParamType):  # type: ignore[type-arg]
    min: Any
    max: Any
    kind = "a number"

    @property
    def allowed_values_in_words(self) -> str:
        """The allowed values, in words: `a number from 0 to 1`."""
        bounds = (
            f" {word} {bound}" for word, bound in (("from", self.min), ("to", self.max)) if bound is not None
        )
        return self.kind + "".join(bounds)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # noqa: ANN401
        """See `click.ParamType`."""
        try:
            number = super().convert(value, param, ctx)
        except click.BadParameter:
            number = math.nan
        # NaN is neither below nor above any bound.
        if math.isnan(number):
            self.fail(f"{value!r} is not {self.allowed_values_in_words}", param, ctx)
        return number


class Number(_Bounded, click.FloatRange):
    """A number within bounds."""


class WholeNumber(_Bounded, click.IntRange):
    """A whole number within bounds."""

    kind = "a whole number"


class _Path(click.ParamType):  # type: ignore[type-arg]
    """A path. click's own type would import gettext just to translate its name.

    Expands `~`, which shells leave alone in quotes and after `=`, and never see in files.

    is_setting: reject an existing path that cannot be read, and expand `~user` too. Elsewhere `~user` may be
        a file name, such as an editor's backup.
    """

    name = "path"

    def __init__(self, *, is_setting: bool) -> None:
        self._is_setting = is_setting

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:  # noqa: ANN401
        # Python takes it for the current folder; in a script it is an unset variable.
        if not os.fspath(value):
            self.fail("the path must not be empty", param, ctx)
        home = os.fspath(value).partition("/")[0]
        if home == "~" or (self._is_setting and home.startswith("~")):
            value = os.path.expanduser(value)  # noqa: PTH111 - Path's takes any HOME for a home folder
            if not os.path.isabs(value) or (home == "~" and os.environ.get("HOME") == ""):  # noqa: PTH117
                self.fail(f"not a home folder: {home}; use a path without it", param, ctx)
        if self._is_setting and os.path.exists(value) and not os.access(value, os.R_OK):  # noqa: PTH110
            self.fail(f"Path {os.fspath(value)!r} is not readable.", param, ctx)
        return Path(value)

    def shell_complete(
        self,
        ctx: click.Context,  # noqa: ARG002
        param: click.Parameter,  # noqa: ARG002
        incomplete: str,
    ) -> "list[CompletionItem]":
        """Tell the shell to complete file names."""
        from click.shell_completion import CompletionItem

        return [CompletionItem(incomplete, type="file")]


TEXT = TextType("text")
"""A text in UTF-8."""

STDIN = _TextOrStdin("text")
"""A text in UTF-8; `-` reads it from stdin."""

PROJECT = TextType("name", _check_project_name)
"""A project's name."""

CHAT = TextType("channel:chat_id", _parse_chat)
"""(channel, chat_id), split at the first `:`."""

TIME = TextType("time", _parse_time)
"""A time, given as a local day, in RFC 3339, or in words; converted to the form used in the log."""

END = TextType("time", partial(_parse_time, is_end=True))
"""Like TIME, but a day is converted to the first moment after it."""

DAY = TextType("day", timestamps.check_day)
"""A calendar day: 2026-02-24."""

FOLDER = _Path(is_setting=True)
"""The path of a folder or file in a setting."""

PATH = _Path(is_setting=False)
"""The path of a file or folder; the command checks it."""

JSON_OBJECT = TextType("json", _parse_json_object)
"""A JSON object."""

_FORMS: dict[str, click.ParamType[Any]] = {
    "chat": CHAT,
    "day": DAY,
    "end": END,
    "path": PATH,
    "time": TIME,
}


def click_type_of_field(field: Field) -> click.ParamType[Any]:
    """Return the click type for a field's value, or for the items of its list."""
    if field.choices:
        is_category = field.reads is not None and field.reads.form == "category"
        return CategoryType([*field.choices]) if is_category else click.Choice(field.choices)
    if field.reads is not None and field.reads.form in _FORMS:
        return _FORMS[field.reads.form]
    if get_origin(field.member) is dict:
        return JSON_OBJECT
    if field.member is int:
        return WholeNumber(_int_or_none(field.least), _int_or_none(field.most))
    if field.member is float:
        return Number(field.least, field.most)
    return TEXT


def _int_or_none(bound: float | None) -> int | None:
    return None if bound is None else int(bound)
