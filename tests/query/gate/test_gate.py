"""The gate tells what is worth a look into the memory: of 200 lines said to an agent, and of 40 held out."""

import re
import subprocess
import sys
import time
from typing import get_args

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import memlog
from memlog.projector.text.language_files import load_languages_with_table, split_phrases
from memlog.query import gate
from memlog.query.gate import LOOKED_AT, Reason
from tests.support import ask_lines
from tests.support.examples import examples
from tests.support.places import FIXTURES, ROOT

PAGE = (ROOT / "docs/tools/gate.md").read_text()
MOST_WRONG = 5
LEAST_HELD_OUT = 36
LANGUAGES = ["english", "russian", "chinese", "finnish"]


class Line(msgspec.Struct, frozen=True):
    """What somebody says, whether a look is worth it, and why."""

    language: str
    look: bool
    why: str
    text: str


def lines(name):
    path = FIXTURES / "gate" / f"{name}.jsonl"
    return [msgspec.json.decode(line, type=Line) for line in path.read_bytes().splitlines()]


def wrong(name):
    return [line for line in lines(name) if bool(memlog.should_retrieve(line.text)) != line.look]


def test_there_are_200_lines_50_of_each_language_half_of_them_worth_a_look():
    found = lines("lines")
    assert len({line.text for line in found}) == 200
    for language in LANGUAGES:
        of_it = [line.look for line in found if line.language == language]
        assert (len(of_it), sum(of_it)) == (50, 25)


def test_at_most_five_of_the_200_lines_are_wrong_and_the_page_lists_each():
    found = wrong("lines")
    assert len(found) <= MOST_WRONG
    _, _, listed = PAGE.partition("## Where it errs")
    rows = re.findall(r"^\| (\w+) \| `(.+)` \| (yes|no) \|", listed, re.MULTILINE)
    assert rows == [(line.language, line.text, "yes" if line.look else "no") for line in found]
    assert f"{200 - len(found)} of the 200" in " ".join(PAGE.split())


def test_of_40_lines_held_out_36_are_right():
    assert len(lines("held-out")) == 40
    right = 40 - len(wrong("held-out"))
    print(f"{right} of 40 held-out lines are right")
    assert right >= LEAST_HELD_OUT
    assert f"{right} of 40" in PAGE


def test_questions_of_facts_are_worth_a_look():
    """Of those that were written for another purpose, some are none: `hi`, `one second please`."""
    for name, most in (("lines", 5), ("held-out", 0)):
        asked = {line.text for line in ask_lines.lines(f"{name}.tsv")}
        passed_over = [text for text in asked if not memlog.should_retrieve(text)]
        assert len(passed_over) <= most, passed_over


def test_it_is_true_where_a_look_is_worth_it_and_says_why():
    worth_it = memlog.should_retrieve("Book a table, as usual")
    assert (bool(worth_it), worth_it.retrieve, worth_it.reason, worth_it.words) == (
        True,
        True,
        "memory",
        "usual",
    )
    not_worth_it = memlog.should_retrieve("Thanks!")
    assert not not_worth_it
    assert not_worth_it == memlog.Gate(retrieve=False, reason="acknowledgement")


REASONS = [
    ("who am I?", "memory", "who am i"),
    ("is my passport valid", "memory", "my"),
    ("When does the train leave", "question", "when"),
    ("the train?", "question", None),
    ("как доехать до вокзала", "question", "как"),
    ("не опаздывает ли поезд", "question", "ли"),
    ("火车几点开", "question", "几点"),
    ("lähteekö juna ajoissa", "question", "lähteekö"),
    ("как обычно", "memory", "как обычно"),
    ("老样子", "memory", "老样子"),
    ("kuten aina", "memory", "kuten aina"),
    ("The train leaves at ten.", "prose", None),
    ("Hello Anna", "greeting", None),
    ("Hi, thanks!", "greeting", None),
    ("thanks for the help with the tests", "acknowledgement", None),
    ("Password", "short", None),
    ("", "short", None),
    (" \n", "short", None),
    ("?!", "short", None),
]


def test_each_reason_names_the_words_that_told():
    for text, reason, words in REASONS:
        found = memlog.should_retrieve(text)
        assert (found.reason, found.words) == (reason, words), text
        assert found.retrieve == (reason in ("memory", "question", "prose")), text


CODE = [
    "git push origin main",
    "$ pytest -q tests/query",
    "/model large",
    "https://example.com/what/is/this",
    "src/main.py",
    "```\nremember what I said\n```",
    "```\nnever closed, remember this",
    "    x = 5  # what I said before\n    return x",
    'Traceback (most recent call last):\n  File "x.py", line 1, in <module>\nValueError: what?',
    "[1, 2, 3]",
    '<p class="x">Do you remember?</p>',
    "SELECT what FROM remember WHERE id = 7;",
    "+++ b/x.py\n@@ -1 +1 @@\n-what = 1\n+remember = 2",
]


def test_code_is_not_worth_a_look_whatever_words_stand_in_it():
    assert [text for text in CODE if memlog.should_retrieve(text).reason != "code"] == []


WORDS = [
    "why does it fail?",
    "Do it as last time",
    "let me know (if you can) what is best",
    "for dinner I want pasta, wine, and cake:",
    "git is hard to learn, in my opinion",
    "make a plan for the week",
    "find the cheapest train to Tampere",
    "import the contacts from the old phone",
    "update me on the plan",
]


def test_words_beside_code_and_words_like_code_count():
    for said in WORDS:
        for text in (said, f"```python\nprint(x)\n```\n{said}", f"{said}\nx = f(5)\nprint(x)"):
            assert memlog.should_retrieve(text), text


def test_signs_and_case_do_not_make_a_greeting_a_question():
    for sign in ("?", "？", "!", "...", " :)", " 👍"):
        for text in ("ok", "HOW ARE YOU", "Спасибо", "你好", "Moi"):
            assert not memlog.should_retrieve(text + sign), (text, sign)


def test_of_a_long_text_its_beginning_and_its_end_are_looked_at():
    code = "x = f(5)\n" * LOOKED_AT
    assert not memlog.should_retrieve(code)
    assert memlog.should_retrieve(code + "why does this fail?")
    assert memlog.should_retrieve("why does this fail?\n" + code)


@settings(max_examples=examples(50))
@given(text=st.text(max_size=300))
def test_any_text_has_one_answer(text):
    found = memlog.should_retrieve(text)
    assert found == memlog.should_retrieve(text)
    assert found.reason in get_args(Reason)
    assert bool(found) is found.retrieve


@pytest.mark.deep
def test_a_text_takes_less_than_a_millisecond():
    memlog.should_retrieve("hello")
    texts = [line.text for line in lines("lines")]
    started = time.process_time()
    for _ in range(5):
        for text in texts:
            memlog.should_retrieve(text)
    assert (time.process_time() - started) / (5 * len(texts)) < 0.001


def test_it_imports_neither_a_store_nor_a_model():
    program = (
        "import sys, memlog\n"
        "assert memlog.should_retrieve('what did we decide')\n"
        "heavy = {'sqlite3', 'pysqlite3', 'numpy', 'onnxruntime', 'tokenizers', 'memlog.service.store'}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_every_phrase_of_the_tables_is_folded_and_stands_once_in_its_table():
    for language, words in load_languages_with_table("gate").items():
        for name, table in msgspec.structs.asdict(words.gate).items():
            said = split_phrases(table)
            assert table == table.casefold().replace("ё", "е").replace("’", "'"), (language, name)
            assert len(said) == len(set(said)), (language, name)


def test_of_a_text_of_16_mib_the_ends_are_read(monkeypatch):
    read, work = [], gate.strip_code
    monkeypatch.setattr(gate, "strip_code", lambda text, most: read.append(len(text)) or work(text, most))
    for atom in ("```\n", " ", "a;", '{"a":', "(", "at (", "if x("):
        memlog.should_retrieve(atom * (16 * 1024 * 1024 // len(atom)))
    assert len(read) == 7
    assert max(read) < 3 * gate.LONGEST
