"""Every setting: its type, bounds, default, unit and meaning."""

from functools import partial
from typing import Annotated, Any, get_args

import click
import msgspec

import memlog
from memlog.cli.options.param_types import FOLDER, PROJECT, TEXT, ZONE, Number, TextType, WholeNumber
from memlog.cli.output.output import note
from memlog.eventlog import limits
from memlog.eventlog.errors import BadInput
from memlog.eventlog.limits import OLLAMA_MODEL, OLLAMA_URL, Limit

_DEFAULTS = {
    "store": "the project's folder below the platform's user data",
    "model": "the model that memlog ships with",
    "timezone": "the system's, which TZ sets",
    "context.people": "the names in messages determine whose a chat is",
    "embedding.base_url": f"{OLLAMA_URL} for ollama",
    "embedding.model": f"{OLLAMA_MODEL} for ollama, for onnx the model that memlog ships with",
    "embedding.dimension": "that of the first vector",
    **dict.fromkeys(
        ("embedding.query_prefix", "embedding.passage_prefix"), "what the model was trained with"
    ),
    "language_model.temperature": "0 for api, none for anthropic",
    **dict.fromkeys(("embedding.proxy", "rerank.proxy", "language_model.proxy"), "no proxy"),
    **dict.fromkeys(("embedding.api_key", "embedding.api_key_file"), "no key is sent"),
    "rerank.base_url": "reranking disabled",
    "language_model.base_url": "nothing is distilled",
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
"""For each type of default, the type of the setting in memlog.toml and the name of that type."""


def as_text(value: object) -> str:
    """Format a value as in an environment variable."""
    if isinstance(value, dict):
        return msgspec.json.encode(value).decode()
    if isinstance(value, list | tuple):
        return ", ".join(value)
    return str(value).lower() if isinstance(value, bool) else str(value)


class Setting(msgspec.Struct, frozen=True):
    """A setting, given as an option, an environment variable or in memlog.toml.

    default: None if there is no plain value; `default_words` then describes it.
    type: the click type of its option, with bounds and choices.
    """

    name: str
    default: Any
    type: Any
    unit: str
    meaning: str

    @property
    def default_words(self) -> str:
        """A description of the default if it is not a plain value; otherwise ""."""
        return _DEFAULTS.get(self.name, "")

    @property
    def default_text(self) -> str:
        """The default as shown in help."""
        return self.default_words or as_text(self.default).lower()

    @property
    def variable(self) -> str:
        """The name of its environment variable."""
        return f"MEMLOG_{self.name.upper().replace('.', '_')}"

    @property
    def is_secret(self) -> bool:
        """Whether its value is a key, which is never printed."""
        return self.name.endswith(".api_key")

    @property
    def in_file(self) -> bool:
        """Whether memlog.toml may set it. The two settings that determine where that file is cannot be."""
        return self.name not in ("store", "project")

    def read(self, given: object, where: str, *, is_text: bool) -> Any:  # noqa: ANN401 - of the setting's type
        """Check and convert a value from memlog.toml, or the text of a variable.

        Raises:
            BadInput: the value has the wrong type or is out of bounds; the message starts with `where`.
        """
        hint = f"{self.name}: {self.meaning}"
        try:
            if isinstance(self.type, WholeNumber | Number):
                bounds = msgspec.Meta(ge=self.type.min, le=self.type.max)
                kind: type = int if isinstance(self.type, WholeNumber) else float
                return msgspec.convert(given, Annotated[kind, bounds], strict=not is_text)
            value = given if is_text else msgspec.convert(given, self._form[0])
            return self.type.convert(value if isinstance(value, str | bool) else as_text(value), None, None)
        except msgspec.ValidationError as error:
            raise BadInput(f"{where}: {given!r} is not {self._describe_allowed()}", hint=hint) from error
        except click.BadParameter as error:
            raise BadInput(f"{where}: {error.message.rstrip('.')}", hint=hint) from error

    def _describe_allowed(self) -> str:
        if isinstance(self.type, WholeNumber | Number):
            return self.type.allowed
        if isinstance(self.type, click.Choice):
            return f"one of {', '.join(map(repr, self.type.choices))}"
        return self._form[1]

    @property
    def _form(self) -> tuple[Any, str]:
        if self.unit == "number, none":
            return float | str, "a number, or none in quotes"
        return _FORMS.get(type(self.default), (str, f"a {self.unit} in quotes"))


def _range_members(name: str, limit: limits.Limit[Any], *, has_default: bool = True) -> tuple[str, Any, Any]:
    kind = WholeNumber if isinstance(limit.default, int) else Number
    return name, limit.default if has_default else None, kind(limit.least, limit.most)


def _parse_mode(text: str) -> str:
    if text in get_args(limits.Retrieval):
        return text
    note(f"retrieval.mode: there is no mode {text!r}; using classic, which asks no provider")
    return "classic"


def _check_job_time(text: str, *, has_day: bool) -> str:
    # Imported here: most commands set no time.
    from memlog.service.engine.settings import parse_schedule

    parse_schedule(text, has_day=has_day)
    return text


def _parse_channels(text: str) -> tuple[str, ...]:
    names = tuple(each.strip() for each in text.split(",")) if text else ()
    return memlog.People(messengers=names).messengers


def _parse_people(text: str) -> dict[str, list[str]]:
    try:
        return memlog.People(chats=msgspec.json.decode(text, type=dict[str, list[str]])).chats
    except msgspec.DecodeError as error:
        raise ValueError(f"not a JSON object of chats by person: {text!r}") from error


def _provider_settings(section: str, request: str, timeout: Limit[float]) -> tuple[Setting, ...]:
    return (
        Setting(
            f"{section}.base_url", None, TEXT, "URL", f"Where {request}; with the version: https://…/v1."
        ),
        Setting(f"{section}.model", None, TEXT, "name", "The name of the model at the provider."),
        Setting(
            *_range_members(f"{section}.timeout", timeout),
            "seconds",
            "How long to wait for an answer of the provider.",
        ),
        Setting(
            f"{section}.api_key",
            None,
            TEXT,
            "${NAME}",
            "The key; memlog.toml may only name the variable that holds it, as ${NAME}.",
        ),
        Setting(f"{section}.api_key_file", None, FOLDER, "file", "A file with the key in its first line."),
        Setting(
            f"{section}.proxy",
            None,
            TEXT,
            "URL",
            "The proxy used to reach the provider: http://127.0.0.1:3128.",
        ),
    )


def _choice_setting(name: str, choices: object, default: str, meaning: str) -> Setting:
    return Setting(name, default, click.Choice(get_args(choices)), ", ".join(get_args(choices)), meaning)


def _parse_temperature(text: str) -> float | str:
    if text == "none":
        return text
    if not limits.TEMPERATURE.allows(number := float(text)):
        raise ValueError(f"{text} is neither a number {limits.TEMPERATURE} nor none")
    return number


SETTINGS = (
    Setting("store", None, FOLDER, "folder", "The store's folder."),
    Setting("project", "default", PROJECT, "name", "The project whose store to use if no store is named."),
    Setting(
        "model",
        None,
        FOLDER,
        "folder",
        "The folder of the model that embeds texts: model.onnx and tokenizer.json.",
    ),
    _choice_setting(
        "durability",
        limits.Durability,
        "fsync",
        "What an acknowledged event survives: a power cut (fsync), or the process only (os).",
    ),
    Setting(
        "redact",
        False,
        click.BOOL,
        "true, false",
        "Whether what looks like a key is masked before it is written: [REDACTED:kind].",
    ),
    Setting(
        *_range_members("lock_timeout", limits.LOCK_TIMEOUT),
        "seconds",
        "How long to wait for other writers and projectors.",
    ),
    Setting(
        *_range_members("chunk_tokens", limits.CHUNK_TOKENS),
        "tokens",
        "The size of a passage. Each size has its own read model.",
    ),
    Setting(
        *_range_members("chunk_overlap", limits.CHUNK_OVERLAP),
        "tokens",
        "How much a passage repeats of the previous passage; less than chunk_tokens."
        " Each value has its own read model.",
    ),
    Setting(
        *_range_members("document_seconds", limits.DOCUMENT_SECONDS),
        "seconds",
        "The most CPU time to read one HTML or PDF file. A file that takes longer is skipped.",
    ),
    Setting(
        "timezone",
        None,
        ZONE,
        "zone",
        "The time zone of times in text output, and of days such as those of --since. JSON is in UTC.",
    ),
    Setting(
        *_range_members("archive_threshold", limits.ARCHIVE_THRESHOLD),
        "relevance",
        "The relevance up to which memlog prune archives memories.",
    ),
    Setting(*_range_members("search_limit", limits.HITS), "hits", "The most hits of a query."),
    _choice_setting(
        "search_mode",
        limits.Mode,
        "hybrid",
        "Search by words (text), by meaning (vector), or by both, fused by rank (hybrid).",
    ),
    _choice_setting(
        "context_scope",
        limits.Scope,
        "auto",
        "What a context has besides its window: entries of the whole store, or only of its chat; without a"
        " chat, only entries of no chat. auto: store while at most one person talks to the agent.",
    ),
    Setting(
        *_range_members("context_health_tokens", limits.HEALTH_TOKENS),
        "tokens",
        "The budget for allergies, illnesses and medicines in every context; 0: none are always given.",
    ),
    Setting(
        *_range_members("context_preference_tokens", limits.PREFERENCE_TOKENS),
        "tokens",
        "The budget for preferences and prohibitions in every context; 0: none are always given.",
    ),
    Setting(
        *_range_members("search_depth", limits.DEPTH),
        "candidates",
        "The number of candidates of each side of a query; at least as many as hits.",
    ),
    _choice_setting(
        "search_fusion",
        limits.Fusion,
        "rrf",
        "How the two sides of a query are joined: by rank (rrf), or by the sum of their scaled scores"
        " (convex).",
    ),
    Setting(
        "context.messengers",
        limits.MESSENGERS,
        TextType("channels", _parse_channels),
        "channels",
        "Channels over which anybody may write: a chat whose messages have no names belongs to a separate"
        " person.",
    ),
    Setting(
        "context.people",
        {},
        TextType("people", _parse_people),
        "chats by person",
        "The chats of each person, which share a scope and belong to no other person, such as"
        ' anna = ["telegram:1", "signal:2"]; in a variable {"anna": ["telegram:1", "signal:2"]}.',
    ),
    Setting(
        "retrieval.mode",
        "enhanced",
        TextType("mode", _parse_mode),
        ", ".join(get_args(limits.Retrieval)),
        "Whether searches use the providers that are configured below (enhanced), or none (classic).",
    ),
    Setting(
        "memory.enabled", True, click.BOOL, "true, false", "Whether contexts and searches return anything."
    ),
    Setting("embedding.enabled", True, click.BOOL, "true, false", "Whether texts are embedded."),
    _choice_setting(
        "embedding.type",
        limits.EmbeddingType,
        "onnx",
        "What embeds texts: a model on this machine (onnx), Ollama, an OpenAI-compatible API (api), nothing"
        " (none); auto: onnx, else Ollama if it answers, else nothing.",
    ),
    *_provider_settings("embedding", "texts are sent to be embedded", limits.PROVIDER_TIMEOUT),
    Setting(
        *_range_members("embedding.dimension", limits.EMBEDDING_DIMENSION, has_default=False),
        "numbers",
        "The dimension of the model's vectors.",
    ),
    Setting(
        *_range_members("embedding.batch", limits.EMBEDDING_BATCH), "texts", "The most texts in a request."
    ),
    Setting("embedding.query_prefix", None, TEXT, "text", "The text to put before a question."),
    Setting("embedding.passage_prefix", None, TEXT, "text", "The text to put before a passage."),
    _choice_setting(
        "embedding.encoding_format",
        limits.EncodingFormat,
        "float",
        "The encoding of vectors to request from an API; none: do not request one.",
    ),
    Setting("rerank.enabled", True, click.BOOL, "true, false", "Whether hits are reranked."),
    _choice_setting(
        "rerank.type",
        limits.RerankType,
        "api",
        "The API that reranks hits: /v1/rerank of Cohere, Jina, vLLM and llama.cpp (api), or /rerank of"
        " text-embeddings-inference (tei).",
    ),
    *_provider_settings("rerank", "questions and hits are sent to be ranked", limits.PROVIDER_TIMEOUT),
    Setting(*_range_members("rerank.top_n", limits.RERANKED), "hits", "How many of the best hits to rerank."),
    Setting("extraction.enabled", True, click.BOOL, "true, false", "Whether conversations are distilled."),
    Setting(
        *_range_members("extraction.quiet_minutes", limits.QUIET_MINUTES),
        "minutes",
        "How long a chat must be quiet before a watch distils it.",
    ),
    Setting(
        *_range_members("extraction.tokens", limits.BUFFER_TOKENS),
        "tokens",
        "The size of undistilled messages at which a watch distils a chat immediately; also that"
        " of a request.",
    ),
    Setting(
        *_range_members("extraction.threshold", limits.EXTRACTION_THRESHOLD),
        "importance",
        "The least importance of memories to keep.",
    ),
    Setting(
        *_range_members("extraction.max_per_session", limits.MEMORIES_PER_SESSION),
        "memories",
        "The most memories to distil from a session.",
    ),
    Setting(
        "extraction.channels",
        (),
        TextType("channels", _parse_channels),
        "channels",
        "Channels or formats whose imports may also be sent to a language model on another machine.",
    ),
    Setting(
        *_range_members("extraction.max_tokens_per_day", limits.TOKENS_PER_DAY),
        "tokens",
        "The most tokens of requests and answers of the language model per day in UTC; the rest waits.",
    ),
    Setting(
        "extraction.prompts_dir",
        None,
        click.STRING,
        "folder",
        "A folder of prompts: a file such as merge-2.md there replaces the prompt of that name.",
    ),
    _choice_setting(
        "language_model.type",
        limits.LanguageModelType,
        "api",
        "The API that distils: OpenAI's /v1/chat/completions with a JSON schema (api), or Anthropic's"
        " /v1/messages.",
    ),
    *_provider_settings(
        "language_model", "conversations are sent to be distilled", limits.LANGUAGE_MODEL_TIMEOUT
    ),
    Setting(
        *_range_members("language_model.max_tokens", limits.ANSWER_TOKENS),
        "tokens",
        "The most tokens of an answer.",
    ),
    _choice_setting(
        "language_model.max_tokens_parameter",
        limits.TokenParameter,
        "max_tokens",
        "The API's parameter for max_tokens, to try first; none: send no such parameter.",
    ),
    Setting(
        "language_model.temperature",
        None,
        TextType("temperature", _parse_temperature),
        "number, none",
        "The temperature, from 0 to 2; none: do not send it.",
    ),
    _choice_setting(
        "language_model.response_format",
        limits.ResponseFormat,
        "json_schema",
        "How to request JSON, to try first: by a schema (json_schema), as any JSON (json_object), or only in"
        " the prompt (none).",
    ),
    _choice_setting(
        "language_model.system_role",
        limits.SystemRole,
        "system",
        "The role of the prompt, to try first; user: the prompt is put before the messages.",
    ),
    Setting(
        "jobs.daily",
        limits.DAILY,
        TextType("time", partial(_check_job_time, has_day=False)),
        "time",
        "When the daily job runs, such as 03:00, in the zone of timezone; off: never automatically.",
    ),
    Setting(
        "jobs.weekly",
        limits.WEEKLY,
        TextType("time", partial(_check_job_time, has_day=True)),
        "time",
        "When the weekly job runs, such as monday 04:00; off: never automatically.",
    ),
)

BY_NAME = {setting.name: setting for setting in SETTINGS}


def nearest_setting(name: str, likeness: float = 0.0) -> str | None:
    """Return the setting with the most similar name; None if none reaches `likeness` (0 to 1)."""
    from difflib import get_close_matches

    return next(iter(get_close_matches(name, BY_NAME, 1, likeness)), None)
