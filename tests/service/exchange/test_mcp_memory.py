"""memlog import mcp-memory: the shapes in which a memory file is found, and what becomes of it later."""

import json
from pathlib import Path
from typing import Any

import pytest

import memlog

ANNA = {"type": "entity", "name": "Anna", "entityType": "person", "observations": ["likes tea"]}
HOUSE = {"type": "entity", "name": "Tea house", "entityType": "place", "observations": []}
VISITS = {"type": "relation", "from": "Anna", "to": "Tea house", "relationType": "visits"}
ALL = ["Anna: likes tea", "Tea house (place)", "Anna visits Tea house"]
BARE = [{name: value for name, value in each.items() if name != "type"} for each in (ANNA, HOUSE, VISITS)]


def lines(*values: object) -> str:
    return "\n".join(map(json.dumps, values))


def anna(*observations: object, **members: object) -> str:
    return json.dumps(ANNA | {"observations": observations} | members)


SHAPES: dict[str, tuple[str | bytes, list[str], list[str]]] = {
    "a value per line": (lines(ANNA, HOUSE, VISITS), ALL, []),
    "a newline at the end, and blank lines": (
        lines(ANNA, HOUSE, VISITS).replace("\n", "\n\n") + "\n",
        ALL,
        [],
    ),
    "CRLF and a byte order mark": (
        b"\xef\xbb\xbf" + lines(ANNA, HOUSE, VISITS).replace("\n", "\r\n").encode(),
        ALL,
        [],
    ),
    "a value on several lines": (
        "\n".join(json.dumps(each, indent=2) for each in (ANNA, HOUSE, VISITS)),
        ALL,
        [],
    ),
    "two values on a line": (lines(ANNA, HOUSE).replace("\n", " ") + lines(VISITS), ALL, []),
    "values with commas between": (lines(ANNA, HOUSE, VISITS).replace("\n", ",\n"), ALL, []),
    "a document": (lines({"entities": [ANNA, HOUSE], "relations": [VISITS]}), ALL, []),
    "a document without types, on many lines": (
        json.dumps({"entities": BARE[:2], "relations": BARE[2:]}, indent=1),
        ALL,
        [],
    ),
    "a document of entities alone": (lines({"entities": [ANNA, HOUSE]}), ALL[:2], []),
    "a document whose relations are null": (lines({"entities": [ANNA], "relations": None}), ALL[:1], []),
    "a list": (json.dumps([ANNA, HOUSE, VISITS], indent=1), ALL, []),
    "a list per line": (lines([ANNA, HOUSE], [VISITS]), ALL, []),
    "no types": (lines(*BARE), ALL, []),
    "an entity on two lines": (
        lines(ANNA) + "\n" + anna("lives in Turku", "likes tea"),
        [ALL[0], "Anna: lives in Turku"],
        [],
    ),
    "an observation that is there twice": (anna("likes tea", "likes tea"), ALL[:1], []),
    "observations that are objects": (
        anna({"text": "likes tea", "timestamp": "2026-02-24T08:00:00Z"}, {"content": "is 30"}),
        [ALL[0], "Anna: is 30"],
        [],
    ),
    "an observation of another object": (anna({"likes": "tea"}), ['Anna: {"likes": "tea"}'], []),
    "observations that are numbers, null and empty": (
        anna(7, None, " ", True),
        ["Anna: 7", "Anna: true"],
        [],
    ),
    "observations that are one text": (json.dumps(ANNA | {"observations": "likes tea"}), ALL[:1], []),
    "observations that are null or missing": (
        lines(HOUSE | {"observations": None}, {"type": "entity", "name": "Pot", "entityType": "thing"}),
        [ALL[1], "Pot (thing)"],
        [],
    ),
    "no type of the entity": (lines({"type": "entity", "name": "Pot", "observations": []}), ["Pot"], []),
    "names with slashes": (
        anna("likes tea", name="app") + anna(name="app/1") + anna("is empty", name="app/1/x"),
        ["app: likes tea", "app/1 (person)", "app/1/x: is empty"],
        [],
    ),
    "relations that differ in their slashes, with underscores": (
        lines(
            VISITS | {"from": "a/b", "relationType": "c_d"}, VISITS | {"from": "a", "relationType": "b/c_d"}
        ),
        ["a/b c_d Tea house", "a b/c_d Tea house"],
        [],
    ),
    "a line that is cut off": (
        lines(ANNA) + '\n{"type": "entity", "name": "Pot", "obs\n' + lines(VISITS),
        [ALL[0], ALL[2]],
        ["memory.jsonl: line 2: no JSON: Unterminated string starting at character 35"],
    ),
    "a value on several lines that is cut off": (
        json.dumps(HOUSE, indent=1)[:-2] + "\n" + lines(ANNA),
        ALL[:1],
        ["memory.jsonl: line 5: no JSON: Expecting ',' delimiter at character 20"],
    ),
    "what is none": (
        lines(ANNA, {"type": "task"}, [{"name": "x"}, 7]) + "\n" + "[" * 100_000,
        ALL[:1],
        [
            "memory.jsonl: line 2: neither an entity nor a relation",
            "memory.jsonl: line 3, item 1: neither an entity nor a relation",
            "memory.jsonl: line 3, item 2: neither an entity nor a relation",
            "memory.jsonl: line 4: it is nested too deeply",
        ],
    ),
}


def imported(store: memlog.Store, text: str | bytes, path: Path) -> memlog.ImportReport:
    file = path / "memory.jsonl"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    report: memlog.ImportReport = store.exchange.import_from("mcp-memory", [file])
    assert report.found == report.used + sum(report.skipped.values()) + report.unreadable
    return report


def contents(store: memlog.Store) -> list[str]:
    return sorted(each.content for each in store.memories.list())


@pytest.mark.parametrize("shape", SHAPES)
def test_each_shape_of_a_memory_file_is_read_whole_and_once(tmp_path: Path, shape: str) -> None:
    text, expected, problems = SHAPES[shape]
    with memlog.open(tmp_path / "store") as store:
        report = imported(store, text, tmp_path)
        assert contents(store) == sorted(expected)
        assert [f"{each.where}: {each.why}" for each in report.problems] == problems
        again = imported(store, text, tmp_path)
        assert (again.appended, again.changed, again.refused) == (0, 0, 0)


def test_an_observation_has_the_time_that_its_file_gives_it(tmp_path: Path) -> None:
    with memlog.open(tmp_path / "store") as store:
        imported(store, anna({"text": "likes tea", "createdAt": "2026-02-24T08:00:00Z"}), tmp_path)
        (memory,) = store.memories.list()
        assert (memory.topic, memory.tags, memory.created_at) == (
            "Anna",
            ["person"],
            "2026-02-24T08:00:00.000Z",
        )


def test_a_deleted_observation_stops_no_other(tmp_path: Path) -> None:
    with memlog.open(tmp_path / "store") as store:
        imported(store, anna("one", "two", "three"), tmp_path)
        report = imported(store, anna("zero", "two", "three", "four"), tmp_path)
        assert (report.appended, report.known, report.changed, report.refused) == (2, 2, 0, 0)
        assert contents(store) == [f"Anna: {each}" for each in ("four", "one", "three", "two", "zero")]
        assert imported(store, anna("four", "three", "two"), tmp_path).appended == 0


def test_what_an_older_memlog_imported_is_known(tmp_path: Path) -> None:
    def saved(name: str, content: str, topic: str, tag: str = "person") -> Any:
        return memlog.MemorySaved(
            id=f"mcp-memory/{name}",
            memory_id=f"mcp-memory/{name}",
            content=content,
            topic=topic,
            tags=[tag],
            source="mcp-memory",
        )

    works = VISITS | {"relationType": "works_at"}
    slashed = VISITS | {"from": "a/b"}
    with memlog.open(tmp_path / "store") as store:
        store.append(
            [
                saved("Anna/1", "Anna: likes tea", "Anna"),
                saved("Anna/works_at/Tea house", "Anna works at Tea house", "Anna", "relation"),
                saved("a/b/1", "a/b: is old", "a/b"),
                saved("a/b/2", "a/b: is blue", "a/b"),
                saved("a/b/visits/Tea house", "a/b visits Tea house", "a/b", "relation"),
                saved("c/d", "c/d (thing)", "c/d", "thing"),
            ]
        )
        text = lines(
            *(ANNA, works, ANNA | {"name": "a/b", "observations": ["is blue", "is old", "is new"]}),
            *(slashed, {"type": "entity", "name": "c/d", "entityType": "thing"}),
        )
        report = imported(store, text, tmp_path)
        assert (report.known, report.changed) == (6, 0)
        assert report.types == {"memory_saved": 1, "memory_updated": 1}
        assert {"Anna works_at Tea house", "a/b: is new"} <= {*contents(store)}
        assert len(contents(store)) == 7
        assert imported(store, text, tmp_path).appended == 0


def test_a_lone_surrogate_costs_no_record(tmp_path: Path) -> None:
    path = tmp_path / "memory.jsonl"
    path.write_text('{"type":"entity","name":"K\\ud800","observations":["fine","\\ud800 odd"]}\n')
    with memlog.open(tmp_path / "store", create=True) as store:
        assert store.exchange.import_from("mcp-memory", [path]).appended == 2
        assert {each.content for each in store.memories.list()} == {"K\ufffd: fine", "K\ufffd: \ufffd odd"}


def test_an_error_within_a_document_names_the_line_of_its_item(tmp_path: Path) -> None:
    path = tmp_path / "memory.json"
    path.write_text(
        '{"entities": [\n  {"name": "K", "observations": ["x"]},\n\n  {"name": 5}\n],\n"relations": [\n  7]}'
    )
    with memlog.open(tmp_path / "store", create=True) as store:
        report = store.exchange.import_from("mcp-memory", [path])
    wheres = [problem.where for problem in report.problems]
    assert wheres == ["memory.json: line 4, item 2", "memory.json: line 7, item 3"]
