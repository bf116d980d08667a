"""The command line within this process, where the disk can be stood in for."""

import io
import json
import os
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from memlog.cli.process.main import run_command_line


@dataclass
class Ended:
    """How a command ended, and what it said."""

    code: int
    out: bytes
    err: bytes

    @property
    def acknowledged(self) -> list[str]:
        """The ids of the events that `append` said are stored."""
        answers: list[dict[str, Any]] = [json.loads(line) for line in self.out.splitlines()]
        return [answer["id"] for answer in answers if "error" not in answer]


def memlog_here(*args: str | Path, input: bytes = b"", env: dict[str, str] | None = None) -> Ended:
    """Run `memlog`; `input` is what stdin holds."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    with pytest.MonkeyPatch.context() as monkeypatch, tempfile.TemporaryFile() as file:
        file.write(input)
        file.seek(0)
        for name in [name for name in os.environ if name.startswith("MEMLOG_")]:
            monkeypatch.delenv(name)
        for name, value in (env or {}).items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(sys, "argv", ["memlog", *map(str, args)])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(file))
        monkeypatch.setattr(sys, "stdout", out)
        monkeypatch.setattr(sys, "stderr", err)
        # What goes wrong while objects are removed is told on stderr, too: pytest would take it.
        monkeypatch.setattr(sys, "unraisablehook", sys.__unraisablehook__)
        code = run_command_line()
    return Ended(code, _written(out), _written(err))


def _written(stream: io.TextIOWrapper) -> bytes:
    stream.flush()
    assert isinstance(stream.buffer, io.BytesIO)
    return stream.buffer.getvalue()
