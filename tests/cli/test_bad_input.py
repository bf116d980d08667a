"""Bad input, by name: never fatal, never silent, never touched."""

import hashlib
import json
import re
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from memlog import open as opened
from memlog.eventlog import timestamps
from memlog.eventlog.events import TYPES
from memlog.eventlog.integrity.copy_identity import Writer
from memlog.eventlog.log.streams import SegmentName
from tests.cli.refusals import not_stored

Run = Callable[..., Any]
BOM = b"\xef\xbb\xbf"


def memory(content: str) -> bytes:
    return json.dumps({"type": "memory_saved", "content": content}).encode()


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def found(store: Path, text: str = "neighbour") -> set[str]:
    """The contents of all hits."""
    with opened(store) as read:
        return {hit.content for hit in read.search(text, k=100, mode="text").hits}


def quarantined(store: Path) -> list[dict[str, Any]]:
    with opened(store) as read:
        return [msgspec.structs.asdict(line) for line in read.maintenance.quarantine()]


BEFORE, AFTER = memory("a neighbour before"), memory("a neighbour after")
NEIGHBOURS = {"a neighbour before", "a neighbour after"}

# What a line is called; its bytes; the code of the refusal and the reason of the quarantine; what is named.
BAD: dict[str, tuple[bytes, str, str]] = {
    "invalid UTF-8": (b'{"type":"memory_saved","content":"caf\xe9"}', "not_utf8", "byte 37"),
    "a surrogate in UTF-8": (b'{"type":"memory_saved","content":"\xed\xa0\xbd"}', "not_utf8", "byte 34"),
    "a lone surrogate": (rb'{"type":"memory_saved","content":"\ud83d"}', "lone_surrogate", r"\ud83d"),
    "a NUL byte": (b'{"type":"memory_saved","content":"a\x00b"}', "not_json", "byte 35"),
    "NUL bytes alone": (b"\x00" * 4096, "not_json", "byte 0"),
    "NaN": (b'{"type":"memory_saved","content":"a","importance":NaN}', "not_json", "byte 50"),
    "a number out of range": (b'{"type":"memory_saved","content":"a","x":1e999}', "invalid", "out of range"),
    "a key twice": (b'{"type":"memory_saved","content":"a","content":"b"}', "duplicate_key", "'content'"),
    "a key twice in meta": (
        rb'{"type":"message","channel":"x","chat_id":"1","role":"user","content":"a","meta":{"a":1,"\u0061":2}}',
        "duplicate_key",
        "'a'",
    ),
    "missing members": (b'{"type":"memory_saved","title":"a"}', "invalid", "`content`"),
    "a member of the wrong type": (b'{"type":"memory_saved","content":["a"]}', "invalid", "`$.content`"),
    "an unknown type": (b'{"type":"memory_dreamt","content":"a"}', "unknown_type", "'memory_dreamt'"),
    "a newer version": (b'{"type":"memory_saved","v":9,"content":"a"}', "newer_version", "version 9"),
    "a wrong crc": (b'{"type":"memory_saved","content":"a","crc":"00000000"}', "bad_crc", "bad crc"),
    "no object": (b'["memory_saved"]', "invalid", "array"),
    "plain text": (b"remember the milk", "not_json", "byte 0"),
    "a torn line": (b'{"type":"memory_saved","content":"a nei', "torn", "ends inside"),
    "a nested bomb": (b'{"type":"memory_saved","x":' + b"[" * 20_000, "too_deep", "too deep"),
}


def among_neighbours(lines: list[bytes]) -> tuple[bytes, set[str]]:
    """The lines, each between two memories, and what these say."""
    said = [f"the neighbour {number}" for number in range(len(lines) + 1)]
    pairs = zip([b"", *lines], map(memory, said), strict=True)
    return b"".join(line + b"\n" + neighbour + b"\n" for line, neighbour in pairs)[1:], set(said)


def test_a_bad_line_in_a_pipe_is_refused_and_its_neighbours_are_stored(memlog: Run, store: Path) -> None:
    lines, neighbours = among_neighbours([line for line, _, _ in BAD.values()])
    done = memlog("append", input=lines)
    assert (done.code, done.err) == (65, not_stored(len(BAD)))
    assert all("id" in answer for answer in done.lines[::2])
    for number, (refusal, name) in enumerate(zip(done.lines[1::2], BAD, strict=True), 1):
        _, code, named = BAD[name]
        assert list(refusal) == ["line", "error"], name
        error = refusal["error"]
        assert list(error) == ["code", "message", "hint", "retryable"], name
        assert (refusal["line"], error["code"], error["retryable"]) == (2 * number, code, False), name
        assert named in error["message"], name
        assert error["hint"], name
    assert found(store) == neighbours
    assert quarantined(store) == []


def test_a_bad_line_in_the_log_is_quarantined_and_its_neighbours_are_projected(
    memlog: Run, segment: Run, store: Path
) -> None:
    # NUL bytes alone are a blank line there: a power cut leaves them.
    bad = {line: reason for name, (line, reason, _) in BAD.items() if name != "NUL bytes alone"}
    lines, neighbours = among_neighbours(list(bad))
    path = segment("memory", lines)
    before = sha256(path)
    done = memlog("query", "neighbour", "--mode", "text", "-k", "100", "--json")
    assert done.code == 0
    assert {hit["content"] for hit in done.json["hits"]} == neighbours
    assert quarantined(store) == [
        {
            "stream": "memory",
            "segment": "2026-02-24.jsonl",
            "offset": lines.index(b"\n" + line + b"\n") + 1,
            "reason": reason,
            "bytes": len(line),
        }
        for line, reason in bad.items()
    ]
    assert sha256(path) == before


UNSAFE_NUMBERS = {
    "2^63": b"9223372036854775808",
    "2^64": b"18446744073709551616",
    "2^70": b"1180591620717411303424",
    "-2^63-1": b"-9223372036854775809",
    "5,000 digits": b"7" * 5000,
    "1e999": b"1e999",
    "-1e999": b"-1e999",
    "NaN": b"NaN",
    "Infinity": b"-Infinity",
}
SAID = b'{"type":"message","channel":"x","chat_id":"1","role":"user","content":"a"'
WITH_NUMBER = {
    "known member": b'{"type":"memory_saved","content":"a","importance":%s}',
    "version": b'{"type":"memory_saved","content":"a","v":%s}',
    "time": b'{"type":"memory_saved","content":"a","ts":%s}',
    "unknown member": b'{"type":"memory_saved","content":"a","x":%s}',
    "meta": SAID + b',"meta":{"a":[{"b":%s}]}}',
}


def deep(levels: int, opening: bytes, closing: bytes, inner: bytes = b"1") -> bytes:
    return b'{"type":"memory_saved","content":"a","x":' + opening * levels + inner + closing * levels + b"}"


UNSAFE = {
    f"{number} as {where}": line % digits
    for number, digits in UNSAFE_NUMBERS.items()
    for where, line in WITH_NUMBER.items()
} | {
    f"{levels} levels of {opening.decode()}": deep(levels, opening, closing)
    for levels in (1000, 5000)
    for opening, closing in ((b"[", b"]"), (b'{"a":', b"}"), (b'[{"a":', b"}]"))
}


def with_crc(line: bytes) -> bytes:
    """As memlog would have written it."""
    stamps = b',"id":"y","ts":"2026-02-24T10:15:00.000Z","at":"2026-02-24T10:15:00.000Z"'
    body = line.removesuffix(b"}") + (stamps if b'"ts":' not in line else b"")
    return body + b',"crc":"%08x"}' % zlib.crc32(body)


def test_numbers_and_nesting_that_readers_would_change_are_refused(memlog: Run, store: Path) -> None:
    done = memlog("append", input=b"\n".join([BEFORE, *UNSAFE.values(), AFTER, b""]))
    assert (done.code, done.err) == (65, not_stored(len(UNSAFE)))
    first, *refusals, last = done.lines
    assert "id" in first
    assert "id" in last
    assert len(refusals) == len(UNSAFE)
    for name, refusal in zip(UNSAFE, refusals, strict=True):
        error = refusal["error"]
        assert error["code"] in ("invalid", "not_json", "newer_version", "too_deep"), name
        assert error["hint"], name
        assert error["message"] != error["code"].replace("_", " "), name
    assert found(store) == NEIGHBOURS


def test_numbers_and_nesting_that_readers_would_change_are_quarantined(
    memlog: Run, store: Path, segment: Run
) -> None:
    bad = [*UNSAFE.values(), *map(with_crc, UNSAFE.values())]
    path = segment("memory", b"\n".join([BEFORE, *bad, AFTER, b""]))
    before = sha256(path)
    done = memlog("project", "--no-embed", "--json")
    assert (done.code, done.err) == (0, b"")
    assert (done.json["rows"], done.json["quarantined"]) == (2, len(bad))
    reasons = {line["reason"] for line in quarantined(store)}
    assert reasons <= {"invalid", "not_json", "newer_version", "too_deep"}
    listed = memlog("quarantine")
    assert (listed.code, listed.err, len(listed.out.splitlines())) == (0, b"", 1 + len(bad))
    assert sha256(path) == before


def test_a_meta_that_readers_would_change_is_refused(memlog: Run, store: Path) -> None:
    said = ("append", "message", "--chat", "x:1", "--role", "user", "--content", "x", "--meta")
    numbers = (b'{"a":18446744073709551616}', b'{"a":NaN}', b'{"a":1e999}')
    for meta in (b'{"a":1,"a":2}', *numbers, deep(1000, b"[", b"]"), b"5", b"", rb'{"a":"\ud800"}'):
        done = memlog(*said, meta)
        assert done.code in (2, 65), meta
        assert b"\nhint: " in done.err, meta
        assert b"Traceback" not in done.err, meta
        assert not store.exists(), meta


def test_the_quarantine_tells_a_person_where_a_line_is_and_what_to_do(memlog: Run, segment: Run) -> None:
    segment("memory", b"\n".join([BEFORE, b'{"type":"memory_dreamt"}', b'{"type":"memory_saved"}', b""]))
    done = memlog("quarantine")
    offset = len(BEFORE) + 1
    head, *rows = [re.split("  +", line) for line in done.out.decode().splitlines()]
    assert head == ["segment", "offset", "bytes", "reason", "explanation"]
    assert rows == [
        [
            *("memory/2026-02-24.jsonl", str(offset), "24", "unknown_type"),
            f"type 'memory_dreamt'; known types: {', '.join(TYPES)}",
        ],
        [
            *("memory/2026-02-24.jsonl", str(offset + 25), "23", "invalid"),
            "Object missing required field `content`; memlog append TYPE --help lists the members of a type",
        ],
    ]


def test_a_line_that_is_one_text_full_of_braces_is_like_any_other_bad_line(
    memlog: Run, segment: Run, store: Path
) -> None:
    line = b'"' + b"{" * 100 + b'"'
    assert memlog("append", input=b"\n".join([BEFORE, line, AFTER, b""])).code == 65
    segment("core", line + b"\n")
    assert memlog("query", "neighbour", "--mode", "text").code == 0
    assert found(store) == NEIGHBOURS


def test_an_event_in_another_folder_is_quarantined(store: Path, segment: Run) -> None:
    said = b'{"type":"message","channel":"x","chat_id":"1","role":"user","content":"a neighbour"}\n'
    segment("conversations/x_1", said)
    segment("conversations/x_2", said)
    segment("core", said)
    assert found(store) == {"a neighbour"}
    assert [(line["stream"], line["reason"]) for line in quarantined(store)] == [
        ("conversations/x_2", "wrong_stream"),
        ("core", "wrong_stream"),
    ]


def test_empty_lines_are_left_out(store: Path, segment: Run) -> None:
    path = segment("memory", b"\n\n".join([b"", BEFORE, b"  ", b"\r", AFTER, b""]))
    before = sha256(path)
    assert found(store) == NEIGHBOURS
    assert quarantined(store) == []
    assert sha256(path) == before


def test_lines_may_end_with_crlf(memlog: Run, store: Path, segment: Run) -> None:
    segment("memory", BEFORE + b"\r\n", "2026-02-24.jsonl")
    assert memlog("append", input=AFTER + b"\r\n").code == 0
    assert found(store) == NEIGHBOURS
    assert quarantined(store) == []


def test_a_file_may_begin_with_a_byte_order_mark(store: Path, segment: Run) -> None:
    segment("memory", BOM + BEFORE + b"\n" + AFTER + b"\n")
    assert found(store) == NEIGHBOURS
    assert quarantined(store) == []


def test_files_with_byte_order_marks_may_be_joined_in_a_segment(
    memlog: Run, store: Path, segment: Run
) -> None:
    """As `cat a.jsonl b.jsonl` joins them, and as `echo >>` adds a line to one."""
    path = segment("memory", BOM + BEFORE + b"\n" + BOM + b"\r\n" + BOM + BOM + AFTER + b"\r\n")
    assert found(store) == NEIGHBOURS
    assert quarantined(store) == []
    assert memlog("append", "memory_saved", "--content", "a later neighbour").code == 0
    with path.open("ab") as file:
        file.write(BOM + memory("a neighbour by hand") + b"\n")
    assert found(store) == {*NEIGHBOURS, "a later neighbour", "a neighbour by hand"}
    logged = [json.loads(line) for line in memlog("log", "cat", "--json").out.splitlines()]
    assert {each["content"] for each in logged} == {*NEIGHBOURS, "a later neighbour", "a neighbour by hand"}
    assert memlog("verify").code == 0
    assert memlog("forget", "--match", "by hand", "--yes").code == 0
    assert "a neighbour by hand" not in found(store)


def test_an_input_may_have_a_byte_order_mark_before_each_line(memlog: Run, store: Path) -> None:
    """What is legal in a segment, as Windows programs write it, is legal as an input."""
    for end in (b"\n", b""):
        assert memlog("append", input=BOM + BEFORE + b"\n" + BOM + b"\n" + BOM + AFTER + end).code == 0
    with opened(store) as written:
        written.append(BOM + memory("a neighbour by Python"))
    assert found(store) >= {*NEIGHBOURS, "a neighbour by Python"}


LIST = "\ufeffMy favourite teas are 1) Assam, 2) Sencha"


@pytest.mark.parametrize(
    ("args", "text"),
    [
        (("append", "memory_saved", "--content", "-"), "\ufefftea"),
        (("append", "message", "--chat", "x:1", "--role", "user", "--content", "-"), "\ufefftea\n"),
        (("memory", "save", "--content", "-"), "\ufefftea"),
        (("query", "-", "--mode", "text"), "\ufefftea"),
        (("context", "-"), "\ufefftea"),
        (("gate", "-"), "\ufeffwhat is my favourite tea?"),
        (("ask", "-"), "\ufeffwhat is my favourite tea?"),
        (("fact", "extract"), LIST),
        (("fact", "extract", "-"), LIST),
        (("fact", "extract", LIST), ""),
        (("scrub", "--prove", "-"), "\ufefftea"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_a_byte_order_mark_before_a_text_is_no_text(memlog: Run, args: tuple[str, ...], text: str) -> None:
    """The answer, and what is stored, are the same as without it."""
    memlog("append", "memory_saved", "--memory-id", "m", "--content", "tea")
    memlog("fact", "set", "favorite_teas", "Assam")
    with_mark = memlog(*args, input=text.encode())
    bare = memlog(*(arg.removeprefix("\ufeff") for arg in args), input=text.removeprefix("\ufeff").encode())
    assert with_mark.code == bare.code
    assert args[0] == "append" or len(with_mark.out) == len(bare.out)
    stored = memlog("log", "cat", "--json")
    assert stored.code == 0
    assert "\ufeff".encode() not in stored.out
    if args[0] == "fact":
        assert with_mark.out == bare.out
        assert b"Sencha" in with_mark.out


def test_a_settings_file_may_begin_with_a_byte_order_mark(memlog: Run, store: Path) -> None:
    store.mkdir()
    (store / "memlog.toml").write_bytes(BOM + b"search_limit = 3\r\n")
    assert memlog("config", "search_limit").out == b"3\n"


def test_a_nul_that_is_escaped_is_a_character_like_any_other(memlog: Run) -> None:
    said = {
        "type": "message",
        "channel": "x\0",
        "chat_id": "1\0",
        "role": "user",
        "content": "a\0neighbour\0x",
    }
    done = memlog("append", input=json.dumps(said).encode() + b"\n")
    assert done.json["stream"] == "conversations/x%00_1%00"
    (hit,) = memlog("query", "neighbour", "--mode", "text", "--json").json["hits"]
    assert (hit["content"], hit["chat"]) == ("a\0neighbour\0x", "x\0:1\0")


def test_what_splits_lines_elsewhere_splits_none_here(memlog: Run, segment: Run, store: Path) -> None:
    texts = [f"neighbour {number}\u2028\u2029\x85|" for number in "12"]
    by_hand, piped = (f'{{"type":"memory_saved","content":"{text}"}}\n'.encode() for text in texts)
    segment("memory", by_hand)
    assert memlog("append", input=piped).code == 0
    assert found(store) == set(texts)


def test_an_event_over_16_mib_in_a_pipe_is_refused(memlog: Run, store: Path) -> None:
    done = memlog("append", input=b"\n".join([BEFORE, memory("x" * (17 << 20)), AFTER, b""]))
    assert done.code == 65
    first, refusal, last = done.lines
    assert (refusal["line"], refusal["error"]["code"]) == (2, "too_long")
    assert "16 MiB" in refusal["error"]["hint"]
    size = (store / "log/memory" / last["segment"]).stat().st_size
    assert size < 1000
    assert first["offset"] < last["offset"] < size
    assert found(store) == NEIGHBOURS


def test_an_event_over_16_mib_in_the_log_is_quarantined(store: Path, segment: Run) -> None:
    long = memory("x" * (17 << 20))
    path = segment("memory", b"\n".join([BEFORE, long, AFTER, b""]))
    before = sha256(path)
    assert found(store) == NEIGHBOURS
    (line,) = quarantined(store)
    assert (line["offset"], line["reason"], line["bytes"]) == (len(BEFORE) + 1, "too_long", len(long))
    assert sha256(path) == before


def test_an_unterminated_line_in_a_pipe_is_stored_where_it_is_whole(memlog: Run, store: Path) -> None:
    assert memlog("append", input=BEFORE + b"\n" + AFTER).code == 0
    assert found(store) == NEIGHBOURS


def test_an_unterminated_line_in_a_pipe_is_refused_where_it_is_torn(memlog: Run, store: Path) -> None:
    done = memlog("append", input=BEFORE + b"\n" + AFTER[:-3])
    assert done.code == 65
    assert (done.lines[1]["line"], done.lines[1]["error"]["code"]) == (2, "torn")
    assert found(store) == {"a neighbour before"}


@pytest.mark.parametrize("tail", [AFTER, AFTER[:-3]], ids=["whole", "torn"])
def test_an_unterminated_tail_of_the_newest_segment_is_pending(
    memlog: Run, store: Path, segment: Run, tail: bytes, without_model: dict[str, str]
) -> None:
    """A writer may still be at it."""
    path = segment("memory", BEFORE + b"\n" + tail)
    before = sha256(path)
    assert found(store) == {"a neighbour before"}
    assert quarantined(store) == []
    assert memlog("status", "--json", env=without_model).json["unread_bytes"] == len(tail)
    assert sha256(path) == before


def test_a_pending_tail_is_found_when_it_is_ended(store: Path, segment: Run) -> None:
    path = segment("memory", BEFORE + b"\n" + AFTER[:-3])
    assert found(store) == {"a neighbour before"}
    with path.open("ab") as file:
        file.write(AFTER[-3:] + b"\n")
    assert found(store) == NEIGHBOURS


def test_a_torn_tail_is_quarantined_when_something_follows(memlog: Run, store: Path, segment: Run) -> None:
    current = SegmentName(timestamps.today(), 0, Writer(store).find_or_create_name()).filename
    path = segment("memory", BEFORE + b"\n" + AFTER[:-3], current)
    with path.open("rb") as file:
        Writer(store).record_size("memory", current, file.fileno(), lock_timeout=1)
    before = path.read_bytes()
    memlog("append", input=memory("a third neighbour"))
    assert found(store) == {"a neighbour before", "a third neighbour"}
    (line,) = quarantined(store)
    assert (line["offset"], line["reason"], line["bytes"]) == (len(BEFORE) + 1, "torn", len(AFTER) - 3)
    assert path.read_bytes().startswith(before + b"\n{")


def test_the_tail_of_an_older_segment_is_a_line_like_any_other(store: Path, segment: Run) -> None:
    segment("memory", BEFORE, "2026-02-22.jsonl")
    torn = segment("memory", memory("torn")[:-3], "2026-02-23.jsonl")
    before = sha256(torn)
    segment("memory", AFTER + b"\n", "2026-02-24.jsonl")
    assert found(store) == NEIGHBOURS
    (line,) = quarantined(store)
    assert (line["segment"], line["offset"], line["reason"]) == ("2026-02-23.jsonl", 0, "torn")
    assert sha256(torn) == before


def test_a_line_glued_to_a_torn_one_is_quarantined_whole(store: Path, segment: Run) -> None:
    glued = BEFORE[:20] + BEFORE
    segment("memory", glued + b"\n" + AFTER + b"\n")
    assert found(store) == {"a neighbour after"}
    assert [line["bytes"] for line in quarantined(store)] == [len(glued)]


def test_whatever_nesting_was_acknowledged_is_found(memlog: Run) -> None:
    said = b'{"type":"message","channel":"x","chat_id":"1","role":"user","content":"deep","x":'
    lines = [said + b"[" * depth + b"]" * depth + b"}\n" for depth in [*range(50, 80), *range(940, 1010)]]
    done = memlog("append", input=b"".join(lines))
    acknowledged = {answer["id"] for answer in done.lines if "id" in answer}
    assert 0 < len(acknowledged) < len(lines)
    window = memlog("window", "--chat", "x:1", "--last", "1000", "--json").json
    assert {message["id"] for message in window["messages"]} == acknowledged


def test_a_chat_id_cannot_leave_the_log(memlog: Run, store: Path, tmp_path: Path) -> None:
    done = memlog("append", "message", "--chat", "x:../../etc", "--role", "user", "--content", "a neighbour")
    assert done.code == 0
    assert done.json["stream"] == "conversations/x_..%2f..%2fetc"
    assert found(store) == {"a neighbour"}
    assert (store / "log/conversations/x_..%2f..%2fetc").is_dir()
    assert [path.name for path in tmp_path.iterdir()] == ["store"]
    window = memlog("window", "--chat", "x:../../etc", "--json").json
    assert [message["content"] for message in window["messages"]] == ["a neighbour"]


CHAT_IDS = ["/etc/passwd", ".", "..", "a\nb", "a\0b", "~root", "CON", "x" * 300, "喝茶" * 100, "%2e%2e"]


def test_whatever_a_chat_is_called_it_has_a_folder_and_is_found(
    memlog: Run, store: Path, tmp_path: Path
) -> None:
    said = {"type": "message", "channel": "x", "role": "user"}
    lines = [
        json.dumps(said | {"chat_id": chat_id, "content": f"neighbour {number}"}).encode() + b"\n"
        for number, chat_id in enumerate(CHAT_IDS)
    ]
    assert memlog("append", input=b"".join(lines)).code == 0
    hits = memlog("query", "neighbour", "--mode", "text", "-k", "100", "--json").json["hits"]
    assert sorted(hit["chat"] for hit in hits) == sorted(f"x:{chat_id}" for chat_id in CHAT_IDS)
    files = [path for path in tmp_path.rglob("*.jsonl") if path.name != "watermarks.jsonl"]
    assert len({path.parent for path in files}) == len(files) == len(CHAT_IDS)
    assert {path.parent.parent for path in files} == {store / "log/conversations"}


def test_a_file_that_is_almost_a_segment_stops_no_read(memlog: Run, segment: Run) -> None:
    segment("memory", BEFORE + b"\n", "2026-02-24.0000.jsonl")
    segment("core", AFTER + b"\n")
    assert memlog("query", "neighbour", "--mode", "text").code == 0


def test_a_file_that_is_no_segment_is_named_and_left_alone(memlog: Run, segment: Run) -> None:
    segment("memory", BEFORE + b"\n")
    segment("memory", b"buy milk\n", "notes.txt")
    done = memlog("query", "neighbour", "--mode", "text")
    assert done.code == 0
    assert b"log/memory/notes.txt is not a segment: not read" in done.err


def test_a_file_name_that_is_not_utf_8_stops_no_project(
    memlog: Run, segment: Run, without_model: dict[str, str]
) -> None:
    segment("memory", BEFORE + b"\n")
    segment("memory", b"", "caf\udce9.txt")
    assert memlog("project", "--json", env=without_model).code == 0


def test_a_store_whose_name_is_not_utf_8_has_a_status(
    memlog: Run, tmp_path: Path, without_model: dict[str, str]
) -> None:
    (tmp_path / "caf\udce9" / "log").mkdir(parents=True)
    done = memlog("--store", tmp_path / "caf\udce9", "status", "--json", env=without_model)
    assert done.code == 0


# Folders that cannot be written


def test_a_read_only_folder_cannot_be_appended_to(
    memlog: Run, read_only: Run, bound_by_modes: dict[str, Any], store: Path
) -> None:
    read_only()
    piped = memlog("append", input=BEFORE + b"\n", **bound_by_modes)
    one = memlog(
        *("append", "message", "--chat", "x:1", "--role", "user", "--content", "x", "--json"),
        **bound_by_modes,
    )
    core = memlog("core", "set", "user", "name", "Ann", "--json", **bound_by_modes)
    assert (piped.code, one.code, core.code) == (73, 73, 73)
    for error in (piped.json["error"], one.error, core.error):
        assert error["code"] == "cannot_create"
        assert "Permission denied" in error["message"]
        assert "may not have been stored" in error["message"]
        assert error["hint"].startswith("make the store's folder writable")
    assert list(store.iterdir()) == []


def test_a_store_cannot_be_made_in_a_read_only_folder(
    memlog: Run, read_only: Run, bound_by_modes: dict[str, Any], store: Path
) -> None:
    read_only()
    done = memlog("--store", store / "new", "init", "--json", **bound_by_modes)
    assert (done.code, done.error["code"]) == (73, "cannot_create")
    assert str(store / "new") in done.error["message"]


# Queries


@pytest.fixture
def tea(segment: Run) -> None:
    """One memory about tea."""
    segment("memory", memory("green tea and -x near it") + b"\n")


IS_FOUND = {
    '"': False,
    '""': False,
    '"tea': True,
    'tea"': True,
    '"green tea"': True,
    '"tea green"': False,
    "AND": True,
    "tea AND nothing": True,
    "*": False,
    "tea*": True,
    "NEAR(": True,
    "NEAR(tea green, 5)": True,
    "content:tea": True,
    "tea) OR (1=1": True,
    "😀": False,
    "tea😀": True,
    "'; DROP TABLE events; --": False,
    "\x01\x1b[31m": False,
    "%_": False,
    "^tea": True,
    "{tea}": True,
    "word " * 9_999 + "tea": True,
    "tea " + " ".join(f"word{number}" for number in range(9_999)): True,
    " ".join(f"word{number}" for number in range(9_999)) + " tea": False,
}


@pytest.mark.usefixtures("tea")
def test_a_query_is_never_syntax(memlog: Run) -> None:
    for text, is_found in IS_FOUND.items():
        done = memlog("query", text, "--mode", "text", "--json")
        assert (done.code, bool(done.json["hits"])) == (0, is_found), text
        assert b"Traceback" not in done.err, text


@pytest.mark.usefixtures("tea")
def test_a_query_of_too_many_words_says_which_counted(memlog: Run) -> None:
    words = " ".join(f"word{number}" for number in range(10_000))
    done = memlog("query", words, "--mode", "text", "--json")
    assert done.json["silent"] == {"text": "only the first 64 of the question's words were looked up"}


def test_a_query_of_nothing_is_wrong_usage(memlog: Run) -> None:
    for text in ("", " ", "\t\n"):
        done = memlog("query", text, "--json")
        assert (done.code, done.error["code"]) == (2, "usage"), repr(text)
        assert "empty" in done.error["message"], repr(text)


def test_a_query_that_is_not_utf_8_is_wrong_usage(memlog: Run) -> None:
    done = memlog("query", b"caf\xe9", "--json")
    assert (done.code, done.error["code"]) == (2, "usage")
    assert "not UTF-8" in done.error["message"]
