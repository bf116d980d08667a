"""What looks like a key, and what does not."""

import json
from pathlib import Path

import pytest
from canaries import canaries

from memlog.eventlog.draft import draft
from memlog.eventlog.errors import BadInput, NotFound
from memlog.eventlog.secrets import KINDS, kinds_in, masked, masked_event, texts_in

FIXTURES = Path(__file__).parent.parent.parent / "fixtures"
CANARIES = canaries(4 * len(KINDS))


@pytest.mark.parametrize(("kind", "key"), CANARIES, ids=[kind for kind, _ in CANARIES])
def test_a_key_is_masked_whole_wherever_it_stands(kind: str, key: str) -> None:
    for before, behind in (
        ("", ""),
        ("key=", " ok"),
        ('"', '"'),
        ("(", ")."),
        ("Bearer ", "\n"),
        ("до ", ","),
    ):
        if kind == "private-key" or behind != "":
            assert masked(f"{before}{key}{behind}") == f"{before}[REDACTED:{kind}]{behind}"
    assert kinds_in(f"{key} and {key}") == [kind, kind]


def test_every_kind_has_a_canary() -> None:
    assert {kind for kind, _ in CANARIES} == set(KINDS)


@pytest.mark.parametrize(
    "text",
    [
        "sk-learn is scikit-learn, and risk-averse-investment-strategies-of-the-elderly",
        "task-sk-something-that-has-many-hyphens-and-words",
        "AKIA is a prefix, AKIAIOSFODNN7 too short",
        "AIza",
        "eyJhbGciOiJIUzI1NiJ9 alone is half a token",
        "xox-o-matic",
        "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
        "-----BEGIN PUBLIC KEY-----",
        "0f8fad5b-d9cb-469f-a165-70867728950e",
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "12345678:AB",
        "https://hooks.slack.com/docs",
    ],
)
def test_what_is_no_key_stays(text: str) -> None:
    assert masked(text) == text


def test_the_logs_of_the_fixtures_hold_no_key() -> None:
    lines = [line for path in FIXTURES.rglob("*.jsonl") for line in path.read_bytes().split(b"\n")]
    assert len(lines) > 300
    assert [text for line in lines for text in texts_in(line) if kinds_in(text)] == []


def test_a_private_key_that_was_cut_short_is_masked_to_the_end() -> None:
    ((_, key),) = [each for each in CANARIES if each[0] == "private-key"][:1]
    assert masked(f"see {key[:100]}") == "see [REDACTED:private-key]"


(_, KEY) = next(each for each in CANARIES if each[0] == "aws-key")
MASKED = "[REDACTED:aws-key]"


def said(**members: object) -> bytes:
    event = {"type": "message", "channel": "x", "chat_id": "1", "role": "user", "content": "hi", **members}
    return json.dumps(event).encode()


def test_every_text_of_an_event_is_masked_at_any_depth() -> None:
    line = said(content=KEY, meta={"a": [{"b": f"={KEY}"}], KEY: 1.5, f"{KEY}": 2}, unknown=[KEY, None, 7])
    members = json.loads(masked_event(line))
    assert members["content"] == MASKED
    assert members["meta"] == {"a": [{"b": f"={MASKED}"}], MASKED: 2}
    assert members["unknown"] == [MASKED, None, 7]


def test_names_of_members_stay_apart() -> None:
    keys = [key for kind, key in canaries(400) if kind == "aws-key"][:3]
    line = said(meta=dict.fromkeys(keys, 1))
    assert list(json.loads(masked_event(line))["meta"]) == [MASKED, f"{MASKED} 2", f"{MASKED} 3"]


def test_an_event_without_keys_is_the_same_bytes() -> None:
    line = said(content="tea", number=1.50)
    assert masked_event(line) is line
    for odd in (b"[]", b"no JSON", b'"\xff"'):
        assert masked_event(odd) is odd


def test_a_line_of_another_log_is_masked_too() -> None:
    line = draft({"type": "memory_saved", "content": f"it is {KEY}"}).line("2026-02-24T10:15:00.000Z")
    made = draft(line.rstrip(), redact=True).line("2026-02-24T10:16:00.000Z")
    assert b"[REDACTED:" in made
    assert KEY.encode() not in made


def test_a_key_that_is_spelt_with_escapes_is_masked_too() -> None:
    escaped = "".join(f"\\u{ord(letter):04x}" for letter in KEY)
    line = said(content="HERE").replace(b"HERE", escaped.encode())
    assert KEY.encode() not in line
    assert json.loads(masked_event(line))["content"] == MASKED


@pytest.mark.parametrize("name", ["id", "chat_id", "channel"])
def test_what_names_things_is_refused_and_not_told(name: str) -> None:
    with pytest.raises(BadInput, match=f"{name} holds what looks like a key") as refused:
        draft(said(**{name: KEY}), redact=True)
    assert KEY not in refused.value.message


def test_an_error_says_no_key() -> None:
    for line in (said(role=KEY), said(v=KEY), b'{"type":"' + KEY.encode() + b'"}'):
        with pytest.raises(BadInput) as refused:
            draft(line, redact=True)
        assert KEY not in refused.value.message
        assert MASKED in refused.value.message
        assert refused.value.__suppress_context__


def test_an_error_stays_of_its_kind() -> None:
    def find(target: str) -> str:
        raise NotFound(f"no event {target}", hint="none", code="event_not_found")

    with pytest.raises(NotFound) as refused:
        draft({"type": "redacted", "target_id": KEY}, find, redact=True)
    assert (refused.value.message, refused.value.code) == (f"no event {MASKED}", "event_not_found")


def test_what_is_wrong_with_an_event_is_not_lost_with_what_is_masked() -> None:
    line = said(content=KEY).replace(b'"role"', b'"content": "twice", "role"')
    with pytest.raises(BadInput) as refused:
        draft(line, redact=True)
    assert refused.value.code == "duplicate_key"


def test_a_struct_and_a_dict_are_masked_as_a_line_is() -> None:
    made = draft(json.loads(said(content=f"my {KEY}", id="m1")), redact=True)
    assert (made.id, KEY.encode() in made.tail, MASKED.encode() in made.tail) == ("m1", False, True)
    assert KEY.encode() in draft(said(content=KEY)).tail


def test_texts_of_what_is_no_json_are_the_whole_line() -> None:
    assert list(texts_in(b"torn " + KEY.encode())) == [f"torn {KEY}"]
    assert list(texts_in(b'{"a":[1,"b",{"c":null}]}')) == ["a", "b", "c"]
