"""One store, used by many threads at once."""

import threading
import time
from collections import Counter

import memlog

THREADS = 8
SECONDS = 3.0


class Worker(threading.Thread):
    """Appends, searches and reads windows until its time is over.

    acknowledged: the ids of its events. failures: what went wrong.
    """

    def __init__(self, store, number, until):
        super().__init__()
        self.store, self.chat, self.until = store, str(number), until
        self.acknowledged = []
        self.failures = []

    def run(self):
        try:
            while time.monotonic() < self.until:
                self.work()
        except Exception as error:
            self.failures.append(error)

    def work(self):
        said = [
            memlog.Message(channel="cli", chat_id=self.chat, role="user", content=f"tea {self.chat}"),
            memlog.MemorySaved(content=f"tea {self.chat} {len(self.acknowledged)}"),
        ]
        self.acknowledged += [position.id for position in self.store.append(said)]
        in_chat = memlog.Filters(chat=("cli", self.chat))
        found = {hit.id for hit in self.store.search("tea", mode="text", filters=in_chat, k=1000).hits}
        mine = set(self.acknowledged[::2])
        assert mine <= found, "what was acknowledged is found"
        window = self.store.window("cli", self.chat, last=1)
        assert [message.id for message in window.messages] == self.acknowledged[-2:-1]


def test_eight_threads_lose_nothing_and_never_fail(tmp_path):
    with memlog.open(tmp_path, durability="os", lock_timeout=60.0) as store:
        until = time.monotonic() + SECONDS
        workers = [Worker(store, number, until) for number in range(THREADS)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        assert [worker.failures for worker in workers] == [[]] * THREADS
        acknowledged = Counter(name for worker in workers for name in worker.acknowledged)
        assert min(len(worker.acknowledged) for worker in workers) > 0
        assert set(acknowledged.values()) == {1}
        assert store.status().unread_bytes == 0
        assert store.status().events == len(acknowledged)
        assert all(store.get(name) is not None for name in acknowledged)
        assert store.verify().problems == []


def test_a_store_is_closed_by_one_thread_while_others_use_it(tmp_path):
    with memlog.open(tmp_path, durability="os", lock_timeout=60.0) as store:
        until = time.monotonic() + 1.0
        workers = [Worker(store, number, until) for number in range(2)]
        for worker in workers:
            worker.start()
        while time.monotonic() < until:
            store.close()
            time.sleep(0.01)
        for worker in workers:
            worker.join()
        assert [worker.failures for worker in workers] == [[], []]
