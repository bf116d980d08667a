"""The transcripts are what happens, and no command lacks one."""

import os
import re
from pathlib import Path

import pytest

from tests.cli.transcripts import CHAPTERS, is_told, rewritten, run, steps_of
from tests.support.command_tree import MEMLOG, called
from tests.support.forked_memlog import forking_program
from tests.support.sample_calls import BY_RULE, CALLED

_OUT_OF_DATE = "`make snapshots` writes what has changed anew; read the difference"

each_chapter = pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda path: path.stem)


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> dict[Path, list[str]]:
    """What the commands of each chapter print, all run in order in one home folder."""
    home = tmp_path_factory.mktemp("home")
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("MEMLOG_", "XDG_")) and name != "COLUMNS"
    }
    outputs = {}
    with forking_program(tmp_path_factory.mktemp("bin")) as program:
        env = kept | {
            "HOME": str(home),
            "MEMLOG_STORE": str(home / "notes"),
            "PATH": f"{program.parent}:{MEMLOG.parent}:{os.environ['PATH']}",
        }
        for chapter in CHAPTERS:
            text = chapter.read_text()
            outputs[chapter] = run(steps_of(text), env, home)
            if pytestconfig.getoption("update_snapshots"):
                chapter.write_text(rewritten(text, steps_of(text), outputs[chapter]))
    return outputs


@each_chapter
def test_a_chapter_tells_what_happens(chapter: Path, printed: dict[Path, list[str]]) -> None:
    steps = steps_of(chapter.read_text())
    assert steps
    for step, output in zip(steps, printed[chapter], strict=True):
        if not is_told(step.output, output):
            assert output.splitlines() == step.output.splitlines(), f"$ {step.command}{_OUT_OF_DATE}"
            pytest.fail(f"$ {step.command}{output}{_OUT_OF_DATE}")


def test_every_command_has_its_place_in_a_chapter() -> None:
    commands = "".join(step.command for chapter in CHAPTERS for step in steps_of(chapter.read_text()))
    for path in CALLED.keys() - BY_RULE:
        calls = rf"\bmemlog (?:--\S+ \S+ )*{re.escape(' '.join(path))}(?![\w-])"
        assert re.search(calls, commands), called(path)
