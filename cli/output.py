"""Printing: JSON for programs, text for people; notes on stderr."""

import os
import re
import sys
from collections.abc import Iterable
from functools import cache
from typing import Any

import click
import msgspec

# C0 but tab and newline, DEL, C1, and the marks that reverse or hide text (CWE-150).
_CONTROLS = "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")
"""The option that every command has."""


def print_json(*values: Any) -> None:  # noqa: ANN401 - whatever msgspec can encode
    """Print JSON documents, one a line, as UTF-8 whatever the locale."""
    print_lines(msgspec.json.encode(value) for value in values)


def print_raw(text: str) -> None:
    """Print a text as it is, as UTF-8 whatever the locale: but on a terminal, which it must not drive."""
    said = printable(text) if sys.stdout.isatty() else text
    sys.stdout.buffer.write(f"{said}\n".encode())
    sys.stdout.buffer.flush()


def print_lines(lines: Iterable[bytes]) -> None:
    """Print lines of JSON, or of the log, byte for byte: but on a terminal, which they must not drive."""
    is_terminal = sys.stdout.isatty()
    for line in lines:
        sys.stdout.buffer.write((_on_a_terminal(line) if is_terminal else line) + b"\n")
    sys.stdout.buffer.flush()


def _on_a_terminal(line: bytes) -> bytes:
    """JSON says the same with its control characters and bidi marks as escapes."""
    text = line.decode(errors="backslashreplace")
    return _controls().sub(lambda match: f"\\u{ord(match[0]):04x}", text).encode()


def printable(text: str) -> str:
    r"""`text` with control characters and bidi marks as `\x1b`: stored text must not drive a terminal."""
    if text.isascii() and text.isprintable():
        return text
    return _controls().sub(lambda match: match[0].encode("unicode_escape").decode(), text)


@cache
def _controls() -> re.Pattern[str]:
    # Compiled when it is first needed: an acknowledgement does not need it.
    return re.compile(_CONTROLS)


def one_line(text: str) -> str:
    """`text` for people on one line."""
    return printable(" ".join(text.split()))


def minute(ts: str) -> str:
    """A time of the log for people: `2026-02-24 10:15`, UTC."""
    return ts[:16].replace("T", " ")


def bold(text: str) -> str:
    """`text` in bold, on a terminal that shows it."""
    return click.style(text, bold=True)


def dim(text: str) -> str:
    """`text` paler, on a terminal that shows it."""
    return click.style(text, dim=True)


def shows_colours() -> bool | None:
    """False where the user wants no colours or the terminal has none; None: a terminal decides.

    https://no-color.org: any value that is not empty.
    """
    unwanted = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return False if unwanted else None


def note(text: str) -> None:
    """Say something beside the data, on stderr."""
    click.echo(f"memlog: {printable(text)}", err=True)
