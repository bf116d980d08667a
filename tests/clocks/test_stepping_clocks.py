"""A clock that steps between any two commands makes no acknowledged change void."""

import random
import time
from pathlib import Path

import pytest

import memlog
from tests.support.examples import examples

STEPS = 8
_HISTORIES_OF_A_STORE = 5

SECOND = 1_000_000_000
TRUE = 1_795_000_000 * SECOND  # in November 2026
JUMPS = {
    "it goes on": lambda now: now + SECOND // 3,
    "five seconds back": lambda now: now - 5 * SECOND,
    "an hour back": lambda now: now - 3600 * SECOND,
    "1970": lambda _: 1000 * SECOND,
    "2099": lambda _: 4_070_908_800 * SECOND,
    "the true time": lambda _: TRUE,
}


class Clock:
    """Stands until it is set."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = TRUE
        monkeypatch.setattr(time, "time_ns", lambda: self.now)

    def step(self, drawn: random.Random) -> str:
        name = drawn.choice(list(JUMPS))
        self.now = max(0, JUMPS[name](self.now))
        return name


class Agent:
    """Changes a store, and knows what the next read must show."""

    def __init__(self, folder: Path, drawn: random.Random) -> None:
        self.folder, self.drawn = folder, drawn
        self.core: dict[str, str | None] = {}
        self.facts: dict[str, str | None] = {}
        self.memories: dict[str, str | None] = {}
        (folder / "store/log").mkdir(parents=True)
        self.store = self._opened()

    def _opened(self) -> memlog.Store:
        return memlog.open(self.folder / "store", durability="os")

    def start_again(self) -> None:
        """Go on as another process would."""
        self.store.close()
        self.store = self._opened()

    def change(self) -> None:
        """Make one change of any kind."""
        self.drawn.choice([self._core, self._fact, self._memory, self._document])()

    def _core(self) -> None:
        key, value = self.drawn.choice("ab"), str(self.drawn.random())
        if self.core.get(key) is not None and self.drawn.random() < 0.3:
            assert self.store.core.delete("user", key)
            value = None
        else:
            self.store.core.set("user", key, value)
        self.core[key] = value

    def _fact(self) -> None:
        topic, value = self.drawn.choice(["city", "tea"]), str(self.drawn.random())
        if self.facts.get(topic) is not None and self.drawn.random() < 0.3:
            assert self.store.facts.remove(topic)
            value = None
        else:
            self.store.facts.set(topic, value, single=True)
        self.facts[topic] = value

    def _memory(self) -> None:
        name, content = self.drawn.choice("mn"), f"It is {self.drawn.random()}"
        if self.memories.get(name) is None:
            self.store.memories.save(content, memory_id=name)
        elif self.drawn.random() < 0.3:
            assert self.store.memories.delete(name)
            content = None
        else:
            self.store.memories.update(name, content=content)
        self.memories[name] = content

    def _document(self) -> None:
        notes = self.folder / "notes"
        notes.mkdir(exist_ok=True)
        (notes / "a.md").write_text(f"# A\n\n{self.drawn.random()}\n")
        if "notes" not in {source.source_id for source in self.store.documents.list()}:
            self.store.documents.add(notes, source="notes")
        else:
            self.store.documents.refresh("notes")

    def check(self) -> None:
        """Each value that was acknowledged last is the one that is read."""
        for key, value in self.core.items():
            assert self.store.core.get("user", key) == value
        for topic, value in self.facts.items():
            answer = self.store.facts.get(topic)
            assert [fact.value for fact in answer.facts] == ([] if value is None else [value])
        for name, content in self.memories.items():
            found = self.store.memories.get(name)
            assert (found.content if found else None) == content

    def refresh_appends_nothing(self) -> None:
        """What a refresh has stored, the next one finds as it is."""
        if not self.store.documents.list():
            return
        self.store.documents.refresh()
        before = self._log()
        self.store.documents.refresh()
        assert self._log() == before

    def _log(self) -> dict[Path, int]:
        return {path: path.stat().st_size for path in (self.folder / "store/log").rglob("*.jsonl")}


@pytest.mark.drawn
def test_every_acknowledged_change_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(examples(2)):
        drawn, clock = random.Random(number), Clock(monkeypatch)
        agent = Agent(tmp_path / str(number), drawn)
        for _ in range(_HISTORIES_OF_A_STORE):
            for _ in range(STEPS):
                clock.step(drawn)
                agent.start_again()
                agent.change()
                clock.step(drawn)
                agent.check()
            clock.step(drawn)
            agent.refresh_appends_nothing()
        agent.store.close()
