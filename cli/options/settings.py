"""Reads settings from options, the environment, memlog.toml, your own file, and defaults, in that order."""

import os
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

import click
import msgspec

import memlog
from memlog.cli.options.settings_schema import Setting, all_settings, nearest_setting, setting_named
from memlog.cli.output.output import measure_terminal_width
from memlog.eventlog.errors import BadInput
from memlog.eventlog.log import layout

Origin = Literal["option", "environment", "memlog.toml", "config.toml", "default"]

IN_FILE: Origin = "memlog.toml"
"""The origin of a value that was read from the store's memlog.toml."""

IN_USER_FILE: Origin = "config.toml"
"""The origin of a value that was read from the user's own file."""

VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}|")
"""A reference to the environment variable that holds a key."""

_FILE_HEAD = """\
# Settings of this store: https://toml.io, one `name = value` a line.
# Options override environment variables, which override this file, which overrides your own
# memlog/config.toml, which overrides the defaults.
# A line that begins with # has no effect; each setting is listed with its default.
"""


class Settings:
    """The settings of one command-line call.

    options: values given as options, keyed by setting.
    """

    def __init__(self) -> None:
        self.options: dict[str, Any] = {}
        self._file: dict[str, Any] | None = None
        self._user: dict[str, Any] | None = None

    @property
    def store(self) -> Path:
        """The store's folder, or the project's. As root, reading it makes the process act as its owner."""
        store: Path = self.value("store")
        self._user_settings()  # which the owner of the store may not read
        _act_as_owner(store)
        return store

    def value(self, name: str, *, of_store: bool = True) -> Any:  # noqa: ANN401 - of the setting's type
        """Return a setting's value; see `find_value_and_origin`."""
        return self.find_value_and_origin(name, of_store=of_store)[0]

    def find_value_and_origin(self, name: str, *, of_store: bool = True) -> tuple[Any, Origin]:
        """Return a setting's value and where it comes from. An empty variable counts as unset.

        of_store: whether to read the store's memlog.toml.

        Raises:
            BadInput: an environment variable or memlog.toml has an invalid value.
            UsageError: `name` is the store, and both --project and something else name it.
        """
        setting = setting_named(name)
        if name == "store":
            self._check_project_is_only_store()
        if name in self.options:
            return self.options[name], "option"
        if text := os.environ.get(setting.variable):
            return setting.read_value(text, setting.variable, is_text=True), "environment"
        if setting.may_be_in_file and of_store and name in self._file_settings():
            return self._file_settings()[name], IN_FILE
        if name in self._user_settings():
            return self._user_settings()[name], IN_USER_FILE
        if name != "store":
            return setting.default, "default"
        # Imported here: most programs name their store.
        from memlog.eventlog.log.streams import project_folder

        return projects_folder() / project_folder(self.value("project")), "default"

    @property
    def names_store(self) -> bool:
        """Whether an option or environment variable names the store or project."""
        return "project" in self.options or self.find_value_and_origin("store")[1] != "default"

    @property
    def names_store_or_project(self) -> bool:
        """Whether anything names the store or the project, even a variable that is overridden."""
        return self.names_store or self.find_value_and_origin("project", of_store=False)[1] != "default"

    @property
    def store_options(self) -> list[str]:
        """The options that select this store, for another process's command line."""
        if "project" in self.options:
            return ["--project", self.options["project"]]
        return ["--store", str(self.store.absolute())] if self.names_store else []

    def with_store_at(self, store: Path) -> "Settings":
        """Return settings with the same options, but for the store in another folder."""
        other = Settings()
        other.options, other._user = self.options | {"store": store}, self._user
        other.options.pop("project", None)
        return other

    def _check_project_is_only_store(self) -> None:
        """Reject --project if something that would take precedence names a store."""
        if "project" not in self.options:
            return
        variable = setting_named("store").variable
        other = "--store" if "store" in self.options else variable if os.environ.get(variable) else None
        if other is not None:
            raise click.UsageError(
                f"--project {self.options['project']}: {other} names another store; leave out one of the two"
            )

    def _file_settings(self) -> dict[str, Any]:
        if self._file is None:
            path = self.store / layout.SETTINGS
            self._file = _read_settings_file(path) if os.path.lexists(path) else {}
            if (name := next((each for each in self._file if each.startswith("serve.")), None)) is not None:
                raise key_in_store_file_error(setting_named(name), str(path))
        return self._file

    def _user_settings(self) -> dict[str, Any]:
        if self._user is None:
            path = user_settings_file()
            self._user = _read_settings_file(path) if os.path.lexists(path) else {}
        return self._user


def user_settings_file() -> Path:
    """Return the path of the user's own settings file, in the platform's configuration folder."""
    # Without platformdirs, which takes longer to import than the file to read.
    folder = os.environ.get("APPDATA" if sys.platform == "win32" else "XDG_CONFIG_HOME", "")
    if sys.platform == "darwin":
        folder = "~/Library/Application Support"
    elif not Path(folder).is_absolute():
        folder = "~/.config"
    return Path(os.path.expanduser(folder), "memlog", "config.toml")  # noqa: PTH111 - Path's needs a home


def projects_folder() -> Path:
    """Return the folder of all projects' stores, in the platform's user data folder.

    Raises:
        BadInput: the user has no home folder.
    """
    # Imported here: most programs name their store.
    from platformdirs import user_data_path

    try:
        folder = user_data_path("memlog", appauthor=False)
    except RuntimeError:  # older releases return a relative path
        folder = Path()
    if not folder.is_absolute():
        home = os.environ.get("HOME")
        raise BadInput(
            "no home folder, where stores are by default:"
            f" HOME is {'not set' if home is None else repr(home)}",
            hint="name the store with --store or MEMLOG_STORE, or set HOME",
        )
    _act_as_owner(folder)
    return folder


def _act_as_owner(store: Path) -> None:
    if os.geteuid() == 0:
        # Imported here: only root needs it.
        from memlog.eventlog.files.locks import drop_root_privileges

        drop_root_privileges(store)


def _read_settings_file(path: Path) -> dict[str, Any]:
    """Return the settings in a file, keyed by name.

    Relative folders are resolved against the file's folder; "" counts as unset.

    Raises:
        BadInput: the file is not TOML, or has an unknown key or an invalid value.
    """
    from memlog.eventlog.log.streams import escape_invalid_utf8

    where = escape_invalid_utf8(path)
    values = _read_settings(_parse_file(path, where), where)
    return {
        name: path.parent / value if isinstance(value, Path) else value
        for name, value in values.items()
        if value is not None
    }


def _read_settings(parsed: dict[str, Any], where: str) -> dict[str, Any]:
    return {name: _read_setting(name, given, where) for name, given in flatten_sections(parsed)}


def key_in_store_file_error(setting: Setting, where: str) -> BadInput:
    """Return the error for a key in a store's settings file: a copied store must not use the user's keys."""
    return BadInput(
        f"{where}: {setting.name} is read from your own file alone, since a store may be copied",
        hint=f"memlog config set --user {setting.name} VALUE, or set {setting.variable}",
    )


def change_settings_file(path: Path, name: str, value: object, *, is_own: bool = False) -> None:
    """Set a setting in a file, keeping its comments; create a missing file.

    is_own: whether it is the user's own file.

    Raises:
        BadInput: the file is not TOML; or it has, or would get, an invalid value.
        LogError: the file cannot be written.
    """
    # Imported here: other commands only read such files.
    import tomlkit

    from memlog.eventlog.log.streams import escape_invalid_utf8
    from memlog.service.engine.create import replace_settings_file

    if setting_named(name).is_only_of_user and not is_own:
        raise key_in_store_file_error(setting_named(name), escape_invalid_utf8(path))
    if os.path.lexists(path):
        _parse_file(path, escape_invalid_utf8(path))  # reports what is wrong with it
    document = tomlkit.parse(path.read_text("utf-8-sig") if path.exists() else "")
    section, _, key = name.rpartition(".")
    table: Any = document.setdefault(section, tomlkit.table()) if section else document
    table["provider" if key == "type" and "provider" in table else key] = value
    _read_settings(document.unwrap(), escape_invalid_utf8(path))
    replace_settings_file(path, tomlkit.dumps(document))


def flatten_sections(parsed: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield each setting's name and value, with sections as part of the name: `embedding.type`."""
    for name, given in parsed.items():
        if not isinstance(given, dict):
            yield name, given
            continue
        if {"type", "provider"} <= given.keys():
            raise BadInput(f"[{name}] has both type and provider", hint="they mean the same: leave out one")
        for key, value in given.items():
            yield f"{name}.{'type' if key == 'provider' else key}", value


def _parse_file(path: Path, where: str) -> dict[str, Any]:
    # Imported here: most stores have no such file, and `append` starts without a TOML parser.
    import tomllib

    if not path.is_file():
        raise BadInput(
            f"not a file: {where}", hint="replace it with a settings file: one `name = value` per line"
        )
    data = path.read_bytes()
    try:
        return tomllib.loads(data.decode().removeprefix("\ufeff"))
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise BadInput(f"{where}: not UTF-8 (at line {line})", hint="save it as UTF-8") from error
    except (ValueError, RecursionError) as error:
        raise BadInput(
            f"{where}: {error}", hint="write one `name = value` per line; see https://toml.io"
        ) from error


def _read_setting(name: str, given: object, where: str) -> Any:  # noqa: ANN401 - of the setting's type
    try:
        setting = setting_named(name)
    except KeyError:
        hint = f"did you mean {nearest_setting(name)}?"
        raise BadInput(f"{where}: there is no setting {name!r}", hint=hint) from None
    if not setting.may_be_in_file:
        raise BadInput(
            f"{where}: {name!r} cannot be set here, since it chooses the store of a call",
            hint=f"set {setting.variable}, or use the option --{name}",
        )
    if setting.is_secret and not (isinstance(given, str) and VARIABLE.fullmatch(given)):
        section = name.partition(".")[0]
        raise BadInput(
            f"{where}: {name} must name a variable, as in ${{NAME}}",
            hint=f'write api_key = "${{NAME}}" and set NAME, or name a file: {section}.api_key_file',
        )
    return None if given == "" else setting.read_value(given, f"{where}: {name}", is_text=False)


def text_of_default_file() -> str:
    """Return the memlog.toml written by `memlog init`, with every setting commented out."""
    parts, last = [_FILE_HEAD], ""
    for setting in all_settings():
        section = setting.name.rpartition(".")[0]
        if section != last:
            parts.append(f"# [{section}]\n")
            last = section
        if setting.may_be_in_file and not setting.is_only_of_user:
            parts.append(_comment_out(setting))
    return "\n".join(parts)


def _comment_out(setting: Setting) -> str:
    value = "" if setting.default is None else setting.default
    without = f" Without it, {setting.field.without}." if setting.field.without else ""
    assignment = f"# {setting.name.rpartition('.')[2]} = {msgspec.json.encode(value).decode()}"
    return f"# {setting.meaning}{without} ({setting.unit})\n{assignment}\n"


def misspelt_variables() -> Iterator[tuple[str, str]]:
    """Yield environment variables that look like misspelt memlog variables, each with the right name.

    Other variables starting with MEMLOG_ may belong to another program.
    """
    for variable in os.environ:
        if variable.startswith("MEMLOG_") and all(variable != each.variable for each in all_settings()):
            meant = nearest_setting(variable.removeprefix("MEMLOG_").lower(), 0.8)
            if meant is not None:
                yield variable, setting_named(meant).variable


class SettingOption(click.Option):
    """An option that overrides a setting for this call. Commands read it from `Settings`."""

    def __init__(self, name: str, declaration: str) -> None:
        self.setting = setting = setting_named(name)
        super().__init__(
            [declaration, name],
            type=setting.type,
            default=None,
            envvar=setting.variable,
            show_envvar=True,
            help=setting.meaning,
            callback=self._set_value,
            expose_value=False,
        )

    def resolve_envvar_value(self, ctx: click.Context) -> str | None:  # noqa: ARG002
        """Return None: `Settings` reads the environment, including for options a command lacks."""
        return None

    def get_help_extra(self, ctx: click.Context) -> Any:  # noqa: ANN401 - click keeps the type private
        """Return click's additions to the help, showing the setting's default."""
        extra = super().get_help_extra(ctx)
        extra["default"] = self.setting.default_text
        return extra

    def _set_value(self, ctx: click.Context, _: click.Parameter, value: Any) -> None:  # noqa: ANN401
        if value is not None:
            ctx.ensure_object(Settings).options[self.setting.name] = value


# click's own options would import gettext and `locale`: 2 ms of the 60 that an append takes.

HELP_NAMES = ["-h", "--help"]

_NARROWEST, _WIDEST, _MARGIN = 50, 80, 2
"""The limits of a help text's width and its margin, in columns; the same as click's."""


def _make_printing_flag(*names: str, help: str, text: Callable[[click.Context], str]) -> click.Option:
    def print_text(ctx: click.Context, _: click.Parameter, is_given: bool) -> None:
        if is_given and not ctx.resilient_parsing:
            click.echo(text(ctx), color=ctx.color)
            ctx.exit()

    return click.Option(
        names, is_flag=True, expose_value=False, is_eager=True, callback=print_text, help=help
    )


HELP_OPTION = _make_printing_flag(
    *HELP_NAMES, help="Show this message and exit.", text=click.Context.get_help
)
"""The help option of every command."""


class Command(click.Command):
    """A command with `HELP_OPTION` in place of click's."""

    def get_help_option(self, ctx: click.Context) -> click.Option:  # noqa: ARG002
        """See `click.Command`."""
        return HELP_OPTION

    def get_help(self, ctx: click.Context) -> str:
        """See `click.Command`, which would import `shutil` to measure the terminal: 2 ms."""
        if ctx.terminal_width is None:
            ctx.terminal_width = max(
                _NARROWEST, min(measure_terminal_width(sys.stdout) or _WIDEST, _WIDEST) - _MARGIN
            )
        return super().get_help(ctx)


class Group(Command, click.Group):
    """A group with `HELP_OPTION` in place of click's."""


VERSION_OPTION = _make_printing_flag(
    "--version", help="Show the version and exit.", text=lambda _: f"memlog, version {memlog.__version__}"
)
"""The program's version option."""
