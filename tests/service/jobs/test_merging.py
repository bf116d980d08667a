"""What a model may do to memories: never to those that somebody saved, and nothing that loses a part."""

from pathlib import Path
from typing import Any

import pytest

import memlog
from tests.service.jobs.test_steps import contents, opened, saved, scripted
from tests.support.provider import Provider

ALLERGY, DOG, PORK = (
    "Anna is allergic to penicillin.",
    "Anna has a dog called Rex.",
    "Anna does not eat pork.",
)

DESTRUCTIVE = [
    pytest.param(
        (ALLERGY, DOG), "Anna is not allergic to penicillin, and has a dog called Rex.", id="denied"
    ),
    pytest.param((ALLERGY, DOG), "Anna has a dog called Rex.", id="sentence"),
    pytest.param(
        ("Anna's class is at 10 on Tuesday.", "Anna's dentist is at 3 on Friday."),
        "Anna's class is at 3 on Tuesday and her dentist at 10 on Friday.",
        id="exchanged",
    ),
    pytest.param(("安娜不吃猪肉。", "安娜喜欢牛肉。"), "安娜吃猪肉，喜欢牛肉。", id="chinese"),
]
"""The classes of losses are in `test_losses`."""

HARMLESS = [
    (
        ("Anna lives in Turku.", "Anna has moved to Tampere."),
        "Anna lives in Turku. Anna has moved to Tampere.",
    ),
    (("Anna likes tea.", "Anna drinks coffee."), "Anna likes tea and drinks coffee."),
    (("Anna likes tea.", "Anna likes tea!"), "Anna likes tea"),
    (("Анна любит чай.", "Анна любит кофе."), "Анна любит чай и кофе."),
    (("Анна живёт в Туле.", "Анна живёт в Туле с 2019 года."), "Анна живёт в Туле с 2019 года."),
    (("Anna pitää teestä.", "Anna pitää kahvista."), "Anna pitää teestä ja kahvista."),
    (("安娜喜欢茶。", "安娜喜欢咖啡。"), "安娜喜欢茶和咖啡。"),
    (("Anna isst kein Fleisch.", "Anna mag Tee."), "Anna isst kein Fleisch. Anna mag Tee."),
]

RELATIONS = ("same", "update", "contradiction")


def state_of(store: memlog.Store) -> list[tuple[str, str, str, str, str | None]]:
    """What the memories say and where they are, without what only counts."""
    found = [*store.memories.list(), *store.memories.list(archived=True)]
    return sorted((each.memory_id, each.content, each.title, each.source, each.archived_at) for each in found)


def note_of(store: memlog.Store) -> str:
    (step,) = [each for each in store.jobs.log(limit=1)[0].steps if each.name == "merge"]
    return step.why or ""


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize(("texts", "answer"), DESTRUCTIVE)
def test_no_answer_of_a_model_takes_what_somebody_saved(
    tmp_path: Path, provider: Provider, texts: tuple[str, str], answer: str, relation: str
) -> None:
    provider.answer = scripted([(relation, texts, answer)])
    with opened(tmp_path, provider) as store:
        saved(store, *texts, source="manual")
        before = state_of(store)
        store.jobs.run("weekly")
        assert contents(store) == sorted(texts)
        assert [each for each in state_of(store) if each[1] in texts] == before
        waiting = [each.state for each in store.memories.conflicts()]
        assert waiting == (["waiting"] if relation == "contradiction" else [])
        said = "conflicts that wait for a person: 1" if waiting else "groups refused: 1"
        assert said in note_of(store)
        assert not any(text in note_of(store) for text in texts), "the log of runs outlives what is forgotten"
        asked = len(provider.asked)
        store.jobs.run("weekly")
        assert len([each for each in provider.asked[asked:] if each.startswith("[")]) == 0, "not sent again"


@pytest.mark.parametrize(("texts", "answer"), DESTRUCTIVE)
def test_a_merge_that_loses_something_leaves_distilled_memories_as_they_are(
    tmp_path: Path, provider: Provider, texts: tuple[str, str], answer: str
) -> None:
    provider.answer = scripted([("update", texts, answer)])
    with opened(tmp_path, provider) as store:
        saved(store, *texts)
        store.jobs.run("weekly")
        assert contents(store) == sorted(texts)
        assert "groups refused: 1" in note_of(store)


@pytest.mark.parametrize(("texts", "answer"), HARMLESS)
def test_a_merge_that_says_everything_is_made(
    tmp_path: Path, provider: Provider, texts: tuple[str, str], answer: str
) -> None:
    provider.answer = scripted([("update", texts, answer)])
    with opened(tmp_path, provider) as store:
        saved(store, *texts)
        store.jobs.run("weekly")
        assert contents(store) == [answer]


def test_a_memory_that_somebody_saved_stands_for_what_a_model_had_distilled_of_it(
    tmp_path: Path, provider: Provider
) -> None:
    said, distilled = "Anna is allergic to penicillin and nuts!", "Anna is allergic to penicillin."
    provider.answer = scripted([("same", (said, distilled), f"{said} {distilled}")])
    with opened(tmp_path, provider) as store:
        store.memories.save(said, ts="2026-01-01T00:00:00Z")
        store.memories.save(distilled, source="extraction", dedup=False, ts="2026-01-02T00:00:00Z")
        store.jobs.run("weekly")
        assert contents(store) == [said], "word for word"
        assert store.memories.conflicts() == []


@pytest.mark.parametrize("relation", RELATIONS)
def test_what_somebody_has_worded_otherwise_is_theirs(
    tmp_path: Path, provider: Provider, relation: str
) -> None:
    (mine, other), merged = HARMLESS[1]
    provider.answer = scripted([(relation, (mine, other), merged)])
    with opened(tmp_path, provider) as store:
        name = store.memories.save("Anna sings.", source="extraction", ts="2026-01-01T00:00:00Z").memory_id
        store.memories.update(name, content=mine, ts="2026-01-02T00:00:00Z")
        store.memories.save(other, source="extraction", ts="2026-01-03T00:00:00Z")
        store.jobs.run("weekly")
        assert contents(store) == sorted([mine, other])
        assert [each.state for each in store.memories.conflicts()] == ["waiting"]


NUTS, ATE = "Anna is allergic to nuts.", "Anna ate nuts."


@pytest.mark.parametrize("said", [NUTS, "anna is allergic to NUTS.", "Anna is allergic to the nuts."])
@pytest.mark.parametrize(
    "given", [{}, {"importance": 1.0, "tags": ["vital"], "title": "EpiPen"}, {"category": "identity"}]
)
def test_what_somebody_saves_of_a_distilled_memory_is_theirs(
    tmp_path: Path, provider: Provider, said: str, given: dict[str, Any]
) -> None:
    provider.answer = scripted([("contradiction", (said, ATE), "Anna eats nuts.")])
    with opened(tmp_path, provider) as store:
        saved(store, NUTS)
        made = store.memories.save(said, event_id="by-hand", **given)
        assert store.memories.save(said, event_id="by-hand", **given).decision == made.decision == "saved"
        own = store.memories.get(made.memory_id)
        assert own is not None
        assert (own.source, own.content) == ("manual", said)
        assert {name: getattr(own, name) for name in given} == given
        category = given.get("category", "other")
        store.memories.save(ATE, source="extraction", category=category, dedup=False)
        store.jobs.run("weekly")
        assert {said, ATE} <= {*contents(store)}
        assert [each.state for each in store.memories.conflicts()] == ["waiting"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("Anna is wanted by the police.", "a word that nobody said"),
        ("Anna ate 3 nuts.", "a number that nobody said"),
        ("安娜吃猪肉。", "a word that nobody said"),
    ],
)
@pytest.mark.parametrize("source", ["extraction", "manual"])
def test_a_contradiction_is_decided_in_the_words_of_its_sources(
    tmp_path: Path, provider: Provider, text: str, why: str, source: str
) -> None:
    provider.answer = scripted([("contradiction", (NUTS, ATE), text)])
    with opened(tmp_path, provider) as store:
        saved(store, NUTS, ATE, source=source)
        store.jobs.run("weekly")
        assert contents(store) == sorted([NUTS, ATE])
        assert [each.proposed for each in store.memories.conflicts()] == [None] * (source == "manual")
        assert source == "manual" or f"{why} 1" in note_of(store)


@pytest.mark.parametrize("keep", [[1], [0, 1]])
def test_what_a_person_has_decided_for_is_theirs(tmp_path: Path, provider: Provider, keep: list[int]) -> None:
    turku, espoo, oulu = (f"Anna lives in {city}." for city in ("Turku", "Espoo", "Oulu"))
    provider.answer = scripted(
        [("contradiction", (turku, espoo), espoo), ("contradiction", (espoo, oulu), oulu)]
    )
    with opened(tmp_path, provider) as store:
        store.memories.save(turku, ts="2026-01-01T00:00:00Z")
        store.memories.save(espoo, source="extraction", dedup=False, ts="2026-01-02T00:00:00Z")
        store.jobs.run("weekly")
        before = state_of(store)
        (conflict,) = store.memories.conflicts()
        names = [conflict.memories[each].memory_id for each in keep]
        store.memories.resolve(conflict.id, keep=names)
        if len(names) == 1:
            store.memories.unmerge(names[0])
            assert state_of(store) == before
            store.memories.resolve(conflict.id, keep=names)
        store.memories.save(oulu, source="extraction", dedup=False)
        store.jobs.run("weekly")
        assert contents(store) == sorted([espoo, oulu, *([turku] if 0 in keep else [])])
        assert sorted(each.state for each in store.memories.conflicts()) == ["decided", "waiting"]


def test_of_two_of_one_time_the_one_saved_last_is_the_newer(tmp_path: Path, provider: Provider) -> None:
    provider.answer = scripted([("contradiction", (NUTS, ATE), ATE)])
    with opened(tmp_path, provider) as store:
        store.memories.save(NUTS, memory_id="z", ts="2026-01-01T00:00:00Z")
        store.memories.save(ATE, memory_id="a", source="extraction", dedup=False, ts="2026-01-01T00:00:00Z")
        store.jobs.run("weekly")
        assert contents(store) == sorted([NUTS, ATE])
        assert [each.state for each in store.memories.conflicts()] == ["waiting"]


def test_a_title_that_a_person_gave_stays(tmp_path: Path, provider: Provider) -> None:
    provider.answer = scripted([("contradiction", (NUTS, ATE), ATE)])
    with opened(tmp_path, provider) as store:
        saved(store, NUTS, ATE)
        for each in store.memories.list():
            if each.content == NUTS:
                store.memories.update(each.memory_id, title="EpiPen", ts="2026-01-01T12:00:00Z")
        store.jobs.run("weekly")
        assert [(each.content, each.title) for each in store.memories.list()] == [(ATE, "EpiPen")]


@pytest.mark.parametrize("relation", ["same", "update"])
@pytest.mark.parametrize("keep", ["proposed", "all", "first"])
def test_a_person_accepts_what_a_model_proposes_or_not(
    tmp_path: Path, provider: Provider, relation: str, keep: str
) -> None:
    texts, proposal = HARMLESS[1]
    provider.answer = scripted([(relation, texts, proposal)])
    with opened(tmp_path, provider) as store:
        saved(store, *texts, source="manual")
        store.jobs.run("weekly")
        (conflict,) = store.memories.conflicts()
        assert conflict.proposed is not None
        assert (conflict.state, conflict.relation, conflict.proposed.content) == (
            "waiting",
            relation,
            proposal,
        )
        assert contents(store) == sorted(texts)
        ids = [each.memory_id for each in conflict.memories]
        kept = {"proposed": [conflict.proposed.memory_id], "all": ids, "first": ids[:1]}[keep]
        with pytest.raises(memlog.BadInput):
            store.memories.resolve(conflict.id, keep=[conflict.proposed.memory_id, ids[0]])
        store.memories.resolve(conflict.id, keep=kept)
        assert contents(store) == {"proposed": [proposal], "all": sorted(texts), "first": [texts[0]]}[keep]
        if keep == "proposed":
            assert store.memories.list()[0].source == "manual"
        assert [each.state for each in store.memories.conflicts()] == ["decided"]
        store.jobs.run("weekly")
        assert [each.state for each in store.memories.conflicts()] == ["decided"]


def test_twenty_conflicts_wait_and_more_are_queued_with_their_texts_as_memories(
    tmp_path: Path, provider: Provider
) -> None:
    pairs = [(f"Friend {n} is allergic to nuts.", f"Friend {n} has a cat.") for n in range(25)]
    merged = [f"Friend {n} is allergic to nuts and has a cat." for n in range(25)]
    provider.answer = scripted([("update", pair, text) for pair, text in zip(pairs, merged, strict=True)])

    def counted(store: memlog.Store) -> tuple[int, int, list[str]]:
        states = [each.state for each in store.memories.conflicts()]
        status = store.maintenance.status()
        return status.memory_conflicts, status.memory_conflicts_queued, states

    with opened(tmp_path, provider) as store:
        for pair in pairs:
            saved(store, *pair, source="manual")
        store.jobs.run("weekly")
        assert counted(store) == (20, 5, ["waiting"] * 20 + ["queued"] * 5)
        texts = {text for pair in pairs for text in pair}
        queued = {each.proposed.content for each in store.memories.conflicts()[20:] if each.proposed}
        assert len(queued) == 5
        assert {*contents(store)} == texts | queued
        always = {
            each.content for each in store.context("Hello", record=False).entries if each.part == "always"
        }
        assert always.isdisjoint(merged)
        assert always
        first, *_, gone, last = store.memories.conflicts()
        store.memories.resolve(first.id, keep=[each.memory_id for each in first.memories])
        assert counted(store) == (20, 4, ["waiting"] * 20 + ["queued"] * 4 + ["decided"])
        assert gone.proposed is not None
        store.memories.delete(gone.proposed.memory_id)
        assert counted(store)[:2] == (20, 3)
        assert last.proposed is not None
        store.memories.resolve(last.id, keep=[last.proposed.memory_id])
        assert texts - {*contents(store)} == {each.content for each in last.memories}
        digest = store.maintenance.digest()
        store.maintenance.project(from_scratch=True)
        assert store.maintenance.digest() == digest


@pytest.mark.parametrize("forgotten", [0, 1])
def test_to_forget_a_memory_takes_what_was_proposed_in_its_place(
    tmp_path: Path, provider: Provider, forgotten: int
) -> None:
    texts, proposal = HARMLESS[1]
    provider.answer = scripted([("update", texts, proposal)])
    with opened(tmp_path, provider) as store:
        saved(store, *texts, source="manual")
        store.jobs.run("weekly")
        (conflict,) = store.memories.conflicts()
        store.erasure.forget(memory=conflict.memories[forgotten].memory_id)
        store.erasure.scrub()
        assert contents(store) == [texts[1 - forgotten]]
        assert store.erasure.prove(proposal).found == []
