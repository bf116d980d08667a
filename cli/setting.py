"""What a setting is, and how its value is read."""

from typing import Annotated, Any

import click
import msgspec

from memlog.eventlog.errors import BadInput
from memlog.eventlog.limits import OLLAMA_MODEL, OLLAMA_URL

_DEFAULTS = {
    "store": "the project's folder below the platform's user data",
    "model": "the model that memlog ships with",
    "timezone": "the system's, which TZ sets",
    "context.people": "the names in messages tell whose a chat is",
    "embedding.base_url": f"{OLLAMA_URL} of ollama",
    "embedding.model": f"{OLLAMA_MODEL} of ollama, the model that memlog ships with of onnx",
    "embedding.dimension": "what the first vector has",
    **dict.fromkeys(
        ("embedding.query_prefix", "embedding.passage_prefix"), "what the model was trained with"
    ),
    "language_model.temperature": "0 of api, none of anthropic",
    **dict.fromkeys(("embedding.proxy", "rerank.proxy", "language_model.proxy"), "no proxy"),
    **dict.fromkeys(("embedding.api_key", "embedding.api_key_file"), "no key is sent"),
    "rerank.base_url": "nobody ranks anew",
    "language_model.base_url": "nobody distils",
    "language_model.model": "no model is named",
    **dict.fromkeys(("language_model.api_key", "language_model.api_key_file"), "no key is sent"),
    "rerank.model": "no model is named",
    **dict.fromkeys(("rerank.api_key", "rerank.api_key_file"), "no key is sent"),
}


_FORMS: dict[type, tuple[Any, str]] = {
    bool: (bool, "true or false"),
    tuple: (list[Annotated[str, msgspec.Meta(min_length=1)]], "a list of texts"),
    dict: (dict[str, list[str]], "a table of lists of texts"),
}
"""What memlog.toml holds for a setting whose default is of a type, and its name."""


def as_text(value: object) -> str:
    """Return a value as a variable has it."""
    if isinstance(value, dict):
        return msgspec.json.encode(value).decode()
    if isinstance(value, list | tuple):
        return ", ".join(value)
    return str(value).lower() if isinstance(value, bool) else str(value)


class Setting(msgspec.Struct, frozen=True):
    """What options, variables, memlog.toml and messages need of a setting.

    default: None where it is no plain value; `default_words` says then what it is.
    type: of its option; it has the bounds and the choices.
    """

    name: str
    default: Any
    type: Any
    unit: str
    meaning: str

    @property
    def default_words(self) -> str:
        """Say a default that is no plain value in words."""
        return _DEFAULTS.get(self.name, "")

    @property
    def default_text(self) -> str:
        """Its default, for people."""
        return self.default_words or as_text(self.default).lower()

    @property
    def variable(self) -> str:
        """Its environment variable."""
        return f"MEMLOG_{self.name.upper().replace('.', '_')}"

    @property
    def is_secret(self) -> bool:
        """Whether its value is a key, which is never printed."""
        return self.name.endswith(".api_key")

    @property
    def in_file(self) -> bool:
        """Whether memlog.toml may set it: that file is found through the two others."""
        return self.name not in ("store", "project")

    def read(self, given: object, where: str, *, is_text: bool) -> Any:  # noqa: ANN401 - of the setting's type
        """Check a value of memlog.toml, or the text of a variable.

        Raises:
            BadInput: the value is not of the type, or out of bounds; the message begins with `where`.
        """
        hint = f"{self.name}: {self.meaning}"
        try:
            if self._is_number:
                bounds = msgspec.Meta(ge=self.type.min, le=self.type.max)
                kind: type = int if isinstance(self.type, click.IntRange) else float
                return msgspec.convert(given, Annotated[kind, bounds], strict=not is_text)
            value = given if is_text else msgspec.convert(given, self._form[0])
            return self.type.convert(value if isinstance(value, str | bool) else as_text(value), None, None)
        except msgspec.ValidationError as error:
            raise BadInput(f"{where}: {given!r} is not {self._valid()}", hint=hint) from error
        except click.BadParameter as error:
            raise BadInput(f"{where}: {error.message.rstrip('.')}", hint=hint) from error

    @property
    def _is_number(self) -> bool:
        return isinstance(self.type, click.IntRange | click.FloatRange)

    def _valid(self) -> str:
        if self._is_number:
            kind = "a whole number" if isinstance(self.type, click.IntRange) else "a number"
            return f"{kind} from {self.type.min} to {self.type.max}"
        if isinstance(self.type, click.Choice):
            return f"one of {', '.join(map(repr, self.type.choices))}"
        return self._form[1]

    @property
    def _form(self) -> tuple[Any, str]:
        if self.unit == "number, none":
            return float | str, "a number, or none in quotes"
        return _FORMS.get(type(self.default), (str, f"a {self.unit} in quotes"))
