"""Every setting, derived from the fields of `memlog.eventlog.settings`."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cache, cached_property
from typing import Annotated, Any

import click
import msgspec

from memlog.cli.options.param_types import FOLDER, PROJECT, Number, TextType, WholeNumber, click_type_of_field
from memlog.cli.output.output import print_note
from memlog.eventlog.errors import BadInput
from memlog.eventlog.fields import Checked, Field, find_field_reader, list_fields
from memlog.eventlog.settings import StoreSettings


def format_setting_value(value: object) -> str:
    """Format a value as in an environment variable."""
    if isinstance(value, dict):
        return msgspec.json.encode(value).decode()
    if isinstance(value, list | tuple):
        return ", ".join(value)
    return str(value).lower() if isinstance(value, bool) else str(value)


_FORMS: dict[Any, str] = {
    bool: "true or false",
    float | str: "a number, or none in quotes",
    dict[str, list[str]]: "a table of lists of texts",
    dict[str, float]: "a table of numbers from 0 to 1",
}
"""The allowed values of some types."""


class Setting(msgspec.Struct, frozen=True, dict=True):
    """A setting, given as an option, an environment variable or in memlog.toml."""

    name: str
    field: Field

    @property
    def default(self) -> Any:  # noqa: ANN401 - of the setting's type
        """The default; None if it is not a plain value, in which case `Field.without` describes it."""
        return self.field.default

    @property
    def default_text(self) -> str:
        """The default as shown in help."""
        return self.field.without or format_setting_value(self.default).lower()

    @property
    def meaning(self) -> str:
        """What the setting is for."""
        return self.field.description

    @property
    def unit(self) -> str:
        """The unit of the value, or its allowed values."""
        return self.field.unit or ", ".join(self.field.choices) or "true, false"

    @property
    def variable(self) -> str:
        """The name of its environment variable."""
        return f"MEMLOG_{self.name.upper().replace('.', '_')}"

    @property
    def is_secret(self) -> bool:
        """Whether its value is a key, which is never printed."""
        return self.name.endswith(".api_key")

    @property
    def is_only_of_user(self) -> bool:
        """Whether it is read only from the environment and the user's own file.

        True for a setting that holds a key or concerns the user's server.
        """
        return self.name.endswith((".api_key", ".api_key_file")) or self.name.startswith("serve.")

    @property
    def may_be_in_file(self) -> bool:
        """Whether memlog.toml may set it: false for the two settings that determine where that file is."""
        return self.name not in ("store", "project")

    @cached_property
    def type(self) -> Any:  # noqa: ANN401 - generic from click 8.4 on
        """The click type of the setting's option, with bounds and choices."""
        if self.field.kind is bool:
            return click.BOOL
        if self.field.reads is not None and self.field.reads.form == "path":
            return FOLDER
        if self.name == "project":
            return PROJECT
        if self.name == "retrieval.mode":
            return TextType("mode", self._parse_mode)
        if self.field.reads is not None or self.field.is_list:
            return TextType(self.unit, self._parse_text)
        return click_type_of_field(self.field)

    def read_value(self, given: object, where: str, *, is_text: bool) -> Any:  # noqa: ANN401 - of the setting's type
        """Check and convert a value from memlog.toml, or the text of a variable.

        Raises:
            BadInput: the value has the wrong type or is out of bounds; the message starts with `where`.
        """
        hint = f"{self.name}: {self.meaning}"
        bounds = msgspec.Meta(ge=self.field.least, le=self.field.most)
        try:
            is_plain = isinstance(given, str) and (is_text or self.field.choices)
            value = given if is_plain else msgspec.convert(given, Annotated[self.field.wire, bounds])
            if isinstance(value, str):
                return self.type.convert(value, None, None)
            return self._check_value(value, given)
        except msgspec.ValidationError as error:
            raise BadInput(f"{where}: {given!r} is not {self._describe_allowed()}", hint=hint) from error
        except (click.BadParameter, BadInput) as error:
            raise BadInput(f"{where}: {error.message.rstrip('.')}", hint=hint) from error

    def _check_value(self, value: object, given: object) -> Any:  # noqa: ANN401 - of the setting's type
        try:
            return find_field_reader(self.field)(value)
        except BadInput as error:
            if error.message.startswith(f"{self.field.name} is "):
                raise BadInput(f"{given!r} is not {self._describe_allowed()}") from error
            raise

    def _describe_allowed(self) -> str:
        if isinstance(self.type, WholeNumber | Number):
            return self.type.allowed_values_in_words
        if self.field.choices:
            return f"one of {', '.join(map(repr, self.field.choices))}"
        if self.field.is_list:
            return f"a list of {self.unit}"
        return _FORMS.get(self.field.wire, f"a {self.unit} in quotes")

    def _parse_text(self, text: str) -> Any:  # noqa: ANN401 - of the setting's type
        given: Any = text
        if self.field.is_list:
            given = [each.strip() for each in text.split(",")] if text else []
        elif isinstance(self.default, dict):
            with suppress(msgspec.DecodeError):
                given = msgspec.json.decode(text)
        return self._check_value(given, text)

    def _parse_mode(self, text: str) -> str:
        if text in self.field.choices:
            return text
        print_note(f"retrieval.mode: there is no mode {text!r}; using classic, which asks no provider")
        return "classic"


def _structs_of_section(section: str | None) -> Sequence[tuple[str, type[Checked]]]:
    """Return the settings structs, each with its section; for "", only the struct outside all sections."""
    outside = [("", StoreSettings)]
    if section == "":
        return outside
    # Imported here: an append needs no section.
    from memlog.eventlog.sections import SECTIONS

    return [*outside, *SECTIONS]


@cache
def _settings_of(section: str) -> dict[str, Setting]:
    fields = (
        field for name, kind in _structs_of_section(section) if name == section for field in list_fields(kind)
    )
    named = ((f"{section}.{field.key}".lstrip("."), field) for field in fields if field.description)
    return {name: Setting(name, field) for name, field in named}


def all_settings() -> Iterator[Setting]:
    """Yield every setting; a section is read when it is reached, since most commands need none."""
    yield from _settings_of("").values()
    for section in list(dict(_structs_of_section(None)))[1:]:
        yield from _settings_of(section).values()


def setting_named(name: str) -> Setting:
    """Return a setting by its name, such as `embedding.type`. Raises KeyError if there is none."""
    return _settings_of(name.rpartition(".")[0])[name]


def nearest_setting(name: str, likeness: float = 0.0) -> str | None:
    """Return the setting with the most similar name; None if none reaches `likeness` (0 to 1)."""
    from difflib import get_close_matches

    return next(iter(get_close_matches(name, [each.name for each in all_settings()], 1, likeness)), None)
