"""Whose memory a context gives where several people may write: nobody is given what another person said."""

import sqlite3
from contextlib import closing

import pytest

import memlog
from tests.service.http.conftest import environment, serve

__all__ = ["environment", "serve"]

ASKED = "What is the door code?"
WORDS = ("amber", "birch", "cedar")


@pytest.fixture
def opened(tmp_path):
    """Opens the store, without a model."""
    (tmp_path / "no-model").mkdir(exist_ok=True)
    stores = []

    def open_store(**options):
        stores.append(
            memlog.open(tmp_path / "store", model=tmp_path / "no-model", durability="os", **options)
        )
        return stores[-1]

    yield open_store
    for store in stores:
        store.close()


def said(store, chat, word, name=None):
    channel, _, chat_id = chat.partition(":")
    content = f"The door code is {word}"
    store.append([memlog.Message(channel=channel, chat_id=chat_id, role="user", name=name, content=content)])


def saved(store, chat, word):
    store.memories.save(f"The door code is {word}", chat=chat, dedup=False)


def ill(store, chat, word):
    store.memories.save(f"Allergic to {word}", chat=chat, dedup=False)


def known(store, chat, word):
    store.facts.set("door_code", word, chat=chat)


def summed_up(store, chat, word):
    channel, _, chat_id = chat.partition(":")
    content = f"The door code is {word}"
    store.append([memlog.SummaryWritten(channel=channel, chat_id=chat_id, content=content)])


def recorded(store, chat, word):
    channel, _, sender_id = chat.partition(":")
    store.daily.record(f"The door code is {word}", channel=channel, sender_id=sender_id)


def of_channel(store, chat, word):
    store.daily.record(f"The door code is {word}", channel=chat.partition(":")[0])


def named(name):
    return lambda store, chat, word: said(store, chat, word, name)


def told(store, chat, **options):
    """The words that a context has; its two halves have the same ones."""
    texts = [
        store.context(ASKED, chat=chat, part=part, **options).text for part in ("both", "stable", "turn")
    ]
    whole, stable, turn = ({word for word in WORDS if word in text} for text in texts)
    assert whole == stable | turn
    return whole


A, B, C = ({word} for word in WORDS)
T1, T2, T9, S2, CLI = "telegram:1", "telegram:2", "telegram:9", "signal:2", "cli:1"
JOINED = {"anna": [T1, S2]}

CASES = {
    "two chats without names": (
        [(said, T1), (said, T2)],
        {},
        {T1: A, T2: B, T9: set(), CLI: set(), None: set()},
    ),
    "a chat that is about to begin": ([(said, T1)], {}, {T1: A, T2: set(), S2: set(), CLI: A, None: A}),
    "one that begins beside a name": ([(named("Anna"), T1)], {}, {T1: A, T2: set(), CLI: A}),
    "two messengers": ([(said, "whatsapp:1"), (said, S2)], {}, {"whatsapp:1": A, S2: B}),
    "a name in one of two": ([(named("Anna"), T1), (said, T2)], {}, {T1: A, T2: B}),
    "a name of spaces": ([(named(" "), T1), (named(" "), T2)], {}, {T1: A, T2: B}),
    "a channel with a capital": ([(said, "Telegram:1"), (said, T2)], {}, {"Telegram:1": A, T2: B}),
    "a saved memory alone": ([(saved, T1), (said, T2)], {}, {T1: A, T2: B, T9: set()}),
    "what always holds": ([(ill, T1), (ill, T2)], {}, {T1: A, T2: B, T9: set(), None: set()}),
    "facts": ([(known, T1), (known, T2)], {}, {T1: A, T2: B, T9: set(), None: set()}),
    "summaries": ([(summed_up, T1), (summed_up, T2)], {}, {T1: A, T2: B, T9: set()}),
    "daily events": ([(recorded, T1), (recorded, T2)], {}, {T9: set(), None: set()}),
    "a daily event of a channel": ([(of_channel, T1), (said, CLI)], {}, {CLI: A | B}),
    "a memory of no chat": ([(said, T1), (saved, None), (said, T2)], {}, {T1: A | B, T2: B | C, T9: B}),
    "equal names": ([(named("Anna"), T1), (named("Anna"), T9)], {}, {T1: A | B, T9: A | B, T2: set()}),
    "no messenger": ([(said, "codex:1"), (said, CLI)], {}, {"codex:1": A | B, CLI: A | B, None: A | B}),
    "one messenger": ([(said, T1), (said, CLI)], {}, {T1: A | B, CLI: A | B}),
    "people who are joined": (
        [(said, T1), (said, S2), (said, T9)],
        {"chats": JOINED},
        {T1: A | B, S2: A | B, T9: C, CLI: set()},
    ),
    "memories of who is joined": (
        [(ill, T1), (known, S2), (said, T9)],
        {"chats": JOINED},
        {T1: A | B, S2: A | B, T9: C, T2: set()},
    ),
    "names that differ, joined": (
        [(named("Anna"), T1), (named("Ann"), S2)],
        {"chats": JOINED},
        {T1: A | B, S2: A | B, T9: set(), CLI: A | B},
    ),
    "equal names, separated": (
        [(named("Anna"), T1), (named("Anna"), T9)],
        {"chats": {"anna": [T1], "another": [T9]}},
        {T1: A, T9: B, CLI: set()},
    ),
    "people of whom memories alone tell": (
        [(saved, "cli:1"), (saved, "cli:2")],
        {"chats": {"anna": ["cli:1"], "bob": ["cli:2"]}},
        {"cli:1": A, "cli:2": B},
    ),
    "other messengers": (
        [(said, "irc:1"), (said, "irc:2"), (said, T1)],
        {"messengers": ("IRC",)},
        {"irc:1": A, "irc:2": B, T1: C},
    ),
    "no messengers": ([(said, T1), (said, T2)], {"messengers": ()}, {T1: A | B, T2: A | B}),
}


@pytest.mark.parametrize(("tells", "people", "expected"), CASES.values(), ids=CASES)
def test_a_context_has_what_its_person_said(opened, tells, people, expected):
    store = opened(people=memlog.People(**people))
    for (tell, chat), word in zip(tells, WORDS, strict=False):
        tell(store, chat, word)
    assert {chat: told(store, chat) for chat in expected} == expected


def test_a_scope_that_is_asked_for_is_kept(opened):
    store = opened(people=memlog.People(chats=JOINED))
    for chat, word in zip((T1, S2, T9), WORDS, strict=True):
        said(store, chat, word)
    assert [told(store, T1, scope=scope) for scope in ("store", "chat")] == [A | B | C, A]


@pytest.mark.parametrize(
    "given",
    [
        {"chats": {"a": [T1], "b": [T1]}},
        {"chats": {"a": ["telegram"]}},
        {"chats": {"a": T1}},
        {"chats": [T1]},
        {"messengers": "telegram"},
        {"messengers": (T1,)},
    ],
)
def test_people_that_mean_nothing_are_refused(given):
    with pytest.raises(memlog.BadInput) as refused:
        memlog.People(**given)
    assert refused.value.hint


def test_the_service_reads_the_people_of_the_settings(opened, tmp_path, serve):
    for chat, word in zip((T1, S2, T9), WORDS, strict=True):
        said(opened(), chat, word)
    (tmp_path / "store" / "memlog.toml").write_text('[context.people]\nanna = ["telegram:1", "signal:2"]\n')
    server = serve(store=tmp_path / "store")
    texts = [server.ask("context", {"text": ASKED, "chat": chat}).json["text"] for chat in (T1, S2, T9)]
    assert [{word for word in WORDS if word in text} for text in texts] == [A | B, A | B, C]


# What people are told of it


def findings(store):
    store.maintenance.project(embed=False)
    return [each for each in store.maintenance.examine() if each.check == "scope"]


SHARED = {
    "equal names": ([(T1, "Anna"), (T9, "Anna"), (CLI, "Anna")], {}, [T1, T9]),
    "names that the settings separate": ([(T1, "Anna"), (T9, "Anna")], {"anna": [T1], "other": [T9]}, []),
    "names that the settings join": ([(T1, "Anna"), (T9, "Anna")], {"anna": [T1, T9]}, []),
    "one messenger": ([(T1, "Anna"), (CLI, "Anna")], {}, []),
    "no messenger": ([("codex:1", "Anna"), (CLI, "Anna")], {}, []),
    "two people": ([(T1, "Anna"), (T9, "Anna"), (T2, "Bob")], {}, []),
}


@pytest.mark.parametrize(("chats", "people", "named"), SHARED.values(), ids=SHARED)
def test_doctor_names_the_chats_that_share_because_of_a_name(opened, chats, people, named):
    store = opened(people=memlog.People(chats=people))
    for chat, name in chats:
        said(store, chat, "amber", name)
    warnings = [each for each in findings(store) if each.state == "warning"]
    assert bool(named) == bool(warnings)
    for warning in warnings:
        assert [chat for chat, _ in chats if chat in warning.finding] == named
        assert "context.people" in warning.remedy


def test_doctor_names_some_of_the_chats_that_are_kept_apart_and_the_setting_that_joins_them(opened):
    store = opened()
    for number in range(20):
        said(store, f"telegram:{number}", "amber")
    finding = findings(store)[-1]
    assert ("telegram:0" in finding.finding, "telegram:19" in finding.finding) == (True, False)
    assert "12 more" in finding.finding
    assert "context.people" in finding.finding


OLDER_INDEX = "CREATE INDEX messages_by_user ON messages (name) WHERE role = 'user' AND name IS NOT NULL"


@pytest.mark.parametrize(
    ("chats", "people", "is_told"),
    [
        ([(T1, None), (T2, None)], {}, True),
        ([(T1, "Anna"), (S2, None)], {}, True),
        ([(T1, None), (S2, None)], JOINED, False),
        ([(T1, "Anna"), (T2, "Bob")], {}, False),
        ([(T1, "Anna"), (T9, "Anna")], {}, False),
        ([("codex:1", None), (CLI, None)], {}, False),
    ],
)
def test_a_store_whose_scope_an_update_of_memlog_narrows_says_so_once(opened, chats, people, is_told):
    store = opened()
    for chat, name in chats:
        said(store, chat, "amber", name)
    store.maintenance.project(embed=False)
    store.close()
    make_older(store)
    notes = []
    updated = opened(people=memlog.People(chats=people), notify=notes.append)
    updated.context(ASKED, chat=T1, record=False)
    assert any("context.people" in note for note in notes) == is_told
    notes.clear()
    updated.context(ASKED, chat=T1, record=False)
    updated.maintenance.project(embed=False, from_scratch=True)
    assert notes == []


def test_a_projection_that_is_asked_for_reports_it(opened):
    store = opened()
    for chat in (T1, T2):
        said(store, chat, "amber")
    store.maintenance.project(embed=False)
    store.close()
    make_older(store)
    reports = [store.maintenance.project(embed=False) for _ in range(2)]
    assert [any("context.people" in note for note in report.notes) for report in reports] == [True, False]


def make_older(store):
    """Make the read model one of the version that knew names alone."""
    (generation,) = (store.path / "model").glob("*.db")
    with closing(sqlite3.connect(generation)) as db:
        db.executescript(
            f"DROP INDEX messages_by_user; {OLDER_INDEX};"
            "UPDATE meta SET value = 'older' WHERE name = 'projection_id'"
        )
