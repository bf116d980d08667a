"""What jobs derive of a person's chats stays with them, also what they derived while nobody else talked."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import memlog
from tests.support.provider import Provider

ANNA, BOB = "t:1", "t:2"
SECRET = "Anna has multiple sclerosis."


def opened(path: Path, provider: Provider) -> memlog.Store:
    return memlog.open(path, language_model=memlog.LanguageModelProvider(base_url=provider.url, model="m"))


def answer(asked: str) -> str:
    """A model that tells all it is shown, as one value, and as one memory of each two."""
    question = json.loads(asked)
    if "profile" in question:
        texts = [each["text"] for each in question["memories"]]
        entry = {"key": "health", "value": " ".join(texts), "numbers": [*range(1, len(texts) + 1)]}
        return json.dumps({"entries": [entry]})
    texts = [each["text"] for each in question]
    group = {"relation": "same", "numbers": [*range(1, len(texts) + 1)], "content": " ".join(texts)}
    return json.dumps({"groups": [group]})


def speaks(store: memlog.Store, chat: str, name: str) -> None:
    store.append([memlog.Message(channel="t", chat_id=chat[2:], role="user", name=name, content="Hello")])


def of_chat(store: memlog.Store) -> None:
    store.memories.save(SECRET, chat=ANNA)


def of_an_extraction(store: memlog.Store, *texts: str) -> None:
    """Memories of no chat that are distilled of Anna's, as older versions had them."""
    for number, text in enumerate(texts or (SECRET,)):
        made = memlog.Extraction(f"x{number}", "m", "p", chat_id=ANNA)
        store.append(
            [
                memlog.MemorySaved(content=text, source="extraction", extraction=made),
                memlog.MemoriesExtracted(id=made.id, chat_id=ANNA, message_ids=["1"], model="m", prompt="p"),
            ]
        )


def of_a_merge(store: memlog.Store) -> None:
    of_an_extraction(store, SECRET, "Anna sees a neurologist.")


def of_a_day(store: memlog.Store, sender: str | None = "1") -> None:
    store.append(
        [
            memlog.DailyEventRecorded(id="d", channel="t", sender_id=sender, summary=SECRET),
            memlog.MemorySaved(
                content=SECRET,
                memory_id="day",
                source="extraction",
                extraction=memlog.Extraction("c", "m", "p"),
            ),
            memlog.DailyEventsCompressed(id="c", ids=["d"], memory_ids=["day"]),
        ]
    )


def of_a_day_of_a_channel(store: memlog.Store) -> None:
    of_a_day(store, sender=None)


def of_nobody_knows(store: memlog.Store) -> None:
    made = memlog.Extraction("old", "m", "p")
    store.append(
        [
            memlog.CoreMemoryUpdated(
                section="user", key="health", value=SECRET, source="profile", extraction=made
            ),
            memlog.ProfileRefreshed(id="old", event_ids=["e"], model="m", prompt="p"),
        ]
    )


LOST = (of_a_day_of_a_channel, of_nobody_knows)
"""Nobody can say of whom they are."""


@pytest.mark.parametrize("derived", [of_chat, of_an_extraction, of_a_merge, of_a_day, *LOST])
def test_what_was_derived_under_a_wide_scope_ends_with_it(
    tmp_path: Path, provider: Provider, derived: Callable[[memlog.Store], None]
) -> None:
    provider.answer = answer

    def told(store: memlog.Store, **request: Any) -> str:
        contexts = [store.context("How is Anna?", **request), store.context(part="stable", **request)]
        return "".join([*(given.text for given in contexts), str(store.core.get(**request))])

    with opened(tmp_path, provider) as store:
        speaks(store, ANNA, "Anna")
        derived(store)
        store.jobs.run("weekly")
        assert SECRET in told(store, chat=ANNA)
        speaks(store, BOB, "Bob")
        store.memories.save("Bob likes tea.", chat=BOB)
        for _ in range(3):
            assert "sclerosis" not in told(store, chat=BOB) + told(store)
            store.jobs.run("weekly")
        assert (SECRET in told(store, chat=ANNA)) is (derived not in LOST)
        assert store.core.get("user", "health", chat=BOB) == "Bob likes tea."
        digest = store.maintenance.digest()
        store.maintenance.project(from_scratch=True)
        assert store.maintenance.digest() == digest


def test_a_job_sends_nothing_together_that_no_context_shows_together(
    tmp_path: Path, provider: Provider
) -> None:
    provider.answer = answer
    with opened(tmp_path, provider) as store:
        for chat, name in ((ANNA, "Anna"), (BOB, "Bob")):
            speaks(store, chat, name)
            store.memories.save(f"{name} has a locker.", chat=chat)
        of_an_extraction(store, SECRET)
        store.memories.save("The office opens at eight.", source="extraction")
        store.jobs.run("weekly")
        assert len(provider.asked) == 4
        assert not [asked for asked in provider.asked if sum(map(asked.count, (SECRET, "Bob", "office"))) > 1]
        before = len(provider.asked)
        store.jobs.run("weekly")
        assert len(provider.asked) == before, "nothing is new"


def test_a_context_names_what_the_weekly_job_makes_again(tmp_path: Path, provider: Provider) -> None:
    with opened(tmp_path, provider) as store:
        of_nobody_knows(store)
        speaks(store, ANNA, "Anna")
        assert "core" not in store.context("Hello", chat=ANNA).silent
        speaks(store, BOB, "Bob")
        assert "the weekly job regenerates them" in store.context("Hello", chat=BOB).silent["core"]


def test_a_profile_comes_back_when_chats_are_joined_and_separated_again(
    tmp_path: Path, provider: Provider
) -> None:
    provider.answer = answer
    joined = memlog.People(chats={"anna": ["t:1", "s:1"]})
    with opened(tmp_path, provider) as store:
        for chat, name in (("t:1", "Anna"), ("t:2", "Bob")):
            speaks(store, chat, name)
        for chat in ("t:1", "s:1", "t:2"):
            store.memories.save(f"Has a locker at {chat}.", chat=chat)
        store.jobs.run("weekly")
        before = {chat: store.core.get("user", "health", chat=chat) for chat in ("t:1", "s:1", "t:2")}
    model = memlog.LanguageModelProvider(base_url=provider.url, model="m")
    with memlog.open(tmp_path, language_model=model, people=joined) as store:
        store.jobs.run("weekly")
        both = store.core.get("user", "health", chat="t:1")
        assert both is not None
        assert "t:1" in both
        assert "s:1" in both
    with opened(tmp_path, provider) as store:
        store.jobs.run("weekly")
        assert {chat: store.core.get("user", "health", chat=chat) for chat in before} == before
        asked = len(provider.asked)
        store.jobs.run("weekly")
        assert len(provider.asked) == asked, "nothing is new"


def test_a_value_is_of_all_that_the_model_was_shown_whatever_it_cites(
    tmp_path: Path, provider: Provider
) -> None:
    def cites_one(asked: str) -> str:
        made = json.loads(answer(asked))
        for entry in made.get("entries", []):
            entry["numbers"] = [1]
        return json.dumps(made)

    provider.answer = cites_one
    with opened(tmp_path, provider) as store:
        store.memories.save("Likes green tea.")
        speaks(store, ANNA, "Anna")
        store.memories.save(SECRET, chat=ANNA)
        store.jobs.run("weekly")
        assert SECRET in str(store.core.get(chat=ANNA))
        speaks(store, BOB, "Bob")
        for _ in range(2):
            shown = (
                store.context("Hello", chat=BOB).text,
                str(store.core.get(chat=BOB)),
                str(store.core.get()),
            )
            assert SECRET not in "".join(shown)
            store.jobs.run("weekly")
        assert "green tea" in str(store.core.get(chat=BOB))
