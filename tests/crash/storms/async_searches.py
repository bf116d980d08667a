"""500 searches at once through an AsyncStore, beside short reads and a process that appends."""

import asyncio
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import memlog
from tests.support.month import make as make_month
from tests.support.watched import percentile

SEARCHES = 500
_BEAT = 0.005
_ALONE_SECONDS = 3.0
_CHAT = "telegram", "elina"
_SUBJECTS = ("tea", "the harbour", "music", "work", "the weather", "what was decided", "Andrei's plans")

_APPENDER = """
import sys, time, memlog
with memlog.open(sys.argv[1]) as store:
    number = 0
    while True:
        said = f"note {number} about tea and the weather"
        store.append([memlog.Message(channel="cli", chat_id="beside", role="user", content=said)])
        number += 1
        print(number, flush=True)
        time.sleep(0.1)
"""


class Beside:
    """What goes on beside the searches: a beat of the event loop, and two short reads in turn.

    late: by how many seconds each beat was. starved: seconds of these without a processor for it.
    short: seconds that each read took.
    """

    def __init__(self, store: memlog.AsyncStore, message_id: str) -> None:
        self.late: list[float] = []
        self.starved: list[float] = []
        self.short: list[float] = []
        self._is_over = False
        self._tasks = [
            asyncio.create_task(each)
            for each in (
                self._beat(),
                self._read(lambda: store.conversations.window(_CHAT, last=10)),
                self._read(lambda: store.get(message_id)),
            )
        ]

    async def end(self) -> None:
        self._is_over = True
        await asyncio.gather(*self._tasks)

    async def _beat(self) -> None:
        while not self._is_over:
            due, waited = time.perf_counter() + _BEAT, _waited_for_a_processor()
            await asyncio.sleep(_BEAT)
            self.late.append(time.perf_counter() - due)
            self.starved.append(_waited_for_a_processor() - waited)

    async def _read(self, call: Callable[[], Awaitable[object]]) -> None:
        while not self._is_over:
            started = time.perf_counter()
            assert await call() is not None
            self.short.append(time.perf_counter() - started)
            await asyncio.sleep(2 * _BEAT)


def _waited_for_a_processor() -> float:
    """Seconds that this thread has waited for one, as far as Linux counts them (proc-schedstat)."""
    try:
        return int(Path("/proc/thread-self/schedstat").read_text().split()[1]) / 1e9
    except OSError:
        return 0.0


def run(seconds: float, seed: int) -> dict[str, int]:
    """Rounds of 500 searches until so much time is over. The times depend on what else the machine does: the
    same short reads are measured without searches first.

    Raises:
        AssertionError: a search or a read was not answered, or found nothing.
    """
    with tempfile.TemporaryDirectory(prefix="memlog-async-") as folder:
        make_month(Path(folder))
        with memlog.open(folder) as store:
            store.maintenance.project()
        command = [sys.executable, "-c", _APPENDER, folder]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as appender:
            assert appender.stdout is not None
            try:
                appender.stdout.readline()
                counts = asyncio.run(_rounds(Path(folder), seconds, random.Random(seed)))
                assert appender.poll() is None
            finally:
                appender.kill()
            counts["appended beside"] = len(appender.stdout.readlines())
        with memlog.open(folder) as store:
            problems = store.maintenance.verify().problems
            assert problems == [], problems
    return counts


async def _rounds(folder: Path, seconds: float, rng: random.Random) -> dict[str, int]:
    until = time.monotonic() + seconds
    searches, spent, used = 0, 0.0, time.process_time()
    async with memlog.open_async(folder) as store:
        await store.warm()
        message_id = (await store.conversations.window(_CHAT, last=1)).messages[0].id
        alone = Beside(store, message_id)
        await asyncio.sleep(_ALONE_SECONDS)
        await alone.end()
        late, starved, short = [], [], []
        while not searches or time.monotonic() < until:
            beside = Beside(store, message_id)
            started = time.perf_counter()
            questions = [f"{rng.choice(_SUBJECTS)} {rng.randrange(100)}" for _ in range(SEARCHES)]
            results = await asyncio.gather(*(store.search(question, k=5) for question in questions))
            spent += time.perf_counter() - started
            await beside.end()
            assert all(result.hits for result in results)
            searches += SEARCHES
            late += beside.late
            starved += beside.starved
            short += beside.short
    return {
        "searches": searches,
        "searches a second": round(searches / spent),
        "ms the loop was late at most": round(max(late) * 1000),
        "ms without waiting for a processor": round(
            max(each - idle for each, idle in zip(late, starved, strict=True)) * 1000
        ),
        "ms p95": round(percentile(late, 0.95) * 1000),
        "short reads": len(short),
        "ms median": round(percentile(short, 0.5) * 1000),
        "ms p95 of them": round(percentile(short, 0.95) * 1000),
        "ms p95 without searches": round(percentile(alone.short, 0.95) * 1000),
        "ms the loop was late without searches": round(max(alone.late) * 1000),
        "processor seconds": round(time.process_time() - used),
    }
