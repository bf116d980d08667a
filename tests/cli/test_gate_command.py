"""memlog gate: what it prints, and what its exit code says."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]


@pytest.mark.parametrize(
    ("text", "code", "reason", "words"),
    [("what did we decide?", 0, "question", "what"), ("Thanks!", 1, "acknowledgement", None)],
)
def test_the_answer_and_the_exit_code_say_the_same(
    memlog: Run, text: str, code: int, reason: str, words: str | None
) -> None:
    done = memlog("gate", text, "--json")
    assert (done.code, done.err) == (code, b"")
    assert done.json == {"retrieve": code == 0, "reason": reason, "words": words}
    assert memlog("gate", text, "--jsonl").lines == [done.json]


@pytest.mark.parametrize("args", [(), ("-",)])
def test_without_a_text_stdin_is_read(memlog: Run, args: tuple[str, ...]) -> None:
    assert memlog("gate", *args, input=b"as usual\n").out == b"yes: memory (usual)\n"
    assert (memlog("gate", *args, input=b"").code, memlog("gate", *args, input=b"").out) == (
        1,
        b"no: short\n",
    )


def test_what_is_no_text_is_an_error_and_no_answer(memlog: Run) -> None:
    done = memlog("gate", "-", "--json", input=b"caf\xe9")
    assert (done.code, done.out, done.error["code"]) == (65, b"", "bad_input")


def test_it_makes_no_store(memlog: Run, store: Path) -> None:
    assert memlog("gate", "as usual").code == 0
    assert not store.exists()
