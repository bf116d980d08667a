"""The search for keys is linear, lets other threads run, and finds the same in long and short texts."""

import gc
import random
import sys
import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlog.eventlog.escapes import map_spans_to_escaped, unescape
from memlog.eventlog.secrets.detection import mask_keys
from memlog.eventlog.secrets.keys import KINDS, SHAPES, find_keys_in_text
from tests.eventlog.key_wrappings import WRAPPINGS
from tests.support.canaries import canaries

FIXED = sorted({fixed for shape in SHAPES for fixed in shape.fixed.split()})
HOSTILE = [
    *(
        "-eyJaaaaaaaa",
        "eyJaaaaaaaa.",
        "sk-a1",
        "-----BEGIN PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY-----\n-----END ",
        "-----BEGIN PRIVATE KEY-----\n" + "aB3d" * 16,
        "-----BEGIN PRIVATE KEY-----\n" + "aB3d" * 6 + "\n",
        "-----BEGIN PRIVATE KEY-----\nComment: a\n",
        "aB3d" * 16 + "\n-----END ",
    ),
    *(
        "%253D",
        "%25",
        "\\",
        "\\n",
        "\\u005c",
        "\x1b[",
        "\x1b[31m",
        "://a:",
        "://:@a",
        "://a:b@c ",
        "Bearer a.",
        " ",
        "a",
    ),
    *(
        "-",
        "_",
        "0",
        "0123456789:AA",
        "0-us1",
        "a1Q~",
        "authorization: Bearer ",
        "dp.st.a",
        "xoxb-1",
        "eu01xx0NRAL",
        "secret key [",
        "PASSWORD=",
        "API_KEY=a1$(",
        "LS0tLS1CRUdJTiBQUklW",
        "secret key value: ",
        "mysql://a:b/c'd",
        "&#39;",
        "&quot;",
        "\u200b",
        "\x1b(B",
    ),
    *FIXED,
]
MEBI = 1 << 20
MOST_GROWTH = 6
MOST_HELD = 0.1


def seconds(text: str) -> float:
    begun = time.process_time()
    mask_keys(text)
    return time.process_time() - begun


def growth(atom: str) -> float:
    """How much longer four times the text takes."""
    short, long = (f"-{atom * (size // len(atom))}!" for size in (3000, 12000))
    return min(seconds(long) for _ in range(2)) / max(min(seconds(short) for _ in range(3)), 1e-5)


@pytest.mark.deep
def test_repetitions_take_linear_time() -> None:
    slow = HOSTILE
    for _ in range(5):  # another process may slow a measurement
        slow = [atom for atom in slow if growth(atom) > MOST_GROWTH]
    assert slow == []


def longest_held(text: str) -> float:
    """The longest time of this thread between two calls or returns: there another thread may take over."""
    mask_keys("\\n")
    longest, last = 0.0, time.thread_time()

    def note(*_: object) -> None:
        nonlocal longest, last
        now = time.thread_time()
        longest, last = max(longest, now - last), now

    gc.disable()  # it would walk through all that the process of the tests holds
    sys.setprofile(note)
    try:
        mask_keys(text)
    finally:
        sys.setprofile(None)
        gc.enable()
    return longest


@pytest.mark.deep
@pytest.mark.parametrize(
    "text",
    [
        "lorem ipsum dolor " * (16 * MEBI // 18),
        "sk-a1B" + "a" * (16 * MEBI),
        "\\n" * (MEBI // 4),
        "\\nhttps://a:b@c " * (MEBI // 32),
    ],
    ids=["prose", "one run", "escapes", "keys behind escapes"],
)
def test_other_threads_run_while_a_long_text_is_searched(text: str) -> None:
    assert any(longest_held(text) < MOST_HELD for _ in range(3))


def test_windows_find_what_one_piece_finds() -> None:
    chance = random.Random(3)
    parts = []
    for canary in canaries(3 * len(KINDS)):
        parts.append(chance.choice(list(WRAPPINGS.values()))(canary.text))
        parts.append(
            chance.choice([" and ", "\n", " lorem" * chance.randrange(400), "\\n" * chance.randrange(800)])
        )
    parts.insert(40, "sk-a1B" + "a" * 70_000 + " ")
    parts.insert(80, "-----BEGIN PRIVATE KEY-----" + "\\n" * 40_000 + " ")
    text = "".join(parts)
    whole = list(find_keys_in_text(text, len(text)))
    assert len(whole) > 200
    for window in (40_000, 262_144):
        assert len(text) > window
        assert list(find_keys_in_text(text, window)) == whole


def test_a_key_is_found_at_any_place_about_the_end_of_a_window() -> None:
    url = f"postgres://{'u' * 120}:{'p4S' * 30}@db.internal/main"
    for before in (*range(6_900, 7_300, 9), *range(39_000, 40_000, 31)):
        text = f"{' ' * before}{url}{' ' * 40_000}"
        assert [text[key.start : key.end] for key in find_keys_in_text(text, 40_000)] == ["p4S" * 30]


@given(
    st.lists(
        st.sampled_from(
            ["\\", "n", "u", "0041", "%", "3D", "\x1b", "[31m", "(B", "x1b", "033", "ä", "😀", '"', "e"]
            + ["=", "&", "#39;", "lt;", "\u200b"]
        )
    )
)
def test_a_place_in_an_unescaped_text_is_known_in_the_text(atoms: list[str]) -> None:
    text = "".join(atoms)
    plain = unescape(text)
    found = list(map_spans_to_escaped(text, ((place, place + 1) for place in range(len(plain)))))
    assert [unescape(text[start:end]) for start, end in found] == list(plain)
    assert all(end <= start for (_, end), (start, _) in pairwise(found))
    assert not plain or list(map_spans_to_escaped(text, [(0, len(plain))])) == [(found[0][0], found[-1][1])]


def test_one_level_of_escapes_goes() -> None:
    for text, plain in [
        (r"a\nb\tc\\d\/e\"f", 'a\nb\tc\\d/e"f'),
        (r"\u0041\x41\U00000041\101", "AAAA"),
        ("%41%3d%zz%", "A=%zz%"),
        ("\x1b[31mred\x1b[0m \\x1b[1;31mred\\u001b[m \\033[0m\\e[K.", "red red ."),
        ("&quot;a&#39;&#x41;&amp;lt; a=3Db &copy; gh\u200bp\x1b(B", "\"a'A&lt; a=b &copy; ghp"),
        (r"\d+ C:\Users \ud83d \UFFFFFFFF", "\\d+ C:\\Users \ud83d  "),
    ]:
        assert unescape(text) == plain, text
