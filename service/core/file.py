"""Reads files to import into the core memory: JSON in the shape of the view, Markdown, text."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from memlog.eventlog.errors import BadInput
from memlog.eventlog.quarantine import MAX_LINE
from memlog.eventlog.streams import shown
from memlog.query.core_memory import CoreMemory
from memlog.service.core.markdown import is_of_project, parse

_SHAPE_HINT = 'the shape is {"user":{"key":"value"},"agent":{}}'
_TEXT_SUFFIXES = (".md", ".markdown", ".txt")


def is_json(path: Path) -> bool:
    """Whether a file is JSON, by its name.

    Raises:
        BadInput: the name is neither that of JSON nor of Markdown or text.
    """
    suffix = path.suffix.lower()
    if suffix != ".json" and suffix not in _TEXT_SUFFIXES:
        raise BadInput(
            f"{shown(path)} is neither JSON nor Markdown by its name",
            hint=f"name it .json, {', '.join(_TEXT_SUFFIXES[:-1])} or {_TEXT_SUFFIXES[-1]}",
        )
    return suffix == ".json"


def contents(path: Path) -> bytes:
    """The bytes of a file.

    Raises:
        BadInput: it cannot be read, or has more than 16 MiB.
    """
    try:
        # A pipe that nobody writes to would be waited for without end.
        if path.exists() and not (path.is_file() or path.is_dir()):
            raise BadInput(f"{shown(path)} is no file", hint="name a file that can be read")
        with path.open("rb") as file:
            data = file.read(MAX_LINE + 1)
    except OSError as error:
        raise BadInput(f"{shown(path)}: {error.strerror}", hint="name a file that can be read") from error
    if len(data) > MAX_LINE:
        raise BadInput(f"{shown(path)} has more than 16 MiB", hint="a core memory is short")
    return data


def sections_of_json(data: bytes, path: Path) -> CoreMemory:
    """The core memory in a JSON file of the view's shape.

    Raises:
        BadInput: it has another shape.
    """
    try:
        document = json.loads(_text(data, path), object_pairs_hook=_without_duplicates)
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{shown(path)} is no JSON: {error}", hint=_SHAPE_HINT) from error
    for problem in _problems(document):
        raise BadInput(f"{shown(path)}: {problem}", hint=_SHAPE_HINT)
    return CoreMemory(user=document.get("user", {}), agent=document.get("agent", {}))


def sections_of_text(data: bytes, path: Path) -> tuple[CoreMemory, int]:
    """The core memory in a Markdown or text file, and the number of lines that were not understood.

    Raises:
        BadInput: it is not UTF-8.
    """
    return parse(_text(data, path), of_project=is_of_project(path.stem))


def _text(data: bytes, path: Path) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadInput(
            f"{shown(path)} is not UTF-8: byte {error.start}: {error.reason}", hint="save it as UTF-8"
        ) from error


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members: dict[str, Any] = {}
    for name, value in pairs:
        if name in members:
            raise ValueError(f"{name!r} is there twice")
        members[name] = value
    return members


def _problems(document: Any) -> Iterator[str]:  # noqa: ANN401 - whatever JSON can say
    if not isinstance(document, dict):
        yield "it is no object"
        return
    for section, values in document.items():
        if section not in ("user", "agent"):
            yield f"{section!r} is neither user nor agent"
        elif not isinstance(values, dict):
            yield f"{section} is no object"
        else:
            yield from (f"{section}: {why}" for key, value in values.items() for why in _faults(key, value))


def _faults(key: str, value: Any) -> Iterator[str]:  # noqa: ANN401
    if not key:
        yield "a key is empty"
    if not isinstance(value, str):
        yield f"the value of {key!r} is no text"
    elif shown(key + value) != key + value:
        yield f"{key!r} has half of a surrogate pair"
