"""A context has what is relevant to the message, or nothing."""

import json

import pytest

import memlog

SAID = (
    ("web:anna", "user", "My wifi password at the cabin is sunflower"),
    ("web:anna", "assistant", "I noted the wifi password of the cabin"),
    ("web:anna", "user", "My sister Helena moved to Tampere in May"),
    ("web:anna", "user", "We painted the kitchen green last summer"),
    ("web:work", "user", "Hei, varaa pöytä Savoysta perjantaille kello seitsemän"),
    ("web:work", "user", "Мою кошку зовут Муся, ей пять лет"),
    ("web:work", "user", "我最喜欢的茶是龙井"),
)

AGENT = (
    ("run the tests", "To run the tests use `uv run pytest -q -x tests/`"),
    ("deploy staging", "Deploy staging with ./scripts/deploy.sh --env staging"),
    ("npm run build fails", "npm run build failed because NODE_OPTIONS lacked --openssl-legacy-provider"),
    ("ModuleNotFoundError: No module named 'yaml'", "No module named 'yaml': install PyYAML, not yaml"),
    ("src/auth/session.py", "src/auth/session.py holds the login sessions; tokens expire after 30 minutes"),
    ("git push rejected", "git push is rejected on main: push to a branch and open a merge request"),
    ("make lint", "make lint runs ruff and mypy; the CI uses the same"),
    ("docker compose up", "docker compose up needs the .env file from the vault"),
    (
        "TypeError: cannot unpack non-iterable NoneType object",
        "cannot unpack NoneType: load_config returns None",
    ),
    ("psql -h db", "psql needs -U reporting on the db host, the default role is locked"),
    ("restart the worker", "Restart the worker with systemctl --user restart queue-worker"),
    ("SELECT * FROM orders", "The table orders is partitioned by month; SELECT needs a date range"),
    ("pip install fails on arm64", "pip install fails on arm64 until you export MATURIN_TARGET"),
    ("README.md", "README.md is generated from docs/index.md, never edit it"),
    ("curl localhost:8080/health", "curl localhost:8080/health needs the header X-Probe: 1"),
    ("fix the flaky test", "The flaky test is test_clock: freeze the time with the fixture frozen"),
    (
        "ECONNREFUSED 127.0.0.1:6379",
        "ECONNREFUSED on 6379 means that redis is down: brew services start redis",
    ),
    ("cargo test --workspace", "cargo test --workspace needs RUST_TEST_THREADS=1"),
    ("bump the version", "To bump the version edit pyproject.toml and tag with v"),
    (
        "Traceback (most recent call last):\n  File \"etl.py\", line 3\nKeyError: 'sku'",
        "KeyError 'sku' in etl.py: use item_no",
    ),
)
"""Prompts to a coding agent, and what its memory has about each."""


@pytest.fixture
def filled(store: memlog.Store) -> memlog.Store:
    for number, (chat, role, content) in enumerate(SAID):
        channel, chat_id = chat.split(":")
        said = {"type": "message", "id": f"m{number}", "channel": channel, "chat_id": chat_id, "role": role}
        store.append(said | {"content": content})
    store.core.set("user", "name", "Anna")
    store.memories.save("Anna is allergic to peanuts", memory_id="allergy")
    store.append(
        memlog.SummaryWritten(channel="web", chat_id="anna", id="s1", content="They spoke of the cabin")
    )
    return store


@pytest.mark.parametrize(
    "text",
    [
        "hello",
        "thanks a lot!",
        "2+2?",
        "How tall is the Eiffel tower?",
        "Сколько будет 2+2?",
        "Kuka keksi puhelimen?",
    ],
)
def test_what_has_nothing_to_do_with_the_memory_is_given_none(filled: memlog.Store, text: str) -> None:
    given = filled.context(text, chat="web:new", explain=True)
    assert {entry.part for entry in given.entries} == {"core", "always"}
    assert "nothing_relevant" in given.silent
    # The chat has its window and its newest summary.
    given = filled.context(text, chat="web:anna")
    assert {entry.part for entry in given.entries} == {"core", "always", "summary", "window"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("What is the wifi password of the cabin?", "m0"),
        ("Where does Helena live?", "m2"),
        ("What am I allergic to?", "allergy"),
        ("ok, wifi password", "m0"),
        ("allergies", "allergy"),
        ("Varaa pöytä", "m4"),
        ("Как зовут мою кошку?", "m5"),
        ("我喜欢什么茶？", "m6"),
    ],
)
def test_what_is_relevant_is_given(filled: memlog.Store, text: str, expected: str) -> None:
    given = filled.context(text, chat="web:new")
    assert expected in {entry.id for entry in given.entries}
    assert "nothing_relevant" not in given.silent


def test_what_waits_for_a_vector_is_relevant_by_its_words(store: memlog.Store) -> None:
    store.append([memlog.Message(channel="w", chat_id="1", id="wifi", role="user", content=SAID[0][2])])
    store.append(
        memlog.Message(channel="w", chat_id="2", role="user", content=f"The weather report number {number}")
        for number in range(60)
    )
    for _ in range(5):
        given = store.context("What is the wifi password at the cabin?", chat="w:new")
        assert "wifi" in {entry.id for entry in given.entries}


def test_prompts_of_coding_agents_keep_their_evidence(store: memlog.Store) -> None:
    for number, (_, content) in enumerate(AGENT):
        said = memlog.Message(channel="code", chat_id="1", id=f"m{number}", role="assistant", content=content)
        store.append(said)
    lost = [
        text
        for number, (text, _) in enumerate(AGENT)
        if f"m{number}" not in {entry.id for entry in store.context(text, chat="code:2").entries}
    ]
    assert lost == []


def test_near_copies_are_one_passage_the_newest(store: memlog.Store) -> None:
    for day in range(20, 26):
        content = f"Please send me the short report about the tea shop {'today' if day % 2 else 'now'}"
        said = {"type": "message", "channel": "web", "chat_id": "1", "role": "user", "id": f"m{day}"}
        store.append(said | {"content": content, "ts": f"2026-11-{day}T08:00:00Z"})
    store.append(said | {"id": "n", "content": "Please send me the short report about the tea shop at 7"})
    passages = [
        each for each in store.context("the report about the tea shop").entries if each.part == "passage"
    ]
    assert {(each.id, each.copies) for each in passages} == {("m25", 6), ("n", 1)}
    told = store.context("the report about the tea shop", explain=True).left_out
    assert sum("says nearly the same" in left.why for left in told) == 1


def test_an_answer_says_how_likely_it_is_and_what_was_left_out(filled: memlog.Store) -> None:
    sure = filled.context("What is the wifi password of the cabin?", form="json", explain=True)
    unsure = filled.context("How tall is the Eiffel tower?", explain=True)
    assert sure.answered is not None
    assert sure.answered > 0.5 > (unsure.answered or 0.0)
    assert json.loads(sure.text)["answered"] == sure.answered
    assert any("below the floor" in left.why for left in unsure.left_out)
    assert len(filled.search("How tall is the Eiffel tower?").hits) > 5
