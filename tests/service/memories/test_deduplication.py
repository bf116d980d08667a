"""A text that is saved is known, a newer saying of an older memory, or new."""

import json

import pytest

import memlog
from memlog.eventlog.codec.content_ids import derive_memory_id
from memlog.projector.passages import chunking
from tests.support.refusals import refused

TEA = "Anna drinks green tea every morning before work"
HOT_TEA = "Anna drinks hot green tea every morning before work"
CHAT = "telegram:7"


def day(number):
    return f"2026-02-{number:02}T08:00:00.000Z"


def contents(memories, **asked):
    return {memory.content for memory in memories.list(**asked)}


def types(memories, memory_id):
    return [event.type for event in memories.history(memory_id)]


def texts(memories, memory_id):
    """Every content that the history of a memory shows."""
    said = (json.loads(event.raw).get("content") for event in memories.history(memory_id))
    return [content for content in said if content is not None]


def without_counts(memory):
    return {name: getattr(memory, name) for name in memory.__struct_fields__} | {
        "access_count": None,
        "last_accessed": None,
    }


# Exact duplicates


def test_an_exact_duplicate_changes_nothing_but_a_count(memories):
    first = memories.save(TEA, importance=0.7, tags=["tea"], title="Tea")
    before = memories.get(first.memory_id)
    spellings = [TEA, f"  {TEA.upper()}\n", TEA.replace(" ", "  "), TEA.replace("A", "Ａ")]
    for count, again in enumerate(spellings, start=1):
        second = memories.save(again, importance=0.9, tags=["new"], title="Other", category="context")
        assert (second.memory_id, second.decision) == (first.memory_id, "already known"), again
        after = memories.get(first.memory_id)
        assert without_counts(after) == without_counts(before), again
        assert (before.access_count, after.access_count) == (0, count)
        assert types(memories, first.memory_id) == ["memory_saved", *["memory_accessed"] * count]
        assert second.event_id == second.position.id == memories.history(first.memory_id)[-1].id


def test_a_text_that_a_named_memory_says_is_known(memories):
    memories.save(TEA, memory_id="tea")
    saved = memories.save(TEA)
    assert (saved.memory_id, saved.decision) == ("tea", "already known")
    assert len(memories.list()) == 1


@pytest.mark.parametrize("leave", ["archive", "delete"])
def test_a_text_that_stands_no_longer_is_saved_anew(memories, leave):
    first = memories.save(TEA)
    getattr(memories, leave)(first.memory_id)
    second = memories.save(TEA)
    decision = {"archive": "already known", "delete": "saved"}[leave]
    assert (second.memory_id, second.decision) == (first.memory_id, decision)
    assert contents(memories) == {TEA}


def test_a_text_that_its_memory_no_longer_says_is_said_again(memories):
    first = memories.save("The tea house opens at eight")
    memories.update(first.memory_id, content="The tea house opens at nine")
    second = memories.save("The tea house opens at eight")
    assert (second.memory_id, second.decision) == (first.memory_id, "saved")
    assert contents(memories) == {"The tea house opens at eight"}
    assert len(texts(memories, first.memory_id)) == 3


def test_the_text_that_a_merged_memory_began_with_is_known(memories):
    first = memories.save(TEA)
    memories.save(HOT_TEA)
    again = memories.save(TEA)
    assert (again.memory_id, again.decision) == (first.memory_id, "already known")
    assert contents(memories) == {HOT_TEA}


def test_keys_that_were_masked_do_not_make_a_text_unknown(tmp_path):
    secret = "The key of the staging server is AKIAIOSFODNN7EXAMPLE"
    with memlog.open(tmp_path / "masking", redact=True) as store:
        first = store.memories.save(secret)
        assert "AKIA" not in store.memories.get(first.memory_id).content
        second = store.memories.save(secret)
        assert (second.memory_id, second.decision) == (first.memory_id, "already known")


# Near duplicates


def test_a_near_duplicate_is_one_update_of_the_older_memory(memories):
    first = memories.save(TEA, importance=0.6, tags=["tea"], ts=day(1))
    second = memories.save(HOT_TEA, importance=0.4, tags=["hot", "tea"], ts=day(2))
    assert second.memory_id == first.memory_id
    assert second.decision == f"merged into {first.memory_id}"
    (found,) = memories.list()
    assert (found.content, found.importance, found.tags) == (HOT_TEA, 0.7, ["tea", "hot"])
    assert (found.title, found.created_at, found.updated_at) == (HOT_TEA, day(1), day(2))
    assert (found.event_id, found.access_count) == (second.event_id, 0)
    assert types(memories, first.memory_id) == ["memory_saved", "memory_updated"]
    assert texts(memories, first.memory_id) == [TEA, HOT_TEA]


def test_only_a_merge_raises_importance_by_a_tenth_over_the_greater(memories):
    for older, newer, merged in (
        (0.5, 0.5, 0.6),
        (0.7, 0.2, 0.8),
        (0.2, 0.7, 0.8),
        (0.95, 0.5, 1.0),
        (1.0, 1.0, 1.0),
        (0.0, 0.0, 0.1),
    ):
        chat = f"telegram:{older} {newer}"
        saved = memories.save(TEA, importance=older, chat=chat)
        memories.save(TEA, importance=newer, chat=chat)
        assert memories.get(saved.memory_id).importance == older
        memories.save(HOT_TEA, importance=newer, chat=chat)
        assert memories.get(saved.memory_id).importance == merged, (older, newer)


def test_high_similarity_merges_and_increases_importance_in_the_examples_of_the_java_service(memories):
    chat = "session:1"
    examples = [
        ("The project deadline is March 15th", "fact", 0.9, "saved"),
        ("The project deadline is March 15th", "fact", 0.9, "already known"),
        ("User prefers bullet-point summaries", "preference", 0.7, "saved"),
        ("User prefers concise bullet-point summaries", "preference", 0.7, "merged"),
        ("User prefers bullet-point summaries", "preference", 0.7, "already known"),
        ("Revenue correlates with marketing spend in Q3", "insight", 0.8, "saved"),
        ("Q3 revenue increase correlates with marketing campaign launch", "insight", 0.8, "saved"),
    ]
    for content, kind, importance, decision in examples:
        done = memories.save(content, kind=kind, importance=importance, chat=chat)
        assert done.decision.startswith(decision), content
    (preference,) = memories.list(chat=chat, kind="preference")
    assert (preference.content, preference.importance) == (examples[3][0], 0.8)


def test_a_merge_takes_the_title_and_the_topic_that_the_newer_one_names(memories):
    saved = memories.save(TEA, title="Tea", source="conversation")
    memories.save(HOT_TEA, title="Hot tea", topic="drinks")
    found = memories.get(saved.memory_id)
    assert (found.title, found.topic, found.source) == ("Hot tea", "drinks", "conversation")


def test_of_several_memories_the_most_similar_one_takes_the_text(memories):
    memories.save("Anna drinks strong green tea every morning before work with milk", memory_id="far")
    memories.save(TEA, memory_id="near")
    assert memories.save(f"{TEA}!").decision == "merged into near"


def test_what_is_new_is_saved(memories):
    memories.save(TEA)
    saved = memories.save("The kettle is in the cellar")
    assert (saved.decision, saved.memory_id) == (
        "saved",
        derive_memory_id(None, "The kettle is in the cellar"),
    )
    assert len(memories.list()) == 2


def test_what_says_something_else_or_less_stands_beside(memories):
    others = [
        "Anna drinks green tea every evening before work",
        "Anna never drinks green tea every morning before work",
        "Hanna drinks green tea every morning before work",
        "Anna drinks green tea every morning",
    ]
    for newer in others:
        memories.save(TEA, chat=f"x:{newer}")
        assert memories.save(newer, chat=f"x:{newer}").decision == "saved", newer
        assert contents(memories, chat=f"x:{newer}") == {TEA, newer}


@pytest.mark.parametrize(
    "texts", [("The pool is 7² m.", "The pool is 72 m."), ("It makes 5 mW.", "It makes 5 MW.")]
)
def test_texts_with_one_id_and_other_quantities_are_two_memories(memories, texts):
    for text in (*texts, *texts):
        memories.save(text)
    assert contents(memories) == {*texts}
    assert len({each.memory_id for each in memories.list()}) == 2


def test_another_kind_category_or_topic_is_another_memory(memories):
    for more in ({"kind": "insight"}, {"category": "context"}, {"topic": "work"}):
        memories.save(TEA, topic="drinks", chat=f"x:{more}")
        assert memories.save(HOT_TEA, chat=f"x:{more}", **more).decision == "saved", more
        assert len(memories.list(chat=f"x:{more}")) == 2


def test_an_archived_memory_takes_no_text(memories):
    memories.archive(memories.save(TEA).memory_id)
    assert memories.save(HOT_TEA).decision == "saved"


def test_what_happened_before_a_memory_changed_does_not_replace_it(memories):
    memories.save(HOT_TEA, ts=day(2))
    assert memories.save(f"{HOT_TEA}, really", ts=day(1)).decision == "saved"
    assert contents(memories) == {HOT_TEA, f"{HOT_TEA}, really"}


# Scope


@pytest.mark.parametrize("other", [None, "telegram:8"])
@pytest.mark.parametrize("newer", [TEA, HOT_TEA])
def test_deduplication_never_crosses_a_chat(memories, other, newer):
    memories.save(TEA, chat=CHAT)
    assert memories.save(newer, chat=other).decision == "saved"
    assert len(memories.list()) == 2


def test_memories_of_other_chats_leave_room_for_those_of_this_one(memories):
    for number in range(60):
        memories.save(HOT_TEA, chat=f"x:{number}", dedup=False)
    first = memories.save(TEA, dedup=False)
    assert memories.save(HOT_TEA).memory_id == first.memory_id


@pytest.mark.parametrize(("newer", "decision"), [(TEA, "already known"), (HOT_TEA, "merged into m")])
def test_deduplication_crosses_chats_where_it_is_asked_to(memories, newer, decision):
    memories.save(TEA, chat=CHAT, memory_id="m")
    assert memories.save(newer, chat="telegram:8", any_chat=True).decision == decision
    assert [memory.chat for memory in memories.list()] == [CHAT]


def test_of_two_chats_that_know_a_text_its_own_is_counted(memories):
    memories.save(TEA, chat=CHAT, memory_id="other")
    memories.save(TEA, memory_id="own")
    assert memories.save(TEA, any_chat=True).memory_id == "own"


# Without deduplication


def test_without_deduplication_everything_is_saved(memories):
    first = memories.save(TEA)
    assert memories.save(HOT_TEA, dedup=False).decision == "saved"
    again = memories.save(TEA, dedup=False, importance=0.9)
    assert (again.memory_id, again.decision) == (first.memory_id, "saved")
    assert memories.get(first.memory_id).importance == 0.9
    assert len(memories.list()) == 2


def test_a_given_memory_id_is_never_merged(memories):
    memories.save(TEA)
    assert memories.save(TEA, memory_id="m").decision == "saved"
    assert memories.save(HOT_TEA, memory_id="n").decision == "saved"
    assert len(memories.list()) == 3


def test_any_chat_is_refused_where_no_duplicate_is_looked_for(memories):
    for more in ({"dedup": False}, {"memory_id": "m"}):
        with refused(more):
            memories.save(TEA, any_chat=True, **more)
        assert memories.list() == [], more


# A second try with one id


@pytest.mark.parametrize(
    ("before", "text"), [([], TEA), ([TEA], TEA), ([TEA], HOT_TEA)], ids=["saved", "known", "merged"]
)
def test_a_save_that_is_tried_again_is_one_event_and_one_answer(store, before, text):
    for each in before:
        store.memories.save(each)
    first = store.memories.save(text, event_id="once")
    second = store.memories.save(text, event_id="once")
    assert (second.memory_id, second.decision, second.event_id) == (first.memory_id, first.decision, "once")
    assert len(store.memories.history(first.memory_id)) == len(before) + 1
    assert store.maintenance.status().conflicts == 0


def test_an_id_that_another_event_has_is_refused(store):
    memories = store.memories
    memories.save("The kettle is in the cellar", memory_id="m", event_id="saved")
    memories.update("m", content="The kettle is upstairs", event_id="updated")
    store.append([memlog.MemoryArchived(id="archived", memory_id="m")])
    for taken in ("saved", "updated", "archived"):
        with refused(taken) as caught:
            memories.save(TEA, event_id=taken)
        assert caught.value.code == "bad_input"
    assert contents(memories) == set()


# Texts of every length and script


def test_a_text_of_next_to_nothing_is_saved_once(memories):
    texts = ["?", "…", "a", "茶", "  tea ", '"', "🍵", "-" * 300]
    for text in texts:
        assert memories.save(text).decision == "saved", text
        assert memories.save(text).decision == "already known", text
    assert len(memories.list()) == len(texts)


def test_a_long_text_is_saved_without_being_cut(store, monkeypatch):
    """A save leaves the splitting into passages to the next read."""
    store.memories.list()
    for name in ("split_into_chunks", "split_plainly"):
        monkeypatch.setattr(chunking, name, lambda *_: pytest.fail("it was cut"))
    assert store.memories.save("Anna drinks green tea. " * 90_000).decision == "saved"


def test_long_texts_are_compared_by_their_beginning_and_not_at_all_above_a_limit(memories):
    long = " ".join(f"Line {number} of the minutes is about the roof." for number in range(200))
    first = memories.save(long)
    assert len(long) < 10_000
    assert memories.save(f"{long} (agreed)").decision == f"merged into {first.memory_id}"
    longer = f"{long} {long}"
    assert memories.save(longer).decision == "saved"
    assert memories.save(f"{longer} (agreed)").decision == "saved"
    assert memories.save(longer.upper()).decision == "already known"


# Decided by the log as it is


def test_a_save_waits_for_a_projector_and_does_not_go_by_an_old_read_model(store):
    from memlog.eventlog.files.locks import holding_lock

    store.memories.list()
    with memlog.open(store.path, lock_timeout=0.1) as hurried:
        hurried.memories.list()
        store.memories.save(TEA, dedup=False)
        with holding_lock(store.path / "projector.lock", "a test", 1.0), pytest.raises(memlog.Busy):
            hurried.memories.save(TEA)
        assert hurried.memories.save(TEA).decision == "already known"


def test_a_duplicate_of_a_line_that_was_written_by_hand_is_known(store):
    store.append([memlog.MemorySaved(content=TEA)])
    assert store.memories.save(TEA).decision == "already known"


def test_replay_gives_the_same_memories(store):
    for text in (TEA, TEA, HOT_TEA, TEA, "The kettle is in the cellar"):
        store.memories.save(text)
    assert store.maintenance.verify().ok


ROUNDS = 5


def _save(path, number, barrier, answers):
    with memlog.open(path) as store:
        for step in range(ROUNDS):
            barrier.wait(60)
            one = store.memories.save(f"Parcel {step * 1111} was left at the door")
            near = store.memories.save(
                f"Box {step * 1111} stands in the {'dark ' * number}cellar of the house"
            )
            answers.put((step, number, one.memory_id, one.decision, near.memory_id))


def test_two_processes_that_save_one_text_at_once_end_with_one_memory(spawning, store):
    """Of texts that are alike one or both stand, and the history has both."""
    barrier, answers = spawning.Barrier(2), spawning.Queue()
    processes = [
        spawning.Process(target=_save, args=(store.path, number, barrier, answers)) for number in (0, 1)
    ]
    for process in processes:
        process.start()
    found = [answers.get(timeout=120) for _ in range(2 * ROUNDS)]
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0, 0]
    for step in range(ROUNDS):
        ours = [answer for answer in found if answer[0] == step]
        assert len({memory_id for _, _, memory_id, _, _ in ours}) == 1
        assert {decision for _, _, _, decision, _ in ours} <= {"saved", "already known"}
        said = {text for *_, memory_id in ours for text in texts(store.memories, memory_id)}
        assert said == {f"Box {step * 1111} stands in the {'dark ' * n}cellar of the house" for n in (0, 1)}
    standing = [memory.content for memory in store.memories.list()]
    assert sum(content.startswith("Parcel") for content in standing) == ROUNDS
    assert store.maintenance.verify().ok


@pytest.mark.parametrize(
    ("distilled", "left"),
    [
        ("Anna really drinks tea in the morning", ["Anna drinks tea in the morning"]),
        (
            "Anna drinks green tea in the morning",
            ["Anna drinks green tea in the morning", "Anna drinks tea in the morning"],
        ),
    ],
)
def test_a_model_words_nothing_anew_that_somebody_saved(tmp_path, distilled, left):
    with memlog.open(tmp_path) as store:
        store.memories.save("Anna drinks tea in the morning")
        store.memories.save(distilled, source="extraction")
        assert sorted(each.content for each in store.memories.list()) == left
