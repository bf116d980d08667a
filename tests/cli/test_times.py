"""Times: text is in the local zone, which is named once; JSON is in UTC; days are local and included."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

import memlog as package
from tests.cli.conftest import Finished

Run = Callable[..., Finished]

MESSAGES = {
    "m1": ("tea", "2026-02-23T23:30:00Z"),
    "m2": ("tea again", "2026-06-24T20:59:59Z"),
    "m3": ("tea once", "2016-12-31T23:59:60Z"),
}
EVENTS = [
    *(
        {
            "type": "message",
            "id": name,
            "channel": "c",
            "chat_id": "1",
            "role": "user",
            "content": text,
            "ts": ts,
        }
        for name, (text, ts) in MESSAGES.items()
    ),
    {"type": "daily_event_recorded", "id": "d1", "event_date": "2026-02-24", "summary": "tea"},
]
HELSINKI = {"TZ": "Europe/Helsinki"}


@pytest.fixture
def teas(memlog: Run, store: Path) -> Path:
    assert memlog("--store", store, "append", input="\n".join(map(json.dumps, EVENTS)).encode()).code == 0
    return store


@pytest.mark.parametrize(
    ("env", "first", "last"),
    [
        ({"TZ": "UTC"}, "[2016-12-31 23:59 UTC]", "[2026-06-24 20:59]"),
        (HELSINKI, "[2017-01-01 01:59 Europe/Helsinki]", "[2026-06-24 23:59]"),
        ({"TZ": "EST5EDT,M3.2.0,M11.1.0"}, "[2016-12-31 18:59 EST]", "[2026-06-24 16:59]"),
        ({"TZ": "UTC+3"}, "[2016-12-31 20:59 UTC-03:00]", "[2026-06-24 17:59]"),  # POSIX: west of it
        (HELSINKI | {"MEMLOG_TIMEZONE": "Asia/Tokyo"}, "[2017-01-01 08:59 Asia/Tokyo]", "[2026-06-25 05:59]"),
    ],
)
def test_times_for_people_are_local_and_name_their_zone_once(
    memlog: Run, teas: Path, env: dict[str, str], first: str, last: str
) -> None:
    window = memlog("--store", teas, "window", "--chat", "c:1", env=env).out.decode()
    lines = window.splitlines()
    assert (lines[0][: len(first)], lines[-1][: len(last)]) == (first, last)
    zone = first.removesuffix("]").split()[-1]
    for command in (("query", "tea"), ("query", "tea", "--format", "md"), ("sessions",), ("docs", "list")):
        text = memlog("--store", teas, *command, env=env).out.decode()
        assert len(re.findall(rf"{zone}|EDT", text)) == (command[0] != "docs")
    document = memlog("--store", teas, "window", "--chat", "c:1", "--json", env=env).json
    assert [each["ts"] for each in document["messages"]] == [
        *("2016-12-31T23:59:59.999Z", "2026-02-23T23:30:00.000Z", "2026-06-24T20:59:59.000Z"),
    ]


def test_a_zone_may_stand_in_the_settings_file_and_a_wrong_one_is_named(memlog: Run, teas: Path) -> None:
    (teas / "memlog.toml").write_text('timezone = "Asia/Tokyo"')
    assert b"2026-06-25 05:59" in memlog("--store", teas, "window", "--chat", "c:1").out
    wrong = memlog("--store", teas, "sessions", env={"MEMLOG_TIMEZONE": "Nowhere"})
    assert (wrong.code, b"unknown time zone: 'Nowhere'" in wrong.err) == (65, True)


@pytest.mark.parametrize(
    ("since", "until", "found"),
    [
        ("2026-02-24", "2026-02-24", ["m1"]),
        ("2026-02-23", "2026-02-23", []),
        ("2026-06-24", "2026-06-24", ["m2"]),
        ("24 February 2026", "24 June 2026", ["m1", "m2"]),
        ("2026-02-24T01:30", "2026-06-24", ["m1", "m2"]),
        ("2026-02-24T01:31", "2026-06-23", []),
        ("2026-02-23T23:30:00Z", "2026-02-23T23:30:01Z", ["m1"]),
        ("2026-02-23T23:30:00Z", "2026-02-23T23:30:00Z", []),
    ],
)
def test_days_are_local_and_the_last_one_is_included(
    memlog: Run, teas: Path, since: str, until: str, found: list[str]
) -> None:
    stretch = ("--since", since, "--until", until)
    hits = memlog("--store", teas, "query", "tea", "--in", "messages", *stretch, "--json", env=HELSINKI).json
    assert sorted(hit["id"] for hit in hits["hits"]) == found
    logged = memlog("--store", teas, "log", "cat", "--chat", "c:1", *stretch, env=HELSINKI).out
    assert [json.loads(line)["id"] for line in logged.splitlines()] == found


def test_python_takes_days_of_utc_and_includes_the_last(teas: Path) -> None:
    with package.open(teas) as store:
        for day, found in {"2026-02-23": {"m1"}, "2026-02-24": set(), "2016-12-31": {"m3"}}.items():
            hits = store.search("tea", filters={"since": day, "until": day, "kinds": {"message"}}).hits
            assert {hit.id for hit in hits} == found
        assert [each.id for each in store.daily.list(since="2026-02-24", until="2026-02-24")] == ["d1"]


FILED = "2021-05-05T05:05:05.000Z"


@pytest.mark.parametrize(
    ("content", "mtime", "dated"),
    [
        ("---\ndate: 2024-05-06\n---\ntea", FILED, "2024-05-06T00:00:00.000Z"),
        (
            "---\r\ntitle: x\r\nDate: '2024-05-06 10:30:00 +0200'\r\n---\r\ntea",
            FILED,
            "2024-05-06T08:30:00.000Z",
        ),
        (
            "\ufeff---\ncreated: 2020-01-01\nupdated: 2024-05-06T01:02:03Z\n---\ntea",
            FILED,
            "2024-05-06T01:02:03.000Z",
        ),
        ('+++\ndate = "2024-05-06"\n+++\ntea', FILED, "2024-05-06T00:00:00.000Z"),
        ("---\ndate: 2024-05-06T99:00\n---\ntea", FILED, "2024-05-06T00:00:00.000Z"),
        ("---\ndate: yesterday\n---\ntea", FILED, FILED),
        ("---\ndate: 2024-13-06\n---\ntea", FILED, FILED),
        ("tea\n---\ndate: 2024-05-06\n---\n", FILED, FILED),
        ("tea", 0.5, "1970-01-01T00:00:00.500Z"),
        ("tea", 1e300, "2026-01-01T00:00:00.000Z"),
        ("tea", "once", "2026-01-01T00:00:00.000Z"),
        ("tea", None, "2026-01-01T00:00:00.000Z"),
    ],
)
def test_a_document_is_dated_by_its_front_matter_else_its_file(
    tmp_path: Path, content: str, mtime: str | float | None, dated: str
) -> None:
    with package.open(tmp_path) as store:
        registered = package.SourceRegistered(source_id="s", kind="docs", root="/tmp/s")
        document = package.DocumentIndexed(
            source_id="s", file="a.md", content=content, mtime=mtime, ts="2026-01-01T00:00:00Z"
        )
        store.append([registered, document])
        (hit,) = store.search("tea", mode="text").hits
        assert (hit.ts, store.documents.list("s")[0].dated_at) == (dated, dated)
