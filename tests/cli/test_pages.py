"""Every example of README.md and docs/ prints on a terminal what its page shows.

Each page runs in order, in a fresh home folder.
"""

import os
import re
import shlex
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

import memlog
from tests.cli.transcripts import is_told, rewritten, run, steps_of
from tests.support.command_tree import MEMLOG
from tests.support.forked_memlog import forking_program
from tests.support.places import ROOT

Run = Callable[..., Any]

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]

RUN = {"console", "python"}
NOT_RUN = {
    "": "a help text of docs/cli.md: test_help.py compares it",
    "crontab": "needs cron",
    "ini": "a unit of systemd",
    "py": "a program beside a running server",
    "js": "a program of Node, beside a running server",
    "json": "lines of the log: test_documents.py decodes them",
    "sh": "needs an interactive shell, another machine, or the repository: the page says which",
    "sql": "the schema: test_architecture_pages.py compares it",
    "text": "a diagram, a formula, or paths",
    "toml": "a part of a file",
    "xml": "a property list of launchd",
}
"""Why a block with this info string does not run."""

_INFO = re.compile(r"^ *```(.*)\n(?:.*\n)*?^ *```$", re.MULTILINE)


def _name(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with forking_program(tmp_path_factory.mktemp("bin")) as path:
        yield path


@pytest.fixture
def home() -> Iterator[Path]:
    """A folder whose path is as long on every machine: tables are as wide as their texts."""
    with TemporaryDirectory(prefix="memlog-", dir="/tmp") as folder:
        yield Path(folder)


@pytest.fixture
def environment(program: Path, home: Path) -> dict[str, str]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("MEMLOG_", "XDG_")) and name != "COLUMNS"
    }
    path = f"{program.parent}:{MEMLOG.parent}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    return kept | {"HOME": str(home), "MEMLOG_STORE": str(home / "notes"), "PATH": path}


@pytest.mark.parametrize("page", [page for page in PAGES if steps_of(page.read_text())], ids=_name)
def test_the_examples_of_a_page_run_as_printed(
    page: Path, environment: dict[str, str], home: Path, pytestconfig: pytest.Config
) -> None:
    """`--snapshot-update` writes the output that has changed."""
    text = page.read_text()
    steps = steps_of(text)
    outputs = run(steps, environment, home, on_terminal=True)
    if pytestconfig.getoption("update_snapshots"):
        page.write_text(rewritten(text, steps, outputs))
        return
    for step, output in zip(steps, outputs, strict=True):
        if not is_told(step.output, output):
            assert output.splitlines() == step.output.splitlines(), f"$ {step.command}"
            pytest.fail(f"$ {step.command}{output}")


def test_a_block_is_run_or_says_why_not() -> None:
    for page in PAGES:
        for info in _INFO.findall(page.read_text()):
            assert info in RUN | NOT_RUN.keys(), (_name(page), info)


def test_commands_stand_in_console_blocks_alone() -> None:
    for page in PAGES:
        for block in _INFO.finditer(page.read_text()):
            is_console = block[1] == "console"
            assert is_console or not re.search(r"^\$ ", block[0], re.MULTILINE), (_name(page), block[0])


# docs/five-systems.md: each row leads to something that works, or says why there is nothing


SYSTEMS = (ROOT / "docs/five-systems.md").read_text()
ROWS = [
    (theirs, ours)
    for theirs, ours in re.findall(r"^\| (.+?) \| (.+) \|$", SYSTEMS, re.MULTILINE)
    if theirs not in {"theirs", "---"}
]
_COMMAND = re.compile(r"`(memlog [^`]+)`")
_NAME = re.compile(r"`((?:memlog|store)(?:\.\w+)+)`")
_REASON = re.compile(r"(?:No|Internal)\b")
TRIED = {
    "logs of the scheduler": ("eventlog/test_upcast", "test_a_chat_is_taken_from_a_folder_made_by_hand"),
    "tables `memory_chunks`": (
        "test_architecture_pages",
        "test_the_schema_on_the_page_is_the_one_that_is_executed",
    ),
    "fact: newer": ("service/http/test_seeds", "test_fact_newer_created_at_wins_at_any_rank"),
    "`id`: a UUID": ("service/http/test_seeds", "test_memory_id_uuid"),
    "a service of one": ("service/http/test_seeds", "test_sessions_of_every_project"),
    "`vector_cache.py`": (
        "service/providers/test_embedding",
        "test_a_question_is_embedded_once_until_something_is_forgotten",
    ),
    "deduplication": (
        "service/memories/test_deduplication",
        "test_high_similarity_merges_and_increases_importance_in_the_examples_of_the_java_service",
    ),
}
"""The tests of rows that name nothing, by how a row begins."""


def test_every_command_of_a_row_runs(environment: dict[str, str], home: Path, memlog_here: Run) -> None:
    """In this process, where the model is loaded once."""
    called = dict.fromkeys(command for _, ours in ROWS for command in _COMMAND.findall(ours))
    assert len(called) > 100
    run(steps_of(SYSTEMS), environment, home)
    for command in called:
        done = memlog_here(*shlex.split(command)[1:], cwd=home)
        assert done.code == 0, (command, done.err)


def test_every_name_of_a_row_is_there(tmp_path: Path) -> None:
    names = sorted(set(_NAME.findall(SYSTEMS)))
    assert names
    with memlog.open(tmp_path) as store:
        for name in names:
            first, *rest = name.split(".")
            found: object = store if first == "store" else memlog
            for part in rest:
                assert hasattr(found, part), name
                found = getattr(found, part)


def test_a_row_that_no_test_runs_says_so_or_why() -> None:
    assert len(ROWS) > 120
    named = re.compile(f"{_COMMAND.pattern}|{_NAME.pattern}")
    bare = [(theirs, ours) for theirs, ours in ROWS if not named.search(ours) and not _REASON.match(ours)]
    untold = [theirs for theirs, ours in bare if not ours.endswith("not tried")]
    assert [theirs for theirs in untold if not theirs.startswith((*TRIED,))] == []
    for file, test in TRIED.values():
        assert f"def {test}(" in (ROOT / f"tests/{file}.py").read_text(), test


FOR_AGENTS = {
    "tools/memory.md": (
        "sqlite-vec FTS5 `Reciprocal rank fusion` RRF `topK` created_at `400 tokens` `overlap by 80` Headings"
        " all-MiniLM-L6-v2 384 Ollama all-minilm:l6-v2 Latency"
    ),
    "memory/core-memory.md": (
        "`already in your prompt` memory_core_get `memory_core_update(section, key, value)` `at once`"
        " `memory_core_delete(section, key)` `unknown key is an error` USER.md personality_notes"
        " learned_rules"
    ),
    "memory/archival-memory.md": (
        "`memory_search(query, topK)` `memory_save(content, source)` created_at MEMORY.md"
        " memory/2026-02-24.md conversation manual summary extraction `workspace add` `Stale facts`"
    ),
    "storage/jsonl-format.md": (
        "session_break /new subagent_result channel chat_id tokens_in tokens_out tool scheduler task_name"
        " conversations/telegram_123456 scheduler_{task_name}"
    ),
}
"""What klaw's document lists for each page that its agent reads; words in backticks stand together."""


@pytest.mark.parametrize("page", FOR_AGENTS)
def test_a_page_for_agents_says_what_klaws_document_lists(page: str) -> None:
    text = " ".join((ROOT / "docs" / page).read_text().split())
    listed = [quoted or word for quoted, word in re.findall(r"`([^`]+)`|(\S+)", FOR_AGENTS[page])]
    assert [each for each in listed if each not in text] == []
