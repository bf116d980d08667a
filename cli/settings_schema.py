"""Every setting: its type, bounds, default, unit and meaning."""

from functools import partial
from typing import Annotated, Any, get_args

import click
import msgspec

from memlog.cli.output import note
from memlog.cli.param_types import FOLDER, PROJECT, TEXT, ZONE, Number, TextType
from memlog.eventlog import limits
from memlog.eventlog.errors import BadInput
from memlog.eventlog.limits import OLLAMA_MODEL, OLLAMA_URL, Limit

_DEFAULTS = {
    "store": "the project's folder below the platform's user data",
    "model": "the model that memlog ships with",
    "timezone": "the system's, which TZ sets",
    "embedding.base_url": f"{OLLAMA_URL} of ollama",
    "embedding.model": f"{OLLAMA_MODEL} of ollama, the model that memlog ships with of onnx",
    "embedding.dimension": "what the first vector has",
    **dict.fromkeys(("embedding.api_key", "embedding.api_key_file"), "no key is sent"),
    "rerank.base_url": "nobody ranks anew",
    "language_model.base_url": "nobody distils",
    "language_model.model": "no model is named",
    **dict.fromkeys(("language_model.api_key", "language_model.api_key_file"), "no key is sent"),
    "rerank.model": "no model is named",
    **dict.fromkeys(("rerank.api_key", "rerank.api_key_file"), "no key is sent"),
}


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
        """A default that is no plain value, in words."""
        return _DEFAULTS.get(self.name, "")

    @property
    def default_text(self) -> str:
        """Its default, for people."""
        return self.default_words or str(self.default).lower()

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
            kind = bool if isinstance(self.default, bool) else str
            value = given if is_text else msgspec.convert(given, kind)
            return self.type.convert(value, None, None)
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
        return "true or false" if isinstance(self.default, bool) else f"a {self.unit} in quotes"


def _number(name: str, limit: limits.Limit[Any], *, has_default: bool = True) -> tuple[str, Any, Any]:
    """The name, default and type of a setting that is a number."""
    kind = click.IntRange if isinstance(limit.default, int) else Number
    return name, limit.default if has_default else None, kind(limit.least, limit.most)


def _mode(text: str) -> str:
    if text in get_args(limits.Retrieval):
        return text
    note(f"retrieval.mode: there is no mode {text!r}; classic is used, which asks no provider")
    return "classic"


def _time_of_job(text: str, *, has_day: bool) -> str:
    # Imported here: most commands set no time.
    from memlog.service.jobs.schedule import schedule_of

    schedule_of(text, has_day=has_day)
    return text


def _of_provider(section: str, asked: str, timeout: Limit[float]) -> tuple[Setting, ...]:
    """The settings that providers have in common."""
    return (
        Setting(f"{section}.base_url", None, TEXT, "URL", f"Where {asked}; with the version: https://…/v1."),
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
    )


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
        "Candidates that each side of a query gives, and never fewer than the hits asked for.",
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
    Setting("rerank.enabled", True, click.BOOL, "true, false", "Whether hits are ranked anew."),
    Setting(
        "rerank.type",
        "api",
        click.Choice(get_args(limits.RerankType)),
        ", ".join(get_args(limits.RerankType)),
        "Who ranks hits anew: /v1/rerank as Cohere, Jina, vLLM and llama.cpp have it (api), or /rerank of"
        " text-embeddings-inference (tei).",
    ),
    *_of_provider("rerank", "questions and hits are sent to be ranked", limits.PROVIDER_TIMEOUT),
    Setting(*_number("rerank.top_n", limits.RERANKED), "hits", "The best hits, which are ranked anew."),
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
        "Memories that are distilled of a session on a day at most.",
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
    """The setting whose name is most like `name`; None where none is as like as `likeness`, from 0 to 1."""
    from difflib import get_close_matches

    return next(iter(get_close_matches(name, BY_NAME, 1, likeness)), None)
