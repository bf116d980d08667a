"""memlog import jsonl: what any JSON Lines, JSON or CSV file becomes, and which maps are refused."""

import json
from pathlib import Path
from typing import Any

import pytest

import memlog
from tests.support.places import ROOT

SAMPLES = ROOT / "fixtures/importers/generic"

TABLE = '[message]\nchat_id = "room"\ncontent = "what"\nname = "who"\nts = "when"\n'
LINES = '[message]\nchat_id = "=c"\ncontent = "text"\nname = "by"\nts = "at"\n'


def saved(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def lines(*records: object) -> str:
    return "".join(f"{json.dumps(each)}\n" for each in records)


def imported(store: memlog.Store, path: Path, map: Path | None = None, **given: Any) -> memlog.ImportReport:
    report: memlog.ImportReport = store.exchange.import_from("jsonl", [path], map=map, **given)
    assert report.found == report.used + sum(report.skipped.values()) + report.unreadable
    assert (
        report.events == report.appended + report.known + report.updated + report.forgotten + report.refused
    )
    return report


def messages(store: memlog.Store, chat: str = "jsonl:c") -> list[memlog.WindowMessage]:
    return [*store.conversations.window(chat, last=99).messages]


COUNTED: dict[str, tuple[str | None, tuple[int, int, dict[str, int]], str]] = {
    "openai-messages.jsonl": (None, (6, 0, {"system": 1}), "Hi"),
    "sharegpt.json": (None, (2, 0, {"system": 1}), "Hello"),
    "table.csv": (TABLE, (2, 0, {}), "Tea, please"),
    "nested.jsonl": ((SAMPLES / "nested.map.toml").read_text(), (2, 1, {}), "Hello"),
}
"""By sample: its map; the events, the unreadable and the skipped records; the first content."""


@pytest.mark.parametrize("sample", COUNTED)
def test_a_sample_gives_what_was_counted_by_hand_and_a_second_run_nothing(
    tmp_path: Path, sample: str
) -> None:
    text, expected, first = COUNTED[sample]
    map = saved(tmp_path / "map.toml", text) if text else None
    with memlog.open(tmp_path / "store") as store:
        tried = imported(store, SAMPLES / sample, map, dry_run=True)
        assert (len(tried.first), tried.first[0]["content"]) == (min(5, tried.appended), first)
        done = imported(store, SAMPLES / sample, map)
        assert (done.appended, done.unreadable, done.skipped) == expected
        again = imported(store, SAMPLES / sample, map)
        assert (again.appended, again.known, again.problems) == (0, expected[0], done.problems)


def test_calls_and_results_of_tools_and_parts_of_contents_are_messages(tmp_path: Path) -> None:
    with memlog.open(tmp_path / "store") as store:
        imported(store, SAMPLES / "openai-messages.jsonl")
        talked, asked = sorted(
            (messages(store, each.chat) for each in store.conversations.sessions()), key=len
        )[::-1]
        assert [(each.role, each.name, each.content) for each in talked] == [
            ("user", None, "Hi"),
            ("assistant", None, "now: \n```json\n{}\n```"),
            ("tool", "now", "12:00"),
            ("assistant", None, "It is noon."),
        ]
        assert [each.content for each in asked] == ["What is this?", "A pot."]


@pytest.mark.parametrize("step", [31, 200, 500])
def test_a_file_that_grows_in_pieces_is_the_same_as_all_at_once(tmp_path: Path, step: int) -> None:
    map = saved(tmp_path / "map.toml", LINES)
    records = [{"text": f"Tea {number % 3}", "by": "Anna", "at": number // 4 * 60} for number in range(12)]
    whole = lines(*records)
    digests = []
    for name, sizes in {"whole": [], "grown": range(step, len(whole), step)}.items():
        with memlog.open(tmp_path / name) as store:
            for size in [*sizes, len(whole)]:
                imported(store, saved(tmp_path / "a.jsonl", whole[:size]), map)
            assert len({each.id for each in messages(store)}) == 12
            digests.append(store.maintenance.digest(content=True))
    assert digests[0] == digests[1]


def test_a_conversation_without_times_that_grows_keeps_its_chat_and_its_ids(tmp_path: Path) -> None:
    said = [
        {"role": role, "content": text}
        for role, text in (("user", "ok"), ("assistant", "ok"), ("user", "No"))
    ]
    with memlog.open(tmp_path / "store") as store:
        for length in (2, 3):
            grown = lines({"messages": said[:length]}, {"messages": said[:1]})
            assert imported(store, saved(tmp_path / "a.jsonl", grown)).appended == (3 if length == 2 else 1)
        assert sorted(each.messages for each in store.conversations.sessions()) == [1, 3]


def test_equal_texts_in_one_minute_get_two_ids_and_a_copy_of_the_file_none(tmp_path: Path) -> None:
    map = saved(tmp_path / "map.toml", LINES)
    record = {"text": "ok", "by": "Anna", "at": "2026-01-05T10:00"}
    (tmp_path / "in").mkdir()
    for name in ("a", "b"):
        saved(tmp_path / f"in/{name}.jsonl", lines(record, record))
    with memlog.open(tmp_path / "store") as store:
        report = imported(store, tmp_path / "in", map)
        assert (report.appended, report.skipped) == (2, {"duplicate_in_source": 2})


def test_a_native_id_names_the_chat_and_one_that_comes_twice_is_named(tmp_path: Path) -> None:
    map = saved(tmp_path / "map.toml", LINES + 'id = "id"\nparent = "to"\n[message.meta]\ntopic = "topic"\n')
    records: list[dict[str, Any]] = [
        {"id": 7, "text": "Tea?", "at": 60, "topic": ["tea"]},
        {"id": 8, "text": "Yes", "to": 7},
        {"id": 8, "text": "No"},
    ]
    with memlog.open(tmp_path / "store") as store:
        file = saved(tmp_path / "a.jsonl", lines(*records))
        metas = [each["meta"] for each in imported(store, file, map, dry_run=True).first]
        assert metas == [{"topic": ["tea"]}, {"import": {"parent": "jsonl/jsonl:c/7"}}]
        report = imported(store, file, map)
        assert (report.appended, report.refused, report.problems[0].where) == (2, 1, "jsonl/jsonl:c/8")
        first, second = messages(store)
        assert (first.id, second.ts) == ("jsonl/jsonl:c/7", "1970-01-01T00:01:00.000Z")


def test_ids_with_slashes_are_not_confused(tmp_path: Path) -> None:
    map = saved(tmp_path / "map.toml", LINES.replace('"=c"', '"room"') + 'id = "id"\n')
    records = [{"room": room, "id": id, "text": room, "at": 1} for room, id in (("a/b", "c"), ("a", "b/c"))]
    with memlog.open(tmp_path / "store") as store:
        assert imported(store, saved(tmp_path / "a.jsonl", lines(*records)), map).appended == 2


def test_conversations_that_begin_alike_are_chats_of_their_own(tmp_path: Path) -> None:
    def dialogue(answer: str) -> dict[str, object]:
        return {"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": answer}]}

    numbered = [
        {"id": number, "conversations": [{"from": "human", "value": "Hi"}, {"from": "gpt", "value": "Ho"}]}
        for number in (1, 2)
    ]
    files = [saved(tmp_path / f"{each}.jsonl", lines(dialogue(each))) for each in ("A", "B")]
    files += [saved(tmp_path / f"{each['id']}.jsonl", lines(each)) for each in numbered]
    with memlog.open(tmp_path / "store") as store:
        for file in files:
            assert imported(store, file).appended == 2
        assert [each.messages for each in store.conversations.sessions()] == [2] * 4


def test_another_zone_changes_nothing_and_another_text_under_a_known_id_is_an_edit(tmp_path: Path) -> None:
    map = saved(tmp_path / "map.toml", LINES + 'id = "id"\n')
    record = {"id": 1, "text": "Tea?", "at": "2026-01-05T10:00"}
    file = saved(tmp_path / "a.jsonl", lines(record))
    with memlog.open(tmp_path / "store") as store:
        imported(store, file, map)
        saved(map, LINES + 'id = "id"\ntz = "Europe/Helsinki"\n')
        assert imported(store, file, map).known == 1
        report = imported(store, saved(file, lines(record | {"text": "Coffee?"})), map)
        assert (report.appended, report.updated, report.prefixes) == (0, 1, [])
        assert [each.content for each in store.conversations.window("jsonl:c").messages] == ["Coffee?"]


TIMES: dict[str, tuple[str, object, str | None]] = {
    "milliseconds": ('ts_unit = "ms"', 1767600000123, "2026-01-05T08:00:00.123Z"),
    "microseconds": ('ts_unit = "us"', 1767600000123456, "2026-01-05T08:00:00.123Z"),
    "seconds as text": ('ts_unit = "s"', "1767600000.5", "2026-01-05T08:00:00.500Z"),
    "the first millisecond of 1970": ('ts_unit = "ms"', 1, "1970-01-01T00:00:00.001Z"),
    "before 1970": ('ts_unit = "s"', -1, "1969-12-31T23:59:59.000Z"),
    "a number without a unit": ("", 1767600000123, "2026-01-05T08:00:00.123Z"),
    "beyond 2262": ('ts_unit = "s"', 10_000_000_000, "2286-11-20T17:46:40.000Z"),
    "an offset": ("", "2026-01-05T10:00:00+02:00", "2026-01-05T08:00:00.000Z"),
    "no zone": ("", "2026-01-05 10:00", "2026-01-05T10:00:00.000Z"),
    "the map's zone": ('tz = "Europe/Helsinki"', "2026-07-05 10:00", "2026-07-05T07:00:00.000Z"),
    "a pattern": ('ts_unit = "%d.%m.%y, %H:%M"', "05.01.26, 10:00", "2026-01-05T10:00:00.000Z"),
    "a text where a number is due": ('ts_unit = "ms"', "noon", None),
    "infinity": ('ts_unit = "s"', "inf", None),
    "the year 33658": ('ts_unit = "s"', 10**12, None),
}
"""By case: the map's keys, the time in the source, and that of the message; None if it is unreadable."""


@pytest.mark.parametrize("case", TIMES)
def test_a_time_is_read_as_the_map_says(tmp_path: Path, case: str) -> None:
    keys, at, expected = TIMES[case]
    map = saved(tmp_path / "map.toml", LINES + keys)
    with memlog.open(tmp_path / "store") as store:
        report = imported(store, saved(tmp_path / "a.jsonl", lines({"text": "Tea", "at": at})), map)
        if expected is None:
            assert report.problems[0].why.startswith("ts: not a time in ")
        else:
            assert [each.ts for each in messages(store)] == [expected]


PATHS: dict[str, tuple[str, object, list[str]]] = {
    "an index and a fan": (
        'content = ["title", "parts[*].text", "parts[0].text"]',
        {"title": "Tea", "parts": [{"text": "a"}, {"text": "b"}]},
        ["Tea\n\na\n\nb\n\na"],
    ),
    "the first alternative that is present": ('content = "a.b|c"', {"a": {"b": None}, "c": "d"}, ["d"]),
    "a key with a dot": ('content = "a.b"', {"a.b": "c"}, ["c"]),
    "a condition": ('content = "a"\nwhen = {path = "kind", in = [1]}', {"a": "b", "kind": "1"}, ["b"]),
    "another value": ('content = "a"\nwhen = {path = "kind", in = [1]}', {"a": "b", "kind": True}, []),
    "a role by the table": (
        'content = "a"\nrole = {from = "kind", bot = "assistant"}',
        {"a": "b", "kind": "bot"},
        ["b"],
    ),
    "a role that the table lacks": ('content = "a"\nrole = {from = "kind"}', {"a": "b", "kind": "bot"}, []),
    "a table where a text is due": ('content = "a"', {"a": {}}, []),
    "no text": ('content = "a"', {"a": None}, []),
    "no such key": ('content = "b"', {"a": "b"}, []),
    "no object": ('content = "b"', 7, []),
}
"""By case: the map's keys, the record, and the contents of the messages."""


@pytest.mark.parametrize("case", PATHS)
def test_a_path_finds_what_it_names(tmp_path: Path, case: str) -> None:
    keys, record, expected = PATHS[case]
    map = saved(
        tmp_path / "map.toml", f'format = "json"\nrecords = "data.items"\n[message]\nchat_id = "=c"\n{keys}\n'
    )
    document = {"data": {"items": [record]}}
    with memlog.open(tmp_path / "store") as store:
        report = imported(store, saved(tmp_path / "a.txt", json.dumps(document)), map)
        assert (report.found, [each.content for each in messages(store)] if expected else []) == (1, expected)
        assert report.appended == len(expected)


WRONG: dict[str, str] = {
    "[message": "Expected ']'",
    "a = " + "[" * 5000: " is wrong: ",
    'format = "xml"': "$.format",
    "[message]\n": "required field `content` - at `$.message`",
    '[message]\ncontent = "a"': "required field `chat_id` - at `$.message`",
    f'{LINES}colour = "a"': "unknown field `colour` - at `$.message`",
    LINES.replace('"text"', '"a..b"'): "content is not a path such as data.items[0].text: 'a..b'",
    LINES.replace('"by"', '"a[*]"'): "name has [*], but takes one value",
    LINES.replace('"=c"', '"="'): "chat_id is an empty constant",
    f'{LINES}ts_unit = "days"': "ts_unit is none of s, ms, us, iso, or a pattern",
    f'{LINES}ts_unit = "%Q"': "or a pattern such as %d.%m.%Y %H:%M: '%Q'",
    f'{LINES}ts_unit = "%H:%M"': "or a pattern such as %d.%m.%Y %H:%M: '%H:%M'",
    LINES.replace('"text"', "[]"): "content names no path",
    f'records = "=x"\n{LINES}': "records must be a path",
    f'{LINES}tz = "Mars/Base"': "tz is no time zone such as Europe/Helsinki: 'Mars/Base'",
    f'{LINES}tz = "../etc"': "tz is no time zone",
    '[message]\ncontent = "a"\nchat_id = "b"\ntz = "UTC"': "tz needs ts",
    f'{LINES}channel = "=a:b"': "channel must not contain a colon",
    f'{LINES}parent = "to"': "parent needs id",
    f'{LINES}role = {{bot = "assistant"}}': "role.from is missing",
    f'{LINES}role = {{from = "a", bot = "robot"}}': "role.bot is none of user, assistant,",
    f'{LINES}when = {{path = "a"}}': "required field `in` - at `$.message.when`",
    f'{LINES}meta = {{topic = "a."}}': "meta.topic is not a path",
    f'records = "[x]"\n{LINES}': "records is not a path",
}
"""The part of the error that names the key, by map."""


@pytest.mark.parametrize("text", WRONG, ids=WRONG.values())
def test_a_wrong_map_is_refused_before_the_first_record_and_the_key_is_named(
    tmp_path: Path, text: str
) -> None:
    map = saved(tmp_path / "map.toml", text)
    with memlog.open(tmp_path / "store") as store, pytest.raises(memlog.BadInput) as refused:
        imported(store, SAMPLES / "sharegpt.json", map)
    assert WRONG[text] in refused.value.message
    assert str(map) in refused.value.message


def test_only_jsonl_takes_a_map_and_a_missing_one_is_an_error(tmp_path: Path) -> None:
    with memlog.open(tmp_path / "store") as store:
        with pytest.raises(memlog.BadInput, match="klaw takes no map"):
            store.exchange.import_from("klaw", [SAMPLES], map=SAMPLES / "nested.map.toml")
        with pytest.raises(memlog.BadInput, match="cannot be read"):
            imported(store, SAMPLES / "table.csv", tmp_path / "none.toml")


@pytest.mark.parametrize(
    ("record", "why"),
    [
        ({"text": "Tea"}, "neither messages"),
        ({"messages": [{"role": "user"}], "conversations": [{"from": "human"}]}, "both messages and"),
    ],
)
def test_what_no_built_in_map_fits_is_an_error_that_shows_a_map(
    tmp_path: Path, record: object, why: str
) -> None:
    with memlog.open(tmp_path / "store") as store, pytest.raises(memlog.BadInput, match=why) as refused:
        imported(store, saved(tmp_path / "a.jsonl", lines(record, record)))
    assert 'content = "text"' in str(refused.value.hint)


ODD: dict[str, tuple[str, bytes, tuple[int, int, int]]] = {
    "a byte order mark": ("a.jsonl", b'\xef\xbb\xbf{"text":"a"}\n{"text":"b"}\n', (2, 0, 0)),
    "a torn last line": ("a.jsonl", b'{"text":"a"}\n{"text":"b', (1, 0, 1)),
    "a last line without a newline": ("a.jsonl", b'{"text":"a"}\n{"text":"b"}', (2, 0, 0)),
    "a line that is no JSON": ("a.jsonl", b'{"text":"a"}\n{nonsense\n{"text":"b"}\n', (2, 1, 0)),
    "lone surrogates and NUL": ("a.jsonl", b'{"text":"\\ud800 a\\u0000","by":"\\udfff\\u0000"}\n', (1, 0, 0)),
    "lone surrogates in a document": (
        "a.json",
        b'[{"text":"\\ud800 a","by":"\\udfff"},{"text":"b"}]',
        (2, 0, 0),
    ),
    "an integer of 400 digits": ("a.jsonl", b'{"text":1%s}\n{"text":"b"}\n' % (b"0" * 399), (2, 0, 0)),
    "deep nesting": ("a.jsonl", b"[" * 99_999 + b'\n{"text":"a"}\n', (1, 1, 0)),
    "JSON in UTF-16": ("a.json", '[{"text":"a"},{"text":"b"}]'.encode("utf-16"), (2, 0, 0)),
    "lines in UTF-16": ("a.jsonl", '{"text":"a"}\r\n{"text":"b"}\r\n'.encode("utf-16"), (2, 0, 0)),
    "lines in a .json file": ("a.json", b'{"text":"a"}\n{"text":"b"}\n', (2, 0, 0)),
    "a torn document": ("a.json", b'[{"text":"a"},{"te', (0, 1, 0)),
    "semicolons and a byte order mark": ("a.csv", "\ufefftext;by\na;Anna\n".encode(), (1, 0, 0)),
    "CSV in UTF-16": ("a.csv", "text\tby\r\na\tAnna\r\n".encode("utf-16"), (1, 0, 0)),
    "a row with too many cells": ("a.csv", b"text,by\na,b,c\nd,e\n", (1, 1, 0)),
    "a torn row": ("a.csv", b'text,by\na,b\n"c', (1, 1, 0)),
    "a row without text": ("a.csv", b"text,by\n,b\nc,d\n", (1, 0, 1)),
    "a cell of 200 kB": ("a.csv", b"text,by\n" + b"a" * 200_000 + b",b\n", (1, 0, 0)),
}
"""By case: the file, and the messages, unreadable and skipped records."""


@pytest.mark.parametrize("case", ODD)
def test_a_bad_record_costs_no_other(tmp_path: Path, case: str) -> None:
    name, data, expected = ODD[case]
    map = saved(tmp_path / "map.toml", LINES)
    with memlog.open(tmp_path / "store") as store:
        report = imported(store, saved(tmp_path / name, data), map)
        assert (report.appended, report.unreadable, sum(report.skipped.values())) == expected


ODD_TURNS: dict[str, tuple[object, tuple[int, int]]] = {
    "no message": (7, (1, 1)),
    "no role": ({"content": "a"}, (1, 1)),
    "an unknown role": ({"role": "moderator", "content": "a"}, (1, 1)),
    "content of another shape": ({"role": "user", "content": 7}, (1, 1)),
    "a picture alone": ({"role": "user", "content": [{"type": "image_url"}]}, (2, 0)),
    "a part of next year": ({"role": "user", "content": [{"type": "smell"}]}, (2, 0)),
    "a call without a function": ({"role": "assistant", "tool_calls": [{"id": "c"}]}, (1, 1)),
    "arguments that are no JSON": (
        {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": "{"}}]},
        (2, 0),
    ),
    "arguments that are nested too deep": (
        {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": "[" * 99_999}}]},
        (2, 0),
    ),
    "text and two calls": (
        {
            "role": "assistant",
            "content": "a",
            "tool_calls": [{"function": {"name": "f", "arguments": "{}"}}] * 2,
        },
        (4, 0),
    ),
    "nothing": ({"role": "assistant", "content": ""}, (1, 0)),
}
"""By case: a message behind another one, and the events and unreadable records."""


@pytest.mark.parametrize("case", ODD_TURNS)
def test_an_odd_message_costs_no_other(tmp_path: Path, case: str) -> None:
    message, expected = ODD_TURNS[case]
    document = [{"role": "user", "content": "Tea?"}, message]
    with memlog.open(tmp_path / "store") as store:
        report = imported(store, saved(tmp_path / "a.json", json.dumps(document)))
        assert (report.appended, report.unreadable) == expected


def test_what_was_forgotten_does_not_come_back_and_keys_are_masked(tmp_path: Path) -> None:
    key = "sk-ant-" + "api03-" + "A" * 24
    map = saved(tmp_path / "map.toml", LINES + 'meta = {all = "$"}')
    file = saved(tmp_path / "a.jsonl", lines({"text": "Tea", "at": 1}, {"text": f"It is {key}", "at": 2}))
    with memlog.open(tmp_path / "store") as store:
        imported(store, file, map)
        forgotten, masked = messages(store)
        assert masked.content == "It is [REDACTED:anthropic-key]"
        assert not any(key in path.read_text() for path in (tmp_path / "store/log").rglob("*.jsonl"))
        store.erasure.forget(forgotten.id)
        report = imported(store, file, map)
        assert (report.appended, report.forgotten, report.known) == (0, 1, 1)
