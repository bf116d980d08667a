"""core_memory.json of klaw. Its conversations are read as they are: put them below `log/conversations`."""

from collections.abc import Iterator
from typing import Literal

from memlog.eventlog.events import CoreMemoryUpdated
from memlog.service.importers import ForeignData, Record, Unreadable, Used

_SECTIONS: dict[str, Literal["user", "agent"]] = {"user": "user", "agent": "agent"}


def read(source: ForeignData) -> Iterator[Record]:
    """The values of `core_memory.json`, by section and key."""
    for path in source.files("core_memory.json"):
        document = source.document(path)
        if isinstance(document, Unreadable):
            yield document
            continue
        sections = document if isinstance(document, dict) else {"": document}
        for section, values in sections.items():
            if section not in _SECTIONS or not isinstance(values, dict):
                yield Unreadable(f"{source.name(path)}: {section}", "no section of keys and values")
                continue
            for key, value in values.items():
                yield _value(source.name(path), _SECTIONS[section], key, value)


def _value(file: str, section: Literal["user", "agent"], key: str, value: object) -> Record:
    if not isinstance(value, str) or not key.strip():
        return Unreadable(f"{file}: {section}.{key}", "its value is no text")
    name = f"klaw/core/{section}/{key}"
    return Used([CoreMemoryUpdated(id=name, section=section, key=key, value=value, source="migration")])
