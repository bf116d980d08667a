"""Keys that only the name before them tells, in the notations that programs print."""

import json
from itertools import product
from typing import Any

from memlog.eventlog.secrets.detection import list_key_kinds_in_line, mask_event, mask_keys
from memlog.eventlog.secrets.keys import KINDS
from tests.eventlog.key_wrappings import WRAPPINGS
from tests.support.canaries import canaries

CANARIES = canaries(4 * len(KINDS))
SECRETS = [each.key for each in CANARIES if each.kind == "aws-secret-key"]
TOKENS = [each.key for each in CANARIES if each.kind == "bearer-token"]
LOGINS = [each.key for each in CANARIES if each.kind == "basic-auth"]
WORDS = [
    ["aws", "secret", "access", "key"],
    ["secret", "access", "key"],
    ["aws", "secret", "key"],
    ["secret", "key"],
]
NAMES = [
    name
    for words in WORDS
    for name in (
        *(mark.join(words) for mark in ("-", "_", " ", "")),
        *(mark.join(words).upper() for mark in ("-", "_", " ")),
        *(mark.join(word.title() for word in words) for mark in ("-", "_", " ", "")),
        words[0] + "".join(word.title() for word in words[1:]),
    )
]
NOTATIONS = [
    "{name}: {key}",
    "{name}={key}",
    "export {name}='{key}'",
    '{name} := "{key}"',
    "{name} [None]: {key}",
    "{name} [****************ABCD]: {key}",
    "{name}\t{key}",
    "|  {name}  |  {key}  |",
    '- name: {name}\n  value: "{key}"',
    '{{"name":"{name}","value":"{key}"}}',
    'os.environ["{name}"] = "{key}"',
    'setdefault("{name}", "{key}")',
    "<{name}>{key}</{name}>",
    "(b'{name}', b'{key}')",
    '["{name}", "{key}"]',
    '{{"{name}": ["{key}"]}}',
    "**{name}**: `{key}`",
]


def test_a_secret_key_is_masked_behind_its_name_in_each_notation() -> None:
    wrong = [
        (notation, name, wrapping)
        for notation, name, wrapping in product(NOTATIONS, NAMES, ("plain", "JSON in JSON", "colour in repr"))
        if mask_keys(WRAPPINGS[wrapping](notation.format(name=name, key=SECRETS[0])))
        != WRAPPINGS[wrapping](notation.format(name=name, key="[REDACTED:aws-secret-key]"))
    ]
    assert wrong == []


def line(meta: object) -> bytes:
    return json.dumps(
        {"type": "message", "channel": "x", "chat_id": "1", "role": "user", "meta": meta}
    ).encode()


def members(name: str, value: str) -> list[Any]:
    return [
        {name: value},
        {name: [value, value]},
        {name: [[value]]},
        {"name": name, "value": value},
        {"value": value, "name": name},
        {"Key": name, "Value": value},
        [name, value],
        {"headers": [{"name": "Host", "value": "h"}, {"name": name, "value": value}]},
    ]


def test_the_name_of_a_member_tells_that_its_value_is_a_key() -> None:
    for names, value, key, kind in [
        (NAMES, SECRETS[0], SECRETS[0], "aws-secret-key"),
        (
            ["Authorization", "AUTHORIZATION", "authorization", "Proxy-Authorization", "HTTP_AUTHORIZATION"],
            f"Bearer {TOKENS[0]}",
            TOKENS[0],
            "bearer-token",
        ),
        (["Authorization", "AUTHORIZATION", "authorization"], f"basic {LOGINS[0]}", LOGINS[0], "basic-auth"),
        (
            ["Authorization", "AUTHORIZATION", "authorization"],
            "0a1b2c3d4e" * 4,
            "0a1b2c3d4e" * 4,
            "bearer-token",
        ),
    ]:
        for name in names:
            for meta in members(name, value):
                clean = mask_event(line(meta))
                said = json.loads(json.dumps(meta).replace(key, f"[REDACTED:{kind}]"))
                assert json.loads(clean)["meta"] == said, names
                assert list_key_kinds_in_line(line(meta)) == [kind], meta
                assert list_key_kinds_in_line(clean) == [], meta


def test_a_member_that_is_called_otherwise_keeps_its_value() -> None:
    for meta in members("sha1", "0a1b2c3d4e" * 4):
        assert mask_event(line(meta)) == line(meta)
