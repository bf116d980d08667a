"""One store, used by many threads at once."""

import os
import threading
import time
from collections import Counter
from pathlib import Path

import pytest

import memlog
from memlog.projector.embedding.models import load_embedder
from memlog.service.engine import embedding_models
from memlog.service.engine.embedding_models import LocalModel
from memlog.service.engine.read_model import READERS

THREADS = 8
ROUNDS = 5


class Worker(threading.Thread):
    """Appends, searches and reads windows.

    acknowledged: the ids of its events. failures: what went wrong.
    """

    def __init__(self, store, number):
        super().__init__()
        self.store, self.chat = store, str(number)
        self.acknowledged = []
        self.failures = []

    def run(self):
        try:
            for _ in range(ROUNDS):
                self.work()
        except Exception as error:
            self.failures.append(error)

    def work(self):
        tea = f"tea {self.chat} {len(self.acknowledged)}"
        said = [
            memlog.Message(channel="cli", chat_id=self.chat, role="user", content=tea),
            memlog.MemorySaved(content=tea),
        ]
        self.acknowledged += [position.id for position in self.store.append(said)]
        in_chat = memlog.Filters(chat=("cli", self.chat))
        found = {hit.id for hit in self.store.search("tea", mode="text", filters=in_chat, k=1000).hits}
        mine = set(self.acknowledged[::2])
        assert mine <= found, "what was acknowledged is found"
        window = self.store.conversations.window(("cli", self.chat), last=1)
        assert [message.id for message in window.messages] == self.acknowledged[-2:-1]


def test_eight_threads_lose_nothing_and_never_fail(tmp_path):
    with memlog.open(tmp_path, durability="os", lock_timeout=60.0) as store:
        workers = [Worker(store, number) for number in range(THREADS)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        assert [worker.failures for worker in workers] == [[]] * THREADS
        acknowledged = Counter(name for worker in workers for name in worker.acknowledged)
        assert {len(worker.acknowledged) for worker in workers} == {2 * ROUNDS}
        assert set(acknowledged.values()) == {1}
        assert store.maintenance.status().unread_bytes == 0
        assert store.maintenance.status().events == len(acknowledged)
        assert all(store.get(name) is not None for name in acknowledged)
        assert store.maintenance.verify().problems == []


def test_a_store_is_closed_by_one_thread_while_others_use_it(tmp_path):
    with memlog.open(tmp_path, durability="os", lock_timeout=60.0) as store:
        workers = [Worker(store, number) for number in range(2)]
        for worker in workers:
            worker.start()
        while any(worker.is_alive() for worker in workers):
            store.close()
            workers[0].join(0.001)
        assert [worker.failures for worker in workers] == [[], []]
        assert [len(worker.acknowledged) for worker in workers] == [2 * ROUNDS] * 2


def in_threads(count, work):
    """What `work` returns in each of so many threads."""
    results = []
    threads = [threading.Thread(target=lambda: results.append(work())) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == count
    return results


def a_store_with_tea(folder):
    store = memlog.open(folder, durability="os")
    store.append([memlog.Message(channel="cli", chat_id="1", role="user", content="tea", id="m1")])
    store.maintenance.project(embed=False)
    return store


def test_four_threads_read_at_the_same_time_and_a_fifth_waits(tmp_path):
    assert READERS == 4
    meeting = threading.Barrier(READERS + 1)
    with a_store_with_tea(tmp_path) as store:
        read = store._engine.reads.query_up_to_date
        threads = [
            threading.Thread(target=read, args=(lambda _: [meeting.wait(60) for _ in range(2)],))
            for _ in range(READERS)
        ]
        for thread in threads:
            thread.start()
        meeting.wait(60)
        fifth = threading.Thread(target=store.get, args=("m1",))
        fifth.start()
        until(lambda: store._engine.reads._waiting)
        assert fifth.is_alive()
        meeting.wait(60)
        fifth.join(60)
        assert not fifth.is_alive()
        for thread in threads:
            thread.join()


def until(holds):
    """Wait for what another thread does."""
    end = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < end, "it never came"
        time.sleep(0.001)


def test_threads_read_in_the_order_in_which_they_came_and_one_that_decides_before_them(tmp_path):
    loops, rounds = 2 * READERS, 3
    served, next_turn, ends = [], threading.Semaphore(0), [threading.Event() for _ in range(READERS)]
    with a_store_with_tea(tmp_path) as store:
        reads = store._engine.reads

        def loop(number):
            for _ in range(rounds):
                reads.query_up_to_date(lambda _: (served.append(number), next_turn.acquire(timeout=60)))

        threads = []

        def start(call, *args):
            threads.append(threading.Thread(target=call, args=args))
            threads[-1].start()

        for end in ends:
            start(reads.query_up_to_date, lambda _, end=end: end.wait(60))
            until(lambda: len(reads._reading) == len(threads))
        for number in range(loops):
            start(loop, number)
            until(lambda number=number: len(reads._waiting) == number + 1)
        start(reads.query_for_decision, lambda _: served.append("decided"))
        until(lambda: reads._deciding)
        ends[0].set()  # that of the first connection: the only one that comes free
        for turn in range(1, (rounds - 1) * loops + 1):
            # One reads, and all others wait: who came again waits behind them.
            until(lambda turn=turn: len(served) == turn + 1 and len(reads._waiting) == loops - 1)
            next_turn.release()
        for end in ends:
            end.set()
        next_turn.release(loops)
        for thread in threads:
            thread.join(60)
        assert served[: 1 + (rounds - 1) * loops] == ["decided", *range(loops), *range(loops)]


@pytest.mark.parametrize("folder", [None, Path("a-model")], ids=["bundled", "of a folder"])
def test_threads_load_one_model(monkeypatch, folder):
    loaded = []

    def load(*_, **__):
        loaded.append(load_embedder())
        return loaded[-1]

    embedding_models._bundled_embedder.cache_clear()
    monkeypatch.setattr(embedding_models, "load_embedder", load)
    model = LocalModel(folder)
    assert {*in_threads(4, model.load_embedder)} == {*loaded}
    assert len(loaded) == 1


def open_below(folder):
    """The files below a folder that this process has open, on Linux."""
    if not Path("/proc/self/fd").exists():
        return []
    names = [os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd") if fd_is_open(fd)]
    return [name for name in names if name.startswith(str(folder))]


def open_and_removed(folder):
    """Those that no longer have a name."""
    return [name for name in open_below(folder) if name.endswith(" (deleted)")]


def fd_is_open(fd):
    return os.path.lexists(f"/proc/self/fd/{fd}")


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="only Linux lists open files")
def test_no_connection_keeps_what_a_scrub_removed(tmp_path):
    with a_store_with_tea(tmp_path) as store:
        store.warm()
        store.erasure.forget("m1")
        store.erasure.scrub()
        assert open_and_removed(tmp_path) == []
        assert store.get("m1") is None


def test_a_proof_waits_for_reads_and_they_wait_for_it(tmp_path):
    ends = [threading.Event(), threading.Event()]
    meeting = threading.Barrier(3)
    with a_store_with_tea(tmp_path) as store:
        readings = [
            threading.Thread(
                target=store._engine.reads.query_up_to_date,
                args=(lambda _, end=end: (meeting.wait(60), end.wait(60)),),
            )
            for end in ends
        ]
        for reading in readings:
            reading.start()
        meeting.wait(60)
        ends[0].set()
        proving = threading.Thread(target=store.erasure.prove, args=("tea",))
        proving.start()
        proving.join(0.1)
        assert proving.is_alive()
        ends[1].set()
        proving.join(60)
        assert not proving.is_alive()
        for reading in readings:
            reading.join()
        with store._engine.reads.holding_all_closed():
            waiting = threading.Thread(target=store.get, args=("m1",))
            waiting.start()
            waiting.join(0.1)
            assert waiting.is_alive()
        waiting.join(60)
        assert not waiting.is_alive()


class SlowEmbedder:
    """The bundled model; it computes nothing before `heartbeat` is set."""

    def __init__(self, embedder):
        self._embedder, self.id, self.dimension = embedder, embedder.id, embedder.dimension
        self.began, self.heartbeat = threading.Event(), threading.Event()

    is_remote = False

    def embed(self, texts, kind="passage"):
        self.began.set()
        assert self.heartbeat.wait(60)
        return self._embedder.embed(texts)


@pytest.mark.parametrize("method", ["embed", "project"])
def test_while_vectors_are_computed_nothing_waits(tmp_path, method):
    with a_store_with_tea(tmp_path) as store:
        (model,) = store._engine.read_model.model._models
        model._loaded = slow = SlowEmbedder(model.load_embedder())
        store.facts.set("teas", "sencha")
        reports = []
        maintaining = threading.Thread(target=lambda: reports.append(getattr(store.maintenance, method)()))
        maintaining.start()
        assert slow.began.wait(60)
        assert store.erasure.prove("oolong").found == []
        assert open_below(tmp_path / "model") == open_below(tmp_path / "cache") == []
        store.facts.remove("teas")
        assert store.get("m1") is not None
        assert store.maintenance.examine()
        slow.heartbeat.set()
        maintaining.join(60)
        assert [store.maintenance.status().vectors_pending, len(reports)] == [0, 1]


def test_a_proof_that_waits_for_maintenance_keeps_nothing_else_waiting(tmp_path):
    with a_store_with_tea(tmp_path) as store:
        proving = threading.Thread(target=store.erasure.prove, args=("tea",))
        with store._engine.reads.maintenance.mutex:
            proving.start()
            proving.join(0.1)
            assert proving.is_alive()
            assert in_threads(2 * READERS, lambda: store.get("m1").id) == ["m1"] * 2 * READERS
            assert in_threads(1, lambda: store.memories.save("oolong", dedup=False).decision) == ["saved"]
        proving.join(60)
        assert not proving.is_alive()


def test_threads_that_search_compute_the_vector_of_a_passage_once(tmp_path):
    computed = []

    class Embedder:
        def __init__(self, embedder):
            self._embedder, self.id, self.dimension = embedder, embedder.id, embedder.dimension

        is_remote = False

        def embed(self, texts, kind="passage"):
            computed.extend(text for text in texts if "the only" in text)
            return self._embedder.embed(texts)

    with a_store_with_tea(tmp_path) as store:
        store.warm()
        (model,) = store._engine.read_model.model._models
        model._loaded = Embedder(model.load_embedder())
        store.append([memlog.MemorySaved(content="the only one")])
        in_threads(READERS, lambda: store.search("tea"))
        assert len(computed) == 1
