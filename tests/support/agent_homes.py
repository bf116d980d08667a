"""A home folder with repositories, and with sessions of coding agents that worked in them."""

import json
import subprocess
from pathlib import Path

from tests.support.places import ROOT

_SAMPLES = ROOT / "fixtures/importers"
_CLAUDE = next((_SAMPLES / "claude-code").glob("projects/*/*1.jsonl"))
_AGENT = next((_SAMPLES / "claude-code").rglob("agent-*.jsonl"))
_CODEX = next((_SAMPLES / "codex").rglob("*000005.jsonl"))
_FOLDER = "/home/mia/src/teapot"


def git(folder: Path, *words: str) -> None:
    """Run git in a folder, as a person without settings."""
    who = ["-c", "user.name=Mia", "-c", "user.email=mia@example.org"]
    env = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/nonexistent"}
    subprocess.run(["git", "-C", folder, *who, *words], env=env, check=True, capture_output=True)


def make_repository(folder: Path, remote: str | None = None) -> Path:
    """Make a repository with one commit, and a remote."""
    folder.mkdir(parents=True)
    git(folder, "init", "--quiet")
    git(folder, "commit", "--quiet", "--allow-empty", "--message", "Begin")
    if remote is not None:
        git(folder, "remote", "add", "origin", remote)
    return folder


def add_claude_session(home: Path, number: int, folder: Path, word: str) -> str:
    """Add the sample of a session with a subagent, which worked in `folder` and says `word`.

    Return its name.
    """
    projects = home / ".claude/projects" / str(folder).replace("/", "-")
    session = _renumber(_CLAUDE.stem, number)
    for sample, path in (
        (_CLAUDE, projects / f"{session}.jsonl"),
        (_AGENT, projects / session / "subagents" / f"agent-{number}.jsonl"),
    ):
        path.parent.mkdir(parents=True, exist_ok=True)
        text = _renumber(sample.read_text(), number).replace(_FOLDER, str(folder))
        path.write_text(text.replace("Why does pour() spill?", f"Why does the {word} spill?"))
    return session


def add_codex_thread(home: Path, number: int, folder: Path, word: str, remote: str | None = None) -> str:
    """Add the sample of a short thread; it worked in `folder`, and says `word`. Return its name.

    remote: what it says about its repository.
    """
    path = home / f".codex/sessions/2026/05/05/{_renumber(_CODEX.name, number)}"
    path.parent.mkdir(parents=True, exist_ok=True)
    text = _renumber(_CODEX.read_text(), number).replace(_FOLDER, str(folder))
    lines = text.replace("Which tea is best", f"Which {word} is best").splitlines()
    if remote is not None:
        first = json.loads(lines[0])
        first["payload"]["git"] = {"repository_url": remote}
        lines[0] = json.dumps(first)
    path.write_text("\n".join([*lines, ""]))
    return path.stem[-36:]


def add_prompt(home: Path, session: str, folder: Path, word: str) -> None:
    """Add a prompt of a session to Claude Code's history."""
    line = {"display": f"Where is the {word}?", "timestamp": 1788249601000, "project": str(folder)}
    with (home / ".claude/history.jsonl").open("a") as file:
        file.write(json.dumps(line | {"sessionId": session, "pastedContents": {}}) + "\n")


def _renumber(text: str, number: int) -> str:
    """Give the sample's sessions and lines ids of their own."""
    for old in ("5e55104e-0000", "a0000000-0000", "019a0000-5555"):
        text = text.replace(old, f"{old[:9]}{number:04}")
    return text
