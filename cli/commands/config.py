"""memlog config, config set, init."""

from pathlib import Path
from typing import Any

import click

from memlog.cli.options.open_store import describe_texts_sent_to_providers
from memlog.cli.options.param_types import TEXT
from memlog.cli.options.settings import (
    IN_FILE,
    IN_USER_FILE,
    Command,
    Group,
    Settings,
    change_settings_file,
    text_of_default_file,
    user_settings_file,
)
from memlog.cli.options.settings_schema import (
    Setting,
    all_settings,
    format_setting_value,
    nearest_setting,
    setting_named,
)
from memlog.cli.output.answer import Done, TextAnswer, align_table_lines, printing_answer
from memlog.cli.output.output import add_options_to_command, escape_controls
from memlog.cli.process.confirmation import migrate_notes_or_name_command
from memlog.eventlog.log.layout import SETTINGS as SETTINGS_FILE
from memlog.eventlog.log.streams import escape_invalid_utf8
from memlog.service.engine.create import create_store


class _Config(Group):
    """A group that also accepts the name of a setting instead of a command."""

    allow_interspersed_args = True

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """See `click.Group`."""
        words = (each for each in args if not each.startswith("-"))
        ctx.allow_interspersed_args = next(words, None) not in self.commands
        return super().parse_args(ctx, args)

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the parameters, omitting the name if a subcommand follows."""
        params = super().get_params(ctx)
        if ctx.command is self and ctx.allow_interspersed_args:
            return params
        return [each for each in params if isinstance(each, click.Option)]


@click.group(cls=_Config, invoke_without_command=True, subcommand_metavar="| set SETTING VALUE")
@click.argument("name", type=TEXT, required=False)
@add_options_to_command(*TextAnswer.options)
@click.pass_context
def config(ctx: click.Context, name: str | None = None) -> int:
    """Show every setting with its value and where it comes from, or just the value of NAME.

    Options override environment variables, which override memlog.toml in the store's folder, which overrides
    your own memlog/config.toml, which overrides the defaults. Keys are not shown. The last lines show which
    texts are sent to which provider.
    """
    return (
        0
        if ctx.invoked_subcommand is not None
        else _settings_answer(ctx.ensure_object(Settings), name).print(ctx)
    )


def _settings_answer(settings: Settings, name: str | None) -> TextAnswer:
    if name is not None:
        setting = _describe_setting(settings, _require_setting(name))
        value = setting["value"]
        return TextAnswer(setting, text=[escape_controls("" if value is None else _setting_text(value))])
    found = [_describe_setting(settings, each) for each in all_settings()]
    sent = describe_texts_sent_to_providers(settings)
    rows = [(each["name"], _setting_text(each["value"]), each["origin"]) for each in found]
    lines = align_table_lines(("setting", "value", "from"), rows)
    lines += [f"{each['what']} are sent to {each['to']}" for each in sent] or [
        "nothing is sent to a provider"
    ]
    return TextAnswer({"settings": found, "sent": sent}, text=lines)


@config.command("set", cls=Command)
@click.argument("setting", type=TEXT)
@click.argument("value", type=TEXT)
@click.option("--user", "is_user", is_flag=True, help="Write your own file, which holds for all stores.")
@printing_answer
@click.pass_context
def set_(ctx: click.Context, setting: str, value: str, is_user: bool) -> Done:
    """Write a setting into the store's memlog.toml.

    Comments in the file are kept. Write VALUE as you would in an environment variable.
    """
    path = user_settings_file() if is_user else ctx.ensure_object(Settings).store / SETTINGS_FILE
    given: Any = _require_setting(setting).type.convert(value, None, ctx)
    if isinstance(given, Path):
        given = str(given.absolute())
    change_settings_file(path, setting, given, is_own=is_user)
    return Done(
        {"file": escape_invalid_utf8(path), "setting": setting},
        f"{escape_invalid_utf8(path)}: set {setting}.",
    )


def _require_setting(name: str) -> Setting:
    try:
        return setting_named(name)
    except KeyError:
        message = f"there is no setting {name!r}; did you mean {nearest_setting(name)}?"
        raise click.BadParameter(message, param_hint="NAME") from None


def _describe_setting(settings: Settings, setting: Setting) -> dict[str, Any]:
    value, origin = settings.find_value_and_origin(setting.name)
    if setting.is_secret and value is not None and origin not in (IN_FILE, IN_USER_FILE):
        value = "…"  # a file has the name of a variable, a variable the key
    plain = escape_invalid_utf8(value) if isinstance(value, Path) else value
    return {"name": setting.name, "value": plain, "origin": origin, "unit": setting.unit}


def _setting_text(value: object) -> str:
    return "none" if value is None else format_setting_value(value) or "none"


@click.command(cls=Command)
@printing_answer
@click.pass_context
def init(ctx: click.Context) -> TextAnswer:
    """Create a store's folder, with a memlog.toml that lists every setting and its default.

    A .gitignore and a .gitattributes make git track the log and nothing that memlog can rebuild. Existing
    files are left alone; lines missing from these two files are printed. Running init is optional: the first
    append also creates a store.
    """
    store = ctx.ensure_object(Settings).store
    done = create_store(store, text_of_default_file())
    migrate_notes_or_name_command(ctx, may_ask=True)
    what = f"made {', '.join(done.made)}" if done.made else "it already exists: nothing was changed"
    lines = [escape_controls(f"{done.store}: {what}")]
    for name, missing in done.missing.items():
        lines.append(f"{name} already existed; add these lines to it, so that git copies only the log:")
        lines += missing
    return TextAnswer(done, text=lines)
