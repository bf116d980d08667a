"""What looks like a key, and what does not."""

import json
import re
from base64 import b64encode
from functools import cache
from itertools import chain
from pathlib import Path
from statistics import mean

import pytest

from memlog.eventlog.codec.encode import draft_event
from memlog.eventlog.errors import BadInput, NotFound
from memlog.eventlog.escapes import decode_json
from memlog.eventlog.secrets.detection import (
    list_key_kinds,
    list_key_kinds_in_line,
    list_texts_within,
    mask_event,
    mask_keys,
)
from memlog.eventlog.secrets.keys import KINDS
from tests.eventlog.key_wrappings import LISTS, SPLITTING, WRAPPINGS
from tests.support.canaries import Canary, Chance, canaries
from tests.support.month_log import MonthLog
from tests.support.places import FIXTURES

FORGETTING = FIXTURES.parent / "docs/memory/forgetting.md"
CANARIES = canaries(4 * len(KINDS))
LEAST_RECALL = 0.98
PLACE = "0PLACE0"
_SPLITS = re.compile(r"\\(?=[^A-Za-z0-9])|=(?:\r?\n|(?:\\r)?\\n)|[\u200e\u2063\ufe0f]")


def without_key(canary: Canary, wrapping: str) -> str:
    """What the wrapped text is to become, with all that is not the key as it was."""
    mask = f"[REDACTED:{canary.kind}]"
    return WRAPPINGS[wrapping](canary.text.replace(canary.key, PLACE)).replace(PLACE, mask)


@cache
def recall() -> dict[tuple[str, str], list[bool]]:
    """By kind and wrapping: whether the key of each canary is masked, and nothing else."""
    found: dict[tuple[str, str], list[bool]] = {}
    for each in CANARIES:
        for name, wrapped in WRAPPINGS.items():
            right = mask_keys(wrapped(each.text)) == without_key(each, name)
            found.setdefault((each.kind, name), []).append(right)
    return found


def share(found: list[list[bool]]) -> float:
    return mean(chain.from_iterable(found))


def test_the_key_alone_is_masked_in_each_wrapping() -> None:
    shares = {
        name: share([found for (_, each), found in recall().items() if each == name]) for name in WRAPPINGS
    }
    assert {name: each for name, each in shares.items() if each < LEAST_RECALL} == {}


def test_each_kind_is_masked_in_all_wrappings() -> None:
    shares = {kind: share([found for (each, _), found in recall().items() if each == kind]) for kind in KINDS}
    assert {kind: each for kind, each in shares.items() if each < LEAST_RECALL} == {}


def test_a_key_is_masked_whatever_stands_within_it_or_embraces_it() -> None:
    for name, wrapped in SPLITTING.items():
        for each in CANARIES:
            # As a person reads it, without what splits the key.
            left = _SPLITS.sub("", mask_keys(wrapped(each.text)))
            assert each.key[len(each.key) // 2 :] not in left, (name, each)


def test_a_block_of_lines_is_masked_as_a_list_of_lines() -> None:
    for each in CANARIES:
        lines = each.text.split("\n")
        if each.kind != "private-key" or len(lines) < 3:
            continue
        inner = [line for line in lines if len(line) > 30 and "-----" not in line]
        for name, wrapped in LISTS.items():
            assert not [line for line in inner if line in mask_keys(wrapped(each.text))], (name, each)
        event = {"type": "memory_saved", "content": "x", "metadata": {"key": lines, "others": ["a", "b"]}}
        clean = mask_event(json.dumps(event).encode())
        assert not [line for line in inner if line.encode() in clean]
        assert b'"others":["a","b"]' in clean


def test_at_least_forty_kinds_have_canaries_and_sources() -> None:
    assert {each.kind for each in CANARIES} == set(KINDS)
    assert len(KINDS) >= 40


def test_the_page_names_every_kind() -> None:
    page = FORGETTING.read_text()
    assert [kind for kind in KINDS if f"`{kind}`" not in page] == []


def test_two_keys_of_a_text_are_two() -> None:
    for kind, text, _ in CANARIES:
        assert list_key_kinds(f"{text} and {text}") == [kind, kind]


def test_what_is_masked_has_no_key() -> None:
    for canary in CANARIES:
        assert list_key_kinds(mask_keys(canary.text)) == []


def test_what_is_no_key_stays() -> None:
    for text in [
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
        "cache-key-d41d8cd98f00b204e9800998ecf8427e",
        "https://hooks.slack.com/docs",
        "https://example.com:8080/path@here and postgres://db.example.com:5432/main",
        "postgres://app:${PASSWORD}@db/main, mysql://app:$PASSWORD@db, redis://:***@cache, amqp://{user}:{password}@mq",
        "Authorization: Bearer YOUR_ACCESS_TOKEN and Authorization: Basic authentication",
        "the bearer of good news, bearer-authentication-is-described-elsewhere",
        "aws_secret_access_key = ...",
        "Secret access keys are rotated: see https://docs.example.com/iam/secret-access-key-rotation",
        "mysql://app:<password>@db, postgres://app:[YOUR-PASSWORD]@db, redis://:{{password}}@mq, mysql://a:%PW%@db",
        '{"url":"redis://cache:6379","mail":"a@b.example"}, [\'mysql://db:main\', \'a@b.example\']',
        "postgres://db:5432/main?contact=admin@example.com",
        'if "-----BEGIN RSA PRIVATE KEY-----" in text and "-----END RSA PRIVATE KEY-----" in it:',
        "-----BEGIN PRIVATE KEY----- is the first line, and validate_certificate_chain_of_server checks it",
        "DB_PASSWORD=${PW2}, API_KEY=os.environ['X1'], PASSWORD=get_password2(name)",
        "API_KEY = settings.api_key2",
        "SECRET=your-secret-here-123, PASSWORD=changeme123, SMTP_PASSWORD=<password>",
        "PASSWORD: None, API_KEY=%(key)s",
        "AccountKey=<your account key>;EndpointSuffix=core.windows.net",
        "key-value, re_compile, pat_on_the_back, dp.py, MT. Everest, api_key, secret_santa, hf_hub_download",
        "C:\\new\\table, 100%ab, \\u0041, %zz, \x1b[31mred\x1b[0m, \\d+\\w{3}",
    ]:
        assert mask_keys(text) == text, text


def test_the_fixtures_hold_no_key(month: MonthLog, older_stores: Path) -> None:
    folders = (FIXTURES, month.log, older_stores)
    files = [path.read_bytes() for folder in folders for path in folder.rglob("*") if path.is_file()]
    lines = [line for file in files for line in file.split(b"\n")]
    texts = list(
        list_texts_within(decode_json(line, object) or line.decode(errors="replace") for line in lines)
    )
    assert len(texts) > 3000
    assert [(kind, text) for text in texts for kind in list_key_kinds(text)] == []


def test_a_private_key_that_was_cut_short_is_masked_to_the_end() -> None:
    key = next(each.key for each in CANARIES if each.kind == "private-key")
    assert mask_keys(f"see {key[:100]}") == "see [REDACTED:private-key]"


def test_only_the_lines_of_a_private_key_that_was_cut_short_are_masked() -> None:
    for behind in [" and prose goes on. ", "\ndef load(path):\n    return open(path)\n", '")\n']:
        for key in (each.key for each in CANARIES if each.kind == "private-key"):
            head, *lines = key.split("\n")
            for count in (1, 2, 3):
                text = "\n".join([head, *lines[:count]]) + behind * 50
                assert mask_keys(text) == f"[REDACTED:private-key]{behind * 50}", behind


def test_a_private_key_is_masked_whole_whatever_its_lines_begin_with() -> None:
    for before in ["> ", "# ", "12: ", "web_1 | ", "+", '    "']:
        for key in (each.key for each in CANARIES if each.kind == "private-key"):
            shown = mask_keys(f"{key}\nend".replace("\n", f"\n{before}"))
            assert shown == f"[REDACTED:private-key]\n{before}end", before


def test_a_colour_or_a_character_of_no_width_within_a_key_does_not_hide_it() -> None:
    for coded in [str, json.dumps, repr]:
        for kind, text, key in CANARIES:
            within = f"{key[:3]}\x1b[m\x1b[K{key[3:9]}\u200b{key[9:]}"
            shown = mask_keys(coded(text.replace(key, within)))
            assert shown == coded(text.replace(key, f"[REDACTED:{kind}]")), (coded, kind)


def test_a_private_key_is_masked_in_base64() -> None:
    for kind in ["RSA ", "EC ", "OPENSSH ", "ENCRYPTED ", ""]:
        key = b64encode(f"-----BEGIN {kind}PRIVATE KEY-----\n{'MIIEowab' * 20}\n".encode()).decode()
        assert mask_keys(f"client-key-data: {key}\n") == "client-key-data: [REDACTED:private-key]\n", kind
        public = b64encode(f"-----BEGIN PUBLIC KEY-----\n{'MIIEowab' * 20}\n".encode()).decode()
        assert mask_keys(public) == public, kind


def test_a_telegram_token_is_masked_in_the_address_of_its_bot() -> None:
    for key in (each.key for each in CANARIES if each.kind == "telegram-token"):
        url = f"https://api.telegram.org/bot{key}/sendMessage"
        assert mask_keys(url) == "https://api.telegram.org/bot[REDACTED:telegram-token]/sendMessage"


def test_the_password_of_a_database_is_masked_whatever_characters_it_has() -> None:
    for scheme in ["postgres", "postgresql+psycopg", "mysql", "mongodb+srv", "redis", "amqps"]:
        chance = Chance(11)
        passwords = [f"p{chance.some(each + 'a4', 6)}{each}9x" for each in "/#?'\"<[]{}$!&=;,|*:"]
        for password in [*passwords, "$ecr3t", "{9fa", "[a9b", "<a9b", "#a9", "/a9"]:
            shown = mask_keys(f"{scheme}://app:{password}@db:5432/m")
            assert shown == f"{scheme}://app:[REDACTED:database-url]@db:5432/m", password


KEY = next(each.key for each in CANARIES if each.kind == "aws-key")
MASKED = "[REDACTED:aws-key]"


def said(**members: object) -> bytes:
    event = {"type": "message", "channel": "x", "chat_id": "1", "role": "user", "content": "hi", **members}
    return json.dumps(event).encode()


def test_every_text_of_an_event_is_masked_at_any_depth() -> None:
    line = said(content=KEY, meta={"a": [{"b": f"={KEY}"}], KEY: 1.5, f"{KEY}": 2}, unknown=[KEY, None, 7])
    members = json.loads(mask_event(line))
    assert members["content"] == MASKED
    assert members["meta"] == {"a": [{"b": f"={MASKED}"}], MASKED: 2}
    assert members["unknown"] == [MASKED, None, 7]


def test_a_key_that_only_the_name_of_its_member_tells_is_masked_and_listed() -> None:
    secret = next(each.key for each in CANARIES if each.kind == "aws-secret-key")
    line = said(meta={"env": {"AWS_SECRET_ACCESS_KEY": secret, "Authorization": "Basic ZGVwbG95OmFDMw=="}})
    assert sorted(list_key_kinds_in_line(line)) == ["aws-secret-key", "basic-auth"]
    assert json.loads(mask_event(line))["meta"]["env"] == {
        "AWS_SECRET_ACCESS_KEY": "[REDACTED:aws-secret-key]",
        "Authorization": "Basic [REDACTED:basic-auth]",
    }
    assert list_key_kinds_in_line(mask_event(line)) == []


def test_what_is_masked_is_listed() -> None:
    for name, wrapped in WRAPPINGS.items():
        for canary in CANARIES[: len(KINDS)]:
            text = wrapped(canary.text)
            assert canary.kind in list_key_kinds_in_line(said(content=text)), (name, canary)
            assert canary.kind in list_key_kinds_in_line(said(meta=[{"a": {text: 1}}])), (name, canary)


def test_names_of_members_stay_apart() -> None:
    keys = [each.key for each in CANARIES if each.kind == "aws-key"][:3]
    line = said(meta=dict.fromkeys(keys, 1))
    assert list(json.loads(mask_event(line))["meta"]) == [MASKED, f"{MASKED} 2", f"{MASKED} 3"]


def test_an_event_without_keys_is_the_same_bytes() -> None:
    line = said(content="tea", number=1.50)
    assert mask_event(line) is line
    for odd in (b"[]", b"no JSON", b'"\xff"'):
        assert mask_event(odd) is odd


def test_a_line_of_another_log_is_masked_too() -> None:
    line = draft_event({"type": "memory_saved", "content": f"it is {KEY}"}).build_line(
        "2026-02-24T10:15:00.000Z"
    )
    made = draft_event(line.rstrip(), redact=True).build_line("2026-02-24T10:16:00.000Z")
    assert b"[REDACTED:" in made
    assert KEY.encode() not in made


def test_a_key_that_is_spelt_with_escapes_is_masked_too() -> None:
    escaped = "".join(f"\\u{ord(letter):04x}" for letter in KEY)
    line = said(content="HERE").replace(b"HERE", escaped.encode())
    assert KEY.encode() not in line
    assert json.loads(mask_event(line))["content"] == MASKED


def test_what_names_things_is_refused_and_not_told() -> None:
    for name in ["id", "chat_id", "channel"]:
        with pytest.raises(BadInput, match=f"{name} contains what looks like a key") as refused:
            draft_event(said(**{name: KEY}), redact=True)
        assert KEY not in refused.value.message, name


def test_an_error_says_no_key() -> None:
    for line in (said(role=KEY), said(v=KEY), b'{"type":"' + KEY.encode() + b'"}'):
        with pytest.raises(BadInput) as refused:
            draft_event(line, redact=True)
        assert KEY not in refused.value.message
        assert MASKED in refused.value.message
        assert refused.value.__suppress_context__


def test_an_error_stays_of_its_kind() -> None:
    def find(target: str) -> str:
        raise NotFound(f"no event {target}", hint="none", code="event_not_found")

    with pytest.raises(NotFound) as refused:
        draft_event({"type": "redacted", "target_id": KEY}, find, redact=True)
    assert (refused.value.message, refused.value.code) == (f"no event {MASKED}", "event_not_found")


def test_what_is_wrong_with_an_event_is_not_lost_with_what_is_masked() -> None:
    line = said(content=KEY).replace(b'"role"', b'"content": "twice", "role"')
    with pytest.raises(BadInput) as refused:
        draft_event(line, redact=True)
    assert refused.value.code == "duplicate_key"


def test_a_struct_and_a_dict_are_masked_as_a_line_is() -> None:
    made = draft_event(json.loads(said(content=f"my {KEY}", id="m1")), redact=True)
    assert (made.id, KEY.encode() in made.tail, MASKED.encode() in made.tail) == ("m1", False, True)
    assert KEY.encode() in draft_event(said(content=KEY)).tail


def test_the_texts_of_a_value_are_all_in_order() -> None:
    assert list(list_texts_within([{"a": [1, "b", {"c": None}]}])) == ["a", "b", "c"]
