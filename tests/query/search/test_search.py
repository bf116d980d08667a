"""Search over messages and memories: BEHAVIOUR C1, C2, C3 and C4, and the four languages of the week."""

import shutil

import pytest

import memlog
from memlog.eventlog.events import MemorySaved, Message
from memlog.query.search import request
from memlog.query.search.request import parse_query
from tests.support.places import FIXTURES

STRANGERS = ["The boy walks to school.", "Her flight to Oslo was cancelled."]
"""Less alike to a kettle than nothing at all."""


@pytest.fixture
def store(tmp_path):
    """An empty store."""
    with memlog.open(tmp_path / "store") as opened:
        yield opened


@pytest.fixture(scope="module")
def week(tmp_path_factory):
    store = tmp_path_factory.mktemp("week")
    shutil.copytree(FIXTURES / "week" / "log", store / "log")
    with memlog.open(store) as opened:
        opened.maintenance.project()
        yield opened


ALONE = memlog.Ranking(context=False)
"""No message counts for another."""


def said(content, *, chat="1", role="user", **more):
    return Message(channel="cli", chat_id=chat, role=role, content=content, **more)


def contents(result):
    return [hit.content for hit in result.hits]


def test_a_question_finds_its_answer_in_each_language(week):
    for question, expected in (
        ("E1234 short write backup", "w-004"),
        ("What hung up the nightly backup?", "pi-backup-e1234"),
        ("поезд в Казань", "dmitry-kazan-train"),
        ("书法", "lilei-calligraphy-evening"),
        ("kiuas kivet", "mokin-kiuas-kivet"),
    ):
        for mode in ("text", "hybrid"):
            hits = week.search(question, mode=mode, k=3).hits
            assert expected in [hit.id for hit in hits], (question, mode)


def test_vectors_find_what_shares_no_word(store):
    store.append([said("The kettle is on the stove."), said("Interest rates rose again.")])
    result = store.search("boiling water for tea", mode="vector")
    assert contents(result)[0] == "The kettle is on the stove."
    assert store.search("boiling water for tea", mode="text").hits == []


def test_the_speaker_is_part_of_what_is_searched(store):
    store.append([said("I was in Oulu.", name="Aino"), said("I was in Turku.", name="Pekka")])
    assert contents(store.search("Pekka", mode="text", ranking=ALONE)) == ["I was in Turku."]
    assert contents(store.search("Pekka", mode="vector"))[0] == "I was in Turku."


def test_words_match_their_english_stems_and_what_begins_with_them(store):
    store.append([said("He was running late"), said("Raspberries are ripe"), said("Поезда опаздывают")])
    assert contents(store.search("runs", mode="text", ranking=ALONE)) == ["He was running late"]
    assert contents(store.search("rasp", mode="text", ranking=ALONE)) == ["Raspberries are ripe"]
    assert contents(store.search("поезд", mode="text", ranking=ALONE)) == ["Поезда опаздывают"]


def test_two_letters_are_no_prefix(store):
    store.append([said("raspberry")])
    assert store.search("ra", mode="text").hits == []


def test_chinese_is_found_by_any_of_its_characters(store):
    store.append([said("我喜欢喝绿茶"), said("今天下雨")])
    for question in ("茶", "绿茶", "喝绿", "喝", "我喜欢喝绿茶"):
        assert contents(store.search(question, mode="text", ranking=ALONE)) == ["我喜欢喝绿茶"], question


def test_double_quotes_make_a_phrase(store):
    store.append(
        [said("green tea with milk"), said("tea that is green"), said("绿茶很好喝"), said("喝很绿茶")]
    )
    assert contents(store.search('"green tea"', mode="text", ranking=ALONE)) == ["green tea with milk"]
    assert contents(store.search('"茶很好"', mode="text", ranking=ALONE)) == ["绿茶很好喝"]


def test_stop_words_are_left_out_where_something_remains():
    assert parse_query("What did the cat do?").words == ("cat",)
    assert parse_query("to be or not to be").words == ("to", "be", "or", "not")


def test_k_counts_messages_and_memories_never_chunks(store):
    long = "\n\n".join(f"Paragraph {number} about the tea harvest. " * 30 for number in range(6))
    store.append([MemorySaved(content=long, memory_id="long"), *[said(f"tea {n}") for n in range(5)]])
    store.maintenance.project()
    for mode in ("text", "vector", "hybrid"):
        ids = [hit.id for hit in store.search("tea harvest", mode=mode, k=4).hits]
        assert len(ids) == len(set(ids)) == 4


def test_more_than_the_default_depth_can_be_asked_for(store):
    store.append([said(f"tea number {number}") for number in range(60)])
    store.maintenance.project()
    for mode in ("text", "vector", "hybrid"):
        assert len(store.search("tea", mode=mode, k=60).hits) == 60


def test_scores_are_between_0_and_1_and_similarity_is_null_where_only_text_found_it(store):
    store.append([said("The tea is green."), said("xyzzy tea")])
    store.maintenance.project()
    both = store.search("tea", mode="hybrid").hits
    assert all(0 < hit.score <= 1 for hit in both)
    assert all(0 <= hit.similarity <= 1 for hit in both)
    assert [hit.similarity for hit in store.search("tea", mode="text").hits] == [None, None]


def test_what_is_first_on_both_sides_has_score_1(store):
    store.append([said("The kettle boils."), said("Rates rose.")])
    store.maintenance.project()
    assert store.search("kettle", mode="hybrid").hits[0].score == 1


@pytest.fixture
def mixed(store):
    store.append(
        [
            said("tea one", chat="1", role="user", ts="2026-02-24T08:00:00Z", id="a"),
            said("tea two", chat="1", role="assistant", ts="2026-02-25T08:00:00Z", id="b"),
            said("tea three", chat="2", role="user", ts="2026-02-26T08:00:00Z", id="c"),
            MemorySaved(content="tea four", memory_id="m1", category="event", ts="2026-02-25T08:00:00Z"),
            MemorySaved(
                content="tea five", memory_id="m2", chat_id="cli:1", ts="2026-02-26T08:00:00Z", id="e"
            ),
        ]
    )
    store.maintenance.project()
    return store


FILTERS = [
    ({}, {"a", "b", "c", "m1", "m2"}),
    ({"kinds": frozenset({"message"})}, {"a", "b", "c"}),
    ({"kinds": frozenset({"memory"})}, {"m1", "m2"}),
    ({"chat": ("cli", "1")}, {"a", "b", "m2"}),
    ({"role": "user"}, {"a", "c"}),
    ({"category": "event"}, {"m1"}),
    ({"since": "2026-02-25T08:00:00.000Z"}, {"b", "c", "m1", "m2"}),
    ({"until": "2026-02-25T08:00:00.000Z"}, {"a"}),
    ({"exclude": frozenset({"a", "m1", "e"})}, {"b", "c"}),
    ({"role": "user", "category": "event"}, set()),
]


def test_filters_leave_in_what_they_say(mixed):
    for mode in ("text", "vector", "hybrid"):
        for filters, expected in FILTERS:
            result = mixed.search("tea", mode=mode, filters=memlog.Filters(**filters))
            assert {hit.id for hit in result.hits} == expected, (filters, mode)


@pytest.fixture
def of_each_source(store):
    """A hit of each source, named for it."""
    files = {"guide": "tea.md", "notes": "MEMORY.md"}
    store.append(
        [
            said("tea", id="conversation"),
            MemorySaved(content="tea here", memory_id="manual", topic="drinks", tags=["green", "hot"]),
            MemorySaved(content="tea there", memory_id="faded", source="migration", tags=["green"]),
            memlog.MemoryUpdated(memory_id="faded", salience=0.1),
            memlog.SummaryWritten(id="summary", channel="cli", chat_id="1", content="tea was drunk"),
            memlog.SourceRegistered(source_id="notes", kind="memory", root="/notes"),
            *(
                memlog.DocumentIndexed(source_id=each, file=files[each], content=f"tea of {each}")
                for each in files
            ),
        ]
    )
    store.maintenance.project()
    return store


BY_SOURCE = [
    ({"source": "conversation"}, {"conversation"}),
    ({"source": "manual"}, {"manual"}),
    ({"source": "migration"}, {"faded"}),
    ({"source": "summary"}, {"summary"}),
    ({"source": "MEMORY.md"}, {"notes/MEMORY.md"}),
    ({"source": "guide"}, {"guide/tea.md"}),
    ({"source": "guide", "role": "user"}, set()),
    ({"topic": "drinks"}, {"manual"}),
    ({"tag": "green"}, {"manual", "faded"}),
    ({"tag": "gree"}, set()),
    ({"tag": "green", "topic": "drinks"}, {"manual"}),
    ({"min_salience": 0.2}, {"conversation", "manual", "summary", "guide/tea.md", "notes/MEMORY.md"}),
    ({"min_salience": 0.1, "tag": "green"}, {"manual", "faded"}),
]


def test_filters_by_source_topic_tag_and_salience(of_each_source):
    for mode in ("text", "vector", "hybrid"):
        for filters, expected in BY_SOURCE:
            result = of_each_source.search("tea", mode=mode, filters=memlog.Filters(**filters))
            assert {hit.id for hit in result.hits} == expected, (filters, mode)
            if "source" in filters:
                assert {hit.source for hit in result.hits} <= {filters["source"]}, mode


def test_filters_apply_before_the_cut(store):
    store.append([said("tea " * 5, chat="loud") for _ in range(200)])
    store.append([said(f"some tea, number {number}, and other things", chat="quiet") for number in range(12)])
    store.maintenance.project()
    for mode in ("text", "vector"):
        result = store.search("tea", mode=mode, k=12, filters=memlog.Filters(chat=("cli", "quiet")))
        assert len(result.hits) == 12, mode


def test_equal_scores_are_ordered_newer_first_and_the_same_each_time(store):
    store.append([said(f"same words {n:02}", ts=f"2026-02-24T08:00:{n:02}Z", id=f"m{n}") for n in range(45)])
    first = [hit.id for hit in store.search("same words", mode="text", k=5).hits]
    assert first == ["m44", "m43", "m42", "m41", "m40"]
    store.maintenance.project(from_scratch=True, embed=False)
    assert [hit.id for hit in store.search("same words", mode="text", k=5).hits] == first


def test_min_similarity_leaves_out_hits_by_words_alone_if_they_have_a_vector(store):
    store.append([said("The kettle is on the stove."), said("Interest rates rose again, said the banker.")])
    store.maintenance.project()
    assert len(store.search("kettle banker", k=5, min_similarity=0.0).hits) == 2
    assert store.search("kettle banker", min_similarity=0.9).hits == []
    store.append([said("Чайник и banker.")])  # the model does not read it
    assert [each.content[:4] for each in store.search("banker", min_similarity=0.9).hits] == ["Чайн"]


def test_min_similarity_leaves_out_what_only_meaning_finds(store):
    store.append([said("The kettle is on the stove."), said("Interest rates rose again.")])
    store.maintenance.project()
    assert len(store.search("kettle", mode="vector").hits) == 2
    assert len(store.search("kettle", mode="vector", min_similarity=0.3).hits) == 1


def test_nothing_is_left_out_for_its_similarity_unless_asked(store, embedder):
    """A cosine below 0 is no reason to give fewer hits than there are."""
    kettle, *others = embedder.embed(["kettle", *STRANGERS])
    assert all(kettle @ other < 0 for other in others)
    store.append([said(text) for text in STRANGERS])
    store.maintenance.project()
    hits = store.search("kettle", mode="vector").hits
    assert len(hits) == len(STRANGERS)
    assert {hit.similarity for hit in hits} == {0.0}
    assert store.search("kettle", mode="vector", min_similarity=0.0).hits == []


def test_a_query_finds_what_was_appended_before_it_and_embeds_16(store):
    store.append([said(f"tea {number}") for number in range(20)])
    result = store.search("tea", k=20)
    assert len(result.hits) == 20
    assert result.synced is True
    assert result.silent == {"pending": "4 passages have no vector yet: project the log"}
    assert store.search("tea").silent == {}


def test_vectors_of_two_models_never_meet(store, embedder):
    store.append([said("The kettle is on the stove.")])
    store.maintenance.project()

    class Other:
        id = "other/f32/000000000000/mean/512"
        dimension = 3

        is_remote = False

        def embed(self, texts, kind="passage"):
            import numpy as np

            return np.eye(3, dtype=np.float32)[:1].repeat(len(texts), axis=0)

    store._engine.read_model.model._models[0]._loaded = Other()
    unsynced = store.search("kettle", mode="vector", sync=False)
    assert unsynced.hits[0].similarity < 1.0
    assert "searches use all-MiniLM" in unsynced.silent["pending"]
    assert [hit.similarity for hit in store.search("kettle", mode="vector").hits] == [1.0]
    store._engine.read_model.model._models[0]._loaded = embedder
    assert store.maintenance.project().vectors_cached == 1


def test_a_snippet_has_at_most_200_characters_around_the_first_word(store):
    content = "Nothing to see here. " * 40 + "The kettle boils. " + "Nothing more. " * 40
    store.append([said(content), said("short kettle")])
    short, long = sorted((hit.snippet for hit in store.search("kettle", mode="text").hits), key=len)
    assert short == "short kettle"
    assert "The kettle boils." in long
    assert len(long) <= 200
    assert long.startswith("…")
    assert long.endswith("…")


def test_a_memory_without_a_word_of_its_title_is_found_by_its_title(store):
    store.append([MemorySaved(content="Use the blue box.", title="Allergy kit", memory_id="kit")])
    (hit,) = store.search("allergy", mode="text").hits
    assert (hit.kind, hit.id, hit.title, hit.source) == ("memory", "kit", "Allergy kit", "manual")


def test_a_memory_saved_again_is_found_by_its_new_words_alone(store):
    store.append([MemorySaved(content="likes green tea", memory_id="drink")])
    store.maintenance.project()
    store.append([MemorySaved(content="likes black coffee", memory_id="drink")])
    assert contents(store.search("coffee", mode="hybrid")) == ["likes black coffee"]
    assert store.search("tea", mode="text").hits == []
    assert store.maintenance.verify().ok


def test_raw_syntax_is_fts5s_own_and_an_error_in_it_is_the_askers(store):
    store.append([said("green tea", id="a"), said("black tea", id="b"), said("green moss", id="c")])
    found = store.search("tea NOT green", mode="text", is_raw=True)
    assert [hit.id for hit in found.hits] == ["b"]
    with pytest.raises(memlog.BadInput, match="FTS5 does not understand"):
        store.search("tea AND", mode="text", is_raw=True)


def test_what_matches_nothing_gives_an_empty_list(store):
    store.append([said("green tea")])
    result = store.search("quantum", mode="text")
    assert (result.hits, result.silent) == ([], {})


def test_a_question_of_16_mib_is_read_to_its_100_000th_character_and_says_so(store, monkeypatch):
    store.append([memlog.Message(channel="cli", chat_id="1", role="user", content="green tea")])
    read = []
    for name in ("split_question_into_words", "find_names_in_question"):
        work = getattr(request, name)
        monkeypatch.setattr(request, name, lambda text, work=work: read.append(len(text)) or work(text))
    found = store.search("green " * (16 * 1024 * 1024 // 6), mode="text")
    assert read
    assert max(read) <= 100_000
    assert [hit.content for hit in found.hits] == ["green tea"]
    assert found.silent == {"text": "only the first 100,000 characters of the question were read"}
