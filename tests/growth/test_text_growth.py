"""The time of every function of one text, and of the patterns that it uses, grows no faster than the text."""

import importlib
import inspect
import pkgutil
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import memlog
from memlog.eventlog.codec.decode import decode_line
from memlog.eventlog.codec.upcast import Place
from memlog.eventlog.log.streams import SegmentName
from memlog.projector.passages.chunking import ChunkSizes, split_into_chunks
from memlog.service.engine.sandbox_program import extract_text
from tests.growth.attacks import Attack, against, general
from tests.growth.measuring import SHORTEST, SHORTEST_OF_MANY_STEPS, first_growth

_PLACE = Place("conversations/cli_1", SegmentName("2026-02-24"), 0)
_SHARE = 8
"""One in so many of the attacks is tried on each function, another one on the next."""

_NOT_FOREIGN = (
    "memlog.cli",
    "memlog.service.adapters",
    "memlog.service.catalogue",
    "memlog.service.documents.pdf_text",
    "memlog.projector.text.language_files",
    "memlog.service.memory.word_tables",
)
"""Modules whose functions take names of memlog's own."""


def _modules() -> Iterator[object]:
    for found in pkgutil.walk_packages(memlog.__path__, "memlog."):
        if found.name != "memlog.__main__":
            yield importlib.import_module(found.name)


def _functions() -> dict[str, Callable[[str], object]]:
    """Return the public functions that need one text and nothing else, and three that read stored text."""
    found: dict[str, Callable[[str], object]] = {
        "decode": lambda text: decode_line(text.encode(), _PLACE),
        "split_into_chunks": lambda text: split_into_chunks(text, ChunkSizes()),
        "extract_text": lambda text: extract_text(text.encode(), "html"),
    }
    for module in _modules():
        for name, function in vars(module).items():
            is_own = inspect.isfunction(inspect.unwrap(function)) and function.__module__ == module.__name__
            if not is_own or name.startswith("_") or module.__name__.startswith(_NOT_FOREIGN):
                continue
            needed = [
                each
                for each in inspect.signature(function).parameters.values()
                if each.default is each.empty and each.kind is not each.VAR_KEYWORD
            ]
            if [each.annotation for each in needed] == [str]:
                found[f"{module.__name__}.{name}"] = function
            elif [each.annotation for each in needed] == [bytes]:
                found[f"{module.__name__}.{name}"] = lambda text, function=function: function(text.encode())
    return found


def _whole(function: Callable[[str], object]) -> Callable[[str], object]:
    """A function that may refuse its text, and whose iterator is read to its end."""
    inner = inspect.unwrap(function)

    def work(text: str) -> None:
        with suppress(Exception):
            result = inner(text)
            if isinstance(result, Iterator):
                list(result)

    return work


def _patterns_in(value: object) -> Iterator[re.Pattern]:
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(getattr(value, "__self__", None), re.Pattern):
        yield value.__self__
    elif isinstance(value, tuple | list):
        for each in value:
            yield from _patterns_in(each)
    elif isinstance(value, dict):
        yield from _patterns_in(list(value.values()))
    elif (
        "Pattern" in str(getattr(value, "__annotations__", {}).get("return"))
        and not inspect.signature(value).parameters
    ):
        yield from _patterns_in(value())


def _attacks() -> dict[str, list[Attack]]:
    """What leads to each repeat of the patterns of a module, repeated: by the name of the module."""
    return {
        module.__name__: [
            attack
            for value in list(vars(module).values())
            if str(getattr(value, "__module__", module.__name__)) == module.__name__
            for pattern in _patterns_in(value)
            for attack in against(pattern, 2)
        ]
        for module in _modules()
    }


def test_no_function_of_a_text_grows_faster_than_it(tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    functions, own = _functions(), _attacks()
    assert len(functions) > 100
    with memlog.open(tmp_path / "store", durability="os", model=tmp_path / "none") as store:
        chat = {"channel": "cli", "chat_id": "1"}
        stored = {
            "search": store.search,
            "context": lambda text: store.context(text, chat="cli:1"),
            "append": lambda text: store.append(memlog.Message(role="user", content=text, **chat)),
            "memories.save": lambda text: store.memories.save(text),
            "facts.extract": lambda text: store.facts.extract(text),
        }
        growing = {}
        for number, (name, function) in enumerate([*stored.items(), *functions.items()]):
            step, shortest = (_SHARE * 15, SHORTEST_OF_MANY_STEPS) if name in stored else (_SHARE, SHORTEST)
            tried = [*general(), *own.get(name.rpartition(".")[0], ())][number % step :: step]
            if growth := first_growth(_whole(function), tried, shortest=shortest):
                growing[name] = str(growth)
    assert growing == {}
