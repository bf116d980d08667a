"""Versioned prompt files. A prompt's id includes a hash of its text."""

from functools import cache
from pathlib import Path

import msgspec

from memlog.eventlog.codec.hashing import sha256
from memlog.eventlog.errors import BadInput

_FOLDER = Path(__file__).parent / "prompts"

EXTRACT = "extract-2"
"""The prompt that distils a conversation."""

COMPRESS = "compress-2"
"""The prompt that distils the daily events of a day."""

MERGE = "merge-2"
"""The prompt that compares memories."""

PROFILE = "profile-2"
"""The prompt that derives core memory from memories."""

SUMMARISE = "summarise-1"
"""The prompt that summarises a part of a conversation."""


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


@cache
def read_prompt(name: str) -> Prompt:
    """Return a prompt by name.

    Raises:
        BadInput: no prompt has this name.
    """
    if name not in prompt_names():
        raise BadInput(f"there is no prompt {name!r}", hint=f"use one of: {', '.join(prompt_names())}")
    text = (_FOLDER / f"{name}.md").read_text(encoding="utf-8")
    return Prompt(name, f"{name}/{sha256(text.encode()).hexdigest()[:12]}", text)
