"""The ten LoCoMo conversations: one store replays alike, and searches find what they must."""

import math
import os
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

import memlog
from tests.eval.locomo import (
    MODES,
    VARIABLE,
    Asked,
    Conversation,
    Figures,
    Question,
    Ranking,
    Sample,
    Turn,
    averaged,
    by_mode,
    data_folder,
    events_of,
    figures_of,
    ndcg,
    questions_of,
    rankings_of,
    read_conversations,
    recall,
    reciprocal_rank,
    session_time,
    turn_ids,
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


def test_recall() -> None:
    assert recall(["a", "x", "b", "c"], {"a", "b", "c", "d"}, 3) == 0.5
    assert recall(["a", "x", "b", "c"], {"a", "b", "c", "d"}, 10) == 0.75
    assert recall([], {"a"}, 5) == 0.0


def test_reciprocal_rank() -> None:
    assert reciprocal_rank(["x", "y", "a", "b"], {"a", "b"}, 10) == pytest.approx(1 / 3)
    assert reciprocal_rank(["a"], {"a"}, 10) == 1.0
    assert reciprocal_rank(["x", "a"], {"a"}, 1) == 0.0
    assert reciprocal_rank([], {"a"}, 10) == 0.0


def test_ndcg() -> None:
    assert ndcg(["a", "b", "x"], {"a", "b"}, 10) == 1.0
    # Gains at ranks 2 and 4 of 2 that could stand at ranks 1 and 2.
    by_hand = (1 / math.log2(3) + 1 / math.log2(5)) / (1 + 1 / math.log2(3))
    assert ndcg(["x", "a", "y", "b"], {"a", "b"}, 10) == pytest.approx(by_hand)
    assert by_hand == pytest.approx(0.6509, abs=1e-4)
    # More relevant ones than places: the best possible is what the places can hold.
    assert ndcg(["a", "b"], {"a", "b", "c"}, 2) == 1.0
    assert ndcg(["x"], {"a"}, 10) == 0.0


def test_figures_of_one_search_and_of_two() -> None:
    question = Question("?", frozenset({"a", "b"}))
    sixth = figures_of(Ranking(["a", "v", "w", "x", "y", "b"], 4.0), question)
    ideal = 1 + 1 / math.log2(3)
    assert sixth == pytest.approx(Figures(0.5, 1.0, 1.0, (1 + 1 / math.log2(7)) / ideal, 4.0))
    nothing = figures_of(Ranking([], 1.0), question)
    assert nothing == Figures(0.0, 0.0, 0.0, 0.0, 1.0)
    assert averaged([sixth, nothing, nothing]) == pytest.approx((1 / 6, 1 / 3, 1 / 3, sixth.ndcg / 3, 1.0))


def test_turn_ids() -> None:
    for evidence, ids in [
        (["D1:3"], ["D1:3"]),
        (["D8:6; D9:17"], ["D8:6", "D9:17"]),
        (["D9:1 D4:4 D4:6"], ["D9:1", "D4:4", "D4:6"]),
        (["D1:14", "D:11:26"], ["D1:14", "D11:26"]),
        (["D30:05"], ["D30:5"]),
        (["D10:10"], ["D10:10"]),
        (["D1:18", "D", "D1:20"], ["D1:18", "D1:20"]),
        ([], []),
    ]:
        assert turn_ids(evidence) == ids, evidence


def test_session_time() -> None:
    assert session_time("1:56 pm on 8 May, 2023") == datetime(2023, 5, 8, 13, 56, tzinfo=UTC)
    assert session_time("12:05 am on 29 February, 2024") == datetime(2024, 2, 29, 0, 5, tzinfo=UTC)


SAMPLE = Sample(
    sample_id="made-up",
    conversation={
        "speaker_a": "Ada",
        "speaker_b": "Bo",
        # As text "session_10" sorts before "session_2".
        "session_10": [Turn("D10:1", "Ada", "Back again.")],
        "session_10_date_time": "9:00 am on 2 May, 2024",
        "session_2": [Turn("D2:1", "Bo", "Hello."), Turn("D2:2", "Ada", "Good evening.")],
        "session_2_date_time": "8:30 pm on 1 May, 2024",
    },
    qa=[
        Asked("both resolve", 1, ["D2:2; D10:01"]),
        Asked("one resolves, and stands twice", 4, ["D2:1", "D2:1", "D7:7"]),
        Asked("none resolves", 2, ["D7:7"]),
        Asked("adversarial", 5, ["D2:1"]),
    ],
)


def test_events_of_a_sample() -> None:
    first, second, pause, third = events_of(SAMPLE)
    assert first == memlog.Message(
        id="D2:1",
        ts="2024-05-01T20:30:00+00:00",
        channel="locomo",
        chat_id="made-up",
        role="assistant",
        name="Bo",
        content="Hello.",
    )
    assert (second.id, second.ts) == ("D2:2", "2024-05-01T20:30:01+00:00")
    assert isinstance(pause, memlog.SessionBreak)
    assert pause.ts == "2024-05-02T08:59:59+00:00"
    assert (third.id, third.ts) == ("D10:1", "2024-05-02T09:00:00+00:00")


def test_questions_of_a_sample() -> None:
    assert questions_of(SAMPLE) == [
        Question("both resolve", frozenset({"D2:2", "D10:1"}), 1),
        Question("one resolves, and stands twice", frozenset({"D2:1"}), 4),
    ]
