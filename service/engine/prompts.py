"""Versioned prompt files. A prompt's id includes a hash of its text."""

from pathlib import Path

import msgspec

from memlog.eventlog.codec.hashing import sha256
from memlog.eventlog.errors import BadInput

_FOLDER = Path(__file__).parent / "prompts"

EXTRACT = "extract-2"
"""The prompt that distils a conversation."""


class Prompt(msgspec.Struct, frozen=True):
    """A prompt for a language model.

    id: its name and the beginning of the SHA-256 of its text, such as extract-1/3f8a0c1d2b4e.
    """

    name: str
    id: str
    text: str


def prompt_names() -> list[str]:
    """Return the names of all prompts."""
    return sorted(path.stem for path in _FOLDER.glob("*.md"))


def read_prompt(name: str, folder: Path | None = None) -> Prompt:
    """Return a prompt by name. folder: a file NAME.md there replaces the built-in text.

    Raises:
        BadInput: no prompt has this name, or its file in the folder is unreadable.
    """
    if name not in prompt_names():
        raise BadInput(f"there is no prompt {name!r}", hint=f"use one of: {', '.join(prompt_names())}")
    path = _FOLDER / f"{name}.md"
    if folder is not None:
        if not folder.is_dir():
            raise BadInput(
                f"extraction.prompts_dir is not a folder: {folder}", hint="specify a folder of prompts"
            )
        path = folder / path.name if (folder / path.name).exists() else path
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeError) as error:
        raise BadInput(f"the prompt {path} is unreadable: {error}", hint="write it as UTF-8") from None
    if not text.strip():
        raise BadInput(f"the prompt {path} is empty", hint="write it, or remove the file")
    return Prompt(name, f"{name}/{sha256(text.encode()).hexdigest()[:12]}", text)
