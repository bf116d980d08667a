"""Masks keys in texts, events and errors; their shapes are in `memlog.eventlog.secrets.keys`."""

import re
from collections.abc import Callable, Container, Iterable, Iterator
from functools import cache, lru_cache
from io import StringIO
from itertools import count, pairwise
from typing import Any

import msgspec

from memlog.eventlog.errors import BadInput, MemlogError
from memlog.eventlog.escapes import decode_json
from memlog.eventlog.secrets.keys import APART, NAMES, OPAQUE_WORD, SHAPES, find_keys_in_text

_NAMES = frozenset(
    "id channel chat_id memory_id memory_ids ids stream source_id file target_id target_ids topic_key section"
    " key from_message_id to_message_id through_message_id source_message_id".split()
)
"""Members that hold names. These are not masked, since that could merge two things into one."""
_SHORTEST_NAME = min(map(len, NAMES))
_LONGEST_NAME = 64
"""Characters of a member name to inspect; `HTTP_PROXY_AUTHORIZATION` has 24."""
PAIR_NAMES = ("name", "Name", "NAME", "key", "Key", "KEY", "header", "Header", "topic_key", "title")
"""The members that hold the name in {name: …, value: …}: headers in HAR, container variables, memories."""
PAIR_VALUES = ("value", "content")


def mask_keys(text: str) -> str:
    """Replace each key in `text` with `[REDACTED:kind]`."""
    clean, done = StringIO(), 0
    for key in find_keys_in_text(text):
        clean.write(text[done : key.start])
        clean.write(f"[REDACTED:{key.kind}]")
        done = key.end
    return clean.getvalue() + text[done:] if done else text


def list_key_kinds(text: str) -> list[str]:
    """Return the kinds of the keys in `text`, in order."""
    return [key.kind for key in find_keys_in_text(text)]


def list_key_kinds_in_line(line: bytes) -> list[str]:
    """Return the distinct kinds of keys in a log line, which need not be JSON."""
    value = decode_json(line, object) or line.decode(errors="replace")
    kinds: dict[str, None] = {}

    def record_kinds(text: str) -> str:
        kinds.update(dict.fromkeys(list_key_kinds(text)))
        return text

    rewrite_texts(value, record_kinds)
    return list(kinds)


def mask_event(source: bytes) -> bytes:
    """Mask all keys in a line of JSON and drop `at` and `crc`; return `source` if there is nothing to mask.

    Raises BadInput if a member that holds a name contains a key.
    """
    members = decode_json(source, dict)
    if members is None:
        return source  # the reader reports the fault
    # Another log's `at` and `crc` belong to the unmasked text.
    given = {name: value for name, value in members.items() if name not in ("at", "crc")}
    clean = rewrite_texts(given, mask_keys)
    if clean == given:
        return source
    for name in _NAMES & clean.keys():
        if clean[name] != given[name]:
            raise BadInput(
                f"{name} contains what looks like a key", hint="use another name: names are not masked"
            )
    return msgspec.json.encode(clean)


def mask_error(error: MemlogError) -> MemlogError:
    """Return `error`, which may quote input, with its keys masked."""
    return type(error)(
        mask_keys(error.message), hint=mask_keys(error.hint), code=error.code, retryable=error.retryable
    )


def list_texts_within(values: Iterable[Any]) -> Iterator[str]:
    """Yield all strings in JSON values, at any depth and in order, including member names; not recursive."""
    waiting = list(values)[::-1]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            waiting += [part for pair in reversed(value.items()) for part in reversed(pair)]
        elif isinstance(value, list):
            waiting += reversed(value)


_TELLING = frozenset(
    "password passwd pwd passphrase passcode passwort kennwort salasana пароль contraseña 密码 密碼 口令"
    " secret token pin pass pw credential apikey".split()
)
"""Words that, anywhere in a name such as `password_router`, mark its value as secret."""


def is_secret_name(name: str) -> bool:
    """Whether a name, such as a key of the core memory, suggests that its value is secret."""
    words = re.split(r"[\W_]+", name.casefold().strip())
    return (
        ends_like_secret(name)
        or any(word in _TELLING or word.removesuffix("s") in _TELLING for word in words)
        or (len(words) > 1 and words[-1] in ("key", "keys"))
    )


def ends_like_secret(name: str) -> bool:
    """Whether a name, such as `wifi_password`, ends like a secret's name."""
    return bool(_secret_prefix(name))


def rewrite_texts(value: Any, rewrite: Callable[[str], str]) -> Any:  # noqa: ANN401 - any JSON
    """Apply `rewrite` to each string in `value`, at any depth; not recursive."""
    clean: list[Any] = [None]
    # The container and place of a value, the value, and the prefix that marks its texts as secret.
    waiting: list[tuple[Any, Any, Any, str]] = [(clean, 0, value, "")]
    while waiting:
        parent, place, value, head = waiting.pop()
        made = value
        if isinstance(value, str):
            made = rewrite(head + value)[len(head) :] if head else rewrite(value)
        elif isinstance(value, list):
            value = _rewrite_block(value, rewrite)
            made = [*value]
            behind_name = _secret_prefix(value[0]) if len(value) == 2 else ""
            waiting += [
                (made, number, value[number], behind_name if behind_name and number else head)
                for number in reversed(range(len(value)))
            ]
        elif isinstance(value, dict):
            made, inner = {}, []
            paired = next((_secret_prefix(value[name]) for name in PAIR_NAMES if name in value), "")
            for name, item in value.items():
                before = paired if paired and name.lower() in PAIR_VALUES else _secret_prefix(name)
                clean_name = _make_unique_name(made, rewrite(name))
                made[clean_name] = item
                inner.append((made, clean_name, item, before))
            waiting += reversed(inner)
        parent[place] = made
    return clean[0]


def _rewrite_block(items: list[Any], rewrite: Callable[[str], str]) -> list[Any]:
    """Rewrite the lines of a PEM block together, as one text; return any other list unchanged."""
    is_block = all(isinstance(item, str) for item in items) and any("-----BEGIN" in item for item in items)
    return rewrite("\n".join(items)).split("\n") if is_block else items


def _secret_prefix(name: object) -> str:
    """Return the text that marks a value after it as secret, if `name` names a secret; otherwise ""."""
    return _find_secret_prefix(name) if isinstance(name, str) and len(name) >= _SHORTEST_NAME else ""


@lru_cache(maxsize=1024)
def _find_secret_prefix(name: str) -> str:
    letters = "".join(filter(str.isalnum, name[-_LONGEST_NAME:])).lower()
    return next((f"{spelling}=" for ending, spelling in NAMES.items() if letters.endswith(ending)), "")


def _make_unique_name(members: Container[str], name: str) -> str:
    """Return `name`, numbered if `members` already has it, so that two masked names stay distinct."""
    numbered = (f"{name} {number}" for number in count(2))
    return name if name not in members else next(other for other in numbered if other not in members)


# For requests to providers, and for warnings: elsewhere memlog does not mask these values, since ordinary
# text may look like them. The search is linear: each pattern reads a bounded part of the text after a name.

_STEMS = "pass pw kennw salasana парол contraseña 密 口令 api secret token".split()
"""A text that contains none of these does not name a secret."""

_NAME = (
    r"(?:(?P<password>passw(?:or[dt]|d)s?|passwörter|pass(?:phrase|code)s?|kennw(?:ort|örter)|salasana"
    r"|парол[ьи]|contraseñas?|密码|密碼|口令"
    r"|(?<![^\W_])(?:pg)?(?:pass|pwd?)(?=[\"'`*]{0,3}\s{0,2}[:=：]\s?[\"'`]{0,2}[^\s\d]{0,63}\d))"
    r"|api[ _-]?key|secret|token)"
)
_VALUE = r"(?:[^\s\"'`*»”<,;\[\]]|[,;](?=[^\s\"'\]])){4,128}"
_DIGIT = r"(?=[^\s\d]{0,63}\d)"
_QUOTES = r"[\s\"'`*«“>-]{0,4}"
_MORE = rf"(?:,\s{_DIGIT}{_VALUE}){{0,4}}"

_BEHIND = (
    # password: …
    rf"[\s\"'`*]{{0,3}}[:=：]{_QUOTES}(?=[^\s]{{4}})({_VALUE}{_MORE})",
    # password: "… …"
    r"[\s\"'`*]{0,3}[:=：]\s{0,3}(?:\"(?!\[REDACTED:)([^\"\n]{4,128})\"|“([^”\n]{4,128})”|'([^'\n]{4,128})')",
)
# the password is …
_IS = (
    rf"(?:(?:\s(?:is|was|ist|war|on|это|will\sbe)|['’]s)(?:\s(?:now|jetzt))?[\s:]{{1,3}}|是)[\"'`*«“]{{0,2}}"
    rf"(?=\D{{0,63}}\d)({_VALUE})"
)
# Password …
_NEXT = rf"\s[\"'`]?{_DIGIT}(?=[^\sA-Za-z]{{0,63}}[A-Za-z])([^\s\"'`<>,;()\[\]]{{6,128}})"
# password for the wifi: …, password (wifi) → …, | password | …, <password>…
_SEPARATOR = r"[:=：|→>–\n]|\sis\s|\sist\s"
_BEHIND_SEPARATOR = rf"{_QUOTES}{_DIGIT}({_VALUE})"
_GAP = 44
_FLAG = rf"--[\w-]{{0,32}}?{_NAME}[ =][\"']?{_DIGIT}([^\s\"'`<>,;()\[\]]{{4,128}})"
_WORDS = r"passphrase[\s\"'`*]{0,3}(?:[:=：]|\sis\s)\s{0,3}(?!\[REDACTED:)([^\s][^\n]{3,128})"
_VERBS = frozenset("is as was ist als".split())
_BEFORE = 160
"""How many characters before a name may hold its value, as in `… is the password`."""
_REACH = 200
"""How many characters after a name to search for a digit of its value."""

_TAIL = 300
"""How many characters at the end of a text may hold the start of a key."""

_SHORTEST_START = 4
"""The fewest characters of a fixed text that identify a truncated key; `sk-` is an exception."""


def find_values_of_named_secrets(text: str) -> Iterator[tuple[int, int]]:
    """Yield the span of each value before or after a secret's name."""
    if not may_name_secret(text):
        return
    digit, digits = -1, _compile_pattern(r"\d")
    for name in _compile_pattern(_NAME).finditer(text):
        end = name.end()
        patterns = [*_BEHIND]
        if digit < end:
            digit = found.start() if (found := digits.search(text, end)) else len(text) + _REACH
        if is_near := digit - end < _REACH:
            patterns.append(_IS)
        for pattern in patterns:
            if match := _compile_pattern(pattern).match(text, end):
                yield match.span(match.lastindex or 0)
        if name["password"]:
            if is_near:
                yield from _find_values_after_name(text, end)
            yield from _find_value_before_name(text, name.start())
    for pattern in (_FLAG, _WORDS):
        for match in _compile_pattern(pattern).finditer(text):
            yield match.span(1)


def _find_values_after_name(text: str, end: int) -> Iterator[tuple[int, int]]:
    """Yield spans of values after a secret's name that ends at `end`, with or without words in between."""
    separator = _compile_pattern(_SEPARATOR).search(text, end, end + _GAP)
    for pattern, start in ((_NEXT, end), (_BEHIND_SEPARATOR, separator.end() if separator else len(text))):
        if match := _compile_pattern(pattern).match(text, start):
            yield match.span(1)


def _find_value_before_name(text: str, start: int) -> Iterator[tuple[int, int]]:
    """Yield the span of a value before a secret's name that starts at `start`, as in `… is the password`."""
    head = text[max(0, start - _BEFORE) : start]
    if not _compile_pattern(r"\d").search(head):
        return
    words = head.split()[-6:]
    for word, verb in pairwise(words):
        if verb.casefold() in _VERBS and find_opaque_words(word):
            at = text.rindex(word, 0, start)
            yield at, at + len(word)


def may_name_secret(text: str) -> bool:
    """Whether `text` may name a secret; a quick check that rules out most texts."""
    folded = text.casefold()
    return any(stem in folded for stem in _STEMS)


def find_opaque_words(text: str) -> list[tuple[int, int]]:
    """Return the spans of words that have both letters and digits, and so may be keys."""
    return [match.span(1) for match in _opaque_pattern().finditer(text)]


def find_truncated_key(text: str) -> tuple[int, int] | None:
    """Return the span of a key that is cut off by the end of `text`, recognised by its fixed start."""
    start = max(0, len(text) - _TAIL)
    match = _truncated_pattern().search(text, start)
    return match.span(1) if match else None


@cache
def _truncated_pattern() -> re.Pattern[str]:
    fixed = {each for shape in SHAPES if shape.before == APART for each in shape.fixed.split()}
    starts = ["sk-", *(each for each in fixed if len(each) >= _SHORTEST_START and each[-1] in "-_.")]
    either = "|".join(map(re.escape, starts))
    rest = r"(?=[^\s\d]{0,63}\d)[\w.+/=-]{8,200}"
    return re.compile(rf"{APART}((?:{either}){rest})[\s…\"'`*).]{{0,8}}\Z", re.ASCII)


@cache
def _opaque_pattern() -> re.Pattern[str]:
    return re.compile(OPAQUE_WORD, re.ASCII)


@cache
def _compile_pattern(pattern: str) -> re.Pattern[str]:
    """Compile a pattern on first use, since most processes never send anything."""
    return re.compile(pattern, re.IGNORECASE)
