"""No command prints a word of another project, however it is named; nor of another chat than --chat names."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from memlog.cli.process.main import memlog_command
from memlog.eventlog.log.streams import conversation_stream
from tests.isolation.reads import ALL, WORDS, Whose
from tests.isolation.worlds import OWN_SCOPE, World, canaries_in, lines_of, name_of
from tests.support.command_tree import COMMANDS
from tests.support.forked_memlog import run_memlog
from tests.support.sample_calls import BY_OPERATION, CALLED

ANNA, BORIS = ("telegram", "a"), ("telegram", "a_b")
OWN_CHAT = "the chat, or no chat"

PRINT_WORDS: dict[str, list[tuple[list[str], Whose | str]]] = {
    "query": [
        ([WORDS, "-k", "50", "--expand", "2", "--mode", "text", "--explain"], ALL),
        ([WORDS, "-k", "50", "--chat", "CHAT"], ANNA),
        ([WORDS, "--in", "memories", "--chat", "CHAT"], ANNA),
        (["tea", "--in", "documents"], OWN_SCOPE),
    ],
    "context": [([WORDS], ALL), ([WORDS, "--chat", "CHAT", "--scope", "chat"], OWN_CHAT)],
    "window": [(["--chat", "CHAT"], ANNA), (["--chat", "CHAT", "--across-sessions"], ANNA)],
    "session content": [(["CHAT"], ANNA)],
    "sessions": [([], ALL), (["--chat", "CHAT"], ANNA)],
    "summaries": [([], ALL), (["--chat", "CHAT"], ANNA)],
    "log cat": [([], ALL), (["--chat", "CHAT", "--positions"], ANNA), (["--chat", "CHAT", "--raw"], ANNA)],
    "log tail": [([], ALL), (["--chat", "CHAT"], ANNA)],
    "memory list": [([], ALL), (["--chat", "CHAT"], ANNA)],
    "memory conflicts": [([], ALL)],
    "memory show": [(["k0"], ALL)],
    "memory history": [(["k0"], ALL)],
    "fact list": [([], ALL), (["--chat", "CHAT"], ANNA)],
    "fact get": [
        (["favorite_color"], OWN_SCOPE),
        (["favorite_color", "--chat", "CHAT"], ANNA),
        (["favorite_color", "--chat", "telegram:nobody", "--any-chat"], ALL),
    ],
    "ask": [
        (["what are my favourite colours"], OWN_SCOPE),
        (["what are my favourite colours", "--chat", "CHAT"], ANNA),
    ],
    "show": [(["m1", "--stream", "STREAM", "--around", "5"], ANNA), (["favorite_color/1"], OWN_SCOPE)],
    "daily list": [([], OWN_SCOPE)],
    "core get": [([], OWN_SCOPE)],
    "docs show": [(["docs"], OWN_SCOPE), (["docs/tea.md"], OWN_SCOPE)],
    "prune": [(["--dry-run", "--threshold", "1", "--category", "other"], ALL)],
}
"""How commands are called that print what was said, and whose rows they may print."""

READING = {" ".join(path): COMMANDS[path] for path, each in BY_OPERATION.items() if each.effect == "read"}

READS = PRINT_WORDS | {
    name: [([], ALL)]
    for name, command in (READING | {"config": COMMANDS["config",], "doctor": COMMANDS["doctor",]}).items()
    if name not in PRINT_WORDS and not any(each.required for each in command.params)
}
"""With the commands that print names and numbers."""

NO_READS = {
    "completion",
    "config set",
    "gate",
    "help",
    "hook",  # two stores are its purpose: tests/cli/test_hook.py
    "init",
    "jobs schedule",
    "mcp",
    "prompts edit",
    "serve",
}
"""Commands without an operation that read no store."""

WORLDS = [
    World(number, chats, [(kind, place, place % 4, place % 2) for kind in (0, 6) for place in range(4)])
    for number, chats in enumerate([[ANNA, BORIS, ("Telegram", "a")], [BORIS, ANNA, ("telegram", "ab")]])
]
NAMES = ["a", "a_b"]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str | None]:
    """An environment whose platform folder has two projects."""
    home = tmp_path_factory.mktemp("home")
    (home / "no-model").mkdir()
    unset = {name: None for name in os.environ if name.startswith(("MEMLOG_", "XDG_"))}
    # Without a model a query starts faster: what is to be found is found by words.
    env: dict[str, str | None] = unset | {"HOME": str(home), "MEMLOG_MODEL": str(home / "no-model")}
    for world, name in zip(WORLDS, NAMES, strict=True):
        as_process(env, "--project", name, "append", input=lines_of(world))
    return env


def as_process(env: dict[str, str | None], *args: str, input: bytes = b"") -> bytes:
    """All that the installed program says."""
    known = {name: value for name, value in (os.environ | env).items() if value is not None}
    done = run_memlog(*args, input=input, env=known)
    done.check_returncode()
    return done.stdout + done.stderr


def calls(name: str) -> Iterator[tuple[list[str], Whose | str]]:
    """How a command is called: for people, and for programs."""
    forms = [[]] if name.startswith("log") else [[], ["--json"]]
    known = {"CHAT": name_of(ANNA) or "", "STREAM": conversation_stream(*ANNA)}
    for args, whose in READS[name]:
        for form in forms:
            yield [*name.split(), *(known.get(arg, arg) for arg in args), *form], whose


def allowed(world: World, whose: Whose | str) -> set[str]:
    if whose == ALL:
        return {*world.canaries}
    both = {ANNA, OWN_SCOPE} if whose == OWN_CHAT else {whose}
    return {word for word, of_whom in world.canaries.items() if of_whom in both}


def test_every_command_that_reads_is_called() -> None:
    """But an export, prompts of memlog, and what names its project itself."""
    assert READING.keys() - READS.keys() == {"export sqlite", "prompts show", "projects show"}
    others = {" ".join(path) for path in CALLED.keys() - BY_OPERATION.keys() if path[0] != "append"}
    assert others - READS.keys() == NO_READS


def test_a_command_prints_no_word_of_another_project_nor_of_another_chat(
    home: dict[str, str | None],
) -> None:
    for world, project in zip(WORLDS, NAMES, strict=True):
        for name in READS:
            for args, whose in calls(name):
                done = CliRunner().invoke(memlog_command, args, env=home | {"MEMLOG_PROJECT": project})
                # The doctor finds no model here.
                assert done.exit_code == 0 or name == "doctor", (args, done.output)
                found = canaries_in(done.output)
                assert found <= allowed(world, whose), (project, args)
                assert found or name not in PRINT_WORDS, (project, args)


def test_across_the_chats_of_a_project_all_is_found_unless_a_chat_is_asked_for(
    home: dict[str, str | None],
) -> None:
    def chats(*args: str) -> set[Any]:
        call = ["--project", NAMES[0], "query", WORDS, "-k", "100", "--json", *args]
        done = CliRunner().invoke(memlog_command, call, env=home)
        return {hit["chat"] for hit in json.loads(done.stdout)["hits"]}

    assert chats() == {None, *map(name_of, WORLDS[0].chats)}
    assert chats("--chat", "telegram:a") == {"telegram:a"}
    assert chats("--chat", "telegram:nobody") == set()


def test_a_process_reads_the_project_that_is_named_in_either_way(home: dict[str, str | None]) -> None:
    for world, name in zip(WORLDS, NAMES, strict=True):
        for variable, option in (({}, ["--project", name]), ({"MEMLOG_PROJECT": name}, [])):
            for args in (["query", WORDS, "-k", "50"], ["log", "cat"]):
                found = canaries_in(as_process(home | variable, *option, *args))
                assert found
                assert found <= {*world.canaries}, (variable, option, args)


def test_what_is_shown_of_a_project_is_of_the_one_that_is_named(home: dict[str, str | None]) -> None:
    """Also where another one is used."""
    for name, used in zip(NAMES, reversed(NAMES), strict=True):
        call = ["--project", used, "projects", "show", name, "--json"]
        shown = json.loads(CliRunner().invoke(memlog_command, call, env=home).stdout)
        assert shown["project"]["name"] == name
        assert Path(shown["status"]["store"]) == Path(shown["project"]["folder"])
