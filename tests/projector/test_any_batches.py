"""Law 2: any log, cut into any batches, with restarts, rebuilds and late lines, gives the read model of one
replay, and the same answers to the same questions, scores included."""

import tempfile
from pathlib import Path

import msgspec
import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memlog.eventlog.codec.encode import draft_event
from memlog.projector.embedding.models import Models
from memlog.projector.lifecycle import Projector
from memlog.projector.passages import index
from memlog.projector.sqlite import why_no_vectors
from memlog.projector.verify import dump_tables, hash_fulltext_index, verify_read_model
from memlog.query.search.hybrid import search_read_model
from memlog.query.search.request import Search
from tests.support.drawn_events import DAYS, TIMES, foreign_lines, logs
from tests.support.examples import examples
from tests.support.in_memory import memory
from tests.support.row_checks import check_rows

QUESTIONS = ["tea", "run", "чай", "茶", "绿茶", '"tea run"', "käsi the", "E1234 tea", "поезд running", "b"]


@st.composite
def segments(draw):
    """The bytes of each segment of a log, by its path below the store."""
    contents: dict[str, bytes] = {}
    events = draw(logs)
    # Of some logs an event now and then repeats another, or contradicts it.
    one_in = draw(st.sampled_from([None, 4, 12]))
    for number, event in enumerate(events):
        again = draw(st.integers(1, one_in)) if number and one_in else None
        said = draw(st.sampled_from(events[:number])) if again == 1 else event
        own = draw(st.integers(0, number)) if again == 2 else events.index(said)
        made = draft_event(said | {"id": f"id-{own}"})
        path = f"log/{made.stream}/{draw(st.sampled_from(DAYS))}.jsonl"
        contents[path] = contents.get(path, b"") + made.build_line("2026-02-26T09:00:00.000Z")
        if draw(st.integers(0, 5)) == 0:
            contents[path] += draw(foreign_lines)
    was_killed = draw(st.booleans())
    for path in contents:
        if was_killed and draw(st.booleans()):
            # Before the newline, or within the line.
            contents[path] = contents[path][: -draw(st.sampled_from([1, 30]))]
    return contents


STEPS = ["project", "project", "project", "project", "embed", "restart", "rebuild", "nothing", "nothing"]
"""What is done between pieces. A rebuild hides all that was wrong before it, so it is not done often."""


@st.composite
def deliveries(draw, contents):
    """The same bytes in pieces, each segment's in order, and what is done between them."""
    steps = []
    left = dict(contents)
    # Some in whole lines only: a cut one makes its stream be replayed, which would hide much.
    has_cuts = draw(st.booleans())
    while left:
        path = draw(st.sampled_from(sorted(left)))
        size = len(left[path].splitlines(keepends=True)[0])
        if has_cuts:
            size = draw(st.one_of(st.just(size), st.integers(1, 400)))
        steps.append((path, left[path][:size]))
        left[path] = left[path][size:]
        if not left[path]:
            del left[path]
        steps.append(draw(st.sampled_from(STEPS)))
    return steps


def deliver(store: Path, path: str, data: bytes) -> None:
    target = store / path
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("ab") as file:
        file.write(data)


class Letters:
    """Vectors that say which letters a text has. What is compared here is which passage has which vector; a
    model of language would take most of the test's time to say it no better."""

    id = "letters"
    dimension = 16

    is_remote = False

    def embed(self, texts, kind="passage"):
        counts = np.array(
            [
                np.bincount([ord(each) % self.dimension for each in f" {text}"], minlength=16)
                for text in texts
            ],
            dtype=np.float32,
        )
        return counts / np.linalg.norm(counts, axis=1, keepdims=True)


LETTERS = Letters() if why_no_vectors() is None else None


def embed(projector: Projector) -> None:
    if LETTERS:
        projector.embed_passages(LETTERS)


def project_step_by_step(store: Path, steps) -> Projector:
    projector = Projector(store, models=lambda: [LETTERS])
    for step in steps:
        if isinstance(step, tuple):
            deliver(store, *step)
        elif step == "project":
            projector.catch_up()
        elif step == "embed":
            projector.catch_up()
            embed(projector)
        elif step == "rebuild":
            projector.rebuild_generation("a test")
        elif step == "restart":
            projector.catch_up()
            projector.close()
            projector = Projector(store, models=lambda: [LETTERS])
    projector.catch_up()
    embed(projector)
    return projector


def project_at_once(store: Path) -> Projector:
    projector = Projector(store, models=lambda: [LETTERS])
    projector.catch_up()
    embed(projector)
    return projector


def passage_vectors(projector: Projector):
    """What each vector is of; None where its passage is gone."""
    db = projector.connect_to_live()
    owners = {
        index.MEMORY: "stream,"
        " coalesce(memory_id, message_id, summary_id, fact_id, daily_event_id, document_id)",
        index.DOCS: "stream, document_id",
    }
    return [
        db.execute(
            f"SELECT {owner}, chunk_index, embedding FROM {shelf.vectors} v"
            f" LEFT JOIN {shelf.chunks} c ON c.chunk_no = v.rowid ORDER BY 1, 2, 3, 4"
        ).fetchall()
        for shelf, owner in owners.items()
        if LETTERS
    ]


def answers(projector: Projector, questions):
    results = [
        search_read_model(projector.connect_to_live(), Search(question, k=20, mode=mode), Models(LETTERS))
        for question in questions
        for mode in (["text", "hybrid"] if LETTERS else ["text"])
    ]
    return [msgspec.to_builtins(result.hits) for result in results]


def test_a_late_removal_of_a_source_leaves_newer_documents_where_those_of_no_source_stand(tmp_path):
    """A source of kind `memory` is gone, and a document that was indexed after that is one of kind `docs`."""
    at = "2026-02-26T09:00:00.000Z"
    registered = {"type": "source_registered", "source_id": "notes", "kind": "memory", "ts": TIMES[0]}
    removed = {"type": "source_removed", "source_id": "notes", "ts": TIMES[1]}
    indexed = {
        "type": "document_indexed",
        "source_id": "notes",
        "file": "a.md",
        "content": "tea",
        "ts": TIMES[2],
    }
    early = b"".join(
        draft_event(event | {"id": event["type"]}).build_line(at) for event in (registered, indexed)
    )
    late = draft_event(removed | {"id": "removed"}).build_line(at)
    contents = {"log/documents/2026-02-24.jsonl": early, "log/documents/2026-02-25.jsonl": late}
    one = project_step_by_step(tmp_path / "one", list(contents.items()))
    other = project_step_by_step(tmp_path / "other", list(reversed(contents.items())))
    check_rows(one, contents)
    check_rows(other, contents)
    one.close()
    other.close()


@settings(max_examples=examples(10), suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_any_batches_give_the_read_model_of_one_replay(data):
    check_any_batches(data)


def check_any_batches(data):
    contents = data.draw(segments())
    steps = data.draw(deliveries(contents))
    questions = data.draw(st.lists(st.sampled_from(QUESTIONS), min_size=3, max_size=3, unique=True))
    with tempfile.TemporaryDirectory(dir=memory()) as folder:
        stepwise = project_step_by_step(Path(folder, "stepwise"), steps)
        for path, whole in contents.items():
            deliver(Path(folder, "at-once"), path, whole)
        at_once = project_at_once(Path(folder, "at-once"))
        check_rows(at_once, contents)
        assert list(dump_tables(stepwise.connect_to_live())) == list(dump_tables(at_once.connect_to_live()))
        assert hash_fulltext_index(stepwise.connect_to_live()) == hash_fulltext_index(
            at_once.connect_to_live()
        )
        assert passage_vectors(stepwise) == passage_vectors(at_once)
        assert answers(stepwise, questions) == answers(at_once, questions)
        assert verify_read_model(stepwise.connect_to_live(), stepwise.log, stepwise.sizes).problems == []
        stepwise.close()
        at_once.close()
