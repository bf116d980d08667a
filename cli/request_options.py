"""Commands from requests: their arguments, options and help texts (`memlog.query.request`)."""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import click
import msgspec

from memlog.cli.field_options import declaration_of, option_of, type_of
from memlog.cli.param_types import STDIN
from memlog.cli.settings import SettingOption, Settings
from memlog.cli.settings_schema import BY_NAME
from memlog.cli.stdin import stdin_text
from memlog.eventlog.errors import BadInput
from memlog.service.requests import Field, Request, description_of, fields_of

R = TypeVar("R", bound=Request)


class RequestCommand(click.Command):
    """A command that makes a request, and prints the answer to it."""

    request: type[Request]


def request_command(
    request: type[R],
    *,
    group: click.Group | None = None,
    name: str | None = None,
    arguments: Collection[str] = (),
    joined: str | None = None,
    or_stdin: bool = False,
    may_be_blank: bool = False,
    names: Mapping[str, str] | None = None,
    settings: Mapping[str, str] | None = None,
    types: Mapping[str, click.ParamType[Any]] | None = None,
    without: Collection[str] = (),
    adds: str = "",
) -> Callable[[Callable[..., Any]], click.Command]:
    """The decorator that makes a command of a function of the context and a request.

    The function may have options of its own, which it is given as keywords.

    group: to which the command is added. name: the function's where not given.
    arguments: fields that are arguments, in this order; the other fields are options.
    joined: the argument whose words are joined, so that a text needs no quotes; `-` reads it from stdin.
    or_stdin: whether the joined argument is read from stdin where it is left out.
    may_be_blank: whether the joined argument may be blank.
    names: declarations of options, such as `--raw`, that are not the names of their fields.
    settings: the settings that fields take their defaults from.
    types: how values are read of which the command takes other forms than Python callers give.
    without: fields that the command does not take.
    adds: what the help says beside the description of the request, such as exit codes.
    """

    spelling = _Spelling(
        request=request,
        arguments=(*arguments, *([joined] if joined else [])),
        joined=joined,
        or_stdin=or_stdin,
        may_be_blank=may_be_blank,
        names=names or {},
        settings=settings or {},
        types=types or {},
        without=without,
    )

    def made(function: Callable[..., Any]) -> click.Command:
        def callback(**given: Any) -> Any:  # noqa: ANN401
            ctx = click.get_current_context()
            asked = spelling.request_of(ctx, given)
            return function(ctx, asked, **given)

        own = reversed(getattr(function, "__click_params__", []))
        command = RequestCommand(
            name or function.__name__.rstrip("_").replace("_", "-"),
            callback=callback,
            params=[*spelling.parameters(), *own],
            help=f"{spelling.help()}\n{adds}".rstrip(),
        )
        command.request = request
        if group is not None:
            group.add_command(command)
        return command

    return made


class _Spelling(msgspec.Struct, frozen=True, kw_only=True):
    """How a command spells the fields of a request. See `request_command`."""

    request: type[Request]
    arguments: Sequence[str]
    joined: str | None
    or_stdin: bool
    may_be_blank: bool
    names: Mapping[str, str]
    settings: Mapping[str, str]
    types: Mapping[str, click.ParamType[Any]]
    without: Collection[str]

    def parameters(self) -> Iterator[click.Parameter]:
        """The arguments, then the options."""
        fields = {field.name: field for field in self._fields()}
        for name in self.arguments:
            yield self._argument(fields.pop(name))
        for field in fields.values():
            yield self._option(field)

    def help(self) -> str:
        """The description of the request, with its fields as the command spells them."""
        return self._spelled(description_of(self.request))

    def _spelled(self, text: str) -> str:
        spelled = {name: self._metavar(name) for name in self.arguments}
        spelled |= {field.name: self._declaration(field).split("/")[0] for field in self._options()}
        return re.sub(r"`(\w+)`", lambda match: spelled.get(match[1], match[0]), text)

    def request_of(self, ctx: click.Context, given: dict[str, Any]) -> Request:
        """The request that a command line asks; its values are taken out of `given`.

        Raises:
            UsageError: the values do not make a request.
        """
        return self._built(self.request, ctx, given)

    def _built(self, request: type[Request], ctx: click.Context, given: dict[str, Any]) -> Request:
        values: dict[str, Any] = {}
        for field in fields_of(request):
            if field.struct:
                values[field.name] = self._built(field.struct, ctx, given)
            elif field.name in self.settings:
                values[field.name] = ctx.ensure_object(Settings).value(self.settings[field.name])
            elif field.name in given:
                value = given.pop(field.name)
                if field.name == self.joined and (value or self.or_stdin):
                    values[field.name] = self._text(value)
                elif value is not None and value != ():
                    values[field.name] = value
        try:
            return request(**values)
        except BadInput as error:
            raise click.UsageError(f"{error.message}: {error.hint}", ctx) from error

    def _text(self, words: Sequence[str]) -> str:
        text = stdin_text() if words in ((), ("-",)) else " ".join(words)
        if not (self.may_be_blank or text.strip()):
            raise click.BadParameter("it is empty", param_hint=self._metavar(str(self.joined)))
        return text

    def _options(self) -> Iterator[Field]:
        return (field for field in self._fields() if field.name not in self.arguments)

    def _fields(self) -> Iterator[Field]:
        seen = set(self.without)
        for field in _flat(self.request):
            if field.name not in seen and not field.is_local:
                seen.add(field.name)
                yield field

    def _argument(self, field: Field) -> click.Argument:
        is_joined = field.name == self.joined
        is_many = is_joined or field.is_list
        metavar = self._metavar(field.name) + ("..." if is_many else "")
        is_required = field.default is msgspec.NODEFAULT and not (is_joined and self.or_stdin)
        return click.Argument(
            [field.name],
            type=self.types.get(field.name) or type_of(field),
            # click shows choices.
            metavar=None if field.choices and not is_many else metavar if is_required else f"[{metavar}]",
            nargs=-1 if is_many else 1,
            required=is_required,
        )

    def _option(self, field: Field) -> click.Option:
        declaration = self._declaration(field)
        if field.name in self.settings:
            setting = BY_NAME[self.settings[field.name]]
            return SettingOption([declaration, setting.name], setting=setting)
        changes: dict[str, Any] = {"type": self.types[field.name]} if field.name in self.types else {}
        changes["help"] = self._spelled(field.description)
        if changes.get("type") is STDIN:
            changes["help"] = f"{changes['help'].removesuffix('.')}; - reads it from stdin."
        return option_of(field, declaration, **changes)

    def _declaration(self, field: Field) -> str:
        return self.names.get(field.name) or declaration_of(field)

    def _metavar(self, name: str) -> str:
        title = next(field.title for field in self._fields() if field.name == name)
        return title or name.upper()


def _flat(request: type[Request]) -> Iterator[Field]:
    """The fields of a request, and in the place of a request those of it."""
    for field in fields_of(request):
        if field.struct:
            yield from _flat(field.struct)
        else:
            yield field
