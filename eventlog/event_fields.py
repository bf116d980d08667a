"""The types of the members of events."""

from typing import Annotated, Literal

import msgspec

MAX_TARGETS = 1000
"""Targets of one redaction: its line stays below 1 MB."""

MAX_LEVELS = 100
"""Levels of a document's path: parsers and printers of a tree of them recurse."""

Text = Annotated[str, msgspec.Meta(min_length=1)]

Id = Annotated[str, msgspec.Meta(pattern=r"\A[^\x00-\x1f\x7f]+\Z", max_length=512)]
"""An event's id, without control characters."""

Channel = Annotated[str, msgspec.Meta(pattern=r"\A[^:]+\Z")]
"""A channel's name, without `:`: a chat's name is `<channel>:<chat_id>`."""

Topic = Annotated[str, msgspec.Meta(min_length=1, max_length=512)]
"""The shared key of facts about one subject: `favorite_colors`."""

SourceId = Annotated[str, msgspec.Meta(pattern=r"\A[^/\x00-\x1f\x7f]+\Z", max_length=255)]
"""A source's name, without `/`: a document's name is `<source_id>/<file>`."""

Day = Annotated[str, msgspec.Meta(pattern=r"\A\d{4}-\d\d-\d\d\Z")]
"""A date: 2026-02-24."""

Ids = Annotated[list[Text], msgspec.Meta(min_length=1)]

Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
"""A number of things that SQLite can store."""

MOST_TIMES = 1_000_000
"""The sum of those of all events is a number that SQLite can store."""

Times = Annotated[int, msgspec.Meta(ge=1, le=MOST_TIMES)]
"""How often something happened."""

Unit = Annotated[float, msgspec.Meta(ge=0, le=1)]
"""A number from 0 to 1."""

Role = Literal["user", "assistant", "system", "tool"]
MemoryKind = Literal["fact", "preference", "insight"]
FactKind = Literal["ranked", "single"]
SourceKind = Literal["memory", "docs"]
ModelTask = Literal["extract", "compress", "summarise", "merge", "profile"]
AccessKind = Literal["read", "save", "import"]
"""Why an access counts: a memory was given to an agent, saved again as it was, or used in another program."""
FailureKind = Literal["refused", "unusable", "failed", "late"]
