"""`memlog fact` and `memlog ask`: shapes, exit codes, and bad input by name."""

import json

import pytest

TOKEN = "ghp_" + "wT3kZ9qLm2Xv7RbN5sHd8YfJ4cKe6PgA1uVo"
NOT_STORED = "I don't have that stored yet"
ANSWER = ["found", "answer", "facts", "route", "why"]
FACT = [
    *(
        "topic_key",
        "kind",
        "rank",
        "value",
        "chat",
        "source_message_id",
        "updated_at",
        "event_id",
        "position",
    ),
]
ROUTE = ["rule", "language", "topic_key", "ranks", "chat", "most_recent", "other_chat"]


def test_facts_as_json(memlog):
    done = memlog("fact", "set", "favourite_colours", "Blue", "Green", "--chat", "telegram:7", "--json").json
    assert list(done) == ["topic_key", "kind", "ranks", "values", "chat", "positions"]
    found = memlog("fact", "get", "favorite_colors", "--rank", "2", "--any-chat", "--json").json
    assert (list(found), found["answer"], list(found["route"])) == (ANSWER, "Green", ROUTE)
    assert [list(fact) for fact in found["facts"]] == [FACT]
    asked = memlog("ask", "second favourite colour", "--chat", "telegram:7", "--json").json
    assert (list(asked), asked["found"], asked["answer"]) == (ANSWER, True, "Green")
    listed = memlog("fact", "list", "--jsonl").lines
    assert [fact["value"] for fact in listed] == ["Blue", "Green"]
    removed = memlog("fact", "remove", "favorite_colors", "--chat", "telegram:7").json["removed"]
    assert [each["stream"] for each in removed] == ["facts"]


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


@pytest.mark.usefixtures("empty_store")
def test_bad_input_is_refused_with_one_line_and_a_hint(memlog_here, store):
    for args, code in (
        (["set", "tea", "sencha", "--rank", "0"], 2),
        (["set", "tea", "sencha", "oolong", "--rank", "1", "--rank", "1"], 65),
        (["set", "tea", "sencha", "--rank", "9"], 65),
        (["set", "tea", "sencha", "oolong", "--single"], 65),
        (["set", "x" * 300, "sencha"], 65),
        (["set", "", "sencha"], 65),
        (["set", "a\x07b", "sencha"], 65),
        (["set", "tea", ""], 65),
        (["set", "tea", "a\nb"], 65),
        (["get", "\n"], 65),
        (["remove", "tea"], 1),
    ):
        done = memlog_here("fact", *args)
        assert (done.code, done.out) == (code, b""), (args, done.err)
        message, hint = done.err.splitlines()[-2:]
        assert message.startswith(b"memlog: "), args
        assert hint.startswith(b"hint: "), args
        assert not list(store.rglob("*.jsonl")), args


def test_a_topic_of_another_script_is_set_and_shown(memlog):
    memlog("fact", "set", "любимые_города", "Казань", "Тула")
    assert memlog("fact", "get", "любимые города", "--rank", "2").out.decode() == "Тула\n"
    assert memlog("ask", "какой мой второй любимый город?").out.decode() == "Тула\n"


def test_a_text_is_read_from_stdin(memlog):
    said = b"My favourite teas are 1) Sencha, 2) Oolong."
    assert memlog("fact", "extract", "-", "--dry-run", "--json", input=said).json["stored"] is False
    done = memlog("fact", "extract", "--json", input=said).json
    assert list(done) == ["stored", "topic_key", "values", "chat", "why", "position"]
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
