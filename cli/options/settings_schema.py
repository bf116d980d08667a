"""Every setting: its type, bounds, default, unit and meaning."""

from functools import partial
from typing import Annotated, Any, get_args

import click
import msgspec

import memlog
from memlog.cli.options.param_types import FOLDER, PROJECT, TEXT, ZONE, Number, TextType
from memlog.cli.output.output import note
from memlog.eventlog import limits
from memlog.eventlog.errors import BadInput
from memlog.eventlog.limits import OLLAMA_MODEL, OLLAMA_URL, Limit

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
    "rerank.base_url": "reranking disabled",
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


def _number(name: str, limit: limits.Limit[Any], *, has_default: bool = True) -> tuple[str, Any, Any]:
    kind = click.IntRange if isinstance(limit.default, int) else Number
    return name, limit.default if has_default else None, kind(limit.least, limit.most)


def _mode(text: str) -> str:
    if text in get_args(limits.Retrieval):
        return text
    note(f"retrieval.mode: there is no mode {text!r}; classic is used, which asks no provider")
    return "classic"


def _time_of_job(text: str, *, has_day: bool) -> str:
    # Imported here: most commands set no time.
    from memlog.service.engine.settings import schedule_of

    schedule_of(text, has_day=has_day)
    return text


def _channels(text: str) -> tuple[str, ...]:
    names = tuple(each.strip() for each in text.split(",")) if text else ()
    return memlog.People(messengers=names).messengers


def _people(text: str) -> dict[str, list[str]]:
    try:
        return memlog.People(chats=msgspec.json.decode(text, type=dict[str, list[str]])).chats
    except msgspec.DecodeError as error:
        raise ValueError(f"not a JSON object of chats by person: {text!r}") from error


def _of_provider(section: str, request: str, timeout: Limit[float]) -> tuple[Setting, ...]:
    return (
        Setting(
            f"{section}.base_url", None, TEXT, "URL", f"Where {request}; with the version: https://…/v1."
        ),
        Setting(f"{section}.model", None, TEXT, "name", "The name of the model at the provider."),
        Setting(
            *_number(f"{section}.timeout", timeout),
            "seconds",
            "How long an answer of the provider may take.",
        ),
        Setting(
            f"{section}.api_key",
            None,
            TEXT,
            "${NAME}",
            "The key; in memlog.toml only the variable that has it, in that form.",
        ),
        Setting(
            f"{section}.api_key_file", None, FOLDER, "file", "A file that has the key in its first line."
        ),
        Setting(
            f"{section}.proxy",
            None,
            TEXT,
            "URL",
            "The proxy used to reach the provider: http://127.0.0.1:3128.",
        ),
    )


def _choice(name: str, choices: object, default: str, meaning: str) -> Setting:
    return Setting(name, default, click.Choice(get_args(choices)), ", ".join(get_args(choices)), meaning)


def _temperature(text: str) -> float | str:
    if text == "none":
        return text
    if not limits.TEMPERATURE.allows(number := float(text)):
        raise ValueError(f"not a number {limits.TEMPERATURE}, nor none: {text}")
    return number


SETTINGS = (
    Setting("store", None, FOLDER, "folder", "The store's folder."),
    Setting("project", "default", PROJECT, "name", "The project whose store is used where none is named."),
    Setting("model", None, FOLDER, "folder", "A folder with model.onnx and tokenizer.json."),
    Setting(
        "durability",
        "fsync",
        click.Choice(get_args(limits.Durability)),
        "fsync, os",
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
        *_number("lock_timeout", limits.LOCK_TIMEOUT),
        "seconds",
        "How long to wait for other writers and projectors.",
    ),
    Setting(
        *_number("chunk_tokens", limits.CHUNK_TOKENS),
        "tokens",
        "The size of a passage. Another one makes another read model.",
    ),
    Setting(
        *_number("chunk_overlap", limits.CHUNK_OVERLAP),
        "tokens",
        "What a passage repeats of the one before, less than chunk_tokens."
        " Another one makes another read model.",
    ),
    Setting(
        *_number("document_seconds", limits.DOCUMENT_SECONDS),
        "seconds",
        "Processor time that reading one HTML or PDF file may take. A longer one is skipped.",
    ),
    Setting(
        "timezone",
        None,
        ZONE,
        "zone",
        "The time zone of times in text output, and of days such as those of --since. JSON is in UTC.",
    ),
    Setting(
        *_number("archive_threshold", limits.ARCHIVE_THRESHOLD),
        "relevance",
        "What memlog prune archives: memories whose relevance is at most this.",
    ),
    Setting(*_number("search_limit", limits.HITS), "hits", "Hits of a query at most."),
    Setting(
        "search_mode",
        "hybrid",
        click.Choice(get_args(limits.Mode)),
        "hybrid, text, vector",
        "What a query searches by: words (text), meaning (vector), or both fused by rank (hybrid).",
    ),
    Setting(
        "context_scope",
        "auto",
        click.Choice(get_args(limits.Scope)),
        "auto, store, chat",
        "What a context gives beside its window: of the whole store, or of its chat alone; without a chat,"
        " of no chat. auto: store while at most one person talks to the agent.",
    ),
    Setting(
        *_number("context_health_tokens", limits.HEALTH_TOKENS),
        "tokens",
        "Of allergies, illnesses and medicines that every context has; 0: none by right of it.",
    ),
    Setting(
        *_number("context_preference_tokens", limits.PREFERENCE_TOKENS),
        "tokens",
        "Of preferences and prohibitions that every context has; 0: none.",
    ),
    Setting(
        *_number("search_depth", limits.DEPTH),
        "candidates",
        "Candidates that each side of a query gives, and never fewer than the hits requested.",
    ),
    Setting(
        "search_fusion",
        "rrf",
        click.Choice(get_args(limits.Fusion)),
        "rrf, convex",
        "How the two sides of a query are joined: by rank (rrf), or by the sum of their scaled scores"
        " (convex).",
    ),
    Setting(
        "context.messengers",
        limits.MESSENGERS,
        TextType("channels", _channels),
        "channels",
        "Channels over which anybody may write: a chat there in which nobody has given a name is somebody's"
        " own.",
    ),
    Setting(
        "context.people",
        {},
        TextType("people", _people),
        "chats by person",
        "The chats of each person, which share a scope and are nobody else's, such as"
        ' anna = ["telegram:1", "signal:2"]; in a variable {"anna": ["telegram:1", "signal:2"]}.',
    ),
    Setting(
        "retrieval.mode",
        "enhanced",
        TextType("mode", _mode),
        ", ".join(get_args(limits.Retrieval)),
        "Whether searches ask the providers that are configured below (enhanced), or none (classic).",
    ),
    Setting(
        "memory.enabled", True, click.BOOL, "true, false", "Whether contexts and searches give anything."
    ),
    Setting("embedding.enabled", True, click.BOOL, "true, false", "Whether texts are embedded."),
    Setting(
        "embedding.type",
        "onnx",
        click.Choice(get_args(limits.EmbeddingType)),
        ", ".join(get_args(limits.EmbeddingType)),
        "Who embeds texts: a model on this machine (onnx), Ollama, an OpenAI-compatible API (api), nobody"
        " (none); auto: onnx, else Ollama where it answers, else nobody.",
    ),
    *_of_provider("embedding", "texts are sent to be embedded", limits.PROVIDER_TIMEOUT),
    Setting(
        *_number("embedding.dimension", limits.EMBEDDING_DIMENSION, has_default=False),
        "numbers",
        "Of a vector of the model.",
    ),
    Setting(*_number("embedding.batch", limits.EMBEDDING_BATCH), "texts", "Texts in a request."),
    Setting("embedding.query_prefix", None, TEXT, "text", "What is put before a question."),
    Setting("embedding.passage_prefix", None, TEXT, "text", "What is put before a passage."),
    _choice(
        "embedding.encoding_format",
        limits.EncodingFormat,
        "float",
        "The encoding of vectors to request from an API; none: requests name none.",
    ),
    Setting("rerank.enabled", True, click.BOOL, "true, false", "Whether hits are reranked."),
    Setting(
        "rerank.type",
        "api",
        click.Choice(get_args(limits.RerankType)),
        ", ".join(get_args(limits.RerankType)),
        "The API that reranks hits: /v1/rerank as Cohere, Jina, vLLM and llama.cpp have it (api), or /rerank"
        " of text-embeddings-inference (tei).",
    ),
    *_of_provider("rerank", "questions and hits are sent to be ranked", limits.PROVIDER_TIMEOUT),
    Setting(*_number("rerank.top_n", limits.RERANKED), "hits", "The best hits, which are reranked."),
    Setting("extraction.enabled", True, click.BOOL, "true, false", "Whether conversations are distilled."),
    Setting(
        *_number("extraction.quiet_minutes", limits.QUIET_MINUTES),
        "minutes",
        "Without a message in a chat, after which a watch distils it.",
    ),
    Setting(
        *_number("extraction.tokens", limits.BUFFER_TOKENS),
        "tokens",
        "Of undistilled messages, from which on a watch distils a chat at once; also of one request.",
    ),
    Setting(
        *_number("extraction.threshold", limits.EXTRACTION_THRESHOLD),
        "importance",
        "The least importance of a memory that is kept.",
    ),
    Setting(
        *_number("extraction.max_per_session", limits.MEMORIES_PER_SESSION),
        "memories",
        "Memories that are distilled of a session at most.",
    ),
    Setting(
        "extraction.channels",
        (),
        TextType("channels", _channels),
        "channels",
        "Channels or formats whose imports a language model of another machine is sent, too.",
    ),
    Setting(
        *_number("extraction.max_tokens_per_day", limits.TOKENS_PER_DAY),
        "tokens",
        "Of questions to the language model and its answers on a day in UTC at most; what is left waits.",
    ),
    Setting(
        "language_model.type",
        "api",
        click.Choice(get_args(limits.LanguageModelType)),
        ", ".join(get_args(limits.LanguageModelType)),
        "Who distils: OpenAI's /v1/chat/completions with a JSON schema (api), or Anthropic's /v1/messages.",
    ),
    *_of_provider("language_model", "conversations are sent to be distilled", limits.LANGUAGE_MODEL_TIMEOUT),
    Setting(*_number("language_model.max_tokens", limits.ANSWER_TOKENS), "tokens", "Of an answer at most."),
    _choice(
        "language_model.max_tokens_parameter",
        limits.TokenParameter,
        "max_tokens",
        "The parameter of an API that says so at first; none: nothing says so.",
    ),
    Setting(
        "language_model.temperature",
        None,
        TextType("temperature", _temperature),
        "number, none",
        "From 0 to 2; none: it is not sent.",
    ),
    _choice(
        "language_model.response_format",
        limits.ResponseFormat,
        "json_schema",
        "What holds the answer to JSON at first: a schema (json_schema), that it is JSON (json_object), or"
        " the prompt alone (none).",
    ),
    _choice(
        "language_model.system_role",
        limits.SystemRole,
        "system",
        "Who gives the prompt to an API at first; user: it stands before the messages.",
    ),
    Setting(
        "jobs.daily",
        limits.DAILY,
        TextType("time", partial(_time_of_job, has_day=False)),
        "time",
        "When the job of a day runs, such as 03:00, in the zone of timezone; off: never by itself.",
    ),
    Setting(
        "jobs.weekly",
        limits.WEEKLY,
        TextType("time", partial(_time_of_job, has_day=True)),
        "time",
        "When the job of a week runs, such as monday 04:00; off: never by itself.",
    ),
)

BY_NAME = {setting.name: setting for setting in SETTINGS}


def nearest(name: str, likeness: float = 0.0) -> str | None:
    """Return the setting with the name closest to `name`; None if none is as close as `likeness` (0 to 1)."""
    from difflib import get_close_matches

    return next(iter(get_close_matches(name, BY_NAME, 1, likeness)), None)
