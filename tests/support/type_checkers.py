"""mypy and pyright, each at its strictest, as a program that uses memlog meets them."""

import json
import re
import subprocess
import sys
from pathlib import Path

ERROR_OF_MYPY = re.compile(r"^([^:]+):(\d+): error: ", re.MULTILINE)


def errors_of_mypy(folder: Path) -> dict[str, set[int]]:
    """The lines with errors, by the name of the program."""
    programs = sorted(path.name for path in folder.glob("*.py"))
    said = output("mypy", "--strict", "--config-file=", "--cache-dir=.mypy", *programs, cwd=folder)
    return by_program(((name, int(line)) for name, line in ERROR_OF_MYPY.findall(said)), programs)


def errors_of_pyright(folder: Path) -> dict[str, set[int]]:
    """As `errors_of_mypy`. basedpyright is pyright in a wheel; `strict` has the rules of pyright alone."""
    programs = sorted(path.name for path in folder.glob("*.py"))
    (folder / "pyrightconfig.json").write_text('{"typeCheckingMode": "strict"}')
    said = output("basedpyright", "--pythonpath", sys.executable, "--outputjson", cwd=folder)
    told = (each for each in json.loads(said)["generalDiagnostics"] if each["severity"] == "error")
    return by_program(
        ((Path(each["file"]).name, each["range"]["start"]["line"] + 1) for each in told), programs
    )


CHECKERS = {"mypy": errors_of_mypy, "pyright": errors_of_pyright}


def by_program(errors, programs: list[str]) -> dict[str, set[int]]:
    found: dict[str, set[int]] = {program: set() for program in programs}
    for program, line in errors:
        found[program].add(line)
    return found


def output(module: str, *args: str, cwd: Path) -> str:
    command = [sys.executable, "-m", module, *args]
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return done.stdout
