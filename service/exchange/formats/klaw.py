"""klaw's core_memory.json. Its conversations need no import: put them below `log/conversations`."""

import json
from collections.abc import Iterator
from typing import Literal

from memlog.eventlog.events import CoreMemoryUpdated
from memlog.service.exchange.formats import ForeignData, Record, Unreadable, Used

_SECTIONS: dict[str, Literal["user", "agent"]] = {"user": "user", "agent": "agent"}


def read(source: ForeignData) -> Iterator[Record]:
    """Yield the values of `core_memory.json`, by section and key."""
    for path in source.find_files("core_memory.json"):
        document = source.read_json(path)
        if isinstance(document, Unreadable):
            yield document
            continue
        sections = document if isinstance(document, dict) else {"": document}
        for section, values in sections.items():
            if section not in _SECTIONS or not isinstance(values, dict):
                yield Unreadable(
                    f"{source.display_name(path)}: {section}", "neither user nor agent, with keys and values"
                )
                continue
            for key, value in values.items():
                updated = CoreMemoryUpdated(
                    id=f"klaw{source.suffix}/core/{_SECTIONS[section]}/{key}",
                    ts=source.modified_at(path),
                    section=_SECTIONS[section],
                    key=f"{key}{source.suffix}",
                    value=value if isinstance(value, str) else json.dumps(value, ensure_ascii=False),
                    source="migration",
                )
                yield Used([updated])
