"""Bounds and defaults of values that callers choose in requests, constructors and settings."""

from typing import Generic, Literal, TypeVar

import msgspec

from memlog.eventlog.errors import BadInput, shown_value

N = TypeVar("N", int, float)

Durability = Literal["fsync", "os"]
"""What an acknowledged event survives: a power cut (`fsync`), or only the end of the process (`os`)."""

Mode = Literal["hybrid", "text", "vector"]
Fusion = Literal["rrf", "convex"]
Scope = Literal["auto", "store", "chat"]
Retrieval = Literal["classic", "enhanced"]
EmbeddingType = Literal["auto", "onnx", "ollama", "api", "none"]
RerankType = Literal["api", "tei"]
LanguageModelType = Literal["api", "anthropic"]
TokenParameter = Literal["max_tokens", "max_completion_tokens", "none"]
ResponseFormat = Literal["json_schema", "json_object", "none"]
SystemRole = Literal["system", "developer", "user"]
EncodingFormat = Literal["float", "none"]

MESSENGERS = ("telegram", "whatsapp", "slack", "discord", "signal", "matrix")
"""Channels over which anybody may write to an agent."""

OLLAMA_URL = "http://127.0.0.1:11434"
OLLAMA_MODEL = "all-minilm:l6-v2"


class Limit(msgspec.Struct, Generic[N], frozen=True):
    """The default and the bounds of a number."""

    default: N
    least: N
    most: N

    @property
    def meta(self) -> msgspec.Meta:
        """The bounds, for annotating a field."""
        return msgspec.Meta(ge=self.least, le=self.most)

    def allows(self, value: object) -> bool:
        """Whether `value` is a number within the bounds; it must be an integer if the default is one."""
        kinds = int if isinstance(self.default, int) else int | float
        is_number = isinstance(value, kinds) and not isinstance(value, bool)
        return is_number and self.least <= value <= self.most  # type: ignore[operator]

    def __str__(self) -> str:
        return f"from {self.least:,} to {self.most:,}"


MOST = 1_000_000
"""The upper bound on counts. A larger one is surely a typo, and SQLite's integers are limited, too."""

LOCK_TIMEOUT = Limit(10.0, 0, 3600)
"""Seconds to wait for other writers and projectors."""

DOCUMENT_SECONDS = Limit(60, 1, 3600)
"""Seconds of CPU time for reading one HTML or PDF file."""

CHUNK_TOKENS = Limit(400, 64, 510)
"""Tokens of a passage; the model has 512 positions, two of them for start and end markers."""

CHUNK_OVERLAP = Limit(80, 0, CHUNK_TOKENS.most - 1)
"""Tokens at the end of a passage that the next passage repeats."""

HITS = Limit(10, 1, MOST)
HEALTH_TOKENS = Limit(150, 0, MOST)
PREFERENCE_TOKENS = Limit(300, 0, MOST)
"""Tokens of the parts that every context has: lines on health, and preferences and prohibitions."""

DEPTH = Limit(50, 1, MOST)
"""Candidates from each side of a search, by text and by vector."""

ARCHIVE_THRESHOLD = Limit(0.001, 0, 1)
"""Memories whose relevance is at most this are pruned."""

PROVIDER_TIMEOUT = Limit(30.0, 0.1, 600)
"""Seconds that a query waits for a provider."""

EMBEDDING_BATCH = Limit(16, 1, 2048)
"""Texts in a request to a provider."""

EMBEDDING_DIMENSION = Limit(384, 1, 8192)
"""Dimension of a vector; the maximum is that of sqlite-vec."""

RERANKED = Limit(8, 1, 1000)
"""How many hits a provider reranks."""

LANGUAGE_MODEL_TIMEOUT = Limit(120.0, 0.1, 3600)
"""Seconds that an extraction waits for an answer."""

ANSWER_TOKENS = Limit(4000, 16, 1_000_000)
"""Tokens of a language model's answer."""

TEMPERATURE = Limit(0.0, 0, 2)
"""Temperature of a language model, if the request sends one."""

QUIET_MINUTES = Limit(10.0, 0, 100_000)
BUFFER_TOKENS = Limit(4000, 1, 1_000_000)
TOKENS_PER_DAY = Limit(200_000, 1, 10**12)
EXTRACTION_THRESHOLD = Limit(0.3, 0, 1)
MEMORIES_PER_SESSION = Limit(50, 1, 1000)
"""See `ExtractionRules`."""

DAILY = "03:00"
"""When the daily job runs."""

WEEKLY = "monday 04:00"
"""When the weekly job runs."""

# docs/memory/salience.md has this table and its reasons; a test compares them. Unknown categories in a log
# behave as `other`.


class Category(msgspec.Struct, frozen=True):
    """How the memories of one category fade.

    rate: the default factor by which a decay multiplies their salience, from 0 to 1.
    half_life: the number of days after which their freshness has halved.
    floor: the lowest freshness that age can cause, from 0 to 1.
    """

    rate: float
    half_life: int
    floor: float


OTHER = "other"
"""The default category."""

CATEGORIES = {
    "decisions": Category(rate=1.0, half_life=365, floor=0.5),
    "summaries": Category(rate=0.99, half_life=90, floor=0.1),
    "context": Category(rate=0.90, half_life=30, floor=0.05),
    "identity": Category(rate=1.0, half_life=1825, floor=0.8),
    "config": Category(rate=1.0, half_life=365, floor=0.4),
    "credential": Category(rate=1.0, half_life=180, floor=0.4),
    "solution": Category(rate=0.998, half_life=270, floor=0.2),
    "event": Category(rate=0.98, half_life=60, floor=0.05),
    "conversation": Category(rate=0.95, half_life=14, floor=0.01),
    "temp": Category(rate=0.80, half_life=1, floor=0.0),
    "debug": Category(rate=0.85, half_life=3, floor=0.0),
    OTHER: Category(rate=1.0, half_life=120, floor=0.1),
}
"""The known categories by name."""

PRIVATE_CATEGORIES = frozenset(["credential", "credentials"])
"""Categories whose memories are sent to no provider."""

_READ_AS = {"decision": "decisions"}


def resolve_alias(name: str) -> str:
    """Return the category for an alias, such as `decisions` for `decision`; return other names unchanged."""
    return _READ_AS.get(name, name)


def known_category_or_other(name: str) -> str:
    """Return the known category for a name or alias, or `other` if there is none."""
    known = resolve_alias(name)
    return known if known in CATEGORIES else OTHER


def known_category(name: str) -> str:
    """Return the known category for a name or alias. Raises BadInput if there is none."""
    known = resolve_alias(name) if isinstance(name, str) else ""
    if known not in CATEGORIES:
        raise BadInput(
            f"category is {shown_value(name)}, not one of {', '.join(CATEGORIES)}",
            hint=f"use {OTHER} if nothing else fits",
        )
    return known


def rates_by_category(rates: dict[str, float]) -> dict[str, float]:
    """Return `rates` with aliases replaced by their categories; a rate under the category's own name wins."""
    return {resolve_alias(name): rate for name, rate in rates.items()} | {
        name: rate for name, rate in rates.items() if resolve_alias(name) == name
    }


def rate_of(rates: dict[str, float], category: str) -> float:
    """Return a category's decay factor: its own rate, the rate of `other` if it is unknown, or else 1."""
    return rates.get(category, 1.0 if category in CATEGORIES else rates.get(OTHER, 1.0))
