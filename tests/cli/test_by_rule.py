"""A command prints the answer of its operation, whichever it is."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

import memlog as library
from memlog.service.catalogue import call_operation
from tests.support.command_tree import called
from tests.support.sample_calls import (
    BY_OPERATION,
    PROJECTS,
    arguments_of,
    fits,
    request_of,
    without_times,
)

Run = Callable[..., Any]

PRINTS_OTHERWISE = {
    "context": "a prompt in one of its forms",
    "maintenance.watch": "a line for each thing that it does",
    "workspaces.add": "a list of sources, as `docs add`",
}
"""Operations whose answer is in what their command prints in another form."""

BY_RULE = [path for path, operation in BY_OPERATION.items() if operation.name not in PRINTS_OTHERWISE]


@pytest.mark.parametrize("path", BY_RULE, ids=called)
def test_a_command_prints_the_answer_of_its_operation(
    memlog_here: Run, filled: library.Store, tmp_path: Path, path: tuple[str, ...]
) -> None:
    """The answer is the document or a member of it; of what changes a store it has the declared type."""
    operation = BY_OPERATION[path]
    filled.maintenance.project()
    (tmp_path / "memlog").symlink_to(tmp_path)  # the folder of projects
    env = {"XDG_DATA_HOME": str(tmp_path)}
    done = memlog_here(*path, *arguments_of(path, tmp_path), "--json", env=env)
    assert done.code == 0 or path == ("doctor",), done.err
    printed = [done.json, *done.json.values()]
    assert any(fits(each, kind) for each in printed for kind in operation.types_if_found)
    if operation.effect == "read":
        owner = library.Projects(tmp_path / "memlog") if operation.name in PROJECTS else filled
        given = call_operation(
            owner, operation.name, json.loads(json.dumps(request_of(operation.name, tmp_path)))
        )
        expected = without_times(msgspec.to_builtins(given))
        printed = [without_times(each) for each in printed]
        assert expected in printed or (isinstance(expected, dict) and printed[0].items() >= expected.items())
