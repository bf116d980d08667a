"""The top-level settings, and the bounded types of all settings. See `memlog.eventlog.sections`.

A setting is a field with a description, from which its memlog.toml key, environment variable, command option,
validation, and row in docs/settings.md are derived. Requests use the same bounded types.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import Meta

from memlog.eventlog.fields import (
    Checked,
    Durability,
    Help,
    Reads,
    Unit,
    to_path,
)

if TYPE_CHECKING:
    pass

Mode = Literal["hybrid", "text", "vector"]
Fusion = Literal["rrf", "convex"]
Scope = Literal["auto", "store", "chat"]

MOST = 1_000_000
"""The upper bound on counts. A larger one is surely a typo, and SQLite's integers are limited anyway."""

Count = Annotated[int, Meta(ge=0, le=MOST)]
Hits = Annotated[int, Meta(ge=1, le=MOST)]

LockTimeout = Annotated[float, Meta(ge=0, le=3600)]
"""Seconds to wait for other writers and projectors."""

PASSAGE = 510
"""The most tokens in a passage; the model has 512 positions, two of them for start and end markers."""

ChunkTokens = Annotated[int, Meta(ge=64, le=PASSAGE)]
ChunkOverlap = Annotated[int, Meta(ge=0, le=PASSAGE - 1)]
"""The number of tokens at the end of a passage that the next passage repeats; less than `ChunkTokens`."""


def check_time_zone(name: str) -> str:
    """Check a time zone's name and return it. Raises BadInput if there is no such zone."""
    # Imported here: most programs use the zone of the system.
    from memlog.eventlog.schedules import load_zone

    load_zone(name)
    return name


MaybePath = Annotated[Path | None, Reads(to_path, form="path")]


class StoreSettings(Checked, frozen=True, kw_only=True):
    """The top-level settings, which belong to no section."""

    store: Annotated[
        MaybePath,
        Help("The store's folder.", "folder", "the project's folder below the platform's user data"),
    ] = None
    project: Annotated[str, Help("The project whose store to use if no store is named.", "name")] = "default"
    model: Annotated[
        MaybePath,
        Help(
            "The folder of the model that embeds texts: model.onnx and tokenizer.json.",
            "folder",
            "the model that memlog ships with",
        ),
    ] = None
    durability: Annotated[
        Durability, "What an acknowledged event survives: a power cut (fsync), or the process only (os)."
    ] = "fsync"
    redact: Annotated[
        bool, "Whether what looks like a key is masked before it is written: [REDACTED:kind]."
    ] = False
    lock_timeout: Annotated[
        LockTimeout, Help("How long to wait for other writers and projectors.", "seconds")
    ] = 10.0
    chunk_tokens: Annotated[
        ChunkTokens, Help("The size of a passage. Each size has its own read model.", "tokens")
    ] = 400
    chunk_overlap: Annotated[
        ChunkOverlap,
        Help(
            "How much a passage repeats of the previous passage; less than chunk_tokens."
            " Each value has its own read model.",
            "tokens",
        ),
    ] = 80
    document_seconds: Annotated[
        int,
        Meta(ge=1, le=3600),
        Help(
            "The most CPU time to read one HTML or PDF file. A file that takes longer is skipped.", "seconds"
        ),
    ] = 60
    timezone: Annotated[
        str | None,
        Reads(check_time_zone),
        Help(
            "The time zone of times in text output, and of days such as those of --since. JSON is in UTC.",
            "zone",
            "the system's, which TZ sets",
        ),
    ] = None
    archive_threshold: Annotated[
        Unit, Help("The relevance up to which memlog prune archives memories.", "relevance")
    ] = 0.001
    search_limit: Annotated[Hits, Help("The most hits of a query.", "hits")] = 10
    search_mode: Annotated[
        Mode, "Search by words (text), by meaning (vector), or by both, fused by rank (hybrid)."
    ] = "hybrid"
    context_scope: Annotated[
        Scope,
        "What a context has besides its window: entries of the whole store, or only of its chat; without a"
        " chat, only entries of no chat. auto: store while at most one person talks to the agent.",
    ] = "auto"
    context_health_tokens: Annotated[
        Count,
        Help(
            "The budget for allergies, illnesses and medicines in every context; 0: none are always given.",
            "tokens",
        ),
    ] = 150
    context_preference_tokens: Annotated[
        Count,
        Help(
            "The budget for preferences and prohibitions in every context; 0: none are always given.",
            "tokens",
        ),
    ] = 300
    search_depth: Annotated[
        Hits,
        Help("The number of candidates of each side of a query; at least as many as hits.", "candidates"),
    ] = 50
    search_fusion: Annotated[
        Fusion,
        "How the two sides of a query are joined: by rank (rrf), or by the sum of their scaled scores"
        " (convex).",
    ] = "rrf"


DEFAULTS = StoreSettings()
"""The default settings, which are also the defaults of operations' arguments."""
