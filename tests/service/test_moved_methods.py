"""The methods of a store that a group has now: for one release they also work by their old names."""

from collections.abc import Callable
from typing import Any

import pytest

import memlog
from memlog import Message
from memlog.service.moved_methods import MOVED
from tests.support.places import ROOT

CHANGELOG = " ".join((ROOT / "CHANGELOG.md").read_text().split())

CALLS: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {
    "window": (("cli:1",), {"last": 5}),
    "session_content": (("cli:1",), {}),
    "sessions": (("cli:1",), {"all": True}),
    "summaries": ((), {}),
    "forget": (("m1",), {"dry_run": True}),
    "scrub": ((), {"dry_run": True}),
    "prove": (("oolong",), {}),
    "secrets": ((), {}),
    "project": ((), {"embed": False}),
    "embed": ((), {"batch": 4}),
    "watch": ((), {"once": True}),
    "verify": ((), {}),
    "examine": ((), {}),
    "digest": ((), {"content": True}),
    "status": ((), {}),
    "stats": ((), {}),
    "quarantine": ((), {}),
}


@pytest.fixture
def said(store: memlog.Store) -> memlog.Store:
    """A store with two messages and a line that is quarantined."""
    store.append(
        [
            Message(channel="cli", chat_id="1", role="user", content="I like oolong", id="m1"),
            Message(channel="cli", chat_id="1", role="assistant", content="Noted", id="m2"),
        ]
    )
    (segment,) = (store.path / "log").rglob("*.jsonl")
    with segment.open("ab") as file:
        file.write(b"no JSON\n")
    store.maintenance.project()
    return store


def test_a_moved_method_works_by_its_old_name_and_names_the_new_one(said: memlog.Store) -> None:
    for name in MOVED:
        args, options = ((said.maintenance.quarantine()[0],), {}) if name == "explain" else CALLS[name]
        said_now = f"^Store.{name} is Store.{MOVED[name]}.{name} now"
        with pytest.warns(DeprecationWarning, match=said_now) as caught:
            answer = getattr(said, name)(*args, **options)
        assert caught[0].filename == __file__, name
        assert type(answer) is type(getattr(getattr(said, MOVED[name]), name)(*args, **options)), name
        assert f"`{name}`" in CHANGELOG[CHANGELOG.index("`store.conversations` has") :], name


def test_a_chat_may_still_be_two_texts(said: memlog.Store) -> None:
    for name in ("window", "session_content"):
        with pytest.deprecated_call():
            old: Callable[..., Any] = getattr(said, name)
        assert "Noted" in str(old("cli", "1", last=1)), name
        new = getattr(said.conversations, name)("cli:1")
        assert old("cli", "1") == old(channel="cli", chat_id="1") == new, name


def test_no_other_name_is_taken_for_a_method(said: memlog.Store) -> None:
    with pytest.raises(AttributeError, match="'Store' object has no attribute 'windw'"):
        _ = said.windw  # type: ignore[attr-defined]
