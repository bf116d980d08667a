"""Transcripts of a shell: read, run, compared, written anew. Their form is told in transcripts/README.md."""

import os
import re
import shlex
import subprocess
from dataclasses import dataclass
from functools import partial
from io import FileIO
from pathlib import Path

FOLDER = Path(__file__).parent / "transcripts"
CHAPTERS = sorted(path for path in FOLDER.glob("*.md") if path.name != "README.md")
_TIMEOUT = 120

_BLOCK = re.compile(r"^```(console|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_STEP = re.compile(r"^\$ (?P<command>.*\n(?:> .*\n)*)(?P<output>(?:(?!\$ ).*\n)*)", re.MULTILINE)

_SHAPES = [
    (re.compile(pattern), name)
    for pattern, name in (
        (r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", "<id>"),
        (r"\d{4}-\d\d-\d\d(?:T\d\d:\d\d:\d\d(?:\.\d{3})?Z| \d\d:\d\d)", "<time>"),
        (r"\d{4}-\d\d-\d\d", "<day>"),
        (r"(?m)^ +\d\d:\d\d(?: UTC)?$", "<time>"),  # below its day, in a narrow column
        (r"\.[a-z][a-z2-7]{5}(?=(?:\.\d{4,})?\.jsonl)", ".<writer>"),
        (r"\d{8}T\d{6}-[0-9a-f]{8}\.db", "<generation>"),
        (r"\b(?:[0-9a-f]{64}|[0-9a-f]{16})\b", "<hash>"),
        (r'(?<="crc":")[0-9a-f]{8}', "<crc>"),
        (r"\b[0-9a-f]{8}\b", "<import>"),
        (r"(?<=sqlite3 )[\d.]+|(?<=sqlean )[\d.]+", "<version>"),
        # A store notes inodes, whose numbers have more digits on one machine than on another.
        (r"(?m)^bytes        \d+", "<bytes>"),
        (r"\b\d+\.\d+\b", "<decimal>"),
    )
]


@dataclass(frozen=True)
class Step:
    """A command and what it printed, in the text of a chapter.

    start, end: of the output, in characters of the chapter.
    """

    command: str
    output: str
    start: int
    end: int


def steps_of(text: str) -> list[Step]:
    """The commands of a chapter or page in their order; a block of Python is one, with any output."""
    steps: list[Step] = []
    for block in _BLOCK.finditer(text):
        if block[1] == "python":
            command = f"python -W error -c {shlex.quote(block[2])} || exit\n"
            steps.append(Step(command, "…\n", block.end(), block.end()))
        else:
            steps += (_step(match, block.start(2)) for match in _STEP.finditer(block[2]))
    return steps


def _step(match: re.Match[str], start: int) -> Step:
    return Step(
        re.sub("^> ", "", match["command"], flags=re.MULTILINE),
        match["output"],
        start + match.start("output"),
        start + match.end("output"),
    )


def run(steps: list[Step], env: dict[str, str], home: Path, *, on_terminal: bool = False) -> list[str]:
    """What the commands print, run by one shell, into a pipe or on a terminal of 80 columns."""
    script = "exec 2>&1\n" + "".join(f"{step.command}printf '\\036%d\\036' $?\n" for step in steps)
    printed = _printed_on_terminal(script, env, home) if on_terminal else _printed(script, env, home)
    *parts, _ = map(_without_progress, printed.replace(str(home), "~").split("\x1e"))
    assert len(parts) == 2 * len(steps), f"the shell ended before the last command:\n{printed}"
    return [_with_status(output, int(status)) for output, status in zip(parts[::2], parts[1::2], strict=True)]


def _printed(script: str, env: dict[str, str], home: Path) -> str:
    done = subprocess.run(
        ["sh", "-c", script],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        env=env,
        cwd=home,
        timeout=_TIMEOUT,
        check=False,
    )
    return done.stdout.decode()


def _printed_on_terminal(script: str, env: dict[str, str], home: Path) -> str:
    ours, its = os.openpty()
    with open(ours, "rb", buffering=0) as reader, open(its, "wb") as terminal:
        shown = env | {"COLUMNS": "80", "NO_COLOR": "1"}
        shell = subprocess.Popen(
            ["sh", "-c", script], stdin=subprocess.DEVNULL, stdout=terminal, env=shown, cwd=home
        )
        terminal.close()
        data = b"".join(iter(partial(_read_terminal, reader), b""))
        shell.wait(_TIMEOUT)
    return data.decode().replace("\r\n", "\n")


def _without_progress(text: str) -> str:
    return "\n".join(line.rpartition("\r")[2] for line in text.split("\n"))


def _read_terminal(reader: FileIO) -> bytes:
    try:
        return reader.read(65536)
    except OSError:  # on Linux the end of a terminal that nobody has open any more
        return b""


def is_told(expected: str, output: str) -> bool:
    """Whether `output` is what a transcript says."""
    lines = [
        r"(?:.*\n)*" if line == "…" else ".*".join(map(re.escape, line.split("…"))) + "\n"
        for line in _shape(expected).splitlines()
    ]
    return re.fullmatch("".join(lines), _shape(output)) is not None


def rewritten(text: str, steps: list[Step], outputs: list[str]) -> str:
    """A chapter with the outputs of today in the place of those that no longer are."""
    for step, output in reversed(list(zip(steps, outputs, strict=True))):
        if not is_told(step.output, output):
            text = text[: step.start] + output + text[step.end :]
    return text


def _with_status(output: str, status: int) -> str:
    whole = output if output.endswith("\n") or not output else f"{output}\n"
    return whole + (f"[exit status: {status}]\n" if status else "")


def _shape(text: str) -> str:
    for pattern, name in _SHAPES:
        text = pattern.sub(name, text)
    return text
