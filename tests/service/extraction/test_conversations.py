"""Six conversations in four languages, answered as a capable model does, and what becomes of each."""

from pathlib import Path
from typing import NamedTuple

import pytest

import memlog
from tests.service.extraction.test_extraction import answer, opened, said
from tests.support.provider import Provider


class Case(NamedTuple):
    """before: memories of the chat. found: those after it. counts: saved, merged, known, below, refused."""

    said: tuple[str, ...]
    answered: str
    found: set[str]
    counts: tuple[int, int, int, int, int]
    before: tuple[str, ...] = ()


CASES = {
    "English, what was decided": Case(
        ("We take the flat in Turku. Rent is 900 euros, from 1 May 2026.", "Congratulations!"),
        answer(
            ("fact", "Anna and Leo rent a flat in Turku from 1 May 2026 for 900 euros.", 0.9),
            ("preference", "Anna wants short answers.", 0.6),
            summary="Anna and Leo decided to rent a flat in Turku.",
        ),
        {
            "Anna and Leo rent a flat in Turku from 1 May 2026 for 900 euros.",
            "Anna wants short answers.",
        },
        (2, 0, 0, 0, 0),
    ),
    "English, small talk": Case(
        ("Good morning!", "Good morning, Anna. How are you?"), answer(), set(), (0, 0, 0, 0, 0)
    ),
    "Russian, what is known, and what matters little": Case(
        ("У меня аллергия на орехи, не забудь. Сегодня жарко.", "Запомню."),
        answer(
            ("fact", "У Андрея аллергия на орехи.", 0.9),
            ("fact", "Сегодня жарко.", 0.1),
        ),
        {"У Андрея аллергия на орехи."},
        (0, 0, 1, 1, 0),
        before=("У Андрея аллергия на орехи.",),
    ),
    "Chinese, a preference and a lesson": Case(
        ("我不喝咖啡，只喝绿茶。上次重启路由器就好了。", "好的，记住了。"),
        answer(("preference", "陈静不喝咖啡，只喝绿茶。", 0.7), ("insight", "重启路由器可以解决断网。", 0.5)),
        {"陈静不喝咖啡，只喝绿茶。", "重启路由器可以解决断网。"},
        (2, 0, 0, 0, 0),
    ),
    "Finnish, a correction that changes a number": Case(
        ("Hammaslääkäri onkin vasta 12. toukokuuta kello 14.", "Korjasin sen."),
        answer(("fact", "Elinan hammaslääkäri on 12.5.2026 kello 14.", 0.7)),
        {"Elinan hammaslääkäri on 5.5.2026 kello 14.", "Elinan hammaslääkäri on 12.5.2026 kello 14."},
        (1, 0, 0, 0, 0),
        before=("Elinan hammaslääkäri on 5.5.2026 kello 14.",),
    ),
    "English, said again in nearly the same words, twice, and wrongly": Case(
        ("As I said, I work at the harbour office in Helsinki as a senior planner.", "You did."),
        answer(
            ("fact", "Anna works at the harbour office in Helsinki as a senior planner.", 0.8),
            ("fact", "Anna works at the harbour office in Helsinki as a senior planner!", 0.7),
            ("rumour", "Anna will be promoted.", 0.8),
        ),
        {
            "Anna works at the harbour office in Helsinki as a planner.",
            "Anna works at the harbour office in Helsinki as a senior planner.",
        },
        (1, 0, 1, 0, 1),
        before=("Anna works at the harbour office in Helsinki as a planner.",),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_each_conversation_leaves_what_the_rules_say(tmp_path: Path, provider: Provider, name: str) -> None:
    case = CASES[name]
    provider.answer = lambda _: case.answered
    with opened(tmp_path, provider) as store:
        store.append([memlog.MemorySaved(content=content, chat_id="cli:1") for content in case.before])
        store.append(said(*case.said))
        (report,) = store.extraction.run()
        counts = (report.saved, report.merged, report.known, report.below, report.refused)
        assert ({memory.content for memory in store.memories.list()}, counts) == (case.found, case.counts)
