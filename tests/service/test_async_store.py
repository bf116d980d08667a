"""A store under asyncio: the methods of `Store` as coroutines, in threads."""

import asyncio
import fcntl
import inspect
import random
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

import memlog
from memlog.service.adapters.aio import AsyncStore
from memlog.service.adapters.async_operations import AsyncOperations
from memlog.service.documents.documents import Documents, Workspaces
from memlog.service.memory.core import Core
from memlog.service.memory.daily import DailyEvents
from memlog.service.memory.facts import Facts
from memlog.service.memory.memories import Memories

GROUPS = {
    "conversations": (memlog.Conversations, memlog.AsyncConversations),
    "erasure": (memlog.Erasure, memlog.AsyncErasure),
    "maintenance": (memlog.Maintenance, memlog.AsyncMaintenance),
    "memories": (Memories, memlog.AsyncMemories),
    "core": (Core, memlog.AsyncCore),
    "daily": (DailyEvents, memlog.AsyncDailyEvents),
    "facts": (Facts, memlog.AsyncFacts),
    "documents": (Documents, memlog.AsyncDocuments),
    "workspaces": (Workspaces, memlog.AsyncWorkspaces),
    "extraction": (memlog.Extractions, memlog.AsyncExtractions),
    "exchange": (memlog.DataExchange, memlog.AsyncDataExchange),
    "jobs": (memlog.Jobs, memlog.AsyncJobs),
    "tools": (memlog.Tools, memlog.AsyncTools),
}
NOT_AWAITED = {"close", "is_of_another_copy", "end_watches"}
"""Of groups: the store closes them; a question of memlog's own."""

APPENDER = """
import sys, time, memlog
with memlog.open(sys.argv[1]) as store:
    number = 0
    while True:
        said = memlog.Message(channel="cli", chat_id="beside", role="user", content=f"tea {number}")
        store.append([said])
        print(number, flush=True)
        number += 1
        time.sleep(0.02)
"""


def message(content, chat="1", **more):
    return memlog.Message(channel="cli", chat_id=chat, role="user", content=content, **more)


def methods(cls):
    return {name: getattr(cls, name) for name in dir(cls) if name[0] != "_" and callable(getattr(cls, name))}


def test_each_method_is_a_coroutine_of_the_same_signature():
    for blocking, awaited in [(memlog.Store, AsyncOperations), *GROUPS.values()]:
        expected, left_out = methods(blocking), NOT_AWAITED
        assert methods(awaited).keys() - left_out == expected.keys() - left_out
        for name in expected.keys() - left_out:
            method = methods(awaited)[name]
            assert inspect.iscoroutinefunction(method), name
            assert parameters(method) == parameters(expected[name]), name
            assert method.__doc__, name


def parameters(method):
    return [*inspect.signature(method).parameters]


def test_a_store_has_the_same_groups(tmp_path):
    groups = {name for name in vars(AsyncStore(memlog.open(tmp_path))) if not name.startswith("_")}
    assert groups == GROUPS.keys()


def test_open_async_takes_what_open_takes():
    def taken(opener):
        return [*inspect.signature(opener).parameters.values()]

    assert taken(memlog.open_async) == taken(memlog.open)


def run(main):
    """Run a coroutine in debug mode, in which asyncio tells of what was never awaited."""
    return asyncio.run(main, debug=True)


def test_a_store_and_its_groups_work(tmp_path):
    async def main():
        async with memlog.open_async(tmp_path, durability="os") as store:
            assert store.path == tmp_path
            (position,) = await store.append([message("green tea", id="m1")])
            saved = await store.memories.save("Anna likes green tea")
            await store.core.set("user", "city", "Oulu")
            await store.facts.set("teas", "sencha", "oolong")
            await store.daily.record("It rained")
            await store.warm()
            assert position.id in {hit.id for hit in (await store.search("green tea")).hits}
            assert "Oulu" in (await store.context("where am I?")).text
            assert [each.id for each in (await store.conversations.window(("cli", "1"))).messages] == ["m1"]
            assert (await store.memories.get(saved.memory_id)).content == "Anna likes green tea"
            assert (await store.core.get()).user == {"city": "Oulu"}
            assert await store.core.get("user", "city") == "Oulu"
            assert [fact.value for fact in (await store.facts.get("teas")).facts] == ["sencha", "oolong"]
            assert await store.documents.list() == []
            assert await store.workspaces.list() == []
            assert (await store.maintenance.verify()).problems == []

    run(main())


def test_a_store_is_opened_with_await_too_and_works_again_after_it_was_closed(tmp_path):
    async def main():
        store = await memlog.open_async(tmp_path, durability="os")
        await store.append([message("tea", id="m1")])
        await store.close()
        assert (await store.get("m1")).id == "m1"
        await store.close()

    run(main())


def test_errors_are_those_of_a_store(tmp_path):
    async def main():
        async with memlog.open_async(tmp_path) as store:
            with pytest.raises(memlog.NotFound):
                await store.conversations.window(("cli", "1"))
            with pytest.raises(memlog.BadInput):
                await store.append([{"type": "message"}])

    run(main())


def test_a_short_read_passes_searches_that_wait(tmp_path):
    async def main():
        async with memlog.open_async(tmp_path, durability="os") as store:
            await store.append([message(f"tea {number}", id=f"m{number}") for number in range(20)])
            await store.warm()
            searches = [asyncio.create_task(store.search(f"tea {number}")) for number in range(60)]
            await asyncio.sleep(0)
            assert (await store.get("m1")).id == "m1"
            answered = sum(search.done() for search in searches)
            await asyncio.gather(*searches)
            return answered

    assert run(main()) < 20


def test_searches_beside_an_appending_process_are_all_answered_and_none_runs_in_the_loop(tmp_path):
    threads = set()

    class Embedder:
        def __init__(self, embedder):
            self._embedder, self.id, self.dimension = embedder, embedder.id, embedder.dimension

        is_remote = False

        def embed(self, texts, kind="passage"):
            threads.add(threading.get_ident())
            return self._embedder.embed(texts)

    async def main():
        async with memlog.open_async(tmp_path, durability="os") as store:
            await store.append([message(f"tea of day {number}") for number in range(20)])
            await store.warm()
            (model,) = store._store._engine.read_model.model._models
            model._loaded = Embedder(model.load_embedder())
            is_over = False

            async def read():
                while not is_over:
                    window = await store.conversations.window(("cli", "beside"), last=1)
                    assert len(window.messages) == 1

            reading = asyncio.create_task(read())
            results = await asyncio.gather(*(store.search(f"tea {number}", k=3) for number in range(30)))
            is_over = True
            await reading
            assert all(result.hits for result in results)

    with memlog.open(tmp_path, durability="os") as store:
        store.append([message("tea", chat="beside")])
    command = [sys.executable, "-c", APPENDER, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as appender:
        try:
            appender.stdout.readline()
            asyncio.run(main())
            assert appender.poll() is None
        finally:
            appender.kill()
    assert threads
    assert threading.get_ident() not in threads


def test_a_cancelled_append_is_stored_whole_or_not_at_all(tmp_path):
    async def cancelled(store, number, pause):
        parts = [message(f"{number} {part}", id=f"{number}-{part}") for part in range(3)]
        task = asyncio.create_task(store.append(parts))
        await asyncio.sleep(pause)
        task.cancel()
        try:
            await task
        except asyncio.CancelledError:
            return number, False
        return number, True

    async def main():
        draw = random.Random(7)
        async with memlog.open_async(tmp_path) as store:
            await store.append(message("the first"))
            (segment,) = (tmp_path / "log/conversations").rglob("*.jsonl")
            with segment.open() as held:
                # Two calls wait for the lock, and all others for the threads of these two.
                fcntl.flock(held, fcntl.LOCK_EX)
                tried = await asyncio.gather(*(cancelled(store, number, 0) for number in range(30)))
            pauses = {number: draw.uniform(0, 0.03) for number in range(30, 60)}
            tried += await asyncio.gather(*(cancelled(store, *each) for each in pauses.items()))
            acknowledged = {number for number, is_done in tried if is_done}
        async with memlog.open_async(tmp_path) as store:
            stored = [
                sum([await store.get(f"{number}-{part}") is not None for part in range(3)])
                for number in range(60)
            ]
            assert (await store.maintenance.verify()).problems == []
            return acknowledged, stored

    acknowledged, stored = run(main())
    assert set(stored) == {0, 3}, "some were cancelled before they began, and some were stored"
    assert all(stored[number] == 3 for number in acknowledged)


def test_cancelled_searches_leave_their_threads_to_others(tmp_path):
    async def main():
        async with memlog.open_async(tmp_path, durability="os") as store:
            await store.append([message(f"tea {number}") for number in range(20)])
            await store.warm()
            before = threading.active_count()
            searches = [asyncio.create_task(store.search("tea")) for _ in range(200)]
            await asyncio.wait(searches, return_when=asyncio.FIRST_COMPLETED)
            for search in searches:
                search.cancel()
            done = await asyncio.gather(*searches, return_exceptions=True)
            assert (await asyncio.wait_for(store.search("tea"), 60)).hits
            return [
                each for each in done if isinstance(each, BaseException)
            ], threading.active_count() - before

    failed, more_threads = run(main())
    assert len(failed) > 100
    assert {type(each) for each in failed} == {asyncio.CancelledError}
    assert more_threads <= 2


def test_closing_waits_for_what_runs(tmp_path):
    async def main():
        store = memlog.open_async(tmp_path, on_stored=lambda _: time.sleep(0.02))
        appends = [asyncio.create_task(store.append([message("tea", id=f"m{n}")])) for n in range(20)]
        await asyncio.sleep(0)
        await store.close()
        with memlog.open(tmp_path) as other:
            assert other.maintenance.project(embed=False).rows == 20
        await asyncio.gather(*appends)

    run(main())


def test_a_callback_that_raises_stop_iteration_ends_its_call(tmp_path):
    def stop(_):
        raise StopIteration

    async def main():
        async with memlog.open_async(tmp_path, on_stored=stop) as store:
            with pytest.raises(RuntimeError, match="a callback raised StopIteration"):
                await asyncio.wait_for(store.append(message("tea")), 60)

    run(main())


def test_a_store_is_closed_while_all_threads_of_the_loop_are_busy(tmp_path):
    async def main():
        loop, end = asyncio.get_running_loop(), threading.Event()
        loop.set_default_executor(ThreadPoolExecutor(1))
        busy = loop.run_in_executor(None, end.wait)
        try:
            store = memlog.open_async(tmp_path)
            await store.append(message("tea"))
            await asyncio.wait_for(store.close(), 60)
        finally:
            end.set()
            await busy

    run(main())


@pytest.mark.parametrize("ending", ["cancel", "close"])
def test_a_watch_ends_when_it_is_cancelled_or_its_store_is_closed(tmp_path, ending):
    async def main():
        store = memlog.open_async(tmp_path)
        await store.append([message("tea")])
        began = asyncio.Event()
        loop = asyncio.get_running_loop()
        watch = asyncio.create_task(
            store.maintenance.watch(tell=lambda _: loop.call_soon_threadsafe(began.set))
        )
        await began.wait()
        if ending == "cancel":
            watch.cancel()
        await asyncio.wait_for(store.close(), 60)
        (ended,) = await asyncio.gather(watch, return_exceptions=True)
        return ended

    ended = run(main())
    assert isinstance(ended, asyncio.CancelledError) if ending == "cancel" else ended is None


def test_a_watch_that_was_cancelled_leaves_the_store_to_the_next(tmp_path):
    async def main():
        async with memlog.open_async(tmp_path) as store:
            await store.append([message("tea")])
            for _ in range(3):
                began = asyncio.Event()
                begun = partial(asyncio.get_running_loop().call_soon_threadsafe, began.set)
                watch = asyncio.create_task(store.maintenance.watch(tell=lambda _, begun=begun: begun()))
                await asyncio.wait([watch, asyncio.create_task(began.wait())], return_when="FIRST_COMPLETED")
                watch.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await watch

    run(main())


def test_a_program_without_coroutines_imports_no_asyncio(tmp_path):
    program = (
        "import sys, memlog\n"
        "with memlog.open(sys.argv[1]) as store:\n"
        "    store.append([memlog.MemorySaved(content='tea')])\n"
        "    store.search('tea', mode='text')\n"
        "sys.exit('asyncio' in sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=True)
