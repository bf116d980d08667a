"""`memlog fact` and `memlog ask`: words, stdin, exit codes, and what a person sees."""

import json

import pytest

TOKEN = "ghp_" + "wT3kZ9qLm2Xv7RbN5sHd8YfJ4cKe6PgA1uVo"
NOT_STORED = "I don't have that stored yet"


@pytest.mark.usefixtures("empty_store")
def test_a_question_about_what_is_not_stored_is_answered(memlog):
    done = memlog("ask", "second favourite colour")
    assert (done.code, done.out) == (0, f"{NOT_STORED}\n".encode())
    assert b"memlog: " in done.err
    asked = memlog("ask", "second favourite colour", "--json")
    assert (asked.code, asked.json["found"]) == (0, False)


@pytest.mark.parametrize(
    "key", [("city",), ("teas", "--rank", "2"), ("teas", "--chat", "x:1"), ("tea_of_nobody", "--any-chat")]
)
def test_a_fact_that_is_not_stored_is_said_on_stderr_with_exit_code_1(memlog, key):
    memlog("fact", "set", "teas", "sencha")
    for form in ((), ("--format", "md")):
        done = memlog("--quiet", "fact", "get", *key, *form)
        assert (done.code, done.out) == (1, b"")
        assert done.err.startswith(f"memlog: {NOT_STORED}: ".encode())
        assert b"hint: " in done.err
    for form in ("--json", "--jsonl"):
        done = memlog("fact", "get", *key, form)
        assert (done.code, done.json["found"], done.json["answer"]) == (1, False, NOT_STORED)
        assert (done.json["facts"], done.err) == ([], b"")
    assert memlog("fact", "get", "teas").code == 0


def test_another_chats_fact_is_said_to_be(memlog):
    memlog("fact", "set", "city", "Oulu", "--single", "--chat", "telegram:7")
    done = memlog("ask", "what is my city?", "--any-chat")
    assert (done.out, b"of telegram:7 (another chat" in done.err) == (b"Oulu\n", True)


def test_a_text_is_read_from_stdin(memlog):
    said = b"My favourite teas are 1) Sencha, 2) Oolong."
    for words in (("-",), ()):
        done = memlog("fact", "extract", *words, "--json", input=said).json
        assert (done["stored"], done["values"]) == (True, ["Sencha", "Oolong"])
    doubtful = memlog("fact", "extract", "I like tea")
    assert (doubtful.code, doubtful.out, b"nothing was stored" in doubtful.err) == (0, b"", True)


def test_the_words_of_a_text_need_no_quotes(memlog):
    said = "My favourite teas are 1) Sencha, 2) Oolong.".split()
    assert memlog("fact", "extract", *said, "--json").json["values"] == ["Sencha", "Oolong"]
    question = b"second favourite tea"
    for asked in (memlog("ask", *question.decode().split()), memlog("ask", "-", input=question)):
        assert asked.out == b"Oolong\n"


@pytest.mark.usefixtures("empty_store")
def test_a_blank_text_asks_and_says_nothing(memlog):
    assert memlog("ask", " ").out == f"{NOT_STORED}\n".encode()
    assert memlog("ask").code == 2
    assert memlog("fact", "extract", "--json", input=b"").json["stored"] is False


def test_a_value_that_others_wrote_cannot_drive_a_terminal(memlog):
    event = {"type": "fact_stored", "topic_key": "city", "value": "Oulu\x1b[31m\nfavorite"}
    memlog("append", input=json.dumps(event).encode() + b"\n")
    assert memlog("ask", "what is my city?").out == b"Oulu\\x1b[31m favorite\n"
    assert b"\x1b" not in memlog("fact", "list").out


@pytest.mark.parametrize("values", [[TOKEN], ["tea", TOKEN], [TOKEN, "--single"]])
def test_a_fact_is_answered_as_it_is_stored(memlog, values):
    done = memlog("fact", "set", "tok", *values, env={"MEMLOG_REDACT": "1"})
    assert TOKEN.encode() not in done.out
    stored = memlog("fact", "get", "tok", "--json").json["facts"]
    assert done.json["values"] == [each["value"] for each in stored]
    assert "[REDACTED:github-token]" in done.json["values"]
