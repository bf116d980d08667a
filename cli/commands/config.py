"""memlog config, init."""

import shlex
from pathlib import Path
from typing import Any

import click

from memlog.cli.options.open_store import sent_to_providers
from memlog.cli.options.param_types import TEXT
from memlog.cli.options.settings import IN_FILE, IN_USER_FILE, Command, Settings, file_with_defaults
from memlog.cli.options.settings_schema import Setting, all_settings, as_text, nearest_setting, setting_named
from memlog.cli.output.answer import TextAnswer, print_answer
from memlog.cli.output.output import note, printable
from memlog.eventlog.log.streams import shown
from memlog.service.engine.create import create_store, find_notes_beside


@click.command(cls=Command)
@click.argument("name", type=TEXT, required=False)
@print_answer
@click.pass_context
def config(ctx: click.Context, name: str | None) -> TextAnswer:
    """Show every setting with its value and its origin, or only the value of the setting NAME.

    Options override environment variables, which override memlog.toml in the store's folder, which overrides
    your own memlog/config.toml, which overrides the defaults. Keys are not shown. The last lines list which
    texts are sent to which provider.
    """
    settings = ctx.ensure_object(Settings)
    if name is not None:
        try:
            named = setting_named(name)
        except KeyError:
            message = f"there is no setting {name!r}; did you mean {nearest_setting(name)}?"
            raise click.BadParameter(message, param_hint="NAME") from None
        setting = _describe_setting(settings, named)
        return TextAnswer(
            setting, text=[printable("" if setting["value"] is None else _setting_text(setting["value"]))]
        )
    found = [_describe_setting(settings, each) for each in all_settings()]
    sent = sent_to_providers(settings)
    lines = [f"{each['name']:14} {_setting_text(each['value'])}  ({each['origin']})" for each in found]
    lines += [f"{each['what']} are sent to {each['to']}" for each in sent] or [
        "nothing is sent to a provider"
    ]
    return TextAnswer({"settings": found, "sent": sent}, text=map(printable, lines))


def _describe_setting(settings: Settings, setting: Setting) -> dict[str, Any]:
    value, origin = settings.find(setting.name)
    if setting.is_secret and value is not None and origin not in (IN_FILE, IN_USER_FILE):
        value = "…"  # a file has the name of a variable, a variable the key
    plain = shown(value) if isinstance(value, Path) else value
    return {"name": setting.name, "value": plain, "origin": origin, "unit": setting.unit}


def _setting_text(value: object) -> str:
    return "none" if value is None else as_text(value)


@click.command(cls=Command)
@print_answer
@click.pass_context
def init(ctx: click.Context) -> TextAnswer:
    """Create a store's folder with a memlog.toml that lists every setting and its default.

    A .gitignore and a .gitattributes let git copy the log, and nothing that memlog can rebuild. Existing
    files are not changed; lines that these two lack are printed. Init is optional: the first append also
    creates a store.
    """
    store = ctx.ensure_object(Settings).store
    done = create_store(store, file_with_defaults())
    if (notes := find_notes_beside(store)) is not None:
        folder = shlex.quote(shown(notes))
        words = ["memlog", *ctx.ensure_object(Settings).store_options, "import", "memory-folder", str(notes)]
        note(f"{folder} has notes; to import them: {printable(shlex.join(words))}")
    what = f"made {', '.join(done.made)}" if done.made else "it exists already: nothing was changed"
    lines = [printable(f"{done.store}: {what}")]
    for name, missing in done.missing.items():
        lines.append(f"{name} existed already; add these lines to it, so that git copies only the log:")
        lines += missing
    return TextAnswer(done, text=lines)
