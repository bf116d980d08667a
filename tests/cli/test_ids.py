"""The ids that `show` and `query --exclude` take: of events, memories, documents, summaries."""

import json
from collections.abc import Callable
from typing import Any

import pytest

Run = Callable[..., Any]

EVENTS = [
    {"type": "message", "id": "m1", "channel": "x", "chat_id": "1", "role": "user"},
    {"type": "summary_written", "id": "s1", "channel": "x", "chat_id": "1"},
    {"type": "memory_saved", "id": "y1", "memory_id": "likes"},
    {"type": "source_registered", "id": "r1", "source_id": "wiki"},
    {"type": "source_registered", "id": "r2", "source_id": "notes", "kind": "memory"},
    {"type": "document_indexed", "id": "d1", "source_id": "wiki", "file": "drinks/tea.md"},
    {"type": "document_indexed", "id": "d2", "source_id": "notes", "file": "MEMORY.md"},
]
SEARCHED = {
    "m1": "m1",
    "s1": "s1",
    "y1": "likes",
    "d1": "wiki/drinks/tea.md",
    "d2": "notes/MEMORY.md",
}
"""What a hit is called, by the event whose content it is."""


@pytest.fixture(autouse=True)
def _store(memlog: Run) -> None:
    lines = (json.dumps(event | {"content": f"green tea {event['id']}"}) for event in EVENTS)
    assert memlog("append", input="\n".join(lines).encode() + b"\n").code == 0


def found(memlog: Run, *args: str) -> set[str]:
    """The events behind the hits of a query."""
    hits = memlog("query", "tea", "--mode", "text", "-k", "20", "--json", *args).json["hits"]
    return {hit["event_id"] for hit in hits}


def test_show_takes_the_id_of_an_event_and_the_name_of_a_hit(memlog: Run) -> None:
    for event_id, called in SEARCHED.items():
        for name in (event_id, called):
            shown = memlog("show", name, "--json").json
            assert shown["id"] == event_id, name
            assert json.loads(shown["raw"])["content"] == f"green tea {event_id}", name


def test_exclude_takes_the_id_of_an_event_and_the_name_of_a_hit(memlog: Run) -> None:
    assert found(memlog) == set(SEARCHED)
    for event_id, called in SEARCHED.items():
        for name in (event_id, called):
            assert found(memlog, "--exclude", name) == set(SEARCHED) - {event_id}, name


def test_exclude_leaves_out_all_that_have_an_id(memlog: Run) -> None:
    memlog("append", "message", "--chat", "x:2", "--role", "user", "--content", "tea", "--id", "y1")
    assert found(memlog, "--exclude", "y1") == set(SEARCHED) - {"y1"}
