"""The sections of memlog.toml: providers, rules and people. Each is a struct whose fields are its settings.

These are kept apart from the other settings because an append does not need them.
"""

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal

from msgspec import Meta, field

from memlog.eventlog.errors import BadInput, format_value_for_message
from memlog.eventlog.fields import (
    Channel,
    Chat,
    Checked,
    Help,
    Reads,
    Unit,
    convert_value,
)
from memlog.eventlog.settings import MaybePath, check_time_zone

if TYPE_CHECKING:
    from memlog.eventlog.schedules import Schedule

OLLAMA_URL = "http://127.0.0.1:11434"
OLLAMA_MODEL = "all-minilm:l6-v2"

ApiKey = str | Callable[[], str]
"""A key, or a function that returns it for each request."""


_Chats = dict[str, list[str]]
_Rates = dict[str, float]


# What a field accepts beside its type


def _read_chats(given: object) -> _Chats:
    people: _Chats = convert_value("chats", given, hint=_Chats)
    owners: dict[str, str] = {}
    for person, chats in people.items():
        for chat in chats:
            if owners.setdefault(str(Chat.of(chat)), person) != person:
                message = f"{chat} belongs to {owners[chat]} and {person}"
                raise BadInput(message, hint="list it under one person only")
    return people


def _read_rates(given: object) -> _Rates:
    # Imported here: most programs set no rates.
    from memlog.eventlog.categories import read_decay_rates

    return read_decay_rates(convert_value("rates", given, hint=_Rates))


def _check_job_time(text: str, *, has_day: bool) -> str:
    # Imported here: most programs set no time.
    from memlog.eventlog.schedules import parse_schedule

    parse_schedule(text, has_day=has_day)
    return text


def _read_temperature(given: Any) -> float | Literal["none"]:  # noqa: ANN401
    if given == "none":
        return "none"
    with suppress(TypeError, ValueError):
        if not isinstance(given, bool) and 0 <= float(given) <= 2:
            return float(given)
    raise BadInput(
        f"temperature is {format_value_for_message(given)}", hint="use a number from 0 to 2, or none"
    )


def _check_api_key(given: ApiKey) -> ApiKey:
    if not isinstance(given, str) and not callable(given):
        raise BadInput(
            "api_key is neither a string nor a function", hint="pass the key, or a function that returns it"
        )
    return given


class People(Checked, frozen=True, kw_only=True):
    """The `context` section: the people who talk to the agent, and their chats.

    Raises:
        BadInput: a value has the wrong form, or a chat belongs to two people.
    """

    messengers: Annotated[
        tuple[Channel, ...],
        Help(
            "Channels over which anybody may write: a chat whose messages have no names belongs to a separate"
            " person.",
            "channels",
        ),
    ] = ("telegram", "whatsapp", "slack", "discord", "signal", "matrix")
    chats: Annotated[
        _Chats,
        Reads(_read_chats, wire=_Chats),
        Help(
            "The chats of each person, which share a scope and belong to no other person, such as"
            ' anna = ["telegram:1", "signal:2"]; in a variable {"anna": ["telegram:1", "signal:2"]}.',
            "chats by person",
            "the names in messages determine whose a chat is",
        ),
    ] = field(default_factory=dict, name="people")

    def owner(self, chat: str) -> str | None:
        """Return the person who owns `chat` according to the settings, or None."""
        return next((person for person, chats in self.chats.items() if chat in chats), None)

    def joined(self, chat: str) -> frozenset[str]:
        """Return the chats that share a scope with `chat`, including itself."""
        owner = self.owner(chat)
        return frozenset([chat, *(self.chats[owner] if owner is not None else ())])

    def is_messenger(self, chat: str) -> bool:
        """Whether `chat` is on a messenger."""
        return self.has_messenger(chat.partition(":")[0])

    def has_messenger(self, channel: str) -> bool:
        """Whether `channel` is a messenger, ignoring case."""
        return channel.casefold() in {each.casefold() for each in self.messengers}


class DecayRules(Checked, frozen=True, kw_only=True):
    """How much memories fade each day.

    Raises:
        BadInput: a category is unknown, or a factor is not between 0 and 1.
    """

    rates: Annotated[
        _Rates,
        Reads(_read_rates, wire=_Rates),
        Help(
            "The factors from 0 to 1 by which a decay multiplies the salience of memories, by category, such"
            ' as context = 0.8; in a variable {"context": 0.8}.',
            "factors by category",
            "memlog's rates, which also hold for categories that it does not name",
        ),
    ] = field(default_factory=dict)

    def all_rates(self) -> _Rates:
        """Return the decay factors, keyed by category."""
        # Imported here: most programs fade nothing.
        from memlog.eventlog.categories import CATEGORIES

        return {name: category.rate for name, category in CATEGORIES.items()} | self.rates


class SearchRules(Checked, frozen=True, kw_only=True):
    """Which hits searches leave out by default."""

    min_similarity: Annotated[
        Unit | None,
        Help(
            "The similarity below which searches leave out hits that have a vector; contexts have a floor of"
            " their own.",
            "similarity",
            "none is left out",
        ),
    ] = None


class RetrievalSettings(Checked, frozen=True, kw_only=True):
    """Whether searches ask providers."""

    mode: Annotated[
        Literal["classic", "enhanced"],
        "Whether searches use the providers that are configured below (enhanced), or none (classic).",
    ] = "enhanced"


class MemorySwitch(Checked, frozen=True, kw_only=True):
    """Whether searches and contexts return anything."""

    enabled: Annotated[bool, "Whether contexts and searches return anything."] = True


class MigrationRules(Checked, frozen=True, kw_only=True):
    """Whether notes beside an empty store are imported."""

    auto: Annotated[
        bool,
        "Whether init, serve, watch and context import the MEMORY.md and journals beside an empty store.",
    ] = False


class Provider(Checked, frozen=True, kw_only=True):
    """The settings that all providers share.

    `api_key` takes precedence over `api_key_file`; it may also be a function that returns the key.
    """

    type: str = "none"
    base_url: str | None = None
    model: Annotated[
        str | None, Help("The name of the model at the provider.", "name", "no model is named")
    ] = None
    timeout: Annotated[
        float, Meta(ge=0.1, le=600), Help("How long to wait for an answer of the provider.", "seconds")
    ] = 30.0
    api_key: Annotated[
        ApiKey | None,
        Reads(_check_api_key),
        Help(
            "The key; your own file, not a store's, may name the variable that holds it, as ${NAME}.",
            "${NAME}",
            "no key is sent",
        ),
    ] = None
    api_key_file: Annotated[
        MaybePath, Help("A file with the key in its first line.", "file", "no key is sent")
    ] = None
    proxy: Annotated[
        str | None, Help("The proxy used to reach the provider: http://127.0.0.1:3128.", "URL", "no proxy")
    ] = None

    def __post_init__(self) -> None:
        """Check the addresses."""
        super().__post_init__()
        for name in ("base_url", "proxy"):
            if getattr(self, name) is not None:
                _check_url(name, getattr(self, name))
        if self.type in ("api", "tei", "anthropic") and self.base_url is None:
            raise BadInput(
                f"type {self.type} needs base_url", hint="set it, for example to https://api.example.com/v1"
            )

    def read_key(self) -> str | None:
        """Return the key for a request.

        Raises:
            BadInput: the key file cannot be read.
        """
        if self.api_key is not None:
            return self.api_key() if callable(self.api_key) else self.api_key
        if self.api_key_file is None:
            return None
        # Imported here: most programs have no such file.
        from memlog.eventlog.log.streams import escape_invalid_utf8
        from memlog.eventlog.secrets.detection import mask_keys

        try:
            lines = self.api_key_file.read_text().splitlines()
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", None) or "it is not UTF-8"
            raise BadInput(
                mask_keys(f"{escape_invalid_utf8(self.api_key_file)}: {why}"),
                hint="set api_key_file to a file with the key in its first line",
            ) from error
        return lines[0].strip() if lines else ""

    @property
    def is_of_this_machine(self) -> bool:
        """Whether data sent to the provider stays on this machine."""
        # Imported here, since this module is imported by every command.
        from ipaddress import ip_address
        from urllib.parse import urlsplit

        default = OLLAMA_URL if self.type in ("ollama", "auto") else ""
        host = urlsplit(self.base_url or default).hostname or ""
        if host == "localhost":
            return True
        with suppress(ValueError):
            return ip_address(host).is_loopback
        return False

    def __repr__(self) -> str:
        """Show the provider without its key."""
        values = {name: getattr(self, name) for name in self.__struct_fields__}
        values["api_key"] = None if self.api_key is None else "…"
        shown = ", ".join(f"{name}={value!r}" for name, value in values.items())
        return f"{type(self).__name__}({shown})"


class EmbeddingSwitch(Checked, frozen=True, kw_only=True):
    """Whether texts are embedded."""

    enabled: Annotated[bool, "Whether texts are embedded."] = True


class EmbeddingProvider(Provider, frozen=True, kw_only=True):
    """The provider that embeds texts.

    For `onnx`, `model` is a folder with `model.onnx` and `tokenizer.json`; None means the bundled model.
    """

    type: Annotated[
        Literal["auto", "onnx", "ollama", "api", "none"],
        "What embeds texts: a model on this machine (onnx), Ollama, an OpenAI-compatible API (api), nothing"
        " (none); auto: onnx, else Ollama if it answers, else nothing.",
    ] = "onnx"
    base_url: Annotated[
        str | None,
        Help(
            "Where texts are sent to be embedded; with the version: https://…/v1.",
            "URL",
            f"{OLLAMA_URL} for ollama",
        ),
    ] = None
    model: Annotated[
        str | None,
        Help(
            "The name of the model at the provider.",
            "name",
            f"{OLLAMA_MODEL} for ollama, for onnx the model that memlog ships with",
        ),
    ] = None
    dimension: Annotated[
        int | None,
        Meta(ge=1, le=8192),
        Help("The dimension of the model's vectors.", "numbers", "that of the first vector"),
    ] = None
    batch: Annotated[int, Meta(ge=1, le=2048), Help("The most texts in a request.", "texts")] = 16
    query_prefix: Annotated[
        str | None, Help("The text to put before a question.", "text", "what the model was trained with")
    ] = None
    passage_prefix: Annotated[
        str | None, Help("The text to put before a passage.", "text", "what the model was trained with")
    ] = None
    encoding_format: Annotated[
        Literal["float", "none"], "The encoding of vectors to request from an API; none: do not request one."
    ] = "float"

    def __post_init__(self) -> None:
        """Check the settings that the type requires."""
        super().__post_init__()
        if self.type == "api" and self.model is None:
            raise BadInput("type api needs model", hint="set model to the provider's name for it")
        if self.type == "onnx" and self.base_url is not None:
            raise BadInput("type onnx takes no base_url", hint="set type to ollama or api")


class RerankSwitch(Checked, frozen=True, kw_only=True):
    """Whether hits are reranked."""

    enabled: Annotated[bool, "Whether hits are reranked."] = True


class RerankProvider(Provider, frozen=True, kw_only=True):
    """The provider that reranks search results."""

    type: Annotated[
        Literal["api", "tei"],
        "The API that reranks hits: /v1/rerank of Cohere, Jina, vLLM and llama.cpp (api), or /rerank of"
        " text-embeddings-inference (tei).",
    ] = "api"
    base_url: Annotated[
        str | None,
        Help(
            "Where questions and hits are sent to be ranked; with the version: https://…/v1.",
            "URL",
            "reranking disabled",
        ),
    ] = None
    top_n: Annotated[int, Meta(ge=1, le=1000), Help("How many of the best hits to rerank.", "hits")] = 8


class ExtractionRules(Checked, frozen=True, kw_only=True):
    """When messages are distilled, and which memories are kept."""

    enabled: Annotated[bool, "Whether conversations are distilled."] = True
    quiet_minutes: Annotated[
        float,
        Meta(ge=0, le=100_000),
        Help("How long a chat must be quiet before a watch distils it.", "minutes"),
    ] = 10.0
    tokens: Annotated[
        int,
        Meta(ge=1, le=1_000_000),
        Help(
            "The size of undistilled messages at which a watch distils a chat immediately; also that"
            " of a request.",
            "tokens",
        ),
    ] = 4000
    threshold: Annotated[
        float, Meta(ge=0, le=1), Help("The least importance of memories to keep.", "importance")
    ] = 0.3
    max_per_session: Annotated[
        int, Meta(ge=1, le=1000), Help("The most memories to distil from a session.", "memories")
    ] = 50
    channels: Annotated[
        tuple[Channel, ...],
        Help(
            "Channels or formats whose imports may also be sent to providers on other machines.",
            "channels",
        ),
    ] = ()
    max_tokens_per_day: Annotated[
        int,
        Meta(ge=1, le=10**12),
        Help(
            "The most tokens of requests and answers of the language model per day in UTC; the rest waits.",
            "tokens",
        ),
    ] = 200_000
    prompts_dir: Annotated[
        MaybePath,
        Help(
            "A folder of prompts: a file such as merge-2.md there replaces the prompt of that name.", "folder"
        ),
    ] = None


class LanguageModelProvider(Provider, frozen=True, kw_only=True):
    """The language model that distils conversations into memories.

    If the provider rejects one form of a parameter, memlog tries another, and remembers the one that works.
    """

    type: Annotated[
        Literal["api", "anthropic"],
        "The API that distils: OpenAI's /v1/chat/completions with a JSON schema (api), or Anthropic's"
        " /v1/messages.",
    ] = "api"
    base_url: Annotated[
        str | None,
        Help(
            "Where conversations are sent to be distilled; with the version: https://…/v1.",
            "URL",
            "nothing is distilled",
        ),
    ] = None
    timeout: Annotated[
        float, Meta(ge=0.1, le=3600), Help("How long to wait for an answer of the provider.", "seconds")
    ] = 120.0
    max_tokens: Annotated[int, Meta(ge=16, le=1_000_000), Help("The most tokens of an answer.", "tokens")] = (
        4000
    )
    max_tokens_parameter: Annotated[
        Literal["max_tokens", "max_completion_tokens", "none"],
        "The API's parameter for max_tokens, to try first; none: send no such parameter.",
    ] = "max_tokens"
    temperature: Annotated[
        float | Literal["none"] | None,
        Reads(_read_temperature, wire=float | str),
        Help(
            "The temperature, from 0 to 2; none: do not send it.",
            "number, none",
            "0 for api, none for anthropic",
        ),
    ] = None
    response_format: Annotated[
        Literal["json_schema", "json_object", "none"],
        "How to request JSON, to try first: by a schema (json_schema), as any JSON (json_object), or only in"
        " the prompt (none).",
    ] = "json_schema"
    system_role: Annotated[
        Literal["system", "developer", "user"],
        "The role of the prompt, to try first; user: the prompt is put before the messages.",
    ] = "system"

    @property
    def name(self) -> str:
        """The model's name; if none is set, the API type."""
        return self.model or self.type

    @property
    def place(self) -> str:
        """The address of the provider as written to the log."""
        return self.base_url or self.type


class JobRules(Checked, frozen=True, kw_only=True):
    """When jobs run.

    timezone: the time zone of these times, and of contexts that do not name one, such as Europe/Helsinki;
        None for the system's.
    """

    daily: Annotated[
        str,
        Reads(partial(_check_job_time, has_day=False)),
        Help(
            "When the daily job runs, such as 03:00, in the zone of timezone; off: never automatically.",
            "time",
        ),
    ] = "03:00"
    weekly: Annotated[
        str,
        Reads(partial(_check_job_time, has_day=True)),
        Help("When the weekly job runs, such as monday 04:00; off: never automatically.", "time"),
    ] = "monday 04:00"
    timezone: Annotated[str | None, Reads(check_time_zone)] = None

    def schedules(self) -> dict[str, "Schedule | None"]:
        """Return the schedule of each job, keyed by job; None for a job that is off."""
        # Imported here: most programs run no jobs.
        from memlog.eventlog.schedules import load_zone, parse_schedule

        zone = load_zone(self.timezone)
        return {
            "daily": parse_schedule(self.daily, zone, has_day=False),
            "weekly": parse_schedule(self.weekly, zone, has_day=True),
        }


class ServerRules(Checked, frozen=True, kw_only=True):
    """How the user's server starts, stops and follows agents. Only the user's file may set this, not a
    store's."""

    auto: Annotated[bool, "Whether a command that a server could run starts a server if none is running."] = (
        False
    )
    idle_minutes: Annotated[
        float,
        Meta(ge=0.01, le=10_000),
        Help("How many idle minutes until a server that a command started exits.", "minutes"),
    ] = 15.0
    follow: Annotated[
        tuple[Channel, ...],
        Help(
            "The agents whose conversations a server imports while they are written: claude-code, codex,"
            " gemini-cli, opencode, pi.",
            "agents",
        ),
    ] = ()


SECTIONS: tuple[tuple[str, type[Checked]], ...] = (
    ("context", People),
    ("decay", DecayRules),
    ("search", SearchRules),
    ("retrieval", RetrievalSettings),
    ("memory", MemorySwitch),
    ("migrate", MigrationRules),
    ("embedding", EmbeddingSwitch),
    ("embedding", EmbeddingProvider),
    ("rerank", RerankSwitch),
    ("rerank", RerankProvider),
    ("extraction", ExtractionRules),
    ("language_model", LanguageModelProvider),
    ("jobs", JobRules),
    ("serve", ServerRules),
)
"""The sections of memlog.toml in order."""


def _check_url(name: str, url: str) -> None:
    # Imported here: most programs have no provider.
    from urllib.parse import urlsplit

    from memlog.eventlog.secrets.detection import mask_keys

    example = "https://api.example.com/v1" if name == "base_url" else "http://127.0.0.1:3128"
    try:
        parts = urlsplit(url)
        is_usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_usable = False
    if not is_usable or not url.isprintable() or " " in url:
        raise BadInput(
            f"{name} is {mask_keys(format_value_for_message(url))}", hint=f"use a URL such as {example}"
        )
    if parts.username or parts.password or parts.query or parts.fragment:
        hint = 'set api_key = "${NAME}" instead' if name == "base_url" else f"use a URL such as {example}"
        raise BadInput(f"{name} has a password, a query or a fragment", hint=hint)
