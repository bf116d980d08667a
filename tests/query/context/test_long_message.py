"""The current message of a context may have 16 MiB: what is printed of it lets other threads run."""

import threading
import time
from collections.abc import Callable

import pytest

from memlog.query.context.escaping import escape_invisible_in_json
from memlog.query.context.rendering import make_printer
from memlog.query.context.request import BuildContext
from memlog.query.context.token_counters import count_text_tokens

MEBI = 1024 * 1024
LONGEST_HOLD = 0.15
"""Seconds of CPU. The longest measured were 0.04; without runs and pieces 0.5."""


def longest_hold(work: Callable[[], object]) -> float:
    """The most CPU time that passes while another thread does not run."""
    held, done = [0.0], threading.Event()

    def watch() -> None:
        last = time.process_time()
        while not done.wait(0.001):
            held.append(time.process_time() - last)
            last = time.process_time()

    watching = threading.Thread(target=watch)
    watching.start()
    work()
    done.set()
    watching.join()
    return max(held)


@pytest.mark.deep
@pytest.mark.parametrize(
    "text", ["word änd " * (16 * MEBI // 10), "a" * (16 * MEBI), "word\n" * (16 * MEBI // 5)]
)
def test_other_threads_run_while_a_long_message_is_printed(text: str) -> None:
    def work() -> None:
        frame = make_printer(
            BuildContext(text, form="messages"), silent={}, synced=True, answered=None
        ).frame_around_entries()
        count_text_tokens(frame, "heuristic")

    assert any(longest_hold(work) < LONGEST_HOLD for _ in range(3))


def test_an_emoji_behind_any_number_of_characters_stays() -> None:
    for kept in ("#\ufe0f\u20e3", "\u00a9\ufe0f", "\u2764\ufe0f\u200d\U0001f525"):
        for before in (1, 65_535, 65_536, 65_537):
            text = "a" * before + kept
            assert escape_invisible_in_json(text) == text, (kept, before)
            assert escape_invisible_in_json(f"{text}\u200d") == f"{text}\\u200d", (kept, before)
