"""The ten LoCoMo conversations: one store replays alike, and searches find what they must."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import memlog
from tests.eval.locomo import (
    MODES,
    VARIABLE,
    Conversation,
    by_mode,
    data_folder,
    rankings_of,
    read_conversations,
)

MESSAGES = 5882
FURTHER = 50


@pytest.fixture(scope="module")
def conversations() -> list[Conversation]:
    if VARIABLE not in os.environ:
        pytest.skip(f"{VARIABLE} does not name a folder with the LoCoMo conversations")
    return read_conversations(data_folder())


@pytest.fixture
def store(tmp_path: Path, conversations: list[Conversation]) -> Iterator[memlog.Store]:
    """All ten conversations in one store."""
    with memlog.open(tmp_path / "store") as store:
        store.append([event for conversation in conversations for event in conversation.events])
        yield store


def digest_of_sound(store: memlog.Store, messages: int) -> str:
    """The digest of a read model that has so many messages and is like a replay of its log."""
    report = store.maintenance.project(embed=False)
    assert (report.quarantined, report.duplicates, report.conflicts) == (0, 0, 0)
    assert store.maintenance.status().messages == messages
    found = store.maintenance.verify()
    assert found.problems == []
    assert found.ok
    assert found.digest == found.replayed
    return found.digest


@pytest.mark.eval
def test_the_read_model_is_like_a_replay_at_once_and_built_anew(store: memlog.Store) -> None:
    digest = digest_of_sound(store, MESSAGES)
    store.close()
    shutil.rmtree(store.path / "model")
    # Nothing was embedded, so there may be no cache.
    shutil.rmtree(store.path / "cache", ignore_errors=True)
    assert digest_of_sound(store, MESSAGES) == digest


@pytest.mark.eval
def test_the_read_model_is_like_a_replay_after_single_appends(
    store: memlog.Store, conversations: list[Conversation]
) -> None:
    store.maintenance.project(embed=False)
    for number in range(FURTHER):
        chat = conversations[number % len(conversations)].id
        word = f"marker{number:02}"
        (position,) = store.append(
            [memlog.Message(channel="locomo", chat_id=chat, role="user", content=f"one more: {word}")]
        )
        result = store.search(word, mode="text")
        assert result.synced
        # Behind it may stand what was said before it.
        assert result.hits[0].id == position.id
    digest_of_sound(store, MESSAGES + FURTHER)


@pytest.mark.eval
def test_searches_of_the_shortest_conversation_find_what_they_must(
    conversations: list[Conversation], tmp_path: Path
) -> None:
    """`make eval` measures all ten; a search that is broken is bad in one, too."""
    shortest = min(conversations, key=lambda conversation: len(conversation.messages))
    found = by_mode([shortest], [rankings_of(shortest, tmp_path)], "original")
    least = {"text": 0.80, "vector": 0.50, "rrf": 0.80, "convex": 0.80}
    assert {mode: found[mode].recall_10 >= least[mode] for mode in MODES} == dict.fromkeys(MODES, True)


@pytest.mark.eval
def test_counts_of_questions_and_judgments(conversations: list[Conversation]) -> None:
    original = [question for conversation in conversations for question in conversation.questions["original"]]
    assert sum(len(conversation.messages) for conversation in conversations) == MESSAGES
    assert len(original) == 1536
    assert sum(len(question.relevant) for question in original) == 2360
