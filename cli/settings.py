"""Every setting, and where its value comes from: option, environment, memlog.toml, default, in this order."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

import click
import msgspec

from memlog.cli.param_types import FOLDER, PROJECT, SECONDS, UNIT
from memlog.eventlog import layout
from memlog.eventlog.errors import BadInput

Origin = Literal["option", "environment", "memlog.toml", "default"]


_PREFIX = "MEMLOG_"


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """One setting.

    type: what an option and the environment are read as, with its limits.
    default: None where it is no plain value; then `default_says` tells what it is.
    in_file: whether it can stand in memlog.toml.
    """

    name: str
    type: click.ParamType  # type: ignore[type-arg] # generic from click 8.4 on
    default: Any = None
    default_says: str = ""
    unit: str
    meaning: str
    in_file: bool = True

    @property
    def variable(self) -> str:
        """Its environment variable."""
        return _PREFIX + self.name.upper()

    @property
    def default_text(self) -> str:
        """Its default, for people."""
        if isinstance(self.default, bool):
            return str(self.default).lower()
        return self.default_says or str(self.default)

    def read(self, text: object, where: str) -> Any:  # noqa: ANN401 - of the setting's type
        """The value that `text` stands for.

        Raises:
            BadInput: it stands for none; the message begins with `where`.
        """
        try:
            return self.type.convert(text, None, None)
        except click.BadParameter as error:
            raise BadInput(f"{where}: {error.message.rstrip('.')}", hint=self.hint) from error

    @property
    def hint(self) -> str:
        """What it takes, for who gave it something else."""
        return f"{self.name}: {self.meaning}"


SETTINGS = (
    Setting(
        name="store",
        type=FOLDER,
        default_says="the project's folder below the platform's user data",
        unit="folder",
        meaning="The store's folder.",
        in_file=False,
    ),
    Setting(
        name="project",
        type=PROJECT,
        default="default",
        unit="name",
        meaning="The project whose store is used where none is named.",
        in_file=False,
    ),
    Setting(
        name="model",
        type=FOLDER,
        default_says="the model that memlog ships with",
        unit="folder",
        meaning="A folder with model.onnx and tokenizer.json.",
    ),
    Setting(
        name="durability",
        type=click.Choice(["fsync", "os"]),
        default="fsync",
        unit="fsync, os",
        meaning="What an acknowledged event survives: a power cut (fsync), or the process only (os).",
    ),
    Setting(
        name="redact",
        type=click.BOOL,
        default=False,
        unit="true, false",
        meaning="Whether what looks like a key is masked before it is written: [REDACTED:kind].",
    ),
    Setting(
        name="lock_timeout",
        type=SECONDS,
        default=10.0,
        unit="seconds",
        meaning="How long to wait for other writers and projectors.",
    ),
    Setting(
        name="chunk_tokens",
        type=click.IntRange(64, 510),
        default=400,
        unit="tokens",
        meaning="The size of a passage. Another one makes another read model.",
    ),
    Setting(
        name="chunk_overlap",
        type=click.IntRange(0, 509),
        default=80,
        unit="tokens",
        meaning="What a passage repeats of the one before, less than chunk_tokens."
        " Another one makes another read model.",
    ),
    Setting(
        name="document_seconds",
        type=click.IntRange(1, 3600),
        default=60,
        unit="seconds",
        meaning="Processor time that reading one HTML or PDF file may take. A longer one is skipped.",
    ),
    Setting(
        name="archive_threshold",
        type=UNIT,
        default=0.001,
        unit="relevance",
        meaning="What memlog prune archives: memories whose relevance is at most this.",
    ),
    Setting(
        name="search_limit",
        type=click.IntRange(1, 1000),
        default=10,
        unit="hits",
        meaning="Hits of a query at most.",
    ),
    Setting(
        name="search_mode",
        type=click.Choice(["hybrid", "text", "vector"]),
        default="hybrid",
        unit="hybrid, text, vector",
        meaning="What a query searches by: words (text), meaning (vector), or both fused by rank (hybrid).",
    ),
    Setting(
        name="search_depth",
        type=click.IntRange(1, 1000),
        default=50,
        unit="candidates",
        meaning="Candidates that each side of a query gives, and never fewer than the hits asked for.",
    ),
    Setting(
        name="search_fusion",
        type=click.Choice(["rrf", "convex"]),
        default="rrf",
        unit="rrf, convex",
        meaning="How the two sides of a query are joined: by rank (rrf), or by the sum of their scaled scores"
        " (convex).",
    ),
)

BY_NAME = {setting.name: setting for setting in SETTINGS}


class SettingValue(msgspec.Struct, frozen=True):
    """A setting's value, and where it comes from."""

    value: Any
    origin: Origin


class Settings:
    """The settings of one call of the command line.

    options: those that were given as options, by the setting's name.
    """

    def __init__(self) -> None:
        self.options: dict[str, Any] = {}
        self._file: dict[str, Any] | None = None

    @property
    def store(self) -> Path:
        """The store's folder; the project's, where none is named."""
        store: Path = self.value("store")
        return store

    def value(self, name: str) -> Any:  # noqa: ANN401 - of the setting's type
        """The value of a setting; raises as `find`."""
        return self.find(name).value

    def find(self, name: str) -> SettingValue:
        """The value of a setting, and where it comes from. An empty variable is none.

        Raises:
            BadInput: an environment variable, or memlog.toml, holds what cannot be used.
            UsageError: the store is asked for, and both --project and something else name it.
        """
        setting = BY_NAME[name]
        if name == "store":
            self._check_one_names_it()
        if name in self.options:
            return SettingValue(self.options[name], "option")
        if text := os.environ.get(setting.variable):
            return SettingValue(setting.read(text, setting.variable), "environment")
        if setting.in_file and name in self._in_file():
            return SettingValue(self._in_file()[name], "memlog.toml")
        return SettingValue(self._project_store() if name == "store" else setting.default, "default")

    def at(self, store: Path) -> "Settings":
        """The settings of the store in another folder, with the same options."""
        other = Settings()
        other.options = self.options | {"store": store}
        other.options.pop("project", None)
        return other

    def _check_one_names_it(self) -> None:
        """Who asks for a project must not be given another's store, because its folder is set elsewhere."""
        if "project" not in self.options:
            return
        variable = BY_NAME["store"].variable
        other = "--store" if "store" in self.options else variable if os.environ.get(variable) else None
        if other is not None:
            raise click.UsageError(f"--project {self.options['project']}: {other} names another store")

    def _in_file(self) -> dict[str, Any]:
        if self._file is None:
            self._file = _read_file(self.store)
        return self._file

    def _project_store(self) -> Path:
        # Imported here: most programs name their store.
        from memlog.eventlog.streams import project_folder

        return projects_folder() / project_folder(self.value("project"))


def projects_folder() -> Path:
    """The folder below which projects have their stores: memlog's, of the platform's user data."""
    # Imported here, as above.
    from platformdirs import user_data_path

    return user_data_path("memlog", appauthor=False)


def _read_file(store: Path) -> dict[str, Any]:
    path = store / layout.SETTINGS
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return {}
    # Imported here: most stores have no such file, and `append` starts without a TOML parser.
    from memlog.cli.settings_file import read

    return read(path)


def misspelt_variables() -> Iterator[tuple[str, str]]:
    """Environment variables that are almost one of memlog's, each with the one that it is almost.

    Others that begin with MEMLOG_ may belong to anybody.
    """
    known = {setting.variable for setting in SETTINGS}
    for variable in os.environ:
        if variable.startswith(_PREFIX) and variable not in known:
            meant = nearest(variable.removeprefix(_PREFIX).lower(), 0.8)
            if meant is not None:
                yield variable, BY_NAME[meant].variable


def nearest(name: str, likeness: float = 0.0) -> str | None:
    """The setting whose name is most like `name`; None where none is as like as `likeness`, from 0 to 1."""
    from difflib import get_close_matches

    return next(iter(get_close_matches(name, BY_NAME, 1, likeness)), None)


class SettingOption(click.Option):
    """An option that gives one setting its value for this call. The command asks `Settings` for it."""

    def __init__(self, declarations: list[str], *, setting: Setting) -> None:
        super().__init__(
            declarations,
            type=setting.type,
            default=None,
            envvar=setting.variable,
            show_envvar=True,
            help=setting.meaning,
            callback=self._keep,
            expose_value=False,
        )
        self.setting = setting

    def resolve_envvar_value(self, ctx: click.Context) -> str | None:  # noqa: ARG002
        """Nothing: `Settings` reads the environment, for options that a command lacks, too."""
        return None

    def get_help_extra(self, ctx: click.Context) -> Any:  # noqa: ANN401 - click keeps the type private
        """With the setting's default."""
        extra = super().get_help_extra(ctx)
        extra["default"] = self.setting.default_text
        return extra

    def _keep(self, ctx: click.Context, _: click.Parameter, value: Any) -> None:  # noqa: ANN401
        if value is not None:
            ctx.ensure_object(Settings).options[self.setting.name] = value


def setting_option(name: str, *declarations: str) -> Callable[[Any], Any]:
    """The decorator that gives a command an option for the setting `name`."""
    return click.option(*declarations, cls=SettingOption, setting=BY_NAME[name])
