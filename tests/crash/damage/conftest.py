"""Stores that something happens to, and `memlog` as a process."""

import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import memlog
from tests.support.forked_memlog import run_memlog

MEMLOG = str(Path(sys.executable).with_name("memlog"))
_TIMEOUT = 60


class Finished(NamedTuple):
    """How a process ended, and what it said."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Where the store is to be; nothing stands there yet."""
    return tmp_path / "store"


@pytest.fixture
def environment(store: Path, tmp_path: Path) -> dict[str, str]:
    """What processes see: this store, no model, and nothing of whoever runs the tests."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("MEMLOG_", "XDG_"))}
    no_model = tmp_path / "no-model"
    no_model.mkdir()
    return kept | {"MEMLOG_STORE": str(store), "HOME": str(tmp_path), "MEMLOG_MODEL": str(no_model)}


@pytest.fixture
def run(environment: dict[str, str]) -> Callable[..., Finished]:
    """Runs `memlog` with arguments and waits for its end."""

    def finish(*args: str | Path, env: dict[str, str] | None = None, **options: Any) -> Finished:
        done = run_memlog(*args, env=environment | (env or {}), timeout=_TIMEOUT, **options)
        return Finished(done.returncode, done.stdout.decode(), done.stderr.decode())

    return finish


@pytest.fixture
def opened(store: Path) -> Iterator[memlog.Store]:
    """The store in this process; `notes` of it are in `opened.notes`."""
    with memlog.open(store, durability="os", model=store.parent) as here:
        yield here
