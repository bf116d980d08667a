"""Answers are read for what they say, in whatever form a model or its server puts it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import memlog
from memlog.service.llm.answers import UNRATED, MemoryAnswer, read_answer
from memlog.service.llm.tasks.merge import MergeAnswer, MergeGroup
from memlog.service.llm.tasks.summarise import SummaryAnswer
from tests.support.provider import Provider

CAT = "Anna has a cat."
ENTRY = {"type": "fact", "content": CAT, "importance": 0.8}


def of(*entries: object, summary: str = "") -> str:
    return json.dumps({"memories": entries, "summary": summary})


def distilled(path: Path, provider: Provider, kind: str = "api") -> list[tuple[str, str, float]]:
    model = memlog.LanguageModelProvider(type=kind, base_url=provider.url, model="m", timeout=60)
    rules = memlog.ExtractionRules(threshold=0)
    with memlog.open(path, language_model=model, extraction=rules) as store:
        store.append([memlog.Message(channel="cli", chat_id="1", role="user", content="I have a cat")])
        store.extraction.run()
        found = store.memories.list()
    return sorted((memory.content, memory.kind, memory.importance) for memory in found)


IMPORTANCE = [("0.7", 0.7), ("0,7", 0.7), (8, 0.8), ("8/10", 0.8), ("80 %", 0.8), (80, 0.8), (1, 1), (0, 0)]
IMPORTANCE += [("high", 0.9), ("Medium", 0.6), ("low (once)", 0.3), (None, UNRATED), ("?", UNRATED)]
ENTRIES: dict[str, tuple[list[Any], list[tuple[str, str, float]]]] = {
    **{
        f"importance {given!r}": ([ENTRY | {"importance": given}], [(CAT, "fact", right)])
        for given, right in IMPORTANCE
    },
    "importance missing": ([{"type": "fact", "content": CAT}], [(CAT, "fact", UNRATED)]),
    "one scale for all": (
        [ENTRY | {"importance": 1}, {"type": "fact", "content": "Bo sails.", "importance": 9}],
        [(CAT, "fact", 0.1), ("Bo sails.", "fact", 0.9)],
    ),
    "no importance": ([ENTRY, ENTRY | {"content": "Bo sails.", "importance": -1}], [(CAT, "fact", 0.8)]),
    "type in capitals": ([ENTRY | {"type": " Preference"}], [(CAT, "preference", 0.8)]),
    "type in the plural": ([ENTRY | {"type": "Insights"}], [(CAT, "insight", 0.8)]),
    "other keys": ([{"Kind": "insight", "memory": CAT, "importance": 0.8}], [(CAT, "insight", 0.8)]),
    "text": ([{"type": None, "text": CAT, "importance": 0.8}], [(CAT, "fact", 0.8)]),
    "plain texts": ([CAT, "…"], [(CAT, "fact", UNRATED)]),
}


@pytest.mark.parametrize("name", ENTRIES)
def test_entries_are_read_for_what_they_say(tmp_path: Path, provider: Provider, name: str) -> None:
    entries, right = ENTRIES[name]
    provider.answer = lambda _: of(*entries)
    assert distilled(tmp_path, provider) == right
    assert len(provider.asked) == 1


EXAMPLE = '{"memories": [{"type": "fact", "content": "…", "importance": 0.6}], "summary": "…"}'
DRAFT = of(ENTRY | {"content": "Anna has a dog."}, ENTRY | {"content": "Anna has a bird."})
AROUND = {
    "a thought": f"<think>{DRAFT}</think>ANSWER",
    "a thought that does not end": f"<think>{DRAFT} or rather ANSWER",
    "a thought that does not begin": f"{DRAFT}</thinking>\n```json\nANSWER\n```",
    "an answer within a thought": "<think>ANSWER</think>",
    "a longer draft": f"At first: {DRAFT}\nNow shorter: ANSWER",
    "an example before and behind": f"{EXAMPLE} ANSWER {EXAMPLE}",
    "notes": "[1] see {this} [2, 3] " * 30 + "ANSWER [4]",
    "a member": '{"result": ANSWER}',
    "deeper": '{"result": {"answer": ANSWER}}',
    "in a list": "[ANSWER]",
    "an example of a schema behind": 'ANSWER {"memories": [{"type": "fact", "content": "string"}]}',
    "brackets": "[" * 2_000_000 + "ANSWER",
    "braces": '{"a":' * 400_000 + "ANSWER",
    "quotes": '["x ' * 500_000 + "ANSWER",
}


@pytest.mark.parametrize("name", AROUND)
def test_the_last_usable_object_is_meant(tmp_path: Path, provider: Provider, name: str) -> None:
    provider.answer = lambda _: AROUND[name].replace("ANSWER", of(ENTRY))
    assert distilled(tmp_path, provider) == [(CAT, "fact", 0.8)]


def test_a_last_answer_of_nothing_is_one() -> None:
    found = read_answer(f"{DRAFT} but nothing of it is worth it: {of()}", MemoryAnswer)
    assert found == (MemoryAnswer([], ""), 0)


def test_groups_and_summaries_are_read_alike() -> None:
    draft = '{"groups": [{"relation": "same", "numbers": [1, 3], "content": "A draft."}]}'
    answer = '{"groups": [{"Type": "SAME", "numbers": ["1", 2], "text": "Anna has a cat."}, "5"]}'
    found = read_answer(f"<think>{draft}{draft}</think> {answer}", MergeAnswer)
    assert found == (MergeAnswer([MergeGroup("same", [1, 2], CAT)]), 1)
    assert read_answer('{"groups": [{"relation": "unlike"}]}', MergeAnswer) is None
    drafts = '{"summary": "A draft."} {"summary": "It rained."} {"summary": "…"}'
    assert read_answer(drafts, SummaryAnswer) == (SummaryAnswer("It rained."), 0)


def replying(change: Callable[[dict[str, Any]], Any]) -> Callable[[Any, Any], Any]:
    return lambda _, answer: change(answer)


def with_message(**members: Any) -> Callable[[dict[str, Any]], Any]:
    return lambda answer: answer | {"choices": [{"message": members, "finish_reason": "stop"}]}


ANSWER = of(ENTRY)
PARTS = [
    {"type": "reasoning", "text": DRAFT},
    *({"type": "text", "text": half} for half in (ANSWER[:9], ANSWER[9:])),
]
READABLE: dict[str, tuple[str, Callable[[dict[str, Any]], Any], int]] = {
    "content in parts": ("api", with_message(content=PARTS), 110),
    "blocks without a text": (
        "anthropic",
        lambda answer: answer | {"content": [{"type": "thinking", "text": None}, *answer["content"]]},
        110,
    ),
    "usage null": ("api", lambda answer: answer | {"usage": None}, 0),
    "usage of nothing": ("api", lambda answer: answer | {"usage": {"prompt_tokens": None}}, 0),
    "usage fractional": (
        "api",
        lambda answer: answer | {"usage": {"prompt_tokens": 99.5, "completion_tokens": "10"}},
        110,
    ),
    "usage NaN": ("api", lambda answer: answer | {"usage": {"prompt_tokens": float("nan")}}, 0),
}


@pytest.mark.parametrize("name", READABLE)
def test_a_completion_is_read_in_any_form(tmp_path: Path, provider: Provider, name: str) -> None:
    kind, change, tokens = READABLE[name]
    provider.answer = lambda _: ANSWER
    provider.reply = replying(change)
    assert distilled(tmp_path, provider, kind) == [(CAT, "fact", 0.8)]
    with memlog.open(tmp_path) as store:
        assert store.maintenance.stats().counters["memory.extraction.tokens"] == tokens


UNUSABLE: dict[str, Callable[[dict[str, Any]], Any]] = {
    "an error": lambda _: {"error": {"message": "cannot tell of green tea"}},
    "HTML": lambda _: b"<html>Welcome</html>",
    "no choices": lambda _: {"id": "1", "object": "chat.completion"},
    "empty choices": lambda answer: answer | {"choices": []},
    "a choice of nothing": lambda answer: answer | {"choices": [None]},
    "content null": with_message(content=None),
    "content empty": with_message(content=" "),
    "a refusal": with_message(content=None, refusal="I cannot help with that"),
    "a filter": lambda answer: (
        answer | {"choices": [answer["choices"][0] | {"finish_reason": "content_filter"}]}
    ),
    "a list": lambda _: [1, 2],
}


@pytest.mark.parametrize("name", UNUSABLE)
def test_an_answer_that_is_no_completion_is_unusable(tmp_path: Path, provider: Provider, name: str) -> None:
    provider.answer = lambda _: ANSWER
    provider.reply = replying(UNUSABLE[name])
    with pytest.raises(memlog.ProviderError) as raised:
        distilled(tmp_path, provider)
    assert (raised.value.is_of_answer, len(provider.requests)) == (True, 1)
    with memlog.open(tmp_path) as store:
        assert len(store.extraction.buffer()[0].messages) == 1
    assert "green tea" not in (tmp_path / "cache/providers.json").read_text()


@pytest.mark.parametrize(("code", "is_of_answer"), [(401, False), (400, True), ("403", False)])
def test_an_error_with_http_200_is_of_the_status_that_it_names(
    tmp_path: Path, provider: Provider, code: object, *, is_of_answer: bool
) -> None:
    provider.reply = lambda *_: {"error": {"message": "no", "code": code}}
    with pytest.raises(memlog.ProviderError, match=f"HTTP {code}") as raised:
        distilled(tmp_path, provider)
    assert (raised.value.status, raised.value.is_of_answer) == (int(str(code)), is_of_answer)


@pytest.mark.parametrize(
    "answer", [of({"type": "joke", "content": CAT, "importance": 1}, summary="A day."), of("…"), EXAMPLE]
)
def test_where_no_entry_is_usable_the_messages_stay(tmp_path: Path, provider: Provider, answer: str) -> None:
    provider.answer = lambda _: answer
    with pytest.raises(memlog.ProviderError, match="answered twice"):
        distilled(tmp_path, provider)
    assert len(provider.asked) == 2
    with memlog.open(tmp_path) as store:
        assert len(store.extraction.buffer()[0].messages) == 1
