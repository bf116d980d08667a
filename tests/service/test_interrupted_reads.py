"""A read that is interrupted at any step, or that reads itself meanwhile, stops no other read."""

import sys
import threading
from contextlib import contextmanager

import pytest

import memlog
from tests.support.examples import examples

STEPS = 12
"""Of a read, at most so many are interrupted, times the examples."""


class Interruption(Exception):
    """What a signal handler raises."""


@contextmanager
def at_call(number, act):
    """`act` at the so-manieth place where this thread would run a signal handler.

    That is where a function of Python begins, and where one of C has returned.
    """
    seen = 0

    def step(_, event, __):
        nonlocal seen
        seen += event in ("call", "c_return")
        if seen == number and number:
            seen += 1
            sys.setprofile(None)
            act()

    sys.setprofile(step)
    try:
        yield lambda: seen
    finally:
        sys.setprofile(None)


def tea(number):
    return memlog.Message(channel="c", chat_id="1", role="user", content=f"tea {number}", id=f"m{number}")


def found(store):
    return len(store.search("tea", mode="text", k=1000).hits)


def found_by_another_thread(store):
    results = []
    thread = threading.Thread(target=lambda: results.append(found(store)), daemon=True)
    thread.start()
    thread.join(60)
    return results


@contextmanager
def other_readers(store):
    """Two other threads read all the time."""
    stop = threading.Event()

    def read():
        while not stop.is_set():
            found(store)

    threads = [threading.Thread(target=read) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join(60)


def calls_of_a_read(store):
    counts = []
    for _ in range(4):  # the first of which imports and opens, too
        store.append([tea(0)])
        with at_call(0, lambda: None) as count:
            found(store)
            counts.append(count())
    store.append([tea(1)])
    found(store)
    return min(counts)


def test_a_read_that_is_interrupted_anywhere_stops_no_later_one(store):
    calls = calls_of_a_read(store)
    interrupted = 0
    for number in range(1, examples(STEPS) + 1):
        store.append([tea(number + 1)])

        def interrupt():
            raise Interruption

        try:
            with at_call(1 + number * 7919 % calls, interrupt):
                found(store)
        except Interruption:
            interrupted += 1
        assert found_by_another_thread(store) == [number + 2]
        assert found(store) == number + 2
    assert interrupted > STEPS / 2
    assert store.maintenance.verify().problems == []


def test_a_signal_handler_that_reads_is_answered_or_refused(store):
    calls = calls_of_a_read(store)
    answers = []
    for number in range(1, examples(STEPS) + 1):
        store.append([tea(number + 1)])

        def read(number=number):
            try:
                answers.append(number + 2 - found(store) in (0, 1))
            except memlog.Busy:
                answers.append("refused")

        with other_readers(store), at_call(1 + number * 7919 % calls, read):
            assert found(store) == number + 2
        assert found_by_another_thread(store) == [number + 2]
    assert len(answers) > STEPS / 2
    assert set(answers) <= {True, "refused"}


def test_a_callback_that_reads_while_the_read_model_is_built_is_refused(store):
    store.append(map(tea, range(10)))
    refused = []

    def progress(*_):
        with pytest.raises(memlog.Busy) as busy:
            found(store)
        refused.append(busy.value)

    store.maintenance.project(embed=False, progress=progress)
    assert refused
    assert all("callback" in each.hint for each in refused)
    assert found(store) == 10
