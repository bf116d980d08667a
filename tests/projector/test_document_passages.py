"""Sources and documents in the read model: passages stand where they say, and where their kind has them."""

import itertools
import random

import pytest

from memlog.eventlog.codec.encode import draft_event
from memlog.eventlog.events import DocumentIndexed, SourceRegistered, SourceRemoved
from memlog.projector.lifecycle import Projector
from memlog.projector.verify import hash_dump, verify_read_model
from tests.support.examples import examples

LONG = "\n\n".join(f"# Part {part}\n\n" + f"Sentence {part} of tea. " * 150 for part in range(5))
TEXTS = {
    "plain": LONG,
    "crlf": LONG.replace("\n", "\r\n"),
    "no newline at the end": LONG.rstrip(),
    "blank lines around": f"\n\n\n{LONG}\n\n\n",
    "lone carriage returns": LONG.replace("\n\n", "\r"),
    "other line breaks": LONG.replace(". ", ".\u2028\x0c\x85"),
    "beyond 16 bits": LONG.replace("tea", "🍵 茶 чай"),
    "one line": "word " * 3000,
    "one word": "茶" * 4000,
    "a list": "\n".join(f"- item {item} " + "tea " * 30 for item in range(60)),
    "code": "```python\n" + "\n".join(f"tea_{line} = {line}" for line in range(600)) + "\n```\nend\n",
    "short": "tea",
}


@pytest.fixture
def projector(tmp_path):
    projector = Projector(tmp_path / "store")
    yield projector
    projector.close()


def append(projector, event, day="2026-02-24"):
    """As a line of that day, whatever its ts."""
    path = projector.log / "documents" / f"{day}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as file:
        file.write(draft_event(event).build_line(f"{day}T10:00:00.000Z"))


def registered(kind, second, **more):
    return SourceRegistered(source_id="notes", kind=kind, ts=at(second), **more)


def indexed(content, second, file="tea.md"):
    return DocumentIndexed(
        source_id="notes", file=file, content=content, ts=at(second), id=f"{file}-{second}"
    )


def at(second):
    return f"2026-02-24T10:00:0{second}.000Z"


def shelves(projector):
    """How many passages stand in which table, and whether the read model is its replay."""
    projector.catch_up()
    db = projector.connect_to_live()
    found = verify_read_model(db, projector.log, projector.sizes)
    assert found.ok, found.problems
    return {
        table: db.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
        for table in ("doc_chunks", "memory_chunks")
    }


def test_a_passage_is_what_stands_at_its_characters_and_lines(projector):
    for name, text in TEXTS.items():
        append(projector, indexed(text, 0, f"{name}.md"))
    projector.catch_up()
    columns = "content, start_char, end_char, start_line, end_line"
    for name, text in TEXTS.items():
        rows = (
            projector.connect_to_live()
            .execute(f"SELECT {columns} FROM doc_chunks WHERE file = ? ORDER BY chunk_index", (f"{name}.md",))
            .fetchall()
        )
        assert (len(rows) > 1) == (name != "short"), name
        lines = text.split("\n")
        for content, start, end, first, last in rows:
            passage = text[start:end]
            # A passage may repeat the fence or the heading of an earlier one.
            assert passage in content, name
            assert 1 <= first <= last <= len(lines), name
            assert passage.removesuffix("\n") in "\n".join(lines[first - 1 : last]), name
            # Not more lines than the passage has, either.
            assert last - first == passage.removesuffix("\n").count("\n"), name
        assert "".join(text.split()) == "".join(_joined(text, rows).split()), name


def _joined(text, rows):
    """The passages without what each repeats of the one before."""
    joined, end = "", 0
    for _, start, stop, *_ in rows:
        joined += text[max(start, end) : stop]
        end = max(end, stop)
    return joined


def test_a_source_that_changes_its_kind_takes_its_passages_along_both_ways(projector):
    append(projector, registered("docs", 0))
    append(projector, indexed(LONG, 1))
    append(projector, indexed("coffee", 1, "coffee.md"))
    as_docs = shelves(projector)
    assert as_docs["memory_chunks"] == 0
    assert as_docs["doc_chunks"] > 3
    append(projector, registered("memory", 2))
    as_memories = shelves(projector)
    assert as_memories == {"doc_chunks": 0, "memory_chunks": as_docs["doc_chunks"]}
    append(projector, registered("docs", 3))
    assert shelves(projector) == as_docs


def test_passages_of_a_source_that_changed_its_kind_are_those_of_one_that_always_had_it(projector, tmp_path):
    other = Projector(tmp_path / "other")
    for each, kinds in ((projector, ("docs", "memory", "docs", "memory")), (other, ("memory",) * 4)):
        for second, kind in enumerate(kinds):
            append(each, registered(kind, second))
            append(each, indexed(LONG, 0))
            each.catch_up()
    rows = [
        each.connect_to_live()
        .execute(
            "SELECT source, content, section, start_char, end_char, created_at, updated_at FROM memory_chunks"
            " ORDER BY chunk_index"
        )
        .fetchall()
        for each in (projector, other)
    ]
    assert rows[0] == rows[1]
    assert {source for source, *_ in rows[0]} == {"tea.md"}
    other.close()


STORIES = {
    "removed between": [
        registered("memory", 0, id="a"),
        SourceRemoved(source_id="notes", ts=at(1), id="b"),
        indexed("tea", 2),
    ],
    "removed and back as another kind": [
        registered("memory", 0, id="a"),
        indexed("coffee", 1, "old.md"),
        SourceRemoved(source_id="notes", ts=at(2), id="b"),
        registered("docs", 3, id="c"),
        indexed("tea", 4),
    ],
}


def test_events_of_a_source_leave_the_same_whatever_the_order_in_which_they_arrive(tmp_path):
    """Each in a file of its own, so that what is late stands before what was read."""
    drawn = random.Random(7)
    for name, events in STORIES.items():
        placed = [(event, f"2026-02-2{number}") for number, event in enumerate(events)]
        orders = list(itertools.permutations(placed))
        digests = set()
        for number, order in enumerate(drawn.sample(orders, min(len(orders), examples(20)))):
            projector = Projector(tmp_path / f"{name} {number}")
            for event, day in order:
                append(projector, event, day)
                projector.catch_up()
            digests.add(hash_dump(projector.connect_to_live(), content=True))
            assert shelves(projector) == {"doc_chunks": 1, "memory_chunks": 0}, order
            projector.close()
        assert len(digests) == 1, name
