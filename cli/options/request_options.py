"""Generates commands from requests: arguments, options and help (`memlog.query.request`)."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import click
import msgspec

from memlog.cli.options.field_options import option_for_field, option_name_of_field
from memlog.cli.options.open_store import open_store
from memlog.cli.options.param_types import STDIN, click_type_of_field
from memlog.cli.options.settings import Command, Group, SettingOption, Settings
from memlog.cli.process.stdin import read_stdin_text
from memlog.eventlog.errors import BadInput
from memlog.service.engine.operation import (
    bind_operation,
    call_and_require_answer,
    find_operation_named,
    operations_of_group,
)
from memlog.service.engine.requests import Field, Request, list_fields, read_description_of_request

if TYPE_CHECKING:
    from memlog import Store as Store
else:  # the import would take longer than a command that only shows its help
    Store = Any

Given = Any
"""A command's request; its fields are the operation's parameters."""


class RequestCommand(Command):
    """A command that builds a request and prints its answer."""

    def __init__(self, spelling: "request_command", function: Callable[..., Any]) -> None:
        self._spelling = spelling
        self._function = function
        name = spelling.name or function.__name__.rstrip("_").replace("_", "-")
        super().__init__(name, callback=self._run)
        # Generated on first use: most commands of a group are not called.
        del self.params, self.help

    @property
    def operation(self) -> str:
        """The name of the operation."""
        return self._spelling.operation

    @property
    def request(self) -> type[Request]:
        """The class of the request that the command builds."""
        return self._spelling.request_class

    @cached_property
    def params(self) -> list[click.Parameter]:  # type: ignore[override] # click has an attribute
        """The request's parameters, then the function's, then the answer's."""
        own = reversed(getattr(self._function, "__click_params__", []))
        of_answer = getattr(self._function.__annotations__["return"], "options", ())
        return [*self._spelling.click_parameters(), *own, *of_answer]

    @cached_property
    def help(self) -> str:  # type: ignore[override]
        """The request's description, using the option names of its fields."""
        return self._spelling.help()

    def _run(self, **given: Any) -> int:  # noqa: ANN401
        ctx = click.get_current_context()
        request = self._spelling.build_request_and_take_values(self.request, ctx, given)
        if self._spelling.gets == "context":
            answer = self._function(ctx, request, **given)
        else:
            with open_store(ctx) as store, _request_with_progress_line(request) as shown:
                first: Any = store
                if self._spelling.gets == "answer":
                    first = call_and_require_answer(bind_operation(store, self._spelling.operation), shown)
                answer = self._function(first, shown, **given)
        return 0 if answer is None else answer.print(ctx)


class OperationCommands(Group):
    """The commands of an operation group, generated for operations without their own function.

    operations: the name of the group, such as `memories`. without: operations that get no command.
    """

    def __init__(self, *args: Any, operations: str, without: Collection[str] = (), **kwargs: Any) -> None:  # noqa: ANN401
        super().__init__(*args, **kwargs)
        self._operations, self._without = operations, without

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands."""
        return sorted({*super().list_commands(ctx), *self._generated_commands})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command defined by a function, else the generated one, if any."""
        return super().get_command(ctx, cmd_name) or self._generated_commands.get(cmd_name)

    @cached_property
    def _generated_commands(self) -> dict[str, RequestCommand]:
        own = {each.operation for each in self.commands.values() if isinstance(each, RequestCommand)}
        names = {f"{self._operations}.{name}" for name in operations_of_group(self._operations)} - own
        names -= {f"{self._operations}.{name}" for name in self._without}
        made = (RequestCommand(request_command(name), _make_renderer(name)) for name in names)
        return {str(each.name): each for each in made}


def _make_renderer(name: str) -> Callable[..., Any]:
    """Return a generated command's function, which shows a table or, after a change, `Done: …`."""
    # Imported here: most commands have a renderer of their own.
    from memlog.cli.output.answer import Answer, Done, list_answer, table_of_named_values

    last = name.rpartition(".")[2]

    def show(found: Any, _: Given) -> Answer:  # noqa: ANN401
        if isinstance(found, list):
            members = getattr(found[0], "__struct_fields__", ()) if found else ()
            return list_answer(last, found, {each: each for each in members} or {last: str})
        value = msgspec.to_builtins(found)
        return Answer(found, table_of_named_values(value if isinstance(value, dict) else {last: value}))

    def tell(done: Any, _: Given) -> Done:  # noqa: ANN401
        return Done(done, f"Done: {last.replace('_', ' ')}.")

    function = show if find_operation_named(name).effect == "read" else tell
    function.__name__ = last
    return function


@contextmanager
def _request_with_progress_line(request: Request) -> Iterator[Request]:
    """Yield the request, with a progress line if it has a field for one."""
    if "progress" not in request.__struct_fields__:
        yield request
        return
    # Imported here: most commands are short.
    from memlog.cli.output.output import progress_line

    with progress_line() as line:
        yield msgspec.structs.replace(request, progress=line.show_progress if line else None)


class request_command(msgspec.Struct, frozen=True, dict=True):  # noqa: N801 - a decorator
    """A decorator that turns a function into a command.

    The function returns an answer (`memlog.cli.output.answer`). It may have options of its own, passed as
    keyword arguments.

    operation: the name of the operation, such as `facts.set`.
    gets: what the function receives besides the request: the operation's answer; the open store, to run the
        operation itself; or the click context, to open the store or just the log.

    group: the command's group. name: by default, the function's.
    arguments: fields that become arguments, in order; other fields become options. By default, those that
        Python takes by position.
    joined: the argument whose words are joined, so that a text needs no quotes; `-` reads it from stdin.
    or_stdin: whether the joined argument is read from stdin if left out.
    may_be_blank: whether the joined argument may be blank.
    names: option declarations, such as `--raw`, keyed by field, where the field's name won't do.
    settings: the settings that provide defaults, keyed by field.
    types: click types, keyed by field, where the command line's form differs from Python's.
    without: fields the command leaves out.
    adds: text to add to the help, such as exit codes.
    """

    operation: str
    group: click.Group | None = None
    name: str | None = None
    arguments: Sequence[str] | None = None
    joined: str | None = None
    or_stdin: bool = False
    may_be_blank: bool = False
    names: Mapping[str, str] = {}
    settings: Mapping[str, str] = {}
    types: Mapping[str, click.ParamType[Any]] = {}
    without: Collection[str] = ()
    adds: str = ""
    gets: Literal["answer", "store", "context"] = "answer"

    def __call__(self, function: Callable[..., Any]) -> RequestCommand:
        """Create the command and add it to its group."""
        command = RequestCommand(self, function)
        if self.group is not None:
            self.group.add_command(command)
        return command

    def click_parameters(self) -> Iterator[click.Parameter]:
        """Yield the arguments, then the options."""
        for name in self._argument_names:
            yield self._make_argument(self._fields[name])
        for name, field in self._fields.items():
            if name not in self._argument_names:
                yield self._make_option(field)

    def help(self) -> str:
        """Return the request's description, using the option names of its fields."""
        # Imported here: most calls do not show help.
        from memlog.cli.output.help_pages import translate_hint

        return translate_hint(
            f"{self._with_option_names(read_description_of_request(self.request_class))}\n{self.adds}".rstrip()
        )

    def build_request_and_take_values(
        self, request: type[Request], ctx: click.Context, given: dict[str, Any]
    ) -> Request:
        """Build a request from command-line values, removing those it uses from `given`.

        Raises:
            UsageError: the request rejects a value.
        """
        values: dict[str, Any] = {}
        for field in list_fields(request):
            if field.struct:
                values[field.name] = self.build_request_and_take_values(field.struct, ctx, given)
            elif field.name in self.settings:
                values[field.name] = ctx.ensure_object(Settings).value(self.settings[field.name])
            elif field.name in given:
                value = given.pop(field.name)
                if field.name == self.joined and (value or self.or_stdin):
                    values[field.name] = self._join_words(value)
                elif value is not None and value != ():
                    values[field.name] = value
        try:
            return request(**values)
        except BadInput as error:
            # Imported here: most calls are valid.
            from memlog.cli.output.help_pages import translate_hint

            raise click.UsageError(f"{error.message}: {translate_hint(error.hint)}") from error

    def _join_words(self, words: Sequence[str]) -> str:
        text = read_stdin_text() if words in ((), ("-",)) else " ".join(words)
        if not (self.may_be_blank or text.strip()):
            raise click.BadParameter("must not be empty", param_hint=self._option_names[str(self.joined)])
        return text

    @cached_property
    def request_class(self) -> type[Request]:
        """The operation's request class."""
        return find_operation_named(self.operation).request

    @cached_property
    def _argument_names(self) -> Sequence[str]:
        if self.arguments is None:
            return find_operation_named(self.operation).arguments
        return self.arguments

    @cached_property
    def _fields(self) -> dict[str, Field]:
        return {
            field.name: field
            for field in _flatten_fields(self.request_class)
            if field.name not in self.without and not field.is_local
        }

    @cached_property
    def _option_names(self) -> dict[str, str]:
        return {
            name: _metavar(field) if name in self._argument_names else self._declaration(field).split("/")[0]
            for name, field in self._fields.items()
        }

    def _with_option_names(self, text: str) -> str:
        parts = text.split("`")
        parts[1::2] = (self._option_names.get(name, f"`{name}`") for name in parts[1::2])
        return "".join(parts)

    def _make_argument(self, field: Field) -> click.Argument:
        is_joined = field.name == self.joined
        is_many = is_joined or field.is_list
        metavar = _metavar(field) + ("..." if is_many else "")
        is_required = field.default is msgspec.NODEFAULT and not (is_joined and self.or_stdin)
        return click.Argument(
            [field.name],
            type=self.types.get(field.name) or click_type_of_field(field),
            # click shows the choices itself.
            metavar=None if field.choices and not is_many else metavar if is_required else f"[{metavar}]",
            nargs=-1 if is_many else 1,
            required=is_required,
        )

    def _make_option(self, field: Field) -> click.Option:
        declaration = self._declaration(field)
        if field.name in self.settings:
            return SettingOption(self.settings[field.name], declaration)
        changes: dict[str, Any] = {"type": self.types[field.name]} if field.name in self.types else {}
        changes["help"] = self._with_option_names(field.description)
        if changes.get("type") is STDIN:
            changes["help"] = f"{changes['help'].removesuffix('.')}; - reads it from stdin."
        return option_for_field(field, declaration, **changes)

    def _declaration(self, field: Field) -> str:
        return self.names.get(field.name) or option_name_of_field(field)


def _metavar(field: Field) -> str:
    return field.title or field.name.upper()


def _flatten_fields(request: type[Request]) -> Iterator[Field]:
    """Yield a request's fields, replacing nested requests by their own fields."""
    for field in list_fields(request):
        if field.struct:
            yield from _flatten_fields(field.struct)
        else:
            yield field
