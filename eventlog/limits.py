"""Bounds and defaults of what callers choose: requests, constructors and settings take theirs from here."""

from typing import Generic, Literal, TypeVar

import msgspec

N = TypeVar("N", int, float)

Durability = Literal["fsync", "os"]
"""What an acknowledged event survives: a power cut, or the process only."""

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
    """A number's default, and the least and the most that it may be."""

    default: N
    least: N
    most: N

    @property
    def meta(self) -> msgspec.Meta:
        """The bounds, for the annotation of a field."""
        return msgspec.Meta(ge=self.least, le=self.most)

    def allows(self, value: object) -> bool:
        """Whether a value is a number within the bounds, and a whole one where the default is."""
        kinds = int if isinstance(self.default, int) else int | float
        is_number = isinstance(value, kinds) and not isinstance(value, bool)
        return is_number and self.least <= value <= self.most  # type: ignore[operator]

    def __str__(self) -> str:
        return f"from {self.least:,} to {self.most:,}"


MOST = 1_000_000
"""Of things that are counted. More is a slip, and SQLite's numbers end, too."""

LOCK_TIMEOUT = Limit(10.0, 0, 3600)
"""Seconds to wait for other writers and projectors."""

DOCUMENT_SECONDS = Limit(60, 1, 3600)
"""Of the processor that reading one HTML or PDF file may take."""

CHUNK_TOKENS = Limit(400, 64, 510)
"""Of a passage; the model has 512 positions, two of them for the marks of beginning and end."""

CHUNK_OVERLAP = Limit(80, 0, CHUNK_TOKENS.most - 1)
"""Tokens that a passage repeats of the one before."""

HITS = Limit(10, 1, MOST)
HEALTH_TOKENS = Limit(150, 0, MOST)
PREFERENCE_TOKENS = Limit(300, 0, MOST)
"""Of what every context has: lines of health; preferences and prohibitions."""

DEPTH = Limit(50, 1, MOST)
"""Candidates of each side of a search."""

ARCHIVE_THRESHOLD = Limit(0.001, 0, 1)
"""The relevance up to which a memory is pruned."""

PROVIDER_TIMEOUT = Limit(30.0, 0.1, 600)
"""Seconds that a question waits for a provider."""

EMBEDDING_BATCH = Limit(16, 1, 2048)
"""Texts in a request to a provider."""

EMBEDDING_DIMENSION = Limit(384, 1, 8192)
"""Of a vector; sqlite-vec holds no longer ones."""

RERANKED = Limit(8, 1, 1000)
"""Hits that a provider ranks anew."""

LANGUAGE_MODEL_TIMEOUT = Limit(120.0, 0.1, 3600)
"""Seconds that an extraction waits for an answer."""

ANSWER_TOKENS = Limit(4000, 16, 1_000_000)
"""Of an answer of a language model."""

TEMPERATURE = Limit(0.0, 0, 2)
"""Of a language model, where it is sent."""

QUIET_MINUTES = Limit(10.0, 0, 100_000)
BUFFER_TOKENS = Limit(4000, 1, 1_000_000)
TOKENS_PER_DAY = Limit(200_000, 1, 10**12)
EXTRACTION_THRESHOLD = Limit(0.3, 0, 1)
MEMORIES_PER_SESSION = Limit(50, 1, 1000)
"""See `ExtractionRules`."""

DAILY = "03:00"
"""When the job of a day runs: the hours of the tiered engine, whose jobs these are."""

WEEKLY = "monday 04:00"
"""When the job of a week runs."""
