"""What an agent is told: one list of what belongs to the prompt, whatever kind it is, and little else."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import memlog
from memlog.projector.text.stemming import detect_language
from memlog.query.context.background import TEXTS
from memlog.query.search import hybrid, request

FIXTURES = Path(__file__).parents[2] / "fixtures" / "told"
CHAT = ("telegram", "7")

MEMORIES = {
    "postgres": "We chose PostgreSQL for billing because of row level security",
    "helm": "The billing service is deployed by Helm to the cluster in Frankfurt",
    "dana": "Dana reviews all migrations",
    "standup": "Standup is at half past nine",
    "nuts": "I'm allergic to hazelnuts",
    "swim": "Mia has swimming practice on Tuesdays",
    "key": "The deploy key of the runner expires in March",
    "boiler": "The boiler was serviced in October by Virtanen",
}
FACTS = {"employer": "Nokia", "blood_type": "O negative", "ticket_prefix": "KES"}


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Iterator[memlog.Store]:
    """A store of short texts about work and home, with vectors of the bundled model."""
    folder = tmp_path_factory.mktemp("told") / "store"
    with memlog.open(folder, durability="os") as store:
        for name, content in MEMORIES.items():
            store.memories.save(content, memory_id=name, dedup=False)
        for key, value in FACTS.items():
            store.facts.set(key, value, single=True)
        store.maintenance.embed()
        yield store


def ids(given: memlog.Context) -> list[str]:
    """What was given for the prompt."""
    return [entry.id for entry in given.entries if entry.part not in ("core", "always")]


def said(number: int, content: str) -> memlog.Message:
    """A message of one chat, of user and assistant in turn."""
    return memlog.Message(
        channel=CHAT[0],
        chat_id=CHAT[1],
        id=f"m{number}",
        role="assistant" if number % 2 else "user",
        content=content,
    )


def test_a_decision_is_found_by_what_it_is_about(told: memlog.Store) -> None:
    assert "postgres" in ids(told.context("which database did we choose?", record=False))


def test_what_is_meant_is_found_without_a_word_in_common(told: memlog.Store) -> None:
    given = told.context("what must I not eat?", health_tokens=0, preference_tokens=0, record=False)
    assert ids(given)[0] == "nuts"


@pytest.mark.parametrize(
    "prompt",
    [
        "How do I prune the apple tree in the garden?",
        "Write a poem about the sea",
        "Which route do I take to Lisbon?",
        "Plan a week of dinners for the children",
        "Rename the variable in this function",
    ],
)
def test_a_short_text_is_in_no_context_that_it_has_nothing_to_do_with(
    told: memlog.Store, prompt: str
) -> None:
    assert {f"{key}/0" for key in FACTS}.isdisjoint(ids(told.context(prompt, record=False)))


def test_a_short_text_is_given_where_it_answers(told: memlog.Store) -> None:
    for prompt, name in (("what is my blood type?", "blood_type/0"), ("Who is my employer?", "employer/0")):
        assert ids(told.context(prompt, record=False))[0] == name


@pytest.mark.parametrize("prompt", ["hello", "Good morning, Dana!", "ok, thanks", "sounds good 👍"])
def test_for_a_greeting_or_an_acknowledgement_nothing_is_given(told: memlog.Store, prompt: str) -> None:
    given = told.context(prompt, record=False)
    assert ids(given) == []
    assert "nothing_relevant" in given.silent


def test_a_question_in_the_middle_of_a_log_is_answered(told: memlog.Store) -> None:
    log = [
        f"2026-11-2{n % 10}T08:{n % 60:02}:11Z {('INFO', 'WARN', 'DEBUG')[n % 3]} worker-{n}"
        f" {('handled', 'queued', 'retried')[n % 4 % 3]} job {n * 37:x} in {n * 13 % 97} ms"
        for n in range(70)
    ]
    assert ids(told.context("\n".join(log), record=False)) == []
    asking = [*log[:35], "which day does Mia have swimming practice?", *log[35:]]
    assert ids(told.context("\n".join(asking), record=False))[:1] == ["swim"]


@pytest.mark.parametrize("place", [0, 200, 400])
@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("swimming practice of Mia is moved to the small hall", "swim"),
        # By meaning: of its words the memory has none, others have some.
        ("the starter of the billing lunch has walnuts, cashews and almonds", "nuts"),
    ],
)
def test_each_line_of_a_long_paste_is_looked_up(told: memlog.Store, line: str, name: str, place: int) -> None:
    log = [
        f"2026-11-20T08:11 INFO handler-{n:03} replied {n * 37:x} in {n * 13 % 97} ms, queue {n % 7}"
        for n in range(400)
    ]
    given = told.context("\n".join([*log[:place], line, *log[place:]]), health_tokens=0, record=False)
    assert name in ids(given)[:5]


def test_all_kinds_are_one_list_of_six_at_most(store: memlog.Store, tmp_path: Path) -> None:
    (tmp_path / "kettle.md").write_text("# The kettle\n\nDescale the kettle with vinegar.\n")
    store.append(said(n, f"The kettle in room {n} is broken, it leaks at the lid") for n in range(5))
    store.append([memlog.SessionBreak(channel=CHAT[0], chat_id=CHAT[1])])
    for n in range(5):
        store.memories.save(f"The kettle number {n} was bought in Oulu", memory_id=f"k{n}", dedup=False)
        store.facts.set(f"kettle_{n}", "steel", single=True)
    store.documents.add(tmp_path / "kettle.md", source="manual")
    store.maintenance.embed()
    given = store.context("Which kettle is broken, and how do I descale a kettle?", explain=True)
    assert len(given.entries) == 6
    assert {"passage", "document"} <= {entry.part for entry in given.entries}
    scores = [entry.score.total for entry in given.entries if entry.score is not None]
    late = [left.score.total for left in given.left_out if "that were requested" in left.why and left.score]
    assert len(scores) == 6
    assert min(scores) >= max(late)


# The budget


def test_a_small_context_answers_before_a_large_core_memory(store: memlog.Store) -> None:
    for number in range(12):
        store.core.set("user", f"note_{number}", "likes long walks along the river in the evening")
    for name in ("postgres", "helm", "boiler"):
        store.memories.save(MEMORIES[name], memory_id=name)
    store.memories.save("The boiler has the serial number 4711", memory_id="serial")
    store.maintenance.embed()
    given = store.context("What do we know about the boiler?", max_tokens=200)
    assert {*ids(given)} == {"serial", "boiler"}
    assert len([entry for entry in given.entries if entry.part == "core"]) in range(1, 12)


def test_a_context_of_a_running_chat_keeps_its_last_turns(store: memlog.Store) -> None:
    for number in range(30):
        store.memories.save(f"The boiler had its service number {number} in October", dedup=False)
    store.core.set("user", "note", "walks " * 200)
    store.append(
        said(n, f"Turn {n}: we talk about the holidays in Greece, the ferry and the hotel") for n in range(40)
    )
    store.maintenance.embed()
    given = store.context("When was the boiler serviced?", chat=CHAT, max_tokens=600)
    assert [entry.id for entry in given.entries if entry.part == "window"][-4:] == [
        "m36",
        "m37",
        "m38",
        "m39",
    ]
    assert "memory" in {entry.part for entry in given.entries}


# One search


def test_a_context_parses_its_question_once_and_searches_once(
    store: memlog.Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prompt = "what was said today of the boiler of Virtanen?"
    (tmp_path / "boiler.md").write_text("# The boiler\n\nVirtanen services the boiler.\n")
    store.documents.add(tmp_path / "boiler.md", source="house")
    store.memories.save("The boiler was serviced in October by Virtanen", memory_id="boiler")
    store.append([said(0, "Virtanen was here today for the boiler")])
    store.maintenance.embed()
    parsed: list[str] = []
    searched: list[int] = []
    words, find = request.split_question_into_words, hybrid.find_hits
    monkeypatch.setattr(request, "split_question_into_words", lambda text: parsed.append(text) or words(text))
    monkeypatch.setattr(
        hybrid,
        "find_hits",
        lambda db, asked, quotas, *rest: searched.append(1) or find(db, asked, quotas, *rest),
    )
    given = store.context(prompt, explain=True, record=False)
    assert {entry.part for entry in given.entries} == {"memory", "passage", "document"}
    assert parsed.count(prompt) == 1
    assert len(searched) == 1


PASTES = """
import json, sys, memlog
with memlog.open(sys.argv[1]) as store:
    given = store.context(sys.argv[2], record=False, sync=False, explain=True)
    print(json.dumps([(each.id, str(each.score)) for each in (*given.entries, *given.left_out)]))
"""


def test_of_equal_lines_of_a_long_paste_every_process_looks_up_the_same(store: memlog.Store) -> None:
    kinds = (
        ("lantern", "harbour", "violin", "saddle", "glacier"),
        ("pepper", "anvil", "canoe", "tulip", "copper"),
    )
    for number, (one, other) in enumerate(zip(*kinds, strict=True)):
        store.memories.save(f"the {one} is green", memory_id=f"m{number}", dedup=False)
        store.append([said(number, f"the {other} is heavy")])
    store.maintenance.embed()
    paste = "\n".join(
        f"somebody wrote about this {word} on some evening" for words in kinds for word in words
    )
    given = {
        subprocess.run(
            [sys.executable, "-c", PASTES, str(store.path), paste],
            env={**os.environ, "PYTHONHASHSEED": str(seed)},
            check=True,
            capture_output=True,
        ).stdout
        for seed in range(4)
    }
    assert len(given) == 1


# A new user


def test_nine_first_memories_answer_their_questions_and_disturb_no_general_one(tmp_path: Path) -> None:
    general = json.loads(TEXTS.read_bytes())["english"]["general"][:45]
    plain, preferred, disturbed = 0, 0, []
    for number, each in enumerate(json.loads((FIXTURES / "nine.json").read_bytes())):
        with memlog.open(tmp_path / str(number), durability="os") as store:
            store.memories.save(each["memory"], memory_id="it")
            store.maintenance.embed()

            def given(prompt: str, store: memlog.Store = store) -> memlog.Context:
                return store.context(prompt, record=False, sync=False)

            asked = each["question"]
            is_given = "it" in {entry.id for entry in given(asked).entries}
            plain += is_given
            disturbed += [(prompt, each["memory"]) for prompt in general if ids(given(prompt))]
            if each["preference"]:
                store.memories.update("it", kind="preference")
                store.maintenance.project()
                is_given = "it" in {entry.id for entry in given(asked).entries}
            preferred += is_given
    assert plain >= 5
    assert preferred >= 7
    assert len(disturbed) <= 4, disturbed


# Languages


@pytest.mark.parametrize(
    ("text", "language"),
    [
        *((f"{key.replace('_', ' ')}: {value}", "english") for key, value in FACTS.items()),
        ("Helena's birthday is 14 May", "english"),
        ("MRI on Monday", "english"),
        ("no", "english"),
        ("kissan nimi on Miisu", "finnish"),
        ("Varaa pöytä", "finnish"),
        ("Milloin Miisu leikataan?", "finnish"),
        ("код от домофона", "russian"),
        ("Ich trinke keinen Kaffee am Abend", "german"),
        ("Je bois du thé vert", "french"),
        ("我喜欢什么茶？", "other"),
    ],
)
def test_a_short_text_is_in_its_language_and_english_without_two_signs(text: str, language: str) -> None:
    assert detect_language(text) == language


def test_a_ranked_list_is_given_whole_in_the_order_of_its_ranks(store: memlog.Store) -> None:
    store.facts.set("allergies", "peanuts", "shellfish", "latex")
    given = store.context("Which allergies should the peanuts waiter know?", record=False)
    assert [entry.content for entry in given.entries] == [
        "allergies 1: peanuts",
        "allergies 2: shellfish",
        "allergies 3: latex",
    ]


def test_a_question_of_an_earlier_chat_comes_with_its_reply(store: memlog.Store) -> None:
    for number in range(10):
        store.memories.save(f"The shelf number {number} holds jars of kind {number}", memory_id=f"m{number}")
    talk = [
        ("user", "What is the gate code of the office?"),
        ("assistant", "It is 4471#"),
        ("user", "Bye now"),
    ]
    for number, (role, content) in enumerate(talk):
        event = memlog.Message(id=f"q{number}", channel="cli", chat_id="1", role=role, content=content)
        store.append(event)
    given = store.context("office gate code?", chat="cli:2", record=False)
    assert [entry.id for entry in given.entries if entry.part == "passage"] == ["q0", "q1"]
