"""A prompt that names a time is given what was of that time."""

from datetime import UTC, datetime, timedelta

import pytest

import memlog


def day(ago: int) -> str:
    """The noon of a day."""
    return (datetime.now(UTC) - timedelta(ago)).replace(hour=12).isoformat()


@pytest.fixture
def told(store: memlog.Store) -> memlog.Store:
    """Decisions of many days, each with the same words; what was decided yesterday has none of them."""
    for ago in range(2, 12):
        text = f"We decided at the planning meeting about budget number {ago}"
        store.memories.save(text, memory_id=f"d{ago}", ts=day(ago), dedup=False)
    store.memories.save("Agreed: the roof gets tin", memory_id="roof", ts=day(1))
    said = memlog.Message(id="said", channel="cli", chat_id="1", role="user", content="tin it is", ts=day(1))
    store.append(said)
    store.maintenance.embed()
    return store


def ids(given: memlog.Context) -> list[str]:
    return [entry.id for entry in given.entries]


@pytest.mark.parametrize(
    "prompt", ["what did we decide yesterday?", "что мы решили вчера?", "mitä päätimme eilen?"]
)
def test_what_is_of_the_time_that_a_prompt_names_comes_first(told: memlog.Store, prompt: str) -> None:
    given = told.context(prompt, timezone="UTC", record=False)
    assert ids(given)[0] == "roof"
    assert "said" in ids(given)
    assert given.time is not None
    assert (given.time.since, given.time.until) == (
        day(1)[:10] + "T00:00:00.000Z",
        day(0)[:10] + "T00:00:00.000Z",
    )


def test_days_are_those_of_the_time_zone(told: memlog.Store) -> None:
    asked = "what did we decide yesterday?"
    rules = memlog.JobRules(timezone="Asia/Tokyo")
    with memlog.open(told.path, jobs=rules) as of_tokyo:
        for given in (told.context(asked, timezone="Asia/Tokyo", record=False), of_tokyo.context(asked)):
            assert given.time is not None
            assert given.time.since.endswith("T15:00:00.000Z")


def test_a_prompt_without_a_time_is_given_what_it_was_given(told: memlog.Store) -> None:
    given = told.context("what did we decide about the budget?", record=False)
    assert given.time is None
    assert "roof" not in ids(given)


@pytest.mark.parametrize("since", ["yesterday", "вчера", "eilen"])
def test_filters_take_words_for_a_time(told: memlog.Store, since: str) -> None:
    found = told.search("roof budget tin", filters={"since": since, "until": since}).hits
    assert {hit.id for hit in found} == {"roof", "said"}
    results = told.tools.memory_search("roof budget tin", since=since).results
    assert {each.id for each in results} == {"roof", "said"}
