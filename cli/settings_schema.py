"""Every setting: its type, bounds, default, unit and meaning."""

from typing import Annotated, Any, Literal, get_args, get_origin

import click
import msgspec
from msgspec import Meta

from memlog.cli.param_types import FOLDER, PROJECT, Number
from memlog.eventlog.errors import BadInput


class StoreSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Every setting with its default; None where the default is no plain value.

    An annotation has, after type, meaning and bounds, the unit, and where the command line reads the value
    with a type of its own, that one.
    """

    store: Annotated[str | None, Meta(description="The store's folder."), "folder", FOLDER] = None
    project: Annotated[
        str, Meta(description="The project whose store is used where none is named."), "name", PROJECT
    ] = "default"
    model: Annotated[
        str | None, Meta(description="A folder with model.onnx and tokenizer.json."), "folder", FOLDER
    ] = None
    durability: Annotated[
        Literal["fsync", "os"],
        Meta(
            description="What an acknowledged event survives: a power cut (fsync), or the process only (os)."
        ),
    ] = "fsync"
    redact: Annotated[
        bool,
        Meta(description="Whether what looks like a key is masked before it is written: [REDACTED:kind]."),
        "true, false",
        click.BOOL,
    ] = False
    lock_timeout: Annotated[
        float,
        Meta(description="How long to wait for other writers and projectors.", ge=0, le=3600),
        "seconds",
    ] = 10.0
    chunk_tokens: Annotated[
        int,
        Meta(description="The size of a passage. Another one makes another read model.", ge=64, le=510),
        "tokens",
    ] = 400
    chunk_overlap: Annotated[
        int,
        Meta(
            description="What a passage repeats of the one before, less than chunk_tokens."
            " Another one makes another read model.",
            ge=0,
            le=509,
        ),
        "tokens",
    ] = 80
    document_seconds: Annotated[
        int,
        Meta(
            description="Processor time that reading one HTML or PDF file may take. A longer one is skipped.",
            ge=1,
            le=3600,
        ),
        "seconds",
    ] = 60
    archive_threshold: Annotated[
        float,
        Meta(description="What memlog prune archives: memories whose relevance is at most this.", ge=0, le=1),
        "relevance",
    ] = 0.001
    search_limit: Annotated[int, Meta(description="Hits of a query at most.", ge=1, le=1000), "hits"] = 10
    search_mode: Annotated[
        Literal["hybrid", "text", "vector"],
        Meta(
            description="What a query searches by: words (text), meaning (vector), or both fused by rank"
            " (hybrid)."
        ),
    ] = "hybrid"
    search_depth: Annotated[
        int,
        Meta(
            description="Candidates that each side of a query gives, and never fewer than the hits"
            " asked for.",
            ge=1,
            le=1000,
        ),
        "candidates",
    ] = 50
    search_fusion: Annotated[
        Literal["rrf", "convex"],
        Meta(
            description="How the two sides of a query are joined: by rank (rrf), or by the sum of their"
            " scaled scores (convex)."
        ),
    ] = "rrf"


_DEFAULTS = {
    "store": "the project's folder below the platform's user data",
    "model": "the model that memlog ships with",
}


class Setting:
    """A field of `StoreSettings`: what options, variables, memlog.toml and messages need of it."""

    def __init__(self, name: str, annotation: Any, default: Any) -> None:  # noqa: ANN401 - any type
        kind, meta, *more = get_args(annotation)
        self.name = name
        self.default = default
        self.default_says = _DEFAULTS.get(name, "")
        self.meaning: str = meta.description
        self.choices = get_args(kind) if get_origin(kind) is Literal else ()
        self.unit: str = more[0] if more else ", ".join(self.choices)
        # This file is found through the two.
        self.in_file = name not in ("store", "project")
        self.variable = f"MEMLOG_{name.upper()}"
        self._type, self._kind, self._bounds = annotation, kind, (meta.ge, meta.le)
        self._own_type: Any = more[1] if len(more) > 1 else None

    @property
    def default_text(self) -> str:
        """Its default, for people."""
        return self.default_says or str(self.default).lower()

    @property
    def option_type(self) -> Any:  # noqa: ANN401 - click's types are generic from 8.4 on
        """The click type of an option for it."""
        if self.choices:
            return click.Choice(self.choices)
        return self._own_type or (Number if self._kind is float else click.IntRange)(*self._bounds)

    def read(self, given: object, where: str, *, is_text: bool) -> Any:  # noqa: ANN401 - of the setting's type
        """Check a value of memlog.toml, or the text of a variable.

        Raises:
            BadInput: the value is not of the type, or out of bounds; the message begins with `where`.
        """
        hint = f"{self.name}: {self.meaning}"
        try:
            is_read = is_text and self._own_type
            value = given if is_read else msgspec.convert(given, self._type, strict=not is_text)
            return self._own_type.convert(value, None, None) if self._own_type else value
        except msgspec.ValidationError as error:
            raise BadInput(f"{where}: {given!r} is not {self._valid()}", hint=hint) from error
        except click.BadParameter as error:
            raise BadInput(f"{where}: {error.message.rstrip('.')}", hint=hint) from error

    def _valid(self) -> str:
        least, most = self._bounds
        if self.choices:
            return f"one of {', '.join(map(repr, self.choices))}"
        if self._kind is bool:
            return "true or false"
        if least is None:
            return f"a {self.unit} in quotes"
        return f"{'a whole number' if self._kind is int else 'a number'} from {least} to {most}"


SETTINGS = tuple(
    Setting(name, StoreSettings.__annotations__[name], default)
    for name, default in zip(StoreSettings.__struct_fields__, StoreSettings.__struct_defaults__, strict=True)
)

BY_NAME = {setting.name: setting for setting in SETTINGS}


def nearest(name: str, likeness: float = 0.0) -> str | None:
    """The setting whose name is most like `name`; None where none is as like as `likeness`, from 0 to 1."""
    from difflib import get_close_matches

    return next(iter(get_close_matches(name, BY_NAME, 1, likeness)), None)
