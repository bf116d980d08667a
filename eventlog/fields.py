"""The types of the fields of events, with their bounds."""

from typing import Annotated

import msgspec

Text = Annotated[str, msgspec.Meta(min_length=1)]
"""A string that names something and so may not be empty."""

Id = Annotated[str, msgspec.Meta(pattern=r"\A[^\x00-\x1f\x7f]+\Z", max_length=512)]
"""An event's id: no control characters."""

Channel = Annotated[str, msgspec.Meta(pattern=r"\A[^:]+\Z")]
"""A channel's name: no `:`, since a chat is named `<channel>:<chat_id>` and split at its first `:`."""

Topic = Annotated[str, msgspec.Meta(min_length=1, max_length=512)]
"""The key that facts of one subject share: `favorite_colors`."""

SourceId = Annotated[str, msgspec.Meta(pattern=r"\A[^/\x00-\x1f\x7f]+\Z", max_length=255)]
"""A source's name. No `/`, since a document is named `<source_id>/<file>`."""

Day = Annotated[str, msgspec.Meta(pattern=r"\A\d{4}-\d\d-\d\d\Z")]
"""A date: 2026-02-24."""

Ids = Annotated[list[Text], msgspec.Meta(min_length=1)]
"""What names one thing or several."""

Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
"""A number of things, as SQLite can keep it."""

Unit = Annotated[float, msgspec.Meta(ge=0, le=1)]
"""A number from 0 to 1."""
