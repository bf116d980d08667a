"""A value that a person removed from the profile, or replaced, stays away under any key."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import memlog
from memlog.query.records import RejectedValue
from memlog.service.memory.rejected_values import is_rejected
from tests.support.provider import Provider


def opened(path: Path, provider: Provider) -> memlog.Store:
    model = memlog.LanguageModelProvider(base_url=provider.url, model="m")
    return memlog.open(path, language_model=model)


def refreshed(store: memlog.Store, provider: Provider, **entries: str) -> dict[str, str]:
    """The user's core memory behind a weekly job in which the model gives these entries."""
    given = [{"key": key, "value": value, "numbers": [1]} for key, value in entries.items()]
    provider.answer = lambda asked: json.dumps(
        {"groups": []} if asked.startswith("[") else {"entries": given}
    )
    store.memories.save(f"Anna said something, the {len(provider.asked)}th time.", dedup=False)
    store.jobs.run("weekly")
    return store.core.get("user")


REJECTED = [
    ("city", "Turku", "hometown", "Turku"),
    ("city", "Turku", "residence", " TURKU. "),
    ("city", "Turku", "where_anna_lives", "Anna lives in Turku"),
    ("city", "Turku", "address", "lives in Turku city"),
    ("diet", "vegetarian", "dietary_preference", "strict vegetarian"),
    ("diet", "vegetarian", "food", "The user is a vegetarian."),
    ("allergies", "Allergic to penicillin and nuts", "allergy", "penicillin"),
    ("allergies", "Allergic to penicillin and nuts", "health", "Allergic to penicillin"),
    ("work", "Anna works as a carpenter in Helsinki", "occupation", "Anna works as a carpentr in Helsinki"),
    ("smoker", "yes", "is_smoker", "Yes"),
    ("birth_year", "1985", "year_of_birth", "1985"),
    ("город", "Турку", "место", "турку"),
    ("city", "图尔库", "home", "住在图尔库"),
]
OTHERS = [
    ("city", "Turku", "former_city", "Anna moved from Turku to Espoo in May"),
    ("city", "Turku", "hometown", "Tampere"),
    ("drink", "tea", "allergies", "Allergic to tea"),
    ("diet", "vegetarian", "diet_note", "not vegetarian"),
    ("smoker", "yes", "vegetarian", "yes"),
    ("pets", "2", "children", "2"),
    ("work", "Works in IT", "office", "Works at home"),
]


FORMS = [
    ("Turku", "Resident of Turku"),
    ("Turku", "lives near Turku"),
    ("Turku", "Turku, Finland"),
    ("Turku", "living in Turku with Boris since 2019"),
    ("Turku", "Asuu Turussa"),
    ("Turku", "T u r k u"),
    ("Москва", "живёт в Москве"),
    ("Oulu", "Asuu Oulussa"),
    ("Köln", "wohnt in Köln"),
    ("上海", "安娜住在上海"),
    ("Boris", "Husband: Boris"),
    ("engineer at Nokia", "Nokia engineer"),
    ("depression", "suffers from depression"),
    ("1990-05-12", "12 May 1990"),
    ("12 мая 1990", "12.5.1990"),
    ("May 12, 1990", "Born on 12.05.1990 in Turku"),
    ("+358 40 123 4567", "0401234567"),
    ("040 1234567", "+358-40-123-4567"),
]
UNLIKE = [
    ("green tea", "green salad"),
    ("engineer at Nokia", "engineer of model trains"),
    ("teacher", "Married to a teacher of French"),
    ("Boris", "Borat"),
    ("Ann", "Annapolis"),
    ("Москва", "Минск"),
    ("上海", "北京"),
    ("vegan", "not vegan"),
    ("Turku", "Moved away from Turku"),
    ("1990-05-12", "2012-06-01"),
    ("+358 40 123 4567", "+358 50 999 8888"),
    ("two", "2"),
]


@pytest.mark.parametrize(("old", "new"), [*FORMS, *UNLIKE])
def test_a_rejected_value_is_known_in_other_forms_and_notations(old: str, new: str) -> None:
    assert is_rejected("one", new, [RejectedValue("other", old)]) is ((old, new) in FORMS)


@pytest.mark.parametrize(("old", "new"), [("two", "2"), ("2", "kaksi"), ("два", "two children")])
def test_a_number_is_known_in_words_under_a_key_like_the_old_one(old: str, new: str) -> None:
    assert is_rejected("children_count", new, [RejectedValue("children", old)])


def removed(store: memlog.Store, key: str) -> None:
    store.core.delete("user", key)


def replaced(store: memlog.Store, key: str) -> None:
    store.core.set("user", key, "something else")


@pytest.mark.parametrize("by", ["a model", "a person"])
@pytest.mark.parametrize("reject", [removed, replaced])
@pytest.mark.parametrize(("key", "value", "new_key", "new_value"), [*REJECTED, *OTHERS])
def test_a_rejected_value_stays_away_under_any_key(
    tmp_path: Path,
    provider: Provider,
    key: str,
    value: str,
    new_key: str,
    new_value: str,
    reject: Callable[[memlog.Store, str], None],
    by: str,
) -> None:
    with opened(tmp_path, provider) as store:
        if by == "a model":
            assert refreshed(store, provider, **{key: value}) == {key: value}
        else:
            store.core.set("user", key, value)
        reject(store, key)
        standing = store.core.get("user")
        is_rejected = (key, value, new_key, new_value) in REJECTED
        found = refreshed(store, provider, **{new_key: new_value})
        assert found == standing | ({} if is_rejected else {new_key: new_value.strip()})
        digest = store.maintenance.digest()
        store.maintenance.project(from_scratch=True)
        assert store.maintenance.digest() == digest


def test_what_a_person_has_set_again_is_not_rejected(tmp_path: Path, provider: Provider) -> None:
    with opened(tmp_path, provider) as store:
        for city in ("Turku", "Espoo", "Turku"):
            store.core.set("user", "city", city)
        assert refreshed(store, provider, home="Espoo", hometown="Turku") == {
            "city": "Turku",
            "hometown": "Turku",
        }


def test_what_the_model_itself_replaced_is_not_rejected(tmp_path: Path, provider: Provider) -> None:
    with opened(tmp_path, provider) as store:
        assert refreshed(store, provider, city="Turku") == {"city": "Turku"}
        assert refreshed(store, provider, city="Espoo") == {"city": "Espoo"}
        assert refreshed(store, provider, birthplace="Turku") == {"city": "Espoo", "birthplace": "Turku"}


def test_a_forgotten_value_is_kept_nowhere(tmp_path: Path, provider: Provider) -> None:
    with opened(tmp_path, provider) as store:
        assert refreshed(store, provider, city="Turku") == {"city": "Turku"}
        removed(store, "city")
        for memory in store.memories.list():
            store.erasure.forget(memory=memory.memory_id)
        store.erasure.scrub()
        assert store.erasure.prove("Turku").found == []
        assert refreshed(store, provider, city="Turku") == {}
